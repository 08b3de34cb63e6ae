//! Where something is in the source.

/// Where a rule or a description is in the source, so that messages can point there. The front end
/// chooses the numbers, and comparisons ignore all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// The number of the file.
    pub file: u32,
    /// The span in that file, in whatever unit the front end uses.
    pub span: Option<(u32, u32)>,
}

impl Origin {
    /// Returns this location, or `other` if there is none.
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
