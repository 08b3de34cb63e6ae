//! If a derive is removed but its attributes stay, we report that before a CRD is lost or differs
//! from the program's own.

use rbuilder_generator::{Generated, Options, SourceSet, generate};

const MANIFEST: &str = "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nschemars = \"1\"\nserde = \"1\"\nrbuilder-runtime = \"0.1\"\n";

fn run(derives: &str, keys: &str, more: &str) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", MANIFEST);
    sources.insert(
        "src/lib.rs",
        format!(
            "use kube::CustomResource; use rbuilder::CrdSchema; use schemars::JsonSchema; use serde::{{Deserialize, Serialize}};\n\
             #[derive({derives} Clone, Debug, Serialize, Deserialize)]\n\
             #[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\"{keys})]\npub struct CupSpec {{ size: i32 }}\n{more}"
        ),
    );
    generate(&sources, &Options::default())
}

#[test]
fn kind_without_the_derive_is_an_error() {
    for derives in ["JsonSchema,", "CrdSchema,", "KubeSchema,"] {
        let found = run(derives, "", "");
        let said: Vec<&str> = found.diagnostics.iter().map(|said| &*said.message).collect();
        assert_eq!(
            said,
            [
                "`CupSpec` has the attributes of the kind `Cup`, but does not derive `CustomResource`: the program has no such kind"
            ],
            "{derives}"
        );
        assert_eq!(found.files, [], "{derives}");
    }
}

#[test]
fn kind_without_a_schema_is_a_warning() {
    let hand = "impl JsonSchema for CupSpec { fn json_schema(generator: &mut SchemaGenerator) -> Schema { json_schema!({ \"type\": \"object\" }) } }";
    let disabled = ", schema = \"disabled\"";
    for (derives, keys, more, is_reported) in [
        ("CustomResource,", "", "", true),
        ("CustomResource, JsonSchema,", "", "", false),
        ("CustomResource, CrdSchema,", "", "", false),
        ("CustomResource, KubeSchema,", "", "", false),
        ("CustomResource,", "", hand, false),
        ("CustomResource, JsonSchema,", disabled, "", false),
    ] {
        let found = run(derives, keys, more);
        let is_found = found.diagnostics.iter().any(|said| {
            !said.is_error()
                && said
                    .message
                    .starts_with("`CupSpec` derives no schema, so `Cup::crd()` does not compile")
        });
        assert_eq!(
            is_found, is_reported,
            "{derives} {keys} {more}: {:#?}",
            found.diagnostics
        );
        assert_eq!(found.files.len(), 1, "{derives} {keys} {more}");
    }
}
