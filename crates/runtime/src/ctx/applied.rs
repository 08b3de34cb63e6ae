//! Remembers the responses to applies, so that an apply that would change nothing is not sent.
//!
//! A reconcile applies all of its children each time, and usually they are as it left them. The API
//! server could find that out, but at the cost of a request for each child at each resync.
//! Therefore, each apply is remembered as a hash of its body, along with the resource version in
//! the response. The same apply is skipped while a cache shows the object at exactly this version:
//! nobody has changed it since, not even its status.
//!
//! | what happens | version in the cache | next apply |
//! |---|---|---|
//! | nothing | that of the response | skipped |
//! | somebody changes the object and changes it back | newer | sent |
//! | the body changes | that of the response | sent |
//! | the object is deleted | none | sent, which creates the object |
//! | a change has not reached the watch yet | that of the response | skipped; the change reconciles the owner once it is delivered |
//! | the process restarts | any | sent, because nothing is remembered |
//!
//! A skipped apply must still return the response, because controllers compute the owner's status
//! from it, as the scaffold does. If a cache keeps whole objects, the response is there. Otherwise,
//! as for kinds that a controller [owns](crate::Controller::owns), its JSON is stored here, as a
//! diff to the first response of its kind, up to a total limit. That takes about 150 bytes per
//! object; caching owned objects whole would take about 2000 bytes each, and reading the object
//! again would cost the request that was saved.
//!
//! The values of Secrets are never stored here: a memory dump of an operator should only contain
//! those that it caches or works with. Applies of Secrets are therefore always sent unless a cache
//! contains them.

use std::any::TypeId;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

use super::similar::Base;
use crate::object::{AnyObject, Key, Kind};

/// Approximate size in bytes of an entry without its response.
const ENTRY_BYTES: usize = 320;
/// Maximum size in bytes of the response that serves as the base for diffs of its kind.
const MAX_BASE: usize = 64 << 10;

/// The responses to the applies of one controller, as many as fit into the limit.
pub(super) struct AppliedObjects {
    /// Two hashers with random keys: with one, a hash collision would leave a change unsent.
    hashers: [RandomState; 2],
    /// Limit in bytes. When it is exceeded, the oldest responses are forgotten.
    limit: usize,
    answers: Mutex<Answers>,
}

/// Identifies an object across all kinds.
type ObjectId = (KindId, Key);

/// Identifies a kind by its Rust type. For kinds known only at run time, also by API version and
/// plural.
type KindId = (TypeId, Option<(String, String)>);

fn id_of<K: AnyObject>(kind: &Kind<K>) -> KindId {
    let resource = kind.to_dynamic().map(|kind| {
        let resource = kind.resource();
        (resource.api_version.clone(), resource.plural.clone())
    });
    (TypeId::of::<K>(), resource)
}

#[derive(Default)]
struct Answers {
    by_object: HashMap<Arc<ObjectId>, Answer>,
    /// The objects in order of their responses. An entry is stale if its number is not that of the
    /// current response.
    order: VecDeque<(u64, Arc<ObjectId>)>,
    /// For each kind, the base for diffs: the first response, or an empty text if that is too long.
    bases: HashMap<KindId, Base>,
    last: u64,
    bytes: usize,
}

struct Answer {
    number: u64,
    body: BodyHash,
    version: String,
    /// The JSON of the object as a diff to the base of its kind; `None` if it is not stored here.
    object: Option<Box<[u8]>>,
}

impl Answer {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.object.as_ref().map_or(0, |object| object.len())
    }
}

/// Hash of the body of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyHash([u64; 2]);

