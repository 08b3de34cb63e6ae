//! The part of a container that a diagnostic is about.

use rbuilder_diagnostic::Diagnostic;

/// The part of a container that has a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The type as a whole.
    Container,
    /// A field of a struct, by position in [`Shape::Object`](crate::Shape::Object).
    Field(usize),
    /// A variant of an enum, by position.
    Variant(usize),
    /// A field of a variant, by both positions.
    VariantField(usize, usize),
}

/// The name of a marker or constraint in source, such as `default`. `None` if a diagnostic is not
/// about a marker.
pub type MarkerName = Option<&'static str>;

/// The part of a container that a diagnostic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The type, a field or a variant.
    pub site: Site,
    /// The marker, if the diagnostic is about one.
    pub marker: MarkerName,
}

impl From<Site> for Part {
    fn from(site: Site) -> Self {
        Part { site, marker: None }
    }
}

impl Site {
    /// Attaches this site to a diagnostic about one of its markers.
    pub(crate) fn mark(self, diagnostic: Diagnostic<MarkerName>) -> Diagnostic<Part> {
        diagnostic.map_place(|marker| Part { site: self, marker })
    }
}
