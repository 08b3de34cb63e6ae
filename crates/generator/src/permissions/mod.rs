//! Finds the permissions that the code needs.
//!
//! The [calls] of the library and of kube are [followed](follow) in the functions of the packages: the
//! [table] lists what each needs, and the [types](ty) of variables, parameters, fields and
//! results show of which kind. Nothing is guessed: a call whose kind the source does not show is
//! recorded as [`Unseen`].

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
    /// The name of the function.
    pub(crate) place: Place,
    pub(crate) call: String,
    pub(crate) resource: Resource,
    /// The subresource, if any.
    pub(crate) part: Option<String>,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) strength: Strength,
}

impl Need {
    /// Returns the resource as in rules: `deployments` or `deployments/status`.
    pub(crate) fn rule_resource(&self) -> String {
        match &self.part {
            Some(part) => format!("{}/{part}", self.resource.plural),
            None => self.resource.plural.clone(),
        }
    }
}

/// A call that needs permissions for a kind that the source does not show.
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

/// Why it is unknown what a call needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// The type of the object could not be followed.
    Type,
    /// The kind is known only at run time.
    Dynamic,
    /// The kind is declared by another crate.
    Foreign(String),
    /// The call may send any request, or one for another cluster.
    AnyKind,
    /// A client is passed to code that is not followed.
    Passed,
}

/// What the code needs.
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
