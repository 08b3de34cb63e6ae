//! The version of rbuilder that scaffolded a project, recorded as `cliVersion` in PROJECT.

use std::cmp::Ordering;

use anyhow::{Result, bail};

use crate::project::{FILE, Project};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the version of the command that scaffolded the project. Fails if it is invalid or newer
/// than this command.
pub(super) fn check_version(project: &Project) -> Result<String> {
    let from = project.cli_version().unwrap_or_default();
    if compare_versions(from, VERSION).is_none() {
        bail!(
            "expected the version of rbuilder that scaffolded the project as `cliVersion` in {FILE}, found `{}`: set it, for example to `{VERSION}`",
            from.escape_debug()
        );
    }
    refuse_newer(project)?;
    Ok(from.to_owned())
}

/// Rejects a project scaffolded by a newer command, whose files this one would damage.
pub(super) fn refuse_newer(project: &Project) -> Result<()> {
    let from = project.cli_version().unwrap_or_default();
    match compare_versions(from, VERSION) {
        Some(Ordering::Greater) => bail!(
            "the project was scaffolded by rbuilder {from}, which is newer than this command ({VERSION}): {}",
            advise_installation(project, from)
        ),
        _ => Ok(()),
    }
}

pub(super) fn advise_installation(project: &Project, version: &str) -> String {
    match &project.known.rbuilder.library {
        Some(library) => format!(
            "install that version or a newer one, for example with `{}`",
            library.install_command(version)
        ),
        None => "install that version or a newer one".to_owned(),
    }
}

/// Compares two versions like Cargo, or returns `None` if one of them is invalid.
pub(super) fn compare_versions(left: &str, right: &str) -> Option<Ordering> {
    Some(parse_version(left)?.cmp(&parse_version(right)?))
}

/// A version. Pre-releases sort before the release.
type Version = ([u64; 3], bool, Vec<Identifier>);

/// Part of a pre-release. Numbers sort before words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

fn parse_version(text: &str) -> Option<Version> {
    let (text, _) = text.split_once('+').unwrap_or((text, ""));
    let (numbers, before) = match text.split_once('-') {
        Some((numbers, before)) => (numbers, Some(before)),
        None => (text, None),
    };
    let numbers: Vec<u64> = numbers
        .split('.')
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    let identifier = |part: &str| match part.parse() {
        Ok(number) => Identifier::Number(number),
        Err(_) => Identifier::Word(part.to_owned()),
    };
    let parts = before.map(|before| before.split('.').map(identifier).collect());
    Some((
        numbers.try_into().ok()?,
        parts.is_none(),
        parts.unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_in_cargo() {
        let order = [
            "0.1.0-alpha.2",
            "0.1.0-alpha.10",
            "0.1.0-beta",
            "0.1.0",
            "0.1.1",
            "0.2.0",
            "0.10.0",
            "1.0.0+x",
        ];
        for (at, left) in order.iter().enumerate() {
            for (other, right) in order.iter().enumerate() {
                assert_eq!(
                    compare_versions(left, right),
                    Some(at.cmp(&other)),
                    "{left} {right}"
                );
            }
        }
        for text in ["", "(devel)", "1", "1.2", "1.2.x", "v1.2.3"] {
            assert_eq!(compare_versions(text, "0.1.0"), None, "{text}");
        }
    }
}
