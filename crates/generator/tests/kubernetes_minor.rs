//! A kind uses the types of one Kubernetes version. There are diagnostics about it.

use crate::support;

use rbuilder_generator::{Options, Severity, SourceSet, find_kubernetes_minor, generate};
use support::{CARGO_TOML, kind};

fn lock(release: &str) -> String {
    format!("version = 4\n\n[[package]]\nname = \"k8s-openapi\"\nversion = \"{release}\"\n")
}

fn check(dependency: &str, lock: Option<&str>, field: &str, minor: Option<u8>, said: &[(Severity, &str)]) {
    let manifest = CARGO_TOML.replace("k8s-openapi = \"0.29\"", dependency);
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", &*manifest);
    sources.insert("src/lib.rs", kind(field, ""));
    if let Some(lock) = lock {
        sources.insert("Cargo.lock", lock);
    }
    let options = Options::default();
    let found = find_kubernetes_minor(&sources, &options).map(rbuilder_generator::Minor::number);
    assert_eq!(found, minor, "{dependency} {lock:?}");
    let made = generate(&sources, &options);
    let all: Vec<_> = made
        .diagnostics
        .iter()
        .map(|said| (said.severity, said.message.as_str()))
        .filter(|(_, message)| message.contains("k8s-openapi"))
        .collect();
    assert_eq!(all, said, "{dependency} {lock:?} {field}");
    assert!(!made.files.is_empty());
}

#[test]
fn notes_missing_kubernetes_version() {
    let pod = "a: k8s_openapi::api::core::v1::PodSpec";
    let old = lock("0.20.0");
    check(
        "k8s-openapi = { version = \"0.20\", features = [\"latest\"] }",
        Some(&old),
        pod,
        Some(33),
        &[(
            Severity::Note,
            "the feature `latest` of k8s-openapi 0.20 selects Kubernetes 1.28, whose types are not built in; using those of 1.33",
        )],
    );
    check(
        "k8s-openapi = { version = \"0.20\", features = [\"v1_26\"] }",
        Some(&old),
        pod,
        Some(33),
        &[(
            Severity::Note,
            "the feature `v1_26` of k8s-openapi selects Kubernetes 1.26, whose types are not built in; using those of 1.33",
        )],
    );
    // If the kind uses no Kubernetes types, there is no note.
    check(
        "k8s-openapi = { version = \"0.20\", features = [\"latest\"] }",
        Some(&old),
        "a: i32",
        Some(33),
        &[],
    );
}

#[test]
fn lock_file_determines_latest_version() {
    let pod = "a: k8s_openapi::api::core::v1::PodSpec";
    let latest = "k8s-openapi = { version = \"*\", features = [\"latest\"] }";
    check(latest, Some(&lock("0.29.0")), pod, Some(37), &[]);
    check(latest, None, pod, Some(37), &[]);
    check(
        latest,
        Some(&lock("0.27.1")),
        pod,
        Some(35),
        &[(
            Severity::Note,
            "the feature `latest` of k8s-openapi 0.27 selects Kubernetes 1.35, whose types are used",
        )],
    );
    check(
        "k8s-openapi = \"0.28\"",
        Some(&lock("0.28.0")),
        pod,
        Some(36),
        &[(
            Severity::Note,
            "no feature of k8s-openapi selects a Kubernetes version; k8s-openapi 0.28 has Kubernetes 1.36, whose types are used",
        )],
    );
    check(
        "k8s-openapi = \"0.28\"",
        None,
        pod,
        None,
        &[(
            Severity::Warning,
            "no feature of k8s-openapi selects a Kubernetes version; using the types of 1.37",
        )],
    );
}

#[test]
fn uses_lock_file_of_workspace() {
    let mut sources = SourceSet::default();
    sources.insert("../Cargo.toml", "[workspace]\nmembers = [\"x\"]\n");
    sources.insert("../Cargo.lock", lock("0.28.0"));
    sources.insert(
        "Cargo.toml",
        CARGO_TOML.replace(
            "k8s-openapi = \"0.29\"",
            "k8s-openapi = { version = \"0.28\", features = [\"latest\"] }",
        ),
    );
    sources.insert("src/lib.rs", "");
    let minor = find_kubernetes_minor(&sources, &Options::default());
    assert_eq!(minor.map(rbuilder_generator::Minor::number), Some(36));
}
