//! Warnings about stored objects that a changed schema leaves unreadable.

// The test's own files are what it is about.
#![allow(clippy::disallowed_methods)]

use crate::support;

use support::Folder;

fn cup(field: &str) -> String {
    format!(
        "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n\
         #[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\", namespaced)]\n\
         pub struct CupSpec {{\n    {field}\n}}\n"
    )
}

#[test]
fn a_new_required_field_is_a_warning_that_says_what_to_write() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"operator\"\nedition = \"2024\"\n",
    );
    folder.write("src/lib.rs", &cup("pub size: i32,"));
    let first = folder.run("manifests").ok();
    assert!(!first.err.contains("becomes required"), "{}", first.err);

    folder.write("src/lib.rs", &cup("pub size: i32,\n    pub colour: String,"));
    let expected = "warning: `.spec.colour` becomes required in version `v1` and has no default: objects stored without \
                    it cannot be decoded";
    let checked = folder.run("manifests --check");
    assert!(checked.err.contains(expected), "{}", checked.err);
    let second = folder.run("manifests").ok();
    assert!(second.err.contains(expected), "{}", second.err);
    assert!(
        second.err.contains("config/crd/bases/x.io_cups.yaml"),
        "{}",
        second.err
    );
    assert!(second.err.contains("`#[kube(default = …)]`"), "{}", second.err);
    let third = folder.run("manifests").ok();
    assert!(!third.err.contains("becomes required"), "{}", third.err);

    folder.write(
        "src/lib.rs",
        &cup("pub size: i32,\n    pub colour: String,\n    #[kube(default = true)]\n    pub washed: bool,"),
    );
    let fourth = folder.run("manifests").ok();
    assert!(!fourth.err.contains("becomes required"), "{}", fourth.err);
}
