//! Remembers the responses to applies, to skip applies that would not change anything.
//!
//! A reconciler applies all of its children every time, and usually nothing has changed. The API
//! server would find that out, but it would take one request per child and resync. Instead, we
//! store a hash of each applied body along with the resource version from the response. As long as
//! a cache contains exactly this version, the object wasn't modified (not even its status), and the
//! same apply can be skipped.
//!
//! | what happens | version in the cache | next apply |
//! |---|---|---|
//! | nothing | that of the response | skipped |
//! | another client changes the object and reverts the change | newer | sent |
//! | the body changes | that of the response | sent |
//! | the object is deleted | none | sent, which creates the object |
//! | a change has not reached the watch yet | that of the response | skipped; the change reconciles the owner once it is delivered |
//! | the process restarts | any | sent, because nothing is remembered |
//!
//! A skipped apply must still return the response, since controllers (including the scaffolded one)
//! need it to compute the owner's status. If there's a cache of whole objects, the response is
//! taken from there. Otherwise, e.g. for kinds that a controller [owns](crate::Controller::owns),
//! it's stored here, up to a limit for all responses together. Responses are stored as JSON, as a
//! diff to the first response of the same kind, which takes about 150 bytes per object. By
//! comparison, caching whole objects would take about 2000 bytes each, and reading the object from
//! the API server would cost as much as the request that was just saved.
//!
//! The values of Secrets are never stored here, so that a memory dump of an operator only contains
//! Secrets that it caches or is working with. Instead, we store a keyed hash of them. If it is the
//! hash of the values that the caller wants to apply, the response is completed with those. Otherwise
//! the Secret also has values of others, and the apply is sent.

use std::any::TypeId;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::ByteString;
use serde::Serialize;
use serde_json::{Map, Value};

use super::similar::Base;
use crate::object::{AnyObject, Key, Kind};

/// Approximate size of an entry without its response, in bytes.
const ENTRY_BYTES: usize = 320;
/// Responses larger than this (in bytes) are not used as a base for diffs.
const MAX_BASE: usize = 64 << 10;
/// Annotation of `kubectl apply`, with a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Responses to a controller's applies, as many as fit into the limit.
pub(super) struct AppliedObjects {
    /// Two hashers with random keys, since a change would not be sent if its hash collided.
    hashers: [RandomState; 2],
    /// In bytes. The oldest responses are dropped to stay below this.
    limit: usize,
    answers: Mutex<Answers>,
}

type ObjectId = (KindId, Key);

/// Includes the API version and plural name for kinds that are only known at runtime, since these
/// all have the same Rust type.
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
    /// Objects in the order of their responses. The entry of a superseded response stays here; its
    /// number no longer matches, so it's skipped.
    order: VecDeque<(u64, Arc<ObjectId>)>,
    /// The first response of each kind, used as the base for diffs. Empty if that response is too
    /// large.
    bases: HashMap<KindId, Base>,
    last: u64,
    bytes: usize,
}

struct Answer {
    number: u64,
    body: BodyHash,
    version: String,
    /// The object as a diff to the base of its kind. `None` if it isn't stored here.
    object: Option<Box<[u8]>>,
    /// Hash of the values that `object` lacks.
    values: Option<BodyHash>,
}

impl Answer {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.object.as_ref().map_or(0, |object| object.len())
    }
}

/// An answer that isn't encoded yet.
struct NewAnswer {
    body: BodyHash,
    version: String,
    json: Option<Vec<u8>>,
    values: Option<BodyHash>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyHash([u64; 2]);

/// What to store of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    Whole,
    /// Everything but the values of a Secret.
    WithoutValues,
    Nothing,
}