impl AppliedObjects {
    /// Creates a store that forgets the oldest responses at `limit` bytes. If the limit is zero,
    /// nothing is remembered.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            limit,
            answers: Mutex::default(),
        }
    }

    /// Returns the hash of a body without its preconditions, which depend on the known state of the
    /// object.
    pub(super) fn hash(&self, body: &mut Value) -> BodyHash {
        let preconditions = ["uid", "resourceVersion"].map(|name| (name, take_metadata(body, name)));
        // Half the work of `to_string`, which formats. Serializing a `Value` cannot fail.
        let text = serde_json::to_vec(body).unwrap_or_default();
        for (name, value) in preconditions {
            if let Some(value) = value {
                body["metadata"][name] = value;
            }
        }
        BodyHash([0, 1].map(|at: usize| self.hashers[at].hash_one(&text)))
    }

    /// Returns the version in the last response, if it was a response to the same body.
    pub(super) fn version_of<K: AnyObject>(
        &self,
        kind: &Kind<K>,
        key: &Key,
        body: BodyHash,
    ) -> Option<String> {
        let answers = self.lock();
        let answer = answers.by_object.get(&(id_of(kind), key.clone()))?;
        (answer.body == body).then(|| answer.version.clone())
    }

    /// Returns the last response if it is stored here.
    pub(super) fn object_of<K: AnyObject>(&self, kind: &Kind<K>, key: &Key) -> Option<K> {
        let answers = self.lock();
        let answer = answers.by_object.get(&(id_of(kind), key.clone()))?;
        let base = answers.bases.get(&id_of(kind))?;
        let json = String::from_utf8(base.decode(answer.object.as_deref()?)?).ok()?;
        // Read from a `str`, as kube does for responses: `from_slice` would compile every type `K`
        // once more in each operator.
        serde_json::from_str(&json).ok()
    }

    /// Remembers the response to an apply. `keeps` is `false` if a cache has the object or it must
    /// not be stored here.
    pub(super) fn remember<K: AnyObject + Serialize>(
        &self,
        kind: &Kind<K>,
        body: BodyHash,
        object: &mut K,
        keeps: bool,
    ) {
        let Some(version) = object.meta().resource_version.clone() else {
            return;
        };
        if self.limit == 0 {
            return;
        }
        let json = keeps.then(|| to_json_without_managed_fields(object));
        let Some(json) = json.map_or(Some(None), |json| json.map(Some)) else {
            return;
        };
        let id = (id_of(kind), Key::of(object));
        self.lock().insert(id, body, version, json, self.limit);
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    fn insert(&mut self, id: ObjectId, body: BodyHash, version: String, json: Option<Vec<u8>>, limit: usize) {
        let object = json.map(|json| self.base_of(&id.0, &json).encode(&json));
        let id = Arc::new(id);
        self.last += 1;
        let answer = Answer {
            number: self.last,
            body,
            version,
            object,
        };
        self.order.push_back((self.last, Arc::clone(&id)));
        self.bytes += answer.bytes();
        if let Some(before) = self.by_object.insert(id, answer) {
            self.bytes -= before.bytes();
        }
        while self.bytes > limit
            && let Some((number, id)) = self.order.pop_front()
        {
            self.forget(number, &id);
        }
        if self.order.len() > 2 * self.by_object.len() + 64 {
            let by_object = &self.by_object;
            self.order
                .retain(|(number, id)| by_object.get(id).is_some_and(|answer| answer.number == *number));
        }
    }

    /// Returns the base for responses of a kind. `first` becomes the base if the kind has none.
    fn base_of(&mut self, kind: &KindId, first: &[u8]) -> &Base {
        self.bases.entry(kind.clone()).or_insert_with(|| {
            let fits = first.len() <= MAX_BASE;
            Base::new(if fits { first } else { &[] })
        })
    }

    /// Removes a response unless it has been replaced since.
    fn forget(&mut self, number: u64, id: &ObjectId) {
        if self
            .by_object
            .get(id)
            .is_some_and(|answer| answer.number == number)
            && let Some(answer) = self.by_object.remove(id)
        {
            self.bytes -= answer.bytes();
        }
    }
}

/// Removes a field from the metadata and returns it.
fn take_metadata(object: &mut Value, name: &str) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(name)
}

