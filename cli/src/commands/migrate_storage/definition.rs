//! A CRD in the cluster, with the record of an unfinished migration.
//!
//! # The record
//!
//! There is no way to find out in which version an object is stored. But each write increases its
//! resource version, and from some point on, all writes use the new storage version. The record
//! contains this point, along with the generation of the CRD. If an earlier run left a record, only
//! objects whose resource version isn't greater have to be written.
//!
//! The record is an annotation of the CRD. So it survives a crash of the process or the machine,
//! requires no permissions beyond those for the CRD, and is deleted along with the CRD. A list of
//! finished objects would have to be updated after every object, and a continue token expires after
//! a few minutes.

use anyhow::{Context as _, Result, bail};
use rbuilder_kubernetes::crd::Crd;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::keys::Key;
use super::requests::{JSON, Requests};
use crate::cluster::{Body, Refusal, encode};

const RECORD: &str = "rbuilder.dev/storage-migration";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Maximum attempts to modify a CRD whose status is modified concurrently.
const ATTEMPTS: usize = 5;

#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) uid: String,
    /// Changes whenever the spec does.
    pub(super) generation: i64,
    resource_version: String,
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) storage: String,
    served: Vec<String>,
    pub(super) stored: Vec<String>,
    has_annotation: bool,
    record: Option<Record>,
}

/// The point up to which objects may be stored in an old version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    /// UID of the CRD. A restored or copied CRD has the same annotations but other objects.
    uid: String,
    generation: i64,
    /// Objects with a greater resource version are stored in the storage version.
    since: String,
}

impl Definition {
    pub(super) fn read(requests: &Requests<'_>, name: &str) -> Result<Option<Definition>> {
        let answer = requests.send("GET", &path(name), JSON, Body::None)?;
        match answer.read::<Value>() {
            Ok(crd) => Definition::parse(&crd).map(Some),
            Err(Refusal { status: 404, .. }) => Ok(None),
            Err(refusal) => bail!("cannot read the CRD: {}", refusal.message),
        }
    }

