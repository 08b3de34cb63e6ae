//! The cases. Most change the schema of the field `spec.a`.

use rbuilder_compatibility::Level::{self, Breaking, Compatible, Risky};
use serde_json::{Value, json};

/// What the witness shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    Refused,
    ReadsDifferently,
}

use Shown::{Nothing, ReadsDifferently, Refused};

/// Two states of a manifest.
pub(crate) struct Case {
    pub name: String,
    pub rule: &'static str,
    pub old: Value,
    pub new: Value,
    pub level: Level,
    pub affects: &'static [&'static str],
    pub shown: Shown,
    /// Other rules that also apply.
    pub also: &'static [&'static str],
}

const STORED: &str = "stored objects";
const WRITERS: &str = "clients that write";
const READERS: &str = "clients that read";
const OPERATOR: &str = "the operator";
const INSTALLER: &str = "the person who installs";

/// A CRD with a single version and the given schema.
pub(crate) fn crd(schema: &Value) -> Value {
    with_versions(json!([version("v1", schema, true)]))
}

fn version(name: &str, schema: &Value, is_stored: bool) -> Value {
    json!({ "name": name, "served": true, "storage": is_stored, "schema": { "openAPIV3Schema": schema } })
}

fn with_versions(versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "cups.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": versions,
            "names": { "kind": "Cup", "plural": "cups", "singular": "cup", "listKind": "CupList", "shortNames": ["cu"] },
        },
    })
}

/// The schema of an object with the given schema for `spec`.
pub(crate) fn object(spec: &Value) -> Value {
    json!({ "type": "object", "properties": { "spec": spec } })
}

fn field(schema: &Value) -> Value {
    json!({ "type": "object", "properties": { "a": schema } })
}

/// Returns a CRD in which the value at a pointer is replaced, or removed if it is `null`.
fn changed(pointer: &str, value: Value) -> Value {
    replaced(plain(), pointer, value)
}

fn replaced(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = object
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("no {pointer}"));
    match (parent, value) {
        (Value::Object(fields), Value::Null) => drop(fields.remove(name)),
        (parent, value) => parent[name] = value,
    }
    object
}

fn plain() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": { "type": "object", "properties": { "a": { "type": "integer" } } },
            "status": { "type": "object", "properties": { "ready": { "type": "integer" } } },
        },
    });
    let mut version = version("v1", &schema, true);
    version["subresources"] = json!({ "status": {}, "scale": { "specReplicasPath": ".spec.a", "statusReplicasPath": ".status.ready" } });
    version["additionalPrinterColumns"] = json!([{ "name": "A", "type": "integer", "jsonPath": ".spec.a" }]);
    version["selectableFields"] = json!([{ "jsonPath": ".spec.a" }]);
    with_versions(json!([version]))
}

