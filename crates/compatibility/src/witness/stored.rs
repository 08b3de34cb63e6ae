//! Validates stored objects against a new CRD.

use std::collections::BTreeMap;

use rbuilder_judge::{Body, Definition, Failure, FieldValidation, Judge};
use rbuilder_kubernetes::gvk;
use serde_json::{Value, json};

/// The effect of a new CRD on a stored object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredVerdict {
    /// Messages with which the API server would reject recreating the object.
    pub refused: Vec<String>,
    /// Whether the API server also rejects updates that leave the invalid fields unchanged. If so,
    /// the operator can't even set a label or a finalizer.
    pub blocks_updates: bool,
    /// Paths of fields that the API server prunes when reading the object.
    pub pruned: Vec<String>,
}

impl StoredVerdict {
    /// Returns true if the object is unaffected.
    pub fn is_fine(&self) -> bool {
        *self == StoredVerdict::default()
    }
}

/// Validates the stored objects of a kind against a new CRD.
#[derive(Debug)]
pub struct StoredJudge {
    /// By `apiVersion`: one judge for updates, and one for creating objects including their status.
    judges: BTreeMap<String, (Judge, Judge)>,
}

impl StoredJudge {
    /// Prepares the served versions of a CRD.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the CRD can't be read.
    pub fn new(crd: &Value) -> Result<StoredJudge, String> {
        let judges = Definition::of_crd(crd)?.into_iter().map(|definition| {
            let version = gvk::api_version(&definition.group, &definition.version);
            let whole = Definition {
                has_status: false,
                ..definition.clone()
            };
            (version, (Judge::new(definition), Judge::new(whole)))
        });
        Ok(StoredJudge {
            judges: judges.collect(),
        })
    }

    /// Validates an object as returned by a cluster. Returns `None` if its version isn't served.
    pub fn judge(&self, object: &Value) -> Option<StoredVerdict> {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (updates, creates) = self.judges.get(version)?;
        let mut object = object.clone();
        remove_metadata(&mut object, &["managedFields"]);
        let mut verdict = StoredVerdict::default();
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let mut body = object.clone();
        remove_metadata(&mut body, ONLY_STORED);
        let body = Body::from(body);
        match creates.create(&body, &namespace, FieldValidation::Strict).result {
            Ok(_) => {}
            Err(Failure::Malformed { problems, .. }) if !problems.is_empty() => {
                let unknown = problems.iter().filter_map(|problem| problem.split('"').nth(1));
                verdict.pruned.extend(unknown.map(str::to_owned));
                let again = creates.create(&body, &namespace, FieldValidation::Ignore);
                verdict
                    .refused
                    .extend(again.result.err().iter().flat_map(messages));
            }
            Err(failure) => verdict.refused.extend(messages(&failure)),
        }
        let mut changed = object.clone();
        changed["metadata"]["labels"]["changed"] = json!("true");
        let updated = updates.update(&Body::from(changed), &object, FieldValidation::Ignore);
        verdict.blocks_updates = updated.result.is_err();
        Some(verdict)
    }
}

const ONLY_STORED: &[&str] = &[
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
];

fn remove_metadata(object: &mut Value, names: &[&str]) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| !names.contains(&name.as_str()));
    }
}

fn messages(failure: &Failure) -> Vec<String> {
    match failure {
        Failure::Invalid { errors, .. } => errors.iter().map(ToString::to_string).collect(),
        failure => vec![failure.message()],
    }
}
