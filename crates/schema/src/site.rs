//! Which part of a container a diagnostic is about.

use rbuilder_diagnostic::Diagnostic;

/// The part of a container that something is wrong with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The type as a whole.
    Container,
    /// A field of a struct, by its position in [`Shape::Object`](crate::Shape::Object).
    Field(usize),
    /// A variant of an enum, by its position.
    Variant(usize),
    /// A field of a variant, by the positions of the variant and of the field.
    VariantField(usize, usize),
}

/// The name of a marker or a constraint in the source, e.g. `default`. It's `None` if a diagnostic
/// isn't about a marker.
pub type MarkerName = Option<&'static str>;

/// The part of a container that a diagnostic is about, and possibly one of its markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whether it's about the type, a field or a variant.
    pub site: Site,
    /// The marker, if it's about one.
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
