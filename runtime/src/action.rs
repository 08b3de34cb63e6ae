//! What a reconciler asks for when it is done.

use std::time::Duration;

/// When to look at the object again.
///
/// The constructors are those of [`kube::runtime::controller::Action`], whose content only kube's own
/// controller can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Look again after `delay`, or earlier when something changes.
    #[must_use]
    pub const fn requeue(delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
        }
    }

    /// Look again when the object, or anything the controller watches for it, changes.
    #[must_use]
    pub const fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// The delay given to [`Action::requeue`].
    #[must_use]
    pub const fn requeue_after(&self) -> Option<Duration> {
        self.requeue_after
    }
}
