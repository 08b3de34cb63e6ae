//! `#[csv(…)]` on kinds and fields: how catalogs and consoles display them.
//!
//! The value of a field is stored in its schema, but does not change the manifest of the schema.

use crate::origin::Origin;

/// The descriptor of a field in a ClusterServiceVersion, as written in source. Missing parts come
/// from the schema of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Display name in forms. Defaults to the name of the field, split into words.
    pub display_name: Option<String>,
    /// Help text below the name. Defaults to the description of the field.
    pub description: Option<String>,
    /// Controls and hints, such as `urn:alm:descriptor:com.tectonic.ui:podCount`. If empty, they
    /// are derived from the type of the field.
    pub x_descriptors: Vec<String>,
    /// Position among the fields. Lower numbers come first; fields without a number come last.
    pub order: Option<u64>,
    /// True if the field has no descriptor.
    pub skip: bool,
    /// Location of the marker.
    pub origin: Origin,
}

/// Returns whether a field name can be part of a descriptor path. A path separates names with dots
/// and marks items of a list with `[0]`, and has no escape for either.
pub fn fits_descriptor_path(name: &str) -> bool {
    !name.contains(['.', '[', ']'])
}

/// The description of a kind in a ClusterServiceVersion, as written in source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvKind {
    /// Display name in catalogs. Defaults to the name of the kind, split into words.
    pub display_name: Option<String>,
    /// Text below the name. Defaults to the description of the kind.
    pub description: Option<String>,
    /// Position among the kinds. Lower numbers come first; kinds without a number come last.
    pub order: Option<u64>,
    /// Kinds of the objects that an object of this kind owns. Defaults to the kinds that the
    /// manager may create.
    pub resources: Vec<CsvResource>,
    /// CRDs of other operators that must be installed.
    pub required: Vec<RequiredCrd>,
}

/// A kind of objects that another object owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvResource {
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Name of its CRD. Empty for built-in kinds.
    pub name: String,
}

/// A CRD that another operator provides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredCrd {
    /// Name, such as `certificates.cert-manager.io`.
    pub name: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind, such as `Certificate`.
    pub kind: String,
    /// Display name in catalogs. Defaults to the name of the kind, split into words.
    pub display_name: Option<String>,
    /// What the operator uses it for.
    pub description: String,
    /// Location of the marker.
    pub origin: Origin,
}

/// The `#[csv(…)]` markers of one version of a kind and of its fields.
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
