//! Pitfalls of reading Rust source as text, and what comes of each.
//!
//! *Handled*: the schema is the same as in the compiled program. *Error*: reported at its place,
//! with a workaround. *Escape*: a marker can state what we can't read. *Warning*: reported, but
//! manifests are generated. The table below lists all traps, and the function of a row must show
//! exactly its outcomes.

use crate::support;

use std::cell::RefCell;
use std::collections::BTreeSet;

use Verdict::{Error, Escape, Handled, Warning};
use serde_json::{Value, json};
use support::{PRELUDE, kind, run, spec, spec_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Handled,
    Error,
    Escape,
    Warning,
}

/// The columns are a number, a description, the outcomes, and the cases that show them.
type Trap = (u32, &'static str, &'static [Verdict], fn());

const TRAPS: &[Trap] = &[
    (
        1,
        "a type of the user's is called `Option`, `Vec` or `String`",
        &[Handled],
        own_names,
    ),
    (2, "an alias of `Option`", &[Handled], alias_of_option),
    (
        3,
        "an alias with default arguments",
        &[Handled],
        alias_with_defaults,
    ),
    (4, "generics, also within themselves", &[Handled], generics),
    (
        5,
        "const generics, associated types, `impl`, `dyn`",
        &[Error],
        types_without_a_name,
    ),
    (6, "types that contain themselves", &[Error, Escape], recursion),
    (
        7,
        "globs, re-exports, renames, `super::super`",
        &[Handled, Error],
        paths,
    ),
    (8, "`#[path]`, `mod.rs`, inline modules", &[Handled], module_files),
    (9, "`include!`", &[Handled, Error, Warning], includes),
    (10, "macros that make kinds", &[Error], macros),
    (
        11,
        "attribute macros that change items",
        &[Error, Handled],
        attribute_macros,
    ),
    (
        12,
        "kinds in functions and in tests",
        &[Warning, Handled],
        kinds_that_are_no_api,
    ),
    (
        13,
        "`#[cfg(…)]` on fields, variants, modules, items",
        &[Handled, Error],
        conditions,
    ),
    (14, "`#[cfg_attr(…)]`", &[Handled], conditional_attributes),
    (
        15,
        "`#[serde(default = \"f\")]`",
        &[Handled, Warning, Escape],
        default_functions,
    ),
    (
        16,
        "`#[serde(default)]` on a field",
        &[Handled, Escape],
        default_fields,
    ),
    (
        17,
        "`#[serde(default)]` on a container",
        &[Handled, Escape],
        default_containers,
    ),
    (
        18,
        "`skip_serializing_if` with and without a default",
        &[Handled, Warning],
        skipped_if,
    ),
    (19, "`skip` in all forms, `alias`", &[Handled], skipped),
    (
        20,
        "`rename(serialize, deserialize)`",
        &[Handled, Warning],
        renamed_twice,
    ),
    (21, "serde's rules for names", &[Handled], names),
    (
        22,
        "`with`, `serialize_with`, `deserialize_with`",
        &[Error, Escape],
        with,
    ),
    (23, "`from`, `try_from`, `into`", &[Handled, Error, Warning], from),
    (24, "`remote`, `getter`", &[Error, Escape], remote),
    (
        25,
        "`JsonSchema` by hand",
        &[Handled, Error, Escape],
        json_schema_by_hand,
    ),
    (
        26,
        "`Serialize` and `Deserialize` by hand",
        &[Error, Escape],
        serde_by_hand,
    ),
    (
        27,
        "newtypes, `transparent`, unit and tuple structs",
        &[Handled, Error],
        struct_forms,
    ),
    (
        28,
        "enums by key, beside a tag, untagged",
        &[Handled, Error],
        enum_forms,
    ),
    (29, "enums with a tag inside", &[Handled], internal_tags),
    (
        30,
        "documented variants keep their place",
        &[Handled],
        variant_order,
    ),
    (31, "`flatten`", &[Handled, Error], flattened),
    (32, "maps with keys that are numbers", &[Handled], map_keys),
    (33, "constants in markers", &[Handled, Error], constants),
    (34, "patterns that are not literals", &[Error], pattern_paths),
    (35, "doc comments in all forms", &[Handled], docs),
    (
        36,
        "doc comments made by macros",
        &[Handled, Warning],
        docs_by_macro,
    ),
    (37, "raw identifiers, other alphabets", &[Handled], identifiers),
    (
        38,
        "formats of numbers and other leaves",
        &[Handled, Error],
        leaves,
    ),
    (39, "types of other crates", &[Handled, Error], third_party),
    (
        40,
        "derives and crates under other names",
        &[Handled, Error],
        renamed_derives,
    ),
    (41, "files that cannot be parsed", &[Error], unparsable),
    (42, "YAML's odd keys", &[Handled], yaml_keys),
    (43, "kinds of one name", &[Handled, Error], kinds_of_one_name),
    (44, "files in no module", &[Warning], orphans),
];

#[test]
fn every_trap_has_the_stated_outcomes() {
    let numbers: Vec<u32> = TRAPS.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=44).collect::<Vec<_>>());
    let wrong: Vec<_> = TRAPS.iter().filter_map(fault).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns what is wrong with the trap. If it panics, the other traps still run.
