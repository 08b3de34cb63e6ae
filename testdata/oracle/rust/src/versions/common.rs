//! What the versions share.

use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Shared is in every version.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Shared {
    /// Common is a field in every version.
    #[kube(validation(max_length = 16))]
    pub common: String,
}
