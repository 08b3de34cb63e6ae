//! Imports definitions and generates them again: the manifests of this repository, and random
//! schemas. `examples/survey.rs` does the same with a folder of published CRDs, none of which are
//! committed.

#![allow(clippy::disallowed_methods)] // reads the manifests of this repository

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rbuilder_importer::{Minor, import_definitions};
use serde_json::{Map, Value, json};
use support::RoundTrip;

/// Returns everything that went wrong: errors on either side, differences, and warnings about
/// losses.
fn check(documents: &[Value]) -> Result<(), String> {
    let trip = RoundTrip::of(documents);
    let lost = trip
        .imported
        .diagnostics
        .iter()
        .map(|found| format!("{}: {}", found.place, found.message));
    let errors = trip
        .messages
        .iter()
        .filter(|message| message.starts_with("error"))
        .cloned();
    let found: Vec<String> = lost
        .chain(errors)
        .chain(trip.differences.iter().cloned())
        .collect();
    if found.is_empty() {
        return Ok(());
    }
    let files: String = trip
        .imported
        .files
        .iter()
        .map(|file| format!("// {}\n{}", file.path, file.text))
        .collect();
    Err(format!("{}\n{files}", found.join("\n")))
}

#[test]
fn manifests_of_repository_round_trip() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in [
        "crates/generator/tests/cases",
        "testdata/oracle",
        "examples",
        "crates/runtime/tests",
    ] {
        find_manifests(&root.join(folder), &mut files);
    }
    assert!(files.len() > 40, "the manifests are missing: {}", files.len());
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files {
        let text = fs::read_to_string(&path).expect("a manifest");
        let Ok(documents) = serde_saphyr::from_multiple::<Value>(&text) else {
            continue;
        };
        for document in documents.into_iter().filter(rbuilder_kubernetes::crd::is_crd) {
            // The API server rejects `uniqueItems`, although controller-gen writes it.
            if text.contains("uniqueItems: true") {
                continue;
            }
            count += 1;
            if let Err(found) = check(std::slice::from_ref(&document)) {
                wrong.push(format!(
                    "{}: {}",
                    path.display(),
                    found.lines().take(6).collect::<Vec<_>>().join("\n")
                ));
            }
        }
    }
    assert!(count > 40, "{count} definitions");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn find_manifests(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            find_manifests(&path, files);
        } else if path.extension().is_some_and(|end| end == "yaml") && path.to_string_lossy().contains("crd")
        {
            files.push(path);
        }
    }
}

/// A definition with these versions. The first one is stored.
fn definition(kind: &str, versions: &[(&str, Value)]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, schema))| {
            json!({
                "name": name, "served": true, "storage": at == 0, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            })
        })
        .collect();
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
            "versions": versions,
        },
    })
}

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// A complete object with these properties.
fn root(properties: Value) -> Value {
    let mut root = object(properties);
    for (name, of_type) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        root["properties"][name] = json!({ "type": of_type });
    }
    root
}

#[track_caller]
fn check_root(schema: Value) {
    if let Err(found) = check(&[definition("Gadget", &[("v1", schema)])]) {
        panic!("{found}");
    }
}