fn fault((number, name, verdicts, cases): &Trap) -> Option<String> {
    SHOWN.take();
    let outcome = std::panic::catch_unwind(cases);
    let shown = SHOWN.take();
    if outcome.is_err() {
        return Some(format!("trap {number}: {name}: see above"));
    }
    let expected = verdicts.iter().copied().collect();
    (shown != expected).then(|| format!("trap {number}: {name}: {expected:?} is due and {shown:?} was shown"))
}

thread_local! {
    /// What the current trap has shown so far.
    static SHOWN: RefCell<BTreeSet<Verdict>> = RefCell::default();
}

fn show(verdict: Verdict) {
    SHOWN.with_borrow_mut(|shown| shown.insert(verdict));
}

/// Descriptions are ignored.
#[track_caller]
fn has_schema(verdict: Verdict, files: &[(&str, &str)], expected: Value) {
    let mut found = spec_of(files).unwrap_or_else(|said| panic!("{files:#?}: {said:#?}"));
    drop_descriptions(&mut found);
    assert_eq!(found, expected, "{files:#?}");
    show(verdict);
}

fn drop_descriptions(value: &mut Value) {
    if let Some(keys) = value.as_object_mut() {
        if keys.get("description").is_some_and(Value::is_string) {
            keys.remove("description");
        }
        keys.values_mut().for_each(drop_descriptions);
    }
}

/// All properties are required.
fn object(properties: Value) -> Value {
    let mut names: Vec<String> = properties
        .as_object()
        .expect("properties")
        .keys()
        .cloned()
        .collect();
    names.sort();
    json!({"type": "object", "properties": properties, "required": names})
}

