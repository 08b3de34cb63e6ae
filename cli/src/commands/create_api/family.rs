//! The recorded versions of a kind, and the choices for another version.

use anyhow::{Result, bail};
use rbuilder_kubernetes::gvk;
use rbuilder_kubernetes::version;

use crate::commands::{foreign_kind, scaffold};
use crate::project::{Image, Known, Resource, names};
use crate::request::ApiRequest;
use crate::tree::Tree;

pub(super) struct Family<'a> {
    requested: &'a ApiRequest,
    pub(super) all: Vec<&'a Resource>,
    pub(super) own: Option<&'a Resource>,
    others: Vec<&'a Resource>,
}

pub(super) struct Parts {
    pub(super) types: bool,
    pub(super) controller: bool,
}

impl<'a> Family<'a> {
    pub(super) fn of(known: &'a Known, resource: &Resource, requested: &'a ApiRequest) -> Self {
        let all: Vec<&Resource> = known
            .resources
            .iter()
            .filter(|other| other.same_kind(resource))
            .collect();
        let is_own = |other: &&&Resource| other.version == resource.version;
        let others = all.iter().filter(|other| !is_own(other) && other.api.is_some());
        Family {
            requested,
            own: all.iter().find(is_own).copied(),
            others: others.copied().collect(),
            all,
        }
    }

    pub(super) fn scaffolded(&self) -> Option<&'a Resource> {
        self.own.filter(|own| own.api.is_some())
    }

    /// Chooses what to scaffold: the requested parts, or else the missing ones. Fails if there is
    /// nothing to scaffold, if another version already has the controller, or if the controller
    /// would have no types.
    pub(super) fn choose_parts(&self, tree: &Tree) -> Result<Parts> {
        let requested = self.requested;
        let is_named = requested.controller_name.is_some();
        let is_scaffolded = self.scaffolded().is_some();
        // `--controller-name` alone adds another controller to existing types.
        let types = requested.resource.unwrap_or(!(is_named && is_scaffolded));
        let is_controlled = self.others.iter().any(|other| other.has_controller());
        let has_others = self.own.is_some_and(|own| {
            let names = own.controller_names();
            !names.is_empty() && !names.contains(&own.default_controller())
        });
        let controller = requested
            .controller
            .unwrap_or(is_named || !(is_controlled || has_others));
        if !types && !controller {
            bail!("nothing to scaffold: pass only one of `--resource=false` and `--controller=false`");
        }
        if controller && is_controlled && !is_named {
            bail!(
                "kind `{}` already has a controller for another version: omit `--controller`, or name another one with `--controller-name`",
                requested.kind
            );
        }
        if !types && !is_scaffolded {
            bail!(
                "kind `{}` has no API types in {}: omit `--resource=false` to scaffold them{}",
                requested.kind,
                gvk::api_version(&requested.group, &requested.version),
                foreign_kind::explain_unknown(tree, &requested.group, &requested.version, &requested.kind)?
            );
        }
        Ok(Parts { types, controller })
    }

    /// Chooses the plural. Fails if the requested one differs from the other versions'.
    pub(super) fn choose_plural(&self) -> Result<String> {
        let kind = &self.requested.kind;
        let mut plurals = self.own_first().map(|other| &other.plural);
        let recorded = plurals.find(|plural| !plural.is_empty());
        let plural = match (&self.requested.plural, recorded) {
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

    /// Chooses whether objects are namespaced. All versions must have the same scope.
    pub(super) fn choose_scope(&self) -> Result<bool> {
        let recorded = self.own_first().find_map(|other| other.api.as_ref());
        match (self.requested.namespaced, recorded.map(|api| api.namespaced)) {
            (Some(asked), Some(known)) if asked != known => bail!(
                "kind `{}` already exists with `--namespaced={known}`, and all its versions must have the same scope: omit `--namespaced`",
                self.requested.kind
            ),
            (asked, known) => Ok(asked.or(known).unwrap_or(true)),
        }
    }

    /// Whether the types are imported from a CRD. For new types, this depends on the version that
    /// they are copied from.
    pub(super) fn is_imported(&self) -> bool {
        let template = self.scaffolded().or_else(|| self.newest());
        template.is_some_and(Resource::is_imported)
    }

    /// Chooses the image. Only a new kind can get one; otherwise the recorded image applies.
    pub(super) fn choose_image(&self) -> Result<Option<Image>> {
        let recorded = self.own.and_then(|own| own.image.clone());
        match self.requested.image.clone() {
            None => Ok(recorded),
            asked if asked == recorded => Ok(recorded),
            asked if self.own.is_none() && self.others.is_empty() => Ok(asked),
            Some(_) => bail!(
                "kind `{}` is already scaffolded, and `--image` is for a new kind: change the image in its controller",
                self.requested.kind
            ),
        }
    }

    /// Whether this is the first version, and thus the storage version. Still true if the version
    /// is requested again.
    pub(super) fn is_first(&self) -> bool {
        let first = self.all.iter().find(|other| other.api.is_some());
        first.is_none_or(|first| first.version == self.requested.version)
    }

    /// The other version with types that has the highest Kubernetes version priority.
    pub(super) fn newest(&self) -> Option<&'a Resource> {
        let others = self.others.iter().copied();
        others.max_by(|one, other| version::compare(&one.version, &other.version))
    }

    fn own_first(&self) -> impl Iterator<Item = &'a Resource> {
        self.own.into_iter().chain(self.all.iter().copied())
    }
}
