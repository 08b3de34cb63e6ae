//! Conditions in a status: the list that says how an object is doing, one entry per type.
//!
//! [`set`] keeps the rules that readers of conditions count on: one condition per type, and a
//! `lastTransitionTime` that moves only when the status does.
//!
//! ```
//! use rbuilder::conditions::{self, Status};
//!
//! let mut list = Vec::new();
//! conditions::set(&mut list, conditions::new("Available", Status::True, "Reconciled").message("3 of 3 are up"));
//! assert!(conditions::is_true(&list, "Available"));
//! ```

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Nothing is known yet.
    Unknown,
}

impl Status {
    /// As it stands in the object.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A condition in the making; see [`new`].
#[derive(Clone, Debug)]
#[must_use = "hand it to `conditions::set`"]
pub struct Builder(Condition);

/// A condition of type `type_` that became `status` now, because of `reason` (one CamelCase word).
///
/// `status` may be a `bool`. The message is empty and the observed generation absent until said.
pub fn new(type_: impl Into<String>, status: impl Into<Status>, reason: impl Into<String>) -> Builder {
    Builder(Condition {
        type_: type_.into(),
        status: status.into().as_str().to_owned(),
        reason: reason.into(),
        message: String::new(),
        last_transition_time: Time(k8s_openapi::jiff::Timestamp::now()),
        observed_generation: None,
    })
}

impl Builder {
    /// What a person should know.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// The condition was made looking at this generation of `object`.
    pub fn observed(mut self, object: &impl Resource) -> Self {
        self.0.observed_generation = object.meta().generation;
        self
    }
}

impl From<Builder> for Condition {
    fn from(builder: Builder) -> Self {
        builder.0
    }
}

/// Puts `condition` in place of the one of the same type, or at the end.
///
/// Where the status stays, so does the earlier `lastTransitionTime`. Returns whether anything changed.
pub fn set(conditions: &mut Vec<Condition>, condition: impl Into<Condition>) -> bool {
    let mut condition = condition.into();
    let Some(present) = conditions
        .iter_mut()
        .find(|present| present.type_ == condition.type_)
    else {
        conditions.push(condition);
        return true;
    };
    if present.status == condition.status {
        condition.last_transition_time = present.last_transition_time.clone();
    }
    let changed = *present != condition;
    *present = condition;
    changed
}

/// Takes the condition of this type out. Returns whether there was one.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// The condition of this type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether there is a condition of this type, and it is `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, Status::True)
}

/// Whether there is a condition of this type, and it is `False`.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, Status::False)
}

/// Whether there is a condition of this type, and it has this status.
pub fn has_status(conditions: &[Condition], type_: &str, status: Status) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == status.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::jiff::Timestamp;

    fn at(second: i64, builder: Builder) -> Condition {
        Condition {
            last_transition_time: Time(Timestamp::from_second(second).unwrap()),
            ..builder.into()
        }
    }

    fn available(second: i64, status: Status, message: &str) -> Condition {
        at(second, new("Available", status, "Reconciling").message(message))
    }

    /// What `set` makes of a list that holds `before`: changed?, transition second, message.
    fn check(before: Condition, after: Condition, expected: (bool, i64, &str)) {
        let mut conditions = vec![before];
        let changed = set(&mut conditions, after);
        assert_eq!(conditions.len(), 1);
        let second = conditions[0].last_transition_time.0.as_second();
        assert_eq!((changed, second, conditions[0].message.as_str()), expected);
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        use Status::{True, Unknown};
        check(available(1, True, "a"), available(2, True, "a"), (false, 1, "a"));
        check(available(1, True, "a"), available(2, True, "b"), (true, 1, "b"));
        check(
            available(1, Unknown, "a"),
            available(2, True, "a"),
            (true, 2, "a"),
        );
    }

    #[test]
    fn one_condition_per_type() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, new("Available", true, "Up")));
        assert!(set(&mut conditions, new("Degraded", false, "Up")));
        assert!(set(&mut conditions, new("Available", Status::Unknown, "Lost")));
        let types: Vec<_> = conditions
            .iter()
            .map(|condition| condition.type_.as_str())
            .collect();
        assert_eq!(types, ["Available", "Degraded"]);
        assert!(!is_true(&conditions, "Available") && !is_false(&conditions, "Available"));
        assert!(is_false(&conditions, "Degraded"));
        assert!(remove(&mut conditions, "Degraded") && !remove(&mut conditions, "Degraded"));
        assert_eq!(find(&conditions, "Degraded"), None);
    }

    #[test]
    fn the_observed_generation_is_the_objects() {
        let mut object = ConfigMap::default();
        object.metadata.generation = Some(7);
        assert_eq!(
            Condition::from(new("A", true, "B").observed(&object)).observed_generation,
            Some(7)
        );
    }
}
