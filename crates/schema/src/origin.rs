//! Locations in the source.

/// The source location of a rule or a description, for messages. The numbers are up to the front
/// end, and comparisons ignore them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// The number of the file.
    pub file: u32,
    /// The span in that file, in the front end's unit.
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