fn lax(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[track_caller]
fn handled(fields: &str, items: &str, expected: Value) {
    has_schema(Handled, &[("src/lib.rs", &kind(fields, items))], expected);
}

#[track_caller]
fn escaped(fields: &str, items: &str, expected: Value) {
    has_schema(Escape, &[("src/lib.rs", &kind(fields, items))], expected);
}

/// There must be a single error. `message` and `help` are parts of it.
#[track_caller]
fn files_refused(files: &[(&str, &str)], message: &str, help: &str) {
    let said = match spec_of(files) {
        Ok(schema) => panic!("{files:#?} is accepted: {schema}"),
        Err(said) => said,
    };
    let is_told = |(text, advice): &support::Said| text.contains(message) && advice.contains(help);
    assert!(
        said.iter().any(is_told) && said.len() == 1,
        "{files:#?}: {said:#?}"
    );
    show(Error);
}

#[track_caller]
fn refused(fields: &str, items: &str, message: &str, help: &str) {
    files_refused(&[("src/lib.rs", &kind(fields, items))], message, help);
}

/// There must be a warning, but also manifests.
#[track_caller]
fn warned(files: &[(&str, &str)], message: &str) {
    let warnings = support::warnings(files);
    assert!(
        warnings.iter().any(|said| said.contains(message)),
        "{files:#?}: {warnings:#?}"
    );
    assert!(!run(files).files.is_empty(), "{files:#?}: nothing is written");
    show(Warning);
}

const D: &str = "#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]";

fn item(attrs: &str, rest: &str) -> String {
    format!("{D} {attrs} pub {rest}\n")
}

fn number() -> Value {
    json!({"type": "integer", "format": "int32"})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

fn own_names() {
    handled(
        "a: Option<String>, b: Vec",
        &(item("", "struct Option<T> { inner: T }")
            + &item("", "struct String { x: bool }")
            + &item("", "struct Vec(i32);")),
        object(json!({"a": object(json!({"inner": object(json!({"x": boolean()}))})), "b": number()})),
    );
}

fn alias_of_option() {
    handled(
        "a: Opt<i32>, b: Named",
        "type Opt<T> = Option<T>; type Named = Opt<String>;",
        lax(json!({"a": number(), "b": text()})),
    );
}

fn alias_with_defaults() {
    handled(
        "a: Labels, b: Labels<bool>",
        "type Labels<V = String> = BTreeMap<String, V>;",
        object(json!({
            "a": {"type": "object", "additionalProperties": text()},
            "b": {"type": "object", "additionalProperties": boolean()},
        })),
    );
}

fn generics() {
    let page = |items: Value| object(json!({"items": {"type": "array", "items": items}}));
    handled(
        "a: Page<i32>, b: Page<Page<i32>>, c: Page",
        &item("", "struct Page<T = String> { items: Vec<T> }"),
        object(json!({"a": page(number()), "b": page(page(number())), "c": page(text())})),
    );
}

fn types_without_a_name() {
    refused(
        "a: Ring<4>",
        &item("", "struct Ring<T>(T);"),
        "has no schema",
        "schema_type",
    );
    refused(
        "a: i32, b: [u8; N]",
        "const N: usize = 4;",
        "has no schema",
        "schema_type",
    );
    refused("a: <T as X>::Y", "", "has no schema", "#[kube(schema = { … })]");
    refused("a: Box<dyn Copy>", "", "has no schema", "schema_type");
    refused("a: impl Copy", "", "has no schema", "schema_type");
    refused(
        "a: Held",
        &item("", "struct Held<const N: usize> { x: bool }"),
        "const parameters are not supported",
        "for each value",
    );
}

fn recursion() {
    let node = |marker: &str| item("", &format!("struct Node {{ {marker} next: Option<Box<Node>> }}"));
    refused(
        "a: Node",
        &node(""),
        "contains itself: Node → Node",
        "#[kube(schemaless, preserve_unknown_fields)]",
    );
    escaped(
        "a: Node",
        &node("#[kube(schemaless, preserve_unknown_fields)]"),
        object(json!({"a": lax(json!({"next": {"x-kubernetes-preserve-unknown-fields": true}}))})),
    );
}

fn paths() {
    handled(
        "a: inner::deep::A, b: Renamed, c: Through",
        "use inner::B as Renamed; use inner::*; \
         #[derive(CrdSchema, Serialize, Deserialize)] pub struct Outer(bool); \
         pub mod inner { use super::*; \
           #[derive(CrdSchema, Serialize, Deserialize)] pub struct B(i32); \
           pub use self::deep::C as Through; \
           pub mod deep { \
             #[derive(rbuilder::CrdSchema, serde::Serialize, serde::Deserialize)] pub struct A(super::super::Outer); \
             #[derive(rbuilder::CrdSchema, serde::Serialize, serde::Deserialize)] pub struct C(String); \
         } }",
        object(json!({"a": boolean(), "b": number(), "c": text()})),
    );
    // The import in `first` is private, so a glob import of `first` doesn't have the name.
    handled(
        "a: Condition",
        "pub use first::*; pub use second::*; \
         mod first { use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition; } \
         mod second { #[derive(rbuilder::CrdSchema, serde::Serialize, serde::Deserialize)] pub struct Condition(bool); }",
        object(json!({"a": boolean()})),
    );
    refused(
        "a: Unknown",
        "use elsewhere::*;",
        "cannot find type `Unknown`",
        "",
    );
    refused(
        "a: Unknown",
        "use indexmap::*;",
        "cannot find type `Unknown`",
        "it may come from `indexmap::*`",
    );
}

fn module_files() {
    let leaf = &format!("{PRELUDE}{}", item("", "struct Leaf(i32);"));
    let root = kind(
        "a: flat::Leaf, b: nested::Leaf, c: odd::Leaf, d: inline::within::Leaf",
        "mod flat; mod nested; #[path = \"other/name.rs\"] mod odd; mod inline { pub mod within; }",
    );
    has_schema(
        Handled,
        &[
            ("src/lib.rs", &root),
            ("src/flat.rs", leaf),
            ("src/nested/mod.rs", leaf),
            ("src/other/name.rs", leaf),
            ("src/inline/within.rs", leaf),
        ],
        object(json!({"a": number(), "b": number(), "c": number(), "d": number()})),
    );
}

fn includes() {
    let leaf = &item("", "struct Leaf(i32);");
    has_schema(
        Handled,
        &[
            ("src/lib.rs", &kind("a: Leaf", "include!(\"part.rs\");")),
            ("src/part.rs", leaf),
        ],
        object(json!({"a": number()})),
    );
    refused(
        "a: i32",
        "include!(env!(\"PARTS\"));",
        "the path of this `include!` is not a string literal",
        "a string literal",
    );
    let built = kind("a: i32", "include!(concat!(env!(\"OUT_DIR\"), \"/x.rs\"));");
    warned(
        &[("src/lib.rs", &built)],
        "files generated by the build script are not read",
    );
    files_refused(
        &[
            ("src/lib.rs", &built),
            ("build.rs", "fn main() { write(\"#[derive(CustomResource)]\") }"),
        ],
        "files generated by the build script are not read",
        "move the kinds to a source file of the package",
    );
}

fn macros() {
    refused(
        "a: i32",
        "macro_rules! kinds { () => { #[derive(CustomResource, CrdSchema)] pub struct Hidden; } } kinds!();",
        "inside a macro",
        "write the struct out",
    );
    refused(
        "a: i32",
        "wrap! { #[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")] fn f() {} }",
        "inside a macro",
        "outside of the macro",
    );
    refused(
        "a: Made",
        "make! { #[derive(CrdSchema)] pub struct Made(i32); }",
        "this macro may define types that a kind needs",
        "outside of the macro",
    );
}

fn attribute_macros() {
    refused(
        "a: Odd",
        &format!("#[changed] {}", item("", "struct Odd(i32);")),
        "this attribute macro may change the type",
        "write out the type",
    );
    refused(
        "a: i32",
        &format!("#[versions(v1, v2)] mod v {{ {} }}", item("", "struct Odd(i32);")),
        "this attribute macro may change the module",
        "without the macro",
    );
    handled(
        "a: Fine, b: Finer",
        &format!(
            "#[serde_with::skip_serializing_none] {} #[derive_where(Clone)] {}",
            item("", "struct Fine { x: Option<bool> }"),
            item("", "struct Finer(i32);")
        ),
        object(json!({"a": lax(json!({"x": boolean()})), "b": number()})),
    );
    // `serde_as` changes the format of a field, but we can't see that from its type.
    refused(
        "a: As",
        &format!(
            "#[serde_as] {}",
            item("", "struct As { #[serde_as(as = \"DisplayFromStr\")] x: i32 }")
        ),
        "this function serializes",
        "schema_type",
    );
}

