//! Compares tables with those of kube-apiserver's printers. `cargo xtask tables` records them.

use rbuilder_kubernetes::time::parse_time;
use serde_json::{Value, json};

use crate::{Columns, Content, IncludeObject, Options, columns, kinds, table};

/// Alpha kinds whose tables are those of kinds without columns.
const WITHOUT_CELLS: [&str; 3] = ["Eviction", "EvictionRequest", "ResourcePoolStatusRequest"];

/// The time at which the program records.
fn options() -> Options {
    Options {
        now: parse_time("2000-01-01T00:00:00Z").unwrap(),
        ..Options::default()
    }
}

fn print(case: &Value) -> Value {
    let object = if case["list"].is_array() {
        &case["list"][0]
    } else {
        &case["object"]
    };
    let version = object["apiVersion"].as_str().unwrap();
    let columns = match case["columns"].as_array() {
        Some(columns) => Columns::Custom(columns),
        None => Columns::BuiltIn {
            group: version.split_once('/').map_or("", |(group, _)| group),
            kind: object["kind"].as_str().unwrap(),
        },
    };
    let content = match case["list"].as_array() {
        Some(items) => Content::List {
            metadata: &Value::Null,
            items,
        },
        None => Content::Object(object),
    };
    table(columns, content, &options())
}

#[test]
fn tables_are_those_of_the_server() {
    let mut failures = Vec::new();
    for line in include_str!("../tests/tables.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let printed = print(&case);
        let mut rows = printed["rows"].clone();
        for row in rows.as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove("object");
        }
        if rows != case["rows"] {
            failures.push(format!("{line}\nexpected {}\nfound    {rows}", case["rows"]));
        }
        if let Some(headers) = case.get("headers") {
            assert_eq!(printed["columnDefinitions"], *headers, "{line}");
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
fn each_kind_is_recorded() {
    let recorded = include_str!("../tests/tables.jsonl");
    let kinds = columns::kinds().iter();
    for (group, kind, _) in kinds.filter(|(_, kind, _)| !WITHOUT_CELLS.contains(kind)) {
        assert!(
            kinds::has_cells(group, kind) || ["", "CSIStorageCapacity"].contains(kind),
            "{group} {kind}"
        );
        if !["", "Scale", "Status"].contains(kind) {
            assert!(
                recorded.contains(&format!(r#""kind":"{kind}""#)),
                "{group} {kind}"
            );
        }
    }
}

#[test]
fn rows_contain_what_was_asked_for() {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "resourceVersion": "7" } });
    let columns = Columns::BuiltIn {
        group: "",
        kind: "ConfigMap",
    };
    let check = |include_object, expected: Value| {
        let options = Options {
            include_object,
            no_headers: true,
            ..options()
        };
        let printed = table(columns, Content::Object(&object), &options);
        assert_eq!(printed["rows"][0]["object"], expected);
        assert_eq!(printed["columnDefinitions"], Value::Null);
        assert_eq!(printed["metadata"], json!({ "resourceVersion": "7" }));
    };
    check(IncludeObject::None, Value::Null);
    check(IncludeObject::Object, object.clone());
    let partial = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"] });
    check(IncludeObject::Metadata, partial);
    assert_eq!(IncludeObject::parse(""), Some(IncludeObject::Metadata));
    assert_eq!(IncludeObject::parse("metadata"), None);
}

#[test]
fn custom_resources_have_an_age_by_default() {
    let object = json!({ "metadata": { "name": "a", "creationTimestamp": "1999-12-31T23:58:30Z" } });
    let printed = table(Columns::Custom(&[]), Content::Object(&object), &options());
    let names: Vec<_> = printed["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| &column["name"])
        .collect();
    assert_eq!(names, ["Name", "Age"]);
    assert_eq!(printed["rows"][0]["cells"], json!(["a", "90s"]));
}

#[test]
fn lists_keep_their_metadata() {
    let metadata = json!({ "resourceVersion": "9", "continue": "abc", "remainingItemCount": 3 });
    let check = |group, kind, columns, rows: Value| {
        let content = Content::List {
            metadata: &metadata,
            items: &[],
        };
        let printed = table(Columns::BuiltIn { group, kind }, content, &options());
        assert_eq!(printed["metadata"], metadata);
        assert_eq!(printed["rows"], rows, "{kind}");
        assert_eq!(
            printed["columnDefinitions"].as_array().unwrap().len(),
            columns,
            "{kind}"
        );
    };
    check("apps", "Deployment", 8, json!([]));
    check("", "Pod", 9, json!([]));
    check("rbac.authorization.k8s.io", "Role", 2, Value::Null);
    check("apiextensions.k8s.io", "CustomResourceDefinition", 8, Value::Null);
}

/// Whatever clients have written, there is a cell for each column.
#[test]
fn objects_with_values_of_wrong_types_have_rows() {
    for value in [
        json!({}),
        json!([]),
        json!(1),
        json!("a"),
        Value::Null,
        json!([[{}], null]),
    ] {
        for (group, kind, columns) in columns::kinds() {
            let object = json!({
                "metadata": value, "spec": value, "status": value, "subsets": value, "endpoints": value,
                "subjects": value, "webhooks": value, "series": value, "involvedObject": value,
            });
            let content = Content::List {
                metadata: &Value::Null,
                items: &[object],
            };
            let printed = table(Columns::BuiltIn { group, kind }, content, &options());
            let cells = printed["rows"][0]["cells"].as_array().unwrap().len();
            let expected = if kinds::has_cells(group, kind) {
                columns.len()
            } else {
                2
            };
            // The server prints the age of addresses, for which there is no column.
            let expected = expected + usize::from(*kind == "IPAddress");
            assert_eq!(cells, expected, "{group} {kind}");
        }
    }
}
