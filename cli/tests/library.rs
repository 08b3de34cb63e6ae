//! The source of the library: how each form is scaffolded, and how `rbuilder library` changes it.

#![allow(clippy::disallowed_methods)] // the tests create the input

use crate::support;

use rbuilder_generator::versions;
use support::Folder;

const INIT: &str = "init --domain example.com --project-name shop";
const URL: &str = "https://git.example.com/rbuilder";

/// The checkout with this test also contains the library.
fn checkout() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/..")
}

/// Returns the flags of `init`, the flags of `library`, and the source that ends up in Cargo.toml.
fn forms() -> [(String, String, String); 3] {
    let checkout = checkout();
    let resolved = std::fs::canonicalize(checkout).expect("this checkout");
    [
        (
            "--library version --library-version 1.2.3".into(),
            "--set version --version 1.2.3".into(),
            "version = \"1.2.3\"".into(),
        ),
        (
            format!("--library git --library-url {URL} --library-rev 0123abc"),
            format!("--set git --url {URL} --rev 0123abc"),
            format!("git = \"{URL}\", rev = \"0123abc\""),
        ),
        (
            format!("--library path --library-path {checkout}"),
            format!("--set path --path {checkout}"),
            format!("path = \"{}/crates/runtime\"", resolved.display()),
        ),
    ]
}

fn project(flags: &str) -> Folder {
    let folder = Folder::new();
    folder.run(&format!("{INIT} {flags}")).ok();
    folder
}

#[test]
fn every_form_names_our_package() {
    for (flags, _, source) in forms() {
        let folder = project(&flags);
        let tree = folder.tree();
        let manifest = &tree["Cargo.toml"];
        let expected = format!("rbuilder = {{ package = \"rbuilder-runtime\", {source}");
        assert_eq!(manifest.matches(&expected).count(), 2, "{manifest}");
        // `rbuilder` is a package of someone else, so nothing may request it from a registry.
        for (path, text) in &tree {
            for line in text
                .lines()
                .map(str::trim_start)
                .filter(|line| !line.starts_with('#'))
            {
                let words = line.replace(['"', '\'', '='], " ");
                let is_dependency = line.starts_with("rbuilder ") && path.ends_with(".toml");
                assert!(
                    !is_dependency || line.contains("rbuilder-runtime"),
                    "{path}: {line}"
                );
                let is_install = words.contains("cargo install") || words.contains("cargo add");
                let named = words
                    .split_whitespace()
                    .any(|word| word == "rbuilder" || word.starts_with("rbuilder@"));
                assert!(!(is_install && named), "{path}: {line}");
            }
        }
    }
}

#[test]
fn records_and_shows_the_form() {
    for (flags, _, source) in forms() {
        let folder = project(&flags);
        let recorded = source.replace(" = ", ": ").replace("\", ", "\n").replace('"', "");
        let ran = folder.run("library").ok();
        let (_, shown) = ran.out.split_once('\n').expect("the form comes first");
        assert_eq!(shown.trim_end(), recorded);
        assert_eq!(ran.err, "");
        for line in recorded.lines() {
            assert!(
                folder.tree()["PROJECT"].contains(&format!("    {line}\n")),
                "{line}"
            );
        }
        let ran = folder.run("library --output json").ok();
        let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        assert!(
            flags.contains(answer["library"]["form"].as_str().expect("a form")),
            "{answer}"
        );
        // The recorded source wins over the default for a new project.
        assert!(folder.run("init").ok().out.starts_with("unchanged"));
    }
}

#[test]
fn changing_the_form_equals_init_with_it() {
    let forms = forms();
    let scaffolds: Vec<_> = forms.iter().map(|(flags, _, _)| project(flags)).collect();
    for from in 0..forms.len() {
        for to in 0..forms.len() {
            let folder = scaffolds[from].copy();
            let command = format!("library {}", forms[to].1);
            let before = folder.tree();
            let dry = folder.run(&format!("{command} --dry-run")).ok();
            assert_eq!(folder.tree(), before);
            assert_eq!(dry.out.contains("+++ b/Cargo.toml"), from != to, "{}", dry.out);
            folder.run(&command).ok();
            assert_eq!(folder.tree(), scaffolds[to].tree(), "{command}");
            assert!(
                folder.run(&command).ok().out.starts_with("unchanged"),
                "{command}"
            );
            assert!(folder.run("init").ok().out.starts_with("unchanged"), "{command}");
        }
    }
}

#[test]
fn keeps_user_changes_in_cargo_toml() {
    let (path, git) = (&forms()[2], &forms()[1]);
    let folder = project(&path.0);
    let manifest = folder.tree()["Cargo.toml"]
        .replace(
            "[dependencies]\n",
            "[dependencies]\n# Mine.\nfoo = \"1\" # kept\n",
        )
        .replace("\"testing\"]", "\"fake\", \"testing\"]");
    folder.write("Cargo.toml", &manifest);
    folder.run(&format!("library {}", git.1)).ok();
    assert_eq!(folder.tree()["Cargo.toml"], manifest.replace(&path.2, &git.2));
}

