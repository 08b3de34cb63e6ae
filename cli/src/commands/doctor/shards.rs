//! Checks a project's shards, i.e. the manager's deployment, and the API server's support for
//! shards.

use std::path::Path;

use rbuilder_products::replicas::{Replicas, read_replicas};
use serde_json::Value;

use super::Finding;
use crate::cluster::{ClusterChoice, Kubectl};
use crate::commands::find_kubectl;
use crate::commands::sharding::{SHARDING, check_arguments};
use crate::overlay::{DEPLOYMENT, Kustomization};
use crate::plan::Plan;
use crate::tree::Tree;

pub(super) const CHECK: &str = "shards";
/// Verbs on Leases that replicas with shards need.
const VERBS: [&str; 5] = ["list", "create", "update", "patch", "delete"];

/// First Kubernetes minor version whose API server supports shard selectors.
const FIRST_MINOR: u32 = 36;
/// Lists at most one object, with a shard selector that covers all objects.
const PROBE: &str = "/api/v1/namespaces?limit=1&shardSelector=shardRange(object.metadata.uid,%20%270x0000000000000000%27,%20%270x10000000000000000%27)";

/// Checks the manager's deployment. No finding if it has no shards.
pub(super) fn examine_replicas(tree: &Tree) -> Option<Finding> {
    let plan = Plan::default();
    let listed = tree.read(DEPLOYMENT).ok().flatten().unwrap_or_default();
    let kustomization = Kustomization::parse(DEPLOYMENT, &listed).unwrap_or_default();
    if kustomization.lists("components", SHARDING)
        && let Err(error) = check_arguments(&plan, tree)
    {
        let help = "add the argument; without it, kustomize fails";
        return Some(Finding::error(CHECK, format!("{error:#}"), help));
    }
    // If `config/` can't be read, other checks report why.
    let replicas = read_replicas(&plan, tree).ok()?;
    let shards = replicas.shards.as_deref()?;
    Some(judge(&replicas, shards))
}

fn judge(replicas: &Replicas, shards: &str) -> Finding {
    if let Some(leader) = &replicas.leader {
        return Finding::error(
            CHECK,
            format!("the manager has both `{leader}` and `{shards}`, with which it does not start"),
            format!("remove `{leader}`, or let `rbuilder edit --enable sharding` set what shards need"),
        );
    }
    let missing: Vec<&str> = VERBS
        .into_iter()
        .filter(|verb| !replicas.lease_verbs.contains(*verb))
        .collect();
    match &replicas.lease_namespace {
        Some(namespace) => Finding::good(
            CHECK,
            format!(
                "`{shards}`, with Leases in another namespace (`{namespace}`), whose roles were not checked"
            ),
        ),
        None if missing.is_empty() => Finding::good(CHECK, format!("`{shards}`: all replicas work")),
        None => Finding::error(
            CHECK,
            format!(
                "the manager has `{shards}`, but no role allows it to {} Leases in its namespace, so that no replica reconciles",
                missing.join(", ")
            ),
            "run `rbuilder edit --enable sharding`, or bind a Role like config/sharding/sharding_role.yaml",
        ),
    }
}

/// Checks whether the API server in the user's kubeconfig supports shard selectors.
pub(super) fn examine_cluster(dir: &Path) -> Finding {
    let unknown = |reason: String| {
        Finding::good(
            "cluster",
            format!("{reason}: not known whether its API server selects by shard"),
        )
    };
    let Ok(kubectl) = find_kubectl(dir, &ClusterChoice::default()) else {
        return unknown("kubectl was not found".to_owned());
    };
    match ask_version(&kubectl) {
        Err(error) => unknown(format!(
            "the cluster of the kubeconfig does not answer ({error:#})"
        )),
        Ok(version) => {
            let selects = kubectl
                .ask_cluster(&["get", "--raw", PROBE])
                .ok()
                .map(|list| has_shard_info(&list));
            Finding::good("cluster", describe_support(&version, selects))
        }
    }
}

fn ask_version(kubectl: &Kubectl) -> anyhow::Result<String> {
    let answer: Value = serde_json::from_str(&kubectl.ask_cluster(&["get", "--raw", "/version"])?)?;
    Ok(answer["gitVersion"].as_str().unwrap_or_default().to_owned())
}

fn has_shard_info(list: &str) -> bool {
    serde_json::from_str::<Value>(list).is_ok_and(|list| list["metadata"]["shardInfo"].is_object())
}

/// Describes an API server's support for replicas with shards. `selects` is `None` if the list
/// request was rejected.
fn describe_support(version: &str, selects: Option<bool>) -> String {
    const FILTERED: &str = "each replica receives all objects and drops those of the others";
    let minor: Option<u32> = version.split('.').nth(1).and_then(|minor| minor.parse().ok());
    match (minor, selects) {
        (_, Some(true)) => {
            format!(
                "Kubernetes {version} selects by shard: each replica receives its part of the objects only"
            )
        }
        (Some(minor), _) if minor < FIRST_MINOR => format!(
            "Kubernetes {version} does not select by shard, which is possible from 1.{FIRST_MINOR} on: {FILTERED}"
        ),
        (_, Some(false)) => format!(
            "Kubernetes {version} does not select by shard, unless kube-apiserver gets the feature gate ShardedListAndWatch (alpha): {FILTERED}"
        ),
        (_, None) => format!(
            "Kubernetes {version} selects by shard only if kube-apiserver has the feature gate ShardedListAndWatch (alpha); you may not list namespaces, which would tell"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn support_depends_on_the_answer_and_the_version() {
        for (version, selects, expected) in [
            (
                "v1.37.2",
                Some(true),
                "selects by shard: each replica receives its part",
            ),
            (
                "v1.37.2",
                Some(false),
                "unless kube-apiserver gets the feature gate",
            ),
            ("v1.36.0+k3s1", None, "you may not list namespaces"),
            ("v1.35.1", Some(false), "which is possible from 1.36 on"),
            ("v1.35.1", None, "which is possible from 1.36 on"),
            ("", Some(false), "does not select by shard"),
        ] {
            let text = describe_support(version, selects);
            assert!(text.contains(expected), "{version} {selects:?}: {text}");
        }
        assert!(has_shard_info(r#"{"metadata":{"shardInfo":{"selector":"…"}}}"#));
        assert!(!has_shard_info(r#"{"metadata":{}}"#) && !has_shard_info("Forbidden"));
    }

    #[test]
    fn leader_and_shards_exclude_each_other() {
        let replicas = |leader: Option<&str>, verbs: &[&str]| Replicas {
            leader: leader.map(str::to_owned),
            lease_verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..Replicas::default()
        };
        let found = judge(&replicas(Some("--leader-elect"), &VERBS), "--shards=auto");
        assert!(
            found
                .message
                .contains("both `--leader-elect` and `--shards=auto`"),
            "{found}"
        );
        let found = judge(&replicas(None, &["get", "create", "update"]), "--shards=auto");
        assert!(found.message.contains("to list, patch, delete Leases"), "{found}");
        assert_eq!(judge(&replicas(None, &VERBS), "--shards=auto").help, "");
    }
}
