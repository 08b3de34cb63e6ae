//! Compares both directions with objects that Go has encoded. `cargo xtask protobuf` records them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::base64::{parse_base64, print_base64};
use crate::table::table;
use crate::{Error, decode, encode};

/// A recorded body, its JSON if Go can decode it, and whether the body was damaged.
struct Row {
    body: Vec<u8>,
    json: Option<Value>,
    is_damaged: bool,
}

fn rows() -> Vec<Row> {
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        Row {
            body: parse_base64(line["protobuf"].as_str().unwrap()).unwrap(),
            json: line.get("json").cloned(),
            is_damaged: line["damaged"] == true,
        }
    };
    include_str!("../tests/recorded.jsonl")
        .lines()
        .map(parse)
        .collect()
}

#[test]
fn bodies_are_decoded_like_go_does() {
    let mut failures = Vec::new();
    for row in rows() {
        let decoded = decode(&row.body);
        match (&decoded, &row.json) {
            (Ok(found), Some(expected)) if found == expected => {}
            (Err(_), None) => {}
            (_, expected) => failures.push(format!(
                "{}\nexpected {}\nfound    {}",
                print_base64(&row.body),
                expected.as_ref().map_or("an error".to_owned(), Value::to_string),
                decoded.map_or_else(|error| error.to_string(), |found| found.to_string()),
            )),
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn objects_are_encoded_like_go_does() {
    for row in rows().iter().filter(|row| !row.is_damaged) {
        let object = row.json.as_ref().unwrap();
        let body = encode(object).unwrap_or_else(|error| panic!("{error}: {object}"));
        assert!(
            body == row.body,
            "{object}\n{}\n{}",
            print_base64(&body),
            print_base64(&row.body)
        );
    }
}

#[test]
fn each_kind_is_recorded() {
    let name = |row: Row| {
        let object = row.json.unwrap_or_default();
        format!("{} {}", object["apiVersion"].as_str()?, object["kind"].as_str()?).into()
    };
    let recorded: BTreeSet<String> = rows().into_iter().filter_map(name).collect();
    let mut known: Vec<_> = table().kinds().collect();
    known.sort_unstable();
    assert!(known.len() > 200, "{} kinds", known.len());
    for (version, kind) in known {
        let version = if version == "*" { "apps/v1" } else { version };
        assert!(
            recorded.contains(&format!("{version} {kind}")),
            "{version} {kind}"
        );
    }
}

#[test]
fn unknown_kinds_are_named() {
    let body = b"k8s\0\x0a\x1b\x0a\x0eexample.com/v1\x12\x09Memcached\x12\x00";
    let expected = Error::UnknownKind {
        api_version: "example.com/v1".to_owned(),
        kind: "Memcached".to_owned(),
    };
    assert_eq!(decode(&body[..]), Err(expected.clone()));
    assert_eq!(
        encode(&json!({ "apiVersion": "example.com/v1", "kind": "Memcached" })),
        Err(expected)
    );
    assert_eq!(decode(b"{}"), Err(Error::NoMagic));
    assert!(decode(b"k8s\0").is_err());
}

#[test]
fn options_have_the_version_of_any_group() {
    let options =
        json!({ "apiVersion": "example.com/v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan" });
    assert_eq!(decode(&encode(&options).unwrap()).unwrap(), options);
}

#[test]
fn values_of_another_type_are_errors() {
    let check = |spec: Value, expected: &str| {
        let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": spec });
        assert_eq!(encode(&object).unwrap_err().to_string(), expected);
    };
    check(
        json!({ "replicas": "3" }),
        "`spec.replicas`: expected an integer that fits",
    );
    check(
        json!({ "replicas": 1u64 << 40 }),
        "`spec.replicas`: expected an integer that fits",
    );
    check(json!({ "paused": 1 }), "`spec.paused`: expected true or false");
    check(json!([]), "`spec`: expected an object");
    check(
        json!({ "selector": { "matchLabels": { "a": 1 } } }),
        "`spec.selector.matchLabels.a`: expected a string",
    );
}

/// A linear congruential generator, so that the test has the same bytes on each machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn damaged_bodies_do_not_panic() {
    let mut random = Random(1);
    for row in rows().iter().filter(|row| row.body.len() < 1000) {
        for _ in 0..8 {
            let mut body = row.body.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(body.len());
                match random.below(3) {
                    0 => body[at] = random.below(256) as u8,
                    1 => body.truncate(at.max(4)),
                    _ => body.insert(at, random.below(256) as u8),
                }
            }
            if let Ok(object) = decode(&body) {
                // Whatever was decoded is a valid object.
                encode(&object).unwrap_or_else(|error| panic!("{error}: {object}"));
            }
        }
    }
}

/// Returns a body with these bytes of an object.
fn body_of(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut body = encode(&json!({ "apiVersion": api_version, "kind": kind })).unwrap();
    // The last occurrence counts.
    crate::wire::write_bytes(2, raw, &mut body);
    body
}

#[test]
fn deep_bodies_are_rejected() {
    // `spec.versions[].schema.openAPIV3Schema.not.not…`
    let mut raw = Vec::new();
    for _ in 0..1000 {
        let mut outer = Vec::new();
        crate::wire::write_bytes(28, &raw, &mut outer);
        raw = outer;
    }
    for number in [1, 4, 7, 2] {
        let mut outer = Vec::new();
        crate::wire::write_bytes(number, &raw, &mut outer);
        raw = outer;
    }
    let body = body_of("apiextensions.k8s.io/v1", "CustomResourceDefinition", &raw);
    let error = decode(&body).unwrap_err().to_string();
    assert!(
        error.ends_with("expected at most 60 levels of messages"),
        "{error}"
    );
}

#[test]
fn small_bodies_do_not_become_large_objects() {
    let raw: Vec<u8> = [0x12, 0].repeat(200_000);
    let error = decode(&body_of("apps/v1", "DeploymentList", &raw)).unwrap_err();
    assert!(
        error.to_string().ends_with("too many messages for so few bytes"),
        "{error}"
    );
    // Skipped groups in each other need no stack.
    let raw: Vec<u8> = [0x7b].repeat(1_000_000);
    assert!(decode(&body_of("v1", "ConfigMap", &raw)).is_err());
    // A merged message is read once.
    let raw: Vec<u8> = [0x0a, 0x02, 0x0a, 0x00].repeat(100_000);
    assert_eq!(
        decode(&body_of("v1", "ConfigMap", &raw)).unwrap()["metadata"],
        json!({})
    );
}
