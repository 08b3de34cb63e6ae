//! `#[csv(…)]` of kinds and their fields, for the ClusterServiceVersion.

use std::collections::BTreeMap;

use rbuilder_schema::{CsvKind, CsvMarkers, Descriptor, RequiredCrd, Schema, fits_descriptor_path};
use rbuilder_syntax::CustomResource;

use crate::origin::place_of;
use crate::report::Report;

/// The `required` that is reported against others of the same CRD and version: the first of each, with the kind that it is on.
#[derive(Default)]
pub(crate) struct RequiredCrds<'a> {
    first: BTreeMap<(&'a str, &'a str), (&'a str, &'a RequiredCrd)>,
}

impl<'a> RequiredCrds<'a> {
    /// Adds those of a version of a kind. A ClusterServiceVersion has one entry for each version of a CRD, so that other
    /// words about it would be lost.
    pub(crate) fn add(&mut self, resource: &'a CustomResource, report: &mut Report) {
        for required in &resource.csv.required {
            let key = (required.name.as_str(), required.version.as_str());
            let (kind, first) = *self.first.entry(key).or_insert((&resource.kind, required));
            if let (true, Some(place)) = (first != required, place_of(required.origin)) {
                let (name, version) = key;
                let message = format!(
                    "`required` of CRD `{name}` in version `{version}` differs from that on kind `{kind}`"
                );
                report.error(
                    place,
                    message,
                    "write the same words on both, or remove one of the two",
                );
            }
        }
    }
}

/// Warns of `#[csv(…)]` on fields whose descriptor would have an ambiguous path.
pub(crate) fn check_descriptor_paths(schema: &Schema, report: &mut Report) {
    for part in ["spec", "status"] {
        if let Some(part) = schema.properties.get(part) {
            check_names(part, None, report);
        }
    }
}

/// `misfit` is the name on the way to the value that no path can have.
fn check_names(schema: &Schema, misfit: Option<&str>, report: &mut Report) {
    if let Some(items) = &schema.items {
        check_names(items, misfit, report);
    }
    for (name, property) in &schema.properties {
        let misfit = misfit.or((!fits_descriptor_path(name)).then_some(name));
        if let (Some(misfit), Some(descriptor)) = (misfit, &property.descriptor.0)
            && !descriptor.skip
            && let Some(place) = place_of(descriptor.origin)
        {
            let message = format!("the field has no descriptor: `{misfit}` would be ambiguous in its path");
            let help = "rename the field, or remove `#[csv(…)]`";
            report.warning(place, message, help);
        }
        check_names(property, misfit, report);
    }
}

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
/// no keys. Nor does it have names with a dot or a bracket.
fn collect_descriptors(schema: &Schema, path: &str, found: &mut Vec<(String, Descriptor)>) {
    if let Some(items) = &schema.items {
        return collect_descriptors(items, &format!("{path}[0]"), found);
    }
    let fields = schema.properties.iter();
    for (name, property) in fields.filter(|(name, _)| fits_descriptor_path(name)) {
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