fn kinds_that_are_no_api() {
    let hidden = "#[derive(CustomResource, CrdSchema)] #[kube(group = \"h.example.com\", version = \"v1\", \
                  kind = \"Hidden\")] pub struct HiddenSpec { x: bool }";
    let in_function = kind("a: i32", &format!("fn f() {{ {hidden} }}"));
    warned(
        &[("src/lib.rs", &in_function)],
        "a kind inside a function is not part of the API",
    );
    handled(
        "a: i32",
        &format!("#[cfg(test)] mod tests {{ {hidden} }} #[cfg(test)] {hidden}"),
        object(json!({"a": number()})),
    );
}

fn conditions() {
    handled(
        "#[cfg(feature = \"on\")] a: i32, #[cfg(feature = \"off\")] b: i32, #[cfg(windows)] c: i32, \
         #[cfg(all(unix, not(feature = \"off\")))] d: E, e: chosen::T",
        &(item(
            "",
            "enum E { A, #[cfg(windows)] B, #[cfg(any(unix, windows))] C }",
        ) + "#[cfg(feature = \"off\")] mod chosen { pub type T = bool; } \
               #[cfg(not(feature = \"off\"))] mod chosen { pub type T = String; }"),
        object(json!({"a": number(), "d": {"type": "string", "enum": ["A", "C"]}, "e": text()})),
    );
    // Code that isn't part of the API can have any `cfg`.
    handled(
        "a: i32",
        "#[cfg(tokio_unstable)] fn f() {} #[cfg(loom)] use loom::sync; #[cfg(target_arch = \"arm\")] mod asm {} \
         #[cfg(loom)] pub struct Other;",
        object(json!({"a": number()})),
    );
    let help = "features, `unix` and `target_os`";
    refused(
        "a: i32, #[cfg(tokio_unstable)] b: i32",
        "",
        "cannot evaluate this `cfg`",
        help,
    );
    refused(
        "a: S",
        &format!("#[cfg(tokio_unstable)] {}", item("", "struct S(i32);")),
        "cannot evaluate this `cfg`",
        help,
    );
    refused(
        "a: m::S",
        &format!(
            "#[cfg(tokio_unstable)] mod m {{ {PRELUDE} {} }}",
            item("", "struct S(i32);")
        ),
        "cannot evaluate this `cfg`",
        help,
    );
    refused(
        "a: i32",
        "#[cfg(tokio_unstable)] #[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")] fn f() {}",
        "cannot evaluate this `cfg`",
        help,
    );
}

fn conditional_attributes() {
    handled(
        "#[cfg_attr(unix, serde(rename = \"b\"))] a: i32, #[cfg_attr(feature = \"off\", serde(rename = \"d\"))] c: i32",
        "",
        object(json!({"b": number(), "c": number()})),
    );
    let described = spec("#[cfg_attr(unix, doc = \"Described.\")] a: i32", "").expect("a schema");
    assert_eq!(described["properties"]["a"]["description"], "Described.");
}

fn default_functions() {
    let with = |marker: &str| format!("#[serde(default = \"port\")] {marker} a: i32");
    let filled = |port: i32| lax(json!({"a": {"type": "integer", "format": "int32", "default": port}}));
    handled(&with(""), "fn port() -> i32 { 80 }", filled(80));
    let computed = "fn port() -> i32 { compute() }";
    warned(
        &[("src/lib.rs", &kind(&with(""), computed))],
        "the default of `a` is unknown",
    );
    escaped(&with("#[kube(default = 80)]"), computed, filled(80));
}

fn default_fields() {
    handled("#[serde(default)] a: i32", "", lax(json!({"a": number()})));
    escaped(
        "#[serde(default)] #[kube(default = 0)] a: i32",
        "",
        lax(json!({"a": {"type": "integer", "format": "int32", "default": 0}})),
    );
}

fn default_containers() {
    let item = |marker: &str| {
        item(
            "#[serde(default)]",
            &format!("struct S {{ {marker} x: i32, y: String }}"),
        )
    };
    handled(
        "a: S",
        &item(""),
        object(json!({"a": lax(json!({"x": number(), "y": text()}))})),
    );
    let defaulted = json!({"type": "integer", "format": "int32", "default": 4});
    escaped(
        "a: S",
        &item("#[kube(default = 4)]"),
        object(json!({"a": lax(json!({"x": defaulted, "y": text()}))})),
    );
}

fn skipped_if() {
    handled(
        "#[serde(skip_serializing_if = \"Option::is_none\")] a: Option<i32>, \
         #[serde(default, skip_serializing_if = \"Vec::is_empty\")] b: Vec<i32>, \
         #[serde(skip_serializing_if = \"is_zero\")] c: i32",
        "",
        json!({
            "type": "object",
            "properties": {"a": number(), "b": {"type": "array", "items": number()}, "c": number()},
            "required": ["c"],
        }),
    );
    let without = kind("#[serde(skip_serializing_if = \"is_zero\")] c: i32", "");
    warned(
        &[("src/lib.rs", &without)],
        "serde can skip this field when serializing",
    );
}

