//! Leaf types whose schema is fixed: the primitives, std's containers of text, and the Kubernetes types
//! that are not what their fields say (`Quantity`, `IntOrString`, `Time`, …).

use std::sync::Arc;

use serde_json::{Number, json};

use crate::build::{any, any_object, int_or_string, of_type};
use crate::{Schema, SchemaType};

/// The schema of a leaf type by its full Rust path (`std::string::String`, `i32`,
/// `k8s_openapi::apimachinery::pkg::api::resource::Quantity`), or nothing when the path is not known here.
pub fn known(path: &str) -> Option<Arc<Schema>> {
    let leaf = match path.split_once("::") {
        None => primitive(path)?,
        Some(("std" | "core" | "alloc", rest)) => standard(rest)?,
        Some(("k8s_openapi", rest)) => kubernetes(rest)?,
        Some(_) => third_party(path)?,
    };
    Some(leaf.into())
}

/// Whether [`known`] has a schema for the path; for those who do not want it yet.
pub fn is_known(path: &str) -> bool {
    known(path).is_some()
}

fn primitive(name: &str) -> Option<Schema> {
    Some(match name {
        "bool" => of_type(SchemaType::Boolean),
        "str" => text(None),
        "char" => Schema {
            min_length: Some(1),
            max_length: Some(1),
            ..text(None)
        },
        "f32" => Schema {
            format: Some("float".into()),
            ..of_type(SchemaType::Number)
        },
        "f64" => Schema {
            format: Some("double".into()),
            ..of_type(SchemaType::Number)
        },
        other => integer(other)?,
    })
}

/// Integers by Rust name. Where the format does not hold a value to the Rust type's range, bounds do; 128 bits
/// fit into no format.
pub(crate) fn integer(name: &str) -> Option<Schema> {
    let (format, minimum, maximum) = match name {
        "i8" => ("int32", Some(i8::MIN.into()), Some(i8::MAX.into())),
        "i16" => ("int32", Some(i16::MIN.into()), Some(i16::MAX.into())),
        "i32" => ("int32", None, None),
        "i64" | "isize" => ("int64", None, None),
        "u8" => ("int32", Some(0), Some(u8::MAX.into())),
        "u16" => ("int32", Some(0), Some(u16::MAX.into())),
        "u32" => ("int64", Some(0), Some(i64::from(u32::MAX))),
        "u64" | "usize" => ("int64", Some(0), None),
        _ => return None,
    };
    Some(Schema {
        format: Some(format.into()),
        minimum: minimum.map(Number::from),
        maximum: maximum.map(Number::from),
        ..of_type(SchemaType::Integer)
    })
}

fn standard(rest: &str) -> Option<Schema> {
    Some(match rest {
        "string::String" | "path::PathBuf" | "path::Path" | "net::IpAddr" => text(None),
        "net::SocketAddr" | "net::SocketAddrV4" | "net::SocketAddrV6" => text(None),
        "net::Ipv4Addr" => text(Some("ipv4")),
        "net::Ipv6Addr" => text(Some("ipv6")),
        _ => return non_zero(rest.strip_prefix("num::NonZero")?),
    })
}

fn non_zero(suffix: &str) -> Option<Schema> {
    let schema = integer(&suffix.to_ascii_lowercase())?;
    Some(if suffix.starts_with('U') {
        Schema {
            minimum: Some(1.into()),
            ..schema
        }
    } else {
        let zero = Schema {
            enumeration: vec![json!(0)],
            ..Schema::default()
        };
        Schema {
            not: Some(zero.into()),
            ..schema
        }
    })
}

fn third_party(path: &str) -> Option<Schema> {
    Some(match path {
        "serde_json::Value" | "serde_json::value::Value" => any(),
        "serde_json::Map" | "serde_json::map::Map" => any_object(),
        "serde_json::Number" => of_type(SchemaType::Number),
        "jiff::Timestamp" | "chrono::DateTime" => text(Some("date-time")),
        "jiff::civil::Date" | "chrono::NaiveDate" => text(Some("date")),
        "url::Url" => text(Some("uri")),
        "uuid::Uuid" => text(Some("uuid")),
        "kube::core::Duration" | "kube_core::Duration" | "kube_core::duration::Duration" => text(None),
        "kube::core::DynamicObject" | "kube_core::DynamicObject" | "kube::api::DynamicObject" => any_object(),
        _ => return None,
    })
}

