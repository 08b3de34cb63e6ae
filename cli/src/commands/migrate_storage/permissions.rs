//! Checks the required permissions before a migration. Without them, the request for every single
//! object would be rejected.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::definition::Definition;
use super::requests::{JSON, Requests};
use crate::cluster::Body;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

struct Permission<'a> {
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
    verb: &'a str,
}

impl Permission<'_> {
    fn as_rule(&self) -> String {
        let resource = match self.subresource {
            "" => self.resource.to_owned(),
            subresource => format!("{}/{subresource}", self.resource),
        };
        format!(
            "  - apiGroups: [\"{}\"]\n    resources: [\"{resource}\"]\n    verbs: [\"{}\"]",
            self.group, self.verb
        )
    }
}

/// Checks that the user has all required permissions. The error contains the missing rules. A
/// permission is assumed if the server can't tell.
pub(super) fn check(requests: &Requests<'_>, definition: &Definition, is_dry_run: bool) -> Result<()> {
    let group = definition.group.as_str();
    let mut needed = vec![
        (group, definition.plural.as_str(), "", "list"),
        (group, definition.plural.as_str(), "", "patch"),
    ];
    if !is_dry_run {
        let definitions = ("apiextensions.k8s.io", "customresourcedefinitions");
        needed.push((definitions.0, definitions.1, "", "patch"));
        needed.push((definitions.0, definitions.1, "status", "patch"));
    }
    let mut missing = Vec::new();
    for (group, resource, subresource, verb) in needed {
        let permission = Permission {
            group,
            resource,
            subresource,
            verb,
        };
        if !is_allowed(requests, &permission)? {
            missing.push(permission.as_rule());
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => bail!(
            "you lack permissions; ask for a ClusterRole with these rules, bound for the whole cluster:\n{}",
            missing.join("\n")
        ),
    }
}

fn is_allowed(requests: &Requests<'_>, permission: &Permission<'_>) -> Result<bool> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "group": permission.group,
            "resource": permission.resource,
            "subresource": permission.subresource,
            "verb": permission.verb,
        } },
    });
    let answer = requests.send("POST", REVIEWS, JSON, Body::Json(&review.to_string()))?;
    let answer = answer.read::<Value>();
    Ok(answer.map_or(true, |answer| answer["status"]["allowed"] != false))
}
