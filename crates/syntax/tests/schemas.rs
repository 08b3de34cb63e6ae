//! From an item to its schema: the effect of serde attributes and markers.

use rbuilder_reader::grammar::{Item, ItemKind, Items};
use rbuilder_reader::token::lex;
use rbuilder_reader::{Diagnostic, Span, TypeKind, TypeRef};
use rbuilder_schema::{Part, Schema, Slot, array_of, assemble, known, map_of};
use rbuilder_syntax::{Session, Type, parse_type};
use serde_json::{Value, json};

/// Resolves the types in these cases. Finding types is not part of this crate.
fn slot(ty: &TypeRef) -> Slot {
    let TypeKind::Path(segments, args) = &ty.kind else {
        panic!("{ty:?}")
    };
    let inner = |position: usize| slot(&args[position]).schema;
    let schema = match segments.last().map(String::as_str) {
        Some("Option") => {
            return Slot {
                schema: inner(0),
                optional: true,
            };
        }
        Some("Vec") => array_of(inner(0)),
        Some("BTreeMap") => map_of(&inner(0), inner(1)),
        Some("String") => known("std::string::String").expect("known").as_ref().clone(),
        Some("Value") => known("serde_json::Value").expect("known").as_ref().clone(),
        Some("Item") => item(
            json!({"name": {"type": "string"}, "note": {"type": "string"}}),
            &["name"],
        ),
        Some("Other") => item(json!({"other": {"type": "boolean"}}), &["other"]),
        Some("Ruled") => {
            let mut schema = item(json!({"a": {"type": "boolean"}}), &[]);
            schema.validations = vec![rbuilder_schema::Cel {
                rule: "has(self.a)".into(),
                ..Default::default()
            }];
            schema
        }
        Some("Narrow") => from(json!({"type": "integer", "minimum": 2, "maximum": 8, "enum": [2, 4, 6]})),
        Some(name) => known(name).unwrap_or_else(|| panic!("{name}")).as_ref().clone(),
        None => panic!("{ty:?}"),
    };
    Slot {
        schema: schema.into(),
        optional: false,
    }
}

fn from(value: Value) -> Schema {
    serde_json::from_value(value).expect("a schema")
}

fn item(properties: Value, required: &[&str]) -> Schema {
    from(json!({"type": "object", "properties": properties, "required": required}))
}

/// Parses the only type in a source.
fn read(source: &str, session: &mut Session) -> Result<Option<Type>, Diagnostic> {
    let tokens = lex(source)?;
    match Items::new(tokens.cursor(), None).read()? {
        Some(Item {
            attrs,
            kind: ItemKind::Type(item),
            ..
        }) => Ok(parse_type(&attrs, item, session)),
        _ => Err(Diagnostic::error(Span::default(), "not a type")),
    }
}

fn build(source: &str) -> Result<Value, Vec<String>> {
    let mut session = Session::default();
    let parsed = read(source, &mut session).unwrap_or_else(|error| panic!("{source}: {}", error.message));
    let complaints = session.diagnostics.into_vec();
    assert!(complaints.is_empty(), "{source}: {complaints:?}");
    let parsed = parsed.expect("a type");
    // The derive emits the container as JSON, which must not lose anything.
    let carried = serde_json::to_string(&parsed.container).expect("JSON");
    assert_eq!(
        parsed.container,
        serde_json::from_str(&carried).expect("a container"),
        "{source}"
    );
    let slots: Vec<_> = parsed.slots.iter().map(slot).collect();
    assemble(&parsed.container, &slots)
        .map(|schema| serde_json::to_value(schema).expect("JSON"))
        .map_err(|diagnostics| {
            diagnostics
                .into_iter()
                .map(|diagnostic| {
                    let Part { site, marker } = diagnostic.place;
                    let marker = marker.map(|name| format!(" `{name}`")).unwrap_or_default();
                    format!("{site:?}{marker}: {}", diagnostic.message)
                })
                .collect()
        })
}

fn check(source: &str, expected: Value) {
    assert_eq!(build(source), Ok(expected), "{source}");
}

fn refused(source: &str, expected: &[&str]) {
    assert_eq!(
        build(source),
        Err(expected.iter().map(|text| (*text).to_owned()).collect()),
        "{source}"
    );
}

/// Checks the schema of one field of a struct.
fn field(source: &str, expected: Value) {
    let schema = build(&format!("struct S {{ {source} }}"));
    let mut properties =
        schema.unwrap_or_else(|diagnostics| panic!("{source}: {diagnostics:?}"))["properties"].take();
    let name = properties
        .as_object()
        .expect("fields")
        .keys()
        .next()
        .expect("a field")
        .clone();
    assert_eq!(properties[&name].take(), expected, "{source}");
}