#[test]
fn roots_of_every_form_round_trip() {
    let status = object(json!({ "ready": { "type": "boolean" } }));
    let spec = object(json!({ "size": { "type": "integer", "format": "int32" } }));
    check_root(root(json!({ "spec": spec, "status": status })));
    let mut required = root(json!({ "spec": spec, "status": status }));
    required["required"] = json!(["metadata", "spec"]);
    required["description"] = "A gadget.".into();
    check_root(required.clone());
    // Only the spec has a description, and the name is constrained.
    required["properties"]["spec"]["description"] = "What is wanted.".into();
    required["description"].take();
    required["properties"]["metadata"]["properties"] =
        json!({ "name": { "type": "string", "maxLength": 20 } });
    required["x-kubernetes-validations"] = json!([
        { "rule": "self.spec.size > 0" },
        { "rule": "self.metadata.name != 'x'", "message": "not \"x\"", "reason": "FieldValueInvalid" },
    ]);
    check_root(required);
    // No spec, or a field next to it.
    check_root(root(
        json!({ "data": { "type": "object", "additionalProperties": { "type": "string" } } }),
    ));
    check_root(root(
        json!({ "spec": spec, "extra": { "type": "string" }, "status": status }),
    ));
    // A spec that is not a struct, or a status that is not a struct.
    check_root(root(
        json!({ "spec": { "type": "object", "additionalProperties": { "type": "string" } } }),
    ));
    check_root(root(
        json!({ "spec": spec, "status": { "type": "string", "enum": ["a", "b"] } }),
    ));
    // Arbitrary content.
    check_root(json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));
    check_root(root(
        json!({ "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } }),
    ));
}

#[test]
fn schemas_without_rust_type_round_trip() {
    let cases = json!({
        "unformatted": { "type": "integer", "minimum": 0 },
        "listOfUnformatted": { "type": "array", "items": { "type": "number" } },
        "nullableEnum": { "type": "string", "nullable": true, "enum": ["a", "b", null] },
        "strangeEnum": { "type": "string", "enum": ["==", "!=", "", "1"] },
        "sameInPascalCase": { "type": "string", "enum": ["any", "Any"] },
        "numbers": { "type": "integer", "enum": [1, 2] },
        "either": { "x-kubernetes-int-or-string": true },
        "some": { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
            "oneOf": [{ "required": ["a"] }, { "required": ["b"] }], "not": { "required": ["a", "b"] } },
        "open": { "type": "object", "properties": { "a": { "type": "string" } },
            "x-kubernetes-preserve-unknown-fields": true },
        "host_aliases": { "type": "string" },
        "hostAliases": { "type": "string" },
        "self": { "type": "string" },
        "$ref": { "type": "string", "description": "TODO: one line\n+kubebuilder:marker\n--- and trailing " },
        "x.y/z": { "type": "array", "items": { "type": "array", "items": { "type": "string", "description": "" } } },
        "described": { "type": "array", "items": { "type": "object", "properties": { "a": { "type": "string" } } } },
        "describedToo": { "type": "object", "description": "Here.", "properties": { "a": { "type": "string" } } },
        "defaulted": { "type": "object", "default": { "a": -1 }, "required": ["a"],
            "properties": { "a": { "type": "integer", "format": "int64", "default": -1 } } },
        "nullItems": { "type": "array", "items": { "type": "string", "nullable": true } },
        "requiredNull": { "type": "string", "nullable": true },
        "embedded": { "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true },
    });
    let mut spec = object(cases);
    spec["required"] = json!(["requiredNull", "self"]);
    check_root(root(json!({ "spec": spec })));
}

/// Checks that a definition containing a field with this schema is unchanged, and that the
/// generator reports no warnings.
#[track_caller]
fn check_unwarned(field: Value) {
    let documents = [definition(
        "Gadget",
        &[("v1", root(json!({ "spec": object(json!({ "field": field })) })))],
    )];
    check(&documents).unwrap_or_else(|found| panic!("{found}"));
    let messages = RoundTrip::of(&documents).messages;
    assert!(messages.is_empty(), "{field:#}: {messages:#?}");
}

/// The generator warns about snake case names without a corresponding `rename_all`.
#[test]
fn snake_case_fields_need_no_warning() {
    let text = json!({ "type": "string" });
    check_unwarned(object(json!({ "pod_name": text, "size": text })));
    check_unwarned(object(json!({ "pod_name": text, "podCIDR": text })));
    check_unwarned(object(json!({ "pod_name": text, "podSize": text })));
}

#[test]
fn lists_preserve_unknown_fields() {
    let keeps = |mut schema: Value| {
        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
        schema
    };
    let list = |items: Value| json!({ "type": "array", "items": items });
    let backend = object(json!({ "host": { "type": "string" } }));
    for field in [
        keeps(list(object(json!({})))),
        keeps(list(backend.clone())),
        keeps(list(keeps(backend.clone()))),
        list(keeps(backend.clone())),
        keeps(list(list(backend.clone()))),
        object(json!({ "inner": keeps(list(backend.clone())) })),
        json!({ "type": "object", "additionalProperties": keeps(list(backend)) }),
    ] {
        check_unwarned(field);
    }
}

#[test]
fn removes_unsupported_keys() {
    let spec = object(json!({
        "a": { "type": "array", "uniqueItems": true, "items": { "type": "string" } },
        "b": { "type": "string", "readOnly": true },
        "c": { "type": "string", "anyOf": [{ "description": "Letters.", "pattern": "^[a-z]*$" }] },
        "d": {},
        "e": { "type": "object", "additionalProperties": true },
    }));
    let trip = RoundTrip::of(&[definition("Gadget", &[("v1", root(json!({ "spec": spec })))])]);
    assert_eq!(trip.messages, [""; 0]);
    let messages = trip.imported.diagnostics.iter().map(|found| &*found.message);
    assert_eq!(
        messages.collect::<Vec<_>>(),
        [
            "`uniqueItems` is left out: the API server rejects it",
            "`readOnly` is left out: the API server drops it",
            "`description` is left out: the API server rejects it here",
            "the schema has no type, so any content is kept",
            "`additionalProperties: true` becomes `x-kubernetes-preserve-unknown-fields`",
        ]
    );
}

/// The CRD of a kind that is being retired is still needed for stored objects.
#[test]
fn imports_unserved_kind() {
    let mut definition = definition("Gadget", &[("v1", root(json!({ "spec": object(json!({})) })))]);
    definition["spec"]["versions"][0]["served"] = false.into();
    let documents = [definition];
    check(&documents).unwrap_or_else(|found| panic!("{found}"));
    let messages = RoundTrip::of(&documents).messages;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("warning: no version of `Gadget` is served"));
}

/// Checks that each cause is reported once, and that the generator does not warn about the
/// remaining schema.
#[test]
fn removes_keys_without_effect() {
    let long = |bound: Value| json!({ "type": "integer", "format": "int64", "maximum": bound });
    let spec = object(json!({
        "names": { "type": "array", "minLength": 1, "items": { "type": "string" } },
        "others": { "type": "array", "minLength": 2, "items": { "type": "string" } },
        "enabled": { "type": "boolean", "x-kubernetes-preserve-unknown-fields": true },
        "asn": { "type": "integer", "format": "int32", "minimum": 0, "maximum": 4_294_967_295_u32 },
        "myASN": { "type": "integer", "format": "int32", "minimum": 0, "maximum": 4_294_967_295_u32 },
        "long": long(i64::MAX.into()),
        "shorter": long(5.into()),
        "low": { "type": "integer", "minimum": i64::MIN },
    }));
    let trip = RoundTrip::of(&[definition("Gadget", &[("v1", root(json!({ "spec": spec })))])]);
    assert_eq!(trip.messages, [""; 0]);
    let warnings: Vec<String> = trip
        .imported
        .diagnostics
        .iter()
        .map(|found| format!("{}: {}", found.place, found.message))
        .collect();
    let at = "gadgets.example.com, version v1: .spec";
    assert_eq!(
        warnings,
        [
            format!(
                "{at}.asn: `maximum` 4294967295 is left out: it is outside of the range of the format `int32`, and with it \
                 the API server rejects every value (and at {at}.myASN)"
            ),
            format!(
                "{at}.enabled: `x-kubernetes-preserve-unknown-fields` is left out: it applies to objects and lists of \
                 them, and this value is a boolean"
            ),
            format!(
                "{at}.names: `minLength` is left out: it applies to strings, and this value is a list (and at {at}.others)"
            ),
        ]
    );
    let differences: Vec<&str> = trip
        .differences
        .iter()
        .filter_map(|difference| difference.split("properties.spec.properties.").nth(1))
        .collect();
    assert_eq!(
        differences,
        [
            "asn.maximum: 4294967295 became null",
            "enabled.x-kubernetes-preserve-unknown-fields: true became null",
            "long.maximum: 9223372036854775807 became null",
            "low.minimum: -9223372036854775808 became null",
            "myASN.maximum: 4294967295 became null",
            "names.minLength: 1 became null",
            "others.minLength: 2 became null",
        ]
    );
}

#[test]
fn dropped_metadata_needs_no_warning() {
    let metadata = json!({ "type": "object" });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let template = object(json!({ "metadata": metadata, "size": { "type": "integer", "format": "int32" } }));
    let mut described = template.clone();
    described["properties"]["metadata"]["description"] = "The labels of the pods.".into();
    let mut defaulted = template.clone();
    defaulted["properties"]["metadata"]["default"] = json!({});
    let mut required = template.clone();
    required["required"] = json!(["metadata"]);
    // The struct's schema is written out, so its fields have no markers.
    let mut written_out = template.clone();
    written_out["x-kubernetes-preserve-unknown-fields"] = true.into();
    written_out["required"] = json!(["name"]);
    let mut whole = template.clone();
    whole["x-kubernetes-embedded-resource"] = true.into();
    for field in [
        described,
        defaulted,
        required,
        written_out,
        whole,
        object(json!({ "metadata": template })),
        list(template.clone()),
        list(list(template.clone())),
        json!({ "type": "object", "additionalProperties": template }),
    ] {
        check_unwarned(field);
    }
    let mut no_spec = root(json!({ "template": template }));
    no_spec["description"] = "A gadget.".into();
    let documents = [definition("Gadget", &[("v1", no_spec)])];
    check(&documents).expect("a round trip");
    assert_eq!(RoundTrip::of(&documents).messages, [""; 0]);
}

#[test]
fn rejects_invalid_definitions() {
    let errors = |document: Value| -> Vec<String> {
        let imported = import_definitions(&[document], Minor::LATEST, true);
        assert!(imported.files.is_empty());
        imported
            .diagnostics
            .into_iter()
            .map(|found| found.message)
            .collect()
    };
    let mut old = definition("Gadget", &[("v1", root(json!({})))]);
    old["apiVersion"] = "apiextensions.k8s.io/v1alpha1".into();
    assert_eq!(
        errors(old),
        ["expected the API version `apiextensions.k8s.io/v1`, found `apiextensions.k8s.io/v1alpha1`"]
    );
    let mut unnamed = definition("Gadget", &[("v1", root(json!({})))]);
    unnamed["spec"]["names"]["plural"] = "".into();
    assert_eq!(
        errors(unnamed),
        ["expected `group`, `names.kind` and `names.plural` in `spec`"]
    );
    // The names become source code, so invalid names could inject code.
    for (place, what, name) in [
        ("/spec/names/kind", "kind", "Foo { } fn evil() {} struct Bar"),
        ("/spec/names/kind", "kind", "Foo-Bar"),
        ("/spec/names/kind", "kind", "1Foo"),
        ("/spec/names/plural", "plural", "../gadgets"),
        ("/spec/group", "group", "x.io\npub fn evil() {}\n//"),
        ("/spec/group", "group", "x..io"),
        ("/spec/versions/0/name", "version", "v1\npub fn evil() {}\n//"),
        ("/spec/versions/0/name", "version", "../v1"),
        ("/spec/versions/0/name", "version", ""),
    ] {
        let mut named = definition("Gadget", &[("v1", root(json!({})))]);
        *named.pointer_mut(place).expect("a name") = name.into();
        let shown = name.escape_debug();
        assert_eq!(errors(named), [format!("`{shown}` is not a valid {what}")]);
    }
    let wrong = definition("Gadget", &[("v1", json!({ "type": "text" }))]);
    assert!(errors(wrong)[0].starts_with("invalid schema: unknown variant `text`"));
}

/// `v1beta1` has fields in `spec` that `v1` has in each version, and preserves unknown fields by
/// default.
#[test]
fn reads_v1beta1_like_v1() {
    let port = |key: &str| json!({ key: [{ "type": "string" }, { "type": "integer" }] });
    let spec =
        |port: Value| object(json!({ "size": { "type": "integer", "format": "int64" }, "port": port }));
    let marked =
        json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }], "x-kubernetes-int-or-string": true });
    let new = definition("Gadget", &[("v1", root(json!({ "spec": spec(marked) })))]);
    for (key, preserves, warnings) in [("anyOf", json!(false), 0), ("oneOf", Value::Null, 1)] {
        let mut old = new.clone();
        old["apiVersion"] = "apiextensions.k8s.io/v1beta1".into();
        let schema = root(json!({ "spec": spec(port(key)) }));
        old["spec"]["validation"] = json!({ "openAPIV3Schema": schema });
        old["spec"]["version"] = "v1".into();
        old["spec"]["subresources"] = json!({ "status": {} });
        old["spec"]["versions"] = Value::Null;
        if !preserves.is_null() {
            old["spec"]["preserveUnknownFields"] = preserves;
        }
        let (new, old) = (
            import_definitions(std::slice::from_ref(&new), Minor::LATEST, true),
            import_definitions(&[old], Minor::LATEST, true),
        );
        let texts = |imported: &rbuilder_importer::Imported| -> Vec<String> {
            imported.files.iter().map(|file| file.text.clone()).collect()
        };
        assert_eq!(texts(&old), texts(&new), "{key}");
        assert_eq!(old.diagnostics.len(), warnings, "{:?}", old.diagnostics);
    }
}

