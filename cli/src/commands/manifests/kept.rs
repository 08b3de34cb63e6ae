//! CRDs that `rbuilder adopt` added to `skip` because it couldn't read or write their kinds. Their
//! files must not be removed.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_generator::{KindOutcome, KindSummary};

use crate::edit::selection::{SkippedKind, list_skipped};
use crate::tree::Tree;

pub(super) fn list_kept(tree: &Tree, kinds: &[KindSummary]) -> BTreeSet<String> {
    let mut items: BTreeMap<&str, Vec<SkippedKind>> = BTreeMap::new();
    let mut kept = BTreeSet::new();
    for kind in kinds {
        if !matches!(kind.outcome, KindOutcome::Skipped { .. }) {
            continue;
        }
        let items = items.entry(&kind.package).or_insert_with(|| {
            let path = match kind.package.as_str() {
                "" => "Cargo.toml".to_owned(),
                folder => format!("{folder}/Cargo.toml"),
            };
            list_skipped(&tree.read(&path).ok().flatten().unwrap_or_default())
        });
        if items
            .iter()
            .any(|item| item.reason.is_some() && kind.is_named(&item.kind))
        {
            kept.insert(format!("{}.{}", kind.plural, kind.group));
        }
    }
    kept
}
