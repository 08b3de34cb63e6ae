//! How the replicas of a deployed manager share the work (leader election or shards), and whether
//! they have the permissions for it.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_project::overlay;
use rbuilder_project::plan::Plan;
use rbuilder_project::tree::Tree;
use serde_json::Value;

use crate::bundle::find_container;
use crate::chart::config::{Condition, Config, Object, SHARDING};
use crate::chart::find_manager;
use crate::chart::sharding::turn_off_leader;

/// Settings for leader election and shards in `config/default`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// Argument or variable that turns on leader election, e.g. `--leader-elect`.
    pub leader: Option<String>,
    /// Argument or variable that turns on shards, e.g. `SHARDS=auto`.
    pub shards: Option<String>,
    /// Argument or variable for the namespace of Leases, if it differs from the manager's.
    pub lease_namespace: Option<String>,
    /// Verbs that the manager's roles allow on any Lease in its namespace.
    pub lease_verbs: BTreeSet<String>,
}

/// Expansion of `*` in a rule.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Reads how the manager is deployed.
///
/// # Errors
/// Fails if `config/` can't be read, or if it contains no manager.
pub fn read_replicas(plan: &Plan, tree: &Tree) -> Result<Replicas> {
    let config = Config::read(plan, tree)?;
    let manager = find_manager(&config)?;
    let holds = |condition: &Condition| config.enabled.contains(condition.value) == condition.is_true;
    let mut deployment = manager.value.clone();
    for (conditions, patch) in &manager.patches {
        if conditions.iter().all(holds) {
            overlay::merge(&mut deployment, patch);
        }
    }
    let account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        .as_str()
        .unwrap_or("default")
        .to_owned();
    let is_deployed = |object: &&Object| object.conditions.iter().all(holds);
    let deployed: Vec<&Object> = config.objects.iter().filter(is_deployed).collect();
    let lease_verbs = deployed
        .iter()
        .filter(|binding| config.kept_namespace(&binding.value).is_none() && binds(binding, &account))
        .flat_map(|binding| find_role(&deployed, binding))
        .flat_map(lease_verbs)
        .collect();
    let Some(container) = find_container(&mut deployment) else {
        return Ok(Replicas::default());
    };
    if config.turns_off_leader && config.enabled.contains(SHARDING) {
        turn_off_leader(container);
    }
    Ok(Replicas {
        leader: find_setting(container, "--leader-elect", "LEADER_ELECT")
            .filter(|setting| !setting.ends_with("=false")),
        shards: find_setting(container, "--shards", "SHARDS"),
        lease_namespace: find_setting(
            container,
            "--leader-election-namespace",
            "LEADER_ELECTION_NAMESPACE",
        ),
        lease_verbs,
    })
}

/// The argument or environment variable that sets a flag. The argument takes precedence.
fn find_setting(container: &Value, flag: &str, variable: &str) -> Option<String> {
    let arguments = container["args"].as_array().into_iter().flatten();
    let argument = arguments
        .filter_map(Value::as_str)
        .rfind(|argument| argument.split('=').next() == Some(flag));
    let variables = container["env"].as_array().into_iter().flatten();
    let variable = || {
        let mut variables = variables.filter(|known| known["name"] == variable);
        let value = variables.next_back()?["value"].as_str().unwrap_or("…");
        (!value.is_empty()).then(|| format!("{variable}={value}"))
    };
    argument.map(str::to_owned).or_else(variable)
}

fn binds(binding: &Object, account: &str) -> bool {
    let subjects = binding.value["subjects"].as_array().into_iter().flatten();
    let mut accounts = subjects.filter(|subject| subject["kind"] == "ServiceAccount");
    binding.kind().ends_with("RoleBinding") && accounts.any(|subject| subject["name"] == account)
}

fn find_role<'a>(deployed: &[&'a Object], binding: &Object) -> Option<&'a Object> {
    let role = &binding.value["roleRef"];
    let is_role = |object: &&&Object| role["kind"] == object.kind() && role["name"] == object.name();
    deployed.iter().find(is_role).copied()
}

fn lease_verbs(role: &Object) -> BTreeSet<String> {
    let strings = |value: &Value| -> BTreeSet<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let has = |value: &Value, name: &str| strings(value).iter().any(|known| known == name || known == "*");
    let rules = role.value["rules"].as_array().into_iter().flatten();
    let of_leases = rules.filter(|rule| {
        has(&rule["apiGroups"], "coordination.k8s.io")
            && has(&rule["resources"], "leases")
            && strings(&rule["resourceNames"]).is_empty()
    });
    of_leases
        .flat_map(|rule| {
            let verbs = strings(&rule["verbs"]);
            match verbs.contains("*") {
                true => VERBS.map(str::to_owned).into(),
                false => verbs,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn last_argument_takes_precedence_over_the_variable() {
        let container = json!({
            "args": ["--leader-elect", "--leader-elect=false", "--leader-election-namespace=a"],
            "env": [
                { "name": "LEADER_ELECT", "value": "true" },
                { "name": "SHARDS", "value": "64" },
                { "name": "EMPTY", "value": "" },
                { "name": "OTHER", "valueFrom": {} },
            ],
        });
        for (flag, variable, expected) in [
            ("--leader-elect", "LEADER_ELECT", Some("--leader-elect=false")),
            ("--shards", "SHARDS", Some("SHARDS=64")),
            ("--empty", "EMPTY", None),
            ("--other", "OTHER", Some("OTHER=…")),
            ("--none", "NONE", None),
        ] {
            assert_eq!(
                find_setting(&container, flag, variable).as_deref(),
                expected,
                "{flag}"
            );
        }
    }
}
