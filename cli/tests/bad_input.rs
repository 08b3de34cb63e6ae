//! `rbuilder manifests` on unusual input. It must terminate, report what is wrong and where,
//! continue with the other files, and write nothing.

#![allow(clippy::disallowed_methods)] // the tests create the input

use crate::support;

use std::fs;

use support::{Folder, Ran};

const KIND: &str = "use kube::CustomResource; use rbuilder::CrdSchema;\n\
    #[derive(CustomResource, CrdSchema)]\n\
    #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Good\")]\n\
    pub struct GoodSpec { pub size: i32 }\n";

/// `before` is the text before the kind. There is no PROJECT, so we need `keep-going = false` to
/// let an error anywhere prevent all manifests, as in a scaffold.
fn package(before: &str) -> Folder {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"bad\"\nedition = \"2024\"\n[dependencies]\nkube = \"5\"\nrbuilder = \"0.1\"\n\
         [package.metadata.rbuilder]\nkeep-going = false\n",
    );
    folder.write("src/lib.rs", &format!("{before}\n{KIND}"));
    folder
}

/// Checks that the command fails with these messages and writes nothing.
#[track_caller]
fn refused(folder: &Folder, parts: &[&str]) -> Ran {
    let ran = folder.run("manifests");
    assert_eq!(ran.code, 1, "{}{}", ran.out, shortened(&ran.err));
    for part in parts {
        assert!(
            ran.err.contains(part),
            "{part:?} is missing in\n{}",
            shortened(&ran.err)
        );
    }
    assert!(!folder.path().join("config").exists());
    ran
}

/// Returns the CRD.
#[track_caller]
fn accepted(folder: &Folder) -> String {
    let ran = folder.run("manifests");
    assert_eq!(ran.code, 0, "{}{}", ran.out, shortened(&ran.err));
    fs::read_to_string(folder.path().join("config/crd/bases/g.example.com_goods.yaml")).expect("the CRD")
}

fn shortened(text: &str) -> String {
    text.chars().take(4000).collect()
}

#[test]
fn reports_syntax_errors() {
    let folder = package("pub mod broken;\npub mod other;");
    folder.write("src/broken.rs", "pub struct Fine;\npub struct {\n");
    folder.write(
        "src/other.rs",
        "#[derive(rbuilder::CrdSchema)]\nstruct A { #[crd(mnimum = 1)] a: i32 }\n",
    );
    refused(
        &folder,
        &[
            "--> src/broken.rs:2:12",
            "--> src/other.rs:2:",
            "unknown marker `mnimum`",
        ],
    );
}

#[test]
fn rejects_two_kinds_with_the_same_name() {
    let folder = package("pub mod again;");
    folder.write("src/again.rs", KIND);
    refused(
        &folder,
        &[
            "duplicate version of kind `Good` in group `g.example.com`: `v1`",
            "src/again.rs",
            "src/lib.rs",
        ],
    );
}

#[test]
fn reports_kind_outside_of_all_modules() {
    let folder = package("");
    folder.write("src/lost.rs", &KIND.replace("Good", "Lost"));
    let ran = folder.run("manifests").ok();
    assert!(ran.err.contains("--> src/lost.rs"), "{}", ran.err);
    assert!(ran.err.contains("warning[RB0112]: "), "{}", ran.err);
}

/// A file for tests or for a disabled feature belongs to a module, so no message may tell the user
/// to delete it.
#[test]
fn accepts_kind_in_a_module_of_another_build() {
    for attribute in [
        "#[cfg(test)]",
        "#[cfg(feature = \"extra\")]",
        "#[cfg(test)] #[path = \"lost.rs\"]",
        "#[cfg(windows)] mod outer { #[cfg(test)] #[path = \"../lost.rs\"]",
    ] {
        let end = if attribute.contains('{') { "}" } else { "" };
        let folder = package(&format!("{attribute} mod lost; {end}"));
        folder.write("src/lost.rs", &KIND.replace("Good", "Lost"));
        let ran = folder.run("manifests").ok();
        let notes = usize::from(attribute.contains("feature"));
        assert_eq!(
            ran.err.matches("pass `--features extra`").count(),
            notes,
            "{}",
            ran.err
        );
        assert_eq!(ran.err.is_empty(), notes == 0, "{}", ran.err);
        assert!(!ran.err.contains("delete"), "{}", ran.err);
    }
}