    fn parse(crd: &Value) -> Result<Definition> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (metadata, crd) = (&crd["metadata"], Crd::of(crd));
        let storage = crd.storage().context("the CRD has no storage version")?;
        let stored = crd.stored_versions().unwrap_or_default();
        let annotation = metadata["annotations"][RECORD].as_str();
        Ok(Definition {
            name: crd.name().to_owned(),
            uid: text(&metadata["uid"]),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            resource_version: text(&metadata["resourceVersion"]),
            group: crd.group().to_owned(),
            plural: crd.plural().to_owned(),
            storage: storage.name.to_owned(),
            served: crd.served().map(|version| version.name.to_owned()).collect(),
            stored: stored.into_iter().map(str::to_owned).collect(),
            has_annotation: annotation.is_some(),
            // The user may have edited the annotation.
            record: annotation.and_then(|record| serde_json::from_str(record).ok()),
        })
    }

    pub(super) fn is_migrated(&self) -> bool {
        self.stored == [self.storage.as_str()]
    }

    pub(super) fn is_storage_served(&self) -> bool {
        self.served.contains(&self.storage)
    }

    /// All served versions, starting with the storage version if it is served.
    pub(super) fn served_versions(&self) -> Vec<&str> {
        let mut versions: Vec<&str> = self.served.iter().map(String::as_str).collect();
        versions.sort_by_key(|version| *version != self.storage);
        versions
    }

    pub(super) fn collection(&self, version: &str) -> String {
        let [group, version, plural] = [&self.group, version, &self.plural].map(encode);
        format!("/apis/{group}/{version}/{plural}")
    }

    pub(super) fn object(&self, key: &Key) -> String {
        let [group, version, plural, name] =
            [&self.group, &self.storage, &self.plural, &key.name].map(|part| encode(part));
        match &key.namespace {
            Some(namespace) => format!(
                "/apis/{group}/{version}/namespaces/{}/{plural}/{name}",
                encode(namespace)
            ),
            None => format!("/apis/{group}/{version}/{plural}/{name}"),
        }
    }

    /// Resource version recorded by an earlier run. `None` if the CRD was changed since.
    pub(super) fn recorded(&self) -> Option<&str> {
        let record = self.record.as_ref()?;
        let is_valid = record.uid == self.uid && record.generation == self.generation;
        is_valid.then_some(record.since.as_str())
    }

    /// Records that objects with a resource version greater than `since` are stored in the storage
    /// version. Fails if the CRD was modified or deleted.
    pub(super) fn record(&self, requests: &Requests<'_>, since: &str) -> Result<()> {
        let record = json!({ "uid": self.uid, "generation": self.generation, "since": since });
        self.change(
            requests,
            "",
            &|_| json!({ "metadata": { "annotations": { RECORD: record.to_string() } } }),
        )?;
        Ok(())
    }

    /// Sets the stored versions to just the storage version and removes the record. Returns the
    /// updated CRD. Fails if the CRD was modified or deleted.
    pub(super) fn trim(&self, requests: &Requests<'_>) -> Result<Definition> {
        let trimmed = self.change(requests, "/status", &|now| match now.is_migrated() {
            // Already done by the cluster.
            true => Value::Null,
            false => json!({ "status": { "storedVersions": [now.storage] } }),
        })?;
        trimmed.forget(requests)?;
        Ok(trimmed)
    }

    pub(super) fn forget(&self, requests: &Requests<'_>) -> Result<()> {
        self.change(requests, "", &|now| match now.has_annotation {
            true => json!({ "metadata": { "annotations": { RECORD: null } } }),
            false => Value::Null,
        })?;
        Ok(())
    }

    /// Patches the CRD, unless its spec has changed. `make` returns the patch for the current
    /// state, or null for a no-op. Returns the updated CRD.
    fn change(
        &self,
        requests: &Requests<'_>,
        subresource: &str,
        make: &dyn Fn(&Definition) -> Value,
    ) -> Result<Definition> {
        for _ in 0..ATTEMPTS {
            let Some(now) = Definition::read(requests, &self.name)? else {
                bail!("the CRD was deleted meanwhile");
            };
            if (&now.uid, now.generation) != (&self.uid, self.generation) {
                bail!(
                    "the CRD was changed meanwhile, and objects may have been stored in another version: run the command again"
                );
            }
            let mut patch = make(&now);
            if patch.is_null() {
                return Ok(now);
            }
            // Optimistic locking: the patch fails if the CRD was modified concurrently.
            patch["metadata"]["resourceVersion"] = json!(now.resource_version);
            let path = format!("{}{subresource}?fieldManager=rbuilder", path(&self.name));
            let answer = requests.send("PATCH", &path, JSON, Body::MergePatch(&patch.to_string()))?;
            match answer.read::<Value>() {
                Ok(crd) => return Definition::parse(&crd),
                Err(Refusal { status: 409, .. }) => {}
                Err(refusal) => bail!("cannot change the CRD: {}", refusal.message),
            }
        }
        bail!("cannot change the CRD, because others change it all the time: run the command again")
    }
}

fn path(name: &str) -> String {
    format!("{DEFINITIONS}/{}", encode(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(annotation: &str) -> Value {
        json!({
            "metadata": {
                "name": "cups.example.com", "uid": "u", "generation": 3, "resourceVersion": "90",
                "annotations": { RECORD: annotation },
            },
            "spec": {
                "group": "example.com",
                "names": { "plural": "cups" },
                "versions": [
                    { "name": "v1", "served": true, "storage": false },
                    { "name": "v2", "served": true, "storage": true },
                    { "name": "v0", "served": false, "storage": false },
                ],
            },
            "status": { "storedVersions": ["v1", "v2"] },
        })
    }

    #[test]
    fn record_of_another_state_is_ignored() {
        for (annotation, expected) in [
            (r#"{"uid":"u","generation":3,"since":"77"}"#, Some("77")),
            (r#"{"uid":"u","generation":2,"since":"77"}"#, None),
            (r#"{"uid":"v","generation":3,"since":"77"}"#, None),
            (r#"{"uid":"u","generation":3}"#, None),
            ("", None),
        ] {
            let definition = Definition::parse(&crd(annotation)).expect("a CRD");
            assert_eq!(definition.recorded(), expected, "{annotation}");
        }
    }

    #[test]
    fn storage_version_is_read_first() {
        let definition = Definition::parse(&crd("")).expect("a CRD");
        assert_eq!(definition.served_versions(), ["v2", "v1"]);
        assert!(!definition.is_migrated());
        let key = Key {
            namespace: Some("team a".to_owned()),
            name: "x/y".to_owned(),
        };
        assert_eq!(
            definition.object(&key),
            "/apis/example.com/v2/namespaces/team%20a/cups/x%2Fy"
        );
    }
}
