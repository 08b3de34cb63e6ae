//! The result of a successful reconcile.

use std::time::Duration;

/// Decides when an object is reconciled again after a successful reconcile.
///
/// The constructors mirror [`kube::runtime::controller::Action`], whose fields are private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Requeues the object after `delay`. A change to the object or to a watched object triggers an
    /// earlier reconcile.
    #[must_use]
    pub const fn requeue(delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
        }
    }

    /// Waits for the next change to the object or to anything the controller watches for it.
    #[must_use]
    pub const fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// The delay passed to [`Action::requeue`]; `None` for [`Action::await_change`].
    #[must_use]
    pub const fn requeue_after(&self) -> Option<Duration> {
        self.requeue_after
    }
}
