//! One of each mistake that only the finished schema shows, or that other cases do not make.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Marked",
    printcolumn(name = "Since", type_ = "date", json_path = ".spec.since"),
    printcolumn(name = "Made", type_ = "time", json_path = "spec.since", format = "iso"),
    printcolumn = r#"{"name": "Made"}"#,
    scale(spec_replicas_path = ".status.size", status_replicas_path = ".spec.size", label_selector_path = "selector"),
    selectable = ".metadata.name",
    selectable = ".spec.since",
    selectable = ".spec.since",
    selectable = "spec.since",
    deprecated = "two\nlines",
    validation(minimum = 1)
)]
pub struct MarkedSpec {
    pub since: String,
    #[kube(default = 1)]
    pub text: String,
    #[kube(default = [1, 2, 3], validation(max_items = 2))]
    pub long: Vec<i32>,
    #[kube(example = "many")]
    pub many: i32,
    #[kube(list_type = "map")]
    pub keyless: Vec<Entry>,
    #[kube(list_map_keys = ["name"])]
    pub typeless: Vec<Entry>,
    #[kube(list_type = "map", list_map_keys = ["name", "name"])]
    pub twice: Vec<Entry>,
    #[kube(list_type = "bag")]
    pub bag: Vec<String>,
    #[kube(map_type = "granular")]
    pub unmapped: Vec<String>,
    #[kube(validation(pattern = "(?=x)", format = "datetim", type = "txt", min_length = -1))]
    pub odd: String,
    #[kube(validation(minimum = 2.5), validation(maximum = 1))]
    pub whole: i32,
    #[kube(validation(enum = []), validation(multiple_of = 0))]
    pub empty: i32,
    #[kube(validation(unique_items))]
    pub unique: Vec<String>,
    #[kube(items(validation(max_length = 1)))]
    pub single: String,
    #[kube(values(validation(max_length = 1)))]
    pub listed: Vec<String>,
    #[kube(items(items(validation(max_length = 1))))]
    pub shallow: Vec<String>,
    #[kube(optional, required)]
    pub both: i32,
    #[kube(title = 1)]
    pub title: i32,
    #[kube(external_docs(url = "example.com", link = "x"))]
    pub docs: i32,
    #[kube(cel(message = "no rule"), cel(rule = "", reason = "Because", field_path = "x"))]
    pub cel: i32,
    #[kube(cel(rule = "self > 0", message = "two\nlines"), cel(rule = "self\n> 0"))]
    pub lines: i32,
    #[kube(schema_type = "not a type")]
    pub other: i32,
    #[kube(max_description_length = -1)]
    pub described: i32,
    pub chosen: Chosen,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Letter {
    A,
    B,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(minimum = 5))]
pub struct Bounded(pub i32);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(default = 5)]
pub struct Defaulted(pub i32);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub maybe: Option<String>,
    pub inner: Option<Bounded>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(exactly_one_of(nope, b), at_most_one_of(a), at_least_one_of(b, b), at_most_one_of("a", b), exactly_one_of(a, b))]
pub struct Chosen {
    pub a: String,
    pub b: Option<String>,
}
