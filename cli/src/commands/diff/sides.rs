//! The two sides of a comparison.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rbuilder_compatibility::is_compared;
use rbuilder_yaml::{describe_failure, list_items, parse_values};
use serde_json::Value;

use super::cluster::read_definitions;
use super::revision::Repository;
use crate::cluster::Kubectl;
use crate::commands::manifests::{Written, read_written};
use crate::commands::{decide, find_kubectl};
use crate::crd_file::without_template;
use crate::flags::DiffFlags;
use crate::shell::Shell;
use crate::tree::{read_inputs, resolve_path, with_slashes};

/// Argument that selects the cluster as base.
const CLUSTER: &str = "cluster";

/// Text without any of these words contains no manifest to compare.
const KINDS: [&str; 3] = ["CustomResourceDefinition", "Role", "WebhookConfiguration"];

pub(super) struct Sides {
    pub(super) base: String,
    pub(super) old: Vec<Value>,
    pub(super) new: Vec<Value>,
    /// The cluster, if it is the older state.
    pub(super) cluster: Option<Kubectl>,
}

pub(super) struct Newer {
    pub(super) objects: Vec<Value>,
    places: Vec<PathBuf>,
    /// Names of the files, without their directories.
    file_names: BTreeSet<String>,
}

/// Reads both states. Fails if the older one has nothing to compare with, since all changes would
/// then be compatible.
pub(super) fn read_sides(dir: &Path, typed_in: &Path, flags: &DiffFlags, shell: &mut Shell) -> Result<Sides> {
    if flags.base.as_deref().is_some_and(|base| base.trim().is_empty()) {
        bail!(
            "BASE is empty, perhaps because a variable is not set: write a git revision, a file or a directory, or leave \
             BASE out to compare with the main branch"
        );
    }
    let sides = find_sides(dir, typed_in, flags, shell)?;
    if sides.old.is_empty() && !flags.allow_empty {
        bail!(
            "expected CustomResourceDefinitions, roles or webhook configurations in {}, found none to compare with: \
             write another BASE, or pass `--allow-empty` if all manifests are new",
            sides.base
        );
    }
    Ok(sides)
}

fn find_sides(dir: &Path, typed_in: &Path, flags: &DiffFlags, shell: &mut Shell) -> Result<Sides> {
    let newer = read_newer(dir, typed_in, flags, shell)?;
    let typed = flags.base.as_deref();
    if typed == Some(CLUSTER) {
        let kubectl = find_kubectl(dir, &flags.cluster.choice())?;
        // Only CRDs are read from a cluster.
        let new = of_kinds(newer.objects, &BTreeSet::new());
        let old = read_definitions(&kubectl, &new)?;
        return Ok(Sides {
            base: "the cluster".to_owned(),
            old,
            new,
            cluster: Some(kubectl),
        });
    }
    let given = match typed {
        Some(typed) => find_given(typed_in, typed)?,
        None => None,
    };
    let repository = Repository::find(dir)?;
    let commit = match (typed, &repository) {
        (Some(typed), Some(repository)) => repository
            .resolve(typed)?
            .map(|commit| (typed.to_owned(), commit)),
        (None, Some(repository)) => Some(repository.find_merge_base()?),
        (_, None) => None,
    };
    match (given, commit) {
        // A name with a slash or a dot is more likely a path.
        (Some(given), Some((name, _))) if !name.contains(['/', '.']) => bail!(
            "`{name}` is a git revision and a file or directory: write `./{name}` for the latter, or \
             `refs/heads/{name}` for a branch ({})",
            given.display()
        ),
        (Some(given), _) => {
            let mut old = Vec::new();
            for file in read_inputs(typed_in, &given)? {
                old.extend(parse(&file.path, &file.text)?);
            }
            // Otherwise, if e.g. only CRDs were given, every role would be reported as new.
            let kinds = old.iter().map(kind).collect();
            let new = of_kinds(newer.objects, &kinds);
            Ok(Sides {
                base: with_slashes(&given.to_string_lossy()),
                old,
                new,
                cluster: None,
            })
        }
        (None, Some((name, commit))) => {
            let repository = repository.context("expected a git repository")?;
            let mut old = Vec::new();
            for (path, text) in repository.read_files(&commit, &newer.places)? {
                old.extend(parse(&format!("{path} at {name}"), &text)?);
            }
            for (path, crd) in find_moved(&repository, &commit, &newer, &old)? {
                shell.note(&format!("{} was in {path} at {name}\n", name_of(&crd)));
                old.push(crd);
            }
            let short: String = commit.chars().take(12).collect();
            Ok(Sides {
                base: format!("{name} ({short})"),
                old,
                new: newer.objects,
                cluster: None,
            })
        }
        (None, None) => match typed {
            Some(typed) => bail!(
                "`{typed}` is neither a git revision nor a file or directory; to compare with a cluster, write `{CLUSTER}`"
            ),
            None => bail!("expected BASE, because the project is in no git repository"),
        },
    }
}

