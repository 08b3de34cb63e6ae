//! Enums of names, and with data: by key, by tag, untagged.
use rbuilder::CrdSchema;

#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Enums")]
#[serde(rename_all = "camelCase")]
pub struct EnumsSpec {
    pub names: Names,
    pub external: External,
    pub internal: Internal,
    pub untagged: Untagged,
    pub maybe: Option<Names>,
    pub many: Vec<Names>,
}

/// A name, and nothing else.
#[derive(CrdSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// The first.
    FirstName,
    #[serde(rename = "2nd")]
    Second,
    #[serde(skip)]
    Hidden,
}

/// The variant's name is the only key.
#[derive(CrdSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum External {
    OneField { text: String },
    SomeFields { how_many: i32, why: Option<String> },
}

/// The variant's name is in a field beside its own.
#[derive(CrdSchema)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Internal {
    Empty,
    Full { big_number: i64 },
}

/// Only the content.
#[derive(CrdSchema)]
#[serde(untagged)]
pub enum Untagged {
    Left { left: String },
    Right { right: i32 },
}
