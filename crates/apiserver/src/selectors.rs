//! Label and field selectors for lists and watches.

use rbuilder_judge::go;
use rbuilder_kubernetes::selector::{FieldRequirement, FieldSelector, LabelSelector};
use serde_json::Value;

use super::failure::Failure;
use super::kinds::Version;
use super::request::Request;
use super::shards::Shard;
use super::store::Key;

#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    namespace: Option<String>,
    name: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    shard: Option<Shard>,
}

impl Selector {
    pub(super) fn read(request: &Request, version: &Version, sharding: bool) -> Result<Self, Failure> {
        let fields = FieldSelector::parse(request.parameter("fieldSelector"));
        let fields = fields.map_err(Failure::bad_request)?;
        for FieldRequirement { field, .. } in &fields.requirements {
            let known = matches!(field.as_str(), "metadata.name" | "metadata.namespace");
            if !known && !version.selectable.contains(field) {
                let has_own_fields = version.is_custom() || !version.selectable.is_empty();
                return Err(Failure::bad_request(match has_own_fields {
                    true => format!("field label not supported: {field}"),
                    false => format!(
                        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                        go::quote(field)
                    ),
                }));
            }
        }
        Ok(Self {
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            labels: LabelSelector::parse(request.parameter("labelSelector")).map_err(Failure::bad_request)?,
            fields,
            shard: match request.parameter("shardSelector") {
                selector if sharding && !selector.is_empty() => Some(Shard::parse(selector)?),
                _ => None,
            },
        })
    }

    pub(super) fn shard(&self) -> Option<&Shard> {
        self.shard.as_ref()
    }

    /// Checks only namespace and name. Callers do this first to avoid converting the object.
    pub(super) fn matches_key(&self, key: &Key) -> bool {
        let (namespace, name) = key;
        self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
            && self.name.as_ref().is_none_or(|wanted| wanted == name)
    }

    pub(super) fn needs_object(&self) -> bool {
        !self.labels.is_empty() || !self.fields.requirements.is_empty() || self.shard.is_some()
    }

    /// Returns true if an object in the request's version matches.
    pub(super) fn matches(&self, key: &Key, object: &Value) -> bool {
        self.matches_key(key)
            && self.shard.as_ref().is_none_or(|shard| shard.contains(object))
            && self.labels.matches_map(&object["metadata"]["labels"])
            && self.fields.matches(|field| field_of(object, field))
    }
}

/// A field as the string that selectors compare against. Absent fields are empty.
fn field_of(object: &Value, path: &str) -> String {
    match object.pointer(&format!("/{}", path.replace('.', "/"))) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_selectors_compare_strings() {
        let object = json!({ "spec": { "unschedulable": true }, "type": "Opaque" });
        for (selector, expected) in [
            ("type=Opaque", true),
            ("type==Opaque,spec.unschedulable=true", true),
            ("type!=Opaque", false),
            ("spec.none=", true),
        ] {
            let selector = Selector {
                fields: FieldSelector::parse(selector).unwrap(),
                ..Selector::default()
            };
            assert_eq!(
                selector.matches(&Key::default(), &object),
                expected,
                "{selector:?}"
            );
        }
    }
}
