//! Markers that other cases do not use: nested in each other, on types, aliases and newtypes, and where type and field
//! both say something.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Marked",
    namespaced,
    status = "MarkedStatus",
    printcolumn = r#"{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "format": "int32", "description": "How large"}"#,
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    scale = r#"{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}"#,
    validation = "self.spec.size >= 0",
    validation = Rule::new("self.metadata.name.size() <= 40")
        .message(Message::Expression("'too long: ' + self.metadata.name".into()))
        .reason(Reason::FieldValueInvalid)
        .field_path(".spec.size")
)]
#[serde(rename_all = "camelCase")]
pub struct MarkedSpec {
    #[kube(validation(exclusive_minimum, minimum = -1, exclusive_maximum, maximum = 100), default = 1)]
    pub size: i32,
    #[kube(
        validation(min_items = 1, max_items = 4),
        items(
            validation(min_items = 2, max_items = 3),
            list_type = "set",
            items(validation(min_length = 1, max_length = 9, pattern = "^[a-z]+$", enum = ["a", "b"], format = "hostname"), example = "a")
        )
    )]
    pub matrix: Vec<Vec<String>>,
    #[kube(items(validation(exclusive_minimum, minimum = 0, exclusive_maximum, maximum = 9, multiple_of = 3)))]
    pub numbers: Vec<i64>,
    #[kube(values(
        validation(min_properties = 1, max_properties = 3),
        map_type = "atomic",
        keys(validation(max_length = 5)),
        values(items(validation(type = "string", max_length = 4)), validation(max_items = 2))
    ), validation(max_properties = 2))]
    pub tree: BTreeMap<String, BTreeMap<String, Vec<serde_json::Value>>>,
    #[kube(items(validation(max_length = 5)), list_type = "set")]
    pub hosts: Hosts,
    #[kube(items(validation(max_length = 6)), validation(max_items = 3))]
    pub aliased: HostAlias,
    #[kube(items(int_or_string, validation(pattern = "^[0-9]+%$", max_length = 4)))]
    pub percents: Vec<serde_json::Value>,
    #[kube(items(preserve_unknown_fields, embedded_resource, nullable))]
    pub objects: Vec<Anything>,
    #[kube(validation(minimum = 5, maximum = 300), title = "The field's", example = 7)]
    pub bounded: Bounded,
    #[kube(validation(enum = ["b", "c"]), default = "c")]
    pub letter: Letter,
    pub typed: Letter,
    #[kube(default = [{ "name": "a", "ports": [1, 2] }], example = [{ "name": "b", "ports": [] }])]
    pub list: Vec<Entry>,
    #[kube(default = { "a": { "name": "x", "ports": [] } }, example = {})]
    pub map: BTreeMap<String, Entry>,
    #[kube(default = { "name": "n", "ports": [3] }, external_docs(url = "https://example.com/entry"))]
    pub entry: Entry,
    #[kube(immutable)]
    pub r#in: Option<String>,
    #[kube(immutable)]
    #[serde(rename = "with-dash")]
    pub dashed: Option<i32>,
    #[kube(immutable)]
    pub fixed: i32,
    pub choice: Choice,
    #[kube(schemaless, validation(type = "string", max_length = 9), title = "Free")]
    pub free: Anything,
    #[kube(schema_type = "String", validation(format = "uuid"))]
    pub id: Opaque,
    /// TODO: a description that a doc comment cannot have.
    #[kube(description = "TODO: a description that a doc comment cannot have.", items(description = "One of them."))]
    pub described: Vec<Alternatives>,
    #[kube(items(schema = { "type": "integer" }))]
    pub unformatted: Vec<i64>,
    #[kube(description = "")]
    pub silent: Alternatives,
}

/// Alternatives.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(
    all_of = [{ "properties": { "left": { "maxLength": 9 } } }],
    any_of = [{ "required": ["left"] }, { "required": ["right"] }],
    one_of = [{ "required": ["left"] }, { "required": ["right"] }],
    not = { "required": ["left", "right"] }
))]
pub struct Alternatives {
    pub left: Option<String>,
    pub right: Option<String>,
}

/// A kind whose definition says more than kube's keys can.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Optional")]
#[crd(
    optional_spec,
    status_subresource = true,
    root_schema = { "properties": { "metadata": { "type": "object", "properties": { "name": { "type": "string", "maxLength": 20 } } } }, "required": ["metadata"] }
)]
pub struct OptionalSpec {
    pub size: Option<i32>,
}

/// A list by another name.
pub type HostAlias = Vec<String>;

/// A list of its own type.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(max_items = 8, min_items = 1), items(validation(min_length = 2, max_length = 10)))]
pub struct Hosts(pub Vec<String>);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(minimum = 1, maximum = 200), title = "The type's", example = 6, external_docs(url = "https://example.com/bounded"))]
pub struct Bounded(pub i32);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(default = "b")]
pub enum Letter {
    #[serde(rename = "a")]
    A,
    #[serde(rename = "b")]
    B,
    #[serde(rename = "c")]
    C,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(struct_type = "atomic")]
pub struct Entry {
    pub name: String,
    pub ports: Vec<u16>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(preserve_unknown_fields)]
pub struct Anything {}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[kube(
    exactly_one_of(first_one, second),
    exactly_one_of(r#if, namespace),
    at_most_one_of(first_one, namespace),
    at_least_one_of(second, first_one),
    validation = "true"
)]
pub struct Choice {
    pub first_one: Option<String>,
    pub second: Option<String>,
    pub namespace: Option<String>,
    pub r#if: Option<String>,
}

pub struct Opaque;

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(allow(RB0312, reason = "the name of another API"))]
pub struct MarkedStatus {
    pub last_seen: Option<String>,
    pub size: i32,
    pub selector: String,
}