/// Serializes an object without its managed fields, which take as long as everything else.
fn to_json_without_managed_fields<K: AnyObject + Serialize>(object: &mut K) -> Option<Vec<u8>> {
    let managed_fields = object.meta_mut().managed_fields.take();
    let json = serde_json::to_value(&*object);
    object.meta_mut().managed_fields = managed_fields;
    // Go through a `Value`, as for bodies: serializing to bytes directly would compile every type
    // `K` once more in each operator.
    serde_json::to_vec(&json.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::api::{ApiResource, DynamicObject};
    use kube::core::GroupVersionKind;
    use serde_json::json;

    use super::*;
    use crate::object::DynamicKind;

    fn map(name: &str, version: u64) -> ConfigMap {
        let metadata = json!({ "name": name, "resourceVersion": version.to_string(), "managedFields": [{}] });
        serde_json::from_value(json!({ "metadata": metadata, "data": { "a": "b" } })).unwrap()
    }

    fn key(name: &str) -> Key {
        Key::of(&map(name, 0))
    }

    #[test]
    fn hash_ignores_preconditions_only() {
        let applied = AppliedObjects::new(1000);
        let body = |metadata: Value, data: &str| json!({ "metadata": metadata, "data": data });
        let plain = applied.hash(&mut body(json!({ "name": "a" }), "x"));
        let bound = body(json!({ "name": "a", "uid": "u", "resourceVersion": "1" }), "x");
        let mut hashed = bound.clone();
        assert_eq!(plain, applied.hash(&mut hashed));
        assert_eq!(hashed, bound, "it is sent with its preconditions");
        assert_ne!(plain, applied.hash(&mut body(json!({ "name": "a" }), "y")));
        let labelled = json!({ "name": "a", "labels": {} });
        assert_ne!(plain, applied.hash(&mut body(labelled, "x")));
    }

    #[test]
    fn managed_fields_are_not_stored_but_stay_in_the_result() {
        let applied = AppliedObjects::new(10_000);
        let body = applied.hash(&mut json!({}));
        let mut answer = map("a", 1);
        applied.remember(&Kind::of_type(), body, &mut answer, true);
        assert_eq!(answer, map("a", 1));
        let kept: ConfigMap = applied.object_of(&Kind::of_type(), &key("a")).unwrap();
        assert_eq!(kept.metadata.managed_fields, None);
        assert_eq!(kept.data, answer.data);
    }

    #[test]
    fn response_is_only_reused_for_the_same_body_and_object() {
        let applied = AppliedObjects::new(10_000);
        let [body, other] = [json!({ "a": 1 }), json!({ "a": 2 })].map(|mut body| applied.hash(&mut body));
        applied.remember(&Kind::of_type(), body, &mut map("a", 7), true);
        assert_eq!(
            applied
                .version_of(&Kind::<ConfigMap>::of_type(), &key("a"), body)
                .as_deref(),
            Some("7")
        );
        assert_eq!(
            applied.version_of(&Kind::<ConfigMap>::of_type(), &key("a"), other),
            None
        );
        assert_eq!(
            applied.version_of(&Kind::<ConfigMap>::of_type(), &key("b"), body),
            None
        );
        assert_eq!(
            applied.version_of(&Kind::<Secret>::of_type(), &key("a"), body),
            None
        );
        let object: ConfigMap = applied.object_of(&Kind::of_type(), &key("a")).unwrap();
        assert_eq!(
            (object.data, object.metadata.managed_fields),
            (map("a", 7).data, None)
        );
    }

    #[test]
    fn oldest_responses_are_forgotten_at_the_limit() {
        let applied = AppliedObjects::new(3 * ENTRY_BYTES);
        let body = applied.hash(&mut json!({}));
        for (name, version) in [("a", 1), ("b", 2), ("c", 3), ("a", 4), ("d", 5)] {
            applied.remember(&Kind::of_type(), body, &mut map(name, version), false);
        }
        let version = |name: &str| applied.version_of(&Kind::<ConfigMap>::of_type(), &key(name), body);
        assert_eq!(version("b"), None);
        assert_eq!(version("a").as_deref(), Some("4"));
        assert!(version("c").is_some() && version("d").is_some());
        for round in 0..1000 {
            applied.remember(&Kind::of_type(), body, &mut map("a", round), false);
        }
        let answers = applied.lock();
        assert!(answers.order.len() < 100, "{}", answers.order.len());
        assert_eq!(answers.bytes, answers.by_object.len() * ENTRY_BYTES);
    }

    #[test]
    fn similar_responses_only_take_memory_for_their_differences() {
        let applied = AppliedObjects::new(1 << 20);
        let body = applied.hash(&mut json!({}));
        let named = |name: &str| {
            let mut object = map(name, 1);
            object.data = Some([("text".to_owned(), "x".repeat(2000))].into());
            object
        };
        for number in 0..100 {
            applied.remember(&Kind::of_type(), body, &mut named(&number.to_string()), true);
        }
        let bytes = applied.lock().bytes;
        assert!(bytes < 100 * (ENTRY_BYTES + 50), "{bytes}");
        let object: ConfigMap = applied.object_of(&Kind::of_type(), &key("99")).unwrap();
        assert_eq!(object.data, named("99").data);
    }

    #[test]
    fn too_long_response_is_not_used_as_base() {
        let applied = AppliedObjects::new(1 << 20);
        let body = applied.hash(&mut json!({}));
        let mut long = map("long", 1);
        long.data = Some([("text".to_owned(), "x".repeat(MAX_BASE))].into());
        for object in [&mut long, &mut map("a", 2)] {
            applied.remember(&Kind::of_type(), body, object, true);
        }
        let found: ConfigMap = applied.object_of(&Kind::of_type(), &key("long")).unwrap();
        assert_eq!(found.data, long.data);
        assert!(
            applied
                .object_of(&Kind::<ConfigMap>::of_type(), &key("a"))
                .is_some()
        );
    }

    #[test]
    fn zero_limit_remembers_nothing() {
        let applied = AppliedObjects::new(0);
        let body = applied.hash(&mut json!({}));
        applied.remember(&Kind::of_type(), body, &mut map("a", 1), false);
        assert_eq!(
            applied.version_of(&Kind::<ConfigMap>::of_type(), &key("a"), body),
            None
        );
    }

    #[test]
    fn dynamic_kinds_are_distinguished() {
        let applied = AppliedObjects::new(10_000);
        let kind = |name: &str| {
            let gvk = GroupVersionKind::gvk("example.com", "v1", name);
            DynamicKind::namespaced(ApiResource::from_gvk(&gvk))
        };
        let (cup, jar) = (kind("Cup"), kind("Jar"));
        let body = applied.hash(&mut json!({}));
        let mut object = cup.object("a");
        object.metadata.resource_version = Some("7".to_owned());
        applied.remember(&Kind::from(&cup), body, &mut object, true);
        let version = |kind: &DynamicKind| {
            let kind = Kind::<DynamicObject>::from(kind);
            applied.version_of(&kind, &key("a"), body)
        };
        assert_eq!((version(&cup).as_deref(), version(&jar)), (Some("7"), None));
        let found: Option<DynamicObject> = applied.object_of(&Kind::from(&jar), &key("a"));
        assert!(found.is_none(), "{found:?}");
    }
}
