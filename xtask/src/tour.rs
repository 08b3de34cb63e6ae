//! `cargo xtask tour`: from an empty folder to manifests, with the commands a user would type.
//!
//! It is the first command of README.md, so it needs Rust and nothing else.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::page::Page;
use crate::repo;
use crate::sh::Cmd;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder to make the project in [default: a new folder in the system's temporary folder]
    folder: Option<PathBuf>,
}

/// Scaffolds the Memcached operator, edits the files that its tutorial edits, and shows the CRD and the role.
pub(crate) fn show_tour(args: &Args) -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let folder = new_folder(args.folder.as_deref(), "memcached-operator")?;
    println!("$ mkdir -p {0} && cd {0}", folder.display());
    for step in Page::read("docs/tutorial.md")?.steps {
        for command in step.action.rbuilder_commands() {
            rbuilder(&bin, &folder, command)?;
        }
        if let Some(path) = step.action.edit_file(&folder)? {
            println!("\n# as docs/tutorial.md says:\n$ $EDITOR {path}");
        }
    }
    rbuilder(&bin, &folder, "manifests")?;
    for manifests in ["config/crd/bases", "config/rbac/role.yaml"] {
        for path in files_of(&folder.join(manifests))? {
            show(&folder, &path)?;
        }
    }
    println!();
    println!(
        "The operator is in {}. What to do with it: its README.md, or",
        folder.display()
    );
    println!("$ cd {} && cargo test", folder.display());
    Ok(())
}

/// An empty folder named for the project: `init` takes the project's name from it.
fn new_folder(asked: Option<&Path>, name: &str) -> Result<PathBuf> {
    let folder = match asked {
        Some(folder) => folder.to_owned(),
        None => tempfile::Builder::new()
            .prefix("rbuilder-tour-")
            .tempdir()?
            .keep()
            .join(name),
    };
    fs_err::create_dir_all(&folder)?;
    let folder = fs_err::canonicalize(folder)?;
    if fs_err::read_dir(&folder)?.next().is_some() {
        bail!("{} is not empty", folder.display());
    }
    Ok(folder)
}

fn rbuilder(bin: &Path, folder: &Path, line: &str) -> Result<()> {
    println!();
    Cmd::new(&format!("rbuilder {line}"))
        .dir(folder)
        .path_first(bin)?
        .echo()
        .run()
}

fn show(folder: &Path, path: &Path) -> Result<()> {
    println!();
    println!("$ cat {}", path.strip_prefix(folder)?.display());
    print!("{}", fs_err::read_to_string(path)?);
    Ok(())
}

/// The path itself, or the files in it, sorted.
fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs_err::read_dir(path).context("`rbuilder manifests` wrote no such manifests")?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}
