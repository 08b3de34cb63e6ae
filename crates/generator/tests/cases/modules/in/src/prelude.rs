pub use crate::shared::*; pub use rbuilder::CrdSchema;