fn skipped() {
    handled(
        "#[serde(skip)] a: Hidden, #[serde(skip_serializing, skip_deserializing)] b: Hidden, \
         #[serde(skip_deserializing)] c: i32, #[serde(skip_serializing)] d: i32, #[serde(alias = \"f\")] e: i32, \
         g: E",
        &("struct Hidden; ".to_owned()
            + &item("", "enum E { A, #[serde(skip)] B, #[serde(alias = \"d\")] C }")),
        json!({"type": "object", "required": ["d", "e", "g"], "properties": {
            "c": number(), "d": number(), "e": number(), "g": {"type": "string", "enum": ["A", "C"]},
        }}),
    );
}

fn renamed_twice() {
    handled(
        "#[serde(rename(serialize = \"b\", deserialize = \"b\"))] a: i32, #[serde(rename(deserialize = \"d\"))] c: i32",
        "",
        object(json!({"b": number(), "d": number()})),
    );
    let message = "the names for serializing and deserializing differ";
    for attr in [
        "rename(serialize = \"x\", deserialize = \"y\")",
        "rename(serialize = \"x\")",
        "rename(deserialize = \"x\")",
    ] {
        warned(
            &[("src/lib.rs", &kind(&format!("#[serde({attr})] a: i32"), ""))],
            message,
        );
    }
    let container = item(
        "#[serde(rename_all(serialize = \"camelCase\"))]",
        "struct S { one_two: bool }",
    );
    warned(&[("src/lib.rs", &kind("a: S", &container))], message);
}

