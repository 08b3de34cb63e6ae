//! Follows the values in markers from the source to the manifest, i.e. defaults, enums and `null`.

use rbuilder_generator::{Options, SourceSet, generate};

const CARGO_TOML: &str = "[package]\nname = \"a\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nk8s-openapi = { \
                          version = \"0.29\", features = [\"v1_37\"] }\n";

/// The messages are returned if there is no manifest.
fn manifest(fields: &str, attributes: &str) -> Result<String, Vec<String>> {
    let source = format!(
        "#[derive(CustomResource, CrdSchema, Serialize, Deserialize)]\n#[kube(group = \"example.com\", version = \"v1\", \
         kind = \"Foo\")]\n{attributes}\npub struct FooSpec {{\n{fields}\n}}\n\n#[derive(CrdSchema, Serialize, \
         Deserialize)]\npub enum Letter {{ A, B }}\n\n#[derive(CrdSchema, Serialize, Deserialize)]\n#[crd(exactly_one_of(a, \
         b))]\npub struct Either {{ a: Option<String>, b: Option<String> }}\n"
    );
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    sources.insert("src/lib.rs", source.as_str());
    let output = generate(&sources, &Options::default());
    let messages: Vec<_> = output.diagnostics.into_iter().map(|told| told.message).collect();
    match output.files.into_iter().find(|file| file.path.contains("crd")) {
        Some(file) if messages.is_empty() => Ok(file.text),
        _ => Err(messages),
    }
}

fn refused(field: &str, message: &str) {
    assert_eq!(manifest(field, ""), Err(vec![message.to_owned()]), "{field}");
}

fn written(field: &str, attributes: &str, parts: &[&str]) {
    let manifest = manifest(field, attributes).unwrap_or_else(|messages| panic!("{field}: {messages:?}"));
    for part in parts {
        assert!(manifest.contains(part), "{field}: no `{part}` in\n{manifest}");
    }
}

#[test]
fn checks_defaults_of_nested_types() {
    refused(
        "#[kube(default = \"yesterday\")]\npub at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,",
        "invalid default: \"yesterday\" is not a valid `date-time`, such as \"2024-01-31T12:00:00Z\"",
    );
    refused(
        "#[kube(default = \"1.2.3\")]\npub address: std::net::Ipv4Addr,",
        "invalid default: \"1.2.3\" does not match the pattern `^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$`",
    );
    refused(
        "#[kube(default = { \"a\": \"x\", \"b\": \"y\" })]\npub either: Either,",
        "invalid default: exactly one of the fields in [a b] must be set",
    );
    refused(
        "#[kube(default = [\"x\", \"x\"])]\npub names: std::collections::BTreeSet<String>,",
        "invalid default: duplicate item \"x\" in a set",
    );
    written(
        "#[kube(default = { \"a\": \"x\" })]\npub either: Either,",
        "",
        &["default:\n                  a: x"],
    );
}

#[test]
fn null_is_allowed_where_the_server_accepts_it() {
    let nullable = "allOf:\n                - enum:\n                  - A\n                  - B\n                nullable: true";
    written("#[kube(nullable)]\npub letter: Option<Letter>,", "", &[nullable]);
    written(
        "pub letters: Vec<Option<Letter>>,",
        "",
        &["allOf:", "nullable: true"],
    );
    written(
        "#[kube(nullable, validation(enum = [\"A\", \"B\", null]))]\npub letter: Option<String>,",
        "",
        &[nullable],
    );
    written(
        "#[kube(nullable, default = null)]\npub text: Option<String>,",
        "",
        &["nullable: true"],
    );
    // An explicit schema is used as it is.
    refused(
        "#[kube(schema = { \"type\": \"string\", \"nullable\": true, \"enum\": [\"A\", \"B\", null] })]\n\
         pub letter: Option<String>,",
        "`null` is rejected: the API server finds it in no `enum`",
    );
}

