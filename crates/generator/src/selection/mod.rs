//! Selects the kinds that get a CRD, i.e. those of this project.
//!
//! A program that uses objects of another project declares their kind with the same derive as its
//! own kinds, usually with only a few of the fields. No CRD must be generated from such a binding,
//! because applying it would replace the real one. Each kind skipped by default is named in a note.
//! A kind that a flag, `Cargo.toml` or PROJECT claims for the project is never skipped.

mod groups;
mod report;
mod signs;

pub use groups::find_group_owner;
pub(crate) use signs::{Calls, find_reconciled, find_sign, is_reserved, may_call_crd};

use std::collections::BTreeSet;

use rbuilder_kubernetes::gvk;
use rbuilder_syntax::CustomResource;

use crate::Options;
use crate::cargo::{NamedKind, Selection};
use crate::package::{PackageId, Skipped};

/// The owners of kinds according to the PROJECT file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectKinds {
    /// The domain of the project: its API groups end in it.
    pub domain: String,
    /// The group and the kind of each API that the project defines.
    pub own: Vec<(String, String)>,
    /// The group and kind of each API that the project uses but another project defines.
    pub foreign: Vec<(String, String)>,
}

impl ProjectKinds {
    fn lists(&self, resource: &CustomResource) -> bool {
        is_among(&self.own, resource)
    }

    fn disowns(&self, resource: &CustomResource) -> bool {
        is_among(&self.foreign, resource) && !self.lists(resource)
    }

    fn has_group(&self, group: &str) -> bool {
        !self.domain.is_empty()
            && group
                .strip_suffix(self.domain.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

fn is_among(kinds: &[(String, String)], resource: &CustomResource) -> bool {
    let mut kinds = kinds.iter();
    kinds.any(|(group, kind)| (group, kind) == (&resource.group, &resource.kind))
}

/// Whether the struct of a kind asks for a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaAsked {
    Yes,
    /// `schema = "disabled"`, without a derive that generates a schema.
    No,
}

pub(crate) struct Selector {
    /// The kinds named on the command line.
    kinds: Vec<String>,
    skip_kinds: Vec<String>,
    project: Option<ProjectKinds>,
    committed: BTreeSet<String>,
    /// Indexed by package, from `[package.metadata.rbuilder]`.
    of_package: Vec<Selection>,
}

impl Selector {
    pub(crate) fn new(options: &Options) -> Self {
        Selector {
            kinds: options.kinds.clone(),
            skip_kinds: options.skip_kinds.clone(),
            project: options.project.clone(),
            committed: options.committed.iter().cloned().collect(),
            of_package: Vec::new(),
        }
    }

    pub(crate) fn add_package(&mut self, selection: Selection) {
        self.of_package.push(selection);
    }

    /// Returns true if a setting claims the kind for the project: the command line, `Cargo.toml`,
    /// PROJECT, or an existing CRD. Only valid for kinds that [`Selector::skips`] does not skip.
    pub(crate) fn is_claimed(&self, package: PackageId, resource: &CustomResource) -> bool {
        let project = self.project.as_ref();
        !self.kinds.is_empty()
            || self.of_package[package.0].only.is_some()
            || project.is_some_and(|project| project.lists(resource) || project.has_group(&resource.group))
            || self.committed.contains(&crd_name(resource))
    }

    /// Returns `None` if the kind gets a CRD.
    pub(crate) fn skips(
        &self,
        package: PackageId,
        resource: &CustomResource,
        schema: SchemaAsked,
    ) -> Option<Skipped> {
        let matches = |name: &String| is_named(name, resource);
        if self.skip_kinds.iter().any(matches) {
            return Some(Skipped::Flag);
        }
        if !self.kinds.is_empty() {
            return (!self.kinds.iter().any(matches)).then_some(Skipped::Flag);
        }
        let Selection { only, skip, .. } = &self.of_package[package.0];
        let lists = |list: &[NamedKind]| list.iter().any(|named| is_named(&named.name, resource));
        if lists(skip) {
            return Some(Skipped::Listed);
        }
        if let Some(only) = only {
            return (!lists(only)).then_some(Skipped::Unlisted);
        }
        let project = self.project.as_ref();
        if project.is_some_and(|project| project.disowns(resource)) {
            return Some(Skipped::Disowned);
        }
        if project.is_some_and(|project| project.lists(resource) || project.has_group(&resource.group)) {
            return None;
        }
        match (groups::find_group_owner(&resource.group), schema) {
            (Some(owner), _) => Some(Skipped::Foreign(owner)),
            (None, SchemaAsked::No) => Some(Skipped::NoSchema),
            (None, SchemaAsked::Yes) => None,
        }
    }
}

pub(crate) fn crd_name(resource: &CustomResource) -> String {
    gvk::qualify(&resource.plural_name(), &resource.group)
}

/// Compares a kind with a name: `Kind`, `Kind.group`, or `*.group` for all kinds of a group.
fn is_named(name: &str, resource: &CustomResource) -> bool {
    fits(name, &resource.kind, &resource.group)
}

pub(crate) fn fits(name: &str, kind: &str, group: &str) -> bool {
    match name.split_once('.') {
        None => name == kind,
        Some((named, of_group)) => (named == "*" || named == kind) && of_group == group,
    }
}
