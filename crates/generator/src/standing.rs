//! Markers that are in the source, even if a run does not read them.

use std::ops::Range;
use std::sync::Arc;

use rbuilder_syntax::{MarkKind, RbacRule, Webhook};

/// A marker in source code.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The path of the file, as in [`Sources`](crate::Sources).
    pub path: String,
    /// The byte range of the marker.
    pub range: Range<usize>,
    /// The marker.
    pub marker: StandingMarker,
    /// Why a run may ignore the marker.
    pub reason: LeftOut,
}

/// The content of a marker.
#[derive(Clone, Debug)]
pub enum StandingMarker {
    /// `#[kube(group, version, kind, …)]` under `derive(CustomResource)`.
    Kind {
        /// The API group.
        group: String,
        /// The kind.
        kind: String,
        /// The plural, as written or derived.
        plural: String,
        /// The version.
        version: String,
    },
    /// `#[rbac(…)]`.
    Rule(RbacRule),
    /// `#[webhook(…)]`, with the names of the types in its handler's signature.
    Webhook(Box<Webhook>, Vec<String>),
    /// A marker that cannot be parsed, with the text of its file.
    Hidden(MarkKind, Arc<str>),
}

/// Why a run ignores a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// No `mod` declares the file.
    NoModule,
    /// A `cfg` disables it.
    Cfg,
    /// The file does not belong to a selected package.
    NotRead,
    /// The kind is skipped.
    Skipped,
}
