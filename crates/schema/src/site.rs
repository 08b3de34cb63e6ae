//! The part of a container that a diagnostic refers to.

use rbuilder_diagnostic::Diagnostic;

/// The part of a container that has a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The type as a whole.
    Container,
    /// A field of a struct, by its index in [`Shape::Object`](crate::Shape::Object).
    Field(usize),
    /// A variant of an enum, by index.
    Variant(usize),
    /// A field of a variant, by the indexes of the variant and of the field.
    VariantField(usize, usize),
}

/// The name of a marker or a constraint in the source, e.g. `default`. `None` if a diagnostic isn't
/// about a marker.
pub type MarkerName = Option<&'static str>;

/// The part of a container that a diagnostic refers to, and possibly one of its markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The type, field or variant.
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
    pub(crate) fn mark(self, diagnostic: Diagnostic<MarkerName>) -> Diagnostic<Part> {
        diagnostic.map_place(|marker| Part { site: self, marker })
    }
}
