//! Deserializes objects without the metadata that caches do not keep.
//!
//! `metadata.managedFields` and the copy of the object that kubectl adds often make up more than
//! half of what the API server sends. Deserializing them just to drop them would take most of the
//! time and all of the peak memory of an initial list. [`Trimmed`] skips them while parsing the
//! JSON, using a deserializer between serde_json and the object's deserialization code that hides
//! some of the keys.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Annotation in which `kubectl apply` stores a copy of the object (unless `--server-side` is
/// used).
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How to handle a key and its value.
enum Rule {
    Skip,
    Within(Rules),
}

/// Keys without a rule stay as they are.
type Rules = &'static [(&'static str, Rule)];

static METADATA: Rules = &[
    ("managedFields", Rule::Skip),
    ("annotations", Rule::Within(&[(LAST_APPLIED, Rule::Skip)])),
];

static OBJECT: Rules = &[("metadata", Rule::Within(METADATA))];

#[derive(Clone, Debug)]
pub(crate) struct Trimmed<K>(pub(crate) K);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Trimmed<K> {
    fn deserialize<D: Deserializer<'de>>(inner: D) -> Result<Self, D::Error> {
        K::deserialize(Filtered { inner, rules: OBJECT }).map(Self)
    }
}

impl<K: Resource> Resource for Trimmed<K> {
    forward_resource!(K);

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

/// Wraps a deserializer, visitor or seed to apply rules to maps.
struct Filtered<T> {
    inner: T,
    rules: Rules,
}

macro_rules! forward {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        })*
    };
}

macro_rules! filter {
    ($($method:ident ( $($argument:ident: $type:ty),* ))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = Filtered { inner: visitor, rules: self.rules };
            self.inner.$method($($argument,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Filtered<D> {
    type Error = D::Error;

    // There are no rules for anything inside these.
    forward! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_seq deserialize_identifier
        deserialize_ignored_any
    }

    filter! {
        deserialize_any()
        deserialize_option()
        deserialize_map()
        deserialize_newtype_struct(name: &'static str)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple_struct(name, len, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Filtered<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool: bool,
        visit_i64: i64,
        visit_u64: u64,
        visit_f64: f64,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let rules = self.rules;
        self.inner.visit_some(Filtered { inner, rules })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let rules = self.rules;
        self.inner.visit_newtype_struct(Filtered { inner, rules })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(FilteredMap {
            inner,
            rules: self.rules,
            within: None,
        })
    }
}

/// Skips some entries of a map.
struct FilteredMap<A> {
    inner: A,
    rules: Rules,
    /// Rules for the next value.
    within: Option<Rules>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for FilteredMap<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(Name(key)) = self.inner.next_key()? {
            match self.rules.iter().find(|(name, _)| *name == key) {
                Some((_, Rule::Skip)) => {
                    // Skip the value without storing any of it.
                    self.inner.next_value::<IgnoredAny>()?;
                    continue;
                }
                Some((_, Rule::Within(rules))) => self.within = Some(rules),
                None => self.within = None,
            }
            return match key {
                Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)),
                Cow::Owned(key) => seed.deserialize(StringDeserializer::new(key)),
            }
            .map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.within.take() {
            Some(rules) => self.inner.next_value_seed(Filtered { inner: seed, rules }),
            None => self.inner.next_value_seed(seed),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Filtered<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let rules = self.rules;
        self.inner.deserialize(Filtered { inner, rules })
    }
}

/// Borrows the key from the input, unless it contains an escape sequence.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(key.to_owned())))
            }

            fn visit_string<E>(self, key: String) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(key)))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::DynamicObject;
    use kube::core::{ObjectList, PartialObjectMeta, WatchEvent};
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    /// An object as sent by the API server.
    fn full() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "labels": { "managedFields": "a label", "metadata": "another" },
                "managedFields": [{ "manager": "kubectl", "fieldsV1": { "f:spec": {} } }],
                "annotations": { (LAST_APPLIED): "{\"spec\":{}}", "q\"uoted": "kept" },
                "creationTimestamp": "2026-01-02T03:04:05Z",
            },
            "spec": {
                "selector": { "matchLabels": { "app": "web" } },
                "template": { "metadata": { "annotations": { (LAST_APPLIED): "kept" }, "managedFields": [] } },
            },
        })
    }

    /// The same object without the skipped fields.
    fn trimmed() -> Value {
        let mut object = full();
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        object["metadata"]["annotations"]
            .as_object_mut()
            .unwrap()
            .remove(LAST_APPLIED);
        object
    }

    fn check<K: DeserializeOwned + Serialize>(text: &str) {
        let expected: K = serde_json::from_value(trimmed()).unwrap();
        let Trimmed(found) = serde_json::from_str::<Trimmed<K>>(text).unwrap();
        assert_eq!(json!(found), json!(expected));
    }

    #[test]
    fn managed_fields_and_the_last_applied_annotation_are_skipped() {
        let text = full().to_string();
        check::<Deployment>(&text);
        check::<DynamicObject>(&text);
        check::<PartialObjectMeta<Deployment>>(&text);
        check::<Value>(&text);
    }

    #[test]
    fn lists_and_watch_events_of_trimmed_objects_are_read() {
        let list =
            json!({ "metadata": { "resourceVersion": "5", "managedFields": 1 }, "items": [full(), full()] });
        let list: ObjectList<Trimmed<Deployment>> = serde_json::from_str(&list.to_string()).unwrap();
        assert_eq!(list.metadata.resource_version.as_deref(), Some("5"));
        for Trimmed(object) in list {
            let object = json!(object);
            assert!(object["metadata"]["managedFields"].is_null(), "{object}");
            assert_eq!(object["metadata"]["annotations"], json!({ "q\"uoted": "kept" }));
        }
        let event = json!({ "type": "MODIFIED", "object": full() });
        let event: WatchEvent<Trimmed<Deployment>> = serde_json::from_str(&event.to_string()).unwrap();
        let WatchEvent::Modified(Trimmed(object)) = event else {
            panic!("{event:?}");
        };
        assert!(object.metadata.managed_fields.is_none());
    }

    #[test]
    fn invalid_objects_give_the_same_error_as_without_trimming() {
        for text in [
            "5",
            "null",
            "[]",
            r#"{"metadata": 5}"#,
            r#"{"metadata": {"name": 5}}"#,
            "{",
        ] {
            let plain = serde_json::from_str::<ConfigMap>(text).map(|object| json!(object));
            let trimmed =
                serde_json::from_str::<Trimmed<ConfigMap>>(text).map(|Trimmed(object)| json!(object));
            match (plain, trimmed) {
                (Ok(plain), Ok(trimmed)) => assert_eq!(plain, trimmed, "{text}"),
                (Err(plain), Err(trimmed)) => assert_eq!(plain.to_string(), trimmed.to_string(), "{text}"),
                (plain, trimmed) => panic!("{text}: {plain:?} and {trimmed:?}"),
            }
        }
    }

    #[test]
    fn null_values_in_metadata_are_accepted() {
        let text = r#"{"metadata": {"annotations": null, "managedFields": null, "name": "a"}, "data": null}"#;
        let Trimmed(object) = serde_json::from_str::<Trimmed<ConfigMap>>(text).unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some("a"));
        assert_eq!(object.metadata.annotations, None);
    }
}
