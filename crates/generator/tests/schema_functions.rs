//! Schemas can come from functions, either with `schema_with` or with a handwritten `impl
//! JsonSchema`.

use crate::support;

use serde_json::{Value, json};
use support::{PRELUDE, spec, spec_of, whole_of};

/// Returns the schema of a field whose `schema_with` function has this body.
fn of_body(body: &str, items: &str) -> Result<Value, String> {
    let items = format!("fn f(g: &mut SchemaGenerator) -> Schema {{ {body} }}\n{items}");
    let found = spec("#[schemars(schema_with = \"f\")] a: Other", &items);
    found
        .map(|schema| schema["properties"]["a"].clone())
        .map_err(|said| said[0].0.clone())
}

fn check(body: &str, expected: Value) {
    assert_eq!(of_body(body, ITEMS), Ok(expected), "{body}");
}

fn refused(body: &str, expected: &str) {
    let found = of_body(body, ITEMS).expect_err(body);
    assert!(found.contains(expected), "{body}: {found}");
}

const ITEMS: &str = r#"
    const MAX: u32 = 60 + 3;
    struct Other;
    /// An inner type.
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Inner { x: String }
    impl Inner { const PATTERN: &'static str = "^a$"; }
    fn string_of(_: &mut SchemaGenerator) -> Schema { json_schema!({ "type": "string" }) }
    fn list_of<T: JsonSchema>(g: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": g.subschema_for::<T>() })
    }
"#;

#[test]
fn literals() {
    let text = json!({"type": "string", "maxLength": 63});
    for body in [
        r#"json_schema!({ "type": "string", "maxLength": 63 })"#,
        r#"schemars::json_schema! { { "type": "string", "maxLength": MAX, } }"#,
        r#"let mut schema = json_schema!({}); schema.insert("type".to_owned(), "string".into());
           schema.insert("maxLength".into(), Value::from(63)); schema"#,
        r#"serde_json::from_value(json!({ "type": "string", "maxLength": 63 })).unwrap()"#,
        r#"serde_json::from_str(r'{"type": "string", "maxLength": 63}').expect("JSON")"#,
        r#"return Schema::try_from(serde_json::json!({ "type": "string", "maxLength": 70 - "trailer".len() })).unwrap();"#,
        r#"let mut schema = json_schema!({ "maxLength": 63 }); let _ = schema.insert("type".to_owned(), "string".into()); schema"#,
        // A comparison doesn't change the variable.
        r#"let schema = json_schema!({ "type": "string", "maxLength": 63 }); let _ = schema == other(); schema"#,
        r#"let mut max = Map::new(); max.insert("maxLength".to_string(), json!(63));
           let object = { let mut object = max.clone(); object.insert("type".to_string(), "string".into()); object };
           Schema::from(object)"#,
        r#"let json = serde_json::to_value(&json!({ "type": "string", "maxLength": 63 })).unwrap_or_else(|_| json!({}));
           Schema::try_from(json).unwrap_or_else(|_| panic!("no schema"))"#,
        // In schemars 0.8.
        r#"SchemaObject { instance_type: Some(InstanceType::String.into()),
               string: Some(Box::new(StringValidation { max_length: Some(63), ..Default::default() })),
               ..SchemaObject::default() }.into()"#,
        r#"let mut schema = SchemaObject::default(); schema.instance_type = Some(SingleOrVec::Single(Box::new(InstanceType::String)));
           schema.string().max_length = Some(MAX); Schema::Object(schema)"#,
        r#"use schemars::schema::*;
           let schema: SchemaObject = <String>::json_schema(g).into();
           let mut schema = SchemaObject { metadata: None, ..schema };
           schema.string = Some(Box::new(StringValidation { max_length: Some(63), min_length: None, pattern: None }));
           schema.into()"#,
    ] {
        check(&body.replace("r'", "r#\"").replace("}')", "}\"#)"), text.clone());
    }
    check(
        r#"json_schema!({ "type": "object", "additionalProperties": { "type": "string" }, "x-kubernetes-map-type": "atomic",
                          "description": "d", "nullable": true, "x-foreign": [1] })"#,
        json!({"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic",
               "description": "d", "nullable": true}),
    );
    check(
        r#"json_schema!({ "x-kubernetes-preserve-unknown-fields": true })"#,
        json!({"x-kubernetes-preserve-unknown-fields": true}),
    );
    check(
        r#"json_schema!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "integer", "format": "u32", "default": 0 } },
                          "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] })"#,
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 0}},
               "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    );
    check(
        r#"let mut extensions = BTreeMap::<String, Value>::new();
           extensions.insert("x-kubernetes-preserve-unknown-fields".to_string(), Value::Bool(true));
           let schema = SchemaObject { instance_type: Some(InstanceType::Object.into()), extensions, ..SchemaObject::default() };
           schema.into()"#,
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    check(
        r#"Schema::Object(SchemaObject {
               instance_type: Some(InstanceType::Object.into()),
               extensions: {
                   let mut map = schemars::Map::new();
                   map.insert("x-kubernetes-preserve-unknown-fields".to_string(), Value::Bool(true));
                   map
               },
               ..Default::default()
           })"#,
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
}

