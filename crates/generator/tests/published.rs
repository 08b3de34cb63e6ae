//! Published kube projects use features that scaffolded projects don't.

use crate::support;

use rbuilder_generator::{Options, Severity, SourceSet, generate};
use serde_json::{Value, json};
use support::{CARGO_TOML, PRELUDE, kind, run, spec, spec_of, warnings};

/// `keys` are additional kube attributes. The kind derives schemars' `JsonSchema`.
fn theirs(derive: &str, keys: &str, fields: &str, items: &str) -> String {
    format!(
        "{PRELUDE}use schemars::JsonSchema;\n\
         #[derive(CustomResource, {derive}, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\" {keys})]\n\
         pub struct TestSpec {{ {fields} }}\n{items}"
    )
}

/// The source must result in a single CRD.
fn crd(source: &str) -> Value {
    let made = run(&[("src/lib.rs", source)]);
    let said: Vec<_> = made.diagnostics.iter().map(|said| &said.message).collect();
    let file = made.files.iter().find(|file| file.path.starts_with("crd/"));
    let file = file.unwrap_or_else(|| panic!("{source}\n{said:?}"));
    serde_saphyr::from_str(&file.text).expect("YAML")
}

#[test]
fn parses_several_columns_in_one_key() {
    let keys = r##", printcolumn = r#"{"name":"A", "type":"string", "jsonPath":".spec.a"}, {"name":"B", "type":"integer", "jsonPath":".spec.b", "priority": 1}"#"##;
    let crd = crd(&theirs("JsonSchema", keys, "a: String, b: i32", ""));
    assert_eq!(
        crd["spec"]["versions"][0]["additionalPrinterColumns"],
        json!([
            {"jsonPath": ".spec.a", "name": "A", "type": "string"},
            {"jsonPath": ".spec.b", "name": "B", "type": "integer", "priority": 1},
        ])
    );
    let broken =
        r##", printcolumn = r#"{"name":"A", "type":"string", "jsonPath":".spec.a"}, {"name":"B"}"#"##;
    let made = run(&[("src/lib.rs", &theirs("JsonSchema", broken, "a: String", ""))]);
    assert!(
        made.diagnostics
            .iter()
            .any(|said| said.message.starts_with("invalid JSON in `printcolumn`"))
    );
}

/// kube drops `scale` as well, so such projects work without it.
#[test]
fn drops_scale_without_status() {
    let keys = r#", scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.size")"#;
    let source = theirs("JsonSchema", keys, "size: i32", "");
    assert_eq!(crd(&source)["spec"]["versions"][0]["subresources"], Value::Null);
    assert_eq!(warnings_of(&source), ["`scale` has no effect without a status"]);
    let ours = theirs("CrdSchema", keys, "size: i32", "");
    assert!(run(&[("src/lib.rs", &ours)]).files.is_empty());
}

#[test]
fn accepts_rules_of_kube_0_98() {
    let source = theirs(
        "CELSchema",
        ", rule = Rule::new(\"self.metadata.name != 'x'\")",
        "#[cel_validate(rule = Rule::new(\"self > 0\").message(\"positive\"), rule = (\"self < 9\", \"small\").into())] a: i32, inner: Inner",
        "#[derive(CELSchema, Serialize, Deserialize)] #[cel_validate(rule = Rule::new(\"self.x > 1\"))] struct Inner { x: i32 }",
    );
    let crd = crd(&source);
    let root = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(
        root["x-kubernetes-validations"],
        json!([{"rule": "self.metadata.name != 'x'"}])
    );
    let fields = &root["properties"]["spec"]["properties"];
    assert_eq!(
        fields["a"]["x-kubernetes-validations"],
        json!([{"rule": "self > 0", "message": "positive"}, {"rule": "self < 9", "message": "small"}])
    );
    assert_eq!(
        fields["inner"]["x-kubernetes-validations"],
        json!([{"rule": "self.x > 1"}])
    );
}

