//! The versions of a kind that PROJECT has, and the choices that are open for a request of another one.

use anyhow::{Result, bail};

use crate::commands::edits::shown_version;
use crate::commands::{foreign_kind, scaffold};
use crate::flags::ApiFlags;
use crate::project::{Image, Known, Resource, names};
use crate::tree::Tree;

/// The recorded versions of the requested kind.
pub(super) struct Family<'a> {
    flags: &'a ApiFlags,
    pub(super) all: Vec<&'a Resource>,
    /// The requested version.
    pub(super) own: Option<&'a Resource>,
    /// The other versions with types.
    others: Vec<&'a Resource>,
}

/// The parts of a version to scaffold.
pub(super) struct Parts {
    pub(super) types: bool,
    pub(super) controller: bool,
}

impl<'a> Family<'a> {
    pub(super) fn of(known: &'a Known, resource: &Resource, flags: &'a ApiFlags) -> Self {
        let all: Vec<&Resource> = known
            .resources
            .iter()
            .filter(|other| other.same_kind(resource))
            .collect();
        let is_own = |other: &&&Resource| other.version == resource.version;
        let others = all.iter().filter(|other| !is_own(other) && other.api.is_some());
        Family {
            flags,
            own: all.iter().find(is_own).copied(),
            others: others.copied().collect(),
            all,
        }
    }

    /// Returns the requested version if it has types.
    pub(super) fn scaffolded(&self) -> Option<&'a Resource> {
        self.own.filter(|own| own.api.is_some())
    }

    /// Chooses what is scaffolded: what the flags request, or else what is missing.
    ///
    /// # Errors
    /// Fails if nothing would be, if another version has the controller, or if there are no types for it.
    pub(super) fn choose_parts(&self, tree: &Tree) -> Result<Parts> {
        let flags = self.flags;
        let is_named = flags.controller_name.is_some();
        let is_scaffolded = self.scaffolded().is_some();
        let types = flags.resource.unwrap_or(!(is_named && is_scaffolded));
        let is_controlled = self.others.iter().any(|other| other.has_controller());
        let has_others = self.own.is_some_and(|own| {
            let names = own.controller_names();
            !names.is_empty() && !names.contains(&own.default_controller())
        });
        let controller = flags
            .controller
            .unwrap_or(is_named || !(is_controlled || has_others));
        if !types && !controller {
            bail!("nothing to scaffold: pass only one of `--resource=false` and `--controller=false`");
        }
        if controller && is_controlled && !is_named {
            bail!(
                "kind `{}` already has a controller for another version: omit `--controller`, or name another one with `--controller-name`",
                flags.kind
            );
        }
        if !types && !is_scaffolded {
            bail!(
                "kind `{}` has no API types in {}: omit `--resource=false` to scaffold them{}",
                flags.kind,
                shown_version(&flags.group, &flags.version),
                foreign_kind::explain_unknown(tree, &flags.group, &flags.version, &flags.kind)?
            );
        }
        Ok(Parts { types, controller })
    }

    /// Chooses the plural, which all versions share.
    ///
    /// # Errors
    /// Fails if another one is recorded, or if it is not valid.
    pub(super) fn choose_plural(&self) -> Result<String> {
        let kind = &self.flags.kind;
        let mut plurals = self.own_first().map(|other| &other.plural);
        let recorded = plurals.find(|plural| !plural.is_empty());
        let plural = match (&self.flags.plural, recorded) {
            (Some(asked), Some(known)) if asked != known => bail!(
                "kind `{kind}` already has the plural `{known}`, which all its versions must share: omit `--plural`"
            ),
            (Some(asked), _) => asked.clone(),
            (None, Some(known)) => known.clone(),
            (None, None) => names::plural_of(kind),
        };
        scaffold::check_names([names::check_plural(&plural)])?;
        Ok(plural)
    }

    /// Chooses whether objects have a namespace, which holds for all versions.
    ///
    /// # Errors
    /// Fails if the other scope is recorded.
    pub(super) fn choose_scope(&self) -> Result<bool> {
        let recorded = self.own_first().find_map(|other| other.api.as_ref());
        match (self.flags.namespaced, recorded.map(|api| api.namespaced)) {
            (Some(asked), Some(known)) if asked != known => bail!(
                "kind `{}` already exists with `--namespaced={known}`, and all its versions must have the same scope: omit `--namespaced`",
                self.flags.kind
            ),
            (asked, known) => Ok(asked.or(known).unwrap_or(true)),
        }
    }

    /// Returns true if the types are imported from a CRD: those that are there, or of which a further version is a copy.
    pub(super) fn is_imported(&self) -> bool {
        let template = self.scaffolded().or_else(|| self.newest());
        template.is_some_and(Resource::is_imported)
    }

    /// Chooses the image: the recorded one, or for a new kind the requested one.
    ///
    /// # Errors
    /// Fails if one is requested for a kind that is there.
    pub(super) fn choose_image(&self) -> Result<Option<Image>> {
        let recorded = self.own.and_then(|own| own.image.clone());
        match Image::requested(&self.flags.image) {
            None => Ok(recorded),
            asked if asked == recorded => Ok(recorded),
            asked if self.own.is_none() && self.others.is_empty() => Ok(asked),
            Some(_) => bail!(
                "kind `{}` is already scaffolded, and `--image` is for a new kind: change the image in its controller",
                self.flags.kind
            ),
        }
    }

    /// Returns true for the version that came first, which is the storage version. That it is requested again does not change
    /// it.
    pub(super) fn is_first(&self) -> bool {
        let first = self.all.iter().find(|other| other.api.is_some());
        first.is_none_or(|first| first.version == self.flags.version)
    }

    /// Returns the other version with types that has the highest priority in Kubernetes' ordering.
    pub(super) fn newest(&self) -> Option<&'a Resource> {
        let others = self.others.iter().copied();
        others.max_by_key(|other| names::version_rank(&other.version))
    }

    fn own_first(&self) -> impl Iterator<Item = &'a Resource> {
        self.own.into_iter().chain(self.all.iter().copied())
    }
}
