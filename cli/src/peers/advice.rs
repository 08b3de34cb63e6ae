//! The tip for a command line that can't be parsed.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use rbuilder_diagnostic::suggest::find_nearest;

use super::search::{Found, find_command, find_flag, find_option, find_plugin};
use crate::flags::Cli;

/// Context kinds in which clap stores its suggestions.
const GUESSES: &[ContextKind] = &[
    ContextKind::SuggestedSubcommand,
    ContextKind::SuggestedArg,
    ContextKind::Suggested,
];

/// Replaces clap's tip if the error is about a command or flag of kubebuilder or a similar tool,
/// for which the table has our counterpart. Otherwise only a suggestion for a typo is kept:
/// `delete` is no help for a user who typed `generate`.
pub(crate) fn replace_tip(error: &mut clap::Error, arguments: &[OsString]) {
    let arguments = after_program(arguments);
    let found = match error.kind() {
        ErrorKind::InvalidSubcommand => find_command(&words(&arguments)),
        ErrorKind::UnknownArgument => {
            text_of(error, ContextKind::InvalidArg).and_then(|argument| find_argument(&argument, &arguments))
        }
        _ => None,
    };
    match found {
        Some(found) => {
            for kind in GUESSES {
                error.remove(*kind);
            }
            let tip = vec![StyledStr::from(describe(found))];
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tip));
        }
        None => keep_nearest(error),
    }
}

/// The rbuilder command in a command line, e.g. `create api`. Empty if there is none.
pub(crate) fn find_command_path(arguments: &[OsString]) -> String {
    let arguments = after_program(arguments);
    let words = words(&arguments);
    // E.g. `rbuilder help create api`.
    let words = match words.split_first() {
        Some((&"help", rest)) => rest,
        _ => &words,
    };
    command_path(words).join(" ")
}

fn after_program(arguments: &[OsString]) -> Vec<&str> {
    arguments
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect()
}

fn find_argument(argument: &str, arguments: &[&str]) -> Option<Found> {
    let words = words(arguments);
    match argument {
        "--plugins" => plugins(arguments)
            .find_map(find_plugin)
            .or_else(|| find_flag(&command_path(&words), argument)),
        flag if flag.starts_with("--") => find_flag(&command_path(&words), flag),
        word => find_option(word).or_else(|| find_command(&words)),
    }
}

fn plugins<'a>(arguments: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let values =
        arguments
            .iter()
            .enumerate()
            .filter_map(|(place, word)| match word.strip_prefix("--plugins")? {
                "" => arguments.get(place + 1).copied(),
                value => value.strip_prefix('='),
            });
    values.flat_map(|keys| keys.split(','))
}

/// The words that are neither a flag nor the value of a global option.
fn words<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut rest = arguments.iter();
    let mut words = Vec::new();
    while let Some(word) = rest.next() {
        match *word {
            "-C" | "--project-dir" | "--color" => {
                rest.next();
            }
            word if word.starts_with('-') => {}
            word => words.push(word),
        }
    }
    words
}

/// The leading words that name one of our commands.
fn command_path<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let root = Cli::command();
    let mut command: &Command = &root;
    let mut path = Vec::new();
    for word in words {
        let Some(inner) = command.find_subcommand(word) else {
            break;
        };
        path.push(*word);
        command = inner;
    }
    path
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Drops clap's command suggestions, except for the most likely one.
fn keep_nearest(error: &mut clap::Error) {
    let Some(word) = text_of(error, ContextKind::InvalidSubcommand) else {
        return;
    };
    let suggested = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names,
        Some(ContextValue::String(name)) => vec![name],
        _ => return,
    };
    if let Some(name) = find_nearest(&word, suggested.iter().map(String::as_str)) {
        let name = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, name);
    }
}

fn describe(found: Found) -> String {
    let (span, ours) = (found.span, without_links(found.ours));
    match ours.strip_prefix("none, ") {
        Some(reason) => format!("`{span}` has no counterpart, {reason}"),
        None if ours.starts_with('`') => format!("for `{span}`, use {ours}"),
        None => format!("`{span}`: {ours}"),
    }
}