/// A struct with such a name would be a syntax error, or shadow a type used by its fields.
#[test]
fn renames_structs_of_reserved_kinds() {
    let spec = json!({
        "name": { "type": "string" },
        "list": { "type": "array", "items": { "type": "string" } },
        "map": { "type": "object", "additionalProperties": { "type": "string" } },
        "optionObject": { "type": "object", "properties": { "a": { "type": "string" } } },
    });
    for kind in [
        "Self",
        "Option",
        "Box",
        "String",
        "Vec",
        "Default",
        "Serialize",
        "BTreeMap",
    ] {
        let definition = definition(kind, &[("v1", root(spec.clone()))]);
        check(std::slice::from_ref(&definition)).unwrap_or_else(|found| panic!("{kind}: {found}"));
        let imported = import_definitions(&[definition], Minor::LATEST, true);
        let text = &imported.files[0].text;
        assert!(
            text.contains(&format!("    root = \"{kind}Object\",\n")),
            "{text}"
        );
        assert!(!text.contains(&format!("pub struct {kind}Object {{")), "{text}");
    }
    let imported = import_definitions(
        &[definition("Gadget", &[("v1", root(spec))])],
        Minor::LATEST,
        true,
    );
    assert!(!imported.files[0].text.contains("    root ="));
}

