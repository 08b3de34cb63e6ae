//! `#[csv(…)]` on kinds and fields: tells catalogs and consoles how to display them.
//!
//! A field's descriptor is kept in its schema, but isn't part of the schema in the manifest.

use crate::origin::Origin;

/// The descriptor of a field in a ClusterServiceVersion, as written in source. Missing parts are
/// derived from the schema of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The name shown in forms. Defaults to the name of the field, split into words.
    pub display_name: Option<String>,
    /// The help text below the name. Defaults to the description of the field.
    pub description: Option<String>,
    /// Controls and hints, e.g. `urn:alm:descriptor:com.tectonic.ui:podCount`. If empty, they are
    /// derived from the type of the field.
    pub x_descriptors: Vec<String>,
    /// Sort order: lower numbers first, fields without a number last.
    pub order: Option<u64>,
    /// True to omit the descriptor.
    pub skip: bool,
    /// The location of the marker.
    pub origin: Origin,
}

/// Returns whether a field of this name can be in the path of a descriptor. Paths use dots as
/// separators and `[0]` for the items of a list, with no way to escape them.
pub fn fits_descriptor_path(name: &str) -> bool {
    !name.contains(['.', '[', ']'])
}

/// The description of a kind in a ClusterServiceVersion, as written in source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvKind {
    /// The name shown in catalogs. Defaults to the name of the kind, split into words.
    pub display_name: Option<String>,
    /// The text below the name. Defaults to the description of the kind.
    pub description: Option<String>,
    /// Sort order: lower numbers first, kinds without a number last.
    pub order: Option<u64>,
    /// The kinds of objects owned by an object of this kind. Defaults to the kinds that the manager
    /// may create.
    pub resources: Vec<CsvResource>,
    /// CRDs of other operators that must be installed as well.
    pub required: Vec<RequiredCrd>,
}

/// A kind of objects owned by another object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvResource {
    /// The kind, e.g. `Deployment`.
    pub kind: String,
    /// The version, e.g. `v1`.
    pub version: String,
    /// The name of the CRD, or empty for a built-in kind.
    pub name: String,
}

/// A CRD provided by another operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredCrd {
    /// The name of the CRD, e.g. `certificates.cert-manager.io`.
    pub name: String,
    /// The version, e.g. `v1`.
    pub version: String,
    /// The kind, e.g. `Certificate`.
    pub kind: String,
    /// The name shown in catalogs. Defaults to the name of the kind, split into words.
    pub display_name: Option<String>,
    /// Why the operator needs the CRD.
    pub description: String,
    /// The location of the marker.
    pub origin: Origin,
}

/// The `#[csv(…)]` markers on one version of a kind and on its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvMarkers {
    /// The group of the kind.
    pub group: String,
    /// The version of the kind.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// `#[csv(…)]` on the kind.
    pub of_kind: CsvKind,
    /// `#[csv(…)]` on the fields of the spec, by path.
    pub spec: Vec<(String, Descriptor)>,
    /// `#[csv(…)]` on the fields of the status, by path.
    pub status: Vec<(String, Descriptor)>,
}
