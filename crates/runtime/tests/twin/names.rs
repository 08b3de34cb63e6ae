//! Names and presence as serde decides them, and the paths by which types refer to each other.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

use self::inner::Deep as Renamed;
pub use self::inner::deeper::*;

/// An alias of an option makes a field optional, as the option would.
pub type Maybe<T> = Option<T>;
/// An alias with its own parameter order.
pub type ByName<V, K = String> = BTreeMap<K, V>;
type Words = Vec<String>;
type MaybeWords = Maybe<Words>;

/// Names.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "twin.example.com", version = "v1", kind = "Naming", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct NamingSpec {
    pub http2_url: String,
    pub r#type: String,
    pub _private_part: bool,
    pub trailing_: bool,
    #[serde(rename = "explicitly")]
    pub renamed: bool,
    #[serde(rename(serialize = "same", deserialize = "same"))]
    pub renamed_twice: bool,
    #[serde(default)]
    pub defaulted: i32,
    #[serde(default = "forty")]
    pub computed: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shy: Option<i32>,
    #[serde(skip)]
    pub unseen: Unseen,
    #[serde(skip_deserializing)]
    pub written_only: i32,
    #[serde(skip_serializing, default)]
    pub read_only: i32,
    #[serde(alias = "formerly")]
    pub aliased: i32,
    pub maybe: Maybe<i32>,
    pub maybe_maybe: Maybe<Maybe<i32>>,
    pub words: Words,
    pub maybe_words: MaybeWords,
    pub by_name: ByName<Renamed>,
    pub by_colour: ByName<bool, Colour>,
    pub renamed_type: Renamed,
    pub by_path: super::names::inner::Deep,
    pub by_glob: Deepest,
    pub page: Page<Renamed>,
    pub pages: Page<Page<Maybe<i32>>>,
    pub default_page: Page,
    pub pair: Pair<Colour, Words>,
    pub kebab: Kebab,
    pub screaming: Screaming,
    pub boxed: Box<Renamed>,
    pub maybe_boxed: Option<Box<Colour>>,
    pub relaxed: Relaxed,
    pub port: Port,
    pub wrapped: Wrapped<Colour>,
    pub celsius: Celsius,
    #[serde(flatten)]
    pub near: Near,
    #[serde(flatten)]
    pub far: Option<Far>,
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

fn forty() -> i32 {
    40
}

/// A type without a schema, in a field that is not on the wire.
#[derive(Clone, Debug, Default)]
pub struct Unseen;

/// Hoisted into its parent.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "UPPERCASE")]
pub struct Near {
    /// Documented where it is declared.
    pub near_a: i32,
    pub near_b: Option<i32>,
    #[serde(flatten)]
    pub nearer: Nearer,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(at_most_one_of(one, two))]
pub struct Nearer {
    #[kube(immutable)]
    pub one: Option<String>,
    pub two: Option<String>,
}

/// Hoisted where it is there at all.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation = "self.far < 9")]
pub struct Far {
    pub far: i32,
}

/// All fields may be absent.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default, rename_all = "PascalCase")]
pub struct Relaxed {
    pub first_one: i32,
    #[kube(required)]
    pub second_one: i32,
}

/// A newtype is serialized as its value.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(minimum = 1), example = 80)]
pub struct Port(#[kube(validation(maximum = 1024), title = "A port")] pub u16);

/// Transparent by serde's word.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(transparent)]
pub struct Wrapped<T> {
    /// Not on the wire, for the value takes its place.
    pub value: T,
    #[serde(skip)]
    pub note: std::marker::PhantomData<i32>,
}

/// Read from another type.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(try_from = "String", into = "String")]
pub struct Celsius {
    pub degrees: i32,
}

impl From<String> for Celsius {
    fn from(text: String) -> Self {
        Celsius {
            degrees: text.parse().unwrap_or_default(),
        }
    }
}

impl From<Celsius> for String {
    fn from(celsius: Celsius) -> Self {
        celsius.degrees.to_string()
    }
}

/// A page of anything, of words when nothing else is said.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Page<T = String>
where
    T: Clone,
{
    pub entries: Vec<T>,
    pub first: Option<T>,
}

/// Two parameters.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Pair<A, B> {
    pub left: A,
    pub right: B,
    pub both: BTreeMap<String, B>,
}

/// A colour.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Colour {
    Red,
    #[serde(rename = "verdant")]
    Green,
    #[serde(skip)]
    Invisible,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Kebab {
    /// The first.
    HTTPServer,
    /// The second,
    /// of two lines.
    PlainText,
    Undocumented,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE", rename_all_fields = "snake_case")]
pub enum Screaming {
    FirstOne {
        #[serde(rename = "camelCase")]
        camel_case: i32,
        snake_case: Option<i32>,
    },
    #[serde(rename_all = "camelCase")]
    SecondOne { snake_case: i32 },
}

/// Modules in modules.
pub mod inner {
    use super::{CrdSchema, Deserialize, Maybe, Serialize};

    /// A type one level down.
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct Deep {
        pub colour: super::Colour,
        pub deepest: Maybe<deeper::Deepest>,
        pub beside: self::deeper::Beside,
    }

    pub mod deeper {
        use rbuilder::CrdSchema;
        use serde as s;

        /// Two levels down.
        #[derive(CrdSchema, s::Serialize, s::Deserialize, Clone, Debug)]
        #[serde(crate = "s")]
        pub struct Deepest {
            pub up: super::super::Colour,
        }

        #[derive(CrdSchema, s::Serialize, s::Deserialize, Clone, Debug)]
        pub struct Beside {
            pub size: ::std::primitive::u8,
        }
    }
}

/// The status of a policy.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct PolicyStatus {
    pub size: i32,
}
