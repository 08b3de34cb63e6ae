//! Checks that AGENTS.md in a scaffold only names commands, targets and paths that the project has.

use std::collections::BTreeMap;

use crate::support::Folder;

const GUIDE: &str = "AGENTS.md";

/// Memcached has webhooks, and Cup has none.
fn project(flags: &str) -> Folder {
    let folder = Folder::new();
    folder
        .run(&format!("init --domain example.com --project-name shop {flags}"))
        .ok();
    let kind = "--group cache --version v1 --kind Memcached";
    folder.run(&format!("create api {kind}")).ok();
    folder.run(&format!("create webhook {kind} --defaulting")).ok();
    folder
        .run("create api --group cache --version v1 --kind Cup")
        .ok();
    folder.run("manifests").ok();
    folder
}

fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Fills in the placeholders for group and version.
fn commands(guide: &str) -> Vec<String> {
    let block = guide.split("```").nth(1).expect("a block of commands");
    let lines = block
        .lines()
        .filter(|line| line.starts_with("rbuilder ") || line.starts_with("make "));
    let commands = lines.map(|line| line.split('#').next().unwrap_or_default().trim());
    commands
        .map(|line| line.replace("<group>", "cache").replace("<version>", "v1"))
        .collect()
}

#[test]
fn guide_only_names_what_the_project_has() {
    for flags in ["", "--namespaced", "--multigroup", "--namespaced --multigroup"] {
        let folder = project(flags);
        let tree = folder.tree();
        let guide = &tree[GUIDE];
        let prose = guide.replace("```", "");
        let mut found = 0;
        for span in code_spans(&prose) {
            if let Some(target) = span.strip_prefix("make ") {
                let target = target.split_whitespace().next().unwrap_or_default();
                check_target(&tree, target);
                found += 1;
            } else if is_path(span) {
                let exists = tree
                    .keys()
                    .any(|path| path == span || (span.ends_with('/') && path.starts_with(span)));
                assert!(exists, "{flags}: {span} does not exist");
                found += 1;
            }
        }
        assert!(found > 12, "{flags}: {found} targets and paths");
        for command in commands(guide) {
            match command.strip_prefix("rbuilder ") {
                Some(line) => check_command(&folder, line),
                None => check_target(&tree, &command["make ".len()..]),
            }
        }
    }
}

fn is_path(span: &str) -> bool {
    let starts = ["src/", "config/", "tests/", "PROJECT"];
    starts.iter().any(|start| span.starts_with(start)) && !span.contains(['<', '*', ' '])
}

#[track_caller]
fn check_target(tree: &BTreeMap<String, String>, target: &str) {
    let rule = format!("\n{target}:");
    assert!(
        tree["Makefile"].contains(&rule),
        "the Makefile has no target {target}"
    );
}

/// Uses `--dry-run`, and a kind that the command accepts.
#[track_caller]
fn check_command(folder: &Folder, line: &str) {
    let kind = match line {
        _ if line.starts_with("create api") => "Mug",
        _ if line.starts_with("delete api") => "Cup",
        _ => "Memcached",
    };
    let line = line.replace("<Kind>", kind);
    match line.as_str() {
        "doctor" => assert!(folder.run("doctor --help").ok().out.contains("doctor")),
        _ => drop(folder.run(&format!("{line} --dry-run")).ok()),
    }
}

#[test]
fn guide_of_an_adopted_package_names_no_scaffolded_directories() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\n",
    );
    folder.write("src/main.rs", "fn main() {}\n");
    folder.run("init --domain example.com --in-package").ok();
    let guide = &folder.tree()[GUIDE];
    assert!(!guide.contains("src/"), "{guide}");
    // The package has a manager of its own, so `ctx` doesn't exist.
    assert!(!guide.contains("ctx."), "{guide}");
}

#[test]
fn keeps_an_existing_guide() {
    let folder = Folder::new();
    folder.write(GUIDE, "# Ours\n");
    folder.run("init --domain example.com --project-name shop").ok();
    assert_eq!(folder.tree()[GUIDE], "# Ours\n");
    folder.run("edit --namespaced").ok();
    folder.run("update").ok();
    assert_eq!(folder.tree()[GUIDE], "# Ours\n");
}