#[test]
fn knows_types_of_common_crates() {
    let manifest = format!("{CARGO_TOML}\nipnet = \"2\"\nordered-float = \"4\"\n");
    let source = kind(
        "a: ipnet::IpNet, b: ipnet::Ipv4Net, c: ordered_float::OrderedFloat<f64>, d: Option<ordered_float::NotNan<f32>>",
        "",
    );
    let schema = spec_of(&[("Cargo.toml", &manifest), ("src/lib.rs", &source)]).expect("a schema");
    assert_eq!(
        schema["properties"],
        json!({
            "a": {"type": "string", "format": "cidr"},
            "b": {"type": "string", "format": "cidr"},
            "c": {"type": "number", "format": "double"},
            "d": {"type": "number", "format": "float"},
        })
    );
}

#[test]
fn enums_as_maps_with_one_key() {
    let items = "#[derive(CrdSchema, Serialize, Deserialize)] enum E { A { x: i32 }, B { y: i32 } }";
    let plain = spec("a: E", items).expect("a schema");
    for path in [
        "serde_yaml::with::singleton_map",
        "serde_yaml_ng::with::singleton_map_recursive",
    ] {
        let schema = spec(&format!("#[serde(with = \"{path}\")] a: E"), items).expect("a schema");
        assert_eq!(schema, plain, "{path}");
    }
    assert!(spec("#[serde(with = \"other\")] a: E", items).is_err());
}

#[test]
fn parameters_with_defaults() {
    let source = format!(
        "{PRELUDE}#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]\n\
         pub struct TestSpec<T = i32, L = Vec<T>> {{ a: T, b: L }}"
    );
    let schema = spec_of(&[("src/lib.rs", &source)]).expect("a schema");
    assert_eq!(
        schema["properties"],
        json!({
            "a": {"type": "integer", "format": "int32"},
            "b": {"type": "array", "items": {"type": "integer", "format": "int32"}},
        })
    );
}

#[test]
fn enums_with_serde_repr() {
    let items = "#[derive(JsonSchema_repr, Serialize_repr, Deserialize_repr)] #[repr(u8)] enum E { A = 1, B, C = 1 << 3 }";
    let schema = spec_of(&[("src/lib.rs", &theirs("JsonSchema", "", "a: E", items))]).expect("a schema");
    assert_eq!(
        schema["properties"]["a"],
        json!({"type": "integer", "format": "int32", "enum": [1, 2, 8]})
    );
    let field = "#[serde(default = \"E::b\")] a: E, #[serde(default)] b: E";
    let with_default = items
        .replace("Deserialize_repr)]", "Deserialize_repr, Default)]")
        .replace("B,", "#[default] B,");
    let source = theirs(
        "JsonSchema",
        "",
        field,
        &format!("{with_default} impl E {{ fn b() -> E {{ E::B }} }}"),
    );
    let schema = spec_of(&[("src/lib.rs", &source)]).expect("a schema");
    assert_eq!(
        [
            &schema["properties"]["a"]["default"],
            &schema["properties"]["b"]["default"]
        ],
        [&json!(2), &json!(2)]
    );
    // `derive(CrdSchema)` can't see other derives.
    let ours = items.replace("JsonSchema_repr", "CrdSchema");
    assert!(spec("a: E", &ours).is_err());
    let unknown = items.replace("1 << 3", "EIGHT");
    assert!(spec_of(&[("src/lib.rs", &theirs("JsonSchema", "", "a: E", &unknown))]).is_err());
}

/// Each version is given with its attributes.
fn versions(list: &[(&str, &str)], rest: &str) -> SourceSet {
    let mut lib = String::new();
    for (position, (version, keys)) in list.iter().enumerate() {
        lib += &format!(
            "pub mod m{position} {{ {PRELUDE} #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
             #[kube(group = \"g.example.com\", version = \"{version}\", kind = \"Test\" {keys})]\n\
             pub struct TestSpec {{ a: i32 }} }}\n"
        );
    }
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    sources.insert("src/lib.rs", lib + rest);
    sources
}

