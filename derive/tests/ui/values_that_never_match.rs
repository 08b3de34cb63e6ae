use rbuilder_derive::CrdSchema;
use std::collections::BTreeMap;

#[derive(CrdSchema)]
struct ServerSpec {
    #[kube(validation(format = "ipv4"), default = "1.2.3")]
    address: String,
    #[kube(validation(pattern = "^a$"), default = "b")]
    letter: String,
    #[kube(list_type = "set", default = ["a", "a"])]
    names: Vec<String>,
    #[kube(validation(maximum = 3), default = 5)]
    number: i32,
    #[kube(validation(enum = [1, 10], maximum = 5))]
    choice: Option<i32>,
    #[kube(validation(enum = [1, 1.0]))]
    twice: f64,
    #[kube(validation(enum = ["a", null]))]
    null: String,
    #[kube(validation(minimum = 5, maximum = 9, multiple_of = 10))]
    tens: i64,
    #[kube(list_type = "set", validation(min_items = 3))]
    flags: Vec<bool>,
    #[kube(validation(format = "date-time"))]
    port: i32,
    #[kube(items(validation(format = "int32")))]
    lines: Vec<String>,
    #[kube(keys(validation(max_length = 2)), default = { "long": "x" })]
    labels: BTreeMap<String, String>,
    #[kube(schema = { "type": "string", "minimum": 3 })]
    raw: String,
    #[kube(schema = { "type": "string", "pattern": "a**" })]
    stars: String,
    #[kube(schema = { "type": "array", "items": { "type": "string" }, "minItems": 3, "maxItems": 2 })]
    few: Vec<String>,
    #[kube(schema = { "type": "string", "format": "ipv4", "default": "host" })]
    host: String,
    #[kube(schema = { "type": "object", "properties": { "a": { "type": "string" } }, "oneOf": [{ "required": ["a"], "type": "object" }] })]
    either: String,
    #[kube(schema = { "type": "string", "enum": [] })]
    none: String,
}

fn main() {}
