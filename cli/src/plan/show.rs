//! A plan for eyes and for programs.

use serde_json::{Value, json};
use similar::TextDiff;

use super::Plan;

/// One line for each change, then what stays.
pub fn summary(plan: &Plan) -> String {
    if plan.is_empty() {
        return "unchanged: everything is as this command would write it\n".to_owned();
    }
    plan.changes()
        .iter()
        .map(|(path, change)| format!("{:>9} {path}\n", change.verb()))
        .collect()
}

/// The whole plan as one unified diff, as `git apply` and `patch -p1` take it.
pub fn diff(plan: &Plan) -> String {
    plan.changes()
        .iter()
        .map(|(path, change)| {
            let old = if change.verb() == "create" {
                "/dev/null".to_owned()
            } else {
                format!("a/{path}")
            };
            let new = if change.after().is_none() {
                "/dev/null".to_owned()
            } else {
                format!("b/{path}")
            };
            TextDiff::from_lines(change.before(), change.after().unwrap_or_default())
                .unified_diff()
                .header(&old, &new)
                .to_string()
        })
        .collect()
}

/// The plan as data. `applied` says whether the files were written.
pub fn json(plan: &Plan, command: &str, applied: bool) -> Value {
    let changes: Vec<Value> = plan
        .changes()
        .iter()
        .map(|(path, change)| json!({ "path": path, "action": change.verb(), "content": change.after() }))
        .collect();
    let unchanged: Vec<&str> = plan.unchanged().collect();
    json!({ "command": command, "applied": applied, "changes": changes, "unchanged": unchanged })
}
