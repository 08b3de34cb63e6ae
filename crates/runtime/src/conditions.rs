//! Helpers for status conditions, which follow the Kubernetes API conventions.
//!
//! Clients rely on two properties that [`set`] ensures: there is at most one condition per type,
//! and `lastTransitionTime` is only updated if the condition's status changes.
//!
//! ```
//! use rbuilder::conditions::{self, Status};
//!
//! let mut list = Vec::new();
//! conditions::set(&mut list, conditions::new("Available", Status::True, "AllReplicasReady").message("3 of 3 are ready"));
//! assert!(conditions::is_true(&list, "Available"));
//! ```
//!
//! Use [`set_health`] if you want generic tools to determine the health of your objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;

use crate::Error;
use crate::causes::is_refused;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Condition status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition is met.
    True,
    /// The condition is not met.
    False,
    /// It's unknown whether the condition is met.
    Unknown,
}

impl Status {
    /// Returns the string that's used in the `status` field of a condition.
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

/// Builder for a condition. Created with [`new`].
#[derive(Clone, Debug)]
#[must_use = "pass it to `conditions::set`"]
pub struct Builder(Condition);

/// Creates a condition whose `lastTransitionTime` is the current time.
///
/// `status` can also be a `bool`. `reason` should be a single CamelCase word. By default, the
/// message is empty and there is no `observedGeneration`.
pub fn new(type_: impl Into<String>, status: impl Into<Status>, reason: impl Into<String>) -> Builder {
    Builder(Condition {
        type_: type_.into(),
        status: status.into().as_str().to_owned(),
        reason: reason.into(),
        message: String::new(),
        last_transition_time: Time(crate::clock::now()),
        observed_generation: None,
    })
}

impl Builder {
    /// Sets the message, which should be human-readable.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Sets `observedGeneration` to the generation of the given object.
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

/// Adds a condition, replacing any existing one of the same type. Returns `true` if this changed
/// the list.
///
/// The existing `lastTransitionTime` is preserved if the status stays the same.
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

/// Health of an object as determined by its controller. See [`set_health`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The current state matches the spec.
    Ready,
    /// The controller is still reconciling the object. This includes waiting for something, and
    /// retrying after an error.
    InProgress,
    /// Retrying won't help until the object changes, or something that it refers to.
    Failed,
}

impl Health {
    /// Returns the health of an object after its reconcile failed with `error`, which is an
    /// [`Error`] or any other error, such as a [`kube::Error`] or the operator's own.
    ///
    /// It is `Failed` if the error is [terminal](Error::terminal), or if the API server rejected an
    /// object as malformed or invalid (400 or 422), also if that is the cause of another error.
    /// Otherwise, the controller will retry, so it is `InProgress`.
    pub fn of_error<E: AsFailure>(error: &E) -> Self {
        match error.is_final() {
            true => Self::Failed,
            false => Self::InProgress,
        }
    }
}

/// An error from which [`Health::of_error`] determines the health of an object: an [`Error`], or any
/// type that implements `std::error::Error`. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error",
    note = "`anyhow::Error` and boxed errors can be converted with `rbuilder::Error::new(error)`"
)]
pub trait AsFailure: sealed::Sealed {
    /// Whether retrying won't help.
    #[doc(hidden)]
    fn is_final(&self) -> bool;
}

impl AsFailure for Error {
    fn is_final(&self) -> bool {
        self.is_terminal() || self.is_refused()
    }
}

impl AsFailure for &Error {
    fn is_final(&self) -> bool {
        (*self).is_final()
    }
}

#[diagnostic::do_not_recommend]
impl<E: std::error::Error + 'static> AsFailure for E {
    fn is_final(&self) -> bool {
        is_refused(self)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Error {}
    impl Sealed for &crate::Error {}
    impl<E: std::error::Error + 'static> Sealed for E {}
}

