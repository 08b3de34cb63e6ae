//! `#[csv(…)]` on kinds and fields: what catalogs and consoles show of them.

use crate::Origin;

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
    /// The place of the marker.
    pub origin: Origin,
}

/// Returns true if the name of a field can be a part of the path of a descriptor, which has dots between names and `[0]` behind
/// that of a list, and no way to escape either.
pub fn fits_descriptor_path(name: &str) -> bool {
    !name.contains(['.', '[', ']'])
}

/// The description of a kind in a ClusterServiceVersion, as far as source says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvKind {
    /// Name in catalogs; the name of the kind as words by default.
    pub display_name: Option<String>,
    /// Text below the name; the description of the kind by default.
    pub description: Option<String>,
    /// Position: kinds with lower numbers come first, and those without one last.
    pub order: Option<u64>,
    /// Kinds of the objects that belong to an object of the kind; those that the manager may create if there are none.
    pub resources: Vec<CsvResource>,
    /// CRDs of others that have to be installed.
    pub required: Vec<RequiredCrd>,
}

/// A kind of the objects that belong to another object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvResource {
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Name of its CRD; empty for a kind of Kubernetes.
    pub name: String,
}

/// A CRD of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredCrd {
    /// Name, such as `certificates.cert-manager.io`.
    pub name: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind, such as `Certificate`.
    pub kind: String,
    /// Name in catalogs; the name of the kind as words by default.
    pub display_name: Option<String>,
    /// The purpose that the operator has for it.
    pub description: String,
    /// The place of the marker.
    pub origin: Origin,
}

/// The `#[csv(…)]` markers of a version of a kind and of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvMarkers {
    /// Group of the kind.
    pub group: String,
    /// Version of the kind.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// `#[csv(…)]` of the kind.
    pub of_kind: CsvKind,
    /// `#[csv(…)]` of fields in the spec, by path.
    pub spec: Vec<(String, Descriptor)>,
    /// `#[csv(…)]` of fields in the status, by path.
    pub status: Vec<(String, Descriptor)>,
}