#[test]
fn names_presence_and_descriptions() {
    check(
        r#"
        /// A spec.
        #[serde(rename_all = "camelCase")]
        struct S {
            /// A count.
            size_wanted: i32,
            node_name: Option<String>,
            #[serde(rename = "type")] kind: String,
            #[serde(default)] list: Vec<String>,
            #[serde(skip)] cache: String,
            #[kube(required)] must: Option<bool>,
            #[kube(optional)] #[serde(default)] may: bool,
            #[serde(skip_deserializing)] seen: bool,
            #[serde(skip_serializing, skip_deserializing)] gone: bool,
        }"#,
        json!({
            "type": "object", "description": "A spec.", "required": ["must", "sizeWanted", "type"],
            "properties": {
                "sizeWanted": {"type": "integer", "format": "int32", "description": "A count."},
                "nodeName": {"type": "string"},
                "type": {"type": "string"},
                "list": {"type": "array", "items": {"type": "string"}},
                "must": {"type": "boolean"},
                "may": {"type": "boolean"},
                "seen": {"type": "boolean"},
            },
        }),
    );
    check(
        "#[serde(default)] struct S { a: bool }",
        json!({"type": "object", "properties": {"a": {"type": "boolean"}}}),
    );
    check(
        "struct Percent(#[kube(validation(maximum = 100))] u8);",
        json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 100}),
    );
    check(
        "#[serde(transparent)] struct S { #[serde(skip)] x: i32, a: String }",
        json!({"type": "string"}),
    );
    check(
        "#[serde(try_from = \"String\")] struct S { a: i32 }",
        json!({"type": "string"}),
    );
}

#[test]
fn markers_set_schema_keys() {
    field(
        "#[kube(validation(minimum = 1, maximum = 5), default = 1)] a: i32",
        json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": 5, "default": 1}),
    );
    field(
        "#[kube(validation(minimum = 1, maximum = 6, enum = [4, 6, 9]))] a: Narrow",
        json!({"type": "integer", "minimum": 2, "maximum": 6, "enum": [4, 6]}),
    );
    field(
        "#[kube(items(validation(max_length = 3)), validation(max_items = 2), list_type = \"set\")] a: Vec<String>",
        json!({"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2, "x-kubernetes-list-type": "set"}),
    );
    field(
        "#[kube(list_type = \"map\", list_map_keys = [\"name\"])] a: Vec<Item>",
        json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "note": {"type": "string"}}, "required": ["name"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    );
    field(
        "#[kube(values(validation(minimum = 1)), keys(validation(pattern = \"^a'\")))] a: BTreeMap<String, i64>",
        json!({"type": "object", "additionalProperties": {"type": "integer", "format": "int64", "minimum": 1}, "x-kubernetes-validations": [{"rule": "self.all(key, key.matches('^a\\''))", "message": "keys must match the pattern ^a'"}]}),
    );
    field(
        "#[kube(validation = \"self > 0\", cel(rule = \"self < 9\", message = \"m\"))] a: i64",
        json!({"type": "integer", "format": "int64", "x-kubernetes-validations": [{"rule": "self > 0"}, {"rule": "self < 9", "message": "m"}]}),
    );
    field(
        "#[kube(schemaless, validation(type = \"string\"))] a: Foreign",
        json!({"type": "string"}),
    );
    field(
        "#[kube(schema_type = \"i32\")] a: Foreign",
        json!({"type": "integer", "format": "int32"}),
    );
    field(
        "#[kube(int_or_string)] a: Value",
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}),
    );
    field(
        "#[kube(nullable, title = \"T\", example = { \"b\": [1] })] a: Value",
        json!({"nullable": true, "title": "T", "example": {"b": [1]}, "x-kubernetes-preserve-unknown-fields": true}),
    );
}

#[test]
fn one_of_and_immutable_become_cel_rules() {
    check(
        r#"
        #[crd(exactly_one_of(alpha, namespace), at_least_one_of(alpha, beta_value))]
        #[serde(rename_all = "camelCase")]
        struct S { alpha: Option<bool>, namespace: Option<bool>, #[kube(immutable)] beta_value: Option<bool> }"#,
        json!({
            "type": "object",
            "properties": {
                "alpha": {"type": "boolean"},
                "namespace": {"type": "boolean"},
                "betaValue": {"type": "boolean", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]},
            },
            "x-kubernetes-validations": [
                {"rule": "!has(oldSelf.betaValue) || has(self.betaValue)", "message": "field betaValue is immutable once set"},
                {"rule": "(has(self.alpha)?1:0)+(has(self.__namespace__)?1:0) == 1", "message": "exactly one of the fields in [alpha namespace] must be set"},
                {"rule": "has(self.alpha)||has(self.betaValue)", "message": "at least one of the fields in [alpha betaValue] must be set"},
            ],
        }),
    );
}

