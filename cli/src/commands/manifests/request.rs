//! Requests to generate manifests, created from flags and settings.

use anyhow::{Result, anyhow};
use rbuilder_generator::{Levels, Options, Product};

use super::crd_place::CrdPlace;
use super::layout::Layout;
use super::settings::Settings;
use crate::flags::{ManifestsFlags, MessageFormat, Only, SourceFlags};
use crate::project::{FILE, Project};
use crate::shell::Shell;
use crate::tree::Tree;

#[derive(Clone)]
pub(in crate::commands) struct Request {
    pub(in crate::commands) layout: Layout,
    pub(in crate::commands) options: Options,
    pub(in crate::commands) notes_nothing: bool,
    /// Whether to fail if there are no manifests to compare.
    pub(in crate::commands) refuses_nothing: bool,
    /// Whether manifests may lose something that is still in the source.
    pub(in crate::commands) prunes_standing: bool,
    /// Whether to remove CRDs even if git tracks them.
    pub(in crate::commands) removes_tracked: bool,
    pub(in crate::commands) messages: MessageFormat,
    pub(in crate::commands) color: bool,
    pub(in crate::commands) advice: &'static str,
    pub(in crate::commands) writes: bool,
    /// Whether errors only block the affected manifests if the project isn't scaffolded.
    ///
    /// The manifests of a scaffolded project are deployed together. In an existing project, a
    /// single mistake shouldn't block all other kinds.
    pub(in crate::commands) keeps_going_without_scaffold: bool,
    /// Whether the command converts the package to a project that is deployed from `config/`.
    pub(in crate::commands) deploys: bool,
    /// Whether the process exits after writing the manifests.
    pub(in crate::commands) is_last: bool,
    pub(in crate::commands) samples: SampleScope,
    /// Whether to build `config/default` in memory, and to report its faults.
    pub(in crate::commands) builds_deployment: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum SampleScope {
    /// Samples of CRDs modified by the command.
    OfChangedCrds,
    /// Samples of all kinds in the source.
    OfGeneratedCrds,
    /// All samples, including those of CRDs that aren't generated.
    All,
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
            refuses_nothing: false,
            prunes_standing: false,
            removes_tracked: false,
            messages: MessageFormat::Human,
            color: false,
            advice: "fix these errors first",
            writes: true,
            keeps_going_without_scaffold: false,
            deploys: false,
            is_last: false,
            samples: SampleScope::OfChangedCrds,
            builds_deployment: false,
        }
    }
}

impl Request {
    pub(super) fn new(flags: &ManifestsFlags, shell: &Shell) -> Result<Request> {
        let mut request = Request {
            layout: Layout::new(&flags.target)?,
            notes_nothing: true,
            refuses_nothing: flags.check && !flags.allow_empty,
            prunes_standing: flags.target.prune,
            removes_tracked: flags.target.prune,
            messages: flags.message_format,
            color: shell.color(),
            advice: "",
            writes: !flags.stdout,
            keeps_going_without_scaffold: true,
            is_last: true,
            samples: match flags.check {
                true => SampleScope::All,
                false => SampleScope::OfGeneratedCrds,
            },
            builds_deployment: flags.check,
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
        // A kind excluded by a flag isn't stale.
        request.layout.prunes &= source.kinds.is_empty() && source.skip_kinds.is_empty();
        request.layout.is_partial = !source.packages.is_empty() || !source.examples.is_empty();
        Ok(request)
    }

    /// Requests all manifests of the given source, for read-only commands.
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

    /// Requests as much as possible with the settings in `Cargo.toml`, for commands that survey a
    /// repository.
    pub(in crate::commands) fn of_everything(tree: &Tree) -> Result<(Request, Settings)> {
        let mut request = Request::default().with_settings(tree)?;
        request.options.keep_going = true;
        request.options.products = vec![Product::Crds];
        Ok((request, Settings::read(tree)?))
    }

    pub(in crate::commands) fn role_path(&self) -> String {
        self.layout.role_path()
    }

    pub(in crate::commands) fn known_place(&self) -> &CrdPlace {
        self.layout.known_place()
    }

    /// Applies the settings in the project's `Cargo.toml`. Flags take precedence.
    pub(super) fn with_settings(&self, tree: &Tree) -> Result<Request> {
        let settings = Settings::read(tree)?;
        let mut request = self.clone();
        request.options.keep_going |= match settings.keep_going {
            Some(keep_going) => keep_going,
            None => self.keeps_going_without_scaffold && !has_scaffold(tree)?,
        };
        let mut levels = settings.levels.clone();
        // Levels from flags go last, to take precedence.
        levels.extend(&request.options.levels);
        request.options.levels = levels;
        let project = tree.read(FILE).ok().flatten();
        let project = project.and_then(|text| Project::parse(&text).ok());
        let is_deployed = self.deploys || project.is_some_and(|project| project.is_scaffolded());
        request.layout.apply_settings(&settings, is_deployed);
        request.options.committed = request.layout.list_crd_names(tree)?;
        Ok(request)
    }

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

/// Whether rbuilder scaffolded the project. Assumed if PROJECT can't be parsed.
fn has_scaffold(tree: &Tree) -> Result<bool> {
    let text = tree.read(FILE)?;
    Ok(text.is_some_and(|text| {
        Project::parse_own(&text).map_or(true, |project| project.is_some_and(|own| own.is_scaffolded()))
    }))
}
