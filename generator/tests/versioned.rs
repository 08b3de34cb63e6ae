//! Modules with stackable-versioned's `#[versioned]` generate the same CRDs as their expansion.

use rbuilder_generator::{Generated, Options, SourceSet, generate};

const MANIFEST: &str = "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nschemars = \"1\"\nserde = \"1\"\nstackable-versioned = \"0.11\"\n";

const DERIVES: &str = "JsonSchema, Clone, Debug, Serialize, Deserialize";

fn run(lib: &str) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", MANIFEST);
    let uses = "use kube::CustomResource;\nuse schemars::JsonSchema;\nuse serde::{Deserialize, Serialize};\n";
    sources.insert("src/lib.rs", format!("{uses}{lib}"));
    generate(&sources, &Options::default())
}

/// Returns the code to which the macro expands the module from `source`.
fn expanded() -> String {
    format!(
        "pub struct Unrelated;\n#[derive({DERIVES})]\npub struct Shared {{ pub size: i32 }}\n\
         pub mod v1alpha1 {{\nuse super::*;\n\
         /// A cup of coffee.\n#[kube(group = \"x.io\", version = \"v1alpha1\", kind = \"Cup\", doc = \"A cup.\", plural = \"cuppas\", shortname = \"c\", namespaced, status = \"v1alpha1::CupStatus\", scale(spec_replicas_path = \".spec.count\", status_replicas_path = \".status.count\"))]\n\
         #[derive(CustomResource, {DERIVES})]\n#[serde(rename_all = \"camelCase\")]\n\
         pub struct CupSpec {{ pub count: i32, pub shared: Shared, pub own_lid: Lid }}\n\
         #[derive({DERIVES})]\npub enum Lid {{ Open, Closed }}\n\
         #[derive({DERIVES}, Default)]\npub struct CupStatus {{ pub count: Option<i32> }}\n}}\n"
    )
}

fn source(module: &str, keys: &str) -> String {
    let versioned = expanded()
        .replace(
            "pub mod v1alpha1 {\nuse super::*;\n",
            &format!("{module}\npub mod versioned {{\n"),
        )
        .replace("#[kube(", &format!("#[versioned({keys}("))
        .replace("version = \"v1alpha1\", kind = \"Cup\", ", "")
        .replace("\".status.count\"))]", "\".status.count\")))]");
    assert!(!versioned.contains("kube("), "{versioned}");
    versioned
}

#[test]
fn single_version_expands_to_its_module() {
    let expected = run(&expanded());
    assert_eq!(expected.files.len(), 1, "{:#?}", expected.diagnostics);
    for (module, keys) in [
        ("#[versioned(version(name = \"v1alpha1\"))]", "crd"),
        (
            "#[versioned(version(name = \"v1alpha1\"), crates(kube_core = \"kube::core\"), skip(from))]",
            "crd",
        ),
        (
            "#[stackable_versioned::versioned(version(name = \"v1alpha1\"))]",
            "k8s",
        ),
    ] {
        let found = run(&source(module, keys));
        assert_eq!(found.diagnostics, expected.diagnostics, "{module}");
        assert_eq!(found.files, expected.files, "{module}");
    }
}

#[test]
fn version_types_resolve_from_outside() {
    let user = "#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]\n\
                #[kube(group = \"x.io\", version = \"v1\", kind = \"Pot\")]\npub struct PotSpec { pub lid: v1alpha1::Lid }\n";
    let found = run(&format!(
        "{}{user}",
        source("#[versioned(version(name = \"v1alpha1\"))]", "crd")
    ));
    assert_eq!(found.files.len(), 2, "{:#?}", found.diagnostics);
    let kept = source(
        "#[versioned(version(name = \"v1alpha1\"), options(preserve_module))]",
        "crd",
    )
    .replace("pub mod versioned {", "pub mod versioned {\n")
    .replace("pub shared: Shared", "pub shared: crate::Shared")
    .replace("JsonSchema, Clone", "schemars::JsonSchema, Clone")
    .replace("v1alpha1::CupStatus", "CupStatus");
    let found = run(&format!(
        "{kept}{}",
        user.replace("v1alpha1::Lid", "versioned::v1alpha1::Lid")
    ));
    assert_eq!(found.files.len(), 2, "{:#?}", found.diagnostics);
}

#[test]
fn reports_errors_in_versioned_items() {
    let lib = source("#[versioned(version(name = \"v1alpha1\"))]", "crd")
        .replace("own_lid: Lid", "own_lid: Unknown");
    let found = run(&lib);
    assert_eq!(found.files, []);
    assert_eq!(found.diagnostics.len(), 1, "{:#?}", found.diagnostics);
    assert_eq!(found.diagnostics[0].message, "cannot find type `Unknown`");
    let unknown =
        source("#[versioned(version(name = \"v1alpha1\"))]", "crd").replace("shortname = ", "shortnme = ");
    let found = run(&unknown);
    assert!(
        found.diagnostics[0].message.contains("unknown key `shortnme`"),
        "{:#?}",
        found.diagnostics
    );
}

#[test]
fn rejects_unsupported_modules() {
    for module in [
        "#[versioned(version(name = \"v1alpha1\"), version(name = \"v1\"))]",
        "#[versioned(version(name = \"v1alpha1\", doc = \"The first.\"))]",
        "#[other] #[versioned(version(name = \"v1alpha1\"))]",
    ] {
        let found = run(&source(module, "crd"));
        assert_eq!(found.files, [], "{module}");
        assert!(found.diagnostics.iter().any(|said| said.is_error()), "{module}");
    }
}
