//! What rbuilder scaffolds.

mod context;

pub use context::{ApiContext, ProjectContext};
