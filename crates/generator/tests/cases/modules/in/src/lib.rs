//! Names come from everywhere: modules, globs, re-exports, aliases, generics.
mod prelude;
mod shared;
#[path = "elsewhere/odd_name.rs"]
mod odd;
mod r#type;
mod inline {
    pub mod further {
        use super::super::shared::Leaf as Renamed;
        use rbuilder::CrdSchema;
        #[derive(CrdSchema)]
        pub struct Inner {
            pub leaf: Renamed,
            pub from_root: crate::odd::Odd,
        }
    }
    pub use self::further::*;
}
#[cfg(feature = "extra")]
mod missing_on_purpose;

use prelude::*;
use std::collections::{BTreeMap as Map, BTreeSet};

/// Optional by its alias.
type Maybe<T> = Option<T>;
type Labels<V = String> = Map<String, V>;

#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Names")]
pub struct NamesSpec {
    pub leaf: Leaf,
    pub inner: inline::Inner,
    pub maybe: Maybe<i32>,
    pub labels: Labels,
    pub counts: Labels<i64>,
    pub page: Page<Leaf>,
    pub pages: Page<Page<i32>>,
    pub boxed: Box<std::sync::Arc<str>>,
    pub set: BTreeSet<String>,
    pub fixed: [i32; 3],
    pub raw: r#type::Type,
    pub absolute: ::std::string::String,
    pub condition: k::apimachinery::pkg::apis::meta::v1::Condition,
    #[cfg(windows)]
    pub windows: NoSuchType,
    #[cfg_attr(unix, serde(rename = "onUnix"))]
    pub on_unix: bool,
    pub shadowed: shadow::Holder,
}

mod shadow {
    /// Not std's.
    #[derive(rbuilder::CrdSchema)]
    pub struct String {
        pub text: std::string::String,
    }
    #[derive(rbuilder::CrdSchema)]
    pub struct Holder {
        pub string: String,
    }
}

#[derive(CrdSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<std::string::String>,
}