fn without_links(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, label, after)) = split_link(rest) {
        text.push_str(before);
        text.push_str(label);
        rest = after;
    }
    text + rest
}

/// Splits a text at its first link: the text before, the label, and the text after.
fn split_link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, target) = text.split_once("](")?;
    let (before, label) = label.rsplit_once('[')?;
    let (_, after) = target.split_once(')')?;
    Some((before, label, after))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn tip(line: &str) -> String {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut error = Cli::try_parse_from(&arguments).expect_err(line);
        replace_tip(&mut error, &arguments);
        let error = error.to_string();
        let (_, tip) = error.split_once("tip: ").unwrap_or_default();
        tip.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn suggests_counterparts_of_peer_commands() {
        for (line, expected) in [
            (
                "init --domain example.com --repo example.com/shop",
                "`init --repo` has no counterpart, because Cargo has no module path",
            ),
            (
                "create api --group a --version v1 --kind B --plugins=deploy-image/v1-alpha",
                "for `deploy-image/v1-alpha`, use `rbuilder create api --image`",
            ),
            (
                "create api --group a --version v1 --kind B --ssa",
                "`--ssa` has no counterpart, because every write of `Ctx` is a server-side apply",
            ),
            (
                "edit --plugins=helm/v2-alpha",
                "for `helm/v2-alpha`, use `rbuilder helm`, which merges",
            ),
            (
                "edit --plugins grafana.kubebuilder.io/v1-alpha",
                "for `grafana/v1-alpha`, use `rbuilder grafana`",
            ),
            ("edit --plugins=ours/v1", "`--plugins` has no counterpart"),
            (
                "init --plugins=helm --domain a.b",
                "for `helm/v2-alpha`, use `rbuilder helm`",
            ),
            (
                "init --project-version=3",
                "`--project-version` has no counterpart",
            ),
            (
                "edit --force",
                "`edit --force` has no counterpart, because `rbuilder edit` merges",
            ),
            (
                "alpha update --force",
                "for `kubebuilder alpha update`, use `rbuilder update`: a merge",
            ),
            (
                "alpha generate",
                "`kubebuilder alpha generate` has no counterpart, because `rbuilder update` rebuilds",
            ),
            (
                "generate bundle --version 0.1.0",
                "for `operator-sdk generate bundle`, use `rbuilder bundle`",
            ),
            (
                "-C shop generate kustomize manifests -q",
                "for `operator-sdk generate kustomize manifests`, use `rbuilder bundle`",
            ),
            (
                "bundle validate ./bundle",
                "`operator-sdk bundle validate` has no counterpart",
            ),
            (
                "bundle --use-image-digests",
                "for `generate bundle --use-image-digests`, use `rbuilder bundle --image",
            ),
            (
                "run bundle quay.io/a/b:v1",
                "`operator-sdk run bundle` has no counterpart, because the commands of operator-sdk work on every bundle",
            ),
            ("olm install", "`operator-sdk olm install` has no counterpart"),
            (
                "scorecard ./bundle",
                "`operator-sdk scorecard` has no counterpart, because `operator-sdk scorecard ./bundle` runs the tests",
            ),
            (
                "manifests paths=./...",
                "for `controller-gen paths=`, use `--package`",
            ),
            (
                "crd rbac:roleName=manager-role webhook paths=./...",
                "for `controller-gen crd rbac:roleName=manager-role webhook paths=./...`, use `rbuilder manifests`",
            ),
            (
                "update --to-version v4.16.0",
                "`--to-version` has no counterpart, because `rbuilder update` finds the version",
            ),
        ] {
            let tip = tip(&format!("rbuilder {line}"));
            assert!(tip.starts_with(expected), "{line}: {tip}");
        }
    }

    #[test]
    fn suggests_only_near_misses() {
        for (line, expected) in [
            ("delte api", "a similar subcommand exists: 'delete'"),
            ("manifest", "a similar subcommand exists: 'manifests'"),
            ("generat", ""),
            ("remove api", ""),
        ] {
            assert_eq!(tip(&format!("rbuilder {line}")), expected, "{line}");
        }
    }
}