/// Kubernetes types by their path below `k8s_openapi`; their fields, where they have any, are listed with
/// what controller-gen writes for them.
fn kubernetes(rest: &str) -> Option<Schema> {
    if let Some(name) = rest.strip_prefix("apimachinery::pkg::apis::meta::v1::") {
        return meta(name);
    }
    if let Some(name) = rest.strip_prefix("api::core::v1::") {
        return core(name);
    }
    Some(match rest {
        "ByteString" => text(Some("byte")),
        "apimachinery::pkg::api::resource::Quantity" => Schema {
            pattern: Some(QUANTITY.into()),
            ..int_or_string()
        },
        "apimachinery::pkg::util::intstr::IntOrString" => int_or_string(),
        "apimachinery::pkg::runtime::RawExtension" => any_object(),
        "apiextensions_apiserver::pkg::apis::apiextensions::v1::JSON" => any(),
        "apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps" => any_object(),
        _ => return None,
    })
}

/// What a quantity looks like: a number with a decimal, binary or exponent suffix.
const QUANTITY: &str = concat!(
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
);

fn meta(name: &str) -> Option<Schema> {
    Some(match name {
        "Time" | "MicroTime" => text(Some("date-time")),
        "Duration" => text(None),
        "ObjectMeta" => of_type(SchemaType::Object),
        "FieldsV1" => any_object(),
        "Condition" => condition(),
        "LabelSelectorRequirement" => label_selector_requirement(),
        "LabelSelector" => label_selector(),
        _ => return None,
    })
}

fn condition() -> Schema {
    let time = "lastTransitionTime is the last time the condition transitioned from one status to another.\n\
                This should be when the underlying condition changed.  If that is not known, then using the \
                time when the API field changed is acceptable.";
    let message = "message is a human readable message indicating details about the transition.\n\
                   This may be an empty string.";
    let generation = "observedGeneration represents the .metadata.generation that the condition was set based \
                      upon.\nFor instance, if .metadata.generation is currently 12, but the \
                      .status.conditions[x].observedGeneration is 9, the condition is out of date\n\
                      with respect to the current state of the instance.";
    let reason = "reason contains a programmatic identifier indicating the reason for the condition's last \
                  transition.\nProducers of specific condition types may define expected values and meanings \
                  for this field,\nand whether the values are considered a guaranteed API.\n\
                  The value should be a CamelCase string.\nThis field may not be empty.";
    let status = Schema {
        enumeration: vec![json!("True"), json!("False"), json!("Unknown")],
        ..described(
            text(None),
            "status of the condition, one of True, False, Unknown.",
        )
    };
    let kind = "type of condition in CamelCase or in foo.example.com/CamelCase.";
    object(
        Some("Condition contains details for one aspect of the current state of this API Resource."),
        &["lastTransitionTime", "message", "reason", "status", "type"],
        vec![
            ("lastTransitionTime", described(text(Some("date-time")), time)),
            (
                "message",
                Schema {
                    max_length: Some(32768),
                    ..described(text(None), message)
                },
            ),
            (
                "observedGeneration",
                Schema {
                    format: Some("int64".into()),
                    minimum: Some(0.into()),
                    ..described(of_type(SchemaType::Integer), generation)
                },
            ),
            (
                "reason",
                Schema {
                    max_length: Some(1024),
                    min_length: Some(1),
                    pattern: Some("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$".into()),
                    ..described(text(None), reason)
                },
            ),
            ("status", status),
            (
                "type",
                Schema {
                    max_length: Some(316),
                    pattern: Some(CONDITION_TYPE.into()),
                    ..described(text(None), kind)
                },
            ),
        ],
    )
}

/// A condition's type: a label, after an optional DNS name and `/`.
const CONDITION_TYPE: &str = concat!(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
);

fn label_selector() -> Schema {
    let atomic = Some(crate::ListType::Atomic);
    let expressions =
        "matchExpressions is a list of label selector requirements. The requirements are ANDed.";
    let labels = "matchLabels is a map of {key,value} pairs. A single {key,value} in the matchLabels\n\
                  map is equivalent to an element of matchExpressions, whose key field is \"key\", the\n\
                  operator is \"In\", and the values array contains only \"value\". The requirements are ANDed.";
    let about = "A label selector is a label query over a set of resources. The result of matchLabels and\n\
                 matchExpressions are ANDed. An empty label selector matches all objects. A null\n\
                 label selector matches no objects.";
    let list = Schema {
        list_type: atomic,
        ..crate::build::array_of(label_selector_requirement())
    };
    let map = crate::build::map_of(&text(None), text(None));
    Schema {
        map_type: Some(crate::MapType::Atomic),
        ..object(
            Some(about),
            &[],
            vec![
                ("matchExpressions", described(list, expressions)),
                ("matchLabels", described(map, labels)),
            ],
        )
    }
}

