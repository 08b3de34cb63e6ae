//! Objects whose identity has been read, but nothing else.
//!
//! A replica of a sharded operator may receive the objects of all replicas. [`Lazy`] keeps the JSON
//! text of an object until its UID shows whether it belongs to the replica, so objects of others are
//! never decoded.

use std::marker::PhantomData;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::value::RawValue;

use super::decoded::{Decoded, RawOrBuffered, read_metadata};

/// An object of type `O` that is not decoded yet.
#[derive(Clone, Debug)]
pub(crate) struct Lazy<O> {
    /// Only the fields of [`Identity`].
    identity: ObjectMeta,
    text: Box<RawValue>,
    kind: PhantomData<fn(O)>,
}

/// The part of the metadata that says whose an object is.
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
    /// Returns name, namespace, UID, resource version and owners of the object, and no other
    /// metadata.
    pub(crate) fn identity(&self) -> &ObjectMeta {
        &self.identity
    }

    /// Decodes the object as an `F`, which is `O` or a wrapper around it.
    pub(crate) fn decode<F: DeserializeOwned>(&self) -> Decoded<F> {
        Decoded::of_text(self.text.get())
    }
}

impl<'de, O> Deserialize<'de> for Lazy<O> {
    /// # Errors
    /// Fails if the input is not JSON.
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
            Err(_) => read_metadata(text.get()),
        };
        Ok(Self {
            identity,
            text,
            kind: PhantomData,
        })
    }
}

/// The same resource as the object itself.
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
