//! Renders directories with kustomize or Helm before their objects are validated.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::cluster::ClusterChoice;
use crate::commands::find_kubectl;
use crate::overlay::{FILE_NAMES, Kustomization};
use crate::programs::{LIMIT, LONGEST, ask, find_program, neutral_folder};
use crate::tree::{InputFile, STANDARD_INPUT, read_inputs};

/// Suffix of a directory's path that denotes its rendered output.
pub(in crate::commands) const RENDERED: &str = " (rendered)";

pub(in crate::commands) fn is_in_file(path: &str) -> bool {
    !path.ends_with(RENDERED) && path != STANDARD_INPUT
}

/// Reads the input for a path on the command line: a file, standard input (`-`), the files of a
/// directory, or the output of kustomize or Helm.
pub(in crate::commands) fn read_texts(dir: &Path, typed: &Path) -> Result<Vec<InputFile>> {
    let path = dir.join(typed);
    let rendered = if typed == Path::new("-") {
        None
    } else if path.join("Chart.yaml").is_file() {
        Some(render_chart(&path)?)
    } else if let Some(name) = FILE_NAMES.iter().find(|name| path.join(name).is_file()) {
        // Read the files directly, so that diagnostics have line numbers.
        match is_plain_list(&path, name) {
            true => None,
            false => Some(render_kustomization(dir, typed)?),
        }
    } else {
        None
    };
    match rendered {
        None => read_inputs(dir, typed),
        Some(text) => Ok(vec![InputFile {
            path: format!("{}{RENDERED}", typed.display()),
            text,
            is_named: true,
        }]),
    }
}

/// Whether a kustomization only lists files next to it, as in `config/samples`.
fn is_plain_list(path: &Path, name: &str) -> bool {
    let read = |path: &Path| read_inputs(path, Path::new(name)).ok();
    let Some([file]) = read(path).and_then(|files| <[InputFile; 1]>::try_from(files).ok()) else {
        return false;
    };
    // The caller reports what is wrong with the file.
    let Ok(kustomization) = Kustomization::parse(name, &file.text) else {
        return true;
    };
    let is_file = |name: &str| !name.contains(['/', '\\']) && path.join(name).is_file();
    let mut keys = kustomization.keys();
    keys.all(|key| ["apiVersion", "kind", "resources"].contains(&key))
        && kustomization
            .list("resources")
            .iter()
            .all(|entry| entry.as_str().is_some_and(is_file))
}

fn render_kustomization(dir: &Path, typed: &Path) -> Result<String> {
    let kubectl = find_kubectl(dir, &ClusterChoice::default())
        .with_context(|| format!("cannot render the kustomization {}", typed.display()))?;
    kubectl.render(&typed.to_string_lossy())
}

fn render_chart(path: &Path) -> Result<String> {
    let helm = find_program("helm").ok_or_else(|| {
        anyhow!(
            "cannot render the chart {}: helm was not found: install it (https://helm.sh/docs/intro/install), or pass \
             what it renders on standard input: `helm template <chart> | rbuilder validate -`",
            path.display()
        )
    })?;
    let mut command = Command::new(&helm);
    command
        .arg("template")
        .arg(std::path::absolute(path)?)
        .current_dir(neutral_folder(&helm));
    let answer = ask(&mut command, LIMIT).with_context(|| format!("cannot run {}", helm.display()))?;
    if !answer.status.success() {
        bail!(
            "`helm template {}` failed: {}",
            path.display(),
            String::from_utf8_lossy(&answer.err).trim()
        );
    }
    if answer.out.len() as u64 >= LONGEST {
        bail!(
            "the chart {} renders to more than {} MiB: pass what helm renders on standard input",
            path.display(),
            LONGEST >> 20
        );
    }
    String::from_utf8(answer.out).context("the output of `helm template` is not valid UTF-8")
}
