//! Attributes of kinds must do what the API server does with them.

use crate::support;

use rbuilder_generator::Severity;
use support::{PRELUDE, run};

/// Each message starts with `E: ` for an error, or `W: ` for a warning.
fn said(keys: &str) -> Vec<String> {
    said_of(&source(keys))
}

fn source(keys: &str) -> String {
    format!(
        "{PRELUDE}#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\", status = \"TestStatus\"{keys})]\n\
         pub struct TestSpec {{\n    size: i32,\n    ratio: f64,\n    name: String,\n    \
         labels: BTreeMap<String, String>,\n    many: Vec<Part>,\n    any: serde_json::Value,\n    \
         #[crd(preserve_unknown_fields)]\n    part: Part,\n    when: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,\n}}\n\
         #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\npub struct Part {{ name: String }}\n\
         #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\npub struct TestStatus {{ replicas: i32 }}\n"
    )
}

fn said_of(source: &str) -> Vec<String> {
    run(&[("src/lib.rs", source)])
        .diagnostics
        .iter()
        .map(|said| {
            let mark = match said.severity {
                Severity::Error => "E",
                Severity::Warning => "W",
                Severity::Note => "N",
            };
            format!("{mark}: {}", said.message)
        })
        .collect()
}

fn help_of(keys: &str) -> Vec<String> {
    let found = run(&[("src/lib.rs", &source(keys))]).diagnostics.into_iter();
    found.map(|said| said.help.unwrap_or_default()).collect()
}

#[track_caller]
fn check(keys: &str, expected: &[&str]) {
    assert_eq!(said(keys), expected, "{keys}");
}

#[track_caller]
fn check_column(path: &str, column_type: &str, expected: &[&str]) {
    let keys = format!(r#", printcolumn(name = "C", type_ = "{column_type}", json_path = "{path}")"#);
    check(&keys, expected);
}

#[test]
fn checks_column_paths() {
    for path in [
        ".spec.size",
        ".spec.labels.app",
        r".spec.labels.a\\.b/c",
        r".spec.labels['a\\.b/c']",
        ".spec.many[0].name",
        ".spec.many[*].name",
        r#".spec.many[?(@.name==\"a\")].name"#,
        ".spec.any.of[0].it",
        ".spec.part.more",
        ".metadata.labels.app",
        ".metadata.ownerReferences[0].name",
        ".metadata.name",
    ] {
        check_column(path, "string", &[]);
    }
    check_column(".metadata.creationTimestamp", "date", &[]);
    check_column(".spec.when", "date", &[]);
    let empty = |segment: &str| format!("W: printer column `C` will be empty: unknown field `{segment}`");
    for (path, segment) in [
        (".spec.sise", "sise"),
        (".metadata.nme", "nme"),
        (".metadata.labels.app.x", "x"),
        (".metadata.labels['a.b/c']", "b/c"),
        (".spec.many.name", "name"),
        (".spec.labels[0]", "[…]"),
        (".metadata.creationTimestamp.seconds", "seconds"),
    ] {
        check_column(path, "string", &[&empty(segment)]);
    }
    check_column(
        ".spec.many.[0].name",
        "string",
        &["W: printer column `C` will be empty: missing name after a dot"],
    );
    for (path, reason) in [
        ("spec.size", ""),
        (".spec.size x", ": expected `.` or `[`, found ` `"),
        (".spec.size }", ": expected `.` or `[`, found `}`"),
        (
            ".spec.many[name]",
            ": expected an index, a slice, `*`, a filter or a key in single quotes in the brackets, found `name`",
        ),
        (".spec.many[0", ": `[` is not closed"),
        (
            r#".spec.many[?(@.name=\"a\")]"#,
            ": unknown operator `=` in a filter; write `==`",
        ),
    ] {
        let path_read = path.replace("\\\"", "\"");
        check_column(
            path,
            "string",
            &[&format!("E: `{path_read}` is not a valid JSON path{reason}")],
        );
    }
}

#[test]
fn suggests_similar_field() {
    for (keys, help) in [
        (
            r#"printcolumn(name = "C", type_ = "string", json_path = ".spec.sise")"#,
            "did you mean `size`?",
        ),
        (
            r#"printcolumn(name = "C", type_ = "string", json_path = ".spec.many[0].nam")"#,
            "did you mean `name`?",
        ),
        (
            r#"printcolumn(name = "C", type_ = "string", json_path = ".spec.colour")"#,
            "use the JSON names of the fields",
        ),
        (
            r#"scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.replica")"#,
            "did you mean `replicas`?",
        ),
    ] {
        assert_eq!(help_of(&format!(", {keys}")), [help], "{keys}");
    }
}

/// One version is in another group, in which it is the only version.
#[test]
fn reports_version_in_another_group() {
    let version = |group: &str, version: &str, storage: &str| {
        format!(
            "pub mod {version} {{\n{PRELUDE}#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
             #[kube(group = \"{group}\", version = \"{version}\", kind = \"Test\"{storage})]\n\
             pub struct TestSpec {{ pub size: i32 }}\n}}\n"
        )
    };
    let (stored, other) = (
        version("g.example.com", "v1", ""),
        version("h.example.com", "v2", ", storage = false"),
    );
    let found = run(&[("src/lib.rs", &format!("{stored}{other}"))]).diagnostics;
    let said: Vec<String> = found.iter().map(|said| said.text()).collect();
    let expected = "no version of `Test` in `h.example.com` is the storage version\nhelp: write `storage = true` on one version, or, if this \
                    is a version of `Test` in `g.example.com`, write `group = \"g.example.com\"`";
    assert_eq!(said, [expected]);
}

