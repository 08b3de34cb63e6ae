//! Doc comments, conditional compilation, and strings that are difficult to print as YAML.

use k8s_openapi::apimachinery::pkg as machinery;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};
use std::collections::btree_map::BTreeMap as Sorted;

use machinery::apis::meta::v1::{self as meta, Time as When};

/// The first line of the kind's words
/// and its second:   with   spaces, `code`, "quotes" and 'more' # no comment.
///
/// A second paragraph.
///
/// - a list
///   - with depth
///
/// ```rust
/// let code = 1;
/// ```
///
/// TODO: never shown?
/// ---
/// after the rule
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "twin.example.com",
    version = "v1alpha1",
    kind = "Documented",
    plural = "documenteds"
)]
#[serde(rename_all(serialize = "camelCase", deserialize = "camelCase"))]
pub struct DocumentedSpec {
    #[doc = "By attribute."]
    #[doc = " Two of them."]
    pub by_attribute: i32,
    /** A block. */
    pub block: i32,
    /**
     * A block of lines,
     * each with its star.
     */
    pub starred: i32,
    /// Ünïcödé — “quotes”, 漢字, 🦀, a tab\there and a back\\slash.
    pub unicode: i32,
    /// A line that is so long that a printer which folds its lines at eighty columns has to fold it somewhere, and here: a colon, and # a hash.
    pub long: i32,
    ///Without a space.
    pub tight: i32,
    ///
    pub empty: i32,
    /// 1.5
    pub like_a_number: i32,
    /// yes
    pub like_a_boolean: i32,
    /// * a star at the start
    pub star: i32,
    #[kube(default = "yes", example = "012")]
    pub risky: String,
    #[kube(validation(pattern = r#"^"'\\?$|^\s*#"#))]
    pub pattern: String,
    #[kube(validation(enum = ["", " ", "null", "~", "0x1f", "1_000", "on", "n", "2001-01-01", "a: b", "- a", "=", "<<"]))]
    pub scalars: Option<String>,
    pub when: When,
    pub meta: meta::MicroTime,
    pub sorted: Sorted<String, machinery::util::intstr::IntOrString>,
    #[cfg(any())]
    pub compiled_out: i32,
    #[cfg(not(any()))]
    pub compiled_in: i32,
    #[cfg_attr(all(), serde(rename = "byCondition"))]
    pub conditional: i32,
    pub variants: Variants,
    pub string: String,
    pub shadowing: shadow::Shadowing,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Variants {
    #[cfg(any())]
    Out,
    #[cfg(any(unix, not(unix)))]
    In,
    /// Kept.
    #[cfg_attr(all(), serde(rename = "renamed"))]
    Kept,
}

/// Names that shadow those of the prelude.
pub mod shadow {
    use rbuilder::CrdSchema;
    use serde::{Deserialize, Serialize};

    /// Not the type of the prelude.
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct Option {
        pub is_a_struct: bool,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct Shadowing {
        pub required: Option,
        pub text: String,
        pub known: std::string::String,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct String {
        pub letters: i32,
    }
}
