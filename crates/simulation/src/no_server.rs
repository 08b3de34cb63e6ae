//! Stub for `on_server` if the feature `envtest` is disabled.

use crate::history::History;
use crate::run::{Outcome, Setting};
use crate::world::Mask;

pub(crate) fn replay(_: &Setting, _: &History, _: &Outcome, _: &Mask) -> Result<Vec<String>, String> {
    Err("add the feature `envtest` to rbuilder in `[dev-dependencies]`".to_owned())
}