/// Returns the storage version, and the diagnostic about it with its severity.
fn stored(list: &[(&str, &str)], rest: &str) -> (Vec<String>, Option<(Severity, String)>) {
    let made = generate(&versions(list, rest), &Options::default());
    let said = made
        .diagnostics
        .iter()
        .find(|said| said.message.contains("storage version"));
    let said = said.map(|said| (said.severity, said.message.clone()));
    let Some(file) = made.files.first() else {
        return (Vec::new(), said);
    };
    let crd: Value = serde_saphyr::from_str(&file.text).expect("YAML");
    let versions = crd["spec"]["versions"].as_array().expect("versions");
    let stored = versions.iter().filter(|version| version["storage"] == true);
    let names = stored.map(|version| version["name"].as_str().unwrap_or_default().to_owned());
    (names.collect(), said)
}

#[test]
fn chooses_storage_version() {
    let merge = "fn crd() { kube::core::crd::merge_crds(vec![m0::Test::crd(), m1::Test::crd()], \"v1beta1\").unwrap(); }";
    let check = |list: &[(&str, &str)], rest: &str, version: &str, expected: Option<(Severity, &str)>| {
        let expected = expected.map(|(severity, why)| {
            let message =
                format!("several versions of `Test` could be the storage version; it is `{version}`, {why}");
            (severity, message)
        });
        assert_eq!(
            stored(list, rest),
            (vec![version.to_owned()], expected),
            "{list:?}"
        );
    };
    let highest = Some((Severity::Warning, "the highest by Kubernetes' order of versions"));
    check(&[("v1beta1", ""), ("v1", "")], "", "v1", highest);
    check(&[("v1beta1", ""), ("v1alpha1", "")], "", "v1beta1", highest);
    let merged = Some((Severity::Note, "as passed to `merge_crds`"));
    check(&[("v1beta1", ""), ("v1", "")], merge, "v1beta1", merged);
    let written = Some((Severity::Note, "which says `storage = true`"));
    check(
        &[("v1beta1", ", storage = true"), ("v1", "")],
        "",
        "v1beta1",
        written,
    );
    check(&[("v1beta1", ", storage = false"), ("v1", "")], "", "v1", None);
    let (versions, said) = stored(&[("v1beta1", ", storage = true"), ("v1", ", storage = true")], "");
    let twice = "`Test` has two storage versions, `v1` and `v1beta1`".to_owned();
    assert_eq!((versions, said), (Vec::new(), Some((Severity::Error, twice))));
}

#[test]
fn keeps_metadata_that_kube_keeps() {
    let fields = "template: k8s_openapi::api::core::v1::PodTemplateSpec, meta: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta, \
                  more: Vec<k8s_openapi::api::core::v1::PodTemplateSpec>";
    let schema = spec_of(&[("src/lib.rs", &theirs("JsonSchema", "", fields, ""))]).expect("a schema");
    for metadata in [
        &schema["properties"]["template"]["properties"]["metadata"],
        &schema["properties"]["meta"],
        &schema["properties"]["more"]["items"]["properties"]["metadata"],
    ] {
        let names: Vec<_> = metadata["properties"]
            .as_object()
            .expect("fields")
            .keys()
            .collect();
        assert_eq!(names.len(), 15, "{names:?}");
        assert_eq!(
            metadata["properties"]["labels"],
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        );
    }
    let dropped = |message: &String| message.contains("drops the labels");
    let source = theirs("JsonSchema", "", fields, "");
    assert!(!warnings(&[("src/lib.rs", &source)]).iter().any(dropped));
    // With `derive(CrdSchema)`, a marker keeps the metadata. We warn about each field without one.
    let ours: Vec<_> = warnings(&[("src/lib.rs", &kind(fields, ""))])
        .into_iter()
        .filter(dropped)
        .collect();
    assert_eq!(
        ours,
        [
            "the API server drops the labels and annotations in `.spec.more[].metadata`",
            "the API server drops the labels and annotations in `.spec.template.metadata`",
        ]
    );
}

