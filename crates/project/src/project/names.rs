//! Rules for names, each with a suggested fix. All names are checked before anything is read or
//! written. A name must be valid for every tool that uses it.

use heck::ToSnakeCase;
use rbuilder_kubernetes::names::{self, is_dns_1035_label, is_subdomain};
use rbuilder_templates::USED_NAMES;

use super::plural::pluralize;

const LABEL: usize = 63;

/// A diagnostic about a flag's value, located at the flag, e.g. `--group`.
pub type FlagDiagnostic = rbuilder_diagnostic::Diagnostic<&'static str>;

/// Checks a project name: a DNS-1035 label that is short enough for derived names.
pub fn check_project_name(name: &str) -> Result<(), FlagDiagnostic> {
    // The longest derived names are the namespace `<name>-system` and the Service
    // `<name>-controller-manager-metrics-service`.
    const LONGEST: usize = LABEL - "-controller-manager-metrics-service".len();
    if !is_dns_1035_label(name) {
        return Err(FlagDiagnostic::error(
            "--project-name",
            format!(
                "project name `{name}` must be a DNS-1035 label: lower-case letters, digits and `-`, starting with a letter and ending with a letter or digit"
            ),
        ));
    }
    if name.len() > LONGEST {
        return Err(FlagDiagnostic::error(
            "--project-name",
            format!(
                "project name `{name}` has {} characters, but must have at most {LONGEST} because other names are derived from it",
                name.len()
            ),
        ));
    }
    Ok(())
}

/// Whether a name in PROJECT only has valid characters, and so can be used in paths and manifests.
/// Length and conflicts were checked when it was chosen.
pub fn is_recorded_name(key: &str, name: &str) -> bool {
    match key {
        "projectName" | "plural" | "version" => is_dns_1035_label(name),
        "group" | "domain" => is_subdomain(name),
        "controllers" => is_dns_1035_label(name),
        "path" => is_type_path(name),
        _ => name.chars().all(|letter| letter.is_ascii_alphanumeric()),
    }
}

/// Whether a path needs no quotes in a Dockerfile, a Makefile and a workflow.
pub fn is_plain_path(path: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+@/".contains(&byte);
    crate::tree::check_relative(path).is_ok()
        && path.bytes().all(is_char)
        && !path.starts_with(['-', '@', '+'])
}

/// Checks a domain, which must be a DNS-1123 subdomain.
pub fn check_domain(domain: &str) -> Result<(), FlagDiagnostic> {
    if is_subdomain(domain) {
        return Ok(());
    }
    Err(FlagDiagnostic::error(
        "--domain",
        format!("domain `{domain}` must be a DNS-1123 subdomain in lower case, such as `example.com`"),
    ))
}

/// Checks a controller name: a DNS-1035 label that is a valid Rust module name.
pub fn check_controller_name(name: &str) -> Result<(), FlagDiagnostic> {
    let module = controller_module(name);
    if is_dns_1035_label(name) && is_module(&module) && module != LIBRARY {
        return Ok(());
    }
    Err(FlagDiagnostic::error(
        "--controller-name",
        format!(
            "controller name `{name}` must be a DNS-1035 label whose Rust module `{module}` has a valid name, such as `memcached-backup`"
        ),
    ))
}

/// Module name of a controller.
pub fn controller_module(name: &str) -> String {
    name.replace('-', "_")
}

/// Checks the Rust path of a type: names separated by `::`, the last one in upper camel case.
pub fn check_type_path(path: &str) -> Result<(), FlagDiagnostic> {
    if is_type_path(path) {
        return Ok(());
    }
    Err(FlagDiagnostic::error(
        "--external-path",
        format!(
            "type path `{path}` must be the Rust path of the kind's type, such as `gateway_api::apis::standard::gateways::Gateway`"
        ),
    ))
}

fn is_type_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split("::").collect();
    let is_ident = |part: &&str| *part == "crate" || syn::parse_str::<syn::Ident>(part).is_ok();
    parts.len() > 1
        && parts.iter().all(is_ident)
        && parts[1..].iter().all(|part| *part != "crate")
        && parts
            .last()
            .is_some_and(|last| last.starts_with(|first: char| first.is_ascii_uppercase()))
}

/// Checks the URL path of a webhook: it starts with `/` and needs no escaping.
pub fn check_webhook_path(flag: &'static str, path: &str) -> Result<(), FlagDiagnostic> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let is_valid = path.len() > 1
        && path.starts_with('/')
        && !path.ends_with('/')
        && !path.contains("//")
        && path.bytes().all(is_plain)
        && path.split('/').all(|part| part != "." && part != "..");
    if is_valid && path != CONVERSION_PATH {
        return Ok(());
    }
    let rule = if path == CONVERSION_PATH {
        "is the path of conversion webhooks: choose another one"
    } else {
        "must be a URL path of letters, digits, `-`, `.`, `_`, `~` and `/`, such as `/mutate-pods`"
    };
    Err(FlagDiagnostic::error(flag, format!("path `{path}` {rule}")))
}

