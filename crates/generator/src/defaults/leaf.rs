//! Values of types that are a single value in JSON.

use serde_json::{Map, Number, Value};

use crate::package::Package;
use crate::resolve::Ty;

/// Longer arrays aren't filled with the default of their type.
const MAX_ARRAY: u64 = 64;

const QUANTITY: &str = "k8s_openapi::apimachinery::pkg::api::resource::Quantity";
const INT_OR_STRING: &str = "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString";

/// The known types that have literals.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Bool,
    Integer,
    /// 32 or 64 bits.
    Float(u8),
    Char,
    Text,
}

fn sort_of(ty: &Ty) -> Option<Sort> {
    let Ty::Known(path) = ty else { return None };
    Some(match path.as_str() {
        "bool" => Sort::Bool,
        "char" => Sort::Char,
        "f32" => Sort::Float(32),
        "f64" => Sort::Float(64),
        "str" | "std::string::String" | "std::path::PathBuf" | "std::path::Path" => Sort::Text,
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" => Sort::Integer,
        _ => return None,
    })
}

pub(super) fn is_non_zero(ty: &Ty) -> bool {
    matches!(ty, Ty::Known(path) if path.starts_with("std::num::NonZero"))
}

pub(super) fn is_text(ty: &Ty) -> bool {
    sort_of(ty) == Some(Sort::Text)
}

pub(super) fn is_quantity(ty: &Ty) -> bool {
    matches!(ty, Ty::Known(path) if path == QUANTITY)
}

pub(super) fn is_int_or_string(ty: &Ty) -> bool {
    matches!(ty, Ty::Known(path) if path == INT_OR_STRING)
}

pub(super) fn literal(value: &Value, ty: &Ty) -> Option<Value> {
    let fits = match sort_of(ty)? {
        Sort::Bool => value.is_boolean(),
        Sort::Integer => value.is_i64() || value.is_u64(),
        Sort::Float(bits) => return float(value.as_f64()?, bits),
        Sort::Char | Sort::Text => value.is_string(),
    };
    fits.then(|| value.clone())
}

/// serde_json widens an `f32` to `f64`, so `0.1_f32` becomes 0.10000000149011612.
#[allow(clippy::cast_possible_truncation)] // rustc rounds the literal in the same way
fn float(number: f64, bits: u8) -> Option<Value> {
    let number = if bits == 32 {
        f64::from(number as f32)
    } else {
        number
    };
    Number::from_f64(number).map(Value::Number)
}

/// Returns the `Default` of a type from outside our packages.
pub(super) fn zero(ty: &Ty, package: &Package) -> Option<Value> {
    Some(match ty {
        Ty::Option(_) => Value::Null,
        Ty::List(_) | Ty::Set(_) => Value::Array(Vec::new()),
        Ty::Map(..) => Value::Object(Map::new()),
        Ty::Array(item, length) if *length <= MAX_ARRAY => {
            let item = zero(item, package)?;
            let length = usize::try_from(*length).ok()?;
            Value::Array(vec![item; length])
        }
        Ty::Array(..) | Ty::Item(..) | Ty::Written(..) | Ty::Root(_) => return None,
        Ty::Known(path) => return zero_of_known(ty, path),
        Ty::Kubernetes(path) => return zero_of_kubernetes(path, package),
    })
}

fn zero_of_known(ty: &Ty, path: &str) -> Option<Value> {
    if let Some(sort) = sort_of(ty) {
        return match sort {
            Sort::Bool => Some(false.into()),
            Sort::Integer => Some(0.into()),
            Sort::Float(bits) => float(0.0, bits),
            Sort::Char => Some("\0".into()),
            Sort::Text => Some("".into()),
        };
    }
    match path {
        QUANTITY | "k8s_openapi::ByteString" => Some("".into()),
        INT_OR_STRING => Some(0.into()),
        "serde_json::Value" => Some(Value::Null),
        "serde_json::Map" | "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta" => {
            Some(Value::Object(Map::new()))
        }
        _ => None,
    }
}

/// Returns an empty object if all fields of the type are optional. Required fields are serialized
/// even if they are empty, so their values would have to be known.
fn zero_of_kubernetes(path: &str, package: &Package) -> Option<Value> {
    let schema = package.kubernetes.schema(path)?;
    let is_optional = schema.required.is_empty()
        && !schema.properties.is_empty()
        && schema.properties.values().all(|field| field.default.is_none());
    is_optional.then(|| Value::Object(Map::new()))
}
