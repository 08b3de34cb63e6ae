//! Tests of the embedded catalogue.

use rbuilder_catalogue::{Catalogue, Minor};
use rbuilder_schema::{ListType, MapType};
use serde_json::json;

#[test]
fn every_type_of_every_minor_has_a_schema() {
    for minor in Minor::all() {
        let catalogue = Catalogue::new(minor);
        let paths = catalogue.paths();
        assert!(paths.len() > 600, "Kubernetes {minor} has {} types", paths.len());
        for path in paths {
            assert!(catalogue.contains(&path), "{path}");
            assert!(catalogue.schema(&path).is_some(), "{path} of {minor}");
        }
    }
}

#[test]
fn schemas_keep_topology_defaults_and_constraints() {
    let catalogue = Catalogue::new(Minor::new(36).expect("a minor"));
    let schema = |path: &str| catalogue.schema(path).expect("a type");

    let pod = schema("k8s_openapi::api::core::v1::PodSpec");
    let containers = &pod.properties["containers"];
    assert_eq!(containers.list_type, Some(ListType::Map));
    assert_eq!(containers.list_map_keys, ["name"]);
    assert!(pod.required.contains("containers"));
    let container = containers.items.as_ref().expect("items");
    let port = container.properties["ports"].items.as_ref().expect("items");
    assert_eq!(port.properties["protocol"].default, Some(json!("TCP")));
    assert_eq!(port.properties["containerPort"].format.as_deref(), Some("int32"));
    assert_eq!(
        container.properties["name"].default, None,
        "a zero that Go writes is not a default"
    );

    let reference = schema("k8s_openapi::api::core::v1::LocalObjectReference");
    assert_eq!(reference.map_type, Some(MapType::Atomic));
    assert_eq!(reference.properties["name"].default, Some(json!("")));
    assert!(reference.required.is_empty());

    let template = schema("k8s_openapi::api::core::v1::PodTemplateSpec");
    assert!(
        template.properties["metadata"].properties.is_empty(),
        "as controller-gen has it"
    );
    let requests = &schema("k8s_openapi::api::core::v1::ResourceRequirements").properties["requests"];
    assert!(
        requests
            .additional_properties
            .as_ref()
            .is_some_and(|value| value.int_or_string)
    );

    let condition = schema("k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition");
    assert_eq!(condition.properties["type"].max_length, Some(316));
    assert_eq!(condition.properties["status"].enumeration.len(), 3);
    assert!(catalogue.schema("k8s_openapi::api::core::v1::Pood").is_none());
}

#[test]
fn damaged_archive_is_empty() {
    for bytes in [&b""[..], b"rbk8s", b"rbk8s\0\0\x01\x05!\"#$%\xff\xff\0\0"] {
        let catalogue = Catalogue::of(bytes, Minor::LATEST);
        assert!(!catalogue.contains("k8s_openapi::api::core::v1::Pod"));
        assert!(catalogue.paths().is_empty());
    }
}
