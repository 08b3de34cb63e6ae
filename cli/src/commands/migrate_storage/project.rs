//! Determines which CRDs to migrate.

use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_kubernetes::crd::{Crd, KIND};
use rbuilder_yaml::{describe_failure, list_items, parse_values};
use serde_json::Value;

use crate::commands::decide;
use crate::commands::manifests::{Request, collect_manifests};
use crate::flags::MigrateStorageFlags;
use crate::shell::Shell;

#[derive(Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) name: String,
    /// Storage version in the project. `None` if the user specified the CRD.
    pub(super) storage: Option<String>,
}

pub(super) fn find_wanted(dir: &Path, flags: &MigrateStorageFlags, shell: &mut Shell) -> Result<Vec<Wanted>> {
    if let Some(name) = flags.names.iter().find(|name| !is_name(name)) {
        bail!("expected the name of a CRD, such as `cups.example.com`, found `{name}`");
    }
    if !flags.names.is_empty() {
        let named = flags.names.iter().map(|name| Wanted {
            name: name.clone(),
            storage: None,
        });
        return Ok(named.collect());
    }
    if !dir.join("Cargo.toml").is_file() {
        bail!("expected a project, or the names of CRDs, such as `cups.example.com`");
    }
    let request = Request::for_source(&flags.source, shell);
    let (_, (files, found)) = decide(dir, shell, &mut |tree| collect_manifests(tree, &request))?;
    found.print_around("", shell);
    let mut wanted = Vec::new();
    for file in files.iter().filter(|file| file.text.contains(KIND)) {
        let documents = parse_values(&file.text);
        let documents = documents.map_err(|error| describe_failure(&file.path, &file.text, &error))?;
        let crds = documents.into_iter().flat_map(list_items);
        wanted.extend(crds.filter_map(|crd| read_definition(&crd)));
    }
    if wanted.is_empty() {
        bail!("the project generates no CRDs: name those to migrate, such as `cups.example.com`");
    }
    Ok(wanted)
}

/// Whether this could be a CRD name, i.e. `<plural>.<group>`.
fn is_name(text: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    text.split_once('.')
        .is_some_and(|(plural, group)| !plural.is_empty() && !group.is_empty())
        && text.bytes().all(is_allowed)
}

fn read_definition(crd: &Value) -> Option<Wanted> {
    let crd = Crd::read(crd)?;
    Some(Wanted {
        name: crd.name().to_owned(),
        storage: Some(crd.storage()?.name.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_of_crds_have_a_plural_and_a_group() {
        for (text, expected) in [
            ("cups.example.com", true),
            ("cups.e-x.io", true),
            ("cups", false),
            (".example.com", false),
            ("cups.", false),
            ("Cup.example.com", false),
            ("cups.example.com/status", false),
        ] {
            assert_eq!(is_name(text), expected, "{text}");
        }
    }
}
