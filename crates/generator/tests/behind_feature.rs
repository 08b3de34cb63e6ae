//! If a kind needs a disabled feature, a note names the feature.

use rbuilder_generator::{Options, Severity, SourceSet, generate};

const MANIFEST: &str = "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[features]\ncontroller = []\nextra = []\n\n[dependencies]\nkube = \"5\"\nschemars = \"1\"\nserde = \"1\"\n";

const CUP: &str = "#[derive(kube::CustomResource, schemars::JsonSchema, Clone, Debug, serde::Serialize, serde::Deserialize)]\n\
                   #[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\")]\npub struct CupSpec { pub size: String }\n";

/// Returns the messages of all notes, and the number of generated files.
fn notes(files: &[(&str, &str)], features: &[&str]) -> (Vec<String>, usize) {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", MANIFEST);
    for (path, text) in files {
        sources.insert(*path, *text);
    }
    let options = Options {
        features: features.iter().map(|name| (*name).to_owned()).collect(),
        ..Options::default()
    };
    let generated = generate(&sources, &options);
    let notes = generated.diagnostics.iter();
    let notes = notes.filter(|said| said.severity == Severity::Note);
    (
        notes.map(|said| said.message.clone()).collect(),
        generated.files.len(),
    )
}

const NOTE: &str = "kinds are left out here: the feature `controller` is off";

#[test]
fn note_names_disabled_feature() {
    let of_type = format!("#[cfg(feature = \"controller\")]\n{CUP}");
    let of_module = format!("#[cfg(all(unix, feature = \"controller\"))]\nmod api {{\n{CUP}\n}}\n");
    let of_derive = CUP
        .replace("kube::CustomResource, ", "")
        .replace(
            "#[kube(",
            "#[cfg_attr(feature = \"controller\", derive(kube::CustomResource), kube(",
        )
        .replace(")]\npub struct", "))]\npub struct");
    let either = format!("#[cfg(any(feature = \"controller\", feature = \"extra\"))]\n{CUP}");
    for lib in [&of_type, &of_module, &of_derive, &either] {
        let files = [("src/lib.rs", lib.as_str())];
        assert_eq!(notes(&files, &[]), (vec![NOTE.to_owned()], 0), "{lib}");
        assert_eq!(notes(&files, &["controller"]), (vec![], 1), "{lib}");
    }
    for (path, text) in [
        ("src/api.rs", CUP),
        ("src/api/mod.rs", CUP),
        ("src/api/cup.rs", CUP),
    ] {
        let files = [
            (
                "src/lib.rs",
                "#[cfg(feature = \"controller\")]\npub(crate) mod api;\n",
            ),
            (path, text),
            (
                "src/api.rs",
                if path == "src/api/cup.rs" {
                    "mod cup;\n"
                } else {
                    text
                },
            ),
        ];
        let files = if path == "src/api/mod.rs" {
            &files[..2]
        } else {
            &files[..]
        };
        assert_eq!(notes(files, &[]), (vec![NOTE.to_owned()], 0), "{path}");
    }
}

#[test]
fn no_note_for_other_conditions() {
    for condition in [
        "cfg(test)",
        "cfg(windows)",
        "cfg(all(test, feature = \"controller\"))",
        "cfg(all(feature = \"extra\", feature = \"controller\"))",
    ] {
        let lib = format!("#[{condition}]\n{CUP}");
        assert_eq!(notes(&[("src/lib.rs", &lib)], &[]), (vec![], 0), "{condition}");
    }
    let no_kind = "#[cfg(feature = \"controller\")]\nmod api { pub struct Size; }\n#[cfg(feature = \"controller\")]\nmod other;\n";
    let files = [("src/lib.rs", no_kind), ("src/other.rs", "pub struct Size;")];
    assert_eq!(notes(&files, &[]), (vec![], 0));
}