/// Finds CRDs that are in other directories at a commit, in files of the same name. Otherwise, after
/// a directory is renamed, all its CRDs would be reported as new.
fn find_moved(
    repository: &Repository,
    commit: &str,
    newer: &Newer,
    old: &[Value],
) -> Result<Vec<(String, Value)>> {
    let crds = |objects: &[Value]| -> BTreeSet<String> {
        let crds = objects.iter().filter(|object| kind(object) == KINDS[0]);
        crds.map(|crd| name_of(crd).to_owned()).collect()
    };
    let known = crds(old);
    let mut missing = crds(&newer.objects);
    missing.retain(|name| !known.contains(name));
    let mut moved = Vec::new();
    if missing.is_empty() {
        return Ok(moved);
    }
    for (path, text) in repository.read_files_named(commit, &newer.file_names)? {
        // A file of this name may be something else.
        for object in parse(&path, &text).unwrap_or_default() {
            if kind(&object) == KINDS[0] && missing.remove(name_of(&object)) {
                moved.push((path.clone(), object));
            }
        }
    }
    Ok(moved)
}

fn find_given(typed_in: &Path, typed: &str) -> Result<Option<PathBuf>> {
    let is_there = typed == "-" || typed_in.join(typed).try_exists().unwrap_or_default();
    Ok(is_there.then(|| PathBuf::from(typed)))
}

/// Reads the newer state. Fails if the files of `--to` contain nothing to compare.
pub(super) fn read_newer(dir: &Path, typed_in: &Path, flags: &DiffFlags, shell: &mut Shell) -> Result<Newer> {
    let mut objects = Vec::new();
    let mut file_names = BTreeSet::new();
    let mut add_name = |path: &str| file_names.extend(path.rsplit(['/', '\\']).next().map(str::to_owned));
    if flags.files.is_empty() {
        if !dir.join("Cargo.toml").is_file() {
            bail!("expected a project, or the new manifests with `--to`");
        }
        let (_, written) = decide(dir, shell, &mut |tree| read_written(tree, &flags.source))?;
        let Written { places, files } = written;
        for (path, text) in &files {
            objects.extend(parse(path, text)?);
            add_name(path);
        }
        let places = places.iter().map(|place| resolve_path(dir).join(place)).collect();
        return Ok(Newer {
            objects,
            places,
            file_names,
        });
    }
    for typed in &flags.files {
        for file in read_inputs(typed_in, typed)? {
            objects.extend(parse(&file.path, &file.text)?);
            add_name(&file.path);
        }
    }
    if objects.is_empty() {
        bail!(
            "expected CustomResourceDefinitions, roles or webhook configurations in the files of `--to`, found none"
        );
    }
    let places = flags
        .files
        .iter()
        .map(|typed| resolve_path(&typed_in.join(typed)))
        .collect();
    Ok(Newer {
        objects,
        places,
        file_names,
    })
}

fn parse(path: &str, text: &str) -> Result<Vec<Value>> {
    if !KINDS.iter().any(|kind| text.contains(kind)) {
        return Ok(Vec::new());
    }
    let yaml = without_template(text);
    let documents = parse_values(&yaml).map_err(|error| describe_failure(path, &yaml, &error))?;
    Ok(documents
        .into_iter()
        .flat_map(list_items)
        .filter(is_compared)
        .collect())
}

fn kind(object: &Value) -> String {
    object["kind"].as_str().unwrap_or_default().to_owned()
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn of_kinds(mut objects: Vec<Value>, kinds: &BTreeSet<String>) -> Vec<Value> {
    objects.retain(|object| kinds.contains(&kind(object)) || kind(object) == KINDS[0]);
    objects
}