/// A type is named after the end of its path, and keeps its name when a definition is added.
#[test]
fn names_are_short_and_stable() {
    let reference = |name: &str| object(json!({ name: { "type": "string" } }));
    let one = root(json!({ "spec": object(json!({
        "backend": object(json!({ "tls": reference("a") })),
        "frontend": object(json!({ "tls": reference("b"), "podCIDRs": { "type": "array", "items": reference("c") } })),
    })) }));
    let first = definition("Gadget", &[("v1", one)]);
    let second = definition(
        "Widget",
        &[(
            "v1",
            root(json!({ "spec": object(json!({ "tls": reference("d") })) })),
        )],
    );
    let alone = import_definitions(std::slice::from_ref(&first), Minor::LATEST, true);
    let both = import_definitions(&[second, first], Minor::LATEST, true);
    let text = &alone.files[0].text;
    for name in ["Backend", "BackendTls", "Frontend", "FrontendTls", "PodCidr"] {
        assert!(
            text.contains(&format!("pub struct {name} {{")),
            "{name} in\n{text}"
        );
    }
    assert_eq!(both.files[0], alone.files[0]);
    assert_eq!(
        both.folders[1].text,
        "//! Version v1 of the example.com API group.\n\npub mod gadget;\npub mod widget;\n"
    );
}

