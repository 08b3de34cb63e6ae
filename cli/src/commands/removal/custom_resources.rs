//! Deletes the custom resources of CRDs, and waits for their finalizers.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use rbuilder_kubernetes::crd::Crd;
use rbuilder_kubernetes::gvk;
use serde_json::Value;

use super::join_first;
use crate::cluster::{Kubectl, describe, qualified_name};
use crate::count::counted;
use crate::shell::Shell;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval after which unchanged remaining objects are printed again.
const REMIND_AFTER: Duration = Duration::from_secs(15);
const NAMED: usize = 5;

/// Deletes all objects of the given CRDs, and waits until they are gone. After `timeout`, fails
/// with the finalizers of the remaining objects.
pub(super) fn delete_all(
    kubectl: &Kubectl,
    crds: &[Value],
    timeout: Duration,
    shell: &mut Shell,
) -> Result<()> {
    let resources = find_served(kubectl, crds)?;
    let deadline = Instant::now() + timeout;
    let mut progress = Progress::default();
    loop {
        let mut left = Vec::new();
        for resource in &resources {
            let objects = list(kubectl, resource)?;
            let is_terminating = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
            // New objects may have been created since the last list.
            if !objects.iter().all(is_terminating) {
                request_deletion(kubectl, resource, &objects, shell)?;
            }
            left.extend(objects);
        }
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!(describe_timeout(&left, timeout));
        }
        progress.show(&left, shell);
        std::thread::sleep(POLL_INTERVAL.min(timeout));
    }
}

struct Resource {
    /// Name of the CRD, i.e. `<plural>.<group>`.
    name: String,
    /// Resource in kubectl's notation, in the storage version. Other versions can't be read without
    /// the manager if its webhook converts them.
    stored: String,
}

impl Resource {
    fn of(crd: &Value) -> Option<Resource> {
        let name = crd["metadata"]["name"].as_str()?.to_owned();
        let stored = Crd::of(crd).storage().filter(|version| version.is_served);
        let stored = match (stored, name.split_once('.')) {
            (Some(stored), Some((plural, group))) => format!("{plural}.{}.{group}", stored.name),
            _ => name.clone(),
        };
        Some(Resource { name, stored })
    }
}

