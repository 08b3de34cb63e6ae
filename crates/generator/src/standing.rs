//! Markers in the source, including those that a run does not read.

use std::ops::Range;
use std::sync::Arc;

use rbuilder_syntax::{MarkKind, RbacRule, Webhook};

/// A marker in the source.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The path of the file, as in [`Sources`](crate::Sources).
    pub path: String,
    /// The bytes of the marker.
    pub range: Range<usize>,
    /// The marker.
    pub marker: StandingMarker,
    /// Why a run may ignore the marker.
    pub reason: LeftOut,
}

/// The content of a marker.
#[derive(Clone, Debug)]
pub enum StandingMarker {
    /// `#[kube(group, version, kind, …)]`, along with `derive(CustomResource)`.
    Kind {
        /// The API group.
        group: String,
        /// The kind.
        kind: String,
        /// The plural, which may be derived from the kind.
        plural: String,
        /// The version.
        version: String,
    },
    /// `#[rbac(…)]`.
    Rule(RbacRule),
    /// `#[webhook(…)]`, with the names of the types in the signature of its handler.
    Webhook(Box<Webhook>, Vec<String>),
    /// A marker that can't be parsed, with the text of its file.
    Hidden(MarkKind, Arc<str>),
}

/// Why a run ignores a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// No `mod` declares the file.
    NoModule,
    /// Disabled by a `cfg`.
    Cfg,
    /// The file isn't part of a selected package.
    NotRead,
    /// The kind is skipped.
    Skipped,
}
