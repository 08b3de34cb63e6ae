//! Comments of every form.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Spec is what is wanted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Doc",
    namespaced,
    status = "DocStatus",
    doc = "Doc has comments of every form.\nA second line.\n\nA second paragraph."
)]
#[serde(rename_all = "camelCase")]
pub struct DocSpec {
    /// One line.
    pub one_line: String,
    /// Two lines,
    /// joined by a line end.
    pub two_lines: String,
    /// Two paragraphs.
    ///
    /// With an empty line between.
    pub paragraphs: String,
    /// Kept.
    /// TODO: not for readers.
    /// Kept too.
    pub todo: String,
    /// Kept.
    /// ---
    /// Not kept.
    pub rule: String,
    /// A fence:
    /// ```
    /// TODO stays here
    /// --- and so does this
    /// ```
    /// after it.
    pub fence: String,
    /// ~~~
    /// TODO stays here too
    /// ~~~
    pub tilde_fence: String,
    /// A list:
    ///   - one
    ///   - two
    ///     more of two
    pub list: String,
    /** A block comment. */
    pub block: String,
    /**
       A block comment
       of two lines.
    */
    pub block_lines: String,
    /// It has: a colon, a "quote", a #hash and a 'quote'.
    pub punctuation: String,
    /// Ünïcödé — 漢字 🦀.
    pub unicode: String,
    /// A long line, longer than the eighty columns after which a printer of YAML folds it if it is plain text without a line end.
    pub long: String,
    /// The marker is not part of it.
    #[kube(optional)]
    /// What follows it is.
    #[serde(default)]
    pub around_marker: String,
    pub undescribed: Described,
    /// The field's own words.
    pub own: Described,
    pub undescribed_text: DescribedText,
    pub undescribed_list: Vec<Described>,
    pub undescribed_map: BTreeMap<String, Described>,
    /// The list's own words.
    pub own_list: Vec<Described>,
    pub nothing: String,
}

/// Described has words.
///
/// And more of them.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Described {
    /// A is a field.
    pub a: i32,
}

/// DescribedText has words.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct DescribedText(pub String);

/// Status is what is there.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct DocStatus {
    /// Phase is a word.
    pub phase: Option<String>,
}