/// A type that several files contain is in their deepest common folder, and each file re-exports
/// it.
#[test]
fn shares_types_in_common_folder() {
    let text = json!({ "type": "string" });
    let list = |item: Value| json!({ "type": "array", "items": item });
    let port = object(json!({ "name": text, "number": { "type": "integer", "format": "int32" } }));
    let backend = object(json!({ "host": text, "ports": list(port.clone()) }));
    let spec = |own: &str| {
        root(json!({ "spec": object(json!({
            "backend": backend, "ports": list(port.clone()), own: text,
            "mode": { "type": "string", "enum": ["fast", own] },
        })) }))
    };
    let other = root(json!({ "spec": object(json!({ "ports": list(port.clone()) })) }));
    let documents = [
        definition("Gadget", &[("v1", spec("a")), ("v2", other)]),
        definition("Widget", &[("v1", spec("b"))]),
    ];
    check(&documents).expect("a round trip");
    let imported = import_definitions(&documents, Minor::LATEST, true);
    let text = |path: &str| {
        let file = imported.files.iter().find(|file| file.path == path);
        file.map_or("", |file| &file.text)
    };
    for (path, lines) in [
        ("shared.rs", &["pub struct Port {"][..]),
        (
            "v1/shared.rs",
            &["use super::super::shared::Port;\n", "pub struct Backend {"],
        ),
        ("v2/gadget.rs", &["\n\npub use super::super::shared::Port;\n\n"]),
        (
            "v1/gadget.rs",
            &[
                "\n\npub use super::super::shared::Port;\npub use super::shared::Backend;\n\n",
                "pub enum Mode {",
            ],
        ),
        ("v1/widget.rs", &["pub enum Mode {"]),
    ] {
        for line in lines {
            assert!(text(path).contains(line), "{line} in {path}:\n{}", text(path));
        }
    }
    let modules: Vec<String> = imported
        .folders
        .iter()
        .map(|folder| folder.modules.join(" "))
        .collect();
    assert_eq!(modules, ["shared v1 v2", "gadget shared widget", "gadget"]);
    let alone = import_definitions(&documents, Minor::LATEST, false);
    assert!(
        alone
            .files
            .iter()
            .all(|file| !file.path.contains("shared") && !file.text.contains("super"))
    );
}

