//! docs/from-kubebuilder.md: the commands and flags of rbuilder in it exist, and it lists every
//! kubebuilder marker with a counterpart in rbuilder.
// The test reads the page and a table from another crate.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::path::Path;

use clap::Command;

/// These don't belong to the command, but to the manager, kubebuilder's markers or other programs.
const FLAGS_OF_OTHERS: &[&str] = &["--help"];

/// The page has command lines of these programs.
const PROGRAMS_OF_OTHERS: &[&str] = &["docker", "helm", "operator-sdk", "opm"];

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the checkout");
    std::fs::read_to_string(root.join(path)).expect(path)
}

/// Also returns the heading above each row.
fn counterparts(page: &str) -> Vec<(String, String)> {
    let mut heading = String::new();
    let mut found = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut heading);
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        if line.starts_with("| ") && cells.len() == 2 {
            found.push((heading.clone(), cells[1].trim_end_matches(" |").to_owned()));
        }
    }
    found
}

fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The error is the first word that isn't a command.
fn find_command<'c>(root: &'c Command, line: &str) -> Result<&'c Command, String> {
    let mut command = root;
    for word in line.split_whitespace().skip(1) {
        match command.find_subcommand(word) {
            Some(inner) => command = inner,
            None if command.has_subcommands() && !word.starts_with(['-', '…']) => {
                return Err(word.to_owned());
            }
            None => break,
        }
    }
    Ok(command)
}

fn has_flag(command: &Command, flag: &str) -> bool {
    let name = flag.trim_start_matches("--");
    let is_it = |arg: &clap::Arg| {
        arg.get_long() == Some(name)
            || arg
                .get_all_aliases()
                .is_some_and(|aliases| aliases.contains(&name))
    };
    command.get_arguments().any(is_it)
}

fn any_command_has(command: &Command, flag: &str) -> bool {
    has_flag(command, flag)
        || command
            .get_subcommands()
            .any(|inner| any_command_has(inner, flag))
}

/// E.g. `--kind` for `--kind=Cup`.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || c == '=' || c == ',');
    words.filter(|word| word.starts_with("--") && word.len() > 2)
}

#[test]
fn commands_and_flags_on_the_page_exist() {
    let root = rbuilder_cli::flags::command();
    let manager = read("crates/runtime/src/args/mod.rs");
    let mut seen = 0;
    let mut problems = Vec::new();
    for (heading, text) in counterparts(&read("docs/from-kubebuilder.md")) {
        let is_of_other = |span: &&str| {
            let program = span.split(' ').next().unwrap_or_default();
            PROGRAMS_OF_OTHERS.contains(&program)
        };
        for span in code_spans(&text).filter(|span| !is_of_other(span)) {
            let is_command = span.starts_with("rbuilder ");
            let command = match is_command.then(|| find_command(&root, span)) {
                Some(Ok(command)) => Some(command),
                Some(Err(word)) => {
                    problems.push(format!("`{span}`: no command `{word}`"));
                    continue;
                }
                None => None,
            };
            seen += usize::from(is_command);
            for flag in flags(span).filter(|flag| !FLAGS_OF_OTHERS.contains(flag)) {
                let of_manager = format!("pub {}:", flag.trim_start_matches("--").replace('-', "_"));
                let exists = match command {
                    Some(command) => has_flag(command, flag) || has_flag(&root, flag),
                    None if heading == "Commands" || heading == "Flags" => any_command_has(&root, flag),
                    None => any_command_has(&root, flag) || manager.contains(&of_manager),
                };
                if !exists {
                    problems.push(format!("`{span}`: no flag `{flag}`"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(
        seen > 30,
        "{seen} commands were found: is the page read as it is written?"
    );
}

#[test]
fn page_lists_every_command() {
    let page = read("docs/from-kubebuilder.md");
    let mut missing = Vec::new();
    for command in rbuilder_cli::flags::command().get_subcommands() {
        let name = format!("rbuilder {}", command.get_name());
        if !command.is_hide_set() && command.get_name() != "help" && !page.contains(&name) {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn page_lists_every_marker_with_a_counterpart() {
    let page = read("docs/from-kubebuilder.md");
    let table = read("crates/syntax/src/kubebuilder/mod.rs");
    let rows = table.lines().filter_map(|line| {
        let row = line.trim_start().strip_prefix("(\"")?;
        let (name, _) = row.split_once("\", ")?;
        name.starts_with("kubebuilder:").then_some(name)
    });
    let constraints = rbuilder_schema::Key::arguments().filter_map(|key| {
        let name = key.name[..1].to_uppercase() + &key.name[1..];
        rbuilder_schema::Key::of_go(&name).map(|_| format!("kubebuilder:validation:{name}"))
    });
    let names: BTreeSet<String> = rows.map(str::to_owned).chain(constraints).collect();
    assert!(names.len() > 40, "{names:?}");
    let missing: Vec<&String> = names
        .iter()
        .filter(|name| !page.contains(&format!("+{name}")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_row_has_a_counterpart_or_a_reason() {
    for (heading, text) in counterparts(&read("docs/from-kubebuilder.md")) {
        let is_none = text.starts_with("none");
        assert!(
            !is_none || text.starts_with("none, because "),
            "{heading}: {text}"
        );
        assert!(!text.is_empty(), "{heading}");
    }
}

fn with_table(page: &str, table: rbuilder_cli::peers::Table) -> String {
    let heading = format!("## {}\n", table.heading);
    let start = page.find(&heading).expect(table.heading);
    let start = start + page[start..].find("\n| ").expect(table.heading) + 1;
    let end = start + page[start..].find("\n\n").expect(table.heading) + 1;
    format!("{}{}{}", &page[..start], table.to_markdown(), &page[end..])
}

#[test]
fn tables_of_the_page_match_the_command() {
    use rbuilder_cli::peers::{COMMANDS, FLAGS, PLUGINS};
    let path = "docs/from-kubebuilder.md";
    let page = read(path);
    let expected = [COMMANDS, FLAGS, PLUGINS]
        .into_iter()
        .fold(page.clone(), |page, table| with_table(&page, table));
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the checkout");
        std::fs::write(root.join(path), expected).expect(path);
        return;
    }
    assert!(
        page == expected,
        "{path} is not up to date: run `SNAPSHOTS=overwrite cargo test -p rbuilder-cli --test suite from_kubebuilder`"
    );
}
