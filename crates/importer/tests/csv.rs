//! Checks that `#[csv(…)]` is added to types, and that the generator reads the same markers from
//! them.

#[allow(dead_code)] // this one needs the manifest alone
mod support;

use rbuilder_catalogue::Catalogue;
use rbuilder_generator::{
    CsvKind, CsvMarkers, CsvResource, Descriptor, Diagnostic, Options, SourceSet, generate_each,
};
use rbuilder_importer::{ImportedVersion, Minor, import_kind};
use serde_json::{Value, json};
use support::CARGO_TOML;

fn definition() -> Value {
    let reference = json!({ "type": "object", "properties": {
        "name": { "type": "string" }, "file": { "type": "string" },
    } });
    let selector = Catalogue::new(Minor::LATEST).schema("k8s_openapi::api::core::v1::SecretKeySelector");
    // `null` is not among the `enum` values, so no markers result in this schema.
    let hidden = json!({
        "type": "object", "nullable": true, "enum": [{ "inner": "a" }], "properties": { "inner": { "type": "string" } },
    });
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "size": { "type": "integer", "format": "int32" },
            "first": reference.clone(),
            "second": reference.clone(),
            "servers": { "type": "array", "items": { "type": "object", "properties": {
                "memory": { "type": "string" },
                "disks": { "type": "array", "items": { "type": "array", "items": reference } },
            } } },
            "password": selector,
            "hidden": hidden,
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        } },
        "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.shop.example.com" },
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced", "names": { "kind": "Gadget", "plural": "gadgets" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

fn named(name: &str) -> Descriptor {
    Descriptor {
        display_name: Some(name.to_owned()),
        ..Descriptor::default()
    }
}

fn import(spec: &[(&str, Descriptor)], status: &[(&str, Descriptor)], of_kind: CsvKind) -> ImportedVersion {
    import_from(&definition(), spec, status, of_kind)
}

fn import_from(
    definition: &Value,
    spec: &[(&str, Descriptor)],
    status: &[(&str, Descriptor)],
    of_kind: CsvKind,
) -> ImportedVersion {
    let owned = |list: &[(&str, Descriptor)]| {
        let list = list.iter();
        list.map(|(path, descriptor)| ((*path).to_owned(), descriptor.clone()))
            .collect()
    };
    let markers = CsvMarkers {
        group: "shop.example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Gadget".to_owned(),
        of_kind,
        spec: owned(spec),
        status: owned(status),
    };
    let kind = import_kind(definition, Minor::LATEST, &[markers]).expect("a kind");
    kind.versions.into_iter().next().expect("a version")
}

/// Returns the markers that the generator reads from the source of a version.
fn found(version: &ImportedVersion) -> CsvMarkers {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    sources.insert("src/lib.rs", version.text.as_str());
    let options = Options {
        csv: true,
        ..Options::default()
    };
    let made = generate_each(&sources, &options, &mut |_| {});
    assert!(
        !made.diagnostics.iter().any(Diagnostic::is_error),
        "{:#?}\n{}",
        made.diagnostics,
        version.text
    );
    made.csv.into_iter().next().expect("markers")
}

#[test]
fn places_descriptors_on_fields() {
    let hints = Descriptor {
        description: Some("A \"quoted\" text.".to_owned()),
        x_descriptors: vec!["urn:alm:descriptor:com.tectonic.ui:podCount".to_owned()],
        order: Some(2),
        ..Descriptor::default()
    };
    let of_kind = CsvKind {
        display_name: Some("Gadgets".to_owned()),
        description: Some("Gadgets of a shop.".to_owned()),
        resources: ["Deployment", "Service"]
            .map(|kind| CsvResource {
                kind: kind.to_owned(),
                version: "v1".to_owned(),
                name: String::new(),
            })
            .to_vec(),
        ..CsvKind::default()
    };
    let spec = [
        ("servers", named("Servers")),
        ("servers[0].disks", named("Disks")),
        ("servers[0].memory", Descriptor::default()),
        ("size", hints),
    ];
    let status = [("phase", named("Phase"))];
    let version = import(&spec, &status, of_kind.clone());
    assert!(version.unplaced.is_empty(), "{:?}", version.unplaced);
    let found = found(&version);
    assert_eq!(found.of_kind, of_kind);
    let list = |list: &[(String, Descriptor)]| {
        list.iter()
            .map(|(path, one)| (path.clone(), one.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&found.spec), spec.map(|(path, one)| (path.to_owned(), one)));
    assert_eq!(
        list(&found.status),
        status.map(|(path, one)| (path.to_owned(), one))
    );
}

#[test]
fn reports_descriptors_without_field() {
    let check = |spec: &[(&str, Descriptor)], expected: &[&str]| {
        let version = import(spec, &[], CsvKind::default());
        let unplaced: Vec<&str> = version.unplaced.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(unplaced, expected, "{}", version.text);
        let placed = spec.len() - unplaced.len();
        assert_eq!(version.text.contains("#[csv("), placed > 0, "{}", version.text);
    };
    // The type has a single marker for all places that use it.
    check(
        &[("first.name", named("Name")), ("second.name", named("Name"))],
        &[],
    );
    check(&[("servers[0].disks[0][0].name", named("Name"))], &[]);
    check(
        &[("first.name", named("Name")), ("second.name", named("Other"))],
        &["first.name", "second.name"],
    );
    // A Kubernetes type, a schema that is written out, a map, and nonexistent paths.
    check(
        &[("password.key", named("Key")), ("size", named("Size"))],
        &["password.key"],
    );
    check(
        &[("hidden.inner", named("Inner")), ("hidden", named("Hidden"))],
        &["hidden.inner"],
    );
    check(
        &[
            ("first[0].name", named("Name")),
            ("gone", named("Gone")),
            ("labels.app", named("App")),
            ("servers.memory", named("Memory")),
            ("servers[0]", named("Server")),
            ("", named("Nothing")),
        ],
        &[
            "",
            "first[0].name",
            "gone",
            "labels.app",
            "servers.memory",
            "servers[0]",
        ],
    );
}

/// If the object contains another field, `spec` is a field of the struct that defines the kind.
#[test]
fn places_descriptors_on_spec_without_struct() {
    let mut definition = definition();
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties";
    definition.pointer_mut(fields).expect("fields")["other"] = json!({ "type": "string" });
    let spec = [
        ("servers[0].memory", named("Memory")),
        ("hidden.inner", named("Inner")),
    ];
    let version = import_from(&definition, &spec, &[], CsvKind::default());
    assert!(version.text.contains("no_spec"), "{}", version.text);
    let unplaced: Vec<&str> = version.unplaced.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(unplaced, ["hidden.inner"]);
    let found = found(&version);
    assert_eq!(found.spec, [("servers[0].memory".to_owned(), named("Memory"))]);
}