/// If there is nothing to do, the command prints where it has searched, because that may not be
/// where the user meant.
#[test]
fn reports_when_there_is_no_kind() {
    let folder = package("");
    folder.write("src/lib.rs", "pub mod a;\n");
    folder.write("src/a.rs", "pub struct A;\n");
    for line in [
        "manifests",
        "manifests --check --allow-empty",
        "manifests --stdout",
        "manifests --only crd",
    ] {
        let ran = folder.run(line).ok();
        let said = "note[RB1006]: no kinds or markers found in 2 Rust files of the library and the binaries";
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
        assert!(
            ran.err.contains("#[derive(CustomResource)]"),
            "{line}: {}",
            ran.err
        );
    }
    folder.write(
        "src/a.rs",
        "#[rbuilder::rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]\nfn f() {}\n",
    );
    assert_eq!(folder.run("manifests").ok().err, "");
}

#[test]
fn rejects_invalid_role_names() {
    for name in ["", ".", "..", "a/b", "a%b"] {
        let ran = package("").run(&format!("manifests --role-name={name}"));
        assert_ne!(ran.code, 0, "{name}");
        assert!(ran.err.contains("must be a valid path segment"), "{}", ran.err);
    }
    package("").run("manifests --role-name=system:my-role.v1").ok();
}

/// Nested types are only infinite if a type contains itself.
#[test]
fn reads_deeply_nested_types() {
    let chain = |depth: usize| -> String {
        (0..depth)
            .map(|at| format!("#[derive(CrdSchema)] pub struct T{at} {{ a: T{} }}\n", at + 1))
            .chain([format!("#[derive(CrdSchema)] pub struct T{depth} {{ a: i32 }}\n")])
            .collect()
    };
    let folder = |depth| {
        let folder = package("");
        folder.write(
            "src/lib.rs",
            &format!("{}{}", KIND.replace("i32", "T0"), chain(depth)),
        );
        folder
    };
    accepted(&folder(50));
    let ran = refused(
        &folder(100),
        &[
            "types are nested more than 64 levels deep",
            "from `GoodSpec` to `T63`",
            "schemaless",
        ],
    );
    assert!(!ran.err.contains("contains itself"), "{}", ran.err);
}

/// kubebuilder markers don't belong in the description, so the command warns about them.
#[test]
fn warns_about_kubebuilder_markers() {
    let folder = package("// +groupName=g.example.com\n// an aside\nfn f() {\n// +optional\n}\n");
    let text = fs::read_to_string(folder.path().join("src/lib.rs")).unwrap();
    let field = "\n    /// Number of them.\n    /// +kubebuilder:validation:Minimum=1\n    // +optional\n    pub size";
    folder.write("src/lib.rs", &text.replace("pub size", field));
    let ran = folder.run("manifests").ok();
    for part in [
        "`+groupName=g.example.com` is a kubebuilder marker, which has no effect in Rust",
        "--> src/lib.rs:1:",
        "write `#[kube(validation(minimum = 1))]`",
        "write `#[kube(optional)]`",
    ] {
        assert!(ran.err.contains(part), "{part:?} is missing in\n{}", ran.err);
    }
    assert_eq!(ran.err.matches("warning[").count(), 3, "{}", ran.err);
    let crd = accepted(&folder);
    assert!(crd.contains("description: Number of them.\n"), "{crd}");
}

