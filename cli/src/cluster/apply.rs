//! Applies objects with server-side apply, and reports the fields taken over from other field
//! managers.

use anyhow::{Result, bail};
use serde_json::Value;

use super::conflict::{Conflict, find_conflicts};
use super::{Kubectl, describe, to_list};
use crate::shell::Shell;

/// Server-side, because client-side apply stores the object in an annotation, whose size limit a
/// CRD can exceed.
pub(crate) const APPLY: [&str; 4] = ["apply", "--server-side", "-f", "-"];
const FORCE: &str = "--force-conflicts";

/// Applies objects, and prints kubectl's output. Fields set to different values by other managers
/// are printed with their managers and taken over. `options` are additional arguments of `kubectl
/// apply`.
pub(crate) fn apply(kubectl: &Kubectl, objects: &[Value], options: &[&str], shell: &mut Shell) -> Result<()> {
    let arguments = [&APPLY[..], options].concat();
    let all = kubectl.attempt(&arguments, &to_list(objects), shell)?;
    if find_conflicts(&all.stderr).is_empty() {
        return all.finish(shell);
    }
    let mut taken_over = Vec::new();
    let mut failure = None;
    // kubectl's message doesn't name the conflicting object, so apply each one separately.
    for object in objects {
        let alone = kubectl.attempt(&arguments, &object.to_string(), shell)?;
        match find_conflicts(&alone.stderr) {
            conflicts if conflicts.is_empty() => {
                if let Err(error) = alone.finish(shell) {
                    failure = Some(error);
                }
            }
            conflicts => taken_over.push((object, conflicts)),
        }
    }
    if !taken_over.is_empty() {
        shell.note(&describe_conflicts(&taken_over));
        let objects: Vec<Value> = taken_over.iter().map(|(object, _)| (*object).clone()).collect();
        let forced = [&arguments[..], &[FORCE]].concat();
        kubectl.run(&forced, &to_list(&objects), shell)?;
    }
    match failure {
        None => Ok(()),
        Some(error) => bail!(error),
    }
}

fn describe_conflicts(taken_over: &[(&Value, Vec<Conflict>)]) -> String {
    let mut text = "taking over fields from other managers:\n".to_owned();
    for (object, conflicts) in taken_over {
        text += &format!("  {}\n", describe(object));
        for Conflict { manager, field } in conflicts {
            text += &format!("    {field} from {manager}\n");
        }
    }
    text + "  = help: to leave a field to its manager, remove the field from the manifests\n"
}
