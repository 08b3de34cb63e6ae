//! Locations in source.

/// The source location of a rule or description, for messages. The front end assigns the numbers.
/// Comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// The file.
    pub file: u32,
    /// The span in the file. The front end defines the unit.
    pub span: Option<(u32, u32)>,
}

impl Origin {
    /// Returns this location, or `other` if this one is empty.
    pub fn or(self, other: Origin) -> Origin {
        if self.span.is_some() { self } else { other }
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

impl Eq for Origin {}
