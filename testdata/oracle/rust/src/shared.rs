//! Types that several APIs use.

use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Part comes from another package.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Part {
    /// Shared is a field of the other package.
    #[kube(validation(max_length = 8))]
    pub shared: String,
    /// Count is another.
    pub count: Option<i32>,
}

/// Common has fields for many parents.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Common {
    /// Owner is who to ask.
    #[serde(default)]
    pub owner: String,
}

/// Name is a name by the rules of the other package.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(min_length = 2))]
pub struct Name(pub String);

/// NameAlias is that name under another.
pub type NameAlias = Name;