/// The cases for fields: rule, old and new schema of `spec.a`, level, affected parties, effect
/// shown.
type Row = (&'static str, Value, Value, Level, &'static [&'static str], Shown);

const EVERYONE: &[&str] = &[STORED, WRITERS, READERS, OPERATOR];
/// A stored object with an invalid value can be updated as long as the value is not changed.
const NEW: &[&str] = &[WRITERS];
const READ: &[&str] = &[READERS];
const NOBODY: &[&str] = &[];

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let integer = || json!({ "type": "integer" });
    let string = || json!({ "type": "string" });
    let with = |mut schema: Value, key: &str, value: Value| { schema[key] = value; schema };
    let list = |list_type: &str| json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": list_type });
    let keyed = |keys: Value| json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        "items": { "type": "object", "required": ["k", "l"], "properties": { "k": { "type": "string" }, "l": { "type": "string" } } },
    });
    let structure = |fields: Value| json!({ "type": "object", "properties": fields });
    let map = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let rules = |schema: Value, rules: Value| with(schema, "x-kubernetes-validations", rules);
    let embedded = || json!({ "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true });
    let open = || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let parts = || structure(json!({ "x": string(), "y": string() }));
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let kinds = || json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } });
    let variant = |more: Value| {
        let fields = json!({ "t": { "type": "string", "enum": ["a"] }, "x": string() });
        rules(with(structure(fields), "required", json!(["t"])), more)
    };
    // Two rules that only certain constants satisfy together.
    let constants = |more: Value| {
        let mut schema = structure(json!({ "x": string(), "y": string(), "size": integer() }));
        schema["required"] = json!(["x", "y", "size"]);
        let mut all = vec![json!({ "rule": "self.x == 'kings-cup'" }), json!({ "rule": "self.y in ['Tall', 'Small']" })];
        all.extend(more.as_array().cloned().unwrap_or_default());
        rules(schema, all.into())
    };
    let one_of = |names: &[&str]| with(parts(), "oneOf", names.iter().map(|name| json!({ "required": [name] })).collect());
    vec![
        ("type-changed", integer(), string(), Breaking, &[WRITERS, READERS], Refused),
        ("type-changed", json!({ "x-kubernetes-int-or-string": true }), integer(), Breaking, &[WRITERS, READERS], Refused),
        ("type-changed", json!({ "x-kubernetes-preserve-unknown-fields": true }), structure(json!({})), Breaking, &[WRITERS, READERS], Refused),
        ("type-widened", integer(), json!({ "type": "number" }), Risky, READ, Nothing),
        ("type-widened", string(), json!({ "x-kubernetes-int-or-string": true }), Risky, READ, Nothing),
        ("null-dropped", with(integer(), "nullable", json!(true)), integer(), Breaking, &[STORED, READERS], ReadsDifferently),
        ("nullable-removed", json!({ "type": "array", "items": { "type": "integer", "nullable": true } }), json!({ "type": "array", "items": integer() }), Breaking, NEW, Refused),
        ("nullable-added", integer(), with(integer(), "nullable", json!(true)), Risky, READ, Nothing),
        ("description-changed", with(integer(), "description", json!("Old.")), with(integer(), "description", json!("New.")), Compatible, NOBODY, Nothing),
        ("enum-added", string(), with(string(), "enum", json!(["x", "y"])), Breaking, NEW, Refused),
        ("enum-value-removed", with(string(), "enum", json!(["x", "y"])), with(string(), "enum", json!(["x"])), Breaking, NEW, Refused),
        ("enum-value-added", with(string(), "enum", json!(["x"])), with(string(), "enum", json!(["x", "y"])), Risky, READ, Nothing),
        ("enum-removed", with(string(), "enum", json!(["x"])), string(), Risky, READ, Nothing),
        ("maximum-added", integer(), with(integer(), "maximum", json!(900)), Breaking, NEW, Refused),
        ("maximum-lowered", with(integer(), "maximum", json!(9)), with(integer(), "maximum", json!(7)), Breaking, NEW, Refused),
        ("maximum-lowered", with(integer(), "maximum", json!(9)), json!({ "type": "integer", "maximum": 9, "exclusiveMaximum": true }), Breaking, NEW, Refused),
        ("maximum-lowered", json!({ "type": "integer", "maximum": 600, "exclusiveMaximum": true }), with(integer(), "maximum", json!(598.5)), Breaking, NEW, Refused),
        ("maximum-raised", with(integer(), "maximum", json!(7)), with(integer(), "maximum", json!(9)), Compatible, NOBODY, Nothing),
        ("maximum-removed", with(integer(), "maximum", json!(7)), integer(), Compatible, NOBODY, Nothing),
        ("minimum-added", integer(), with(integer(), "minimum", json!(-7)), Breaking, NEW, Refused),
        ("minimum-raised", with(integer(), "minimum", json!(10)), with(integer(), "minimum", json!(11)), Breaking, NEW, Refused),
        ("minimum-lowered", with(integer(), "minimum", json!(10)), with(integer(), "minimum", json!(9)), Compatible, NOBODY, Nothing),
        ("minimum-removed", with(integer(), "minimum", json!(10)), integer(), Compatible, NOBODY, Nothing),
        ("maximum-added", string(), with(string(), "maxLength", json!(63)), Breaking, NEW, Refused),
        ("maximum-lowered", with(string(), "maxLength", json!(63)), with(string(), "maxLength", json!(40)), Breaking, NEW, Refused),
        ("minimum-added", string(), with(string(), "minLength", json!(1)), Breaking, NEW, Refused),
        ("minimum-raised", with(string(), "minLength", json!(50)), with(string(), "minLength", json!(60)), Breaking, NEW, Refused),
        ("maximum-added", list("atomic"), with(list("atomic"), "maxItems", json!(16)), Breaking, NEW, Refused),
        ("maximum-lowered", with(list("set"), "maxItems", json!(16)), with(list("set"), "maxItems", json!(4)), Breaking, NEW, Refused),
        ("minimum-added", list("set"), with(list("set"), "minItems", json!(3)), Breaking, NEW, Refused),
        ("maximum-added", map(), with(map(), "maxProperties", json!(5)), Breaking, NEW, Refused),
        ("maximum-lowered", with(map(), "maxProperties", json!(50)), with(map(), "maxProperties", json!(5)), Breaking, NEW, Refused),
        ("minimum-added", map(), with(map(), "minProperties", json!(1)), Breaking, NEW, Refused),
        ("multiple-of-added", integer(), with(integer(), "multipleOf", json!(5)), Breaking, NEW, Refused),
        ("multiple-of-changed", with(integer(), "multipleOf", json!(5)), with(integer(), "multipleOf", json!(10)), Breaking, NEW, Refused),
        ("multiple-of-removed", with(integer(), "multipleOf", json!(5)), integer(), Compatible, NOBODY, Nothing),
        ("pattern-added", string(), with(string(), "pattern", json!("^[a-z]+$")), Breaking, NEW, Refused),
        ("pattern-changed", with(string(), "pattern", json!("^[a-z0-9]{3,9}$")), with(string(), "pattern", json!("^[a-z]{3,9}$")), Breaking, NEW, Refused),
        ("pattern-changed", with(string(), "pattern", json!("^[a-z]{3}$")), with(string(), "pattern", json!("^[a-z]{2,4}$")), Risky, NEW, Nothing),
        ("pattern-removed", with(string(), "pattern", json!("^a$")), string(), Compatible, NOBODY, Nothing),
        ("format-added", string(), with(string(), "format", json!("date-time")), Breaking, NEW, Refused),
        ("format-changed", with(string(), "format", json!("ipv4")), with(string(), "format", json!("ipv6")), Breaking, &[WRITERS, READERS], Refused),
        ("format-removed", with(string(), "format", json!("ipv4")), string(), Compatible, NOBODY, Nothing),
        ("key-ignored", integer(), with(integer(), "minLength", json!(3)), Compatible, NOBODY, Nothing),
        ("key-ignored", with(integer(), "format", json!("email")), integer(), Compatible, NOBODY, Nothing),
        ("format-ignored", string(), with(string(), "format", json!("wish")), Compatible, NOBODY, Nothing),
        ("alternatives-added", parts(), one_of(&["x", "y"]), Breaking, NEW, Refused),
        ("alternatives-changed", one_of(&["x", "y"]), one_of(&["x"]), Breaking, NEW, Refused),
        ("alternatives-removed", one_of(&["x", "y"]), parts(), Compatible, NOBODY, Nothing),
        ("default-added", integer(), with(integer(), "default", json!(3)), Risky, &[STORED, READERS, OPERATOR], ReadsDifferently),
        ("default-changed", with(integer(), "default", json!(3)), with(integer(), "default", json!(4)), Risky, &[STORED, READERS, OPERATOR], ReadsDifferently),
        ("default-removed", with(integer(), "default", json!(3)), integer(), Risky, &[STORED, READERS, OPERATOR], ReadsDifferently),
        ("preserve-unknown-fields-removed", open(), structure(json!({})), Breaking, &[STORED, READERS], ReadsDifferently),
        ("preserve-unknown-fields-added", structure(json!({})), open(), Compatible, NOBODY, Nothing),
        ("map-closed", map(), structure(json!({})), Breaking, &[STORED, WRITERS, READERS], ReadsDifferently),
        ("map-opened", json!({ "type": "object" }), map(), Compatible, NOBODY, Nothing),
        ("embedded-resource-added", open(), embedded(), Breaking, &[STORED, WRITERS, OPERATOR], Refused),
        ("embedded-resource-removed", json!({ "type": "object", "x-kubernetes-embedded-resource": true }), json!({ "type": "object" }), Breaking, &[STORED, READERS], ReadsDifferently),
        ("list-type-changed", list("atomic"), list("set"), Breaking, &[WRITERS, OPERATOR], Refused),
        ("list-type-changed", list("set"), list("atomic"), Risky, &[WRITERS, OPERATOR], Nothing),
        ("list-map-keys-changed", keyed(json!(["k", "l"])), keyed(json!(["k"])), Breaking, &[WRITERS, OPERATOR], Refused),
        ("map-type-changed", map(), with(map(), "x-kubernetes-map-type", json!("atomic")), Risky, &[WRITERS, OPERATOR], Nothing),
        ("rule-added", string(), rules(string(), json!([{ "rule": "self != 'off'" }])), Breaking, NEW, Refused),
        ("rule-added", integer(), rules(integer(), json!([{ "rule": "self < 5000", "message": "too large" }])), Breaking, NEW, Refused),
        ("rule-added", integer(), rules(integer(), json!([{ "rule": "self >= oldSelf", "message": "does not shrink" }])), Breaking, NEW, Refused),
        ("rule-added", parts(), rules(parts(), json!([{ "rule": "!has(self.x) || has(self.y)", "message": "x needs y" }])), Breaking, NEW, Refused),
        ("rule-added", with(integer(), "maximum", json!(3)), rules(with(integer(), "maximum", json!(3)), json!([{ "rule": "self < 4" }])), Risky, NEW, Nothing),
        ("rule-changed", rules(integer(), json!([{ "rule": "self < 50", "message": "too large" }])), rules(integer(), json!([{ "rule": "self < 40", "message": "too large" }])), Breaking, NEW, Refused),
        ("rule-added", structure(json!({ "x": string() })), rules(parts(), json!([{ "rule": "!has(self.y) || self.y == self.x" }])), Compatible, NOBODY, Nothing),
        ("rule-added", structure(json!({ "x": string() })), rules(structure(json!({ "x": string(), "y": { "type": "string", "default": "a" } })), json!([{ "rule": "!has(self.y) || self.y != 'a'" }])), Breaking, NEW, Refused),
        ("rule-added", variant(json!([])), variant(json!([{ "rule": "self.t == 'b' ? !has(self.x) : true" }])), Compatible, NOBODY, Nothing),
        ("rule-added", variant(json!([])), variant(json!([{ "rule": "self.t in ['a', 'b'] ? !has(self.x) : true" }])), Breaking, NEW, Refused),
        ("rule-added", rules(parts(), json!([{ "rule": "has(self.x)" }])), rules(parts(), json!([{ "rule": "has(self.x) || has(self.y)" }])), Compatible, NOBODY, Nothing),
        ("rule-added", rules(parts(), json!([{ "rule": "has(self.x) || has(self.y)" }])), rules(parts(), json!([{ "rule": "has(self.x)" }])), Breaking, NEW, Refused),
        ("rule-added", rules(texts(), json!([{ "rule": "self.all(x, x in ['a', 'b'])" }])), rules(texts(), json!([{ "rule": "self.all(x, x == 'a' || x == 'b' || x == 'c')" }])), Compatible, NOBODY, Nothing),
        ("maximum-added", with(kinds(), "x-kubernetes-list-type", json!("set")), with(with(kinds(), "x-kubernetes-list-type", json!("set")), "maxItems", json!(2)), Compatible, NOBODY, Nothing),
        ("maximum-added", kinds(), with(kinds(), "maxItems", json!(2)), Breaking, NEW, Refused),
        ("minimum-added", with(string(), "pattern", json!("^[0-9]+-[0-9]+$")), with(with(string(), "pattern", json!("^[0-9]+-[0-9]+$")), "minLength", json!(3)), Compatible, NOBODY, Nothing),
        ("minimum-added", with(string(), "pattern", json!("^[0-9]+-[0-9]*$")), with(with(string(), "pattern", json!("^[0-9]+-[0-9]*$")), "minLength", json!(3)), Breaking, NEW, Refused),
        ("rule-added", constants(json!([])), constants(json!([{ "rule": "self.x != 'a'" }])), Compatible, NOBODY, Nothing),
        ("rule-added", constants(json!([])), constants(json!([{ "rule": "self.size > 3" }])), Breaking, NEW, Refused),
        ("maximum-lowered", with(with(string(), "maxLength", json!(63)), "enum", json!(["aa", "b1"])), with(with(string(), "maxLength", json!(60)), "enum", json!(["aa", "b1"])), Compatible, NOBODY, Nothing),
        ("minimum-added", with(string(), "enum", json!(["aa", "b"])), with(with(string(), "minLength", json!(2)), "enum", json!(["aa", "b"])), Breaking, NEW, Refused),
        ("format-added", json!({ "type": "integer", "minimum": 0, "maximum": 9 }), json!({ "type": "integer", "minimum": 0, "maximum": 9, "format": "int32" }), Compatible, NOBODY, Nothing),
        ("format-added", json!({ "type": "integer", "minimum": 0 }), json!({ "type": "integer", "minimum": 0, "format": "int32" }), Breaking, NEW, Refused),
        ("rule-removed", rules(integer(), json!([{ "rule": "self < 50" }])), integer(), Compatible, NOBODY, Nothing),
        // Bounds that the other keywords make ineffective.
        ("maximum-lowered", json!({ "type": "integer", "multipleOf": 5, "maximum": 12 }), json!({ "type": "integer", "multipleOf": 5, "maximum": 10 }), Compatible, NOBODY, Nothing),
        ("maximum-lowered", json!({ "type": "integer", "multipleOf": 5, "maximum": 12 }), json!({ "type": "integer", "multipleOf": 5, "maximum": 9 }), Breaking, NEW, Refused),
        ("minimum-raised", json!({ "type": "integer", "multipleOf": 4, "minimum": -3 }), json!({ "type": "integer", "multipleOf": 4, "minimum": -1, "exclusiveMinimum": true }), Compatible, NOBODY, Nothing),
        ("maximum-added", json!({ "type": "integer", "format": "int32" }), json!({ "type": "integer", "format": "int32", "maximum": i32::MAX }), Compatible, NOBODY, Nothing),
        ("maximum-added", json!({ "type": "integer", "format": "int32" }), json!({ "type": "integer", "format": "int32", "maximum": i32::MAX - 1 }), Breaking, NEW, Refused),
        ("maximum-added", json!({ "type": "integer", "format": "int64" }), json!({ "type": "integer", "format": "int64", "maximum": i32::MAX }), Breaking, NEW, Refused),
        // Enumerations of all values there are.
        ("enum-added", json!({ "type": "integer", "minimum": 1, "maximum": 3 }), json!({ "type": "integer", "minimum": 1, "maximum": 3, "enum": [3, 2, 1] }), Compatible, NOBODY, Nothing),
        ("enum-added", json!({ "type": "integer", "minimum": 1, "maximum": 3 }), json!({ "type": "integer", "minimum": 1, "maximum": 3, "enum": [1, 3] }), Breaking, NEW, Refused),
        ("enum-added", json!({ "type": "boolean" }), json!({ "type": "boolean", "enum": [true, false] }), Compatible, NOBODY, Nothing),
        ("enum-added", json!({ "type": "boolean" }), json!({ "type": "boolean", "enum": [true] }), Breaking, NEW, Refused),
        ("enum-added", json!({ "type": "boolean", "nullable": true }), json!({ "type": "boolean", "nullable": true, "enum": [true, false] }), Breaking, NEW, Refused),
        ("multiple-of-added", json!({ "type": "integer", "minimum": 4, "maximum": 4 }), json!({ "type": "integer", "minimum": 4, "maximum": 4, "multipleOf": 2 }), Compatible, NOBODY, Nothing),
        ("enum-value-removed", json!({ "type": "string", "maxLength": 3, "enum": ["x", "long"] }), json!({ "type": "string", "maxLength": 3, "enum": ["x"] }), Compatible, NOBODY, Nothing),
        ("maximum-lowered", json!({ "type": "string", "maxLength": 3, "enum": ["x", "long"] }), json!({ "type": "string", "maxLength": 2, "enum": ["x", "long"] }), Compatible, NOBODY, Nothing),
        // Values that only a part of the schema mentions.
        ("alternatives-added", string(), with(string(), "not", json!({ "enum": ["bad"] })), Breaking, NEW, Refused),
        ("alternatives-added", string(), with(string(), "not", json!({ "pattern": "^bad" })), Breaking, NEW, Refused),
        ("alternatives-added", string(), with(string(), "not", json!({ "anyOf": [{ "minLength": 70 }, { "enum": ["bad"] }] })), Breaking, NEW, Refused),
        ("alternatives-added", integer(), with(integer(), "not", json!({ "enum": [1234] })), Breaking, NEW, Refused),
        ("alternatives-added", integer(), with(integer(), "not", json!({ "minimum": 1234, "maximum": 1235 })), Breaking, NEW, Refused),
        ("alternatives-added", parts(), with(parts(), "not", json!({ "properties": { "x": { "enum": ["bad"] } }, "required": ["x"] })), Breaking, NEW, Refused),
        ("rule-message-changed", rules(integer(), json!([{ "rule": "self < 50", "message": "a" }])), rules(integer(), json!([{ "rule": "self < 50", "message": "b" }])), Compatible, NOBODY, Nothing),
    ]
}

