//! The quick start of README.md has to match what the command scaffolds and prints.
// The tests read the page.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

use clap::CommandFactory;

use crate::support::Folder;

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    std::fs::read_to_string(path).expect("README.md")
}

/// The blocks are in the order of the page.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let mut fences = page.split("```");
    let mut found = Vec::new();
    // This is the text before a fence, then the block.
    while let (Some(_), Some(block)) = (fences.next(), fences.next()) {
        if let Some(code) = block.strip_prefix(&format!("{language}\n")) {
            found.push(code);
        }
    }
    found
}

fn project() -> Folder {
    let folder = Folder::new();
    for line in blocks(&readme(), "sh").concat().lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if let Some(command) = line
            .strip_prefix("rbuilder init ")
            .or(line.strip_prefix("rbuilder create "))
        {
            let name = line.split(' ').nth(1).unwrap_or_default();
            let library = if name == "init" {
                " --library path --project-name memcached-operator"
            } else {
                ""
            };
            folder.run(&format!("{name} {command}{library}")).ok();
        }
    }
    folder
}

#[test]
fn commands_in_the_readme_are_valid() {
    let page = readme();
    let blocks = blocks(&page, "sh");
    let lines = blocks.iter().flat_map(|block| block.lines());
    let commands: Vec<&str> = lines.filter(|line| line.starts_with("rbuilder ")).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    for line in commands {
        let words = line.split(" #").next().unwrap_or_default().split_whitespace();
        if let Err(error) = rbuilder_cli::flags::Cli::command().try_get_matches_from(words) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn code_in_the_readme_is_scaffolded() {
    let page = readme();
    let code = blocks(&page, "rust");
    assert!(code.len() >= 2, "the API and the controller");
    let files = project().tree();
    for block in code {
        let found = files.values().any(|text| text.contains(block));
        assert!(
            found,
            "no scaffolded file contains this part of README.md:\n{block}"
        );
    }
}

#[test]
fn error_in_the_readme_is_printed() {
    let page = readme();
    let blocks = blocks(&page, "");
    let error = blocks
        .iter()
        .find(|block| block.starts_with("error["))
        .expect("an error");
    let folder = project();
    folder.replace(
        "src/api/v1alpha1/memcached.rs",
        "max_length = 63",
        "max_lenght = 63",
    );
    let ran = folder.run("manifests");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains(error.trim_end()), "{}", ran.err);
}
