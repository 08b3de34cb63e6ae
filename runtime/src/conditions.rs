//! Status conditions, following the Kubernetes API conventions.
//!
//! [`set`] maintains what clients rely on: one condition per type, and a `lastTransitionTime` that changes only when the
//! status of the condition does.
//!
//! ```
//! use rbuilder::conditions::{self, Status};
//!
//! let mut list = Vec::new();
//! conditions::set(&mut list, conditions::new("Available", Status::True, "AllReplicasReady").message("3 of 3 are ready"));
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
    /// The state of the condition cannot be determined.
    Unknown,
}

impl Status {
    /// Returns the value in the condition's `status` field.
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

/// Builds a condition; see [`new`].
#[derive(Clone, Debug)]
#[must_use = "pass it to `conditions::set`"]
pub struct Builder(Condition);

/// Creates a condition of type `type_` with `lastTransitionTime` set to now. `reason` is one CamelCase word.
///
/// `status` may be a `bool`. The message is empty and the observed generation unset by default.
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
    /// Sets the human-readable message.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Sets `observedGeneration` to the generation of `object`.
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

/// Replaces the condition of the same type, or appends `condition`. Returns `true` if the list changed.
///
/// If the status is unchanged, the previous `lastTransitionTime` is kept.
pub fn set(conditions: &mut Vec<Condition>, condition: impl Into<Condition>) -> bool {
    let mut condition = condition.into();
    let Some(existing) = conditions
        .iter_mut()
        .find(|existing| existing.type_ == condition.type_)
    else {
        conditions.push(condition);
        return true;
    };
    if existing.status == condition.status {
        condition.last_transition_time = existing.last_transition_time.clone();
    }
    let changed = *existing != condition;
    *existing = condition;
    changed
}

/// Removes the condition of this type. Returns `true` if there was one.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// Returns the condition of this type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns `true` if there is a condition of this type with status `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, Status::True)
}

/// Returns `true` if there is a condition of this type with status `False`.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, Status::False)
}

/// Returns `true` if there is a condition of this type with this status.
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

    /// Checks the result of `set` on a list that holds `before`: changed, second of the transition, message.
    fn check(before: Condition, after: Condition, expected: (bool, i64, &str)) {
        let mut conditions = vec![before];
        let changed = set(&mut conditions, after);
        assert_eq!(conditions.len(), 1);
        let second = conditions[0].last_transition_time.0.as_second();
        assert_eq!((changed, second, conditions[0].message.as_str()), expected);
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
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