impl AppliedObjects {
    /// `limit` is in bytes; zero disables the store.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            limit,
            answers: Mutex::default(),
        }
    }

    pub(super) fn hash(&self, body: &mut Value) -> BodyHash {
        // Ignore preconditions, which depend on our current knowledge of the object.
        let preconditions = ["uid", "resourceVersion"].map(|name| (name, take_metadata(body, name)));
        let hash = self.hash_value(body);
        for (name, value) in preconditions {
            if let Some(value) = value {
                body["metadata"][name] = value;
            }
        }
        hash
    }

    fn hash_value(&self, value: &Value) -> BodyHash {
        BodyHash([0, 1].map(|at: usize| self.hashers[at].hash_one(value)))
    }

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

    /// Returns the response to an apply with this body, if it's stored here.
    pub(super) fn object_of<K: AnyObject>(&self, kind: &Kind<K>, key: &Key, body: &Value) -> Option<K> {
        let answers = self.lock();
        let answer = answers.by_object.get(&(id_of(kind), key.clone()))?;
        let base = answers.bases.get(&id_of(kind))?;
        let mut json = String::from_utf8(base.decode(answer.object.as_deref()?)?).ok()?;
        if let Some(hash) = answer.values {
            let values = values_of(body)?;
            if self.hash_value(&values) != hash {
                return None;
            }
            json = with_values(&json, values)?;
        }
        // Deserialize from a `str`, as kube does for responses. `from_slice` would be monomorphized
        // for every `K` as well, which increases the compile time of all operators.
        serde_json::from_str(&json).ok()
    }

    /// Remembers a response.
    pub(super) fn remember<K: AnyObject + Serialize>(
        &self,
        kind: &Kind<K>,
        body: BodyHash,
        object: &mut K,
        keeps: Keeps,
    ) {
        let Some(version) = object.meta().resource_version.clone() else {
            return;
        };
        if self.limit == 0 {
            return;
        }
        let (mut json, mut values) = (None, None);
        if keeps != Keeps::Nothing {
            // Don't remember a response that can't be serialized.
            let Some(mut value) = to_json_without_managed_fields(object) else {
                return;
            };
            if keeps == Keeps::WithoutValues {
                values = take_values(&mut value).map(|values| self.hash_value(&values));
            }
            // Go through a `Value`, as for bodies. Serializing directly to bytes would be
            // monomorphized for every `K` as well, which increases the compile time of all operators.
            json = match keeps == Keeps::Whole || values.is_some() {
                true => serde_json::to_vec(&value).ok(),
                false => None,
            };
        }
        let id = (id_of(kind), Key::of(object));
        let answer = NewAnswer {
            body,
            version,
            json,
            values,
        };
        self.lock().insert(id, answer, self.limit);
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    fn insert(&mut self, id: ObjectId, new: NewAnswer, limit: usize) {
        let object = new.json.map(|json| self.base_of(&id.0, &json).encode(&json));
        let id = Arc::new(id);
        self.last += 1;
        let answer = Answer {
            number: self.last,
            body: new.body,
            version: new.version,
            object,
            values: new.values,
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
        // Drop stale entries, or `order` would grow with each response that supersedes another one.
        if self.order.len() > 2 * self.by_object.len() + 64 {
            let by_object = &self.by_object;
            self.order
                .retain(|(number, id)| by_object.get(id).is_some_and(|answer| answer.number == *number));
        }
    }

    /// Returns the base for a kind, which is `first` if there is none yet.
    fn base_of(&mut self, kind: &KindId, first: &[u8]) -> &Base {
        self.bases.entry(kind.clone()).or_insert_with(|| {
            let fits = first.len() <= MAX_BASE;
            Base::new(if fits { first } else { &[] })
        })
    }

    fn forget(&mut self, number: u64, id: &ObjectId) {
        // A newer response may have arrived meanwhile; don't drop it.
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

fn take_metadata(object: &mut Value, name: &str) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(name)
}

fn to_json_without_managed_fields<K: AnyObject + Serialize>(object: &mut K) -> Option<Value> {
    // Serializing the managed fields would take as long as everything else.
    let managed_fields = object.meta_mut().managed_fields.take();
    let json = serde_json::to_value(&*object);
    object.meta_mut().managed_fields = managed_fields;
    json.ok()
}

/// Removes the values from a Secret in a response. Returns `None` if the Secret contains a copy of
/// them, so it must not be stored at all.
fn take_values(secret: &mut Value) -> Option<Value> {
    if !secret["metadata"]["annotations"][LAST_APPLIED].is_null() {
        return None;
    }
    Some(secret.as_object_mut()?.remove("data").unwrap_or_default())
}

/// Returns the values that a Secret has after an apply, unless others add some.
fn values_of(body: &Value) -> Option<Value> {
    let of = |name: &str| body[name].as_object().into_iter().flatten();
    let mut values: Map<String, Value> = of("data")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for (key, text) in of("stringData") {
        let bytes = ByteString(text.as_str()?.as_bytes().to_vec());
        values.insert(key.clone(), serde_json::to_value(bytes).ok()?);
    }
    Some(match values.is_empty() {
        true => Value::Null,
        false => Value::Object(values),
    })
}

fn with_values(secret: &str, values: Value) -> Option<String> {
    let mut secret: Map<String, Value> = serde_json::from_str(secret).ok()?;
    if !values.is_null() {
        secret.insert("data".to_owned(), values);
    }
    serde_json::to_string(&secret).ok()
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
        applied.remember(&Kind::of_type(), body, &mut answer, Keeps::Whole);
        assert_eq!(answer, map("a", 1));
        let kept: ConfigMap = applied
            .object_of(&Kind::of_type(), &key("a"), &Value::Null)
            .unwrap();
        assert_eq!(kept.metadata.managed_fields, None);
        assert_eq!(kept.data, answer.data);
    }

    #[test]
    fn response_is_only_reused_for_the_same_body_and_object() {
        let applied = AppliedObjects::new(10_000);
        let [body, other] = [json!({ "a": 1 }), json!({ "a": 2 })].map(|mut body| applied.hash(&mut body));
        applied.remember(&Kind::of_type(), body, &mut map("a", 7), Keeps::Whole);
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
        let object: ConfigMap = applied
            .object_of(&Kind::of_type(), &key("a"), &Value::Null)
            .unwrap();
        assert_eq!(
            (object.data, object.metadata.managed_fields),
            (map("a", 7).data, None)
        );
    }

    fn secret(values: Value) -> Value {
        json!({ "metadata": { "name": "a", "namespace": "b" }, "data": values, "type": "Opaque" })
    }

    #[test]
    fn values_of_secrets_are_hashed_and_taken_from_the_caller() {
        let applied = AppliedObjects::new(10_000);
        let check = |mut body: Value, answer: Value, expected: bool| {
            let hash = applied.hash(&mut body);
            let mut object: Secret = serde_json::from_value(answer).unwrap();
            object.metadata.resource_version = Some("7".to_owned());
            let (kind, key) = (Kind::of_type(), Key::of(&object));
            applied.remember(&kind, hash, &mut object, Keeps::WithoutValues);
            let found: Option<Secret> = applied.object_of(&kind, &key, &body);
            assert_eq!(found, expected.then_some(object), "{body}");
            let answers = applied.lock();
            let stored = answers
                .by_object
                .values()
                .filter_map(|answer| answer.object.as_deref());
            for stored in stored {
                let json = answers.bases[&id_of(&kind)].decode(stored).unwrap();
                assert!(!String::from_utf8(json).unwrap().contains("c2VjcmV0"));
            }
        };
        let values = || json!({ "password": "c2VjcmV0" });
        check(secret(values()), secret(values()), true);
        let mut plain = secret(Value::Null);
        plain["stringData"] = json!({ "password": "secret" });
        check(plain, secret(values()), true);
        check(secret(json!({})), secret(Value::Null), true);
        check(
            secret(values()),
            secret(json!({ "password": "c2VjcmV0", "other": "c2VjcmV0" })),
            false,
        );
        let mut copied = secret(values());
        copied["metadata"]["annotations"] = json!({ LAST_APPLIED: "{\"data\":{\"password\":\"c2VjcmV0\"}}" });
        check(secret(values()), copied, false);
    }

    #[test]
    fn oldest_responses_are_forgotten_at_the_limit() {
        let applied = AppliedObjects::new(3 * ENTRY_BYTES);
        let body = applied.hash(&mut json!({}));
        for (name, version) in [("a", 1), ("b", 2), ("c", 3), ("a", 4), ("d", 5)] {
            applied.remember(&Kind::of_type(), body, &mut map(name, version), Keeps::Nothing);
        }
        let version = |name: &str| applied.version_of(&Kind::<ConfigMap>::of_type(), &key(name), body);
        assert_eq!(version("b"), None);
        assert_eq!(version("a").as_deref(), Some("4"));
        assert!(version("c").is_some() && version("d").is_some());
        for round in 0..1000 {
            applied.remember(&Kind::of_type(), body, &mut map("a", round), Keeps::Nothing);
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
            applied.remember(
                &Kind::of_type(),
                body,
                &mut named(&number.to_string()),
                Keeps::Whole,
            );
        }
        let bytes = applied.lock().bytes;
        assert!(bytes < 100 * (ENTRY_BYTES + 50), "{bytes}");
        let object: ConfigMap = applied
            .object_of(&Kind::of_type(), &key("99"), &Value::Null)
            .unwrap();
        assert_eq!(object.data, named("99").data);
    }

    #[test]
    fn too_long_response_is_not_used_as_base() {
        let applied = AppliedObjects::new(1 << 20);
        let body = applied.hash(&mut json!({}));
        let mut long = map("long", 1);
        long.data = Some([("text".to_owned(), "x".repeat(MAX_BASE))].into());
        for object in [&mut long, &mut map("a", 2)] {
            applied.remember(&Kind::of_type(), body, object, Keeps::Whole);
        }
        let found: ConfigMap = applied
            .object_of(&Kind::of_type(), &key("long"), &Value::Null)
            .unwrap();
        assert_eq!(found.data, long.data);
        assert!(
            applied
                .object_of(&Kind::<ConfigMap>::of_type(), &key("a"), &Value::Null)
                .is_some()
        );
    }

    #[test]
    fn zero_limit_remembers_nothing() {
        let applied = AppliedObjects::new(0);
        let body = applied.hash(&mut json!({}));
        applied.remember(&Kind::of_type(), body, &mut map("a", 1), Keeps::Nothing);
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
        applied.remember(&Kind::from(&cup), body, &mut object, Keeps::Whole);
        let version = |kind: &DynamicKind| {
            let kind = Kind::<DynamicObject>::from(kind);
            applied.version_of(&kind, &key("a"), body)
        };
        assert_eq!((version(&cup).as_deref(), version(&jar)), (Some("7"), None));
        let found: Option<DynamicObject> = applied.object_of(&Kind::from(&jar), &key("a"), &Value::Null);
        assert!(found.is_none(), "{found:?}");
    }
}
