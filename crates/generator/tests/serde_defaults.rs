//! serde's defaults become defaults of the schema.

use crate::support;

use rbuilder_generator::{Options, Severity, SourceSet, generate};
use serde_json::{Value, json};
use support::{CARGO_TOML, PRELUDE, kind, spec, warnings};

/// Returns the defaults of the spec by field.
fn defaults(fields: &str, items: &str) -> Value {
    let schema = spec(fields, items).unwrap_or_else(|said| panic!("{fields}\n{items}\n{said:?}"));
    of_schema(&schema)
}

fn of_schema(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().expect("properties");
    let with_default = properties.iter().filter_map(|(name, property)| {
        let default = property.get("default")?;
        Some((name.clone(), default.clone()))
    });
    Value::Object(with_default.collect())
}

fn check(fields: &str, items: &str, expected: Value) {
    assert_eq!(defaults(fields, items), expected, "{fields}\n{items}");
}

/// The default function of the field has this body.
fn of_body(ty: &str, body: &str, items: &str) -> Value {
    let items = format!("fn f() -> {ty} {{ {body} }}\n{items}");
    let found = defaults(&format!("#[serde(default = \"f\")] a: {ty}"), &items);
    found.get("a").cloned().unwrap_or_default()
}

#[test]
fn evaluates_function_bodies() {
    for (ty, body, expected) in [
        ("i32", "80", json!(80)),
        ("i64", "-5", json!(-5)),
        ("u64", "60 * 60", json!(3600)),
        ("u16", "u16::MAX", json!(65535)),
        ("u32", "5_000u32", json!(5000)),
        ("i32", "return 3;", json!(3)),
        ("i32", "// A comment.\n 3", json!(3)),
        ("f64", "0.5", json!(0.5)),
        ("bool", "true", json!(true)),
        ("String", "\"x\".to_string()", json!("x")),
        ("String", "\"x\".into()", json!("x")),
        ("String", "\"x\".to_owned()", json!("x")),
        ("String", "String::from(\"x\")", json!("x")),
        ("String", "std::string::String::from(\"x\")", json!("x")),
        ("String", "8080.to_string()", json!("8080")),
        ("String", "String::new()", json!("")),
        ("Cow<'static, str>", "Cow::Borrowed(\"x\")", json!("x")),
        ("Box<i32>", "Box::new(3)", json!(3)),
        ("Arc<str>", "\"x\".into()", json!("x")),
        ("Option<i32>", "Some(3)", json!(3)),
        ("Option<String>", "Some(\"x\".to_string())", json!("x")),
        ("Option<i32>", "None", json!(null)),
        ("Option<i32>", "3.into()", json!(3)),
        ("Vec<i32>", "vec![]", json!([])),
        ("Vec<i32>", "Vec::new()", json!([])),
        ("Vec<i32>", "Default::default()", json!([])),
        (
            "Vec<String>",
            "vec![\"a\".into(), \"b\".to_string()]",
            json!(["a", "b"]),
        ),
        (
            "Vec<String>",
            "[\"a\", \"b\"].iter().map(|s| s.to_string()).collect()",
            json!(["a", "b"]),
        ),
        (
            "Vec<String>",
            "[\"a\"].into_iter().map(String::from).collect::<Vec<_>>()",
            json!(["a"]),
        ),
        ("BTreeMap<String, i32>", "BTreeMap::new()", json!({})),
        (
            "BTreeMap<String, i32>",
            "BTreeMap::from([(\"a\".to_string(), 1)])",
            json!({"a": 1}),
        ),
        ("BTreeSet<i32>", "BTreeSet::from([2, 1])", json!([1, 2])),
        ("NonZeroU32", "NonZeroU32::new(3).unwrap()", json!(3)),
        ("[u8; 2]", "[1, 2]", json!([1, 2])),
    ] {
        assert_eq!(of_body(ty, body, ""), expected, "{ty}: {body}");
    }
}

