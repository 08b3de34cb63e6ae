//! CEL rules. A rule is identified by its expression, as in server-side apply.

use rbuilder_schema::{Cel, Schema};

use super::{Comparison, Probe};
use crate::path::Path;

impl Comparison {
    pub(super) fn compare_rules(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let decides = |rule: &Cel| {
            (
                rule.rule.trim().to_owned(),
                rule.optional_old_self.unwrap_or_default(),
            )
        };
        let text = |rule: &Cel| rule.rule.trim().to_owned();
        let same = |list: &[Cel], rule: &Cel| list.iter().any(|known| decides(known) == decides(rule));
        let mut removed: Vec<&Cel> = old
            .validations
            .iter()
            .filter(|rule| !same(&new.validations, rule))
            .collect();
        for rule in &new.validations {
            if let Some(known) = old
                .validations
                .iter()
                .find(|known| decides(known) == decides(rule))
            {
                if words(known) != words(rule) {
                    let message = format!("the message of the rule `{}` changes", text(rule));
                    self.add("rule-message-changed", path, message, Probe::Nothing);
                }
                continue;
            }
            let former = removed
                .iter()
                .position(|former| is_successor(former, rule))
                .map(|at| removed.remove(at));
            let probe = Probe::Rule {
                rule: Box::new(rule.clone()),
                node: Box::new(old.clone()),
            };
            match former {
                Some(former) => {
                    let message = format!("rule `{}` instead of `{}`", text(rule), text(former));
                    self.add("rule-changed", path, message, probe);
                }
                None => self.add("rule-added", path, format!("rule `{}`", text(rule)), probe),
            }
        }
        for rule in removed {
            self.add(
                "rule-removed",
                path,
                format!("no rule `{}`", text(rule)),
                Probe::Nothing,
            );
        }
    }
}

/// Returns true if a rule supersedes another one. Rules that report the same are likely to be
/// different versions of one rule.
fn is_successor(former: &Cel, rule: &Cel) -> bool {
    former.rule.trim() == rule.rule.trim()
        || former.message.is_some() && former.message == rule.message && former.field_path == rule.field_path
}

fn words(rule: &Cel) -> (Option<&str>, Option<&str>, Option<&str>, Option<&str>) {
    let reason = rule.reason.map(|reason| reason.as_str());
    (
        rule.message.as_deref(),
        rule.message_expression.as_deref(),
        rule.field_path.as_deref(),
        reason,
    )
}
