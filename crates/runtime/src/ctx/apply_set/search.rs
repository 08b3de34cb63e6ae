//! Finds the objects of sets whose record was lost.
//!
//! A record is lost if somebody replaces the owner as a whole, e.g. with `kubectl replace` or from a
//! backup. The objects are then found by their labels. Since any version of the operator may have
//! added objects of any kind, we have to list all of them. It would be too expensive to do this for
//! each owner, so one search finds the objects of all owners, and its result is used for a while.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::core::ObjectMeta;
use tokio::time::Instant;

use super::claim::{SetOwner, owner_uid_in, records_in_labels};
use super::containers::{Deletable, discover, is_unlistable, list};
use super::record::{Entry, Recorded};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::hash::{HashMap, HashSet};

/// How long the result of a search is used for other owners.
const VALID: Duration = Duration::from_secs(60);
/// Owners that were created within this time before their first set can't have lost a record.
const NEW: Duration = Duration::from_secs(60);

/// Searches of a controller.
#[derive(Default)]
pub(in crate::ctx) struct Searches {
    /// Held during a search, so there's only one at a time.
    search: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the last search began. `None` if it is no longer valid.
    began: Option<Instant>,
    found: Option<Arc<Found>>,
    /// UIDs of owners whose records have changed since the search began.
    outdated: HashSet<String>,
}

/// Objects by the UIDs of their owners, oldest first.
type Found = HashMap<String, Vec<Recorded>>;

impl Searches {
    /// Must be called before objects are added to the set of an owner.
    pub(super) fn record_change(&self, owner_uid: &str) {
        let mut state = self.lock();
        match state.began {
            Some(began) if began.elapsed() < VALID => drop(state.outdated.insert(owner_uid.to_owned())),
            Some(_) => *state = State::default(),
            None => {}
        }
    }

    fn find(&self, owner_uid: &str) -> Option<Arc<Found>> {
        let state = self.lock();
        let is_valid = state.began.is_some_and(|began| began.elapsed() < VALID);
        let found = state.found.as_ref()?;
        (is_valid && !state.outdated.contains(owner_uid)).then(|| Arc::clone(found))
    }

    fn begin(&self) {
        *self.lock() = State {
            began: Some(Instant::now()),
            ..State::default()
        };
    }

    fn finish(&self, found: &Arc<Found>) {
        self.lock().found = Some(Arc::clone(found));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if the owner is old enough to have lost a record. Owners usually get one within a
/// moment, and nobody replaces an object in the same moment without a change of its generation.
pub(super) fn may_have_lost_record(owner: &ObjectMeta) -> bool {
    let is_old = |created: &k8s_openapi::jiff::Timestamp| {
        crate::clock::now().duration_since(*created).unsigned_abs() > NEW
    };
    owner.generation.is_some_and(|generation| generation > 1)
        || owner
            .creation_timestamp
            .as_ref()
            .is_some_and(|created| is_old(&created.0))
}

impl<S> Ctx<S> {
    /// Returns the objects of an owner's set according to their labels, oldest first.
    pub(super) async fn find_by_labels(&self, owner: &SetOwner) -> Result<Vec<Recorded>, Error> {
        let searches = &self.shared.searches;
        let _single = searches.search.lock().await;
        let found = match searches.find(&owner.uid) {
            Some(found) => found,
            None => {
                searches.begin();
                let found = Arc::new(self.search(owner).await?);
                searches.finish(&found);
                found
            }
        };
        let found = found.get(&owner.uid).cloned().unwrap_or_default();
        let objects = found.len();
        tracing::info!(
            owner = owner.described,
            objects,
            "no record of a set, looked up its objects by their labels"
        );
        Ok(found)
    }

    async fn search(&self, owner: &SetOwner) -> Result<Found, Error> {
        let mut found: HashMap<String, Vec<(ObjectMeta, Recorded)>> = HashMap::default();
        for Deletable {
            resource,
            is_namespaced,
        } in discover(self.client()).await?
        {
            let namespaces = self.shared.caches.namespaces();
            for record in owner.records() {
                let mut listed = list(self.client(), &resource, None, record).await;
                // The role may only allow the namespaces that the manager watches.
                if is_namespaced && listed.as_ref().is_err_and(is_unlistable) {
                    for namespace in namespaces {
                        let more = list(self.client(), &resource, Some(namespace), record).await;
                        listed = match (listed, more) {
                            (Ok(listed), Ok(more)) => Ok([listed, more].concat()),
                            (Ok(listed), Err(_)) => Ok(listed),
                            (Err(_), more) => more,
                        };
                    }
                }
                match listed {
                    Ok(listed) => {
                        for (entry, meta) in listed {
                            if let Some((uid, object)) = to_member(owner, entry, &meta, record) {
                                found.entry(uid).or_default().push((meta, object));
                            }
                        }
                    }
                    Err(error) if is_unlistable(&error) => {
                        let kind = &resource.kind;
                        tracing::debug!(kind, %error, "cannot look for objects of sets");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let in_order = |(uid, mut objects): (String, Vec<(ObjectMeta, Recorded)>)| {
            objects.sort_by_key(|(meta, _)| meta.creation_timestamp.as_ref().map(|created| created.0));
            (uid, objects.into_iter().map(|(_, object)| object).collect())
        };
        Ok(found.into_iter().map(in_order).collect())
    }
}

/// Returns the UID of the owner, and the object. `None` if the label was copied from another object,
/// or if the object is in the set of another controller as well: nobody can tell which of them
/// released it.
fn to_member(owner: &SetOwner, entry: Entry, meta: &ObjectMeta, record: &str) -> Option<(String, Recorded)> {
    let label = meta.labels.as_ref()?.get(record)?;
    let uid = owner_uid_in(label, &entry)?.to_owned();
    let is_ours = |name: &String| owner.records().any(|record| record == name);
    let mut records = records_in_labels(meta);
    records
        .all(|(name, label)| is_ours(name) || owner_uid_in(label, &entry).is_none())
        .then(|| (uid, Recorded::new(entry, meta.uid.clone())))
}