#[test]
fn schemas_of_types() {
    let inner = json!({"type": "object", "description": "An inner type.", "required": ["x"],
                       "properties": {"x": {"type": "string"}}});
    for body in [
        "g.subschema_for::<Inner>()",
        "Inner::json_schema(g)",
        "<Inner as JsonSchema>::json_schema(g)",
        "let schema = <Inner>::json_schema(g); schema",
        "generator().into_root_schema_for::<Inner>().schema.into()",
        "g.subschema_for::<Option<Inner>>()",
    ] {
        check(body, inner.clone());
    }
    check("list_of::<Inner>(g)", json!({"type": "array", "items": inner}));
    check(
        "json_schema!({ \"type\": \"array\", \"items\": g.subschema_for::<Option<i32>>() })",
        json!({"type": "array", "items": {"type": "integer", "format": "int32", "nullable": true}}),
    );
    check(
        r#"let mut schema: SchemaObject = <Vec<String>>::json_schema(g).into();
           schema.extensions.insert("x-kubernetes-list-type".to_owned(), Value::String("set".to_owned()));
           schema.array().min_items = Some(1);
           schema.metadata().description = Some("d".to_owned());
           schema.into()"#,
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "minItems": 1, "description": "d"}),
    );
    check(
        r#"let mut schema = Inner::json_schema(g);
           schema.as_object_mut().unwrap().get_mut("properties").unwrap()["x"]["pattern"] = Inner::PATTERN.into();
           let object = schema.ensure_object();
           object.remove("description");
           schema"#,
        json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "string", "pattern": "^a$"}}}),
    );
    check(
        "BTreeMap::<String, Inner>::json_schema(g)",
        json!({"type": "object", "additionalProperties": inner}),
    );
    // The type requires the field, but the schema doesn't have to.
    check(
        "let mut val = g.root_schema_for::<Inner>(); val.schema.object.as_mut().unwrap().required = BTreeSet::new(); val.schema.into()",
        json!({"type": "object", "description": "An inner type.", "properties": {"x": {"type": "string"}}}),
    );
    check("string_of(g)", json!({"type": "string"}));
}

#[test]
fn code_is_refused() {
    refused(
        "if true { string_of(g) } else { list_of::<i32>(g) }",
        "`if` cannot be evaluated",
    );
    refused(
        "let mut s = string_of(g); for x in y { s.insert(x, 1); } s",
        "`for` cannot be evaluated",
    );
    refused(
        "json_schema!({ \"type\": kind() })",
        "`kind()` cannot be evaluated without running the program",
    );
    refused("let s = unknown(); s", "`s` cannot be evaluated");
    // Here we have a block that changes an outer variable, a function that takes `&mut`, and
    // `unwrap_or` on `None`.
    refused(
        "let mut s = string_of(g); let t = { s.insert(\"maxLength\".into(), 1.into()); json!(2) }; s",
        "`s` cannot be evaluated",
    );
    refused(
        "let mut s = string_of(g); let t = fill(&mut s); s",
        "`s` cannot be evaluated",
    );
    refused(
        "json_schema!({ \"type\": None.unwrap_or(\"string\") })",
        "cannot be evaluated",
    );
    // We don't read kinds and modules in the bodies of functions, and a macro may declare anything.
    for (local, name) in [
        (
            "#[derive(CustomResource, JsonSchema)] struct Inner {} Inner::json_schema(g)",
            "Inner",
        ),
        (
            "mod inner { pub struct Inner; } inner::Inner::json_schema(g)",
            "inner",
        ),
    ] {
        let expected =
            format!("`{name}` is declared inside of the function, where declarations are not read");
        refused(local, &expected);
    }
    refused(
        "declare!(Inner); Inner::json_schema(g)",
        "`declare!(Inner)` cannot be evaluated",
    );
    refused("f(g)", "call each other too deeply");
    refused("json_schema!({ \"type\": \"sting\" })", "is not structural");
    refused("json_schema!({ \"properties\": {} })", "it has no `type`");
    refused("g.subschema_for::<Missing>()", "cannot find type `Missing`");
    refused(
        "let a = json!([1, 1, 1, 1, 1, 1, 1, 1, 1, 1]); let b = json!([a, a, a, a, a, a, a, a, a, a]); \
         let c = json!([b, b, b, b, b, b, b, b, b, b]); let d = json!([c, c, c, c, c, c, c, c, c, c]); \
         let e = json!([d, d, d, d, d, d, d, d, d, d]); let h = json!([e, e, e, e, e, e, e, e, e, e]); h",
        "it is too large",
    );
    let missing = spec("#[schemars(schema_with = \"other::f\")] a: i32", "");
    assert_eq!(
        missing.expect_err("no function")[0].0,
        "cannot read the function `other::f`, which returns the schema"
    );
}

