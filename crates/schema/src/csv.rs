//! `#[csv(…)]` on kinds and fields: how catalogs and consoles display them.
//!
//! A field's value is stored in its schema, but does not affect the schema's manifest.

use crate::origin::Origin;

/// The descriptor of a field in a ClusterServiceVersion, as written in source. Missing parts are
/// derived from the field's schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Display name in forms. Defaults to the field's name, split into words.
    pub display_name: Option<String>,
    /// Help text below the name. Defaults to the field's description.
    pub description: Option<String>,
    /// Controls and hints, such as `urn:alm:descriptor:com.tectonic.ui:podCount`. If empty, they
    /// are derived from the field's type.
    pub x_descriptors: Vec<String>,
    /// Position among the fields. Lower numbers come first; fields without a number come last.
    pub order: Option<u64>,
    /// True if the field should not have a descriptor.
    pub skip: bool,
    /// Location of the marker.
    pub origin: Origin,
}

/// Returns whether a field name can be part of a descriptor path. A path separates names with dots
/// and marks list items with `[0]`, and cannot escape either.
pub fn fits_descriptor_path(name: &str) -> bool {
    !name.contains(['.', '[', ']'])
}

/// The description of a kind in a ClusterServiceVersion, as written in source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvKind {
    /// Display name in catalogs. Defaults to the kind's name, split into words.
    pub display_name: Option<String>,
    /// Text below the name. Defaults to the kind's description.
    pub description: Option<String>,
    /// Position among the kinds. Lower numbers come first; kinds without a number come last.
    pub order: Option<u64>,
    /// Kinds of objects owned by an object of this kind. Defaults to the kinds that the manager may
    /// create.
    pub resources: Vec<CsvResource>,
    /// CRDs of other operators that must be installed.
    pub required: Vec<RequiredCrd>,
}

/// A kind of objects owned by another object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvResource {
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Name of its CRD. Empty for built-in kinds.
    pub name: String,
}

/// A CRD provided by another operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredCrd {
    /// Name, such as `certificates.cert-manager.io`.
    pub name: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind, such as `Certificate`.
    pub kind: String,
    /// Display name in catalogs. Defaults to the kind's name, split into words.
    pub display_name: Option<String>,
    /// What the operator uses it for.
    pub description: String,
    /// Location of the marker.
    pub origin: Origin,
}

/// The `#[csv(…)]` markers on a version of a kind and on its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvMarkers {
    /// Group of the kind.
    pub group: String,
    /// Version of the kind.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// `#[csv(…)]` on the kind.
    pub of_kind: CsvKind,
    /// `#[csv(…)]` on fields of the spec, by path.
    pub spec: Vec<(String, Descriptor)>,
    /// `#[csv(…)]` on fields of the status, by path.
    pub status: Vec<(String, Descriptor)>,
}