/// The cases of `spec`.
#[rustfmt::skip]
fn spec_rows() -> Vec<Row> {
    let fields = |fields: Value, required: Value| json!({ "type": "object", "properties": fields, "required": required });
    let integer = || json!({ "type": "integer" });
    // One of many: random objects contain several, and the simplest object contains the first.
    let union = |last: Value| {
        let others = ('a'..='x').map(|name| (name.to_string(), integer()));
        let fields: serde_json::Map<String, Value> = others.chain([("z".to_owned(), last)]).collect();
        json!({ "type": "object", "properties": fields, "minProperties": 1, "maxProperties": 1 })
    };
    let string = || json!({ "type": "string" });
    let names = || json!({ "type": "array", "items": string(), "default": [] });
    let auto = || fields(json!({ "min": integer() }), json!([]));
    let preset = |default: Value| match default.is_string() {
        true => json!({ "type": "string", "default": default }),
        false => json!({ "type": "integer", "default": default }),
    };
    let ruled = |rule: &str, a: Value, b: Value| json!({
        "type": "object", "properties": { "a": a, "b": b }, "x-kubernetes-validations": [{ "rule": rule }],
    });
    let outer = |inner: Value| json!({
        "type": "object", "properties": { "inner": inner, "mode": string() },
        "x-kubernetes-validations": [{ "rule": "!has(self.inner) || !has(self.inner.a) || !has(self.mode) || self.mode != 'plain'" }],
    });
    let bounded = |key: &str, a: Value| json!({ "type": "object", "properties": { "a": a, "b": string() }, key: 1 });
    let (at_most_one, at_least_one) = (|a: Value| bounded("maxProperties", a), |a: Value| bounded("minProperties", a));
    vec![
        ("maximum-added", union(integer()), union(json!({ "type": "integer", "maximum": 7 })), Breaking, NEW, Refused),
        ("field-added", fields(json!({ "a": integer() }), json!([])), fields(json!({ "a": integer(), "b": integer() }), json!([])), Compatible, NOBODY, Nothing),
        ("field-removed", fields(json!({ "a": integer(), "b": integer() }), json!(["a"])), fields(json!({ "a": integer() }), json!(["a"])), Breaking, &[STORED, WRITERS, READERS], ReadsDifferently),
        ("required-added", fields(json!({ "a": integer() }), json!([])), fields(json!({ "a": integer() }), json!(["a"])), Breaking, NEW, Refused),
        ("required-added", fields(json!({ "a": integer() }), json!([])), fields(json!({ "a": integer(), "b": integer() }), json!(["b"])), Breaking, NEW, Refused),
        ("required-with-default", fields(json!({ "a": { "type": "integer", "default": 1 } }), json!([])), fields(json!({ "a": { "type": "integer", "default": 1 } }), json!(["a"])), Compatible, NOBODY, Nothing),
        ("required-removed", fields(json!({ "a": integer() }), json!(["a"])), fields(json!({ "a": integer() }), json!([])), Risky, READ, Nothing),
        // Objects that a default makes invalid, all of them and some of them.
        ("default-added", ruled("!has(self.a) || has(self.b)", string(), string()), ruled("!has(self.a) || has(self.b)", preset(json!("q")), string()), Breaking, EVERYONE, Refused),
        ("default-added", ruled("!(has(self.a) && has(self.b))", integer(), auto()), ruled("!(has(self.a) && has(self.b))", preset(json!(1)), auto()), Breaking, EVERYONE, Refused),
        ("default-changed", ruled("self.a < self.b", preset(json!(3)), preset(json!(5))), ruled("self.a < self.b", preset(json!(7)), preset(json!(5))), Breaking, &[WRITERS, OPERATOR], Refused),
        ("default-changed", ruled("!has(self.b) || self.a < self.b", preset(json!(3)), integer()), ruled("!has(self.b) || self.a < self.b", preset(json!(7)), integer()), Breaking, EVERYONE, Refused),
        ("default-changed", ruled("!has(self.a) || self.a != 9", preset(json!(3)), integer()), ruled("!has(self.a) || self.a != 9", preset(json!(9)), integer()), Breaking, &[WRITERS, OPERATOR], Refused),
        ("default-removed", ruled("has(self.a)", preset(json!("x")), integer()), ruled("has(self.a)", string(), integer()), Breaking, &[WRITERS, READERS, OPERATOR], Refused),
        ("default-added", ruled("!has(self.a) || self.a != 'A' || has(self.b)", string(), integer()), ruled("!has(self.a) || self.a != 'A' || has(self.b)", preset(json!("A")), integer()), Breaking, EVERYONE, Refused),
        ("default-added", ruled("size(self.b) == 0 || !has(self.a)", string(), names()), ruled("size(self.b) == 0 || !has(self.a)", preset(json!("A")), names()), Breaking, EVERYONE, Refused),
        ("default-changed", ruled("self.a == oldSelf.a", preset(json!(3)), integer()), ruled("self.a == oldSelf.a", preset(json!(4)), integer()), Breaking, EVERYONE, Refused),
        ("default-added", at_most_one(string()), at_most_one(preset(json!("x"))), Breaking, EVERYONE, Refused),
        ("default-removed", at_least_one(preset(json!("x"))), at_least_one(string()), Breaking, &[WRITERS, READERS, OPERATOR], Refused),
        ("default-added", outer(ruled("true", string(), integer())), outer(ruled("true", preset(json!("q")), integer())), Breaking, EVERYONE, Refused),
        // Every default satisfies the rule.
        ("default-changed", ruled("!has(self.a) || self.a < 9", preset(json!(3)), integer()), ruled("!has(self.a) || self.a < 9", preset(json!(4)), integer()), Risky, &[STORED, READERS, OPERATOR], ReadsDifferently),
        ("default-removed", fields(json!({ "a": { "type": "integer", "default": 1 } }), json!(["a"])), fields(json!({ "a": integer() }), json!(["a"])), Breaking, &[WRITERS, READERS, OPERATOR], Refused),
    ]
}

