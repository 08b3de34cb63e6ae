//! Requests to generate manifests, as flags and settings of a project make them.

use anyhow::{Result, anyhow};
use rbuilder_generator::{Levels, Options, Product};

use super::crd_place::CrdPlace;
use super::layout::Layout;
use super::settings::Settings;
use crate::flags::{ManifestsFlags, MessageFormat, Only, SourceFlags};
use crate::project::{FILE, Project};
use crate::shell::Shell;
use crate::tree::Tree;

/// A request to generate manifests.
#[derive(Clone)]
pub(in crate::commands) struct Request {
    pub(in crate::commands) layout: Layout,
    pub(in crate::commands) options: Options,
    /// True if the command prints a note when the source has no markers.
    pub(in crate::commands) notes_nothing: bool,
    /// True if manifests may lose what the source still defines.
    pub(in crate::commands) prunes_standing: bool,
    /// True if CRDs tracked by git may be removed.
    pub(in crate::commands) removes_tracked: bool,
    /// Format of diagnostics.
    pub(in crate::commands) messages: MessageFormat,
    /// True if diagnostics are printed in color.
    pub(in crate::commands) color: bool,
    /// Advice to print if the source has errors.
    pub(in crate::commands) advice: &'static str,
    /// True if the command writes manifests.
    pub(in crate::commands) writes: bool,
    /// True if an error only blocks the manifests that it affects, unless the project is
    /// scaffolded. The manifests of a scaffold are deployed together. In an existing project, one
    /// mistake must not block the other kinds.
    pub(in crate::commands) keeps_going_without_scaffold: bool,
    /// True if the command turns the package into a project that deploys its CRDs from `config/`.
    pub(in crate::commands) deploys: bool,
    /// True if the process exits when the manifests are written.
    pub(in crate::commands) is_last: bool,
    /// True if all samples are checked, and not only those of changed CRDs.
    pub(in crate::commands) checks_samples: bool,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            layout: Layout::default(),
            options: Options {
                version: Some(env!("CARGO_PKG_VERSION").into()),
                ..Options::default()
            },
            notes_nothing: false,
            prunes_standing: false,
            removes_tracked: false,
            messages: MessageFormat::Human,
            color: false,
            advice: "fix these errors first",
            writes: true,
            keeps_going_without_scaffold: false,
            deploys: false,
            is_last: false,
            checks_samples: false,
        }
    }
}

impl Request {
    pub(super) fn new(flags: &ManifestsFlags, shell: &Shell) -> Result<Request> {
        let mut request = Request {
            layout: Layout::new(&flags.target)?,
            notes_nothing: true,
            prunes_standing: flags.target.prune,
            removes_tracked: flags.target.prune,
            messages: flags.message_format,
            color: shell.color(),
            advice: "",
            writes: !flags.stdout,
            keeps_going_without_scaffold: true,
            is_last: true,
            checks_samples: flags.check,
            ..Request::default()
        };
        let (source, target) = (&flags.source, &flags.target);
        request.select(source);
        let options = &mut request.options;
        if !flags.only.is_empty() {
            options
                .products
                .retain(|product| flags.only.contains(&only(*product)));
        }
        options.keep_going = flags.keep_going;
        options.levels = read_levels(flags)?;
        options.role_name.clone_from(&target.role_name);
        options.max_description_length = target.max_description_length;
        options.embedded_object_meta = target.embedded_object_meta;
        if target.no_version_annotation {
            options.version = None;
        }
        // Kinds that a flag excludes are not stale.
        request.layout.prunes &= source.kinds.is_empty() && source.skip_kinds.is_empty();
        request.layout.is_partial = !source.packages.is_empty() || !source.examples.is_empty();
        Ok(request)
    }

    /// Creates a request for all manifests of some source, for commands that do not write them.
    pub(in crate::commands) fn for_source(source: &SourceFlags, shell: &Shell) -> Request {
        let mut request = Request {
            color: shell.color(),
            writes: false,
            keeps_going_without_scaffold: true,
            ..Request::default()
        };
        request.select(source);
        request
    }

