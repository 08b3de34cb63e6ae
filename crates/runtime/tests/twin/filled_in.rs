//! Defaults of serde as defaults of the schema. The derive calls the functions that the generator
//! parses.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use k8s_openapi::api::core::v1::{LocalObjectReference, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

const PORT: i32 = 8000 + 80;
const NAME: &str = "main";

/// FilledIn.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "twin.example.com", version = "v1", kind = "FilledIn", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct FilledInSpec {
    pub functions: Functions,
    pub everything: Everything,
    pub whole: Whole,
    pub by_function: ByFunction,
    pub nothing: Nothing,
    pub choice: Choice,
    pub tagged: Tagged,
    pub page: Page<i32>,
    pub counted: Counted,
}

/// Values of functions.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Functions {
    #[serde(default = "port")]
    pub port: i32,
    #[serde(default = "half")]
    pub half: f32,
    #[serde(default = "name")]
    pub name: String,
    #[serde(default = "borrowed")]
    pub borrowed: Cow<'static, str>,
    #[serde(default = "some_name")]
    pub some: Option<String>,
    #[serde(default = "no_name")]
    pub none: Option<String>,
    #[serde(default = "names")]
    pub names: Vec<String>,
    #[serde(default = "Vec::new")]
    pub empty: Vec<i32>,
    #[serde(default = "levels")]
    pub levels: BTreeSet<Level>,
    #[serde(default = "numbers")]
    pub numbers: BTreeSet<i32>,
    #[serde(default = "labels")]
    pub labels: BTreeMap<String, i32>,
    #[serde(default = "level")]
    pub level: Level,
    #[serde(default = "Level::fallback")]
    pub fallback: Level,
    #[serde(default = "retries")]
    pub retries: NonZeroU32,
    #[serde(default = "inner")]
    pub inner: Inner,
    #[serde(default = "wrapped")]
    pub wrapped: Wrapped,
    #[serde(default = "left")]
    pub choice: Choice,
    #[serde(default = "some_tagged")]
    pub tagged: Tagged,
    #[serde(default = "size")]
    pub size: Quantity,
    #[serde(default = "target")]
    pub target: IntOrString,
    #[serde(default = "port", skip_serializing_if = "is_port")]
    pub skipped: i32,
    #[serde(default = "yes", skip_serializing_if = "is_default")]
    pub kept: bool,
    #[kube(validation(minimum = 1))]
    #[serde(default = "nil")]
    pub refused: i32,
    #[kube(default = 5)]
    #[serde(default = "port")]
    pub marked: i32,
    #[schemars(default = "port")]
    #[serde(default)]
    pub shown: i32,
    #[serde(default)]
    pub bare: i32,
}

fn port() -> i32 {
    PORT
}

fn half() -> f32 {
    0.1
}

fn name() -> String {
    NAME.to_owned()
}

fn borrowed() -> Cow<'static, str> {
    Cow::Borrowed(NAME)
}

fn some_name() -> Option<String> {
    Some("other".into())
}

fn no_name() -> Option<String> {
    None
}

fn names() -> Vec<String> {
    vec!["a".to_string(), String::from("b"), name()]
}

fn levels() -> BTreeSet<Level> {
    BTreeSet::from([Level::High])
}

fn numbers() -> BTreeSet<i32> {
    BTreeSet::from([10, 9])
}

fn labels() -> BTreeMap<String, i32> {
    BTreeMap::from([("a".to_owned(), 1)])
}

fn level() -> Level {
    Level::High
}

fn retries() -> NonZeroU32 {
    NonZeroU32::new(3).unwrap()
}

fn inner() -> Inner {
    Inner {
        first: 1,
        ..Inner::default()
    }
}

fn wrapped() -> Wrapped {
    Wrapped(inner())
}

fn left() -> Choice {
    Choice::Left { x: 1, y: 2 }
}

fn some_tagged() -> Tagged {
    Tagged::Some { x: 1 }
}

fn size() -> Quantity {
    Quantity("1Gi".to_owned())
}

fn target() -> IntOrString {
    IntOrString::Int(80)
}

fn yes() -> bool {
    true
}

fn nil() -> i32 {
    0
}

fn is_port(port: &i32) -> bool {
    *port == PORT
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    High,
    #[default]
    Low,
}

impl Level {
    const FALLBACK: Level = Level::High;

    fn fallback() -> Self {
        Self::FALLBACK
    }
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct Inner {
    pub first: i32,
    pub second_name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<i32>,
    #[serde(rename = "renamed")]
    pub text: String,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Wrapped(Inner);

/// All of serde's defaults.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(serde_defaults)]
#[serde(rename_all = "camelCase")]
pub struct Everything {
    #[serde(default)]
    pub integer: i64,
    #[serde(default)]
    pub float: f64,
    #[serde(default)]
    pub flag: bool,
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    pub option: Option<i32>,
    #[serde(default)]
    pub list: Vec<Inner>,
    #[serde(default)]
    pub map: BTreeMap<String, Inner>,
    #[serde(default)]
    pub array: [i32; 2],
    #[serde(default)]
    pub level: Level,
    #[serde(default)]
    pub inner: Inner,
    #[serde(default)]
    pub resources: ResourceRequirements,
    #[serde(default)]
    pub size: Quantity,
    #[serde(default)]
    pub target: IntOrString,
    #[serde(default)]
    pub open: serde_json::Value,
    #[serde(default, skip_serializing)]
    pub input_only: i32,
    #[serde(default, skip_deserializing)]
    pub output_only: i32,
    #[serde(default, flatten)]
    pub flat: Flat,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    #[serde(default)]
    pub reference: Option<LocalObjectReference>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct Flat {
    #[serde(default = "port")]
    pub flat_port: i32,
}

/// The defaults of a whole struct.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(serde_defaults)]
#[serde(default, rename_all = "camelCase")]
pub struct Whole {
    pub first: i32,
    pub r#type: String,
    pub none: Option<i32>,
    #[serde(default = "port")]
    pub own: i32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<i32>,
    pub inner: Inner,
}

impl Default for Whole {
    fn default() -> Self {
        Self {
            first: 1,
            r#type: NAME.into(),
            none: None,
            own: 7,
            list: Vec::new(),
            inner: inner(),
        }
    }
}

/// The same of a function, which needs no marker.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default = "by_function")]
pub struct ByFunction {
    pub first: i32,
    pub second: i32,
}

fn by_function() -> ByFunction {
    ByFunction {
        first: 4,
        ..Default::default()
    }
}

/// None of them.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(serde_defaults = false)]
pub struct Nothing {
    #[serde(default = "port")]
    pub port: i32,
}

/// Variants told apart by a key have defaults.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Choice {
    Left {
        #[serde(default = "port")]
        x: i32,
        y: i32,
    },
    Right(Inner),
}

/// Variants in one object have none.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "type")]
pub enum Tagged {
    Some {
        #[serde(default = "port")]
        x: i32,
    },
    Flat(Flat),
}

/// A type that stands for a parameter need not have a form in JSON.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Page<T> {
    #[serde(default = "Vec::new")]
    pub items: Vec<T>,
    #[serde(default = "port")]
    pub port: i32,
}

/// A rule asks whether a field is set.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(at_most_one_of(a, b))]
pub struct Counted {
    #[serde(default = "some_name")]
    pub a: Option<String>,
    pub b: Option<String>,
}
