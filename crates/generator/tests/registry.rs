//! Types from packages in registries and git. `Cargo.lock` pins the versions.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use rbuilder_generator::{Archive, ArchiveError, Options, Severity, SourceSet, Sources, generate};
use serde_json::{Value, json};

/// The columns are name, version, source and dependencies.
type Locked<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
const HERE: &str = "";

fn lock(packages: &[Locked<'_>]) -> String {
    let mut text = "version = 4\n".to_owned();
    for (name, version, source, dependencies) in packages {
        text += &format!("\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
        if !source.is_empty() {
            text += &format!("source = \"{source}\"\n");
        }
        if source.starts_with("registry+") {
            text += &format!("checksum = \"{}\"\n", checksum(name, version));
        }
        let list: Vec<String> = dependencies.iter().map(|name| format!("{name:?}")).collect();
        text += &format!("dependencies = [{}]\n", list.join(", "));
    }
    text
}

fn checksum(name: &str, version: &str) -> String {
    format!("checksum of {name} {version}")
}

struct Case {
    dependencies: &'static str,
    fields: &'static str,
    items: &'static str,
    files: Vec<(String, String)>,
}

impl Case {
    fn new(dependencies: &'static str, fields: &'static str) -> Case {
        Case {
            dependencies,
            fields,
            items: "",
            files: Vec::new(),
        }
    }

    fn items(mut self, items: &'static str) -> Case {
        self.items = items;
        self
    }

    fn lock(self, packages: &[Locked<'_>]) -> Case {
        self.file("Cargo.lock", &lock(packages))
    }

    fn file(mut self, path: &str, text: &str) -> Case {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    /// `manifest` is the rest of the manifest after the version.
    fn published(self, folder: &str, manifest: &str, library: &str) -> Case {
        let folder = if folder.contains('/') {
            folder.to_owned()
        } else {
            format!("<registry>/{folder}")
        };
        let package = folder.rsplit('/').next().expect("a folder");
        let (name, version) = package.rsplit_once('-').expect("a version");
        let toml =
            format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n{manifest}");
        self.file(&format!("{folder}/Cargo.toml"), &toml)
            .file(&format!("{folder}/src/lib.rs"), library)
    }

    fn sources(&self) -> Recorded {
        let mut sources = SourceSet::default();
        let manifest = format!(
            "[package]\nname = \"op\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\nkube = \"5\"\nrbuilder-runtime = \"0.1\"\n\
             serde = \"1\"\nschemars = \"1\"\nk8s-openapi = {{ version = \"0.29\", features = [\"v1_37\"] }}\n{}\n",
            self.dependencies
        );
        sources.insert("Cargo.toml", manifest);
        let source = format!(
            "use kube::CustomResource;\nuse rbuilder::CrdSchema;\nuse serde::{{Deserialize, Serialize}};\n{}\n\
             #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
             #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]\npub struct TestSpec {{\n    {}\n}}\n",
            self.items, self.fields
        );
        sources.insert("src/main.rs", source);
        for (path, text) in &self.files {
            sources.insert(path.as_str(), text.as_str());
        }
        Recorded {
            sources,
            opened: Mutex::default(),
        }
    }

    /// Returns the properties of `spec`, or the errors as `path: message / help`.
    fn properties(&self) -> Result<Value, Vec<String>> {
        let sources = self.sources();
        let made = generate(&sources, &Options::default());
        let errors: Vec<String> = made
            .diagnostics
            .iter()
            .filter(|said| said.severity == Severity::Error)
            .map(|said| {
                let help = said.help.as_deref().unwrap_or_default();
                format!("{}: {} / {help}", said.place.path, said.message)
            })
            .collect();
        if !errors.is_empty() {
            return Err(errors);
        }
        let crd = made
            .files
            .iter()
            .find(|file| file.path.starts_with("crd/"))
            .expect("a CRD");
        let crd: Value = serde_saphyr::from_str(&crd.text).expect("YAML");
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        Ok(schema["properties"]["spec"]["properties"].clone())
    }

    #[track_caller]
    fn check(&self, expected: Value) {
        assert_eq!(self.properties(), Ok(expected));
    }

    #[track_caller]
    fn fails(&self, expected: &str) {
        let errors = self.properties().expect_err("an error");
        assert_eq!(errors, [expected]);
    }

    /// Only these packages may be opened.
    #[track_caller]
    fn opens(&self, expected: &[&str]) {
        let sources = self.sources();
        let made = generate(&sources, &Options::default());
        let errors: Vec<_> = made.diagnostics.iter().filter(|said| said.is_error()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let opened = sources.opened.into_inner().expect("no panic");
        assert_eq!(opened.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}

/// Records which archives are opened. An archive exists if it has files.
struct Recorded {
    sources: SourceSet,
    opened: Mutex<BTreeSet<String>>,
}

impl Sources for Recorded {
    fn text(&self, path: &str) -> Result<Option<Arc<str>>, String> {
        self.sources.text(path)
    }

    fn rust_files(&self, folder: &str) -> Result<Vec<String>, String> {
        self.sources.rust_files(folder)
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, String> {
        self.sources.folders(folder)
    }

    fn open_archive(&self, folder: &str, archive: &Archive<'_>) -> Result<(), ArchiveError> {
        assert_eq!(archive.checksum, checksum(archive.name, archive.version));
        self.opened.lock().expect("no panic").insert(folder.to_owned());
        match archive.name {
            "other-checksum" => Err(ArchiveError::OtherChecksum("/cache/x.crate".to_owned())),
            "unreadable" => Err(ArchiveError::Unreadable("it is damaged".to_owned())),
            _ => self.sources.open_archive(folder, archive),
        }
    }
}

const SIZE: &str = "use serde::{Deserialize, Serialize};\n\
    /// A size.\n#[derive(Serialize, Deserialize, schemars::JsonSchema)]\npub struct Size { pub bytes: i64 }\n";

fn size() -> Value {
    json!({
        "description": "A size.",
        "properties": { "bytes": { "format": "int64", "type": "integer" } },
        "required": ["bytes"],
        "type": "object",
    })
}

fn one_size(fields: &'static str) -> Case {
    Case::new("sizes = \"1\"", fields)
        .lock(&[
            ("op", "0.1.0", HERE, &["sizes"]),
            ("sizes", "1.2.3", CRATES_IO, &[]),
        ])
        .published("sizes-1.2.3", "", SIZE)
}

#[test]
fn reads_type_in_locked_version() {
    one_size("pub size: sizes::Size,").check(json!({ "size": size() }));
    one_size("pub size: Size,")
        .items("use sizes::Size;")
        .check(json!({ "size": size() }));
    one_size("pub size: Size,")
        .items("use sizes::*;")
        .check(json!({ "size": size() }));
    one_size("pub size: inner::Size,")
        .items("mod inner { pub use sizes::*; }")
        .check(json!({ "size": size() }));
    one_size("pub size: Size,")
        .items("use schemars::*; use sizes::*; mod inner { pub use sizes::*; } use inner::*;")
        .check(json!({ "size": size() }));
    for items in [
        "use sizes as s; use s::Size as Sz;",
        "use sizes; use sizes::Size as Sz;",
        "type Inner = sizes::Size; type Sz = Box<Inner>;",
        "mod inner { pub type Other = sizes::Size; } use inner::Other as Sz;",
        "extern crate sizes as s; use s::Size as Sz;",
        "mod inner { pub use sizes::Size as Other; } use inner::Other as Sz;",
        "mod inner { pub use sizes as s; } mod other { pub use super::inner::*; } use other::s::Size as Sz;",
        "struct Sz(i8); impl schemars::JsonSchema for Sz { fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema { sizes::Size::json_schema(generator) } }",
        "use sizes::Size; struct Sz(i8); impl schemars::JsonSchema for Sz { fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema { generator.subschema_for::<Size>() } }",
    ] {
        one_size("pub size: Sz,")
            .items(items)
            .check(json!({ "size": size() }));
    }
    one_size("#[schemars(schema_with = \"sizes::schema\")] pub size: i8,")
        .published("sizes-1.2.3", "", &format!("{SIZE} pub fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {{ Size::json_schema(generator) }}"))
        .check(json!({ "size": size() }));
    one_size("pub size: Sz,")
        .items("type Sz = sizes::Size;")
        .check(json!({ "size": size() }));
}

#[test]
fn reads_no_package_without_need() {
    for (fields, items) in [
        ("pub size: i64,", "use sizes::Size;"),
        ("pub size: Option<String>,", "use sizes::*;"),
        ("pub at: kube::core::Duration,", "use sizes::*;"),
        ("#[serde(default = \"sizes::default\")] pub size: i64,", ""),
        ("pub size: i64,", "fn f(size: sizes::Size) {}"),
        (
            "pub size: Own,",
            "use sizes::*; #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)] pub struct Own { size: std::num::NonZeroU8 }",
        ),
        (
            "pub size: Own,",
            "use sizes::*; pub struct Own; impl schemars::JsonSchema for Own { fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema { let mut schema = String::json_schema(generator); schema.remove(\"title\"); schema } }",
        ),
    ] {
        one_size(fields).items(items).opens(&[]);
    }
    one_size("pub size: sizes::Size,").opens(&["<registry>/sizes-1.2.3"]);
}

#[test]
fn distinguishes_versions_and_renamed_packages() {
    let small = SIZE.replace("i64", "u8").replace("A size", "A small size");
    Case::new(
        "sizes = \"1\"\nsmall = { package = \"sizes\", version = \"0.9\" }",
        "pub large: sizes::Size, pub small: small::Size,",
    )
    .lock(&[
        ("op", "0.1.0", HERE, &["sizes 0.9.1", "sizes 1.2.3"]),
        ("sizes", "0.9.1", CRATES_IO, &[]),
        ("sizes", "1.2.3", CRATES_IO, &[]),
    ])
    .published("sizes-1.2.3", "", SIZE)
    .published("sizes-0.9.1", "", &small)
    .check(json!({
        "large": size(),
        "small": {
            "description": "A small size.",
            "properties": { "bytes": { "maximum": 255, "minimum": 0, "format": "int32", "type": "integer" } },
            "required": ["bytes"],
            "type": "object",
        },
    }));
}

/// One feature of the published package is for the schema, and the other one adds a field.
fn featured(dependencies: &'static str) -> Case {
    let library = "#[cfg_attr(feature = \"schema\", derive(schemars::JsonSchema))]\n\
        #[derive(serde::Serialize, serde::Deserialize)]\npub struct Size { pub bytes: i64, #[cfg(feature = \"more\")] pub more: bool }";
    let features = "[features]\ndefault = [\"schema\"]\nschema = [\"dep:schemars\"]\nmore = []\n[dependencies]\nschemars = { version = \"1\", optional = true }\n";
    Case::new(dependencies, "pub size: sizes::Size,").published("sizes-1.2.3", features, library)
}

fn fields_of(case: &Case) -> Vec<String> {
    let properties = case.properties().expect("a schema");
    let size = properties["size"]["properties"].as_object().expect("an object");
    size.keys().cloned().collect()
}

#[test]
fn dependents_enable_features() {
    let locked: &[Locked<'_>] = &[
        ("op", "0.1.0", HERE, &["sizes"]),
        ("sizes", "1.2.3", CRATES_IO, &[]),
    ];
    assert_eq!(fields_of(&featured("sizes = \"1\"").lock(locked)), ["bytes"]);
    let more = "sizes = { version = \"1\", features = [\"more\"] }";
    assert_eq!(fields_of(&featured(more).lock(locked)), ["bytes", "more"]);
    let none = "sizes = { version = \"1\", default-features = false }";
    featured(none).lock(locked).fails(&format!(
        "src/main.rs: `sizes::Size` does not derive a schema / turn on the feature of its crate that derives a schema, or {}",
        rbuilder_schema::ESCAPE
    ));
}

#[test]
fn indirect_dependents_enable_features() {
    let locked: &[Locked<'_>] = &[
        ("op", "0.1.0", HERE, &["middle", "sizes", "unrelated"]),
        ("middle", "1.0.0", CRATES_IO, &["sizes"]),
        ("sizes", "1.2.3", CRATES_IO, &[]),
        ("unrelated", "1.0.0", CRATES_IO, &[]),
    ];
    let case = |manifest: &str, dependencies| {
        featured(dependencies)
            .lock(locked)
            .published("middle-1.0.0", manifest, "")
    };
    let both = "sizes = \"1\"\nmiddle = \"1\"\nunrelated = \"1\"";
    for (manifest, expected) in [
        (
            "[dependencies]\nsizes = { version = \"1\", features = [\"more\"] }",
            &["bytes", "more"][..],
        ),
        ("[dependencies]\nsizes = \"1\"", &["bytes"]),
        (
            "[features]\ndefault = [\"sizes?/more\"]\n[dependencies]\nsizes = { version = \"1\", optional = true }",
            &["bytes"],
        ),
        (
            "[features]\ndefault = [\"sizes/more\"]\n[dependencies]\nsizes = { version = \"1\", optional = true }",
            &["bytes", "more"],
        ),
        (
            "[target.'cfg(windows)'.dependencies]\nsizes = { version = \"1\", features = [\"more\"] }",
            &["bytes"],
        ),
        (
            "[target.'cfg(unix)'.dependencies]\nsizes = { version = \"1\", features = [\"more\"] }",
            &["bytes", "more"],
        ),
        (
            "[build-dependencies]\nsizes = { version = \"1\", features = [\"more\"] }",
            &["bytes"],
        ),
        (
            "[lib]\nproc-macro = true\n[dependencies]\nsizes = { version = \"1\", features = [\"more\"] }",
            &["bytes"],
        ),
    ] {
        assert_eq!(fields_of(&case(manifest, both)), expected, "{manifest}");
    }
    // If a package can't enable features, we don't read its manifest.
    case("[dependencies]\nsizes = \"1\"", both).opens(&["<registry>/middle-1.0.0", "<registry>/sizes-1.2.3"]);
    featured(both).lock(locked).fails(
        "src/main.rs: cannot read `sizes::Size`: the source of middle 1.0.0 is not on this machine / run `cargo fetch`",
    );
}

#[test]
fn reads_type_through_two_packages() {
    let middle = "pub mod inner { pub use sizes::*; }\npub use inner::Size as Renamed;\n\
        /// A pair.\n#[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize)]\npub struct Pair { pub left: Renamed, pub name: String }";
    let case = |fields| {
        Case::new("middle = \"1\"", fields)
            .lock(&[
                ("op", "0.1.0", HERE, &["middle"]),
                ("middle", "1.0.0", CRATES_IO, &["sizes"]),
                ("sizes", "1.2.3", CRATES_IO, &[]),
            ])
            .published("middle-1.0.0", "[dependencies]\nsizes = \"1\"", middle)
            .published("sizes-1.2.3", "", SIZE)
    };
    case("pub size: middle::Renamed,").check(json!({ "size": size() }));
    case("pub size: middle::inner::Size,").check(json!({ "size": size() }));
    case("pub pair: middle::Pair,").check(json!({ "pair": {
        "description": "A pair.",
        "properties": { "left": size(), "name": { "type": "string" } },
        "required": ["left", "name"],
        "type": "object",
    } }));
}

#[test]
fn reports_unavailable_package_where_type_is_used() {
    let asked = |dependencies, package: &'static str| {
        let name = package.replace('-', "_");
        let fields = Box::leak(format!("pub size: {name}::Size,").into_boxed_str());
        Case::new(dependencies, fields).lock(&[
            ("op", "0.1.0", HERE, &[package]),
            ("sizes", "1.2.3", CRATES_IO, &[]),
            ("other-checksum", "1.0.0", CRATES_IO, &[]),
            ("unreadable", "1.0.0", CRATES_IO, &[]),
            (
                "from-git",
                "1.0.0",
                "git+https://example.com/x?branch=main#0123",
                &[],
            ),
            ("patched", "1.0.0", HERE, &[]),
        ])
    };
    let alternative =
        "put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field";
    for (dependencies, package, reason, help) in [
        (
            "sizes = \"1\"",
            "sizes",
            "the source of sizes 1.2.3 is not on this machine",
            "run `cargo fetch`",
        ),
        (
            "other-checksum = \"1\"",
            "other-checksum",
            "the archive of other-checksum 1.0.0 does not have the checksum in `Cargo.lock`",
            "remove `/cache/x.crate`, and run `cargo fetch`",
        ),
        (
            "unreadable = \"1\"",
            "unreadable",
            "failed to read the archive of unreadable 1.0.0: it is damaged",
            alternative,
        ),
        (
            "from-git = { git = \"https://example.com/x\" }",
            "from-git",
            "from-git 1.0.0 comes from git, and `Cargo.lock` has no checksum to verify a checkout with",
            &format!("add the source to the repository with `cargo vendor`, or {alternative}"),
        ),
        (
            "patched = \"1\"",
            "patched",
            "patched 1.0.0 is patched with a path",
            &format!("name its path in `[dependencies]`, or {alternative}"),
        ),
        (
            "unlisted = \"1\"",
            "unlisted",
            "`Cargo.lock` is out of date: it does not have `unlisted` as `Cargo.toml` asks for it",
            "run `cargo update --workspace`",
        ),
        (
            "sizes = { version = \"1\", optional = true }",
            "sizes",
            "`sizes` is an optional dependency, and no feature turns it on",
            "select the feature with `--features`",
        ),
    ] {
        let name = package.replace('-', "_");
        asked(dependencies, package).fails(&format!(
            "src/main.rs: cannot read `{name}::Size`: {reason} / {help}"
        ));
    }
    Case::new("sizes = \"1\"", "pub size: sizes::Size,").fails(
        "src/main.rs: cannot read `sizes::Size`: the version of its crate is unknown without `Cargo.lock` / run `cargo generate-lockfile` and commit `Cargo.lock`, or put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field",
    );
    Case::new("sizes = \"1\"", "pub size: Size,")
        .items("use sizes::*;")
        .fails("src/main.rs: cannot read `Size`: the version of its crate is unknown without `Cargo.lock` / run `cargo generate-lockfile` and commit `Cargo.lock`, or put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field");
    Case::new("sizes = \"1\"", "pub size: sizes::Size,").file("Cargo.lock", "<<<").fails(
        "src/main.rs: cannot read `sizes::Size`: failed to parse `Cargo.lock`: key with no value, expected `=` / run `cargo generate-lockfile` and commit `Cargo.lock`, or put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field",
    );
}

#[test]
fn advice_for_published_package_refers_to_own_field() {
    let library = "#[derive(schemars::JsonSchema)]\npub struct Size { pub bytes: (u8, String) }";
    Case::new("sizes = \"1\"", "pub size: sizes::Size,")
        .lock(&[("op", "0.1.0", HERE, &["sizes"]), ("sizes", "1.2.3", CRATES_IO, &[])])
        .published("sizes-1.2.3", "", library)
        .fails(
            "<registry>/sizes-1.2.3/src/lib.rs: a tuple has no structural schema; the items of a list in a CRD have one type / \
             `sizes-1.2.3` is a published package: describe the JSON on the field of yours that leads here, with `#[schemars(with = \"…\")]`, or `#[kube(schema_type = \"…\")]` under `derive(CrdSchema)`",
        );
}

#[test]
fn published_package_cannot_read_outside_its_directory() {
    for module in [
        "#[path = \"../../../src/secret.rs\"] mod inner;",
        "#[path = \"/src/secret.rs\"] mod inner;",
        "include!(\"../../../src/secret.rs\"); mod inner {}",
    ] {
        let library = format!("{module}\npub use inner::Size;");
        let errors = Case::new("sizes = \"1\"", "pub size: sizes::Size,")
            .lock(&[
                ("op", "0.1.0", HERE, &["sizes"]),
                ("sizes", "1.2.3", CRATES_IO, &[]),
            ])
            .file("src/secret.rs", SIZE)
            .published("sizes-1.2.3", "", &library)
            .properties()
            .expect_err("no such file in the package");
        assert_eq!(errors.len(), 1, "{errors:?}");
    }
}

/// A broken or missing file only matters if a type that we need may be in it.
#[test]
fn ignores_unrelated_errors_in_published_package() {
    let library = format!(
        "mod absent;\nmod broken {{ }}\nmacro_rules! m {{ () => {{}} }}\nm!();\ninclude!(NOTHING);\n{SIZE}"
    );
    one_size("pub size: sizes::Size,")
        .published("sizes-1.2.3", "", &library)
        .check(json!({ "size": size() }));
    let broken = "pub mod broken;\npub use broken::*;";
    let errors = one_size("pub size: sizes::Size,")
        .published("sizes-1.2.3", "", broken)
        .file(
            "<registry>/sizes-1.2.3/src/broken.rs",
            "pub struct Size { bytes: ) }",
        )
        .properties()
        .expect_err("the file is not Rust");
    assert!(
        errors[0].starts_with("<registry>/sizes-1.2.3/src/broken.rs: "),
        "{errors:?}"
    );
    // Here the root file of the library is missing.
    let case =
        one_size("pub size: sizes::Size,").published("sizes-1.2.3", "[lib]\npath = \"gone.rs\"\n", SIZE);
    let errors = case.properties().expect_err("the file is missing");
    assert!(
        errors[0].starts_with("<registry>/sizes-1.2.3/gone.rs: the package does not have this file"),
        "{errors:?}"
    );
    let absent = "pub mod absent;\npub use absent::Size;";
    let errors = one_size("pub size: sizes::Size,")
        .published("sizes-1.2.3", "", absent)
        .properties()
        .expect_err("the file is missing");
    assert!(
        errors[0].contains("file not found for module `absent`"),
        "{errors:?}"
    );
}

fn vendored(folder: &str, record: &str) -> Case {
    Case::new("sizes = \"1\"", "pub size: sizes::Size,")
        .lock(&[("op", "0.1.0", HERE, &["sizes"]), ("sizes", "1.2.3", CRATES_IO, &[])])
        .file(
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = \"vendored-sources\"\n[source.vendored-sources]\ndirectory = \"vendor\"\n",
        )
        .file(&format!("vendor/{folder}/Cargo.toml"), "[package]\nname = \"sizes\"\nversion = \"1.2.3\"\nedition = \"2021\"")
        .file(&format!("vendor/{folder}/src/lib.rs"), SIZE)
        .file(&format!("vendor/{folder}/.cargo-checksum.json"), record)
}

#[test]
fn reads_vendored_packages() {
    let record = format!(
        "{{ \"files\": {{}}, \"package\": \"{}\" }}",
        checksum("sizes", "1.2.3")
    );
    for folder in ["sizes", "sizes-1.2.3", "any-name"] {
        let case = vendored(folder, &record);
        case.check(json!({ "size": size() }));
        case.opens(&[]);
    }
    vendored("sizes", "{ \"files\": {}, \"package\": \"00\" }").fails(
        "src/main.rs: cannot read `sizes::Size`: `vendor/sizes/.cargo-checksum.json` does not have the checksum of sizes 1.2.3 in `Cargo.lock` / run `cargo vendor`",
    );
    let errors = vendored("sizes", "{").properties().expect_err("no JSON");
    assert!(
        errors[0].contains("failed to parse `vendor/sizes/.cargo-checksum.json`"),
        "{errors:?}"
    );
    vendored("sizes", &record)
        .file(
            "vendor/sizes/Cargo.toml",
            "[package]\nname = \"sizes\"\nversion = \"1.2.4\"",
        )
        .fails(
            "src/main.rs: cannot read `sizes::Size`: `vendor` does not have sizes 1.2.3 / run `cargo vendor`",
        );
    // Packages from git can be vendored as well, but have no checksum.
    let git = "git+https://example.com/x?branch=main#0123";
    vendored("sizes", "{ \"files\": {}, \"package\": null }")
        .lock(&[("op", "0.1.0", HERE, &["sizes"]), ("sizes", "1.2.3", git, &[])])
        .file(
            ".cargo/config.toml",
            "[source.\"git+https://example.com/x?branch=main\"]\ngit = \"https://example.com/x\"\nbranch = \"main\"\nreplace-with = \"v\"\n[source.v]\ndirectory = \"vendor\"\n",
        )
        .check(json!({ "size": size() }));
}

#[test]
fn same_name_and_version_in_two_registries() {
    let other = "registry+https://example.com/index";
    let small = SIZE.replace("i64", "bool");
    let folder = format!("<registry>/sizes-1.2.3-{}", &checksum("sizes", "1.2.3")[..8]);
    let case = Case::new(
        "sizes = \"1\"\nsmall = { package = \"other\", version = \"1\" }",
        "pub large: sizes::Size, pub small: small::Size,",
    )
    .lock(&[
        ("op", "0.1.0", HERE, &["sizes", "other"]),
        ("sizes", "1.2.3", CRATES_IO, &[]),
        ("other", "1.0.0", CRATES_IO, &["sizes"]),
    ])
    .published("sizes-1.2.3", "", SIZE)
    .published(
        "other-1.0.0",
        "[dependencies]\nsizes = { version = \"1\", registry-index = \"https://example.com/index\" }",
        "pub use sizes::Size;",
    );
    let text = format!(
        "{}\n[[package]]\nname = \"sizes\"\nversion = \"1.2.3\"\nsource = \"{other}\"\nchecksum = \"{}\"\n",
        lock(&[
            (
                "op",
                "0.1.0",
                HERE,
                &[&format!("sizes 1.2.3 ({CRATES_IO})"), "other"]
            ),
            ("sizes", "1.2.3", CRATES_IO, &[]),
            ("other", "1.0.0", CRATES_IO, &[&format!("sizes 1.2.3 ({other})")]),
        ]),
        checksum("sizes", "1.2.3"),
    );
    let properties = case
        .file("Cargo.lock", &text)
        .file(
            &format!("{folder}/Cargo.toml"),
            "[package]\nname = \"sizes\"\nversion = \"1.2.3\"",
        )
        .file(&format!("{folder}/src/lib.rs"), &small)
        .properties()
        .expect("a schema");
    assert_eq!(properties["large"], size());
    assert_eq!(
        properties["small"]["properties"]["bytes"],
        json!({ "type": "boolean" })
    );
}

#[test]
fn package_without_serde_defaults_gets_none_from_published_types() {
    let library = "fn seven() -> u8 { 7 }\n#[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize)]\npub struct Size { #[serde(default = \"seven\")] pub bytes: u8 }";
    let default_of = |metadata: &'static str| {
        let dependencies = Box::leak(format!("sizes = \"1\"\n{metadata}").into_boxed_str());
        let case = Case::new(dependencies, "pub size: sizes::Size,")
            .lock(&[
                ("op", "0.1.0", HERE, &["sizes"]),
                ("sizes", "1.2.3", CRATES_IO, &[]),
            ])
            .published("sizes-1.2.3", "", library);
        case.properties().expect("a schema")["size"]["properties"]["bytes"]["default"].clone()
    };
    assert_eq!(default_of(""), json!(7));
    assert_eq!(
        default_of("[package.metadata.rbuilder]\nserde-defaults = false"),
        Value::Null
    );
}
