//! Skips kinds that seem to belong to another project.
//!
//! Comments that say so are found while reading a file. Whether the program creates the CRD of a
//! kind is known only after all files have been read. That is when the decision is made, before any
//! module is read just for the schemas of such kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Collector;
use crate::package::{Skipped, TypeItem};
use crate::selection::{Calls, crd_name, find_reconciled, is_reserved, may_call_crd};
use crate::sign::Sign;

impl Collector<'_> {
    pub(super) fn skip_kinds_of_other_projects(&mut self) {
        let undecided: Vec<usize> = (0..self.package.types.len())
            .filter(|position| self.is_undecided(&self.package.types[*position]))
            .collect();
        if undecided.is_empty() {
            return;
        }
        let calls = self.find_calls(&undecided);
        let own_domains = self.own_domains(calls.as_ref());
        for position in undecided {
            let item = &self.package.types[position];
            if let Some(sign) = find_sign(item, calls.as_ref(), &own_domains) {
                let item = &mut self.package.types[position];
                item.skipped = Some(Skipped::Seems(sign));
                item.is_checked = false;
            }
        }
        self.skip_groups_only_read(calls.as_ref());
    }

    /// Skips kinds whose API group the program only reads.
    ///
    /// To be sure, we require a contrast: the program creates the CRD of a kind in some other group
    /// or reconciles it, but does neither for any kind in this group, whose CRDs aren't committed
    /// either.
    fn skip_groups_only_read(&mut self, calls: Option<&Calls>) {
        let kinds = self.package.types.iter().enumerate();
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (position, item) in kinds.filter(|(_, item)| item.skipped.is_none()) {
            if let Some(resource) = item
                .resource()
                .filter(|_| !self.package.module(item.module).is_foreign)
            {
                groups.entry(resource.group.clone()).or_default().push(position);
            }
        }
        // With a single group, there is nothing to compare.
        if groups.len() < 2 {
            return;
        }
        let reconciled = self.find_reconciled();
        let is_run = |item: &TypeItem| {
            let is_made = |root| calls.is_some_and(|calls| calls.make(root));
            item.root()
                .is_some_and(|root| is_made(root) || reconciled.contains(root))
        };
        let types = &self.package.types;
        if !groups
            .values()
            .flatten()
            .any(|position| is_run(&types[*position]))
        {
            return;
        }
        let is_used = |item: &TypeItem| item.is_ours || !self.is_undecided(item) || is_run(item);
        groups.retain(|_, kinds| !kinds.iter().any(|position| is_used(&types[*position])));
        if groups.is_empty() || calls.is_none() && self.calls_crd() {
            return;
        }
        let name_of = |position: &usize| types[*position].resource().map(crd_name);
        let names: BTreeSet<String> = groups.values().flatten().filter_map(name_of).collect();
        let committed = self.sources.find_committed_crds(&names);
        let is_committed = |position: &usize| name_of(position).is_some_and(|name| committed.contains(&name));
        groups.retain(|_, kinds| !kinds.iter().any(is_committed));
        for position in groups.into_values().flatten() {
            let item = &mut self.package.types[position];
            item.skipped = Some(Skipped::Seems(Sign::OnlyRead));
            item.is_checked = false;
        }
    }

    /// Also considers files that aren't part of this run, e.g. tests.
    fn calls_crd(&self) -> bool {
        let mut beside = self
            .files_beside()
            .into_iter()
            .filter_map(|path| self.text_of(&path));
        !self.callers.is_empty() || beside.any(|text| may_call_crd(&text))
    }

    fn find_reconciled(&self) -> BTreeSet<String> {
        let roots = self.package.types.iter().filter_map(TypeItem::root);
        let roots: BTreeSet<&str> = roots.collect();
        let mut found = BTreeSet::new();
        for text in self.seen.iter().filter_map(|path| self.text_of(path)) {
            find_reconciled(&text, &|name| roots.contains(name), &mut found);
        }
        found
    }

    /// Returns true if no setting decides whether the kind belongs to the project.
    fn is_undecided(&self, item: &TypeItem) -> bool {
        let module = self.package.module(item.module);
        let Some(resource) = item
            .resource()
            .filter(|_| !module.is_foreign && item.skipped.is_none())
        else {
            return false;
        };
        !self.selector.is_claimed(module.package, resource)
    }

    /// Returns the domains of kinds that certainly belong to the project. Kinds in one domain are
    /// usually installed together, even if the program creates only some of their CRDs.
    fn own_domains(&self, calls: Option<&Calls>) -> BTreeSet<String> {
        let is_made =
            |item: &TypeItem| calls.is_some_and(|calls| item.root().is_some_and(|root| calls.make(root)));
        let types = self.package.types.iter().filter(|item| item.skipped.is_none());
        let kinds = types.filter_map(|item| Some((item, item.resource()?)));
        let own = kinds.filter(|(item, resource)| {
            let module = self.package.module(item.module);
            is_made(item) || self.selector.is_claimed(module.package, resource)
        });
        own.map(|(_, resource)| domain_of(&resource.group).to_owned())
            .collect()
    }

    /// Finds the calls of `crd()`. Returns `None` if it's unclear for which kinds the program
    /// creates CRDs.
    fn find_calls(&self, undecided: &[usize]) -> Option<Calls> {
        let roots = self.package.types.iter().filter_map(TypeItem::root);
        let roots: BTreeSet<&str> = roots.collect();
        let is_kind = |name: &str| roots.contains(name);
        let mut calls = Calls::default();
        let callers = self.callers.iter().filter_map(|path| self.text_of(path));
        callers.for_each(|text| calls.read(&text, &is_kind));
        if calls.is_generic() {
            let own = self.seen.iter().filter_map(|path| self.text_of(path));
            own.for_each(|text| calls.follow(&text));
        }
        // Calls only for other projects' kinds say nothing about the program's own kinds.
        let own_kinds = self.package.types.iter().filter(|item| item.skipped.is_none());
        let own_kinds: BTreeSet<&str> = own_kinds.filter_map(TypeItem::root).collect();
        let is_own = |name: &str| own_kinds.contains(name);
        if !calls.are_known(&is_own) {
            return None;
        }
        let is_made = |position: &usize| {
            self.package.types[*position]
                .root()
                .is_some_and(|root| calls.make(root))
        };
        if undecided.iter().all(is_made) {
            return Some(calls);
        }
        // An example, a test, a build script or another package may create the remaining CRDs.
        for path in self.files_beside() {
            if let Some(text) = self.text_of(&path) {
                calls.read(&text, &is_kind);
                calls.follow(&text);
            }
        }
        calls.are_known(&is_own).then_some(calls)
    }

    fn text_of(&self, path: &str) -> Option<Arc<str>> {
        // Errors don't matter here, or have already been reported.
        self.sources.text(path).ok().flatten()
    }

    /// Returns the packages' Rust files that aren't part of any target in this run.
    fn files_beside(&self) -> BTreeSet<String> {
        let own = self.package.members.iter().filter(|member| !member.is_published);
        let folders: BTreeSet<&str> = own.map(|member| member.folder.as_str()).collect();
        let files = folders
            .into_iter()
            .filter_map(|folder| self.sources.rust_files(folder).ok());
        files.flatten().filter(|path| !self.seen.contains(path)).collect()
    }
}

fn find_sign(item: &TypeItem, calls: Option<&Calls>, own_domains: &BTreeSet<String>) -> Option<Sign> {
    let resource = item.resource()?;
    let is_made = calls.is_some_and(|calls| item.root().is_some_and(|root| calls.make(root)));
    let is_of_own_domain = own_domains.contains(domain_of(&resource.group));
    let is_approved = resource.annotations.iter().any(|(key, _)| key == APPROVED);
    let by_program = match calls {
        _ if is_made => None,
        // Nobody would use `derive(CrdSchema)` or the annotation for a CRD that they don't create.
        _ if is_reserved(&resource.group) && !item.is_ours && !is_approved => Some(Sign::Reserved),
        Some(_) if !is_of_own_domain => Some(Sign::NeverMade),
        _ => None,
    };
    item.sign.or(by_program)
}

/// The API server requires this annotation on CRDs in groups of the Kubernetes community.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Returns e.g. `example.com` for `cache.example.com`.
fn domain_of(group: &str) -> &str {
    match group.rmatch_indices('.').nth(1) {
        Some((at, _)) => &group[at + 1..],
        None => group,
    }
}