/// The missing module may have the storage version.
#[test]
fn missing_module_is_the_only_error() {
    let version = format!(
        "pub mod v2;\n{PRELUDE}#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\", storage = false)]\n\
         pub struct TestSpec {{ pub size: i32 }}\n"
    );
    let found = run(&[("src/lib.rs", &version)]).diagnostics;
    let said: Vec<String> = found.iter().map(|said| said.message.clone()).collect();
    assert_eq!(said, ["file not found for module `v2`"]);
}

#[test]
fn checks_column_types() {
    check_column(".spec.ratio", "number", &[]);
    check_column(".spec.size", "number", &[]);
    check_column(
        ".spec.ratio",
        "integer",
        &["W: printer column `C` has type `integer`, but the field is a number"],
    );
    check_column(
        ".spec.name",
        "integer",
        &["W: printer column `C` has type `integer`, but the field does not"],
    );
    check_column(
        ".spec.name",
        "date",
        &["W: printer column `C` has type `date`, but the field is not a `date-time`"],
    );
}

#[test]
fn reports_duplicate_column_once() {
    let column = r#", printcolumn(name = "C", type_ = "string", json_path = ".spec.name")"#;
    check(&column.repeat(2), &["W: duplicate printer column name `C`"]);
}

#[test]
fn invalid_column_has_no_warnings() {
    let nameless = r##", printcolumn = r#"{"name":"","type":"string","jsonPath":".spec.name"}"#"##;
    check(
        &nameless.repeat(2),
        &[
            "E: a printer column requires a name",
            "E: a printer column requires a name",
        ],
    );
    check(
        r#", printcolumn(name = "C", type_ = "string", json_path = ".spec.name"), printcolumn(name = "C", type_ = "int", json_path = ".spec.nmae")"#,
        &["E: unknown printer column type `int`"],
    );
}