fn find_served(kubectl: &Kubectl, crds: &[Value]) -> Result<Vec<Resource>> {
    let names = crds.iter().filter_map(|crd| crd["metadata"]["name"].as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let present = kubectl.list(&[&["customresourcedefinitions"][..], &names].concat())?;
    let present = present.iter().filter_map(Resource::of);
    Ok(present
        .filter(|resource| names.contains(&resource.name.as_str()))
        .collect())
}

fn list(kubectl: &Kubectl, resource: &Resource) -> Result<Vec<Value>> {
    kubectl.list(&[&resource.stored, "--all-namespaces"])
}

fn request_deletion(
    kubectl: &Kubectl,
    resource: &Resource,
    objects: &[Value],
    shell: &mut Shell,
) -> Result<()> {
    shell.note(&format!("deleting {} {}\n", objects.len(), resource.name));
    let all = [
        "delete",
        &resource.stored,
        "--all",
        "--all-namespaces",
        // We wait ourselves, so that we can print what is left.
        "--wait=false",
    ];
    let deleted = kubectl.read(&all, "");
    deleted.map(drop).map_err(|error| explain_refusal(kubectl, error))
}

/// Adds advice to an error from a webhook that does not answer, e.g. because its manager has crashed.
fn explain_refusal(kubectl: &Kubectl, error: anyhow::Error) -> anyhow::Error {
    let said = error.to_string();
    let Some(webhook) = find_unanswered(&said) else {
        return error;
    };
    let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    // The advice is complete enough without the name.
    let configurations = kubectl.list(&[kinds]).unwrap_or_default();
    let has_it = |configuration: &&Value| {
        let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
        webhooks.into_iter().any(|found| found["name"] == webhook)
    };
    let configuration = configurations.iter().find(has_it).map_or_else(
        || "the configuration that names it".to_owned(),
        |found| {
            let kind = found["kind"].as_str().unwrap_or_default().to_lowercase();
            format!("`kubectl delete {kind} {}`", qualified_name(found))
        },
    );
    anyhow!(
        "{said}\n  \
         = help: the API server asks the manager before it deletes these objects: start a manager that answers, and run \
         this command again\n  \
         = help: to delete them without asking, delete the webhook configuration first: {configuration}"
    )
}

/// Returns the name of the webhook in the API server's message about a call without an answer.
fn find_unanswered(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("failed calling webhook \"")?;
    Some(rest.split_once('"')?.0)
}

/// The last message about the remaining objects.
#[derive(Default)]
struct Progress {
    last: Option<(String, Instant)>,
}

impl Progress {
    fn show(&mut self, left: &[Value], shell: &mut Shell) {
        let text = format!(
            "waiting for {} to end: {}\n",
            counted(left.len(), "object"),
            describe_left(left)
        );
        let is_known = |(last, at): &(String, Instant)| *last == text && at.elapsed() < REMIND_AFTER;
        if !self.last.as_ref().is_some_and(is_known) {
            shell.note(&text);
            self.last = Some((text, Instant::now()));
        }
    }
}

fn describe_left(left: &[Value]) -> String {
    let words: Vec<String> = left
        .iter()
        .map(|object| {
            let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
            let finalizers: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
            match finalizers.is_empty() {
                true => describe(object),
                false => format!("{} (finalizer {})", describe(object), finalizers.join(", ")),
            }
        })
        .collect();
    join_first(&words, NAMED)
}

fn describe_timeout(left: &[Value], timeout: Duration) -> String {
    let example = &left[0];
    let namespace = match example["metadata"]["namespace"].as_str() {
        Some(namespace) => format!(" --namespace {namespace}"),
        None => String::new(),
    };
    let (name, kind) = (&example["metadata"]["name"], &example["kind"]);
    let resource = gvk::argument(
        &kind.as_str().unwrap_or_default().to_lowercase(),
        example["apiVersion"].as_str().unwrap_or_default(),
    );
    format!(
        "{} did not end within {} s: {}; the manager and the CRDs were not deleted\n  \
         = help: the manager removes its finalizers: see why it does not in its log, then run this command again \
         (`--timeout` sets the time)\n  \
         = help: to delete {} without its clean-up, run `kubectl patch {resource}{namespace} {} --type merge \
         --patch '{{\"metadata\":{{\"finalizers\":null}}}}'`",
        counted(left.len(), "object"),
        timeout.as_secs(),
        describe_left(left),
        qualified_name(example),
        name.as_str().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cup(name: &str, finalizers: &[&str]) -> Value {
        json!({
            "apiVersion": "cafe.example.com/v1",
            "kind": "Cup",
            "metadata": { "name": name, "namespace": "team", "finalizers": finalizers },
        })
    }

    #[test]
    fn objects_are_read_in_their_stored_version() {
        let check = |versions: Value, expected: &str| {
            let crd =
                json!({ "metadata": { "name": "cups.cafe.example.com" }, "spec": { "versions": versions } });
            let resource = Resource::of(&crd).expect("a resource");
            assert_eq!(resource.stored, expected, "{crd}");
        };
        let version = |name: &str, is_served: bool, is_stored: bool| json!({ "name": name, "served": is_served, "storage": is_stored });
        check(
            json!([version("v2", true, false), version("v1", true, true)]),
            "cups.v1.cafe.example.com",
        );
        check(
            json!([version("v2", true, false), version("v1", false, true)]),
            "cups.cafe.example.com",
        );
        check(Value::Null, "cups.cafe.example.com");
    }

    #[test]
    fn message_names_finalizers() {
        let left = [cup("a", &["cafe.example.com/clean-up"]), cup("b", &[])];
        assert_eq!(
            describe_left(&left),
            "Cup team/a (finalizer cafe.example.com/clean-up), Cup team/b"
        );
    }

    #[test]
    fn timeout_error_tells_how_to_give_up() {
        let text = describe_timeout(
            &[cup("a", &["cafe.example.com/clean-up"])],
            Duration::from_secs(7),
        );
        assert!(
            text.starts_with("1 object did not end within 7 s: Cup team/a (finalizer "),
            "{text}"
        );
        assert!(
            text.ends_with(
                "`kubectl patch cup.v1.cafe.example.com --namespace team a --type merge \
                 --patch '{\"metadata\":{\"finalizers\":null}}'`"
            ),
            "{text}"
        );
    }
}
