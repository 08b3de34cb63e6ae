//! Collects `#[csv(…)]` on kinds and fields for the ClusterServiceVersion.

use std::collections::BTreeMap;

use rbuilder_schema::{CsvKind, CsvMarkers, Descriptor, RequiredCrd, Schema, fits_descriptor_path};
use rbuilder_syntax::CustomResource;

use crate::origin::place_of;
use crate::place::Place;
use crate::report::Report;

/// The first `required` entry for each CRD and version, together with its kind.
#[derive(Default)]
pub(crate) struct RequiredCrds<'a> {
    first: BTreeMap<(&'a str, &'a str), (&'a str, &'a RequiredCrd)>,
}

impl<'a> RequiredCrds<'a> {
    pub(crate) fn add(&mut self, resource: &'a CustomResource, report: &mut Report) {
        // A ClusterServiceVersion has a single entry per CRD version, so report an entry that
        // contradicts an earlier one.
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
                    "write the same values on both, or remove one of them",
                );
            }
        }
    }
}

/// Why a field with `#[csv(…)]` gets no descriptor.
#[derive(Clone, Copy)]
enum Obstacle<'a> {
    /// The field name would be ambiguous in a path.
    Name(&'a str),
    /// The field is in a map, whose keys aren't known.
    Map,
    /// The field is in neither `spec` nor `status`.
    Part,
}

/// The locations of `#[csv(…)]` on fields, each with the reason why the attribute has no effect, or
/// `None` if it has an effect in at least one of the types that use the field.
#[derive(Default)]
pub(crate) struct DescriptorPlaces {
    reasons: BTreeMap<Place, Option<String>>,
}

impl DescriptorPlaces {
    pub(crate) fn add(&mut self, schema: &Schema) {
        for (name, part) in &schema.properties {
            let is_shown = ["spec", "status"].contains(&&**name);
            self.add_fields(part, (!is_shown).then_some(Obstacle::Part));
        }
    }

    fn add_fields(&mut self, schema: &Schema, obstacle: Option<Obstacle<'_>>) {
        if let Some(items) = &schema.items {
            self.add_fields(items, obstacle);
        }
        if let Some(values) = &schema.additional_properties {
            self.add_fields(values, obstacle.or(Some(Obstacle::Map)));
        }
        for (name, property) in &schema.properties {
            let obstacle = obstacle.or((!fits_descriptor_path(name)).then_some(Obstacle::Name(name)));
            if let Some(descriptor) = property.descriptor.0.as_deref().filter(|marker| !marker.skip)
                && let Some(place) = place_of(descriptor.origin)
            {
                let known = self
                    .reasons
                    .entry(place)
                    .or_insert_with(|| obstacle.map(describe));
                if obstacle.is_none() {
                    *known = None;
                }
            }
            self.add_fields(property, obstacle);
        }
    }

    pub(crate) fn report(self, report: &mut Report) {
        for (place, reason) in self.reasons {
            if let Some(reason) = reason {
                let message = format!("the field has no descriptor: {reason}");
                report.warning(place, message, "remove `#[csv(…)]`");
            }
        }
    }
}

fn describe(obstacle: Obstacle<'_>) -> String {
    match obstacle {
        Obstacle::Name(name) => format!("`{name}` would be ambiguous in its path"),
        Obstacle::Map => "its path leads through a map, whose keys are unknown".to_owned(),
        Obstacle::Part => "it is neither in `spec` nor in `status`".to_owned(),
    }
}

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

/// Collects the descriptors of a value's fields. Lists add `[0]` to the path.
fn collect_descriptors(schema: &Schema, path: &str, found: &mut Vec<(String, Descriptor)>) {
    if let Some(items) = &schema.items {
        return collect_descriptors(items, &format!("{path}[0]"), found);
    }
    // Consoles don't know the keys of a map, and a dot or bracket in a name would be ambiguous.
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