fn case(
    rule: &'static str,
    old: Value,
    new: Value,
    level: Level,
    affects: &'static [&'static str],
    shown: Shown,
) -> Case {
    Case {
        name: rule.to_owned(),
        rule,
        old,
        new,
        level,
        affects,
        shown,
        also: &[],
    }
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let wrap = |(rule, old, new, level, affects, shown): Row, wrap: &dyn Fn(&Value) -> Value| Case {
        name: format!("{rule}: {old} to {new}"),
        ..case(rule, wrap(&old), wrap(&new), level, affects, shown)
    };
    let of_field = |schema: &Value| crd(&object(&field(schema)));
    let of_spec = |schema: &Value| crd(&object(schema));
    let mut cases: Vec<Case> = rows().into_iter().map(|row| wrap(row, &of_field)).collect();
    cases.extend(spec_rows().into_iter().map(|row| wrap(row, &of_spec)));
    cases.extend(definition_cases());
    cases.extend(role_cases());
    cases.extend(webhook_cases());
    cases
}

const FIRST: &str = "/spec/versions/0";

#[rustfmt::skip]
fn definition_cases() -> Vec<Case> {
    let at = |pointer: &str| format!("{FIRST}/{pointer}");
    let one = |name: &str| object(&json!({ "type": "object", "properties": { name: { "type": "integer" } } }));
    let same = || one("a");
    let two = |stored: usize| with_versions(json!([version("v1", &same(), stored == 0), version("v2", &same(), stored == 1)]));
    let conversion = |strategy: &str| replaced(two(0), "/spec/conversion", json!({ "strategy": strategy }));
    let unserved = || replaced(two(0), "/spec/versions/1/served", json!(false));
    let without_status = || changed(&at("subresources/status"), Value::Null);
    vec![
        case("crd-added", Value::Null, plain(), Compatible, NOBODY, Nothing),
        case("crd-removed", plain(), Value::Null, Breaking, EVERYONE, Nothing),
        case("scope-changed", plain(), changed("/spec/scope", json!("Cluster")), Breaking, &[STORED, WRITERS, READERS, INSTALLER], Nothing),
        case("kind-changed", plain(), changed("/spec/names/kind", json!("Mug")), Breaking, &[STORED, WRITERS, READERS, INSTALLER], Nothing),
        case("list-kind-changed", plain(), changed("/spec/names/listKind", json!("Cups")), Risky, READ, Nothing),
        case("name-removed", plain(), changed("/spec/names/shortNames", Value::Null), Risky, &[WRITERS, READERS], Nothing),
        case("name-added", plain(), changed("/spec/names/categories", json!(["all"])), Compatible, NOBODY, Nothing),
        case("version-added", crd(&same()), two(0), Compatible, NOBODY, Nothing),
        case("version-removed", two(1), with_versions(json!([version("v2", &same(), true)])), Breaking, &[WRITERS, READERS], Nothing),
        Case { also: &["version-removed", "storage-version-changed"], ..case("stored-version-removed", two(0), with_versions(json!([version("v2", &same(), true)])), Breaking, &[STORED, INSTALLER], Nothing) },
        case("unserved-version-removed", unserved(), crd(&same()), Risky, &[INSTALLER], Nothing),
        case("version-not-served", two(0), unserved(), Breaking, &[WRITERS, READERS], Nothing),
        case("version-served", unserved(), two(0), Compatible, NOBODY, Nothing),
        case("version-deprecated", plain(), changed(&at("deprecated"), json!(true)), Compatible, NOBODY, Nothing),
        case("storage-version-changed", two(0), two(1), Risky, &[STORED, INSTALLER], Nothing),
        case("conversion-removed", conversion("Webhook"), two(0), Breaking, &[STORED, WRITERS, READERS], Nothing),
        case("conversion-added", two(0), conversion("Webhook"), Risky, &[OPERATOR, INSTALLER], Nothing),
        case("conversion-changed", conversion("Webhook"), replaced(conversion("Webhook"), "/spec/conversion/webhook", json!({ "conversionReviewVersions": ["v1"] })), Risky, &[OPERATOR, INSTALLER], Nothing),
        case("conversion-missing", crd(&same()), with_versions(json!([version("v1", &same(), true), version("v2", &one("b"), false)])), Breaking, &[STORED, WRITERS, READERS], ReadsDifferently),
        Case { also: &["scale-subresource-changed"], ..case("status-subresource-added", without_status(), plain(), Breaking, &[STORED, READERS, OPERATOR], ReadsDifferently) },
        case("status-subresource-removed", plain(), without_status(), Breaking, &[WRITERS, OPERATOR], Nothing),
        case("scale-subresource-added", changed(&at("subresources/scale"), Value::Null), plain(), Compatible, NOBODY, Nothing),
        case("scale-subresource-removed", plain(), changed(&at("subresources/scale"), Value::Null), Breaking, &[WRITERS, READERS], Nothing),
        case("scale-subresource-changed", plain(), changed(&at("subresources/scale/labelSelectorPath"), json!(".status.selector")), Risky, &[WRITERS, READERS], Nothing),
        case("selectable-field-added", changed(&at("selectableFields"), Value::Null), plain(), Compatible, NOBODY, Nothing),
        case("selectable-field-removed", plain(), changed(&at("selectableFields"), Value::Null), Breaking, READ, Nothing),
        case("printer-column-added", changed(&at("additionalPrinterColumns"), Value::Null), plain(), Compatible, NOBODY, Nothing),
        case("printer-column-removed", plain(), changed(&at("additionalPrinterColumns"), Value::Null), Risky, READ, Nothing),
        case("printer-column-changed", plain(), changed(&at("additionalPrinterColumns/0/jsonPath"), json!(".status.ready")), Risky, READ, Nothing),
    ]
}

