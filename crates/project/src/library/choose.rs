//! Decides where a project gets the library from, based on the request or on how this command was
//! built.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::built::{Built, find_checkout, find_library, read_built};
use super::{FOLDER, Library, LibraryForm, LibrarySource, git, url};
use crate::tree::resolve_path;

/// Environment variable that selects the form for `init` without `--library`.
const VARIABLE: &str = "RBUILDER_LIBRARY";

/// A library source, with warnings about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The source.
    pub library: Library,
    /// Warnings with their help texts.
    pub warnings: Vec<(String, String)>,
}

impl Choice {
    fn of(library: Library) -> Choice {
        let warnings = Vec::new();
        Choice { library, warnings }
    }

    fn warn(mut self, message: impl Into<String>, help: impl Into<String>) -> Choice {
        self.warnings.push((message.into(), help.into()));
        self
    }
}

/// Returns the source for a new project. The form is the requested one, the one set in the
/// environment, or else depends on how this command was built.
///
/// # Errors
/// Fails if the form needs a value that was neither specified nor recorded at build time.
pub fn choose_library(source: &LibrarySource, root: &Path) -> Result<Choice> {
    let built = read_built();
    let chooser = Chooser { root, built: &built };
    if source.form.is_some() {
        return chooser.choose_form(source);
    }
    match std::env::var(VARIABLE) {
        Ok(name) if !name.is_empty() => {
            let form = LibraryForm::parse(&name).with_context(|| format!("invalid variable `{VARIABLE}`"))?;
            let asked = LibrarySource {
                form: Some(form),
                ..LibrarySource::default()
            };
            chooser.choose_form(&asked)
        }
        _ => chooser.choose_default(),
    }
}

struct Chooser<'a> {
    root: &'a Path,
    built: &'a Built,
}

impl Chooser<'_> {
    fn choose_default(&self) -> Result<Choice> {
        if self.is_in_checkout() {
            return self.choose_path(None);
        }
        match self.built {
            Built::Package { .. } => self.choose_version(None),
            Built::CargoCheckout { .. } => self.choose_git(None, None),
            Built::Checkout { folder, commit, url } => match (folder, commit, url) {
                (Some(folder), Some(commit), Some(_)) if git::is_pushed(folder, commit) == Some(false) => {
                    self.explain_path(&format!(
                        "commit `{}` of the checkout is not on a branch of `origin`: push it, then run `rbuilder library --set git`",
                        short(commit)
                    ))
                }
                (_, Some(_), Some(_)) => self.choose_git(None, None),
                _ => self.explain_path("the checkout has no `origin` that others can fetch from"),
            },
        }
    }

    fn choose_form(&self, source: &LibrarySource) -> Result<Choice> {
        source.check()?;
        match source.form.unwrap_or(LibraryForm::Path) {
            LibraryForm::Version => self.choose_version(source.version.as_deref()),
            LibraryForm::Git => self.choose_git(source.url.as_deref(), source.rev.as_deref()),
            LibraryForm::Path => self.choose_path(source.path.as_deref()),
        }
    }

    fn choose_version(&self, asked: Option<&str>) -> Result<Choice> {
        let version = asked.unwrap_or(env!("CARGO_PKG_VERSION"));
        let choice = Choice::of(Library::version(version).map_err(|error| anyhow!(error))?);
        if matches!(self.built, Built::Package { .. }) || asked.is_some() {
            return Ok(choice);
        }
        Ok(choice.warn(
            format!("this command was not installed from a registry, so version {version} of the library may not be released"),
            "if Cargo does not find it, run `rbuilder library --set git` or `rbuilder library --set path`",
        ))
    }

    fn choose_git(&self, url: Option<&str>, rev: Option<&str>) -> Result<Choice> {
        let (known_url, commit) = match self.built {
            Built::Package { commit } => (&None, commit),
            Built::CargoCheckout { commit, url } | Built::Checkout { commit, url, .. } => (url, commit),
        };
        let missing = |what: &str, name: &str| {
            anyhow!("the {what} of the library's git repository is not known: {name}")
        };
        let asked_url = url;
        let url = url
            .or(known_url.as_deref())
            .ok_or_else(|| missing("URL", "this command was not built from a clone of a URL that others can fetch from; pass `--library-url <url>` to `init`, or `--url <url>` to `library`"))?;
        let asked_rev = rev;
        let rev = rev.or(commit.as_deref()).ok_or_else(|| {
            missing(
                "commit",
                "pass `--library-rev <commit>` to `init`, or `--rev <commit>` to `library`",
            )
        })?;
        let mut choice = Choice::of(Library::git(url, rev).map_err(|error| anyhow!(error))?);
        if let Library::Git { url, .. } = &choice.library {
            choice = match url {
                url if url::is_local_url(url) => choice.clone().warn(
                    format!("only this machine can fetch the library from {url}"),
                    "before you share the project, run `rbuilder library --set git --url <url>` with a URL of a server",
                ),
                url if url.starts_with("ssh://") => choice.clone().warn(
                    format!("the library is fetched over ssh from {url}, so each build of the project needs a key, in CI and in containers too"),
                    "if the repository can be read without a key, run `rbuilder library --set git --url https://…`",
                ),
                _ => choice,
            };
        }
        match (self.built, asked_url, asked_rev) {
            (
                Built::Checkout {
                    folder: Some(folder), ..
                },
                None,
                None,
            ) => Ok(compare_checkout(choice, folder, rev)),
            _ => Ok(choice),
        }
    }

    fn choose_path(&self, asked: Option<&Path>) -> Result<Choice> {
        let (folder, is_relative) = match asked {
            Some(asked) => {
                let resolved = resolve_path(asked);
                let library = find_library(&resolved).ok_or_else(|| {
                    anyhow!(
                        "{} contains neither the library nor a checkout of rbuilder: expected a package `{}` in it or in its directory `{FOLDER}`",
                        asked.display(),
                        super::PACKAGE
                    )
                })?;
                (library, asked.is_relative())
            }
            None => {
                let checkout = find_checkout().ok_or_else(|| {
                    anyhow!("the checkout that this command was built from does not exist: pass `--library-path <dir>` to `init`, or `--path <dir>` to `library`")
                })?;
                (checkout.join(FOLDER), false)
            }
        };
        let root = resolve_path(self.root);
        let path = match is_relative || self.is_in_checkout() {
            true => relative_path(&root, &folder),
            false => folder.clone(),
        };
        let path = path
            .to_str()
            .ok_or_else(|| anyhow!("the path of the library is not valid UTF-8: {}", path.display()))?;
        let choice = Choice::of(Library::path(path).map_err(|error| anyhow!(error))?);
        match is_relative || self.is_in_checkout() {
            true => Ok(choice),
            false => Ok(choice.warn(
                format!("the project takes the library from {path}, so it builds on this machine only"),
                "before you share the project, run `rbuilder library --set git --url <url> --rev <commit>`",
            )),
        }
    }

    /// Falls back to a path. `reason` says why no form that others can build is available.
    fn explain_path(&self, reason: &str) -> Result<Choice> {
        if find_checkout().is_none() {
            bail!(
                "cannot determine where the project gets the library from: this command was built from a checkout \
                 without a URL, which no longer exists; pass `--library git --library-url <url> --library-rev <commit>` or `--library path --library-path <dir>`"
            );
        }
        let mut choice = self.choose_path(None)?;
        for (message, _) in &mut choice.warnings {
            message.push_str(&format!(" ({reason})"));
        }
        Ok(choice)
    }

    /// Whether the project is in the checkout that this command was built from, like the examples.
    /// A relative path then works wherever the checkout is.
    fn is_in_checkout(&self) -> bool {
        let root = resolve_path(self.root);
        find_checkout().is_some_and(|checkout| root.starts_with(checkout))
    }
}