/// Items that a function declares or imports shadow those of its module.
#[test]
fn local_items_shadow_module_items() {
    let items = format!(
        "{ITEMS} fn other(_: &mut SchemaGenerator) -> Schema {{ json_schema!({{ \"type\": \"integer\" }}) }}
        pub mod inner {{
            use super::*;
            #[derive(Serialize, Deserialize, JsonSchema)] pub struct Inner {{ y: i32 }}
            #[derive(Serialize, Deserialize, JsonSchema)] pub struct Third {{ z: i32 }}
            pub fn other(_: &mut SchemaGenerator) -> Schema {{ json_schema!({{ \"type\": \"string\" }}) }}
        }}"
    );
    let fields = |body: &str| {
        let found = of_body(body, &items).unwrap_or_else(|said| panic!("{body}: {said}"));
        let fields = found["properties"]
            .as_object()
            .map(|fields| fields.keys().cloned().collect());
        fields.unwrap_or_else(|| vec![found["type"].as_str().expect("a type").to_owned()])
    };
    for (body, expected) in [
        // These items are declared.
        (
            "/// A proxy.\n#[derive(Serialize, Deserialize, JsonSchema)] struct Proxy { #[serde(rename = \"a\")] tag: Inner } Proxy::json_schema(g)",
            "a",
        ),
        (
            "#[derive(JsonSchema)] struct Inner { w: i32 } Inner::json_schema(g)",
            "w",
        ),
        (
            "let s = Inner::json_schema(g); #[derive(JsonSchema)] struct Inner { w: i32 } s",
            "w",
        ),
        (
            "return Inner::json_schema(g); #[derive(JsonSchema)] struct Inner { w: i32 }",
            "w",
        ),
        ("type Inner = inner::Third; g.subschema_for::<Inner>()", "z"),
        (
            "pub(crate) type Inner = i32; g.subschema_for::<Inner>()",
            "integer",
        ),
        (
            "struct Inner; impl JsonSchema for Inner { fn json_schema(g: &mut SchemaGenerator) -> Schema { inner::Third::json_schema(g) } } Inner::json_schema(g)",
            "z",
        ),
        (
            "fn other(g: &mut SchemaGenerator) -> Schema { Inner::json_schema(g) } other(g)",
            "x",
        ),
        (
            "const KIND: &str = \"boolean\"; json_schema!({ \"type\": KIND })",
            "boolean",
        ),
        // These items are imported.
        ("use inner::Inner; Inner::json_schema(g)", "y"),
        ("use inner::{Third, Inner}; Inner::json_schema(g)", "y"),
        ("use inner::Third as Inner; g.subschema_for::<Inner>()", "z"),
        ("use inner::*; Inner::json_schema(g)", "y"),
        ("use inner::other; other(g)", "string"),
        ("use inner::*; other(g)", "string"),
        ("use self::Inner; Inner::json_schema(g)", "x"),
        (
            "use schemars::schema::*; use inner::Third; Inner::json_schema(g)",
            "x",
        ),
        // A path always starts in the enclosing module.
        (
            "#[derive(JsonSchema)] struct Inner { w: i32 } self::Inner::json_schema(g)",
            "x",
        ),
        (
            "#[derive(JsonSchema)] struct Inner { w: i32 } crate::inner::Inner::json_schema(g)",
            "y",
        ),
        (
            "#[derive(JsonSchema)] struct Inner { w: self::Inner } Inner::json_schema(g)",
            "w",
        ),
    ] {
        assert_eq!(fields(body), [expected], "{body}");
    }
    let many = "use inner::*; ".repeat(1000) + "string_of(g)";
    assert_eq!(fields(&many), ["string"]);
}

/// In a body, `super` is the parent of the module with the function, and `Self` is the type of its
/// `impl`.
#[test]
fn resolves_paths_in_functions_with_items() {
    let items = format!(
        "{ITEMS}
        mod inner {{
            #[derive(JsonSchema)] pub struct Inner {{ y: i32 }}
            pub fn f(g: &mut SchemaGenerator) -> Schema {{
                #[derive(JsonSchema)] struct Inner {{ w: super::Inner }}
                Inner::json_schema(g)
            }}
        }}
        struct Own;
        impl Own {{ fn made(_: &mut SchemaGenerator) -> Schema {{ json_schema!({{ \"type\": \"boolean\" }}) }} }}
        impl JsonSchema for Own {{
            fn json_schema(g: &mut SchemaGenerator) -> Schema {{
                #[derive(JsonSchema)] struct Own {{ w: i32 }}
                Self::made(g)
            }}
        }}"
    );
    let found = spec("#[schemars(schema_with = \"inner::f\")] a: Other, b: Own", &items).expect("a schema");
    let fields = &found["properties"];
    assert_eq!(fields["a"]["properties"]["w"]["required"], json!(["x"]));
    assert_eq!(fields["b"], json!({"type": "boolean"}));
}

#[test]
fn implementations() {
    let items = format!(
        "{ITEMS}
        #[derive(Serialize, Deserialize)] struct Name(String);
        impl JsonSchema for Name {{
            fn schema_name() -> String {{ \"Name\".into() }}
            fn json_schema(_: &mut SchemaGenerator) -> Schema {{ json_schema!({{ \"type\": \"string\", \"minLength\": 1 }}) }}
        }}
        enum OneOrMany<T> {{ One(T), Many(Vec<T>) }}
        impl<T: JsonSchema> schemars::JsonSchema for OneOrMany<T> {{
            fn schema_name() -> Cow<'static, str> {{ \"x\".into() }}
            fn json_schema(g: &mut SchemaGenerator) -> Schema {{ Vec::<T>::json_schema(g) }}
        }}
        struct Again;
        impl JsonSchema for Again {{
            fn json_schema(g: &mut SchemaGenerator) -> Schema {{ g.subschema_for::<Vec<Again>>() }}
        }}"
    );
    let found = spec(
        "a: Name, b: Option<Name>, c: OneOrMany<Name>, d: BTreeMap<String, Name>",
        &items,
    )
    .expect("a schema");
    let name = json!({"type": "string", "minLength": 1});
    assert_eq!(
        found["properties"],
        json!({"a": name, "b": name, "c": {"type": "array", "items": name},
               "d": {"type": "object", "additionalProperties": name}})
    );
    assert_eq!(found["required"], json!(["a", "c", "d"]));
    let said = spec("a: Again", &items).expect_err("it contains itself");
    assert_eq!(said[0].0, "the schema of this type contains itself");
    let two =
        items + "impl JsonSchema for OneOrMany<i32> { fn json_schema(_: &mut G) -> Schema { string_of(g) } }";
    let said = spec("a: OneOrMany<i32>", &two).expect_err("two implementations");
    assert_eq!(said[0].0, "`OneOrMany` does not derive a schema");
}

/// If a field has a `schema_with` function, it's required unless it has a default. Its type doesn't
/// matter.
#[test]
fn presence_with_schema_functions() {
    let found = spec(
        "#[schemars(schema_with = \"string_of\")] a: Option<Other>, #[schemars(default, schema_with = \"string_of\")] b: Option<Other>, \
         #[serde(default = \"word\")] #[schemars(schema_with = \"string_of\")] c: String",
        &format!("{ITEMS} fn word() -> String {{ \"x\".into() }}"),
    )
    .expect("a schema");
    assert_eq!(found["required"], json!(["a"]));
    assert_eq!(
        found["properties"]["c"],
        json!({"type": "string", "default": "x"})
    );
}

/// Only schemars knows the type in `with`, so the default comes from the field's own type.
#[test]
fn defaults_with_other_schema_type() {
    let text = format!(
        "{PRELUDE}#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
        #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]
        pub struct TestSpec {{
            #[serde(default)] #[schemars(with = \"Vec<Word>\")] a: Vec<String>,
            #[serde(default)] #[schemars(with = \"String\")] b: Mode,
            #[serde(default)] #[schemars(with = \"Option<String>\")] c: Option<serde::Unknown>,
            #[serde(default, with = \"m\")] #[schemars(with = \"String\")] d: Mode,
        }}
        #[derive(JsonSchema)] struct Word(#[schemars(length(min = 1))] String);
        #[derive(JsonSchema, Serialize, Deserialize, Default)] enum Mode {{ #[default] Fast, Slow }}"
    );
    let found = spec_of(&[("src/lib.rs", &text)]).expect("a schema");
    assert_eq!(
        found["properties"],
        json!({"a": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []},
               "b": {"type": "string", "default": "Fast"}, "c": {"type": "string"}, "d": {"type": "string"}})
    );
}

#[test]
fn schema_of_whole_kind() {
    let source = |body: &str| {
        format!(
            "{PRELUDE}#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
            #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\", schema = \"manual\", status = \"Status\")]
            pub struct TestSpec {{ size: i32 }}
            #[derive(JsonSchema)] struct Status {{ ready: Option<bool> }}
            impl JsonSchema for Test {{ fn json_schema(g: &mut SchemaGenerator) -> Schema {{ {body} }} }}"
        )
    };
    let text = source(
        r#"let spec = g.subschema_for::<TestSpec>(); let status = g.subschema_for::<Option<Status>>();
           json_schema!({ "type": "object", "description": "A test.", "required": ["metadata", "spec"], "properties": {
               "metadata": { "type": "object", "properties": { "name": { "type": "string", "maxLength": 63 } } },
               "spec": spec, "status": status } })"#,
    );
    let found = whole_of(&[("src/lib.rs", &text)]).expect("a schema");
    assert_eq!(found["required"], json!(["metadata", "spec"]));
    assert_eq!(found["description"], "A test.");
    let properties = &found["properties"];
    assert_eq!(properties["metadata"]["properties"]["name"]["maxLength"], 63);
    assert_eq!(properties["spec"]["required"], json!(["size"]));
    assert_eq!(properties["status"]["properties"]["ready"]["type"], "boolean");
    assert_eq!(properties["kind"]["type"], "string");
    let keys = "#[crd(root_schema = { \"title\": \"Tests\" })]\npub struct TestSpec";
    let text = text.replace("pub struct TestSpec", keys);
    let found = whole_of(&[("src/lib.rs", &text)]).expect("a schema");
    assert_eq!(found["title"], "Tests");
    let text = source("if size() { a } else { b }");
    assert!(whole_of(&[("src/lib.rs", &text)]).is_err());
}

/// The schema of the spec is handwritten, and there is no derive.
#[test]
fn spec_with_handwritten_schema() {
    let text = format!(
        "{PRELUDE}#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
        #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]
        pub struct TestSpec {{ size: i32 }}
        impl JsonSchema for TestSpec {{ fn json_schema(g: &mut SchemaGenerator) -> Schema {{
            json_schema!({{ \"type\": \"object\", \"properties\": {{ \"size\": {{ \"type\": \"integer\" }} }} }}) }} }}"
    );
    let found = spec_of(&[("src/lib.rs", &text)]).expect("a schema");
    assert_eq!(
        found,
        json!({"type": "object", "properties": {"size": {"type": "integer"}}})
    );
}

/// In a path dependency, we only read the modules with the functions.
#[test]
fn functions_in_path_dependencies() {
    let lib = format!(
        "{PRELUDE}#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
        #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]
        pub struct TestSpec {{ #[schemars(schema_with = \"api::schemas::name\")] a: String, b: api::types::Held }}"
    );
    let manifest = support::CARGO_TOML.replace("[dependencies]", "[dependencies]\napi = { path = \"api\" }");
    let files = [
        ("Cargo.toml", manifest.as_str()),
        ("src/lib.rs", &lib),
        (
            "api/Cargo.toml",
            "[package]\nname = \"api\"\nedition = \"2024\"\n",
        ),
        ("api/src/lib.rs", "pub mod schemas; pub mod types; mod inner;"),
        (
            "api/src/schemas.rs",
            "pub fn name(g: &mut SchemaGenerator) -> Schema { g.subschema_for::<crate::inner::Name>() }",
        ),
        (
            "api/src/inner.rs",
            "#[derive(JsonSchema, Serialize, Deserialize)] pub struct Name { x: crate::types::Held }",
        ),
        (
            "api/src/types.rs",
            "pub struct Held; impl JsonSchema for Held { fn json_schema(g: &mut SchemaGenerator) -> Schema { deep::schema(g) } } mod deep;",
        ),
        (
            "api/src/types/deep.rs",
            "pub fn schema(_: &mut SchemaGenerator) -> Schema { json_schema!({ \"type\": \"boolean\" }) }",
        ),
    ];
    let found = spec_of(&files).expect("a schema");
    assert_eq!(
        found["properties"],
        json!({"a": {"type": "object", "required": ["x"], "properties": {"x": {"type": "boolean"}}}, "b": {"type": "boolean"}})
    );
}