/// Users can say that they don't need the metadata. A marker on the field wins over one on its
/// type.
#[test]
fn marker_can_drop_metadata() {
    let template = "#[derive(CrdSchema)] pub struct Template {\n\
        #[crd(embedded_object_meta = false)] metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,\n}";
    let pods = "Vec<k8s_openapi::api::core::v1::PodTemplateSpec>";
    for (field, warned) in [
        (format!("template: {pods}"), 1),
        (format!("#[crd(embedded_object_meta)] template: {pods}"), 0),
        (
            format!("#[crd(embedded_object_meta = false)] template: {pods}"),
            0,
        ),
        ("template: Template".to_owned(), 0),
    ] {
        let said = warnings(&[("src/lib.rs", &kind(&field, template))]);
        let dropped = said.iter().filter(|message| message.contains("drops the labels"));
        assert_eq!(dropped.count(), warned, "{field}: {said:?}");
    }
    let source = kind("#[crd(embedded_object_meta)] template: Template", template);
    let schema = spec_of(&[("src/lib.rs", &source)]).expect("a schema");
    let metadata = &schema["properties"]["template"]["properties"]["metadata"];
    assert_eq!(metadata["properties"]["name"], json!({"type": "string"}));
}

/// A status has objects of another kind, in the struct that kube generates.
#[test]
fn fields_with_whole_objects() {
    let inner = |keys: &str| {
        format!(
            "#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
            #[kube(group = \"foreign.k8s.io\", version = \"v1\", kind = \"Inner\", root = \"InnerObject\", status = \"InnerStatus\" {keys})]
            pub struct InnerSpec {{ size: i32 }}
            #[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)] pub struct InnerStatus {{ ready: bool }}"
        )
    };
    let fields = "one: InnerObject, more: Vec<InnerObject>, none: Option<InnerObject>";
    let source = theirs("JsonSchema", "", fields, &inner(""));
    let manifest = format!("{CARGO_TOML}[package.metadata.rbuilder]\nonly = [\"Test\"]\n");
    let schema = spec_of(&[("Cargo.toml", &manifest), ("src/lib.rs", &source)]).expect("a schema");
    assert_eq!(schema["required"], json!(["more", "one"]));
    for object in [
        &schema["properties"]["one"],
        &schema["properties"]["more"]["items"],
        &schema["properties"]["none"],
    ] {
        let fields = &object["properties"];
        assert_eq!(object["required"], json!(["metadata", "spec"]));
        assert_eq!(fields["spec"]["properties"]["size"]["type"], "integer");
        assert_eq!(fields["status"]["properties"]["ready"]["type"], "boolean");
        assert_eq!(fields["apiVersion"]["type"], "string");
        assert_eq!(fields["metadata"]["properties"]["labels"]["type"], "object");
    }
    // With `derive(CrdSchema)`, we also get the schema of the whole object. Other structs have no
    // schema.
    let ours = kind(
        "one: InnerObject",
        &format!("use schemars::JsonSchema; {}", inner("")),
    );
    let none = theirs(
        "JsonSchema",
        "",
        "one: InnerObject",
        &inner(", schema = \"disabled\""),
    );
    let of_itself = theirs("JsonSchema", "", "one: Box<Test>", "");
    for (source, expected) in [
        (
            ours,
            "whole object that kube generates from `InnerSpec`, whose schema has no `metadata`",
        ),
        (
            none,
            "whole object that kube generates from `InnerSpec`, which has no schema",
        ),
        (of_itself, "the type contains itself"),
    ] {
        let said = spec_of(&[("Cargo.toml", &manifest), ("src/lib.rs", &source)]).expect_err(expected);
        assert!(
            said.iter().any(|(message, _)| message.contains(expected)),
            "{said:?}"
        );
    }
}

