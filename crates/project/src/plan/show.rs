//! Renders plans as summaries, diffs and JSON.

use serde_json::{Value, json};
use similar::TextDiff;

use super::{Change, Plan};
use crate::project::BASE;

/// Describes each change on a line. `show` converts a project path to one that the user can open.
pub fn render_summary(plan: &Plan, show: &dyn Fn(&str) -> String) -> String {
    if plan.is_empty() {
        return "unchanged: everything is up to date\n".to_owned();
    }
    shown_changes(plan)
        .map(|(path, change)| match plan.moved_from(path) {
            Some(from) => format!("{:>9} {} -> {}\n", "moved", show(from), show(path)),
            None => format!("{:>9} {}\n", change.verb(), show(path)),
        })
        .collect()
}

fn shown_changes(plan: &Plan) -> impl Iterator<Item = (&String, &Change)> {
    let changes = plan.changes().iter();
    changes.filter(|(path, _)| !plan.moves_away(path))
}

/// Order of files in a diff: code first, then manifests, then files maintained by tools.
fn rank(path: &str) -> u8 {
    let is_hidden = path.split('/').any(|part| part.starts_with('.'));
    match path {
        _ if is_hidden => 4,
        _ if path.starts_with("src/") || path.contains("/src/") => 0,
        _ if path.starts_with("tests/") || path.contains("/tests/") => 1,
        _ if path.starts_with("config/") || path.contains("/config/") => 2,
        _ => 3,
    }
}

/// Renders the plan as a unified diff for `git apply` and `patch -p1`, code first.
pub fn render_diff(plan: &Plan) -> String {
    let has_moves = plan.changes().keys().any(|path| plan.moves_away(path));
    // The base is compressed text, which nobody reads.
    let mut changes: Vec<_> = shown_changes(plan).filter(|(path, _)| *path != BASE).collect();
    changes.sort_by_key(|(path, _)| rank(path));
    changes
        .into_iter()
        .map(|(path, change)| {
            if let Some(from) = plan.moved_from(path) {
                let before = plan.changes().get(from).map_or("", Change::before);
                return render_move(from, path, (before, change.after().unwrap_or_default()));
            }
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
            let diff = TextDiff::from_lines(change.before(), change.after().unwrap_or_default());
            let hunks = diff.unified_diff().header(&old, &new).to_string();
            match has_moves {
                true => git_header(path, change) + &hunks,
                false => hunks,
            }
        })
        .collect()
}

/// The `diff --git` line of a file, without which git would attribute the hunks to the preceding
/// move.
fn git_header(path: &str, change: &Change) -> String {
    let mode = match change {
        Change::Create { .. } => "new file mode 100644\n",
        Change::Delete { .. } => "deleted file mode 100644\n",
        Change::Edit { .. } | Change::Replace { .. } => "",
    };
    format!("diff --git a/{path} b/{path}\n{mode}")
}

fn render_move(from: &str, to: &str, (before, after): (&str, &str)) -> String {
    let diff = TextDiff::from_lines(before, after);
    let hunks = diff
        .unified_diff()
        .header(&format!("a/{from}"), &format!("b/{to}"))
        .to_string();
    format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n{hunks}")
}

/// Renders the plan as JSON. `applied` states whether the files were written.
pub fn render_json(plan: &Plan, command: &str, applied: bool) -> Value {
    let changes: Vec<Value> = shown_changes(plan)
        .map(|(path, change)| match plan.moved_from(path) {
            Some(from) => json!({ "path": path, "action": "move", "from": from, "content": change.after() }),
            None => json!({ "path": path, "action": change.verb(), "content": change.after() }),
        })
        .collect();
    let unchanged: Vec<&str> = plan.unchanged().collect();
    json!({ "command": command, "applied": applied, "changes": changes, "unchanged": unchanged })
}