const CONVERSION_PATH: &str = "/convert";

/// Checks a group, and the API group that it forms with the project's domain. Empty for the domain
/// alone.
pub fn check_group(group: &str, domain: &str) -> Result<(), FlagDiagnostic> {
    if group.is_empty() {
        return Ok(());
    }
    if !is_subdomain(group) {
        return Err(FlagDiagnostic::error(
            "--group",
            format!(
                "group `{group}` must be a DNS-1123 subdomain: lower-case letters, digits, `-` and `.`, starting and ending with a letter or digit, such as `cache`"
            ),
        ));
    }
    let whole = format!("{group}.{domain}");
    if !is_subdomain(&whole) {
        return Err(FlagDiagnostic::error(
            "--group",
            format!("API group `{whole}` is longer than 253 characters"),
        ));
    }
    Ok(())
}

/// The Rust module of a group in a multi-group project. `-` and `.` become `_`, a leading digit
/// gets the prefix `_`, and a name that cannot be a module gets the suffix `_group`. The empty
/// group has no module.
pub fn group_module(group: &str) -> String {
    let module = group.replace(['-', '.'], "_");
    match module.as_bytes().first() {
        None => module,
        Some(first) if first.is_ascii_digit() => format!("_{module}"),
        Some(_) if is_taken_module(&module) => format!("{module}_group"),
        Some(_) => module,
    }
}

/// Checks an API version, e.g. `v1`, `v1alpha1` or `v2beta3`.
pub fn check_version(version: &str) -> Result<(), FlagDiagnostic> {
    let number = |text: &str| -> Option<usize> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && !text.starts_with('0')).then_some(digits)
    };
    let sound = || {
        let rest = version.strip_prefix('v')?;
        let rest = &rest[number(rest)?..];
        if rest.is_empty() {
            return Some(());
        }
        let rest = rest.strip_prefix("alpha").or_else(|| rest.strip_prefix("beta"))?;
        (number(rest)? == rest.len()).then_some(())
    };
    if version.len() <= LABEL && sound().is_some() {
        return Ok(());
    }
    Err(FlagDiagnostic::error(
        "--version",
        format!("version `{version}` must have the form `v1`, `v1alpha1` or `v2beta3`"),
    ))
}

