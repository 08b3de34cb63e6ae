//! Derives the rules for `#[rbac(derived)]` from the code.

use rbuilder_syntax::RbacRule;

use super::fit::describe_unseen;
use super::marker::Permission;
use crate::package::Package;
use crate::permissions::{Needs, Strength, Unseen, Why};
use crate::place::Place;
use crate::report::Report;

/// Returns the rules for all `#[rbac(derived)]` markers, and reports permissions that can't be
/// derived.
pub(super) fn derive_rules(package: &Package, needs: &Needs, report: &mut Report) -> Vec<RbacRule> {
    let mut markers = package
        .rules
        .iter()
        .filter(|placed| placed.rule.derived)
        .peekable();
    if let Some(first) = markers.peek() {
        let place = Place {
            file: first.file,
            span: first.rule.span,
        };
        if needs.is_empty() {
            let help = "write the rules, or add the library `rbuilder` to the dependencies: calls are read in packages that depend on it";
            report.warning(
                place,
                "no call in the source needs a permission, so this marker has no effect",
                help,
            );
        }
        report_unseen(needs, report);
    }
    markers.flat_map(|placed| rules_of(&placed.rule, needs)).collect()
}

fn rules_of(marker: &RbacRule, needs: &Needs) -> Vec<RbacRule> {
    let known = needs.known.iter();
    let known = known.filter(|need| need.strength >= Strength::Optional);
    known
        .map(|need| {
            let permission = Permission::of(need);
            RbacRule {
                span: marker.span,
                groups: vec![permission.group],
                resources: vec![permission.resource],
                verbs: need.verbs.iter().map(|verb| (*verb).to_owned()).collect(),
                // Only a ClusterRole can grant access to cluster-scoped resources.
                namespace: marker.namespace.clone().filter(|_| permission.is_namespaced),
                role_name: marker.role_name.clone(),
                ..RbacRule::default()
            }
        })
        .collect()
}

fn report_unseen(needs: &Needs, report: &mut Report) {
    let help = "write a marker with the permissions that it needs";
    for unseen in &needs.unseen {
        let what = match (describe_unseen(unseen), unseen) {
            (Some(what), _) => what,
            (
                None,
                Unseen {
                    call,
                    why: Why::Passed,
                    ..
                },
            ) => {
                format!("`{call}` receives a client and is not followed")
            }
            (None, _) => continue,
        };
        let message = format!("{what}, so the derived rules do not allow it");
        report.warning(unseen.place, message, help);
    }
}