fn role_cases() -> Vec<Case> {
    let role = |resources: Value, verbs: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "manager" },
            "rules": [{ "apiGroups": ["apps"], "resources": resources, "verbs": verbs }],
        })
    };
    let small = || role(json!(["deployments"]), json!(["get"]));
    let large = || role(json!(["deployments"]), json!(["get", "list"]));
    vec![
        case("role-added", Value::Null, small(), Risky, &[INSTALLER], Nothing),
        case("role-removed", small(), Value::Null, Risky, &[OPERATOR], Nothing),
        case("permission-added", small(), large(), Risky, &[INSTALLER], Nothing),
        case(
            "permission-removed",
            large(),
            small(),
            Risky,
            &[OPERATOR],
            Nothing,
        ),
        case(
            "permission-added",
            role(json!(["*"]), json!(["get"])),
            role(json!(["deployments"]), json!(["*"])),
            Risky,
            &[INSTALLER],
            Nothing,
        )
        .also(&["permission-removed"]),
    ]
}

impl Case {
    fn also(self, also: &'static [&'static str]) -> Case {
        Case { also, ..self }
    }
}

#[rustfmt::skip]
fn webhook_cases() -> Vec<Case> {
    let configuration = |webhooks: Value| json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "validating" }, "webhooks": webhooks,
    });
    let webhook = || json!({
        "name": "v.example.com", "sideEffects": "None", "failurePolicy": "Ignore", "admissionReviewVersions": ["v1", "v1beta1"],
        "rules": [{ "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["cups"], "operations": ["CREATE"], "scope": "Namespaced" }],
    });
    let plain = || configuration(json!([webhook()]));
    let with = |key: &str, value: Value| replaced(plain(), &format!("/webhooks/0/{key}"), value);
    let called_at = |path: &str| with("clientConfig", json!({ "service": { "namespace": "a", "name": "b", "path": path } }));
    let update = || with("rules/0/operations", json!(["CREATE", "UPDATE"]));
    vec![
        case("webhook-added", configuration(json!([])), plain(), Risky, NEW, Nothing),
        case("webhook-removed", plain(), configuration(json!([])), Risky, &[OPERATOR], Nothing),
        case("failure-policy-changed", plain(), with("failurePolicy", Value::Null), Risky, &[WRITERS, OPERATOR], Nothing),
        case("webhook-rules-widened", plain(), update(), Risky, NEW, Nothing),
        case("webhook-rules-narrowed", update(), plain(), Risky, &[OPERATOR], Nothing),
        case("webhook-rules-widened", plain(), with("rules/0/scope", json!("*")), Risky, NEW, Nothing),
        case("webhook-rules-widened", plain(), with("rules/0/operations", json!(["*"])), Risky, NEW, Nothing),
        case("webhook-rules-widened", plain(), with("rules/0/resources", json!(["cups", "cups/status"])), Risky, NEW, Nothing),
        case("webhook-rules-widened", plain(), with("rules/0/resources", json!(["*/*"])), Risky, NEW, Nothing),
        case("webhook-rules-narrowed", with("rules/0/resources", json!(["*/*"])), with("rules/0/resources", json!(["*"])), Risky, &[OPERATOR], Nothing),
        case("webhook-rules-narrowed", with("rules/0/resources", json!(["cups/*"])), plain(), Risky, &[OPERATOR], Nothing),
        case("webhook-target-changed", called_at("/a"), called_at("/b"), Risky, &[WRITERS, INSTALLER], Nothing),
        case("webhook-target-changed", called_at("/a"), with("clientConfig", json!({ "url": "https://example.com/a" })), Risky, &[WRITERS, INSTALLER], Nothing),
        case("webhook-selector-changed", plain(), with("objectSelector", json!({ "matchLabels": { "a": "b" } })), Risky, &[WRITERS, OPERATOR], Nothing),
        case("match-conditions-changed", plain(), with("matchConditions", json!([{ "name": "a", "expression": "true" }])), Risky, &[WRITERS, OPERATOR], Nothing),
        case("match-policy-changed", plain(), with("matchPolicy", json!("Exact")), Risky, &[OPERATOR], Nothing),
        case("side-effects-changed", plain(), with("sideEffects", json!("NoneOnDryRun")), Compatible, NOBODY, Nothing),
        case("side-effects-refused", plain(), with("sideEffects", json!("Some")), Breaking, &[WRITERS, INSTALLER], Nothing),
        case("reinvocation-policy-changed", plain(), with("reinvocationPolicy", json!("IfNeeded")), Risky, &[OPERATOR], Nothing),
        case("webhook-timeout-changed", plain(), with("timeoutSeconds", json!(5)), Compatible, NOBODY, Nothing),
        case("review-version-removed", plain(), with("admissionReviewVersions", json!(["v1"])), Risky, &[OPERATOR, INSTALLER], Nothing),
    ]
}
