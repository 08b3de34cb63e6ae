//! Finds the permissions that the code needs.
//!
//! The functions of the packages are [followed](follow) through their [calls] of the library and
//! kube. A [table] lists the permissions that each call needs, and the [types](ty) of variables,
//! parameters, fields and results determine the kind. Nothing is guessed: if the source does not
//! determine the kind of a call, the call is recorded as [`Unseen`].

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

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Resource {
    /// `""` for the core group.
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) is_namespaced: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    pub(crate) place: Place,
    pub(crate) call: String,
    pub(crate) resource: Resource,
    pub(crate) part: Option<String>,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) strength: Strength,
}

impl Need {
    /// Formats the resource as in rules, e.g. `deployments/status`.
    pub(crate) fn rule_resource(&self) -> String {
        match &self.part {
            Some(part) => format!("{}/{part}", self.resource.plural),
            None => self.resource.plural.clone(),
        }
    }
}

/// A call that needs permissions, but for a kind that the source doesn't determine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unseen {
    pub(crate) place: Place,
    pub(crate) call: String,
    /// Set if only the verbs are unknown.
    pub(crate) resource: Option<Resource>,
    /// Empty if the verbs are unknown.
    pub(crate) verbs: &'static [&'static str],
    pub(crate) why: Why,
}

/// Why the permissions that a call needs are unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// The type of the object couldn't be followed.
    Type,
    Dynamic,
    /// The kind is declared in another crate.
    Foreign(String),
    /// The call may send any request, or send it to another cluster.
    AnyKind,
    /// The call passes a client to code that isn't followed.
    Passed,
}

#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(crate) known: Vec<Need>,
    pub(crate) unseen: Vec<Unseen>,
}

impl Needs {
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.unseen.is_empty()
    }
}