/// The API server would reject the whole CRD as well, but we only report the cause.
#[test]
fn reports_invalid_explicit_schema_once() {
    for (written, message) in [
        (
            "{ \"type\": \"array\" }",
            "invalid schema: a list needs a schema for its items",
        ),
        (
            "{ \"type\": \"object\", \"properties\": { \"a\": {} } }",
            "invalid schema at `.a`: the value has no type",
        ),
    ] {
        refused(
            &format!("#[kube(schema = {written})]\npub field: Letter,"),
            message,
        );
        refused(
            &format!("#[kube(items(schema = {written}))]\npub field: Vec<Letter>,"),
            message,
        );
        let of_type = manifest("", &format!("#[crd(schema = {written})]"));
        assert_eq!(of_type, Err(vec![message.to_owned()]));
    }
    // The rest of the kind is still checked.
    let others = "#[kube(schema = {})]\npub field: Letter,\n#[kube(items(nullable), list_type = \"set\")]\npub set: Vec<Option<i32>>,";
    let items = "`.spec.set` would be rejected by the API server: items of a list of type `set` or `map` must not be `null`";
    assert_eq!(
        manifest(others, ""),
        Err(vec![
            items.to_owned(),
            "invalid schema: the value has no type".to_owned()
        ])
    );
}

/// If a marker is wrong, we don't report what follows from that for the schema.
#[test]
fn reports_marker_error_once() {
    let crossed = "#[kube(validation(minimum = 5, maximum = 3))]";
    let newtype = |of_type: &str, of_field: &str| {
        format!(
            "pub small: Small,\n}}\n\n#[derive(CrdSchema, Serialize, Deserialize)]\n{of_type}\npub struct Small({of_field} u8);\n\n\
             pub struct Other {{"
        )
    };
    for (field, message) in [
        (
            "#[kube(validation(minimum = 5, maximum = 3))]\npub a: i32,".to_owned(),
            "`minimum` 5 is greater than `maximum` 3",
        ),
        (
            "#[kube(validation(max_length = 5))]\npub a: i32,".to_owned(),
            "`max_length` applies to strings; this field is an integer",
        ),
        (
            "#[kube(validation(enum = [1]))]\npub a: String,".to_owned(),
            "expected a string in `enum`, found 1",
        ),
        (
            "#[kube(validation(enum = \"A\"))]\npub a: String,".to_owned(),
            "expected a list for `enum`",
        ),
        (
            "#[kube(cel(rule = \" \"))]\npub a: String,".to_owned(),
            "the rule is empty",
        ),
        (
            "#[kube(cel(rule = \"self != ''\", field_path = \"name\"))]\npub a: String,".to_owned(),
            "invalid field path `name`",
        ),
        (newtype(crossed, ""), "`minimum` 5 is greater than `maximum` 3"),
        (newtype("", crossed), "`minimum` 5 is greater than `maximum` 3"),
    ] {
        refused(&field, message);
    }
    let refused_kind = |attributes: &str, message: &str| {
        assert_eq!(
            manifest("pub a: Option<i32>,", attributes),
            Err(vec![message.to_owned()])
        );
    };
    refused_kind(
        "#[crd(exactly_one_of())]",
        "`exactly_one_of` requires at least two fields",
    );
    refused_kind(
        "#[crd(root_schema = { \"nullable\": true })]",
        "`root_schema` cannot have `nullable`",
    );
    refused_kind(
        "#[kube(printcolumn(name = \"A\", type_ = \"integer\", JSONPath = \".spec.a\"))]",
        "unknown argument `JSONPath` of `printcolumn`",
    );
}

#[test]
fn keeps_alternatives_from_schemars() {
    let one_of =
        "oneOf:\n            - required:\n              - a\n            - required:\n              - b";
    written(
        "pub a: Option<String>,\npub b: Option<String>,",
        "#[schemars(extend(\"oneOf\" = [{ \"required\": [\"a\"] }, { \"required\": [\"b\"] }]))]",
        &[one_of],
    );
}
