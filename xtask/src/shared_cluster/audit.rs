//! Reads the audit log of kube-apiserver, and determines who owns the objects that were written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::value::text;

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

const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

pub(super) struct AuditLog {
    policy: PathBuf,
    log: PathBuf,
}

impl AuditLog {
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
        let events = text.lines().map(serde_json::from_str);
        let events: Vec<Write> = events
            .collect::<Result<_, _>>()
            .context("the audit log is not JSON")?;
        let is_own = |write: &Write| write.is_accepted() && write.impersonated_user.username == user;
        Ok(events.into_iter().filter(is_own).collect())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Write {
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user_agent: String,
    impersonated_user: User,
    response_status: Status,
    object_ref: ObjectRef,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    code: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    #[serde(flatten)]
    id: ObjectId,
}

impl Write {
    fn is_accepted(&self) -> bool {
        WRITES.contains(&self.verb.as_str())
            && self.response_status.code.is_some_and(|code| code < 300)
            && !self.request_uri.contains("dryRun=All")
    }
}

impl fmt::Display for Write {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {:?} by {}",
            self.verb, self.object_ref.id, self.user_agent
        )
    }
}

/// The fields that identify an object in the audit log.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(default)]
struct ObjectId {
    resource: String,
    namespace: String,
    name: String,
}

pub(super) struct OwnObjects {
    /// API group of the project. Every custom resource in this group belongs to the project.
    group: &'static str,
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
            let kind = text(object, "/kind");
            let resource = self.resources.get(kind);
            let resource = resource.with_context(|| format!("the server does not know the kind {kind}"))?;
            let name = text(object, "/metadata/name");
            let own = match kind {
                // There are two names in the audit log, but not if it's a namespace that is
                // created.
                "Namespace" => name,
                _ => text(object, "/metadata/namespace"),
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
        let written: BTreeSet<_> = writes.iter().map(|write| name(&write.object_ref.id)).collect();
        let missing = self.objects.iter().find(|id| !written.contains(&name(id)));
        ensure!(missing.is_none(), "the audit log has no write of {missing:?}");
        Ok(())
    }

    fn contains(&self, write: &Write) -> bool {
        let is_release =
            write.object_ref.id.resource == "secrets" && write.object_ref.id.name.starts_with(self.releases);
        write.object_ref.api_group == self.group || is_release || self.objects.contains(&write.object_ref.id)
    }
}
