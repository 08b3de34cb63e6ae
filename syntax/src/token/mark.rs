//! Marker tokens: what a reader must not miss, wherever it stands.

/// A token that a reader must not miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What it marks.
    pub kind: MarkKind,
    /// Its first byte.
    pub at: u32,
    /// Whether it stands in the body of a function.
    pub in_body: bool,
}

/// The sorts of marker tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// `CustomResource` in a `derive(…)`.
    Kind,
    /// `rbac(…)` in an attribute.
    Rbac,
    /// `webhook(…)` in an attribute.
    Webhook,
}

/// Attributes that count as marks: a name in an attribute with arguments behind it.
const ATTRIBUTES: &[(&str, MarkKind)] = &[("rbac", MarkKind::Rbac), ("webhook", MarkKind::Webhook)];

impl MarkKind {
    /// The word itself.
    pub fn word(self) -> &'static str {
        match self {
            MarkKind::Kind => "CustomResource",
            MarkKind::Rbac => "rbac",
            MarkKind::Webhook => "webhook",
        }
    }

    /// The mark that a word in an attribute makes, where arguments follow it.
    pub(super) fn of_attribute(word: &str) -> Option<MarkKind> {
        ATTRIBUTES
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, kind)| *kind)
    }
}
