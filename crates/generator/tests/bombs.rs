//! Tests with small sources that describe huge schemas. Each is reported at the type, and takes no
//! more time and memory than an ordinary run.

use std::fmt::Write as _;

use rbuilder_generator::{Generated, Options, SourceSet, generate};

const LEVELS: usize = 24;

const DERIVES: &str = "#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\n";

/// `items` are added after the kind.
fn run(fields: &str, items: &str) -> Generated {
    run_source(&format!(
        "use kube::CustomResource;\nuse rbuilder::CrdSchema;\nuse serde::{{Deserialize, Serialize}};\n\
         #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"example.com\", version = \"v1\", kind = \"Large\")]\npub struct LargeSpec {{ {fields} }}\n{items}"
    ))
}

fn run_source(source: &str) -> Generated {
    let manifest = "[package]\nname = \"limits\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nrbuilder = \"0.1\"\n\
                    schemars = \"1\"\nserde = \"1\"\nk8s-openapi = { version = \"0.29\", features = [\"v1_37\"] }\n";
    assert!(source.len() < 64 * 1024, "{}", source.len());
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", manifest);
    sources.insert("src/lib.rs", source);
    generate(&sources, &Options::default())
}

/// There must be no manifest, and only this error.
fn check_error(generated: &Generated, message: &str) {
    assert_eq!(generated.files.len(), 0);
    let errors: Vec<_> = generated
        .diagnostics
        .iter()
        .filter(|found| found.is_error())
        .collect();
    let [error] = errors[..] else {
        panic!("{errors:#?}")
    };
    assert!(error.message.contains(message), "{error:#?}");
}

/// Creates `LEVELS + 1` items. Each of them is made from its level and the name of the next item,
/// and the last one uses `leaf` instead.
fn chain(leaf: &str, item: impl Fn(usize, &str) -> String) -> String {
    let mut items = String::new();
    for level in 0..=LEVELS {
        let next = if level < LEVELS {
            format!("B{}", level + 1)
        } else {
            leaf.to_owned()
        };
        let _ = writeln!(items, "{}", item(level, &next));
    }
    items
}

const TOO_LARGE: &str = "is too large: with all types in it, it has more than 3 MiB";

/// The only error must say that this type is too large.
fn check_too_large(generated: &Generated, name: &str) {
    check_error(generated, &format!("the schema of `{name}` {TOO_LARGE}"));
}

#[test]
fn reports_exponential_structs_at_the_type() {
    let items = chain("i32", |level, next| {
        format!("{DERIVES}pub struct B{level} {{ pub a: {next}, pub b: {next} }}")
    });
    assert!(items.len() < 4000);
    let generated = run("pub x: B0", &items);
    // `B9` has 2^16 leaves.
    check_too_large(&generated, "B9");
    let error = &generated.diagnostics[0];
    assert!(
        error
            .help
            .as_ref()
            .is_some_and(|help| help.contains("schemaless"))
    );
}

#[test]
fn reports_exponential_generics_where_used() {
    let ty = format!("{}i32{}", "P<".repeat(LEVELS), ">".repeat(LEVELS));
    let pair = format!("{DERIVES}pub struct P<T> {{ pub a: T, pub b: T }}");
    check_too_large(&run(&format!("pub x: {ty}"), &pair), "P");
}

#[test]
fn reports_exponential_enums() {
    for (tag, leaf) in [
        ("#[serde(untagged)]", "String"),
        ("#[serde(untagged)]", "Leaf"),
        ("", "String"),
        ("#[serde(tag = \"t\", content = \"c\")]", "String"),
        ("#[serde(tag = \"t\", content = \"c\")]", "Leaf"),
        ("#[serde(tag = \"t\")]", "Leaf"),
    ] {
        let items = chain(leaf, |level, next| {
            format!(
                "#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\n{tag}\npub enum B{level} {{ A({next}), B({next}), C(C{level}) }}\n\
                 {DERIVES}pub struct C{level} {{ pub c{level}: i32 }}"
            )
        });
        let generated = run(
            "pub x: B0",
            &format!("{items}{DERIVES}pub struct Leaf {{ a: i32 }}"),
        );
        let errors = generated.diagnostics.iter().filter(|found| found.is_error());
        assert_ne!(errors.count(), 0, "{tag} {leaf}");
        assert_eq!(generated.files.len(), 0, "{tag} {leaf}");
    }
}

#[test]
fn reports_exponential_whole_objects() {
    let kinds = chain("i32", |level, next| {
        let object = next.replace('B', "K");
        format!(
            "#[derive(kube::CustomResource, schemars::JsonSchema, Serialize, Deserialize, Clone, Debug)]\n\
             #[kube(group = \"example.com\", version = \"v1\", kind = \"K{level}\")]\n\
             pub struct K{level}Spec {{ pub a: {object}, pub b: {object} }}"
        )
    });
    let generated = run_source(&format!("use serde::{{Deserialize, Serialize}};\n{kinds}"));
    let is_of_size =
        |message: &str| message.contains(TOO_LARGE) || message.contains("no request of that size");
    let mut errors = generated.diagnostics.iter().filter(|found| found.is_error());
    assert!(
        errors.all(|error| is_of_size(&error.message)),
        "{:#?}",
        generated.diagnostics
    );
    assert!(generated.diagnostics.iter().any(|found| found.is_error()));
}