#[test]
fn selectable_fields() {
    for (path, reason) in [
        (".spec.name", None),
        (".spec.size", None),
        (".kind", None),
        (".spec.labels.app", None),
        (".spec.ratio", Some("expected a string, an integer or a boolean")),
        (".spec.part", Some("expected a string, an integer or a boolean")),
        (".spec.none", Some("unknown field `none`")),
        (".spec.any.of", Some("its content has no schema")),
        (".spec.part.more", Some("its content has no schema")),
        (".spec.labels['app']", Some("brackets are not allowed")),
        (".spec.many[0].name", Some("brackets are not allowed")),
        (".spec..name", Some("a name is missing")),
        ("..name", Some("a name is missing")),
        (".spec.", Some("a name is missing")),
    ] {
        let expected = reason.map(|reason| format!("E: `{path}` is not a valid selectable field: {reason}"));
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(&format!(r#", selectable = "{path}""#), &expected);
    }
}

#[test]
fn warns_about_unknown_scale_path() {
    let scale = |spec: &str, status: &str| {
        format!(r#", scale(spec_replicas_path = "{spec}", status_replicas_path = "{status}")"#)
    };
    check(&scale(".spec.size", ".status.replicas"), &[]);
    check(
        &scale(".spec.replicas", ".status.replicas"),
        &["W: `spec_replicas_path` does not exist: unknown field `replicas`"],
    );
    // Paths of the scale subresource can only have names and dots.
    check(
        &scale(".spec.size", ".status.parts[0]"),
        &["W: `status_replicas_path` does not exist: unknown field `parts[0]`"],
    );
    check(
        &scale(".spec.name", ".status.replicas"),
        &["E: expected an integer at `spec_replicas_path`, found a string"],
    );
}

#[test]
fn deprecation_warnings() {
    check(", deprecated", &[]);
    check(r#", deprecated = "use v2: déjà vu""#, &[]);
    for (warning, problem) in [
        ("", "is empty"),
        ("a\\nb", "contains a character that cannot be printed"),
        ("a\\u{a0}b", "contains a character that cannot be printed"),
        (&*"a".repeat(257), "is longer than 256 bytes"),
    ] {
        check(
            &format!(r#", deprecated = "{warning}""#),
            &[&format!("E: the deprecation warning {problem}")],
        );
    }
}

#[test]
fn conversions() {
    let said = |arguments: &str| said(&format!(")]\n#[crd(conversion({arguments})"));
    for (arguments, expected) in [
        (r#"path = "/a.b/c-1/""#, &[][..]),
        (
            r#"path = "/Convert""#,
            &["E: the API server rejects the path `/Convert`"],
        ),
        (r#"path = "/a_b""#, &["E: the API server rejects the path `/a_b`"]),
        (r#"url = "https://a.b:9443/x""#, &[]),
        (r#"url = "https://""#, &["E: `https://` has no host"]),
        (
            r#"url = "https://a:b""#,
            &["E: `https://a:b` has an invalid port"],
        ),
        (r#"review_versions = ["v1", "v1beta1", "v9"]"#, &[]),
        (
            r#"review_versions = ["v1", "v1"]"#,
            &["E: duplicate ConversionReview version `v1`"],
        ),
        (
            r#"review_versions = ["v1", "V2"]"#,
            &["E: unknown ConversionReview version `V2`"],
        ),
        (
            r#"review_versions = ["v9"]"#,
            &["E: the API server supports none of these ConversionReview versions"],
        ),
    ] {
        assert_eq!(said(arguments), expected, "{arguments}");
    }
}

/// Each kind has a spec of its own.
fn kinds(group: &str, kinds: &[(&str, &str)]) -> String {
    let kinds = kinds.iter().map(|(kind, more)| {
        format!(
            "#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
             #[kube(group = \"{group}\", version = \"v1\", kind = \"{kind}\")]\n{more}pub struct {kind}Spec {{}}\n"
        )
    });
    format!("{PRELUDE}{}", kinds.collect::<String>())
}

#[test]
fn kind_conflicts_with_list_of_another() {
    assert_eq!(
        said_of(&kinds("g.example.com", &[("Foo", ""), ("FooList", "")])),
        ["E: kind `FooList` conflicts with the list kind of `Foo` in group `g.example.com`"]
    );
    assert!(said_of(&kinds("g.example.com", &[("Foo", ""), ("BarList", "")])).is_empty());
}

#[test]
fn kubernetes_groups_need_approval() {
    const KEY: &str = "api-approved.kubernetes.io";
    let approved = |value: &str| format!("#[crd(annotation(\"{KEY}\", \"{value}\"))]\n");
    for (group, value, expected) in [
        (
            "a.k8s.io",
            None,
            Some("E: kinds in the group `a.k8s.io` need an approval annotation"),
        ),
        (
            "k8s.io",
            None,
            Some("E: kinds in the group `k8s.io` need an approval annotation"),
        ),
        (
            "kubernetes.io",
            None,
            Some("E: kinds in the group `kubernetes.io` need an approval annotation"),
        ),
        ("a.x-k8s.io", None, None),
        ("k8s.io", Some("unapproved, a sample"), None),
        (
            "k8s.io",
            Some("https://github.com/kubernetes/enhancements/pull/1111"),
            None,
        ),
        (
            "k8s.io",
            Some("yes"),
            Some("E: expected a URL or a value that begins with `unapproved`, found `yes`"),
        ),
        (
            "k8s.io",
            Some("see ://x"),
            Some("E: expected a URL or a value that begins with `unapproved`, found `see ://x`"),
        ),
        (
            "k8s.io",
            Some("https://"),
            Some("E: expected a URL or a value that begins with `unapproved`, found `https://`"),
        ),
    ] {
        let more = value.map(approved).unwrap_or_default();
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(
            said_of(&kinds(group, &[("Foo", &more)])),
            expected,
            "{group} {value:?}"
        );
    }
}

#[test]
fn limits_size_of_annotations() {
    let annotation = |size: usize| format!("#[crd(annotation(\"a\", \"{}\"))]\n", "x".repeat(size));
    let most = 256 * 1024;
    assert!(said_of(&kinds("g.example.com", &[("Foo", &annotation(most - 1))])).is_empty());
    assert_eq!(
        said_of(&kinds("g.example.com", &[("Foo", &annotation(most))])),
        ["E: expected at most 262144 bytes of annotations on the definition of `Foo`, found 262145"]
    );
}
