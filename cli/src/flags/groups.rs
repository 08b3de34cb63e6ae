//! The groups of commands in the help of `rbuilder`, in the order of a project's life.
//!
//! clap lists all subcommands below one heading, so the list is written into the template of the
//! help.

use std::fmt::Write as _;

use clap::Command;

/// Headings, each with the names of its commands.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("Start a project", &["init", "import", "adopt"]),
    ("Change its parts", &["create", "types", "delete", "edit"]),
    ("Generate and run", &["manifests", "dev", "run"]),
    (
        "Test and check",
        &["envtest", "simulate", "validate", "diff", "doctor", "explain"],
    ),
    ("Keep it up to date", &["update", "library"]),
    ("Ship it", &["helm", "bundle", "grafana", "docs"]),
    (
        "Work with a cluster",
        &["install", "deploy", "migrate-storage", "undeploy", "uninstall"],
    ),
    ("Other commands", &["completion", "man", "version"]),
];

/// The width to which clap wraps help as well.
const WIDTH: usize = 100;

/// Lists the commands in groups in the help of a command. Its subcommands are not affected.
pub(super) fn group_commands(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let listed = || command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let longest = listed().map(|inner| inner.get_name().len()).max();
    let column = longest.unwrap_or_default() + 4;
    let mut list = String::new();
    for (heading, names) in GROUPS {
        // Writing to a String never fails.
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for name in *names {
            let Some(inner) = listed().find(|inner| inner.get_name() == *name) else {
                continue;
            };
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            let about = wrap(&about, WIDTH - column).join(&format!("\n{:column$}", ""));
            let gap = column - 2 - name.len();
            let _ = writeln!(list, "  {literal}{name}{literal:#}{:gap$}{about}", "");
        }
        list.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{header}Options:{header:#}\n{{options}}"
    );
    command.help_template(template)
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    use clap::CommandFactory;

    use super::super::{Cli, parse};
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let grouped = GROUPS.iter().flat_map(|(_, names)| names.iter());
        let grouped: Vec<&str> = grouped.copied().collect();
        let command = Cli::command();
        let listed = command.get_subcommands().filter(|inner| !inner.is_hide_set());
        let listed: BTreeSet<&str> = listed.map(Command::get_name).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<&str>>(), listed);
        assert_eq!(grouped.len(), listed.len());
    }

    #[test]
    fn help_lists_commands_in_groups() {
        for flags in [&["--help"][..], &["-h"], &["help"], &[]] {
            let words: Vec<OsString> = ["rbuilder"].iter().chain(flags).map(Into::into).collect();
            let help = parse(&words).expect_err("help is no command").to_string();
            let part = "Start a project:\n  init             Initialize a new project\n  import           ";
            assert!(help.contains(part), "{help}");
            assert!(help.contains("\nOptions:\n  -C, --project-dir <DIR>"), "{help}");
            assert!(!help.contains("Commands:"), "{help}");
            let long: Vec<&str> = help.lines().filter(|line| line.len() > WIDTH).collect();
            assert!(long.is_empty(), "{long:#?}");
        }
        let words = ["rbuilder", "create", "--help"].map(Into::into);
        let help = parse(&words).expect_err("help is no command").to_string();
        assert!(help.contains("\nCommands:\n  api "), "{help}");
    }
}
