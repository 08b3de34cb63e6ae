//! `#[csv(…)]` on kinds and fields, which tells catalogs and consoles how to display them.
//!
//! What a field says is kept in its schema, but isn't part of the schema in the manifest.

use crate::origin::Origin;

/// The descriptor of a field in a ClusterServiceVersion, as it's written in source. What is missing
/// is derived from the schema of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The name that forms show. It defaults to the name of the field, split into words.
    pub display_name: Option<String>,
    /// The help text below the name. It defaults to the description of the field.
    pub description: Option<String>,
    /// Controls and hints, e.g. `urn:alm:descriptor:com.tectonic.ui:podCount`. If there are none,
    /// they are derived from the type of the field.
    pub x_descriptors: Vec<String>,
    /// Lower numbers come first, and fields without a number come last.
    pub order: Option<u64>,
    /// True if the field shouldn't get a descriptor at all.
    pub skip: bool,
    /// Where the marker is.
    pub origin: Origin,
}

/// Returns whether a field of this name can be in the path of a descriptor. Such a path uses dots
/// as separators and `[0]` for the items of a list, and has no way to escape them.
pub fn fits_descriptor_path(name: &str) -> bool {
    !name.contains(['.', '[', ']'])
}

/// The description of a kind in a ClusterServiceVersion, as it's written in source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvKind {
    /// The name that catalogs show. It defaults to the name of the kind, split into words.
    pub display_name: Option<String>,
    /// The text below the name. It defaults to the description of the kind.
    pub description: Option<String>,
    /// Lower numbers come first, and kinds without a number come last.
    pub order: Option<u64>,
    /// The kinds of the objects that an object of this kind owns. It defaults to the kinds that the
    /// manager may create.
    pub resources: Vec<CsvResource>,
    /// CRDs of other operators that have to be installed as well.
    pub required: Vec<RequiredCrd>,
}

/// A kind of objects that another object owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvResource {
    /// The kind, e.g. `Deployment`.
    pub kind: String,
    /// The version, e.g. `v1`.
    pub version: String,
    /// The name of its CRD, or empty for a built-in kind.
    pub name: String,
}

/// A CRD that another operator provides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredCrd {
    /// The name of the CRD, e.g. `certificates.cert-manager.io`.
    pub name: String,
    /// The version, e.g. `v1`.
    pub version: String,
    /// The kind, e.g. `Certificate`.
    pub kind: String,
    /// The name that catalogs show. It defaults to the name of the kind, split into words.
    pub display_name: Option<String>,
    /// What the operator needs it for.
    pub description: String,
    /// Where the marker is.
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
    /// What `#[csv(…)]` on the kind says.
    pub of_kind: CsvKind,
    /// What `#[csv(…)]` on each field of the spec says, by path.
    pub spec: Vec<(String, Descriptor)>,
    /// What `#[csv(…)]` on each field of the status says, by path.
    pub status: Vec<(String, Descriptor)>,
}