/// strum generates such an enum from the variants of another one.
#[test]
fn discriminants_of_enums() {
    let items = |attrs: &str, variants: &str| {
        format!(
            "#[derive(Clone, Debug, Serialize, Deserialize, strum_macros::EnumDiscriminants)]
            {attrs}
            #[serde(tag = \"type\")]
            pub enum Queue {{
                {variants}
            }}"
        )
    };
    let fields = |ty: &str, attrs: &str, variants: &str| {
        let source = theirs("JsonSchema", "", &format!("a: {ty}"), &items(attrs, variants));
        spec_of(&[("src/lib.rs", &source)]).map(|schema| schema["properties"]["a"].clone())
    };
    let derives = "#[strum_discriminants(derive(Serialize, Deserialize, JsonSchema))]";
    let variants = "/// Amazon.\n Sqs(Unread), #[serde(rename = \"other\")] RedisPubSub { x: i32 }, \
                    #[strum_discriminants(schemars(skip))] #[serde(other)] Unknown,";
    let found = fields(
        "QueueDiscriminants",
        &format!("{derives} #[strum_discriminants(serde(rename_all = \"SCREAMING_SNAKE_CASE\"))]"),
        variants,
    );
    let found = found.expect("a schema");
    assert_eq!(found["enum"], json!(["SQS", "REDIS_PUB_SUB"]));
    assert_eq!(found["description"], "- SQS: Amazon.");
    let one = "#[strum_discriminants(vis(pub(crate)), name(QueueKind), derive(Serialize, Deserialize, JsonSchema), serde(rename_all = \"kebab-case\"))]";
    let found = fields("Vec<QueueKind>", one, variants).expect("a schema");
    assert_eq!(found["items"]["enum"], json!(["sqs", "redis-pub-sub"]));
    let none = fields("QueueDiscriminants", "", variants).expect_err("no schema");
    assert_eq!(none[0].0, "`QueueDiscriminants` does not derive a schema");
    // The original enum stays as it is.
    let own = fields("Queue", derives, variants).expect_err("no schema");
    assert_eq!(own[0].0, "`Queue` does not derive a schema");
}

/// The kind is in a path dependency, of which we only read the parts that we need.
#[test]
fn fields_with_whole_objects_of_other_packages() {
    let source = theirs("JsonSchema", "", "one: api::Inner", "");
    let manifest = CARGO_TOML.replace("[dependencies]", "[dependencies]\napi = { path = \"api\" }");
    let files = [
        ("Cargo.toml", manifest.as_str()),
        ("src/lib.rs", &source),
        (
            "api/Cargo.toml",
            "[package]\nname = \"api\"\nedition = \"2024\"\n",
        ),
        ("api/src/lib.rs", "mod inner; mod size; pub use inner::Inner;"),
        (
            "api/src/inner.rs",
            "#[derive(CustomResource, JsonSchema)] #[kube(group = \"g.k8s.io\", version = \"v1\", kind = \"Inner\", status = \"crate::size::Size\")] \
             pub struct InnerSpec { size: crate::size::Size }",
        ),
        (
            "api/src/size.rs",
            "#[derive(JsonSchema, Serialize, Deserialize)] pub struct Size { x: i32 }",
        ),
    ];
    let schema = spec_of(&files).expect("a schema");
    let object = &schema["properties"]["one"]["properties"];
    for size in [&object["spec"]["properties"]["size"], &object["status"]] {
        assert_eq!(size["properties"]["x"]["type"], "integer");
    }
}

/// If a program disables the schema of a kind, it may set another one.
#[test]
fn warns_about_disabled_schema() {
    let said = warnings_of(&theirs("JsonSchema", ", schema = \"disabled\"", "a: String", ""));
    let expected =
        "`Test::crd()` has no schema because of `schema = \"disabled\"`; this CRD has the schema of the type";
    assert_eq!(said, [expected]);
    let ours = theirs("CrdSchema", ", schema = \"disabled\"", "a: String", "");
    assert_eq!(warnings_of(&ours), [""; 0]);
}

fn warnings_of(source: &str) -> Vec<String> {
    let made = run(&[("src/lib.rs", source)]);
    let warnings = made
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Warning);
    warnings.map(|said| said.message.clone()).collect()
}
