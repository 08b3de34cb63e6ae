//! Finds the permissions that the code needs.
//!
//! The [calls] of the library and kube are [followed](follow) in the packages' functions: the
//! [table] lists the permissions that each call needs, and the [types](ty) of variables,
//! parameters, fields and results determine the kind. Nothing is guessed: a call whose kind cannot
//! be determined from the source is recorded as [`Unseen`].

mod calls;
mod follow;
mod functions;
mod needs;
mod pattern;
mod table;
mod ty;

use crate::place::Place;

pub(crate) use needs::find_needs;
pub(crate) use table::{ALL as REQUEST_VERBS, Strength};

/// A resource of the API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Resource {
    /// `""` for the core group.
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) is_namespaced: bool,
}

/// Permissions that a call needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    /// The place of the function's name.
    pub(crate) place: Place,
    pub(crate) call: String,
    pub(crate) resource: Resource,
    /// The subresource, if any.
    pub(crate) part: Option<String>,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) strength: Strength,
}

impl Need {
    /// Formats the resource as in rules: `deployments` or `deployments/status`.
    pub(crate) fn rule_resource(&self) -> String {
        match &self.part {
            Some(part) => format!("{}/{part}", self.resource.plural),
            None => self.resource.plural.clone(),
        }
    }
}

/// A call that needs permissions for a kind that cannot be determined from the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unseen {
    pub(crate) place: Place,
    pub(crate) call: String,
    /// The resource, if only the verbs are unknown.
    pub(crate) resource: Option<Resource>,
    /// The verbs; empty if they are unknown.
    pub(crate) verbs: &'static [&'static str],
    /// Why the kind is unknown.
    pub(crate) why: Why,
}

/// Why the permissions needed by a call are unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// The type of the object could not be followed.
    Type,
    /// The kind is only known at run time.
    Dynamic,
    /// The kind is declared by another crate.
    Foreign(String),
    /// The call may send any request, or a request to another cluster.
    AnyKind,
    /// A client is passed to code that is not followed.
    Passed,
}

/// The permissions that the code needs.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Sorted by place.
    pub(crate) known: Vec<Need>,
    pub(crate) unseen: Vec<Unseen>,
}

impl Needs {
    /// Returns true if the code sends no requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.unseen.is_empty()
    }
}