#[test]
fn resolves_names_in_function_bodies() {
    let items = "const PORT: i32 = 1 << 4; const NAME: &str = \"x\"; static LIST: &[i32] = &[1];\n\
                 mod m { pub const DEEP: i32 = super::PORT + 1; pub fn g() -> i32 { DEEP } }\n\
                 pub struct Limits; impl Limits { pub const MAX: i32 = 9; pub fn max() -> i32 { Self::MAX } }";
    for (ty, body, expected) in [
        ("i32", "PORT", json!(16)),
        ("i32", "crate::PORT * 2", json!(32)),
        ("i32", "-PORT", json!(-16)),
        ("String", "NAME.to_string()", json!("x")),
        ("i32", "m::g()", json!(17)),
        ("i32", "Limits::MAX", json!(9)),
        ("i32", "Limits::max()", json!(9)),
        ("Vec<i32>", "LIST.to_vec()", json!([1])),
    ] {
        assert_eq!(of_body(ty, body, items), expected, "{ty}: {body}");
    }
    check(
        "#[serde(default = \"m::port\")] a: i32, #[serde(default = \"Own::port\")] b: i32, \
         #[serde(default = \"imported\")] c: i32",
        "use m::imported; mod m { pub fn port() -> i32 { 1 } pub fn imported() -> i32 { 3 } }\n\
         struct Own; impl Own { fn port() -> i32 { 2 } }",
        json!({"a": 1, "b": 2, "c": 3}),
    );
}

/// Defaults can use these types of the package.
const TYPES: &str = "#[derive(CrdSchema, Serialize, Deserialize, Default)] #[serde(rename_all = \"camelCase\")] \
                     struct Inner { first_name: String, count: Option<i32>, #[serde(skip_serializing_if = \"Vec::is_empty\", default)] list: Vec<i32> }\n\
                     #[derive(CrdSchema, Serialize, Deserialize, Default)] #[serde(rename_all = \"lowercase\")] \
                     enum Level { Low, #[default] Medium, #[serde(rename = \"top\")] High }\n\
                     #[derive(CrdSchema, Serialize, Deserialize)] struct Port(i32);\n\
                     #[derive(CrdSchema, Serialize, Deserialize)] enum Source { Git { url: String }, Port(Port) }\n\
                     #[derive(CrdSchema, Serialize, Deserialize)] #[serde(tag = \"type\")] enum Tagged { None, Some { x: i32 } }\n\
                     impl Default for Port { fn default() -> Self { Self(7) } }";

#[test]
fn evaluates_values_of_own_types() {
    for (ty, body, expected) in [
        ("Level", "Level::High", json!("top")),
        ("Level", "Level::default()", json!("medium")),
        ("Level", "Default::default()", json!("medium")),
        ("Option<Level>", "Some(Level::Low)", json!("low")),
        (
            "Vec<Level>",
            "vec![Level::Low, Level::High]",
            json!(["low", "top"]),
        ),
        ("Port", "Port(3)", json!(3)),
        ("Port", "Port::default()", json!(7)),
        (
            "Inner",
            "Inner { first_name: \"x\".into(), count: None, list: vec![] }",
            json!({"firstName": "x"}),
        ),
        (
            "Inner",
            "Inner { count: Some(1), ..Default::default() }",
            json!({"firstName": "", "count": 1}),
        ),
        ("Inner", "Inner::default()", json!({"firstName": ""})),
        (
            "Source",
            "Source::Git { url: \"x\".into() }",
            json!({"Git": {"url": "x"}}),
        ),
        ("Source", "Source::Port(Port(1))", json!({"Port": 1})),
        ("Tagged", "Tagged::None", json!({"type": "None"})),
        ("Tagged", "Tagged::Some { x: 1 }", json!({"type": "Some", "x": 1})),
    ] {
        assert_eq!(of_body(ty, body, TYPES), expected, "{ty}: {body}");
    }
}

/// The kind derives schemars' `JsonSchema` instead of `CrdSchema`.
fn theirs(fields: &str, items: &str) -> String {
    kind(fields, items).replace("CrdSchema, ", "schemars::JsonSchema, ")
}

