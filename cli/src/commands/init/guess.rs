//! Guesses values that `init --in-package` needs and no flag sets: the domain, and the binary to
//! run in the image.

use std::collections::BTreeSet;

use rbuilder_generator::{KindOutcome, Sources};

use crate::commands::manifests::{self, Request};
use crate::edit::rust;
use crate::plan::Plan;
use crate::tree::{Tree, TreeSources};

/// Names that indicate a program which runs controllers.
const RUNS: [&str; 3] = ["Controller", "ManagerArgs", "watcher"];

/// Name that indicates a program which prints CRDs.
const PRINTS: &str = "CustomResourceExt";

/// Domains under which anyone can register names, in addition to public suffixes such as `co.uk`.
const SHARED: [&str; 4] = ["github.io", "gitlab.io", "k8s.io", "x-k8s.io"];

/// Groups of the package's own kinds. Empty if the kinds can't be read.
pub(super) fn list_groups(tree: &Tree) -> BTreeSet<String> {
    let found = Request::of_everything(tree)
        .and_then(|(request, _)| manifests::generate_in_memory(&Plan::default(), tree, &request, &mut drop));
    let kinds = found.map(|(_, found)| found.kinds).unwrap_or_default();
    let own = kinds
        .into_iter()
        .filter(|kind| !matches!(kind.outcome, KindOutcome::Skipped { .. }));
    own.map(|kind| kind.group)
        .filter(|group| !group.is_empty())
        .collect()
}

/// Guesses the domain from API groups: their common suffix, or everything after the first label of
/// a single group.
pub(super) fn guess_domain(groups: &BTreeSet<String>) -> Option<String> {
    let names = |group: &str| -> Vec<String> { group.rsplit('.').map(str::to_owned).collect() };
    let first = names(groups.first()?);
    let shared = groups.iter().map(|group| {
        let names = names(group);
        let pairs = first.iter().zip(&names);
        pairs.take_while(|(one, other)| one == other).count()
    });
    let shared = shared.min()?;
    let domain = |count: usize| {
        let names: Vec<&str> = first[..count].iter().rev().map(String::as_str).collect();
        names.join(".")
    };
    let count = match groups.len() {
        1 if shared > 2 && !is_shared(&domain(shared - 1)) => shared - 1,
        _ => shared,
    };
    (count >= 2 && !is_shared(&domain(count))).then(|| domain(count))
}

/// Whether a domain is a public suffix, e.g. `co.uk` or `github.io`.
fn is_shared(domain: &str) -> bool {
    let of_country = |(name, country): (&str, &str)| {
        country.len() == 2 && ["ac", "co", "com", "edu", "gov", "net", "org"].contains(&name)
    };
    SHARED.contains(&domain) || domain.split_once('.').is_some_and(of_country)
}

/// Guesses which binary runs the controllers. Considers those whose root file indicates it, or all
/// if none does: the only one, the only one that doesn't print CRDs, or the one named like the
/// package.
pub(super) fn guess_binary<'b>(
    sources: &TreeSources,
    package: &str,
    binaries: &'b [(String, String)],
) -> Option<&'b (String, String)> {
    let text = |path: &str| sources.text(path).ok().flatten().unwrap_or_default();
    let mentions = |main: &str, name: &str| rust::mentions(&text(main), name);
    let all: Vec<&(String, String)> = binaries.iter().collect();
    let select = |from: &[&'b (String, String)], is_it: &dyn Fn(&str) -> bool| -> Vec<_> {
        let found = from.iter().copied().filter(|(_, main)| is_it(main));
        found.collect()
    };
    let mut likely = select(&all, &|main| RUNS.iter().any(|name| mentions(main, name)));
    if likely.is_empty() {
        likely = all;
    }
    let without_crds = select(&likely, &|main| !mentions(main, PRINTS));
    let only = |found: &[&'b (String, String)]| match found {
        [only] => Some(*only),
        _ => None,
    };
    let named = || likely.iter().copied().find(|(name, _)| name == package);
    only(&likely).or_else(|| only(&without_crds)).or_else(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_of_groups() {
        for (groups, expected) in [
            (&["shop.example.com"][..], Some("example.com")),
            (&["example.com"], Some("example.com")),
            (
                &["a.shop.example.com", "b.shop.example.com"],
                Some("shop.example.com"),
            ),
            (&["example.com", "shop.example.com"], Some("example.com")),
            (&["shop.example.co.uk"], Some("example.co.uk")),
            (&["example.co.uk"], Some("example.co.uk")),
            (&["anna.github.io"], Some("anna.github.io")),
            (&["tea.x-k8s.io"], Some("tea.x-k8s.io")),
            (&["a.github.io", "b.github.io"], None),
            (&["example.com", "example.org"], None),
            (&["shop"], None),
            (&[], None),
        ] {
            let groups: BTreeSet<String> = groups.iter().map(|group| (*group).to_owned()).collect();
            assert_eq!(guess_domain(&groups).as_deref(), expected, "{groups:?}");
        }
    }
}
