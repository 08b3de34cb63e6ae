//! Leaf types from std, serde_json, kube, k8s-openapi and jiff.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::num::{NonZeroI32, NonZeroU8, NonZeroU64};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMapKeySelector, LocalObjectReference, SecretKeySelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use kube::core::ObjectMeta;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Leaves.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "twin.example.com",
    version = "v1",
    kind = "Leaf",
    plural = "leaves",
    namespaced,
    status = "LeafStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct LeafSpec {
    pub numbers: Numbers,
    pub words: Words,
    pub lists: Lists,
    pub maps: Maps,
    pub open: Open,
    pub kubernetes: Kubernetes,
    pub times: Times,
}

/// jiff's.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Times {
    pub timestamp: jiff::Timestamp,
    pub zoned: Option<jiff::Zoned>,
    pub date: jiff::civil::Date,
    pub time: jiff::civil::Time,
    pub date_time: Vec<jiff::civil::DateTime>,
    pub signed: jiff::SignedDuration,
    pub span: jiff::Span,
}

/// Every width.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Numbers {
    pub int_8: i8,
    pub int_16: i16,
    pub int_32: i32,
    pub int_64: i64,
    pub int_size: isize,
    pub unsigned_8: u8,
    pub unsigned_16: u16,
    pub unsigned_32: u32,
    pub unsigned_64: u64,
    pub unsigned_size: usize,
    pub maybe_unsigned_16: Option<u16>,
    pub float: f32,
    pub double: f64,
    pub boolean: bool,
    pub non_zero: NonZeroU8,
    pub non_zero_large: NonZeroU64,
    pub non_zero_signed: NonZeroI32,
    pub maybe_non_zero: Option<NonZeroI32>,
}

/// Texts.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Words {
    pub text: String,
    pub letter: char,
    pub cow: Cow<'static, str>,
    pub boxed: Box<str>,
    pub path: std::path::PathBuf,
    pub v4: std::net::Ipv4Addr,
    pub v6: std::net::Ipv6Addr,
    pub address: std::net::IpAddr,
    pub socket: std::net::SocketAddr,
    pub socket_v4: std::net::SocketAddrV4,
    pub socket_v6: Option<std::net::SocketAddrV6>,
    pub addresses: Vec<std::net::Ipv4Addr>,
    pub sockets: BTreeMap<String, Vec<Option<std::net::SocketAddr>>>,
}

/// Lists.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Lists {
    pub vec: Vec<i32>,
    pub deque: VecDeque<u8>,
    pub slice: Box<[i64]>,
    pub array: [bool; 3],
    pub maybe_array: Option<[u32; 2]>,
    pub tree: BTreeSet<String>,
    pub hash: HashSet<u16>,
    pub objects: BTreeSet<Ordered>,
    pub options: Vec<Option<i32>>,
    pub nested: Vec<Vec<Vec<String>>>,
    pub maybe: Option<Vec<Ordered>>,
}

/// An object that has an order.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ordered {
    pub key: String,
}

/// Maps.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Maps {
    pub tree: BTreeMap<String, i32>,
    pub hash: HashMap<String, Ordered>,
    pub numbers: BTreeMap<u32, String>,
    pub letters: BTreeMap<char, String>,
    pub options: BTreeMap<String, Option<String>>,
    pub nested: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    pub any: BTreeMap<String, Value>,
    pub maybe: Option<HashMap<String, bool>>,
}

/// Content of any form.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Open {
    /// Anything.
    pub value: Value,
    pub maybe_value: Option<Value>,
    pub map: Map<String, Value>,
    pub values: Vec<Value>,
    pub number: serde_json::Number,
}

/// Kubernetes' own.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Kubernetes {
    /// An amount.
    pub quantity: Quantity,
    pub maybe_quantity: Option<Quantity>,
    pub quantities: BTreeMap<String, Quantity>,
    pub port: IntOrString,
    pub maybe_port: Option<IntOrString>,
    pub time: metav1::Time,
    pub maybe_time: Option<metav1::Time>,
    pub micro_time: metav1::MicroTime,
    pub maybe_duration: Option<kube::core::Duration>,
    pub bytes: ByteString,
    #[kube(schema_type = "String", validation(format = "byte"))]
    pub base64: ByteString,
    pub metadata: Option<ObjectMeta>,
    pub template: metav1::ObjectMeta,
    pub raw: RawExtension,
    pub selector: metav1::LabelSelector,
    /// With words of its own.
    pub maybe_selector: Option<metav1::LabelSelector>,
    pub requirement: metav1::LabelSelectorRequirement,
    pub pull_secrets: Vec<LocalObjectReference>,
    pub secret: SecretKeySelector,
    pub config: Option<ConfigMapKeySelector>,
}

/// The status.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct LeafStatus {
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default)]
    pub conditions: Vec<metav1::Condition>,
    pub observed_generation: Option<i64>,
}
