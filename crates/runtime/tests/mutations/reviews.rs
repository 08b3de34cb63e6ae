//! Checks whether the server accepts roles and webhook configurations, and serves the resources in
//! them.

use serde_json::Value;

use super::corpus::GROUP;
use super::record::Verdict;
use super::server::{Answer, Served, Server};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// Resources that have permissions although they aren't served: group, resource and verbs.
const ASKED: &[(&str, &str, &[&str])] = &[
    ("", "users", &["impersonate"]),
    ("", "groups", &["impersonate"]),
    ("", "serviceaccounts", &["impersonate"]),
    ("authentication.k8s.io", "userextras/", &["impersonate"]),
    ("authentication.k8s.io", "uids", &["impersonate"]),
    ("certificates.k8s.io", "signers", &["approve", "sign", "attest"]),
    ("rbac.authorization.k8s.io", "clusterroles", &["bind", "escalate"]),
    ("rbac.authorization.k8s.io", "roles", &["bind", "escalate"]),
];

/// The verbs of requests for URLs.
const HTTP: &[&str] = &["get", "head", "post", "put", "patch", "delete", "options", "*"];

pub(crate) async fn roles(server: &Server, roles: &[Value]) -> Option<Verdict> {
    for role in roles {
        let collection = match role["metadata"]["namespace"].as_str() {
            Some(_) => format!("{ROLES}/namespaces/default/roles"),
            None => format!("{ROLES}/clusterroles"),
        };
        // kustomize replaces the namespace. This server only has `default`.
        let mut sent = role.clone();
        if role["metadata"]["namespace"].is_string() {
            sent["metadata"]["namespace"] = "default".into();
        }
        let answer = server.create(&collection, &sent, true).await;
        if let Some(verdict) = refused(&answer) {
            return Some(verdict);
        }
        for rule in role["rules"].as_array().into_iter().flatten() {
            if let Some(why) = idle_rule(server, rule) {
                return Some(Verdict::Idle(why));
            }
        }
    }
    (!roles.is_empty()).then_some(Verdict::Served)
}

fn refused(answer: &Answer) -> Option<Verdict> {
    if !answer.is_success() {
        return Some(Verdict::Refused(answer.reason()));
    }
    answer.warning().map(Verdict::Warned)
}

fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// Returns a value of the rule that matches no request, if any.
fn idle_rule(server: &Server, rule: &Value) -> Option<String> {
    let [groups, resources, verbs] = ["apiGroups", "resources", "verbs"].map(|key| texts(&rule[key]));
    if !texts(&rule["nonResourceURLs"]).is_empty() {
        let verb = verbs.iter().find(|verb| !HTTP.contains(verb))?;
        return Some(format!("no request for a URL has the verb `{verb}`"));
    }
    let served = |group: &str| server.resources.iter().any(|resource| resource.group == group);
    let is_foreign = |group: &str| is_domain(group) && !served(group);
    if let Some(group) = groups
        .iter()
        .find(|group| **group != "*" && !served(group) && !is_foreign(group))
    {
        return Some(format!("there is no group `{group}`"));
    }
    if groups.iter().any(|group| is_foreign(group)) {
        return None;
    }
    let found: Vec<(&str, Vec<&str>)> = resources
        .iter()
        .map(|resource| (*resource, verbs_of(server, &groups, resource)))
        .collect();
    if let Some((resource, _)) = found.iter().find(|(_, verbs)| verbs.is_empty()) {
        return Some(format!("there is no resource `{resource}` in these groups"));
    }
    let known = |verb: &str| {
        verb == "*"
            || found
                .iter()
                .any(|(_, verbs)| verbs.contains(&"*") || verbs.contains(&verb))
    };
    // Custom verbs are fine for custom kinds, which may have their own authorizer.
    let is_own = groups == [GROUP];
    let verb = verbs
        .iter()
        .find(|verb| !known(verb) && (!is_own || verb.is_empty()))?;
    Some(format!("nothing of this has the verb `{verb}`"))
}