/// Warns if the checkout has diverged from the commit, or if others can't fetch the commit.
fn compare_checkout(choice: Choice, folder: &Path, commit: &str) -> Choice {
    let shown = short(commit);
    let choice = match git::is_pushed(folder, commit) {
        Some(false) => choice.warn(
            format!("commit `{shown}` is not on a branch of `origin`, so the project cannot be built yet"),
            format!("push it in {}", folder.display()),
        ),
        _ => choice,
    };
    match git::is_changed(folder, commit) {
        Some(true) => choice.warn(
            format!("the code in {} differs from commit `{shown}`, which the project gets the library from", folder.display()),
            "commit, push and install the command again, or try the changes with `rbuilder library --set path`",
        ),
        _ => choice,
    }
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn relative_path(from: &Path, to: &Path) -> PathBuf {
    let common = from
        .iter()
        .zip(to.iter())
        .take_while(|(from, to)| from == to)
        .count();
    // Drives on Windows have no relative path between them.
    if common == 0 && to.has_root() {
        return to.to_owned();
    }
    let up = from.iter().skip(common).map(|_| "..");
    up.map(AsRef::as_ref).chain(to.iter().skip(common)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(built: &Built) -> Result<Choice> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Chooser {
            root: folder.path(),
            built,
        }
        .choose_default()
    }

    fn checkout(folder: Option<PathBuf>, commit: Option<&str>, url: Option<&str>) -> Built {
        let (commit, url) = (commit.map(str::to_owned), url.map(str::to_owned));
        Built::Checkout { folder, commit, url }
    }

    #[test]
    fn default_form_depends_on_how_the_command_was_built() {
        let form = |built: &Built| choose(built).expect("a form").library.form();
        let (commit, url) = (Some("0123abc"), Some("https://git.example.com/r"));
        assert_eq!(form(&Built::Package { commit: None }), LibraryForm::Version);
        let installed = Built::CargoCheckout {
            commit: commit.map(str::to_owned),
            url: url.map(str::to_owned),
        };
        assert_eq!(form(&installed), LibraryForm::Git);
        assert_eq!(form(&checkout(None, commit, url)), LibraryForm::Git);
        assert_eq!(form(&checkout(None, commit, None)), LibraryForm::Path);
        assert_eq!(form(&checkout(None, None, None)), LibraryForm::Path);
        let unknown = Built::CargoCheckout {
            commit: None,
            url: None,
        };
        let error = choose(&unknown).expect_err("no URL").to_string();
        assert!(error.contains("--library-url"), "{error}");
    }

    #[test]
    fn explains_why_it_chose_a_path() {
        let choice = choose(&checkout(None, None, None)).expect("the checkout of this test");
        let [(message, help)] = &*choice.warnings else {
            panic!("{choice:?}");
        };
        assert!(
            message.contains("builds on this machine only (the checkout has no `origin`"),
            "{message}"
        );
        assert!(help.contains("rbuilder library --set git"), "{help}");
    }

    #[test]
    fn finds_relative_paths() {
        let check = |from: &str, to: &str, expected: &str| {
            assert_eq!(
                relative_path(Path::new(from), Path::new(to)),
                Path::new(expected),
                "{from} {to}"
            );
        };
        check("/a/b", "/a/c/d", "../c/d");
        check("/a", "/a/c", "c");
        check("/a/b/c", "/a", "../..");
        // Like two drives on Windows, these have no common root.
        check("a/b", "/c/d", "/c/d");
    }
}