/// An unknown value only matters if an API depends on it.
#[test]
fn ignores_unknown_values_that_no_api_needs() {
    let folder =
        package("#[cfg(tokio_unstable)] mod tracing;\n#[cfg(loom)] type Lock = loom::Lock;\nmod proto;\n");
    folder.write("src/tracing.rs", "pub fn f() {}\n");
    folder.write("build.rs", "fn main() { write(\"src/proto.rs\") }\n");
    let ran = folder.run("manifests").ok();
    assert!(
        ran.err.contains(
            "warning: the file of the module `proto` does not exist; the build script may generate it"
        ),
        "{}",
        ran.err
    );
    assert_eq!(ran.err.matches("warning: ").count(), 1, "{}", ran.err);
    accepted(&folder);
    let needed = package("#[cfg(tokio_unstable)] mod inner;");
    needed.write(
        "src/inner.rs",
        "#[derive(rbuilder::CrdSchema)] pub struct A { a: i32 }\n",
    );
    refused(&needed, &["cannot evaluate this `cfg`", "--> src/lib.rs:1:"]);
    let needed = package("#[cfg(loom)] type Size = i64;");
    let text = fs::read_to_string(needed.path().join("src/lib.rs")).unwrap();
    needed.write("src/lib.rs", &text.replace("size: i32", "size: Size"));
    refused(&needed, &["cannot evaluate this `cfg`", "--> src/lib.rs:1:"]);
    let needed = package("mod proto;");
    needed.write(
        "build.rs",
        "fn main() { write(\"proto.rs\", \"#[derive(CustomResource)]\") }\n",
    );
    refused(&needed, &["file not found for module `proto`"]);
    refused(&package("mod proto;"), &["file not found for module `proto`"]);
}

/// Only some builds have the field. The manifest belongs to one of these builds.
#[test]
fn warns_about_fields_of_some_builds() {
    for (attribute, option) in [
        ("#[cfg(debug_assertions)]", "debug_assertions"),
        ("#[cfg(not(debug_assertions))]", "debug_assertions"),
        ("#[cfg(any(test, feature = \"x\"))]", "test"),
        ("#[cfg(target_pointer_width = \"64\")]", "target_pointer_width"),
        ("#[cfg_attr(test, serde(default))]", "test"),
    ] {
        let folder = package("");
        let text = fs::read_to_string(folder.path().join("src/lib.rs")).unwrap();
        folder.write(
            "src/lib.rs",
            &text.replace("pub size", &format!("{attribute} pub more: i32, pub size")),
        );
        let ran = folder.run("manifests").ok();
        let said = format!("this part of the schema depends on `{option}`");
        assert!(ran.err.contains(&said), "{attribute}: {}", ran.err);
    }
    let folder = package("");
    let text = fs::read_to_string(folder.path().join("src/lib.rs")).unwrap();
    let quiet = "#[cfg(not(feature = \"x\"))] #[cfg_attr(test, allow(unused))] pub more: i32, pub size";
    folder.write("src/lib.rs", &text.replace("pub size", quiet));
    assert_eq!(folder.run("manifests").ok().err, "");
}

#[test]
fn rejects_cycles() {
    let cases = [
        (
            "#[derive(CrdSchema)] pub struct A { a: Vec<B> } #[derive(CrdSchema)] pub struct B { b: A }",
            "A",
            "contains itself",
        ),
        ("#[path = \"lib.rs\"] pub mod again;", "i32", "src/lib.rs"),
        ("include!(\"lib.rs\");", "i32", "src/lib.rs"),
        (
            "pub use self::x as y; pub use self::y as x;",
            "x",
            "cannot find type `x`",
        ),
    ];
    for (before, type_, said) in cases {
        let folder = package("");
        let source = format!("{before}\n{}", KIND.replace("i32", type_));
        folder.write("src/lib.rs", &source);
        refused(&folder, &[said, "--> src/lib.rs:"]);
    }
}

#[cfg(unix)]
type Make = fn(&std::path::Path);

/// Something other than a file is reported, and the rest is still checked.
#[cfg(unix)]
#[test]
fn reports_paths_that_are_not_files() {
    use std::os::unix::fs::symlink;

    let make: [(&str, Make, &str); 6] = [
        (
            "a link to nothing",
            |path| symlink("nowhere.rs", path).unwrap(),
            "file not found for module",
        ),
        ("a link to itself", |path| symlink("x.rs", path).unwrap(), "x.rs"),
        (
            "a folder",
            |path| fs::create_dir(path).unwrap(),
            "file not found for module",
        ),
        (
            "a socket",
            |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
            "file not found for module",
        ),
        (
            "a pipe",
            |path| {
                assert!(
                    std::process::Command::new("mkfifo")
                        .arg(path)
                        .status()
                        .unwrap()
                        .success()
                )
            },
            "file not found for module",
        ),
        (
            "no text",
            |path| fs::write(path, b"pub struct A;\n\xff\xfe").unwrap(),
            "src/x.rs",
        ),
    ];
    for (what, make, said) in make {
        let folder = package("pub mod x;\npub mod other;");
        folder.write(
            "src/other.rs",
            "#[derive(rbuilder::CrdSchema)]\nstruct A { #[crd(mnimum = 1)] a: i32 }\n",
        );
        make(&folder.path().join("src/x.rs"));
        let ran = refused(&folder, &[said, "unknown marker `mnimum`"]);
        assert!(ran.err.contains("x.rs"), "{what}: {}", ran.err);
    }
}