/// Another kube would have other types than the library.
#[test]
fn moves_kube_and_k8s_openapi_with_the_library() {
    let path = &forms()[2];
    let folder = project(&path.0);
    let manifest = folder.tree()["Cargo.toml"].clone();
    let old = manifest
        .replace(
            &format!("kube = {{ version = \"{}\"", versions::KUBE),
            "kube = { version = \"4.1\"",
        )
        .replace(
            &format!("k8s-openapi = {{ version = \"{}\"", versions::K8S_OPENAPI),
            "k8s-openapi = { version = \"0.28\"",
        );
    assert!(old.contains("\"4.1\"") && old.contains("\"0.28\""), "{old}");
    folder.write("Cargo.toml", &old);
    folder.run(&format!("library {}", path.1)).ok();
    assert_eq!(folder.tree()["Cargo.toml"], manifest);
    // The dependencies of an unknown library are not known.
    folder.write("Cargo.toml", &old);
    let git = &forms()[1];
    folder.run(&format!("library {}", git.1)).ok();
    assert_eq!(folder.tree()["Cargo.toml"], old.replace(&path.2, &git.2));
}

#[test]
fn changes_every_source_in_a_workspace() {
    let folder = project(&forms()[0].0);
    let manifest = folder.tree()["Cargo.toml"].replace(
        "rbuilder = { package = \"rbuilder-runtime\", version = \"1.2.3\"",
        "rbuilder = { workspace = true",
    );
    let workspace = "\n[workspace]\nmembers = [\"crates/*\", \"./api\", \"../other\"]\n\n\
                     [workspace.dependencies]\nrbuilder = { package = \"rbuilder-runtime\", version = \"1.2.3\" }\n";
    folder.write("Cargo.toml", &format!("{manifest}{workspace}"));
    let member = "[package]\nname = \"a\"\n[dependencies]\nrbuilder = { package = \"rbuilder-runtime\", version = \"1\" }\n";
    folder.write("crates/a/Cargo.toml", member);
    folder.write("api/Cargo.toml", member);
    let git = &forms()[1];
    folder.run(&format!("library {}", git.1)).ok();
    let tree = folder.tree();
    assert_eq!(
        tree["Cargo.toml"],
        format!("{manifest}{}", workspace.replace("version = \"1.2.3\"", &git.2))
    );
    for path in ["crates/a/Cargo.toml", "api/Cargo.toml"] {
        assert_eq!(tree[path], member.replace("version = \"1\"", &git.2), "{path}");
    }
}

#[test]
fn reads_projects_of_older_commands() {
    let folder = project(&forms()[1].0);
    let record = format!("  library:\n    git: {URL}\n    rev: 0123abc\n");
    let project = folder.tree()["PROJECT"].clone();
    assert!(project.contains(&record), "{project}");
    folder.write("PROJECT", &project.replace(&record, ""));
    assert!(folder.run("library").ok().out.contains("rev: 0123abc"));
    folder.run("init").ok();
    assert_eq!(folder.tree()["PROJECT"], project);
}

#[test]
fn warns_if_cargo_toml_differs() {
    let folder = project(&forms()[1].0);
    let manifest = folder.tree()["Cargo.toml"].replacen("0123abc", "4567def", 1);
    folder.write("Cargo.toml", &manifest);
    let ran = folder.run("library").ok();
    assert!(ran.out.contains("rev: 4567def"), "{}", ran.out);
    assert!(
        ran.err.contains("have different sources") && ran.err.contains("PROJECT does not record"),
        "{}",
        ran.err
    );
}

#[test]
fn warns_about_local_paths() {
    let ran = Folder::new().run(&format!("{INIT} {}", forms()[2].0)).ok();
    assert!(ran.err.contains("builds on this machine only"), "{}", ran.err);
    assert!(
        ran.err
            .contains("rbuilder library --set git --url <url> --rev <commit>"),
        "{}",
        ran.err
    );
    let ran = Folder::new()
        .run(&format!(
            "{INIT} --library git --library-url file:///srv/r --library-rev a"
        ))
        .ok();
    assert!(ran.err.contains("only this machine can fetch"), "{}", ran.err);
    let ran = Folder::new()
        .run(&format!(
            "{INIT} --library git --library-url git@git.example.com:r --library-rev a"
        ))
        .ok();
    assert!(ran.err.contains("over ssh"), "{}", ran.err);
}

#[test]
fn rejects_invalid_sources() {
    let folder = project(&forms()[0].0);
    let before = folder.tree();
    for (line, expected) in [
        (
            "library --set git --url https://me:secret@git.example.com/r --rev a",
            "a password",
        ),
        ("library --set git --url /srv/r --rev a", "expected a URL"),
        (
            "library --set git --url https://git.example.com/r --rev=-x",
            "expected a commit or a tag",
        ),
        ("library --set version --version latest", "expected a version"),
        (
            "library --set path --path /nowhere",
            "contains neither the library",
        ),
        ("library --set path --rev a", "expected the form `git`"),
        (
            "init --library git --library-url https://git.example.com/r --library-rev a",
            "rbuilder library --set",
        ),
    ] {
        let ran = folder.run(line);
        assert_eq!(ran.code, 1, "{line}: {}", ran.out);
        assert!(
            ran.err.contains(expected) && !ran.err.contains("secret"),
            "{line}: {}",
            ran.err
        );
        assert_eq!(folder.tree(), before, "{line}");
    }
    assert_eq!(folder.run("library --rev a").code, 2);
    let manifest = before["Cargo.toml"]
        .replace("rbuilder = ", "other = ")
        .replace("rbuilder-runtime", "other");
    folder.write("Cargo.toml", &manifest);
    let ran = folder.run("library --set version");
    assert!(ran.err.contains("no dependency on the library"), "{}", ran.err);
    assert!(
        ran.err
            .contains("rbuilder = { package = \"rbuilder-runtime\", version = "),
        "{}",
        ran.err
    );
}