/// Whether an API group is owned by the Kubernetes project, in which case the API server requires
/// the annotation `api-approved.kubernetes.io` on CRDs.
pub fn needs_approval(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|owner| {
        group
            .strip_suffix(owner)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Checks a kind: an upper camel case Rust type that is a DNS-1035 label in lower case, and doesn't
/// shadow a name in derived code.
pub fn check_kind(kind: &str) -> Result<(), FlagDiagnostic> {
    let upper = kind.starts_with(|first: char| first.is_ascii_uppercase());
    if !upper || !kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(FlagDiagnostic::error(
            "--kind",
            format!("kind `{kind}` must be in upper camel case, such as `CronJob`"),
        ));
    }
    // Samples, roles and files are named after the kind, plus a suffix.
    if kind.len() > LABEL {
        return Err(FlagDiagnostic::error(
            "--kind",
            format!(
                "kind `{kind}` has {} characters, but must have at most {LABEL}",
                kind.len()
            ),
        ));
    }
    if HIDDEN.contains(&kind) {
        return Err(FlagDiagnostic::error(
            "--kind",
            format!("kind `{kind}` would shadow the Rust name `{kind}` in derived code: choose another kind"),
        ));
    }
    Ok(())
}

/// Checks a plural, which must be a DNS-1035 label.
pub fn check_plural(plural: &str) -> Result<(), FlagDiagnostic> {
    if is_dns_1035_label(plural) {
        return Ok(());
    }
    Err(FlagDiagnostic::error(
        "--plural",
        format!("plural `{plural}` must be a DNS-1035 label, such as `cronjobs`"),
    ))
}

/// How to import a kind: the path, and the name to use in other modules.
///
/// If a scaffolded file already uses the kind's name, the module of the version is imported
/// instead, since its name never conflicts.
pub fn kind_import(kind: &str, version: &str, api_path: &str) -> (String, String) {
    if USED_NAMES.contains(&kind) || PRELUDE.contains(&kind) {
        (api_path.to_owned(), format!("{version}::{kind}"))
    } else {
        (format!("{api_path}::{kind}"), kind.to_owned())
    }
}

/// Like [`kind_import`], for the type of a foreign kind.
pub fn foreign_import(path: &str) -> (String, String) {
    let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
    if !USED_NAMES.contains(&name) && !PRELUDE.contains(&name) {
        return (path.to_owned(), name.to_owned());
    }
    match module.rsplit_once("::") {
        Some((_, last)) => (module.to_owned(), format!("{last}::{name}")),
        // Importing only the crate would trigger clippy's `single_component_path_imports`.
        None => (format!("{path} as {name}Object"), format!("{name}Object")),
    }
}

/// The kind in snake case, for modules, files and variables. Gets the suffix `_kind` if the name
/// can't be used for one of these.
pub fn module_name(kind: &str) -> String {
    let module = kind.to_snake_case();
    if is_taken_module(&module) {
        format!("{module}_kind")
    } else {
        module
    }
}

/// Plural of a kind in lower case, same as kubebuilder's.
pub fn plural_of(kind: &str) -> String {
    pluralize(&kind.to_lowercase())
}

/// Name of the Cargo package: the project name, unless it is invalid or taken by a dependency.
pub fn package_name(project_name: &str) -> String {
    let ident = project_name.replace('-', "_");
    if !is_module(&ident) || PACKAGES.contains(&project_name) {
        return format!("{project_name}-operator");
    }
    project_name.to_owned()
}

fn is_module(ident: &str) -> bool {
    // `lib` and `main` are crate roots.
    !matches!(ident, "lib" | "main")
        && !KEYWORDS.contains(&ident)
        && syn::parse_str::<syn::Ident>(ident).is_ok()
}

/// Whether a name is unavailable for a kind's or group's module, because it is a keyword or has
/// another meaning.
fn is_taken_module(ident: &str) -> bool {
    !is_module(ident) || ident == LIBRARY
}

/// Whether `text` is the value of a label, and not empty.
pub fn is_label_value(text: &str) -> bool {
    !text.is_empty() && names::is_label_value(text)
}

/// Crate imported by `src/controller/mod.rs`, where it shares a scope with the modules of kinds or
/// groups.
const LIBRARY: &str = "rbuilder";

/// Names that derived code uses without a path, from Rust's prelude or as its own parameters. A
/// kind of the same name would shadow them.
const HIDDEN: &[&str] = &["Default", "Option", "S", "Self", "String", "Vec"];

/// Other names in Rust's prelude. Our templates don't use these, but macros in the same module may.
const PRELUDE: &[&str] = &[
    "AsMut",
    "AsRef",
    "AsyncFn",
    "AsyncFnMut",
    "AsyncFnOnce",
    "Box",
    "Copy",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "Err",
    "ExactSizeIterator",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "FromIterator",
    "Future",
    "Hash",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "None",
    "Ord",
    "PartialOrd",
    "Send",
    "Sized",
    "Sync",
    "ToOwned",
    "ToString",
    "TryInto",
    "Unpin",
];

/// Strict and reserved keywords of the 2024 edition, which can't be module names.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Unavailable package names: dependencies of every project, modules imported by tests and `main`,
/// and names that Cargo rejects.
const PACKAGES: &[&str] = &[
    "alloc",
    "clap",
    "conditions",
    "controller",
    "core",
    "futures",
    "k8s-openapi",
    "kube",
    "manager",
    "proc-macro",
    "rbuilder",
    "schemars",
    "serde",
    "serde-json",
    "std",
    "test",
    "testing",
    "tokio",
    "tracing",
    "webhook",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&str) -> Result<(), FlagDiagnostic>, sound: &[&str], refused: &[&str]) {
        for name in sound {
            assert_eq!(rule(name), Ok(()), "{name}");
        }
        for name in refused {
            let message = rule(name).expect_err(name).message;
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn names_follow_their_rules() {
        let long = "a".repeat(64);
        let long_kind = format!("A{long}");
        check(
            check_project_name,
            &["a", "my-op", "on", "x-7"],
            &[
                "7up", "123", "1e3", "", "My", "a_b", "-a", "a-", "a.b", "ä", &long,
            ],
        );
        check(
            check_domain,
            // The server limits the length of the whole, not that of each label.
            &[
                "example.com",
                "a",
                "x-y.z",
                &format!("{}.example.com", "a".repeat(70)),
            ],
            &[
                "",
                "Example.com",
                "a..b",
                ".a",
                "a.",
                "a b",
                "-a.b",
                &"a".repeat(254),
            ],
        );
        check(
            check_version,
            &["v1", "v10", "v1alpha1", "v2beta3"],
            &[
                "",
                "1",
                "v",
                "v0",
                "v1.2",
                "foo",
                "v1gamma1",
                "v1alpha",
                "v01",
                "V1",
                "v1alpha1x",
            ],
        );
        check(
            check_kind,
            &[
                "Memcached",
                "CronJob",
                "A",
                "Redis6",
                "Action",
                "Hub",
                "Kube",
                "Result",
                "Union",
                "Type",
                "Box",
                "Match",
                "Lib",
                "Rbuilder",
            ],
            &[
                "",
                "memcached",
                "Foo-Bar",
                "Foo_Bar",
                "Self",
                "Ä",
                "Option",
                "S",
                &long_kind,
            ],
        );
        check(
            check_plural,
            &["cronjobs", "a1"],
            &["", "1a", "CronJobs", "a.b", "a_b", "-a"],
        );
        check(
            |name| check_group(name, "example.com"),
            &["cache", "a.b", "x-1", ""],
            &["Cache", "a_b", "a..b"],
        );
        check(
            check_controller_name,
            &["captain", "captain-backup", "x1"],
            &["", "Captain", "a_b", "1a", "mod", "rbuilder", "a-", &long],
        );
        check(
            check_type_path,
            &[
                "a::B",
                "crate::a::B",
                "gateway_api::apis::standard::gateways::Gateway",
                "a::r#type::B",
            ],
            &[
                "",
                "B",
                "a::b",
                "::a::B",
                "a::crate::B",
                "a-b::C",
                "a::B<C>",
                "../a::B",
            ],
        );
        check(
            |path| check_webhook_path("--validation-path", path),
            &["/a", "/mutate-v1/pods_x.y~"],
            &[
                "", "/", "a", "/a/", "/a//b", "/a/../b", "/a b", "/a?b", "/ä", "/convert",
            ],
        );
    }

    #[test]
    fn modules_of_kinds_and_groups_are_valid_in_rust() {
        for (kind, expected) in [
            ("CronJob", "cron_job"),
            ("Union", "union"),
            ("Type", "type_kind"),
            ("Box", "box_kind"),
            ("Crate", "crate_kind"),
            ("Main", "main_kind"),
            ("Rbuilder", "rbuilder_kind"),
        ] {
            assert_eq!(module_name(kind), expected);
            assert!(syn::parse_str::<syn::Ident>(expected).is_ok());
        }
        for (group, expected) in [
            ("", ""),
            ("a-b", "a_b"),
            ("a.b", "a_b"),
            ("union", "union"),
            ("3scale", "_3scale"),
            ("1-2", "_1_2"),
            ("type", "type_group"),
            ("rbuilder", "rbuilder_group"),
        ] {
            assert_eq!(group_module(group), expected);
            assert!(expected.is_empty() || syn::parse_str::<syn::Ident>(expected).is_ok());
        }
    }

    #[test]
    fn foreign_imports_do_not_conflict_with_templates() {
        for (path, import, name) in [
            ("a::b::Cup", "a::b::Cup", "Cup"),
            (
                "k8s_openapi::api::core::v1::ConfigMap",
                "k8s_openapi::api::core::v1",
                "v1::ConfigMap",
            ),
            ("a::Action", "a::Action as ActionObject", "ActionObject"),
        ] {
            assert_eq!(foreign_import(path), (import.to_owned(), name.to_owned()));
        }
    }

    #[test]
    fn kubernetes_groups_need_approval() {
        for group in ["k8s.io", "a.k8s.io", "kubernetes.io", "a.b.kubernetes.io"] {
            assert!(needs_approval(group), "{group}");
        }
        for group in [
            "example.com",
            "ak8s.io",
            "x.notkubernetes.io",
            "k8s.io.example.com",
        ] {
            assert!(!needs_approval(group), "{group}");
        }
    }

    #[test]
    fn pluralizes_common_kinds() {
        for (kind, plural) in [
            ("Memcached", "memcacheds"),
            ("CronJob", "cronjobs"),
            ("Redis", "redis"),
            ("Index", "indices"),
            ("Policy", "policies"),
            ("Ingress", "ingresses"),
            ("Endpoints", "endpoints"),
            ("DNS", "dns"),
            ("Schema", "schemas"),
            ("Database", "databases"),
            ("Kafka", "kafkas"),
            ("Mouse", "mice"),
        ] {
            assert_eq!(plural_of(kind), plural, "{kind}");
        }
    }

    #[test]
    fn package_names_are_valid_in_cargo() {
        for (project, expected) in [
            ("shop", "shop"),
            ("my-op", "my-op"),
            ("kube", "kube-operator"),
            ("type", "type-operator"),
            ("gen", "gen-operator"),
            ("controller", "controller-operator"),
            ("testing", "testing-operator"),
            ("test", "test-operator"),
        ] {
            assert_eq!(package_name(project), expected);
        }
    }
}