fn names() {
    let fields = "http2_url: bool, iPv4: bool, _lead: bool, a__b: bool, r#type: bool";
    let named = |case: &str, expected: [&str; 5]| {
        let properties: Value = expected
            .iter()
            .map(|name| ((*name).to_owned(), boolean()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        handled(
            "a: S",
            &item(
                &format!("#[serde(rename_all = \"{case}\")]"),
                &format!("struct S {{ {fields} }}"),
            ),
            object(json!({"a": object(properties)})),
        );
    };
    named("camelCase", ["http2Url", "iPv4", "lead", "aB", "type"]);
    named("PascalCase", ["Http2Url", "IPv4", "Lead", "AB", "Type"]);
    named("kebab-case", ["http2-url", "iPv4", "-lead", "a--b", "type"]);
    named(
        "SCREAMING_SNAKE_CASE",
        ["HTTP2_URL", "IPV4", "_LEAD", "A__B", "TYPE"],
    );
    handled(
        "a: E",
        &item(
            "#[serde(rename_all = \"kebab-case\")]",
            "enum E { HTTPServer, IPv4, #[serde(rename = \"Own\")] Other }",
        ),
        object(json!({"a": {"type": "string", "enum": ["h-t-t-p-server", "i-pv4", "Own"]}})),
    );
}

fn with() {
    for attr in [
        "with = \"m\"",
        "serialize_with = \"f\"",
        "deserialize_with = \"f\"",
    ] {
        for escape in ["schema_type", "schemaless", "schema = {"] {
            refused(
                &format!("#[serde({attr})] a: i32"),
                "",
                "this function serializes",
                escape,
            );
        }
    }
    let with = |marker: &str| format!("#[serde(with = \"m\")] #[kube({marker})] a: Foreign");
    escaped(
        &with("schema_type = \"String\""),
        "",
        object(json!({"a": text()})),
    );
    escaped(
        &with("schemaless, validation(type = \"boolean\")"),
        "",
        object(json!({"a": boolean()})),
    );
    escaped(
        &with("schema = { \"type\": \"string\", \"maxLength\": 5 }"),
        "",
        object(json!({"a": {"type": "string", "maxLength": 5}})),
    );
}

fn from() {
    let item = |attr: &str| item(&format!("#[serde({attr})]"), "struct S { x: bool }");
    for attr in [
        "from = \"String\"",
        "try_from = \"String\"",
        "from = \"String\", into = \"String\"",
    ] {
        handled("a: S", &item(attr), object(json!({"a": text()})));
    }
    handled(
        "a: S",
        &item("from = \"Option<String>\""),
        lax(json!({"a": {"type": "string", "nullable": true}})),
    );
    let both = kind("a: S", &item("from = \"String\", into = \"i32\""));
    warned(&[("src/lib.rs", &both)], "deserializing uses");
    refused(
        "a: S",
        &item("into = \"String\""),
        "serialized as another type but deserialized by its own fields",
        "`from` or `try_from`",
    );
}

fn remote() {
    let mirror = &item(
        "#[serde(remote = \"Foreign\")]",
        "struct Mirror { #[serde(getter = \"Foreign::x\")] x: bool }",
    );
    refused(
        "#[serde(with = \"Mirror\")] a: Foreign",
        mirror,
        "this function serializes",
        "schema_type",
    );
    escaped(
        "#[serde(with = \"Mirror\")] #[kube(schema_type = \"Mirror\")] a: Foreign",
        mirror,
        object(json!({"a": object(json!({"x": boolean()}))})),
    );
}

fn json_schema_by_hand() {
    let by_hand = "#[derive(Serialize, Deserialize)] pub struct S { x: bool } \
                   impl JsonSchema for S { fn json_schema(g: &mut G) -> Schema { made(g) } }";
    refused(
        "a: S",
        by_hand,
        "cannot read the schema that this function returns",
        "#[schemars(with = \"String\")]",
    );
    handled(
        "a: S",
        "pub struct S; impl JsonSchema for S { fn json_schema(g: &mut G) -> Schema { g.subschema_for::<String>() } }",
        object(json!({"a": text()})),
    );
    escaped(
        "#[kube(schema = { \"type\": \"string\" })] a: S",
        by_hand,
        object(json!({"a": text()})),
    );
    escaped(
        "#[kube(schema_type = \"String\")] a: S",
        by_hand,
        object(json!({"a": text()})),
    );
}

fn serde_by_hand() {
    let by_hand = |attr: &str| {
        format!(
            "#[derive(CrdSchema)] {attr} pub struct S {{ x: bool }} \
                 impl Serialize for S {{ fn serialize() {{}} }} impl<'de> serde::Deserialize<'de> for S {{}}"
        )
    };
    refused(
        "a: S",
        &by_hand(""),
        "handwritten `Serialize`",
        "#[crd(schema_type = \"String\")]",
    );
    escaped(
        "a: S",
        &by_hand("#[crd(schema_type = \"String\")]"),
        object(json!({"a": text()})),
    );
    escaped(
        "a: S",
        &by_hand("#[crd(schema = { \"type\": \"string\", \"pattern\": \"^x\" })]"),
        object(json!({"a": {"type": "string", "pattern": "^x"}})),
    );
    refused(
        "a: E",
        "#[derive(CrdSchema, Serialize_repr, Deserialize_repr)] #[repr(u8)] pub enum E { A = 1, B = 2 }",
        "`Serialize_repr` serializes",
        "#[crd(schema = {",
    );
    escaped(
        "a: E",
        "#[derive(CrdSchema, Serialize_repr, Deserialize_repr)] #[repr(u8)] \
         #[crd(schema = { \"type\": \"integer\", \"enum\": [1, 2] })] pub enum E { A = 1, B = 2 }",
        object(json!({"a": {"type": "integer", "enum": [1, 2]}})),
    );
}

fn struct_forms() {
    handled(
        "a: N, b: T",
        &(item("", "struct N(i32);") + &item("#[serde(transparent)]", "struct T { x: bool }")),
        object(json!({"a": number(), "b": boolean()})),
    );
    refused("a: U", &item("", "struct U;"), "a unit struct is `null`", "`{}`");
    refused(
        "a: T",
        &item("", "struct T(i32, i32);"),
        "a tuple struct",
        "name the fields",
    );
}

fn enum_forms() {
    handled(
        "a: E, b: U, c: A",
        &(item("", "enum E { X(i32), Y { z: bool } }")
            + &item("#[serde(untagged)]", "enum U { X(i32), Y(i32) }")
            + &item(
                "#[serde(tag = \"t\", content = \"c\")]",
                "enum A { X(i32), Y(i32) }",
            )),
        object(json!({
            "a": {"type": "object", "properties": {"X": number(), "Y": object(json!({"z": boolean()}))},
                "oneOf": [{"required": ["X"]}, {"required": ["Y"]}]},
            "b": number(),
            "c": {"type": "object", "required": ["c", "t"],
                "properties": {"c": number(), "t": {"type": "string", "enum": ["X", "Y"]}}},
        })),
    );
    refused(
        "a: U",
        &item("#[serde(untagged)]", "enum U { X { x: i32 }, Y { x: bool } }"),
        "has a different type or different constraints",
        "different names",
    );
}

fn internal_tags() {
    handled(
        "a: E",
        &item(
            "#[serde(tag = \"type\", rename_all = \"lowercase\")]",
            "enum E { X { y: bool }, Z }",
        ),
        object(json!({"a": {"type": "object", "required": ["type"],
        "properties": {"type": {"type": "string", "enum": ["x", "z"]}, "y": boolean()},
        "oneOf": [
            {"properties": {"type": {"enum": ["x"]}}, "required": ["y"]},
            {"properties": {"type": {"enum": ["z"]}}},
        ]}})),
    );
}

fn variant_order() {
    handled(
        "a: E",
        &item("", "enum E { C, /// Documented.\n A, B }"),
        object(json!({"a": {"type": "string", "enum": ["C", "A", "B"]}})),
    );
}

fn flattened() {
    let inner = &item("", "struct I { x: bool }");
    handled(
        "#[serde(flatten)] a: Option<I>, #[serde(flatten)] rest: BTreeMap<String, String>",
        inner,
        json!({"type": "object", "properties": {"x": boolean()}, "x-kubernetes-preserve-unknown-fields": true}),
    );
    refused(
        "x: i32, #[serde(flatten)] a: I",
        inner,
        "duplicate field name \"x\"",
        "",
    );
}

fn map_keys() {
    handled(
        "a: BTreeMap<u32, bool>, b: HashMap<i8, bool>",
        "",
        object(json!({
            "a": {"type": "object", "additionalProperties": boolean()},
            "b": {"type": "object", "additionalProperties": boolean()},
        })),
    );
}

fn constants() {
    handled(
        "#[kube(validation(minimum = -(1 << 4), maximum = 60 * 60 - 1), default = 2 + 3)] a: i32, \
         #[kube(validation(maximum = u16::MAX))] b: i32",
        "",
        object(json!({
            "a": {"type": "integer", "format": "int32", "minimum": -16, "maximum": 3599, "default": 5},
            "b": {"type": "integer", "format": "int32", "maximum": 65535},
        })),
    );
    refused(
        "#[kube(validation(maximum = MAX))] a: i32",
        "const MAX: i32 = 5;",
        "found the name `MAX`",
        "write the value",
    );
    refused(
        "#[kube(validation(maximum = MAX * 2 + 1))] a: i32",
        "const MAX: i32 = 5;",
        "found the name `MAX`",
        "write the value",
    );
    refused(
        "#[kube(validation(maximum = 1 / 0))] a: i32",
        "",
        "cannot evaluate",
        "",
    );
}

fn pattern_paths() {
    refused(
        "#[kube(validation(pattern = PATTERN))] a: String",
        "const PATTERN: &str = \"x\";",
        "found the name `PATTERN`",
        "write the value",
    );
    refused(
        "#[kube(validation(pattern = *RE))] a: String",
        "",
        "found the name `RE`",
        "write the value",
    );
}

fn docs() {
    for doc in [
        "/// One.\n/// Two.\n",
        "/** One.\n * Two.\n */",
        "#[doc = \" One.\"] #[doc = \" Two.\"]",
        "/// # One.\n/// Two.\n",
    ] {
        let spec = spec(&format!("{doc} a: i32"), "").expect("a schema");
        assert_eq!(spec["properties"]["a"]["description"], "One.\nTwo.", "{doc}");
        show(Handled);
    }
}

fn docs_by_macro() {
    let joined = spec("#[doc = concat!(\" One\", 2, \".\")] a: i32", "").expect("a schema");
    assert_eq!(joined["properties"]["a"]["description"], "One2.");
    show(Handled);
    for unread in [
        "env!(\"X\")",
        "include_str!(\"a.md\")",
        "concat!(\"a\", env!(\"X\"))",
    ] {
        warned(
            &[("src/lib.rs", &kind(&format!("#[doc = {unread}] a: i32"), ""))],
            "this doc string is not a literal",
        );
    }
}

fn identifiers() {
    let root = kind(
        "r#type: r#mod::T, größe: Größe",
        &("pub mod r#mod; ".to_owned() + &item("", "enum Größe { Klein, Groß }")),
    );
    let module = format!("{PRELUDE}{}", item("", "struct T { r#fn: bool }"));
    has_schema(
        Handled,
        &[("src/lib.rs", &root), ("src/mod.rs", &module)],
        object(json!({
            "größe": {"type": "string", "enum": ["Klein", "Groß"]},
            "type": object(json!({"fn": boolean()})),
        })),
    );
}

fn leaves() {
    handled(
        "a: u8, b: u32, c: NonZeroU32, d: usize, e: char, f: std::net::IpAddr, g: std::path::PathBuf, \
         h: Cow<'static, str>, i: Box<[bool]>, j: [bool; 2], k: Option<Option<bool>>",
        "",
        json!({"type": "object", "required": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"], "properties": {
            "a": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 255},
            "b": {"type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX},
            "c": {"type": "integer", "format": "int64", "minimum": 1, "maximum": u32::MAX},
            "d": {"type": "integer", "format": "int64", "minimum": 0},
            "e": {"type": "string", "minLength": 1, "maxLength": 1},
            "f": *rbuilder_schema::known("std::net::IpAddr").expect("known"), "g": text(), "h": text(),
            "i": {"type": "array", "items": boolean()},
            "j": {"type": "array", "items": boolean(), "minItems": 2, "maxItems": 2},
            "k": boolean(),
        }}),
    );
    refused("a: i128", "", "128-bit integers", "schema_type");
    refused(
        "a: Duration",
        "",
        "seconds and nanoseconds",
        "kube::core::Duration",
    );
    refused("a: ()", "", "`()` is `null`", "remove the field");
    refused(
        "a: std::thread::Thread",
        "",
        "unknown schema of `std::thread::Thread`",
        "schema = {",
    );
}

fn third_party() {
    handled(
        "a: k8s_openapi::jiff::Timestamp, b: serde_json::Value",
        "",
        object(json!({
            "a": {"type": "string", "format": "date-time"},
            "b": {"x-kubernetes-preserve-unknown-fields": true},
        })),
    );
    refused(
        "a: indexmap::Odd",
        "",
        "unknown schema of `indexmap::Odd`",
        "schema_type",
    );
    refused(
        "a: nowhere::Odd",
        "",
        "cannot find type `nowhere::Odd`",
        "schema_type",
    );
}

fn renamed_derives() {
    let source = "use kube as k; use rbuilder as rb; \
                  #[derive(k::CustomResource, rb::CrdSchema, serde::Serialize, serde::Deserialize)] \
                  #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")] \
                  pub struct TestSpec { a: i32 }";
    has_schema(Handled, &[("src/lib.rs", source)], object(json!({"a": number()})));
    refused(
        "a: i32",
        "use rbuilder::rbac as permits;",
        "rbuilder recognizes it only by its own name",
        "without `as`",
    );
    // The imports come after the types, and because of the constant, the kind is read twice.
    let renamed = "#[derive(Resource, Schema, Write, Read)] \
                   #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")] \
                   pub struct TestSpec { #[schemars(range(max = MAX))] a: i32, b: Size, #[serde(default)] c: bool } \
                   #[derive(Numbers, WriteNumber, ReadNumber)] #[repr(i32)] enum Size { Small = 2, Large = 4 } \
                   const MAX: i32 = 9; \
                   use kube::CustomResource as Resource; use schemars::{JsonSchema as Schema, JsonSchema_repr as Numbers}; \
                   use serde::{Serialize as Write, Deserialize as Read}; \
                   use serde_repr::{Serialize_repr as WriteNumber, Deserialize_repr as ReadNumber};";
    let plain = renamed
        .replace(" as Resource", "")
        .replace(
            "derive(Resource, Schema, Write, Read)",
            "derive(CustomResource, JsonSchema, Serialize, Deserialize)",
        )
        .replace(
            "derive(Numbers, WriteNumber, ReadNumber)",
            "derive(JsonSchema_repr, Serialize_repr, Deserialize_repr)",
        );
    let [renamed, plain] = [renamed, &plain].map(|source| run(&[("src/lib.rs", source)]));
    assert_eq!(renamed.files, plain.files);
    assert!(
        renamed.files[0].text.contains("maximum: 9"),
        "{:#?}",
        renamed.diagnostics
    );
    show(Handled);
    let root = |import: &str| format!("{import} mod child; #[derive(Clone)] pub struct Other;");
    let child = "use super::Resource; #[derive(Resource, schemars::JsonSchema)] \
                 #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")] pub struct TestSpec { a: i32 }";
    let generated = run(&[
        ("src/lib.rs", &root("pub use kube::CustomResource as Resource;")),
        ("src/child.rs", child),
    ]);
    let said: Vec<&str> = generated.diagnostics.iter().map(|said| &*said.message).collect();
    assert!(
        matches!(said.as_slice(), [first, second]
            if first.contains("does not derive `CustomResource`") && second.starts_with("`CustomResource` is renamed here")),
        "{said:?}"
    );
    assert_eq!(generated.files, []);
    files_refused(
        &[(
            "src/lib.rs",
            "use kube::CustomResource as Resource; kinds! { #[derive(Resource)] struct TestSpec { a: i32 } }",
        )],
        "this macro may hide a kind",
        "outside of the macro",
    );
}

