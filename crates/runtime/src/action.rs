//! What to do after a successful reconcile.

use std::time::Duration;

/// What to do after an object was reconciled successfully.
///
/// We cannot use [`kube::runtime::controller::Action`] because its fields are private. The
/// constructors have the same names, though.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Reconciles the object again after `delay`, or earlier if the object or one of the watched
    /// objects changes before that.
    #[must_use]
    pub const fn requeue(delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
        }
    }

    /// Doesn't requeue the object. It is reconciled again once it changes, or anything that the
    /// controller watches on its behalf.
    #[must_use]
    pub const fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// Returns the delay passed to [`Action::requeue`], or `None` for [`Action::await_change`].
    #[must_use]
    pub const fn requeue_after(&self) -> Option<Duration> {
        self.requeue_after
    }
}