/// Sets the condition `Ready`, and also `Stalled` if the object has failed. Returns `true` if this
/// changed the list.
///
/// These conditions are defined by [kstatus]. Flux, kpt and others use them to determine the health
/// of arbitrary objects, and so does Argo CD with the Lua scripts that rbuilder scaffolds:
///
/// | health | `Ready` | `Stalled` | kstatus | Argo CD |
/// |---|---|---|---|---|
/// | [`Ready`](Health::Ready) | `True` | absent | `Current` | `Healthy` |
/// | [`InProgress`](Health::InProgress) | `False` | absent | `InProgress` | `Progressing` |
/// | [`Failed`](Health::Failed) | `False` | `True` | `Failed` | `Degraded` |
///
/// Both conditions get the reason, the message, and the generation of `object`. The status should
/// also have a field `observedGeneration` that defaults to -1. Without it, tools can't tell that
/// the conditions are missing, or that they're about an older version of the spec.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use rbuilder::conditions::{self, Health};
///
/// let (object, mut list) = (ConfigMap::default(), Vec::new());
/// conditions::set_health(&mut list, &object, Health::Failed, "InvalidSchedule", "the schedule has 4 fields");
/// assert!(conditions::is_false(&list, "Ready") && conditions::is_true(&list, "Stalled"));
/// conditions::set_health(&mut list, &object, Health::Ready, "Scheduled", "");
/// assert!(conditions::is_true(&list, "Ready") && conditions::find(&list, "Stalled").is_none());
/// ```
///
/// [kstatus]: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
pub fn set_health(
    conditions: &mut Vec<Condition>,
    object: &impl Resource,
    health: Health,
    reason: impl Into<String>,
    message: impl Into<String>,
) -> bool {
    let ready = new("Ready", health == Health::Ready, reason)
        .message(message)
        .observed(object);
    let stalled = match health {
        Health::Failed => {
            let Condition { reason, message, .. } = ready.0.clone();
            let stalled = new("Stalled", true, reason).message(message);
            set(conditions, stalled.observed(object))
        }
        Health::Ready | Health::InProgress => remove(conditions, "Stalled"),
    };
    set(conditions, ready) || stalled
}

/// Removes the condition of the given type. Returns `true` if there was one.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// Finds the condition of the given type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns `true` if the condition of the given type exists and is `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, Status::True)
}

/// Returns `true` if the condition of the given type exists and is `False`.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, Status::False)
}

/// Returns `true` if the condition of the given type exists and has the given status.
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

    /// Calls `set` on a list that consists of `before`. `expected` is whether the list changes, the
    /// seconds of the transition time, and the message.
    fn check(before: Condition, after: Condition, expected: (bool, i64, &str)) {
        let mut conditions = vec![before];
        let changed = set(&mut conditions, after);
        assert_eq!(conditions.len(), 1);
        let second = conditions[0].last_transition_time.0.as_second();
        assert_eq!((changed, second, conditions[0].message.as_str()), expected);
    }

    #[test]
    fn transition_time_changes_only_with_the_status() {
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
    fn set_keeps_one_condition_per_type() {
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
    fn health_sets_ready_and_stalled() {
        let mut object = ConfigMap::default();
        object.metadata.generation = Some(7);
        let mut conditions = vec![Condition::from(new("Available", true, "Up"))];
        let mut check = |health, expected: &[(&str, &str)]| {
            let changed = set_health(&mut conditions, &object, health, "Reason", "message");
            let of_health = &conditions[1..];
            let found: Vec<_> = of_health.iter().map(|it| (&*it.type_, &*it.status)).collect();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(sorted(found), expected, "{health:?}");
            for condition in of_health {
                let text = (condition.reason.as_str(), condition.message.as_str());
                assert_eq!(
                    (text, condition.observed_generation),
                    (("Reason", "message"), Some(7))
                );
            }
            changed
        };
        assert!(check(Health::InProgress, &[("Ready", "False")]));
        assert!(check(Health::Failed, &[("Ready", "False"), ("Stalled", "True")]));
        assert!(!check(Health::Failed, &[("Ready", "False"), ("Stalled", "True")]));
        // `Ready` stays the same, so only `Stalled` makes a difference.
        assert!(check(Health::InProgress, &[("Ready", "False")]));
        assert!(check(Health::Ready, &[("Ready", "True")]));
    }

    fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
        items.sort_unstable();
        items
    }

    #[test]
    fn retryable_error_counts_as_in_progress() {
        let answered = |code: u16| {
            let status = kube::core::Status::failure("no", "No").with_code(code);
            Error::new(kube::Error::Api(status.boxed()))
        };
        for (error, expected) in [
            (answered(400), Health::Failed),
            (answered(422), Health::Failed),
            (answered(403), Health::InProgress),
            (answered(409), Health::InProgress),
            (answered(503), Health::InProgress),
            (Error::new("the database does not answer"), Health::InProgress),
            (Error::terminal("the schedule has 4 fields"), Health::Failed),
        ] {
            assert_eq!(Health::of_error(&error), expected, "{error}");
        }
    }

    #[test]
    fn health_of_other_errors_depends_on_their_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot scale")]
        struct Failed(#[source] kube::Error);
        let answered = |code: u16| {
            let status = kube::core::Status::failure("no", "No").with_code(code);
            kube::Error::Api(status.boxed())
        };
        assert_eq!(Health::of_error(&answered(422)), Health::Failed);
        assert_eq!(Health::of_error(&answered(503)), Health::InProgress);
        assert_eq!(Health::of_error(&Failed(answered(422))), Health::Failed);
        assert_eq!(Health::of_error(&Failed(answered(409))), Health::InProgress);
    }

    #[test]
    fn observed_generation_is_copied_from_the_object() {
        let mut object = ConfigMap::default();
        object.metadata.generation = Some(7);
        assert_eq!(
            Condition::from(new("A", true, "B").observed(&object)).observed_generation,
            Some(7)
        );
    }
}
