//! If a program modifies a CRD before it writes or applies it, we warn about that.

use rbuilder_generator::{KindOutcome, Options, Severity, SourceSet, generate};

const KINDS: &str = "use kube::{CustomResource, CustomResourceExt};\nuse schemars::JsonSchema;\n\
    #[derive(CustomResource, JsonSchema)]\n\
    #[kube(group = \"cafe.io\", version = \"v1\", kind = \"Cup\")]\n\
    pub struct CupSpec { size: i32 }\n\
    #[derive(CustomResource, JsonSchema)]\n\
    #[kube(group = \"cafe.io\", version = \"v1\", kind = \"Pot\", root = \"PotObject\")]\n\
    pub struct PotSpec { size: i32 }\n\
    #[derive(CustomResource, JsonSchema)]\n\
    #[kube(group = \"monitoring.coreos.com\", version = \"v1\", kind = \"PodMonitor\")]\n\
    pub struct PodMonitorSpec { size: i32 }\n";

/// Each warning is given as kind and place. The library has [`KINDS`], then `library`.
#[track_caller]
fn check(library: &str, binary: &str, expected: &[(&str, &str)]) {
    let library = format!("{KINDS}{library}");
    let mut sources = SourceSet::default();
    let manifest = "[package]\nname = \"cafe\"\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\n";
    sources.insert("Cargo.toml", manifest);
    sources.insert("src/lib.rs", library.as_str());
    sources.insert("src/main.rs", binary);
    let made = generate(&sources, &Options::default());
    assert_eq!(made.files.len(), 2, "{:#?}", made.diagnostics);
    let mut found = Vec::new();
    for kind in &made.kinds {
        let is_readable = matches!(kind.outcome, KindOutcome::Readable { .. });
        assert!(is_readable || kind.patches.is_empty(), "{kind:?}");
        for said in kind.patches.iter().map(|at| &made.diagnostics[*at]) {
            let named = format!("the program changes the CRD of `{}` here", kind.kind);
            assert!(!said.is_error() && said.message.starts_with(&named), "{said:?}");
            let text = if said.place.path == "src/lib.rs" {
                &library
            } else {
                binary
            };
            found.push((kind.kind.clone(), text[said.place.range.clone()].to_owned()));
        }
    }
    let found: Vec<_> = found
        .iter()
        .map(|(kind, text)| (kind.as_str(), text.as_str()))
        .collect();
    assert_eq!(found, expected, "{:#?}", made.diagnostics);
    let warnings = made
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Warning);
    assert_eq!(warnings.count(), expected.len(), "{:#?}", made.diagnostics);
}

#[test]
fn warns_where_a_crd_is_modified() {
    check(
        "fn crd() { let mut crd = Cup::crd(); crd.spec.preserve_unknown_fields = Some(false); show(&crd) }",
        "",
        &[("Cup", "crd.spec.preserve_unknown_fields")],
    );
    check(
        "impl Cup { async fn patched() { let mut crd = <Self as CustomResourceExt>::crd(); patch(&mut crd); } }",
        "",
        &[("Cup", "&mut crd")],
    );
    check(
        "",
        "use kube::CustomResourceExt;\nfn main() {\n    for mut crd in [cafe::Cup::crd(), cafe::PotObject::crd()] {\n        crd.metadata.labels = None;\n    }\n}",
        &[("Cup", "crd.metadata.labels"), ("Pot", "crd.metadata.labels")],
    );
    check(
        "",
        "fn main() { use cafe::PotObject; let mut crd = PotObject::crd(); normalize(&mut crd); }",
        &[("Pot", "&mut crd")],
    );
    check(
        "mod other { fn one() { let mut crd = super::Cup::crd(); one(&mut crd); }\n fn two() { let mut x = super::Cup::crd(); two(&mut x); } }",
        "",
        &[("Cup", "&mut crd"), ("Cup", "&mut x")],
    );
}

#[test]
fn does_not_warn_if_the_manifest_is_unaffected() {
    check(
        "fn crd() { print(&serde_yaml::to_string(&Cup::crd())); }",
        "fn main() { let crd = cafe::Cup::crd(); create(&crd); }",
        &[],
    );
    // Test code isn't part of the program.
    check(
        "#[cfg(test)] mod tests { fn t() { let mut crd = super::Cup::crd(); patch(&mut crd); } }\n\
         #[test] fn t() { let mut crd = Cup::crd(); patch(&mut crd); }",
        "",
        &[],
    );
    // This kind gets no CRD.
    check(
        "fn crd() { let mut crd = PodMonitor::crd(); patch(&mut crd); }",
        "",
        &[],
    );
    // Here we have another type with the same name, and a generic type.
    check(
        "mod other { struct Cup; fn crd() { let mut crd = Cup::crd(); patch(&mut crd); } }\n\
         fn each<T: CustomResourceExt>() { let mut crd = T::crd(); patch(&mut crd); }",
        "",
        &[],
    );
}
