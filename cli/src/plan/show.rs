//! Plans as text, as a diff and as JSON.

use serde_json::{Value, json};
use similar::TextDiff;

use super::Plan;

/// Returns a line for each change; `show` gives the path of a file as the user can open it.
pub fn render_summary(plan: &Plan, show: &dyn Fn(&str) -> String) -> String {
    if plan.is_empty() {
        return "unchanged: everything is up to date\n".to_owned();
    }
    plan.changes()
        .iter()
        .map(|(path, change)| format!("{:>9} {}\n", change.verb(), show(path)))
        .collect()
}

/// Returns the plan as a unified diff for `git apply` and `patch -p1`.
pub fn render_diff(plan: &Plan) -> String {
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

/// Returns the plan as JSON. `applied` is true if the files were written.
pub fn render_json(plan: &Plan, command: &str, applied: bool) -> Value {
    let changes: Vec<Value> = plan
        .changes()
        .iter()
        .map(|(path, change)| json!({ "path": path, "action": change.verb(), "content": change.after() }))
        .collect();
    let unchanged: Vec<&str> = plan.unchanged().collect();
    json!({ "command": command, "applied": applied, "changes": changes, "unchanged": unchanged })
}