fn label_selector_requirement() -> Schema {
    let about = "A label selector requirement is a selector that contains values, a key, and an operator that\n\
                 relates the key and values.";
    let operator = "operator represents a key's relationship to a set of values.\n\
                    Valid operators are In, NotIn, Exists and DoesNotExist.";
    let values = "values is an array of string values. If the operator is In or NotIn,\n\
                  the values array must be non-empty. If the operator is Exists or DoesNotExist,\n\
                  the values array must be empty. This array is replaced during a strategic\nmerge patch.";
    let list = Schema {
        list_type: Some(crate::ListType::Atomic),
        ..crate::build::array_of(text(None))
    };
    object(
        Some(about),
        &["key", "operator"],
        vec![
            (
                "key",
                described(text(None), "key is the label key that the selector applies to."),
            ),
            ("operator", described(text(None), operator)),
            ("values", described(list, values)),
        ],
    )
}

fn core(name: &str) -> Option<Schema> {
    let name_text = "Name of the referent.\nThis field is effectively required, but due to backwards compatibility is\n\
                     allowed to be empty. Instances of this type with an empty value here are\nalmost certainly \
                     wrong.\nMore info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names";
    let referent = || {
        (
            "name",
            Schema {
                default: Some(json!("")),
                ..described(text(None), name_text)
            },
        )
    };
    let atomic = |schema| Schema {
        map_type: Some(crate::MapType::Atomic),
        ..schema
    };
    let key_of = |what: &str, key: &str, about: &str| {
        let optional = format!("Specify whether the {what} or its key must be defined");
        atomic(object(
            Some(about),
            &["key"],
            vec![
                ("key", described(text(None), key)),
                referent(),
                ("optional", described(of_type(SchemaType::Boolean), &optional)),
            ],
        ))
    };
    Some(match name {
        "LocalObjectReference" => {
            let about = "LocalObjectReference contains enough information to let you locate the\n\
                         referenced object inside the same namespace.";
            atomic(object(Some(about), &[], vec![referent()]))
        }
        "SecretKeySelector" => key_of(
            "Secret",
            "The key of the secret to select from.  Must be a valid secret key.",
            "SecretKeySelector selects a key of a Secret.",
        ),
        "ConfigMapKeySelector" => key_of(
            "ConfigMap",
            "The key to select.",
            "Selects a key from a ConfigMap.",
        ),
        _ => return None,
    })
}

fn object(about: Option<&str>, required: &[&str], properties: Vec<(&str, Schema)>) -> Schema {
    Schema {
        description: about.map(Arc::from),
        required: required.iter().map(|name| Arc::from(*name)).collect(),
        properties: properties
            .into_iter()
            .map(|(name, schema)| (name.into(), schema.into()))
            .collect(),
        ..of_type(SchemaType::Object)
    }
}

fn described(schema: Schema, about: &str) -> Schema {
    Schema {
        description: Some(about.into()),
        ..schema
    }
}

fn text(format: Option<&str>) -> Schema {
    Schema {
        format: format.map(Arc::from),
        ..of_type(SchemaType::String)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: serde_json::Value) {
        let schema = known(path).map(|schema| serde_json::to_value(&*schema).expect("JSON"));
        assert_eq!(schema, Some(expected), "{path}");
    }

    #[test]
    fn leaves() {
        check(
            "i8",
            json!({"type": "integer", "format": "int32", "minimum": -128, "maximum": 127}),
        );
        check(
            "u16",
            json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535}),
        );
        check(
            "u32",
            json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": 4_294_967_295_u32}),
        );
        check(
            "usize",
            json!({"type": "integer", "format": "int64", "minimum": 0}),
        );
        check(
            "std::num::NonZeroU16",
            json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535}),
        );
        check(
            "core::num::NonZeroI64",
            json!({"type": "integer", "format": "int64", "not": {"enum": [0]}}),
        );
        check("alloc::string::String", json!({"type": "string"}));
        check(
            "serde_json::Value",
            json!({"x-kubernetes-preserve-unknown-fields": true}),
        );
        check(
            "k8s_openapi::ByteString",
            json!({"type": "string", "format": "byte"}),
        );
        check(
            "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
            json!({"type": "object"}),
        );
        assert_eq!(known("i128"), None);
        assert_eq!(known("std::collections::LinkedList"), None);
        assert_eq!(known("my::String"), None);
    }

    #[test]
    fn a_condition_is_controller_gens() {
        let schema = known("k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition").expect("known");
        let required: Vec<&str> = schema.required.iter().map(AsRef::as_ref).collect();
        assert_eq!(
            required,
            ["lastTransitionTime", "message", "reason", "status", "type"]
        );
        assert_eq!(schema.properties["message"].max_length, Some(32768));
        assert_eq!(schema.properties["type"].max_length, Some(316));
    }
}