#[test]
fn flattened_fields_are_hoisted() {
    check(
        "struct S { a: bool, #[serde(flatten)] item: Item, #[serde(flatten)] other: Option<Other> }",
        json!({"type": "object", "required": ["a", "name"], "properties": {
            "a": {"type": "boolean"}, "name": {"type": "string"}, "note": {"type": "string"}, "other": {"type": "boolean"},
        }}),
    );
    check(
        "struct S { a: bool, #[serde(flatten)] rest: BTreeMap<String, String> }",
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}}, "x-kubernetes-preserve-unknown-fields": true}),
    );
}

#[test]
fn rules_of_hoisted_fields_are_conditional() {
    let fields = json!({"a": {"type": "boolean"}});
    check(
        "struct S { #[serde(flatten)] ruled: Ruled }",
        json!({"type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": "has(self.a)"}]}),
    );
    check(
        "struct S { #[serde(flatten)] ruled: Option<Ruled> }",
        json!({"type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": "!(has(self.a)) || (has(self.a))"}]}),
    );
    check(
        "#[serde(tag = \"t\")] enum E { A(Ruled), B }",
        json!({"type": "object", "required": ["t"],
            "properties": {"t": {"type": "string", "enum": ["A", "B"]}, "a": {"type": "boolean"}},
            "x-kubernetes-validations": [{"rule": "self.t != 'A' || (has(self.a))"}]}),
    );
    refused(
        "#[serde(untagged)] enum E { A(Ruled), B(Other) }",
        &["Variant(0): a rule on a variant of an untagged enum cannot tell which variant a value is"],
    );
}

#[test]
fn enums_follow_their_representation() {
    check(
        "/// How.\n#[serde(rename_all = \"lowercase\")] enum E { /// The first.\n Alpha, Beta }",
        json!({"type": "string", "enum": ["alpha", "beta"], "description": "How.\n\n- alpha: The first."}),
    );
    check(
        "enum E { A(Item), B { #[kube(validation(minimum = 1))] x: i32 } }",
        json!({"type": "object", "oneOf": [{"required": ["A"]}, {"required": ["B"]}], "properties": {
            "A": {"type": "object", "properties": {"name": {"type": "string"}, "note": {"type": "string"}}, "required": ["name"]},
            "B": {"type": "object", "properties": {"x": {"type": "integer", "format": "int32", "minimum": 1}}, "required": ["x"]},
        }}),
    );
    check(
        "#[serde(rename_all = \"UPPERCASE\", rename_all_fields = \"camelCase\")] enum E { A { x_y: bool } }",
        json!({"type": "object", "required": ["A"], "properties": {
            "A": {"type": "object", "properties": {"xY": {"type": "boolean"}}, "required": ["xY"]},
        }}),
    );
    check(
        "enum E { Off, On(Item) }",
        json!({"x-kubernetes-preserve-unknown-fields": true, "anyOf": [{"enum": ["Off"]}, {
            "required": ["On"], "minLength": 1, "maxLength": 0, "minItems": 1, "maxItems": 0, "minimum": 1, "maximum": 0,
            "not": {"enum": [true, false]},
        }]}),
    );
    check(
        "#[serde(tag = \"type\")] enum E { A { x: bool }, B(Other), C }",
        json!({"type": "object", "required": ["type"],
            "properties": {"type": {"type": "string", "enum": ["A", "B", "C"]}, "x": {"type": "boolean"}, "other": {"type": "boolean"}},
            "oneOf": [
                {"properties": {"type": {"enum": ["A"]}}, "required": ["x"]},
                {"properties": {"type": {"enum": ["B"]}}, "required": ["other"]},
                {"properties": {"type": {"enum": ["C"]}}},
            ],
        }),
    );
    check(
        "#[serde(tag = \"t\", content = \"c\")] enum E { A(bool), B(i32) }",
        json!({"type": "object", "required": ["c", "t"], "properties": {
            "t": {"type": "string", "enum": ["A", "B"]}, "c": {"x-kubernetes-preserve-unknown-fields": true},
        }}),
    );
    check(
        "#[serde(tag = \"t\", content = \"c\")] enum E { A(bool), B }",
        json!({"type": "object", "required": ["t"],
            "properties": {"t": {"type": "string", "enum": ["A", "B"]}, "c": {"type": "boolean"}},
            "oneOf": [{"properties": {"t": {"enum": ["A"]}}, "required": ["c"]}, {"properties": {"t": {"enum": ["B"]}}, "not": {"required": ["c"]}}],
        }),
    );
    check(
        "#[serde(untagged)] enum E { A { x: bool }, B(Other) }",
        json!({"type": "object", "properties": {"x": {"type": "boolean"}, "other": {"type": "boolean"}},
            "anyOf": [{"required": ["x"]}, {"required": ["other"]}]}),
    );
    check(
        "#[serde(untagged)] enum E { A(#[kube(validation(max_length = 1))] String), B(#[kube(validation(pattern = \"x\"))] String) }",
        json!({"type": "string", "anyOf": [{"maxLength": 1}, {"pattern": "x"}]}),
    );
    check(
        "#[serde(untagged)] enum E { A(#[kube(validation(max_length = 1))] String), B(String) }",
        json!({"type": "string"}),
    );
    check(
        "#[serde(untagged)] enum E { A(#[kube(validation(maximum = 5))] i32), B(#[kube(validation(minimum = 9))] i32) }",
        json!({"type": "integer", "format": "int32", "anyOf": [{"maximum": 5}, {"minimum": 9}]}),
    );
    check(
        "#[serde(untagged)] enum E { A(#[kube(validation(maximum = 5))] i64), B(#[kube(validation(minimum = 9))] f32) }",
        json!({"type": "number", "anyOf": [{"maximum": 5}, {"minimum": 9}]}),
    );
    refused(
        "#[serde(untagged)] enum E { A(#[kube(validation = \"self != 'x'\")] String), B(i32) }",
        &["Variant(0): a rule on a variant of an untagged enum cannot tell which variant a value is"],
    );
    check(
        "#[serde(untagged)] enum E { A(i32), B(String) }",
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
            "minimum": i32::MIN, "maximum": i32::MAX}),
    );
}

