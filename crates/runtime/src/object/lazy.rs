//! Lazily decoded objects. Only the identity is read upfront.
//!
//! In a sharded operator, a replica may receive objects that belong to other replicas. [`Lazy`]
//! keeps the JSON until it's known from the UID whether this replica is responsible for the object.
//! If not, there's no need to decode it at all.

use std::marker::PhantomData;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::value::RawValue;

use super::decoded::{Decoded, RawOrBuffered, read_metadata};

/// An object of type `O` that isn't decoded yet.
#[derive(Clone, Debug)]
pub(crate) struct Lazy<O> {
    /// Only contains the fields of [`Identity`].
    identity: ObjectMeta,
    text: Box<RawValue>,
    kind: PhantomData<fn(O)>,
}

/// The part of the metadata that determines which replica an object belongs to.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    owner_references: Option<Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference>>,
}

#[derive(serde::Deserialize)]
struct Identified {
    metadata: Identity,
}

impl<O> Lazy<O> {
    /// Only contains the name, namespace, UID, resource version and owner references.
    pub(crate) fn identity(&self) -> &ObjectMeta {
        &self.identity
    }

    /// `F` is either `O` or a wrapper around it.
    pub(crate) fn decode<F: DeserializeOwned>(&self) -> Decoded<F> {
        Decoded::of_text(self.text.get())
    }
}

impl<'de, O> Deserialize<'de> for Lazy<O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(RawOrBuffered(deserializer))?;
        let identity = match serde_json::from_str::<Identified>(text.get()) {
            Ok(Identified { metadata }) => ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                owner_references: metadata.owner_references,
                ..ObjectMeta::default()
            },
            // Some of the metadata is invalid, but the owner must still be determined.
            Err(_) => read_metadata(text.get()),
        };
        Ok(Self {
            identity,
            text,
            kind: PhantomData,
        })
    }
}

impl<O: Resource> Resource for Lazy<O> {
    forward_resource!(O);

    fn meta(&self) -> &ObjectMeta {
        &self.identity
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.identity
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn only_the_identity_is_read_before_the_object_is_decoded() {
        let lazy: Lazy<ConfigMap> = serde_json::from_str(
            r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"3","labels":{"x":"y"}},"data":{"key":5}}"#,
        )
        .unwrap();
        let identity = lazy.identity();
        assert_eq!(
            (identity.name.as_deref(), identity.uid.as_deref()),
            (Some("a"), Some("u"))
        );
        assert_eq!(identity.resource_version.as_deref(), Some("3"));
        assert_eq!(identity.labels, None);
        let Decoded::Undecodable(object) = lazy.decode::<ConfigMap>() else {
            panic!("expected an undecodable object");
        };
        assert_eq!(object.field(), ".data.key");
    }
}