fn unparsable() {
    let root = kind("a: Nope", "mod broken;");
    let generated = run(&[
        ("src/lib.rs", &root),
        ("src/broken.rs", "<<<<<<< HEAD\nfn f() {}\n"),
    ]);
    let said: Vec<_> = generated
        .diagnostics
        .iter()
        .map(|said| (said.place.path.as_str(), said.message.as_str()))
        .collect();
    assert!(
        matches!(said.as_slice(), [("src/broken.rs", first), ("src/lib.rs", second)]
            if first.starts_with("syntax error") && second.contains("`Nope`")),
        "{said:?}"
    );
    assert!(generated.files.is_empty());
    show(Error);
}

fn yaml_keys() {
    let generated = run(&[(
        "src/lib.rs",
        &kind(
            "y: bool, on: bool, no: bool, #[serde(rename = \"1_000\")] n: bool",
            "",
        ),
    )]);
    let text = &generated.files.first().expect("a manifest").text;
    for key in [
        "\"y\":",
        "\"on\":",
        "\"no\":",
        "\"1_000\":",
        "- \"y\"\n",
        "- \"on\"\n",
    ] {
        assert!(text.contains(key), "{key} in {text}");
    }
    show(Handled);
}

fn kinds_of_one_name() {
    let version = |version: &str, storage: bool, name: &str| {
        format!(
            "#[derive(CustomResource, CrdSchema, Serialize, Deserialize)] #[kube(group = \"g.example.com\", \
             version = \"{version}\", kind = \"Test\", storage = {storage})] pub struct {name} {{ a: i32 }}\n"
        )
    };
    let both = format!(
        "{PRELUDE}{}{}",
        version("v1", true, "One"),
        version("v2", false, "Two")
    );
    has_schema(Handled, &[("src/lib.rs", &both)], object(json!({"a": number()})));
    let same = format!(
        "{PRELUDE}{}{}",
        version("v1", true, "One"),
        version("v1", false, "Two")
    );
    files_refused(
        &[("src/lib.rs", &same)],
        "duplicate version of kind",
        "remove this one or the one in",
    );
}

fn orphans() {
    let root = &kind("a: i32", "");
    let orphan = "#[derive(kube::CustomResource)] pub struct X;";
    warned(
        &[("src/lib.rs", root), ("src/lost.rs", orphan)],
        "no `mod` declares the file",
    );
    for marker in [
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]",
        "#[webhook(mutating)]",
    ] {
        let orphan = &format!("{marker} fn f() {{}}");
        warned(
            &[("src/lib.rs", root), ("src/lost.rs", orphan)],
            "no `mod` declares the file",
        );
    }
}
