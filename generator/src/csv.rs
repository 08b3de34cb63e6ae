//! `#[csv(…)]` of kinds and their fields, for the ClusterServiceVersion.

use rbuilder_schema::{CsvKind, CsvMarkers, Descriptor, Schema};
use rbuilder_syntax::CustomResource;

/// Collects the markers of a version; nothing if it has none.
pub(crate) fn collect_csv_markers(resource: &CustomResource, schema: &Schema) -> Option<CsvMarkers> {
    let part = |name: &str| {
        let mut found = Vec::new();
        if let Some(part) = schema.properties.get(name) {
            collect_descriptors(part, "", &mut found);
        }
        found
    };
    let markers = CsvMarkers {
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        of_kind: resource.csv.clone(),
        spec: part("spec"),
        status: part("status"),
    };
    let is_empty =
        markers.of_kind == CsvKind::default() && markers.spec.is_empty() && markers.status.is_empty();
    (!is_empty).then_some(markers)
}

/// Collects the descriptors of the fields in a value. A path has `[0]` behind a list, and leads into no map: consoles know
/// no keys.
fn collect_descriptors(schema: &Schema, path: &str, found: &mut Vec<(String, Descriptor)>) {
    if let Some(items) = &schema.items {
        return collect_descriptors(items, &format!("{path}[0]"), found);
    }
    for (name, property) in &schema.properties {
        let path = match path {
            "" => name.to_string(),
            path => format!("{path}.{name}"),
        };
        if let Some(descriptor) = &property.descriptor.0 {
            found.push((path.clone(), Descriptor::clone(descriptor)));
        }
        collect_descriptors(property, &path, found);
    }
}
