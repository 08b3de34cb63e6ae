//! Reads the audit log of kube-apiserver, and determines who owns the objects that were written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The audit policy. We record all writes, but we don't need their bodies.
const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
";

/// All verbs that can change an object.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Paths of an audit log and its policy.
pub(super) struct AuditLog {
    policy: PathBuf,
    log: PathBuf,
}

impl AuditLog {
    /// Writes the policy to a file in `folder`.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let policy = folder.join("audit-policy.yaml");
        fs_err::write(&policy, POLICY)?;
        Ok(Self {
            policy,
            log: folder.join("audit.log"),
        })
    }

    /// Returns the arguments of kube-apiserver that enable the log.
    pub(super) fn arguments(&self) -> [String; 2] {
        [
            format!("--audit-policy-file={}", self.policy.display()),
            format!("--audit-log-path={}", self.log.display()),
        ]
    }

    /// Returns all writes of a user. This doesn't include dry runs, or writes which were rejected.
    pub(super) fn read_writes(&self, user: &str) -> Result<Vec<Write>> {
        let text = fs_err::read_to_string(&self.log)?;
        let mut writes = Vec::new();
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).context("a line of the audit log is not JSON")?;
            if is_write(&event) && event["impersonatedUser"]["username"] == user {
                writes.push(Write::of(&event));
            }
        }
        Ok(writes)
    }
}

fn is_write(event: &Value) -> bool {
    let verb = event["verb"].as_str().unwrap_or_default();
    let is_accepted = event["responseStatus"]["code"]
        .as_u64()
        .is_some_and(|code| code < 300);
    let uri = event["requestURI"].as_str().unwrap_or_default();
    WRITES.contains(&verb) && is_accepted && !uri.contains("dryRun=All")
}

/// A write to an object. If one of the names doesn't apply, it is empty.
pub(super) struct Write {
    verb: String,
    group: String,
    object: ObjectId,
    agent: String,
}

impl Write {
    fn of(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let reference = &event["objectRef"];
        Self {
            verb: text(&event["verb"]),
            group: text(&reference["apiGroup"]),
            object: ObjectId {
                resource: text(&reference["resource"]),
                namespace: text(&reference["namespace"]),
                name: text(&reference["name"]),
            },
            agent: text(&event["userAgent"]),
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectId {
            resource,
            namespace,
            name,
        } = &self.object;
        write!(
            formatter,
            "{} {resource} {namespace}/{name} by {}",
            self.verb, self.agent
        )
    }
}

/// The fields that identify an object in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ObjectId {
    resource: String,
    namespace: String,
    name: String,
}

/// All objects which belong to a project.
pub(super) struct OwnObjects {
    /// API group of the project. Every custom resource in this group belongs to the project.
    group: &'static str,
    /// Maps each kind to the name of its resource.
    resources: BTreeMap<String, String>,
    objects: BTreeSet<ObjectId>,
    /// Helm stores its releases in Secrets. Their names start with this.
    releases: &'static str,
}

impl OwnObjects {
    /// Returns a set without objects. For `resources`, use the output of
    /// `kubectl api-resources --no-headers`.
    pub(super) fn new(group: &'static str, releases: &'static str, resources: &str) -> Self {
        let pair = |line: &str| {
            let mut words = line.split_whitespace();
            let resource = words.next()?.to_owned();
            Some((words.last()?.to_owned(), resource))
        };
        Self {
            group,
            resources: resources.lines().filter_map(pair).collect(),
            objects: BTreeSet::new(),
            releases,
        }
    }

    /// Adds objects that were rendered. If they don't have a namespace, they are created in
    /// `namespace`.
    pub(super) fn add<'a>(
        &mut self,
        objects: impl IntoIterator<Item = &'a Value>,
        namespace: &str,
    ) -> Result<()> {
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default();
            let resource = self.resources.get(kind);
            let resource = resource.with_context(|| format!("the server does not know the kind {kind}"))?;
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().unwrap_or_default();
            let own = match kind {
                // There are two names in the audit log, but not if it's a namespace that is
                // created.
                "Namespace" => name,
                _ => metadata["namespace"].as_str().unwrap_or_default(),
            };
            for namespace in [own, namespace, ""] {
                self.objects.insert(ObjectId {
                    resource: resource.clone(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Checks that nothing but these objects has been written.
    pub(super) fn check_foreign(&self, writes: &[Write]) -> Result<()> {
        let foreign: Vec<String> = writes
            .iter()
            .filter(|write| !self.contains(write))
            .map(Write::to_string)
            .collect();
        ensure!(
            foreign.is_empty(),
            "objects of others were written:\n{}",
            foreign.join("\n")
        );
        Ok(())
    }

    /// Checks that all these objects have been written. If not, there's something missing in the
    /// log.
    pub(super) fn check_complete(&self, writes: &[Write]) -> Result<()> {
        let name = |id: &ObjectId| [id.resource.clone(), id.name.clone()];
        let written: BTreeSet<_> = writes.iter().map(|write| name(&write.object)).collect();
        let missing = self.objects.iter().find(|id| !written.contains(&name(id)));
        ensure!(missing.is_none(), "the audit log has no write of {missing:?}");
        Ok(())
    }

    fn contains(&self, write: &Write) -> bool {
        let is_release = write.object.resource == "secrets" && write.object.name.starts_with(self.releases);
        write.group == self.group || is_release || self.objects.contains(&write.object)
    }
}