#[cfg(unix)]
#[test]
fn ignores_cyclic_links() {
    let folder = package("pub mod inner;");
    folder.write("src/inner/mod.rs", "");
    std::os::unix::fs::symlink("..", folder.path().join("src/inner/up")).unwrap();
    accepted(&folder);
}

#[test]
fn line_endings_and_byte_order_marks_do_not_matter() {
    let folder = package("/// A\n/// B\n");
    let expected = accepted(&folder);
    let source = fs::read_to_string(folder.path().join("src/lib.rs")).unwrap();
    for source in [source.replace('\n', "\r\n"), format!("\u{feff}{source}")] {
        folder.write("src/lib.rs", &source);
        assert_eq!(accepted(&folder), expected);
    }
}

#[test]
fn reports_nul_bytes() {
    let folder = package("pub mod x;");
    folder.write("src/x.rs", "pub struct A;\n\0\npub struct B;\n");
    refused(&folder, &["--> src/x.rs:2:1"]);
}

#[test]
fn reads_large_files() {
    let noise = "pub fn noise(x: u32) -> u32 { if x > 1 { x + 1 } else { x } }\n/// Words about nothing.\n"
        .repeat(110_000);
    assert!(noise.len() > 9_000_000);
    accepted(&package(&noise));
}

/// A mistake in a line of several megabytes must be shown without the whole line.
#[test]
fn truncates_long_lines() {
    let long = format!(
        "const A: &str = \"{}\"; #[derive(CrdSchema)] struct A {{ #[crd(mnimum = 1)] a: i32 }} const B: &str = \"{0}\";",
        "x".repeat(2_000_000)
    );
    let ran = refused(&package(&long), &["unknown marker `mnimum`", "--> src/lib.rs:1:"]);
    assert!(ran.err.len() < 10_000, "{} bytes of message", ran.err.len());
}

#[test]
fn reads_many_attributes() {
    let folder = package(&"#[allow(dead_code)]\n".repeat(100_000));
    accepted(&folder);
    let marked = "#[crd(title = \"t\")] ".repeat(10_000);
    let folder = package(&format!(
        "#[derive(CrdSchema)] pub struct A {{ {marked} a: i32 }}"
    ));
    let ran = refused(
        &folder,
        &["duplicate argument `title`", "9999 errors in the source"],
    );
    assert_eq!(ran.err.matches("--> src/lib.rs:1:").count(), 2000);
    assert!(ran.err.len() < 500_000, "{} bytes of messages", ran.err.len());
}

#[test]
fn reports_many_mistakes() {
    let fields: String = (0..1000)
        .map(|field| format!("#[crd(mnimum = 1)] a{field}: i32,\n"))
        .collect();
    let ran = refused(
        &package(&format!("#[derive(CrdSchema)] pub struct A {{\n{fields}}}")),
        &["src/lib.rs:1001:"],
    );
    assert_eq!(ran.err.matches("unknown marker").count(), 1000);
}

#[test]
fn reads_many_files() {
    let modules: String = (0..2000).map(|module| format!("pub mod m{module};\n")).collect();
    let folder = package(&modules);
    for module in 0..2000 {
        folder.write(&format!("src/m{module}.rs"), "pub struct A;\n");
    }
    accepted(&folder);
}

#[test]
fn reads_deep_directories() {
    let folder = package("pub mod d;");
    let mut path = String::from("src");
    for _ in 0..1000 {
        path.push_str("/d");
        folder.write(&format!("{path}/mod.rs"), "pub mod d;\n");
    }
    folder.write(&format!("{path}/d.rs"), "pub struct A;\n");
    let ran = folder.run("manifests");
    assert!(
        ran.code == 0 || ran.err.contains("src/d/d"),
        "{}",
        shortened(&ran.err)
    );
}
