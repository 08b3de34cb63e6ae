//! The rules that names must meet, each with what to write instead. All of them are checked before anything is
//! read or written, and a name that one tool would accept and the next refuse is refused here.

use heck::ToSnakeCase;
use rbuilder_templates::USED_NAMES;

/// Longest DNS label.
const LABEL: usize = 63;

/// A name that breaks a rule: what was given, and what it must be.
pub type Verdict = Result<(), String>;

/// A project's name: a DNS-1035 label, as names of Services are, with room for what is appended to it.
pub fn project_name(name: &str) -> Verdict {
    // `<name>-system` is a namespace and `<name>-controller-manager-metrics-service` a Service.
    const LONGEST: usize = LABEL - "-controller-manager-metrics-service".len();
    if !is_dns_1035_label(name) {
        return Err(format!(
            "project name `{name}` is not a DNS label that begins with a letter, and a Service is named for it: use lower-case letters, digits and `-`, and end with a letter or digit (`--project-name`)"
        ));
    }
    if name.len() > LONGEST {
        return Err(format!(
            "project name `{name}` has {} characters; at most {LONGEST} leave room for the names made from it (`--project-name`)",
            name.len()
        ));
    }
    Ok(())
}

/// Returns whether a name in PROJECT has the letters of such a name, so that it can be a part of a path and of a
/// manifest; how long it is and what else has the name was asked when it was given.
pub fn is_recorded_name(key: &str, name: &str) -> bool {
    match key {
        "projectName" | "plural" | "version" => is_dns_1035_label(name),
        "group" => is_dns_1123_subdomain(name),
        _ => name.chars().all(|letter| letter.is_ascii_alphanumeric()),
    }
}

/// A domain: a DNS-1123 subdomain.
pub fn domain(domain: &str) -> Verdict {
    if is_dns_1123_subdomain(domain) {
        return Ok(());
    }
    Err(format!(
        "domain `{domain}` is not a DNS name: write it like `example.com`, in lower case (`--domain`)"
    ))
}

/// A group, and the API group that it makes with the project's domain.
pub fn group(group: &str, domain: &str) -> Verdict {
    if !is_dns_1123_subdomain(group) {
        return Err(format!(
            "group `{group}` is not a DNS name: use lower-case letters, digits and `-`, like `cache` (`--group`)"
        ));
    }
    let whole = format!("{group}.{domain}");
    if !is_dns_1123_subdomain(&whole) {
        return Err(format!(
            "API group `{whole}` is longer than 253 characters (`--group`)"
        ));
    }
    Ok(())
}

/// The group as a Rust module, for projects with several.
pub fn group_module(group: &str) -> Result<String, String> {
    let module = group.replace(['-', '.'], "_");
    if !is_module(&module) {
        return Err(format!(
            "group `{group}` gives the module `{module}`, which Rust does not accept: choose another group (`--group`)"
        ));
    }
    if module == LIBRARY {
        return Err(format!(
            "group `{group}` gives the module `{module}`, which would hide the crate of that name: choose another group (`--group`)"
        ));
    }
    Ok(module)
}

/// A version as Kubernetes orders them: `v1`, `v1alpha1`, `v2beta3`.
pub fn version(version: &str) -> Verdict {
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
    Err(format!(
        "version `{version}` is not one: write it like `v1`, `v1alpha1` or `v2beta3` (`--version`)"
    ))
}

/// The place of a version in the order in which Kubernetes prefers them, the most stable last: `v1alpha1` < `v1beta1` <
/// `v1` < `v2`.
pub fn version_rank(version: &str) -> (u8, u64, u64) {
    let version = version.trim_start_matches('v');
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    for (stability, name) in ["alpha", "beta"].into_iter().enumerate() {
        if let Some((major, minor)) = version.split_once(name) {
            return (u8::from(stability > 0), number(major), number(minor));
        }
    }
    (2, number(version), 0)
}

