//! A field of every scalar type.

use k8s_openapi::ByteString;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// ScalarSpec says what a Scalar should be.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Scalar",
    namespaced,
    doc = "Scalar has a field of every scalar type."
)]
#[serde(rename_all = "camelCase")]
pub struct ScalarSpec {
    pub truth: bool,
    pub text: String,
    pub letter: char,
    pub int8: i8,
    pub int16: i16,
    pub int32: i32,
    pub int64: i64,
    pub int_size: isize,
    pub uint8: u8,
    pub uint16: u16,
    pub uint32: u32,
    pub uint64: u64,
    pub uint_size: usize,
    pub float32: f32,
    pub float64: f64,
    #[kube(schema_type = "String", validation(format = "byte"))]
    pub bytes: ByteString,
    /// MaybeTruth may be absent.
    pub maybe_truth: Option<bool>,
    /// MaybeText may be absent.
    pub maybe_text: Option<String>,
    pub maybe_int32: Option<i32>,
    pub maybe_int64: Option<i64>,
    pub maybe_uint16: Option<u16>,
    pub maybe_float64: Option<f64>,
    #[kube(schema_type = "Option<String>", validation(format = "byte"))]
    pub maybe_bytes: Option<ByteString>,
    /// FieldDotted has a name with a dot.
    #[serde(rename = "field.dotted")]
    pub field_dotted: String,
    /// NotOnTheWire is for the program only.
    #[serde(skip)]
    pub not_on_the_wire: String,
}
