//! Finds the permissions that the code needs.
//!
//! We [follow] the [calls] of the library and kube in the functions of the packages. A [table]
//! lists the permissions that each call needs, and the [types](ty) of variables, parameters, fields
//! and results tell us the kind. We never guess: if the source does not determine the kind of a
//! call, we record it as [`Unseen`].

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

/// A call that needs permissions, but the source doesn't tell for which kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unseen {
    pub(crate) place: Place,
    pub(crate) call: String,
    /// The resource, if it's only the verbs that we don't know.
    pub(crate) resource: Option<Resource>,
    /// Empty if we don't know the verbs.
    pub(crate) verbs: &'static [&'static str],
    pub(crate) why: Why,
}

/// Why we don't know which permissions a call needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// We could not follow the type of the object.
    Type,
    Dynamic,
    /// Another crate declares the kind.
    Foreign(String),
    /// The call may send any request, or send it to another cluster.
    AnyKind,
    /// It passes a client to code that we don't follow.
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
