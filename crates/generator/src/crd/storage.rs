//! Chooses the storage version if the attributes leave it open. kube's `storage` attribute is newer
//! than `merge_crds`, which takes the storage version as an argument.

use rbuilder_kubernetes::version;
use rbuilder_syntax::CustomResource;

use crate::package::{Package, TypeId};

/// Returns the position of the storage version if several versions qualify. Returns `None` if there
/// is nothing to choose, because `storage = true` determines the version or occurs twice.
pub(super) fn find_stored(package: &Package, versions: &[(TypeId, &CustomResource)]) -> Option<usize> {
    choose(package, versions).map(|(position, _)| position)
}

/// A storage version that the `storage` attributes alone do not determine.
pub(super) struct Explanation {
    pub(super) position: usize,
    pub(super) message: String,
    /// How to state the choice in the source. `None` if the program already states it by merging
    /// CRDs.
    pub(super) help: Option<&'static str>,
    /// True if nothing in the source determines the version, so that adding a version may change
    /// it.
    pub(super) is_assumed: bool,
}

pub(super) fn explain(package: &Package, versions: &[(TypeId, &CustomResource)]) -> Option<Explanation> {
    let (position, reason) = choose(package, versions)?;
    let CustomResource { kind, version, .. } = versions[position].1;
    let why = match reason {
        Reason::Written => "which says `storage = true`",
        Reason::Merged => "as passed to `merge_crds`",
        Reason::Highest => "the highest by Kubernetes' order of versions",
    };
    Some(Explanation {
        position,
        message: format!(
            "several versions of `{kind}` could be the storage version; it is `{version}`, {why}"
        ),
        help: (reason != Reason::Merged)
            .then_some("write `storage = false` on the other versions, which needs kube 0.98 or newer"),
        is_assumed: reason == Reason::Highest,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Reason {
    /// The only version with `storage = true`.
    Written,
    /// Passed to the function that merges the CRDs.
    Merged,
    Highest,
}

fn choose(package: &Package, versions: &[(TypeId, &CustomResource)]) -> Option<(usize, Reason)> {
    let is_open = |resource: &CustomResource| resource.storage && !resource.is_storage_written;
    let stored = versions.iter().filter(|(_, resource)| resource.storage).count();
    let open: Vec<usize> = (0..versions.len())
        .filter(|at| is_open(versions[*at].1))
        .collect();
    let is_twice = versions
        .windows(2)
        .any(|pair| pair[0].1.version == pair[1].1.version);
    if stored < 2 || open.is_empty() || is_twice {
        return None;
    }
    let written: Vec<usize> = (0..versions.len())
        .filter(|at| versions[*at].1.storage && versions[*at].1.is_storage_written)
        .collect();
    match written.as_slice() {
        [] => {}
        [only] => return Some((*only, Reason::Written)),
        _ => return None,
    }
    let merged = package.merges.iter().find_map(|(name, version)| {
        let root = |resource: &CustomResource| resource.root.clone().unwrap_or_else(|| resource.kind.clone());
        let at = |at: &&usize| root(versions[**at].1) == *name && versions[**at].1.version == *version;
        open.iter().find(at)
    });
    if let Some(position) = merged {
        return Some((*position, Reason::Merged));
    }
    let newest = open
        .into_iter()
        .max_by(|one, other| version::compare(&versions[*one].1.version, &versions[*other].1.version))?;
    Some((newest, Reason::Highest))
}
