//! Without the feature `envtest`, there are no servers for histories.

use crate::history::History;
use crate::run::{Outcome, Setting};
use crate::world::Mask;

/// Fails with the feature to turn on.
pub(crate) fn replay(_: &Setting, _: &History, _: &Outcome, _: &Mask) -> Result<Vec<String>, String> {
    Err("add the feature `envtest` to rbuilder in `[dev-dependencies]`".to_owned())
}