/// A module cannot contain two types with the same name, so the type used in more files is shared.
#[test]
fn shares_type_of_most_files() {
    let kind = |name: &str, key: &str| {
        let inner = object(json!({ key: { "type": "string" } }));
        definition(
            name,
            &[("v1", root(json!({ "spec": object(json!({ "tls": inner })) })))],
        )
    };
    let documents = [
        kind("A", "x"),
        kind("B", "x"),
        kind("C", "y"),
        kind("D", "y"),
        kind("E", "y"),
    ];
    check(&documents).expect("a round trip");
    let imported = import_definitions(&documents, Minor::LATEST, true);
    let owners: Vec<&str> = imported
        .files
        .iter()
        .filter(|file| file.text.contains("pub struct Tls {"))
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(owners, ["v1/a.rs", "v1/b.rs", "v1/shared.rs"]);
}

/// Generates a schema for a value whose constraints do not contradict each other.
fn value_schema() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just(json!({})),
        Just(json!({ "minLength": 1, "maxLength": 63 })),
        Just(json!({ "pattern": "^[a-z]+(\\.\"x\")?$" })),
        Just(json!({ "format": "date-time" })),
        Just(json!({ "format": "byte", "nullable": true })),
        Just(json!({ "enum": ["A", "b-c", ""] })),
        Just(json!({ "default": "it's", "example": "\\" })),
        Just(json!({ "x-kubernetes-validations": [{ "rule": "self != 'x'", "message": "m" }] })),
    ]
    .prop_map(|keys| with("string", keys));
    let number = prop_oneof![
        Just(with(
            "integer",
            json!({ "format": "int32", "minimum": -1, "maximum": 5, "exclusiveMaximum": true })
        )),
        Just(with(
            "integer",
            json!({ "format": "int64", "default": 3, "multipleOf": 3 })
        )),
        Just(with("integer", json!({}))),
        Just(with("number", json!({ "format": "double", "minimum": 0.5 }))),
        Just(with("boolean", json!({ "default": false }))),
        Just(
            json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] })
        ),
        Just(json!({ "x-kubernetes-preserve-unknown-fields": true })),
    ];
    let leaf = prop_oneof![text, number];
    leaf.prop_recursive(5, 60, 5, |inner| {
        let name = prop_oneof![
            Just("name"),
            Just("podCIDR"),
            Just("type"),
            Just("x-y"),
            Just("URL"),
            Just("snake_case"),
            Just("Self"),
            Just("0"),
        ];
        let fields = prop::collection::btree_map(name, (inner.clone(), any::<bool>()), 0..5);
        let structs = (fields, 0..5usize).prop_map(|(fields, extra)| {
            let required: Vec<&str> = fields
                .iter()
                .filter(|(_, (_, is))| *is)
                .map(|(name, _)| *name)
                .collect();
            let properties: Map<String, Value> = fields
                .iter()
                .map(|(name, (schema, _))| (name.to_string(), schema.clone()))
                .collect();
            let mut schema = with("object", json!({}));
            if !properties.is_empty() {
                schema["properties"] = properties.into();
            }
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            match extra {
                0 => schema["x-kubernetes-preserve-unknown-fields"] = true.into(),
                1 if !required.is_empty() => schema["anyOf"] = json!([{ "required": [required[0]] }]),
                2 => schema["x-kubernetes-map-type"] = "atomic".into(),
                3 => schema["maxProperties"] = 9.into(),
                _ => {}
            }
            schema
        });
        let lists = (inner.clone(), any::<bool>()).prop_map(|(items, is_atomic)| {
            let keys = if is_atomic {
                json!({ "x-kubernetes-list-type": "atomic", "maxItems": 4 })
            } else {
                json!({})
            };
            let mut schema = with("array", keys);
            schema["items"] = items;
            schema
        });
        let maps = inner.prop_map(|values| {
            let mut schema = with("object", json!({}));
            schema["additionalProperties"] = values;
            schema
        });
        prop_oneof![3 => structs, 1 => lists, 1 => maps]
    })
    .prop_flat_map(|schema| {
        let description = prop_oneof![
            3 => Just(None),
            2 => Just(Some("What it is.\nMore of it.\n\n  - a list")),
            1 => Just(Some("TODO ---")),
            1 => Just(Some(" indented \"quotes\" \\ and tabs\t")),
        ];
        description.prop_map(move |text| {
            let mut schema = schema.clone();
            if let Some(text) = text {
                schema["description"] = text.into();
            }
            schema
        })
    })
}

fn with(schema_type: &str, keys: Value) -> Value {
    let mut schema = keys;
    schema["type"] = schema_type.into();
    schema
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_schemas_round_trip(spec in value_schema(), status in value_schema(), other in value_schema()) {
        let schema = root(json!({ "spec": spec, "status": status, "other": other }));
        let (first, second) = (root(json!({ "spec": other })), schema);
        let mut definition = definition("Gadget", &[("v1", first), ("v2", second)]);
        // Without a conversion, a field that differs between versions is an error.
        definition["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": { "clientConfig": { "url": "https://a" }, "conversionReviewVersions": ["v1"] },
        });
        if let Err(found) = check(&[definition]) {
            prop_assert!(false, "{}", found);
        }
    }
}