fn theirs_in(files: &[(&str, &str)]) -> (Value, Vec<String>) {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    files.iter().for_each(|(path, text)| sources.insert(*path, *text));
    let made = generate(&sources, &Options::default());
    let said = made.diagnostics.iter();
    let errors: Vec<_> = said
        .clone()
        .filter(|said| said.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let crd: Value = serde_saphyr::from_str(&made.files[0].text).expect("YAML");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let warnings = said.filter(|said| said.severity == Severity::Warning);
    (
        of_schema(schema),
        warnings.map(|said| said.message.clone()).collect(),
    )
}

fn check_theirs(fields: &str, items: &str, expected: Value) {
    let (found, warnings) = theirs_in(&[("src/lib.rs", &theirs(fields, items))]);
    assert_eq!(found, expected, "{fields}\n{items}");
    assert_eq!(warnings, [] as [&str; 0], "{fields}\n{items}");
}

#[test]
fn schemars_types_have_all_defaults() {
    check_theirs(
        "#[serde(default)] a: i32, #[serde(default)] b: Vec<String>, #[serde(default)] c: Option<i32>, \
         #[serde(default)] d: Inner, #[serde(default)] e: Level, #[serde(default)] f: BTreeMap<String, String>, \
         #[serde(default, skip_serializing_if = \"Vec::is_empty\")] g: Vec<i32>, \
         #[serde(default, skip_serializing)] h: i32, #[serde(default, skip_deserializing)] i: i32, \
         #[serde(default)] j: serde_json::Value, #[serde(default)] k: Port",
        TYPES,
        json!({"a": 0, "b": [], "d": {"firstName": ""}, "e": "medium", "f": {}, "k": 7}),
    );
    check_theirs(
        "#[serde(default, skip_serializing_if = \"is_zero\")] a: i32, \
         #[serde(default = \"one\", skip_serializing_if = \"is_zero\")] b: i32, \
         #[serde(default, skip_serializing_if = \"is_default\")] c: bool, \
         #[serde(default = \"yes\", skip_serializing_if = \"is_default\")] d: bool, \
         #[serde(default, skip_serializing_if = \"std::ops::Not::not\")] e: bool, \
         #[serde(default, skip_serializing_if = \"is_false\")] f: bool",
        "fn one() -> i32 { 1 } fn yes() -> bool { true } fn is_zero(x: &i32) -> bool { *x == 0 } \
         fn is_default<T: Default + PartialEq>(t: &T) -> bool { t == &T::default() } \
         fn is_false(b: &bool) -> bool { !*b }",
        json!({"b": 1, "d": true}),
    );
    check_theirs(
        "#[serde(default, skip_serializing_if = \"<[_]>::is_empty\")] a: Vec<i32>, \
         #[serde(default, skip_serializing_if = \"Ensure::is_present\")] b: Ensure, \
         #[serde(default = \"absent\", skip_serializing_if = \"Ensure::is_present\")] c: Ensure, \
         #[serde(default, skip_serializing_if = \"is_any\")] d: Ensure, \
         #[serde(default, skip_serializing_if = \"is_gone\")] e: Ensure",
        "#[derive(JsonSchema, Serialize, Deserialize, Default)] enum Ensure { #[default] Present, Absent } \
         impl Ensure { fn is_present(&self) -> bool { matches!(self, Ensure::Present) } } \
         fn absent() -> Ensure { Ensure::Absent } \
         fn is_any(x: &Ensure) -> bool { matches!(*x, Ensure::Absent | Ensure::Present) } \
         fn is_gone(x: &Ensure) -> bool { !matches!(x, Ensure::Present) }",
        json!({"c": "Absent", "e": "Present"}),
    );
}

/// We know the default, but can't tell if serde serializes it.
#[test]
fn reports_predicates_that_need_code() {
    for test in [
        "x.is_odd()",
        "matches!(x, y)",
        "matches!(x, Mode::Fast if f())",
        "matches!(y, Mode::Fast)",
    ] {
        let items = format!(
            "#[derive(JsonSchema, Serialize, Deserialize, Default)] enum Mode {{ #[default] Fast, Slow }} \
             fn is_odd(x: &Mode) -> bool {{ {test} }}"
        );
        let fields = "#[serde(default, skip_serializing_if = \"is_odd\")] a: Mode";
        let (_, warnings) = theirs_in(&[("src/lib.rs", &theirs(fields, &items))]);
        assert_eq!(
            warnings,
            [
                "the default of `a` is unknown, so the schema has none: `is_odd`, which says whether serde writes it, is more than a comparison"
            ],
            "{test}"
        );
    }
}

#[test]
fn container_default_sets_field_defaults() {
    let inner = "#[derive(JsonSchema, Serialize, Deserialize)] #[serde(default)] \
                 struct S { a: i32, b: String, c: Option<i32>, #[serde(default = \"five\")] d: i32 }\n\
                 fn five() -> i32 { 5 }\n\
                 impl Default for S { fn default() -> Self { Self { a: 3, b: \"x\".into(), c: None, d: 4 } } }";
    let (_, warnings) = theirs_in(&[("src/lib.rs", &theirs("s: S", inner))]);
    assert_eq!(warnings, [] as [&str; 0]);
    let schema = support::spec_of(&[("src/lib.rs", &theirs("s: S", inner))]).expect("a schema");
    assert_eq!(
        of_schema(&schema["properties"]["s"]),
        json!({"a": 3, "b": "x", "d": 5})
    );
    let named = inner
        .replace("#[serde(default)]", "#[serde(default = \"whole\")]")
        .replace("JsonSchema", "CrdSchema");
    let named = format!("{named}\nfn whole() -> S {{ S {{ a: 9, ..Default::default() }} }}");
    let schema = spec("s: S", &named).expect("a schema");
    assert_eq!(
        of_schema(&schema["properties"]["s"]),
        json!({"a": 9, "b": "x", "d": 5})
    );
}

#[test]
fn crd_schema_types_have_defaults_from_functions() {
    let fields = "#[serde(default)] a: i32, #[serde(default = \"one\")] b: i32, #[kube(default = 2)] #[serde(default = \"one\")] c: i32";
    let one = "fn one() -> i32 { 1 }";
    check(fields, one, json!({"b": 1, "c": 2}));
    let with = |marker: &str| {
        let source = kind(fields, one).replace("pub struct", &format!("{marker} pub struct"));
        of_schema(&support::spec_of(&[("src/lib.rs", &source)]).expect("a schema"))
    };
    assert_eq!(with("#[crd(serde_defaults)]"), json!({"a": 0, "b": 1, "c": 2}));
    assert_eq!(with("#[crd(serde_defaults = false)]"), json!({"c": 2}));
}

#[test]
fn package_can_disable_serde_defaults() {
    let manifest = format!("{CARGO_TOML}\n[package.metadata.rbuilder]\nserde-defaults = false\n");
    let lib = theirs("#[serde(default = \"one\")] a: i32", "fn one() -> i32 { 1 }");
    let (found, warnings) = theirs_in(&[("Cargo.toml", &manifest), ("src/lib.rs", &lib)]);
    assert_eq!(found, json!({}));
    assert_eq!(warnings, [] as [&str; 0]);
}

/// If a function serializes the field, we only know the result when it is `null`.
#[test]
fn defaults_with_custom_serializer() {
    let items = "#[derive(Serialize, Deserialize)] struct Foreign { a: std::net::TcpStream } \
                 fn five() -> i32 { 5 } fn foreign() -> Foreign { make() } \
                 fn half_minute() -> Duration { Duration::from_secs(30) }";
    check_theirs(
        "#[serde(default = \"five\", deserialize_with = \"f\")] #[schemars(with = \"i32\")] a: i32, \
         #[serde(default, with = \"m\")] #[schemars(with = \"Option<String>\")] b: Option<Duration>, \
         #[serde(default = \"five\", with = \"m\", skip_serializing_if = \"is_five\")] #[schemars(with = \"String\")] c: i32, \
         #[serde(default = \"five\", with = \"m\")] #[schemars(with = \"String\", extend(\"default\" = \"5\"))] d: i32",
        &format!("{items} fn is_five(x: &i32) -> bool {{ *x == 5 }}"),
        json!({"a": 5, "d": "5"}),
    );
    for field in [
        "#[serde(default = \"half_minute\", with = \"m\")] #[schemars(with = \"String\")] a: Duration",
        "#[serde(default = \"five\", with = \"m\")] #[schemars(with = \"String\")] a: i32",
        "#[serde(default, serialize_with = \"f\")] #[schemars(with = \"String\")] a: i32",
        "#[serde(default = \"foreign\", serialize_with = \"f\")] #[schemars(with = \"String\")] a: Foreign",
    ] {
        let (found, warnings) = theirs_in(&[("src/lib.rs", &theirs(field, items))]);
        assert_eq!(found, json!({}), "{field}");
        assert_eq!(
            warnings,
            [
                "the default of `a` is unknown, so the schema has none: a function serializes it, which rbuilder does not run"
            ],
            "{field}"
        );
    }
}

/// If another schema replaces the type, errors in its default don't matter.
#[test]
fn replaced_types_need_no_default() {
    let items = "#[derive(schemars::JsonSchema, Serialize, Deserialize, Default)] struct Part { #[serde(with = \"m\")] a: i32 } \
                 #[derive(schemars::JsonSchema, Serialize, Deserialize, Default)] struct Outer { part: Part } \
                 fn made(_: &mut schemars::SchemaGenerator) -> schemars::Schema { \
                     json_schema!({ \"type\": \"array\", \"items\": { \"type\": \"string\" } }) }";
    check_theirs(
        "#[serde(default)] #[schemars(schema_with = \"made\")] a: Vec<Part>, \
         #[serde(default)] #[schemars(with = \"Vec<String>\")] b: Vec<Outer>",
        items,
        json!({"a": [], "b": []}),
    );
}

#[test]
fn warns_about_unknown_default() {
    for (ty, body) in [
        ("i32", "std::process::id() as i32"),
        ("String", "format!(\"{}\", 1)"),
        ("String", "std::env::var(\"X\").unwrap_or_default()"),
        ("i32", "let x = 1; x"),
        ("i32", "if true { 1 } else { 2 }"),
        ("i32", "g(1)"),
        ("i32", "f()"),
        ("String", "Level::Low.to_string()"),
    ] {
        let items = format!("fn f() -> {ty} {{ {body} }} fn g(x: i32) -> i32 {{ x }}\n{TYPES}");
        let source = kind(&format!("#[serde(default = \"f\")] a: {ty}"), &items);
        let found = warnings(&[("src/lib.rs", &source)]);
        assert_eq!(
            found,
            [
                "the default of `a` is unknown, so the schema has none: `f` cannot be evaluated without running the program"
            ],
            "{body}"
        );
    }
    // We can't tell which of the two functions is compiled.
    let items = "#[cfg(windows)] fn f() -> i32 { 1 } #[cfg(custom)] fn f() -> i32 { 2 }";
    let source = kind("#[serde(default = \"f\")] a: i32", items);
    assert_eq!(warnings(&[("src/lib.rs", &source)]).len(), 1);
}

#[test]
fn warns_about_default_that_violates_schema() {
    let source = kind(
        "#[kube(validation(minimum = 1))] #[serde(default = \"zero\")] a: i32",
        "fn zero() -> i32 { 0 }",
    );
    assert_eq!(
        warnings(&[("src/lib.rs", &source)]),
        ["the schema refuses serde's default of this field, so it has none: 0 is less than the minimum 1"]
    );
    check(
        "#[kube(validation(minimum = 1))] #[serde(default = \"zero\")] a: i32, b: i32",
        "fn zero() -> i32 { 0 }",
        json!({}),
    );
}

#[test]
fn fields_that_get_no_default() {
    let one = "fn one() -> i32 { 1 } fn some() -> Option<i32> { Some(1) }";
    // If the field had a default, a rule that counts fields would find it in every object.
    let counted = kind("#[serde(default = \"some\")] a: Option<i32>, b: Option<i32>", one)
        .replace("pub struct", "#[crd(at_most_one_of(a, b))] pub struct");
    let schema = support::spec_of(&[("src/lib.rs", &counted)]).expect("a schema");
    assert_eq!(of_schema(&schema), json!({}));
    // The fields of all variants are in the same object.
    for (tagging, expected) in [
        ("", json!({"A": {"x": 1}})),
        ("#[serde(tag = \"t\")]", json!({})),
        ("#[serde(untagged)]", json!({})),
    ] {
        let items = format!(
            "{one}\n#[derive(CrdSchema, Serialize, Deserialize)] {tagging} enum E {{ A {{ #[serde(default = \"one\")] x: i32, y: i32 }}, B(S) }}\n\
             #[derive(CrdSchema, Serialize, Deserialize)] struct S {{ #[serde(default = \"one\")] z: i32, w: i32 }}"
        );
        let schema = spec("e: E", &items).expect("a schema");
        let e = &schema["properties"]["e"];
        assert_eq!(of_schema(e), json!({}), "{tagging}");
        if !tagging.is_empty() {
            continue;
        }
        assert_eq!(json!({"A": of_schema(&e["properties"]["A"])}), expected);
    }
    // The type argument may have no serialized form.
    check(
        "p: Page<i32>",
        "#[derive(CrdSchema, Serialize, Deserialize)] struct Page<T: Default> { #[serde(default = \"Vec::new\")] items: Vec<T> }",
        json!({}),
    );
}

#[test]
fn list_map_key_may_have_default() {
    let schema = spec(
        "#[kube(list_type = \"map\", list_map_keys = [\"name\"])] list: Vec<Item>",
        "#[derive(CrdSchema, Serialize, Deserialize)] struct Item { #[serde(default = \"main\")] name: String }\n\
         fn main() -> String { \"main\".into() }",
    )
    .expect("a schema");
    assert_eq!(
        of_schema(&schema["properties"]["list"]["items"]),
        json!({"name": "main"})
    );
}

#[test]
fn rules_of_optional_flattened_value_check_fields_without_default() {
    let schema = spec(
        "#[serde(flatten)] f: Option<F>",
        "#[derive(CrdSchema, Serialize, Deserialize)] #[kube(cel(rule = \"self.a > self.b\", message = \"no\"))] \
         struct F { a: i32, #[serde(default = \"one\")] b: i32 } fn one() -> i32 { 1 }",
    )
    .expect("a schema");
    assert_eq!(
        schema["x-kubernetes-validations"][0]["rule"],
        json!("!(has(self.a)) || (self.a > self.b)")
    );
}

#[test]
fn uses_default_of_schemars_attribute() {
    check_theirs(
        "#[schemars(default = \"two\")] a: i32, #[schemars(default = \"two\")] #[serde(default)] b: i32",
        "fn two() -> i32 { 2 }",
        json!({"a": 2, "b": 2}),
    );
    let schema = spec(
        "#[schemars(default = \"two\")] a: i32, b: i32",
        "fn two() -> i32 { 2 }",
    )
    .expect("a schema");
    assert_eq!(schema["required"], json!(["b"]));
}

#[test]
fn follows_imports_of_path_dependencies() {
    let lib = format!(
        "{PRELUDE}#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]\n\
         pub struct TestSpec {{ #[serde(default = \"shared::values::port\")] a: i32, b: shared::api::Thing }}"
    );
    let manifest = format!("{CARGO_TOML}\nshared = {{ path = \"shared\" }}\n");
    let files = [
        ("Cargo.toml", manifest.as_str()),
        ("src/lib.rs", &lib),
        (
            "shared/Cargo.toml",
            "[package]\nname = \"shared\"\nedition = \"2024\"\n",
        ),
        (
            "shared/src/lib.rs",
            "pub mod api; pub mod values; pub mod consts;",
        ),
        (
            "shared/src/api.rs",
            "#[derive(rbuilder::CrdSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]\n\
             pub struct Thing { #[serde(default = \"crate::values::port\")] pub c: i32 }",
        ),
        (
            "shared/src/values.rs",
            "use crate::consts::PORT; pub fn port() -> i32 { PORT }",
        ),
        ("shared/src/consts.rs", "pub const PORT: i32 = 80;"),
    ];
    let (found, warnings) = theirs_in(&files);
    assert_eq!(warnings, [] as [&str; 0]);
    assert_eq!(found, json!({"a": 80}));
}

#[test]
fn warns_about_rule_on_unknown_default() {
    let unknown = "fn f() -> i32 { g() }";
    let message = "the rule reads `self.a`, to which serde gives a default that the schema does not have: the API server refuses an object without the field";
    let with = |rule: &str, items: &str| {
        let source = kind("#[serde(default = \"f\")] a: i32, b: i32", items).replace(
            "pub struct",
            &format!("#[crd(cel(rule = \"{rule}\", message = \"no\"))] pub struct"),
        );
        warnings(&[("src/lib.rs", &source)])
    };
    assert!(with("self.a > 1", unknown).contains(&message.to_owned()));
    assert!(with("self.b > self.a", unknown).contains(&message.to_owned()));
    for (rule, items) in [
        ("!has(self.a) || self.a > 1", unknown),
        ("self.b > 1", unknown),
        ("self.a > 1", "fn f() -> i32 { 3 }"),
    ] {
        let found = with(rule, items);
        assert!(!found.contains(&message.to_owned()), "{rule}: {found:?}");
    }
}