#[test]
fn reports_exponential_type_arguments_and_aliases() {
    let pair = format!("{DERIVES}pub struct P<T, U> {{ pub a: T, pub b: U }}\n");
    let arguments = chain("", |level, next| match next {
        "" => format!("{DERIVES}pub struct B{level}<T> {{ pub a: T }}"),
        next => format!("{DERIVES}pub struct B{level}<T> {{ pub a: {next}<P<T, T>> }}"),
    });
    let aliases = chain("i32", |level, next| format!("type B{level} = P<{next}, {next}>;"));
    // The type stays small, but it takes many steps to resolve it.
    let choice = chain("i32", |level, next| {
        format!("type B{level} = First<{next}, {next}>;")
    });
    let choice = format!("type First<T, U> = T;\n{choice}");
    for (field, items) in [("B0<i32>", arguments), ("B0", aliases), ("B0", choice)] {
        let generated = run(&format!("pub x: {field}"), &format!("{pair}{items}"));
        let errors: Vec<_> = generated
            .diagnostics
            .iter()
            .filter(|found| found.is_error())
            .collect();
        assert!(
            errors
                .iter()
                .all(|error| error.message.contains("parts, with its aliases")),
            "{errors:#?}"
        );
        assert_ne!(errors.len(), 0);
    }
}

#[test]
fn exponential_constants_are_unknown() {
    let constants = chain("1", |level, next| {
        let next = next.replace('B', "C");
        format!("const C{level}: i64 = {next} + {next};")
    });
    let generated = run_source(&format!(
        "#[derive(kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]\n\
         #[kube(group = \"example.com\", version = \"v1\", kind = \"Large\")]\n\
         pub struct LargeSpec {{ #[schemars(range(max = C0))] pub x: i64 }}\n{constants}"
    ));
    assert_ne!(generated.diagnostics.len(), 0);
    let items = "[B1, B1, B1, B1]";
    let lists = chain("[]", |level, next| {
        let value = items.replace("B1", next);
        format!("const B{level}: &[i64] = &{value};")
    });
    let field = "#[serde(default = \"many\")] pub x: Vec<String>";
    let generated = run(
        field,
        &format!("fn many() -> Vec<String> {{ B0.to_vec() }}\n{lists}"),
    );
    assert!(
        generated.diagnostics[0]
            .message
            .starts_with("the default of `x` is unknown")
    );
}

#[test]
fn reports_exponential_schema_functions() {
    let functions = chain("", |level, next| {
        let inner = match next {
            "" => "{ \"type\": \"string\" }".to_owned(),
            next => format!(
                "{{ \"type\": \"object\", \"properties\": {{ \"a\": g.subschema_for::<{next}>(), \"b\": g.subschema_for::<{next}>() }} }}"
            ),
        };
        format!(
            "pub struct B{level};\nimpl schemars::JsonSchema for B{level} {{\n\
             fn schema_name() -> std::borrow::Cow<'static, str> {{ \"B{level}\".into() }}\n\
             fn json_schema(g: &mut schemars::SchemaGenerator) -> schemars::Schema {{ schemars::json_schema!({inner}) }}\n}}"
        )
    });
    let generated = run_source(&format!(
        "#[derive(kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]\n\
         #[kube(group = \"example.com\", version = \"v1\", kind = \"Large\")]\npub struct LargeSpec {{ pub x: B0 }}\n{functions}"
    ));
    assert_eq!(generated.files.len(), 0);
    assert_ne!(generated.diagnostics.len(), 0);
}

#[test]
fn reports_repeated_descriptions_at_the_kind() {
    let fields: String = (0..2000).fold(String::new(), |mut fields, number| {
        let _ = write!(fields, "pub f{number}: T, ");
        fields
    });
    let long = "x".repeat(8000);
    for (attribute, place) in [
        (format!("#[crd(validation(pattern = \"{long}\"))]"), TOO_LARGE),
        (
            format!("/// {long}"),
            "the API server accepts no request of that size",
        ),
    ] {
        let items = format!("{attribute}\n{DERIVES}pub struct T(String);");
        let generated = run(&fields, &items);
        assert_eq!(generated.files.len(), 0);
        assert!(
            generated.diagnostics[0].message.contains(place),
            "{:#?}",
            generated.diagnostics
        );
    }
}

#[test]
fn reports_wide_enums_before_merging_their_variants() {
    let variants: String = (0..2000)
        .map(|number| format!("V{number} {{ f{number}: u8 }}, "))
        .collect();
    for tag in [
        "tag = \"t\", deny_unknown_fields",
        "untagged, deny_unknown_fields",
    ] {
        let items = format!("{DERIVES}#[serde({tag})]\npub enum Wide {{ {variants} }}");
        check_too_large(&run("pub x: Wide", &items), "Wide");
    }
}

#[test]
fn generates_large_types_within_limits() {
    // 400 fields with a pod spec are too many, but 10 are not.
    let fields = |count: usize| -> String {
        (0..count)
            .map(|number| {
                format!("#[crd(embedded_object_meta)] pub f{number}: k8s_openapi::api::core::v1::PodSpec, ")
            })
            .collect()
    };
    let generated = run(&fields(10), "");
    assert_eq!(generated.files.len(), 1, "{:#?}", generated.diagnostics);
    check_too_large(&run(&fields(400), ""), "LargeSpec");
}
