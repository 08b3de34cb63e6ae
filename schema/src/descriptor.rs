//! `#[csv(…)]` on a field: what consoles show of it.

/// The descriptor of a field in a ClusterServiceVersion, as far as source says it. The schema of the field says the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Name in forms; the name of the field as words by default.
    pub display_name: Option<String>,
    /// Text below the name; the description of the field by default.
    pub description: Option<String>,
    /// Controls and hints, such as `urn:alm:descriptor:com.tectonic.ui:podCount`; those of the type of the field if there are
    /// none.
    pub x_descriptors: Vec<String>,
    /// Position: fields with lower numbers come first, and those without one last.
    pub order: Option<u64>,
    /// True if the field is left out.
    pub skip: bool,
}
