//! Leaf types with a fixed schema: primitives, std's strings, times and addresses, types from other
//! crates, and Kubernetes types that aren't serialized as their fields (e.g. `Quantity`,
//! `IntOrString` and `Time`).

use std::sync::Arc;

use serde_json::{Number, json};

use crate::address::address_schema;
use crate::build::{any, any_object, int_or_string, of_type};
use crate::leaves::leaf_schema;
use crate::{Schema, SchemaType};

/// Returns the schema of a leaf type, or `None` if the type is unknown. `path` is a full Rust path,
/// e.g. `std::string::String`, `i32` or `k8s_openapi::apimachinery::pkg::api::resource::Quantity`.
pub fn known(path: &str) -> Option<Arc<Schema>> {
    let leaf = match path.split_once("::") {
        None => primitive(path)?,
        Some(("std" | "core" | "alloc", rest)) => standard(rest)?,
        Some(("k8s_openapi", rest)) => kubernetes(rest)?,
        Some(_) => leaf_schema(path)?,
    };
    Some(leaf.into())
}

/// Returns whether [`known`] has a schema for the path.
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
        other => integer_type(other)?,
    })
}

/// Returns the schema of a Rust integer type. It has bounds if the format is wider than the type
/// (e.g. `u8` is an `int32` between 0 and 255). There is no 128-bit format.
pub(crate) fn integer_type(name: &str) -> Option<Schema> {
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
        "string::String" | "path::PathBuf" | "path::Path" => text(None),
        "time::Duration" => parts_of_time("secs", "nanos")?,
        "time::SystemTime" => parts_of_time("secs_since_epoch", "nanos_since_epoch")?,
        _ => match rest.strip_prefix("net::") {
            Some(name) => return address_schema(name),
            None => return non_zero(rest.strip_prefix("num::NonZero")?),
        },
    })
}

/// std's times as serialized by serde and described by schemars. Needed for types that derive
/// `JsonSchema`, but new types must [not use them](crate::refused).
fn parts_of_time(seconds: &str, nanoseconds: &str) -> Option<Schema> {
    let properties = [
        (seconds, integer_type("u64")?),
        (nanoseconds, integer_type("u32")?),
    ];
    Some(Schema {
        required: [seconds, nanoseconds].into_iter().map(Arc::from).collect(),
        properties: properties
            .into_iter()
            .map(|(name, schema)| (name.into(), schema.into()))
            .collect(),
        ..of_type(SchemaType::Object)
    })
}

fn non_zero(suffix: &str) -> Option<Schema> {
    let schema = integer_type(&suffix.to_ascii_lowercase())?;
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

/// Kubernetes types by their path below `k8s_openapi`, with the same schemas as in controller-gen.
fn kubernetes(rest: &str) -> Option<Schema> {
    if let Some(name) = rest.strip_prefix("apimachinery::pkg::apis::meta::v1::") {
        return meta(name);
    }
    Some(match rest {
        "ByteString" => text(Some("byte")),
        "apimachinery::pkg::api::resource::Quantity" => Schema {
            pattern: Some(QUANTITY.into()),
            ..int_or_string()
        },
        "apimachinery::pkg::util::intstr::IntOrString" => int_or_string(),
        "apimachinery::pkg::runtime::RawExtension" => any_object(),
        _ => {
            return extensions(rest.strip_prefix("apiextensions_apiserver::pkg::apis::apiextensions::v1::")?);
        }
    })
}

/// The types of JSON schemas. They are recursive, so accept any content of the right type.
fn extensions(name: &str) -> Option<Schema> {
    Some(match name {
        "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => any(),
        "JSONSchemaProps" => any_object(),
        _ => return None,
    })
}

/// Returns whether a schema is the one for `Quantity`.
pub fn is_quantity(schema: &Schema) -> bool {
    schema.int_or_string && schema.pattern.as_deref() == Some(QUANTITY)
}

/// A number with an optional decimal suffix, binary suffix or exponent, e.g. `500m`, `1Gi` or
/// `1e3`.
const QUANTITY: &str = concat!(
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
);

fn meta(name: &str) -> Option<Schema> {
    Some(match name {
        "Time" | "MicroTime" => text(Some("date-time")),
        "Duration" => text(None),
        "ObjectMeta" => of_type(SchemaType::Object),
        "FieldsV1" | "Patch" => any_object(),
        _ => return None,
    })
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
    fn leaf_types_have_fixed_schemas() {
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
}