    /// Applies the flags that select the source.
    pub(super) fn select(&mut self, source: &SourceFlags) {
        let options = &mut self.options;
        options.packages.clone_from(&source.packages);
        options.examples.clone_from(&source.examples);
        options.kinds.clone_from(&source.kinds);
        options.skip_kinds.clone_from(&source.skip_kinds);
        options.features.clone_from(&source.features);
        options.all_features = source.all_features;
        options.no_default_features = source.no_default_features;
        options.kubernetes = source.kubernetes;
    }

    /// Creates a request to survey a repository: generates as much as possible, with the settings
    /// in its `Cargo.toml`.
    ///
    /// # Errors
    /// Returns an error if the settings are invalid.
    pub(in crate::commands) fn of_everything(tree: &Tree) -> Result<(Request, Settings)> {
        let mut request = Request::default().with_settings(tree)?;
        request.options.keep_going = true;
        request.options.products = vec![Product::Crds];
        Ok((request, Settings::read(tree)?))
    }

    /// Returns the path of the roles.
    pub(in crate::commands) fn role_path(&self) -> String {
        self.layout.role_path()
    }

    /// Returns the place of CRDs that are not deployed from `config/`.
    pub(in crate::commands) fn known_place(&self) -> &CrdPlace {
        self.layout.known_place()
    }

    /// Applies the settings in the project's `Cargo.toml`. Flags take precedence.
    ///
    /// # Errors
    /// Returns an error if the settings are invalid.
    pub(super) fn with_settings(&self, tree: &Tree) -> Result<Request> {
        let settings = Settings::read(tree)?;
        let mut request = self.clone();
        request.options.keep_going |= match settings.keep_going {
            Some(keep_going) => keep_going,
            None => self.keeps_going_without_scaffold && !has_scaffold(tree)?,
        };
        let mut levels = settings.levels.clone();
        levels.extend(&request.options.levels);
        request.options.levels = levels;
        let project = tree.read(FILE).ok().flatten();
        let project = project.and_then(|text| Project::parse(&text).ok());
        let is_deployed = self.deploys || project.is_some_and(|project| project.is_scaffolded());
        request.layout.apply_settings(&settings, is_deployed);
        request.options.committed = request.layout.list_crd_names(tree)?;
        Ok(request)
    }

    /// Returns whether no flag excludes a part of the source.
    pub(super) fn reads_all(&self) -> bool {
        let options = &self.options;
        let lists = [
            &options.packages,
            &options.examples,
            &options.kinds,
            &options.skip_kinds,
            &options.features,
        ];
        lists.iter().all(|list| list.is_empty()) && !options.no_default_features
    }

    pub(super) fn makes(&self, product: Product) -> bool {
        self.options.products.contains(&product)
    }
}

fn only(product: Product) -> Only {
    match product {
        Product::Crds => Only::Crd,
        Product::Roles => Only::Rbac,
        Product::Webhooks => Only::Webhook,
    }
}

/// Reads the levels in flags.
fn read_levels(flags: &ManifestsFlags) -> Result<Levels> {
    let mut levels = Levels::default();
    for word in &flags.allow {
        levels
            .allow(word)
            .map_err(|reason| anyhow!("`--allow`: {reason}"))?;
    }
    for word in &flags.deny {
        levels
            .deny(word)
            .map_err(|reason| anyhow!("`--deny`: {reason}"))?;
    }
    Ok(levels)
}

/// Returns whether rbuilder scaffolded the project. True if PROJECT cannot be parsed.
fn has_scaffold(tree: &Tree) -> Result<bool> {
    let text = tree.read(FILE)?;
    Ok(text.is_some_and(|text| Project::parse(&text).map_or(true, |project| project.is_scaffolded())))
}