/// Whether an API group is one of the Kubernetes project's, in which the API server takes only kinds that say who
/// approved them.
pub fn needs_approval(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|owner| {
        group
            .strip_suffix(owner)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// A kind: a Rust type in upper camel case whose lower case is a DNS-1035 label, and that hides nothing from the code
/// that is derived beside it.
pub fn kind(kind: &str) -> Verdict {
    let upper = kind.starts_with(|first: char| first.is_ascii_uppercase());
    if !upper || !kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(format!(
            "kind `{kind}` is not upper camel case: write it like `CronJob` (`--kind`)"
        ));
    }
    // Its samples, roles and files are named for it, with some letters more.
    if kind.len() > LABEL {
        return Err(format!(
            "kind `{kind}` has {} characters, and a DNS label at most {LABEL} (`--kind`)",
            kind.len()
        ));
    }
    if HIDDEN.contains(&kind) {
        return Err(format!(
            "kind `{kind}` would hide the name `{kind}` from code that `#[derive(…)]` writes: choose another, or put a word before it (`--kind`)"
        ));
    }
    let module = module(kind);
    if !is_module(&module) {
        return Err(format!(
            "kind `{kind}` gives the module `{module}`, a word that Rust keeps for itself: choose another kind (`--kind`)"
        ));
    }
    if module == LIBRARY {
        return Err(format!(
            "kind `{kind}` gives the module `{module}`, which would hide the crate of that name: choose another kind (`--kind`)"
        ));
    }
    Ok(())
}

/// A plural: a DNS-1035 label.
pub fn plural(plural: &str) -> Verdict {
    if is_dns_1035_label(plural) {
        return Ok(());
    }
    Err(format!(
        "plural `{plural}` is not a DNS label that begins with a letter: write it like `cronjobs` (`--plural`)"
    ))
}

/// The path by which other modules import a kind, and what they call it then.
///
/// Where a scaffolded file has another use for the name, the module of the version is imported: no version is called as
/// anything else.
pub fn kind_import(kind: &str, version: &str, api_path: &str) -> (String, String) {
    if USED_NAMES.contains(&kind) || PRELUDE.contains(&kind) {
        (api_path.to_owned(), format!("{version}::{kind}"))
    } else {
        (format!("{api_path}::{kind}"), kind.to_owned())
    }
}

/// The kind as a Rust module, file and variable.
pub fn module(kind: &str) -> String {
    kind.to_snake_case()
}

/// The usual plural of a kind, in lower case.
pub fn plural_of(kind: &str) -> String {
    let singular = kind.to_lowercase();
    match PLURALS.iter().find(|(word, _)| *word == singular) {
        Some((_, plural)) => (*plural).to_owned(),
        None => pluralizer::pluralize(&singular, 2, false).to_lowercase(),
    }
}

/// The Cargo package of a project: its name, unless Cargo or a dependency of the same name is against it.
pub fn package(project_name: &str) -> String {
    let ident = project_name.replace('-', "_");
    if !is_module(&ident) || PACKAGES.contains(&project_name) {
        return format!("{project_name}-operator");
    }
    project_name.to_owned()
}

fn is_module(ident: &str) -> bool {
    // The crate's own files have the first two.
    !matches!(ident, "lib" | "main")
        && !KEYWORDS.contains(&ident)
        && syn::parse_str::<syn::Ident>(ident).is_ok()
}

fn is_dns_1123_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !text.is_empty()
        && text.len() <= LABEL
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

fn is_dns_1035_label(text: &str) -> bool {
    is_dns_1123_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

fn is_dns_1123_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_1123_label)
}

/// The crate that `src/controller/mod.rs` imports from, beside a module for each kind or group.
const LIBRARY: &str = "rbuilder";

/// Names that the code of the derives takes from Rust's prelude without a path, or uses for its own parameters, in the
/// module where a kind of this name would hide them.
const HIDDEN: &[&str] = &["Default", "Option", "S", "String", "Vec"];

/// What Rust's prelude has beside the names that templates use: macros in the same module may mean it.
const PRELUDE: &[&str] = &[
    "AsMut",
    "AsRef",
    "AsyncFn",
    "AsyncFnMut",
    "AsyncFnOnce",
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

/// Words that no module can be called: keywords of edition 2024, strict and reserved.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Crates that every project depends on, modules that its tests and `main` import, and names that Cargo refuses.
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
    "serde-saphyr",
    "std",
    "test",
    "testing",
    "tokio",
    "tracing",
    "webhook",
];

/// Where kubebuilder's users are used to another plural than the word list gives.
const PLURALS: &[(&str, &str)] = &[
    ("agenda", "agendas"),
    ("atlas", "atlas"),
    ("canvas", "canvas"),
    ("cargo", "cargoes"),
    ("dns", "dns"),
    ("firmware", "firmwares"),
    ("gas", "gas"),
    ("hardware", "hardwares"),
    ("helix", "helices"),
    ("https", "https"),
    ("info", "infoes"),
    ("media", "media"),
    ("schema", "schemas"),
    ("software", "softwares"),
    ("staff", "staffs"),
    ("zero", "zeroes"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&str) -> Verdict, sound: &[&str], refused: &[&str]) {
        for name in sound {
            assert_eq!(rule(name), Ok(()), "{name}");
        }
        for name in refused {
            let message = rule(name).expect_err(name);
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn names_meet_their_rules() {
        let long = "a".repeat(64);
        let long_kind = format!("A{long}");
        check(
            project_name,
            &["a", "my-op", "on", "x-7"],
            &[
                "7up", "123", "1e3", "", "My", "a_b", "-a", "a-", "a.b", "ä", &long,
            ],
        );
        check(
            domain,
            &["example.com", "a", "x-y.z"],
            &["", "Example.com", "a..b", ".a", "a.", "a b", "-a.b"],
        );
        check(
            version,
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
            kind,
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
            ],
            &[
                "",
                "memcached",
                "Foo-Bar",
                "Foo_Bar",
                "Type",
                "Mod",
                "Crate",
                "Self",
                "Lib",
                "Ä",
                "Yield",
                "Gen",
                "Rbuilder",
                "Option",
                "S",
                &long_kind,
            ],
        );
        check(
            plural,
            &["cronjobs", "a1"],
            &["", "1a", "CronJobs", "a.b", "a_b", "-a"],
        );
        check(
            |name| group(name, "example.com"),
            &["cache", "a.b", "x-1"],
            &["", "Cache", "a_b", "a..b"],
        );
        check(
            |name| group_module(name).map(drop),
            &["cache", "a-b", "a.b", "k8s-openapi", "union"],
            &["type", "1a", "mod", "gen", "rbuilder"],
        );
    }

    #[test]
    fn versions_stand_in_the_order_of_kubernetes() {
        let mut versions = ["v2", "v10", "v1", "v1beta2", "v1alpha1", "v2alpha1", "v1beta10"];
        versions.sort_by_key(|version| version_rank(version));
        assert_eq!(
            versions,
            ["v1alpha1", "v2alpha1", "v1beta2", "v1beta10", "v1", "v2", "v10"]
        );
    }

    #[test]
    fn groups_of_kubernetes_need_an_approval() {
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
    fn plurals_are_the_usual_ones() {
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
    fn packages_are_names_that_cargo_takes() {
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
            assert_eq!(package(project), expected);
        }
    }
}
