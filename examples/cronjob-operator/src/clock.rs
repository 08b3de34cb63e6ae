// SPDX-License-Identifier: Apache-2.0

//! What time it is, as the controller sees it: tests put another clock in the place of the real one.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Tells the time. Clones tell the same.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that shows what a function says.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time on the clock.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

/// The clock of this machine.
impl Default for Clock {
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