fn is_domain(group: &str) -> bool {
    let labels = group.split('.').collect::<Vec<_>>();
    let is_label = |label: &&str| {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(letter)
    };
    labels.len() > 1 && labels.iter().all(is_label)
}

/// Returns the verbs of a resource in the given groups, which are empty if it doesn't exist.
fn verbs_of<'a>(server: &'a Server, groups: &[&str], resource: &str) -> Vec<&'a str> {
    if resource == "*" {
        return vec!["*"];
    }
    let in_groups = |group: &str| groups.contains(&"*") || groups.contains(&group);
    let matches = |served: &&Served| {
        in_groups(&served.group)
            && (served.name == resource
                || resource
                    .strip_prefix('*')
                    .is_some_and(|part| part.starts_with('/') && served.name.ends_with(part)))
    };
    let listed = server.resources.iter().filter(matches);
    let mut verbs: Vec<&str> = listed
        .flat_map(|served| served.verbs.iter().map(String::as_str))
        .collect();
    let asked = ASKED.iter().filter(|(group, name, _)| {
        in_groups(group) && (*name == resource || name.ends_with('/') && resource.starts_with(name))
    });
    verbs.extend(asked.flat_map(|(_, _, verbs)| *verbs));
    // There are no requests for this subresource, but an admission plugin checks the permission for
    // it before an owner's deletion can be blocked.
    if let Some(whole) = resource.strip_suffix("/finalizers")
        && server
            .resources
            .iter()
            .any(|served| in_groups(&served.group) && served.name == whole)
    {
        verbs.push("update");
    }
    verbs
}

pub(crate) async fn webhooks(server: &Server, configurations: &[Value]) -> Option<Verdict> {
    for configuration in configurations {
        let collection = match configuration["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => "mutatingwebhookconfigurations",
            _ => "validatingwebhookconfigurations",
        };
        let answer = server
            .create(&format!("{WEBHOOKS}/{collection}"), configuration, true)
            .await;
        if let Some(verdict) = refused(&answer) {
            return Some(verdict);
        }
        for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
            let rules = webhook["rules"].as_array().into_iter().flatten();
            for rule in rules {
                if let Some(why) = idle_webhook(server, rule) {
                    return Some(Verdict::Idle(why));
                }
            }
        }
    }
    (!configurations.is_empty()).then_some(Verdict::Served)
}

/// Returns a value of the rule that matches nothing, if any. There must be admission requests for
/// every resource, at least one of them with objects of the handler's kind.
fn idle_webhook(server: &Server, rule: &Value) -> Option<String> {
    let [groups, versions, resources] =
        ["apiGroups", "apiVersions", "resources"].map(|key| texts(&rule[key]));
    let fits = |words: &[&str], word: &str| words.contains(&"*") || words.contains(&word);
    let scope = rule["scope"].as_str().unwrap_or("*");
    let asked: Vec<&Served> = server
        .resources
        .iter()
        .filter(|served| fits(&groups, &served.group) && fits(&versions, &served.version))
        .filter(|served| match scope {
            "Namespaced" => served.namespaced,
            "Cluster" => !served.namespaced,
            _ => true,
        })
        .collect();
    if let Some(resource) = resources
        .iter()
        .find(|resource| !asked.iter().any(|served| covers(resource, &served.name)))
    {
        return Some(format!("nothing is asked about `{resource}`"));
    }
    let own = |served: &&&Served| served.group == GROUP && served.name.starts_with("samples");
    let is_asked = asked
        .iter()
        .filter(own)
        .any(|served| resources.iter().any(|resource| covers(resource, &served.name)));
    (!is_asked).then(|| "nothing is asked about the handler's kind".to_owned())
}

/// An item of `resources` matches a resource or a subresource.
fn covers(word: &str, name: &str) -> bool {
    let (resource, part) = name.split_once('/').unwrap_or((name, ""));
    match word.split_once('/') {
        None => part.is_empty() && (word == "*" || word == resource),
        Some((of, which)) => {
            (of == "*" || of == resource)
                && (which == "*" || which == part)
                && (which == "*" || !part.is_empty())
        }
    }
}
