//! Status conditions, following the Kubernetes API conventions.
//!
//! [`set`] maintains what clients rely on: one condition per type, and a `lastTransitionTime` that
//! changes only when the status of the condition does.
//!
//! ```
//! use rbuilder::conditions::{self, Status};
//!
//! let mut list = Vec::new();
//! conditions::set(&mut list, conditions::new("Available", Status::True, "AllReplicasReady").message("3 of 3 are ready"));
//! assert!(conditions::is_true(&list, "Available"));
//! ```
//!
//! [`set_health`] reports the health of an object to tools that do not know its kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;

use crate::Error;

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
        last_transition_time: Time(crate::clock::now()),
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

/// The health of an object according to its controller; see [`set_health`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The cluster is in the desired state of the object.
    Ready,
    /// The controller is working on the object, waiting for others, or retrying after an error.
    InProgress,
    /// Retries do not help: the object, or something that it refers to, must be changed.
    Failed,
}

impl Health {
    /// Returns the health of an object whose reconcile failed with this error: `Failed` if the
    /// error is [terminal](Error::terminal), or if the API server rejected an object as malformed
    /// or invalid (400 or 422). Otherwise `InProgress`, because the controller retries.
    pub fn of_error(error: &Error) -> Self {
        if error.is_terminal() || error.is_refused() {
            Self::Failed
        } else {
            Self::InProgress
        }
    }
}

/// Sets the `Ready` condition, and `Stalled` if the object has failed. Returns `true` if the list
/// changed.
///
/// [kstatus] defines these conditions. Flux, kpt and other tools use them to judge objects of any
/// kind, and the Lua scripts that rbuilder scaffolds make Argo CD use them as well:
///
/// | health | `Ready` | `Stalled` | kstatus | Argo CD |
/// |---|---|---|---|---|
/// | [`Ready`](Health::Ready) | `True` | absent | `Current` | `Healthy` |
/// | [`InProgress`](Health::InProgress) | `False` | absent | `InProgress` | `Progressing` |
/// | [`Failed`](Health::Failed) | `False` | `True` | `Failed` | `Degraded` |
///
/// Both conditions carry the reason, the message and the generation of `object`. Tools can only
/// tell that the conditions are missing or belong to an earlier spec if the kind has
/// `status.observedGeneration`, so set that field as well and default it to -1.
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

    /// Calls `set` on a list that contains `before`. Checks whether it changed, the second of the
    /// transition, and the message.
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
        // `Ready` stays the same; only `Stalled` goes away.
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
    fn observed_generation_is_copied_from_the_object() {
        let mut object = ConfigMap::default();
        object.metadata.generation = Some(7);
        assert_eq!(
            Condition::from(new("A", true, "B").observed(&object)).observed_generation,
            Some(7)
        );
    }
}
