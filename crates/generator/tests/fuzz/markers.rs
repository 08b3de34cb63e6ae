//! Random markers. Any name from the tables can have any kind of value, on any kind of field.

use rbuilder_generator::SourceSet;
use rbuilder_syntax::{CRD_KEYS, CSV_FIELD_ARGS, CSV_KIND_ARGS, KUBE_KEYS, RBAC_ARGS, WEBHOOK_ARGS, marker};

use super::random::Random;
use crate::support::CARGO_TOML;

const TYPES: &[&str] = &[
    "String",
    "Option<String>",
    "i32",
    "u8",
    "f64",
    "bool",
    "Vec<String>",
    "Vec<Part>",
    "[u8; 4]",
    "Part",
    "Mode",
    "Option<Part>",
    "BTreeMap<String, i32>",
    "BTreeMap<Mode, Part>",
    "HashSet<String>",
    "serde_json::Value",
    "Box<Part>",
    "k8s_openapi::apimachinery::pkg::api::resource::Quantity",
    "(i32, i32)",
    "()",
    "Unknown",
    "TestSpec",
    "&'static str",
];

const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "1.5",
    "-0.0",
    "1e400",
    "18446744073709551616",
    "0x10",
    "1_000",
    "true",
    "false",
    "\"\"",
    "\"a\"",
    "\"^[a-z]+$\"",
    "\"(\"",
    "\"a;b\"",
    "\"*\"",
    "\"self.a == oldSelf.a\"",
    "\"self.\"",
    "\".spec.a\"",
    "\".spec.missing[0]\"",
    "\"Part\"",
    "\"Vec<\"",
    "'c'",
    "[]",
    "[\"a\", \"b\"]",
    "[1, [2]]",
    "[\"a\", 1]",
    "{}",
    "{ \"k\": \"v\" }",
    "{ a: 1 }",
    "Some(1)",
    "None",
    "Part::default()",
    "a::B",
    "()",
    "r#\"a\"#",
    "b\"a\"",
    "\"\\u{0}\"",
    "\"é\u{2028}\"",
    "1..2",
    "|x| x",
    "vec![1]",
    "-(1)",
    "!true",
    "\"int32\"",
    "\"nonsense\"",
    "\"get;list\"",
    "\"v1\"",
    "\"example.com\"",
    "Rule::new(\"self\")",
];

const SERDE: &[&str] = &[
    "default",
    "default = \"f\"",
    "skip",
    "skip_serializing_if = \"Option::is_none\"",
    "flatten",
    "rename = \"b\"",
    "rename(serialize = \"a\", deserialize = \"b\")",
    "rename_all = \"camelCase\"",
    "tag = \"t\"",
    "untagged",
    "transparent",
    "content = \"c\"",
    "with = \"m\"",
    "alias = \"x\"",
    "other",
    "deny_unknown_fields",
    "rename_all = \"nonsense\"",
    "bound = \"\"",
];

/// The package has one kind.
pub(crate) fn package(random: &mut Random) -> SourceSet {
    let field = |random: &mut Random, name: &str| {
        let (kube, serde) = (attribute(random, "kube"), serde(random));
        let crd = attribute(random, "crd") + &csv(random);
        let type_ = random.text(TYPES);
        format!("    /// A field.\n    {kube}{crd}{serde}\n    pub {name}: {type_},\n")
    };
    let fields = field(random, "a") + &field(random, "b");
    let (container, on_type) = (container(random), attribute(random, "crd") + &csv(random));
    let (on_enum, on_variant, of_serde) =
        (attribute(random, "crd"), attribute(random, "kube"), serde(random));
    // Keep most of them valid, since one error can hide those after it.
    let rbac = match random.below(4) {
        0 => arguments(random, &rbac_names()),
        _ => "groups = \"apps\", resources = \"deployments\", verbs = \"get;list\"".to_owned(),
    };
    let webhook = match random.below(4) {
        0 => format!("#[webhook({})]", arguments(random, &webhook_names())),
        _ => String::new(),
    };
    let text = format!(
        "use std::collections::*; use kube::CustomResource; use rbuilder::{{CrdSchema, rbac, webhook}};\n\
         /// A kind.\n#[derive(CustomResource, CrdSchema)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\"{container})]\n{on_type}\n\
         pub struct TestSpec {{\n{fields}}}\n\
         #[derive(CrdSchema)] pub struct Part {{ pub name: String, #[serde(default)] pub size: i32 }}\n\
         #[derive(CrdSchema)] {on_enum}{of_serde} pub enum Mode {{ {on_variant} A, B }}\n\
         #[rbac({rbac})] pub async fn reconcile() {{}}\n\
         {webhook} pub async fn handle(object: Test) {{}}\n"
    );
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    sources.insert("src/lib.rs", text);
    sources
}

fn marker_names() -> Vec<&'static str> {
    // A form also has the keys of nested markers, e.g. in `validation(minimum = …)`.
    let words = marker::markers().flat_map(|row| row.form.split(|c: char| !c.is_alphanumeric() && c != '_'));
    marker::markers()
        .map(|row| row.name)
        .chain(words)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns an empty text most of the time.
fn csv(random: &mut Random) -> String {
    if !random.once_in(8) {
        return String::new();
    }
    let names: Vec<_> = CSV_FIELD_ARGS.iter().map(|row| row.name).collect();
    let of_kind = CSV_KIND_ARGS.iter().map(|row| row.name);
    format!(
        "#[csv({})]",
        arguments(random, &names.into_iter().chain(of_kind).collect::<Vec<_>>())
    )
}

fn rbac_names() -> Vec<&'static str> {
    RBAC_ARGS.iter().map(|row| row.name).collect()
}

fn webhook_names() -> Vec<&'static str> {
    WEBHOOK_ARGS
        .iter()
        .map(|row| row.name)
        .chain(["mutating", "validating"])
        .collect()
}

/// Returns an empty text most of the time.
fn attribute(random: &mut Random, name: &str) -> String {
    if !random.once_in(4) {
        return String::new();
    }
    // Use a form from the reference, or random arguments.
    if random.once_in(3) {
        let rows: Vec<_> = marker::markers().collect();
        return format!("#[{name}({})]", random.one_of(&rows).form);
    }
    format!("#[{name}({})]", arguments(random, &marker_names()))
}

fn container(random: &mut Random) -> String {
    let names: Vec<_> = KUBE_KEYS.iter().chain(CRD_KEYS).map(|row| row.name).collect();
    if !random.once_in(4) {
        String::new()
    } else {
        format!(", {}", arguments(random, &names))
    }
}

fn serde(random: &mut Random) -> String {
    if !random.once_in(4) {
        String::new()
    } else {
        format!("#[serde({})]", random.text(SERDE))
    }
}

fn arguments(random: &mut Random, names: &[&str]) -> String {
    let count = random.below(3) + 1;
    let list: Vec<String> = (0..count).map(|_| argument(random, names, 0)).collect();
    list.join(random.text(&[", ", ", ", ", ", ",", " ", ",,"]))
}

fn argument(random: &mut Random, names: &[&str], depth: usize) -> String {
    let name = names[random.below(names.len())];
    let value = random.text(VALUES);
    match random.below(8) {
        0 => name.to_owned(),
        1 | 2 if depth < 3 => {
            let count = random.below(3);
            let inner: Vec<String> = (0..count)
                .map(|_| argument(random, &marker_names(), depth + 1))
                .collect();
            format!("{name}({})", inner.join(", "))
        }
        3 => format!("{name}({value}, {value})"),
        4 => value.to_owned(),
        _ => format!("{name} = {value}"),
    }
}