#[test]
fn reports_markers_that_contradict_the_type() {
    refused(
        "struct S { #[kube(validation(minimum = 9))] a: Narrow }",
        &["Field(0): minimum 9 is greater than maximum 8"],
    );
    refused(
        "struct S { #[kube(validation(enum = [3]))] a: Narrow }",
        &["Field(0) `enum`: no value of this `enum` is in the `enum` of the type"],
    );
    refused(
        "struct S { #[kube(default = 9)] a: Narrow }",
        &["Field(0) `default`: invalid default: 9 is not one of the allowed values (2, 4, 6)"],
    );
    refused(
        "struct S { #[kube(validation(minimum = 1))] a: Item }",
        &["Field(0) `minimum`: `minimum` applies to numbers; this value is an object"],
    );
    refused(
        "struct S { #[kube(default = { \"nam\": \"x\" })] a: Item }",
        &["Field(0) `default`: invalid default: missing field `name`"],
    );
    refused(
        "struct S { #[kube(list_type = \"map\", list_map_keys = [\"note\"])] a: Vec<Item> }",
        &["Field(0) `list_map_keys`: list map key `note` must be required or have a default"],
    );
    refused(
        "struct S { #[kube(list_type = \"set\")] a: Vec<Item> }",
        &["Field(0) `list_type`: items of a list of type `set` must be scalars, not objects"],
    );
    refused(
        "struct S { a: i32, #[serde(rename = \"a\")] b: i32 }",
        &["Field(1): duplicate field name \"a\" in JSON"],
    );
    refused(
        "struct S { #[serde(flatten)] a: String }",
        &["Field(0): expected a struct, an enum of structs or a map to flatten"],
    );
    refused(
        "#[crd(exactly_one_of(a, b))] struct S { a: i32, b: Option<i32> }",
        &["Container `exactly_one_of`: the field `a` is required and therefore always set"],
    );
    refused(
        "#[serde(untagged)] enum E { A { x: bool }, B { x: i32 } }",
        &["Variant(1): the field \"x\" has a different type or different constraints in an earlier variant"],
    );
    refused(
        "#[serde(untagged)] enum E { A(Vec<String>), B(Item) }",
        &["Container: the variants of this untagged enum have different JSON types"],
    );
    refused(
        "#[serde(untagged)] enum E { A, B(Item) }",
        &["Variant(0): a unit variant of an untagged enum is `null`, which a CRD cannot store"],
    );
    refused(
        "#[serde(tag = \"t\")] enum E { A(String) }",
        &["Variant(0): an internally tagged variant must hold an object"],
    );
}
