//! Converts an owned CRD entry of a base to `#[csv(…)]` attributes. The inverse of generating the
//! entries of a bundle.

use std::collections::BTreeSet;

use rbuilder_generator::{CsvKind, CsvMarkers, CsvResource, Descriptor};
use rbuilder_kubernetes::crd::Crd;
use serde_json::{Map, Value};

use super::base::{filled, is_empty, items};
use super::descriptors::{describe, find_field, is_at_or_below, split_humps};
use rbuilder_project::project::names::{check_kind, check_version};

const DESCRIPTOR_KEYS: &[&str] = &["description", "displayName", "path", "x-descriptors"];

/// An owned CRD entry as attributes.
#[derive(Debug)]
pub struct EntryMarkers<'a> {
    /// The entry itself.
    pub entry: &'a Value,
    /// Attributes that generate the same entry.
    pub markers: CsvMarkers,
    /// Paths of fields that aren't in the CRD, starting with `spec` or `status`. Fields below a
    /// listed one are left out.
    pub unknown: Vec<String>,
}

impl<'a> EntryMarkers<'a> {
    /// Converts an entry to attributes. Returns `None` if `crd` is another CRD or lacks the
    /// version.
    pub fn read(entry: &'a Value, crd: &Value) -> Option<EntryMarkers<'a>> {
        let crd = Crd::of(crd);
        if entry["name"] != crd.name() {
            return None;
        }
        let version = crd.version(entry["version"].as_str()?)?;
        let (kind, schema) = (crd.kind().to_owned(), version.schema());
        let mut unknown = Vec::new();
        Some(EntryMarkers {
            entry,
            markers: CsvMarkers {
                group: crd.group().to_owned(),
                version: version.name.to_owned(),
                of_kind: kind_markers(entry, &kind, schema),
                kind,
                spec: field_markers(&entry["specDescriptors"], schema, "spec", &mut unknown),
                status: field_markers(&entry["statusDescriptors"], schema, "status", &mut unknown),
            },
            unknown,
        })
    }

    /// The part that must stay in the base, because attributes can't express it or a field belongs
    /// to no type (`unplaced`). `None` if there is none.
    pub fn rest(&self, unplaced: &BTreeSet<(&'static str, String)>) -> Option<Value> {
        let mut rest = Map::new();
        let made = ["kind", "name", "version", "displayName", "description"];
        for (key, value) in filled(self.entry, &made) {
            let kept = match key {
                "resources" if !self.markers.of_kind.resources.is_empty() => continue,
                "specDescriptors" => rest_of_fields(value, "spec", unplaced, &self.unknown),
                "statusDescriptors" => rest_of_fields(value, "status", unplaced, &self.unknown),
                _ => value.clone(),
            };
            if !is_empty(&kept) {
                rest.insert(key.to_owned(), kept);
            }
        }
        if rest.is_empty() {
            return None;
        }
        for key in ["kind", "name", "version"] {
            rest.insert(key.to_owned(), self.entry[key].clone());
        }
        Some(Value::Object(rest))
    }
}

/// Leaves out attributes that match the default.
fn kind_markers(entry: &Value, kind: &str, schema: &Value) -> CsvKind {
    CsvKind {
        display_name: other_text(&entry["displayName"], &split_humps(kind)),
        description: other_text(
            &entry["description"],
            schema["description"].as_str().unwrap_or_default(),
        ),
        resources: resource_markers(&entry["resources"], kind).unwrap_or_default(),
        ..CsvKind::default()
    }
}

/// Resources other than the kind itself, which is always included. `None` if one can't be expressed
/// as an attribute.
fn resource_markers(list: &Value, own: &str) -> Option<Vec<CsvResource>> {
    let mut resources = Vec::new();
    for entry in items(list).filter(|entry| entry["kind"] != *own) {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let resource = CsvResource {
            kind: text("kind"),
            version: text("version"),
            name: text("name"),
        };
        let is_valid = check_kind(&resource.kind).is_ok()
            && check_version(&resource.version).is_ok()
            && resource.name.is_empty();
        if !is_valid {
            return None;
        }
        if !resources.contains(&resource) {
            resources.push(resource);
        }
    }
    Some(resources)
}

/// Attributes of fields by path. An order is only set if it differs from the order of the paths.
fn field_markers(
    list: &Value,
    schema: &Value,
    part: &str,
    unknown: &mut Vec<String>,
) -> Vec<(String, Descriptor)> {
    let root = &schema["properties"][part];
    let mut listed: Vec<(&str, &Value, &Value)> = items(list)
        .filter_map(|entry| {
            entry["path"]
                .as_str()
                .map(|path| (path, find_field(root, path), entry))
        })
        .collect();
    listed.retain(|(path, field, _)| {
        let full = format!("{part}.{path}");
        if field.is_null() && !unknown.iter().any(|above| is_at_or_below(&full, above)) {
            unknown.push(full);
        }
        !field.is_null()
    });
    let is_sorted = listed.is_sorted_by_key(|(path, ..)| *path);
    let mut markers = Vec::new();
    for (order, (path, field, entry)) in (1..).zip(listed) {
        let mut marker = field_marker(entry, &describe(path, field, part));
        marker.order = (!is_sorted).then_some(order);
        // A nested field only gets a descriptor if it has an attribute, even an empty one.
        let needs_marker = marker != Descriptor::default() || path.contains(['.', '[']);
        if needs_marker && is_marker(entry) {
            markers.push((path.to_owned(), marker));
        }
    }
    markers
}

fn field_marker(entry: &Value, without: &Value) -> Descriptor {
    let text = |key: &str| without[key].as_str().unwrap_or_default();
    let hints = &entry["x-descriptors"];
    let hints = (*hints != without["x-descriptors"]).then_some(hints);
    Descriptor {
        display_name: other_text(&entry["displayName"], text("displayName")),
        description: other_text(&entry["description"], text("description")),
        x_descriptors: hints
            .into_iter()
            .flat_map(items)
            .filter_map(Value::as_str)
            .filter(|hint| !hint.trim().is_empty())
            .map(str::to_owned)
            .collect(),
        ..Descriptor::default()
    }
}

fn other_text(text: &Value, known: &str) -> Option<String> {
    let text = text.as_str()?;
    // Descriptions are wrapped differently, so ignore whitespace.
    let is_same = text.split_whitespace().eq(known.split_whitespace());
    (!is_same && !text.trim().is_empty()).then(|| text.to_owned())
}

fn is_marker(entry: &Value) -> bool {
    filled(entry, DESCRIPTOR_KEYS).next().is_none()
}

fn rest_of_fields(
    list: &Value,
    part: &'static str,
    unplaced: &BTreeSet<(&'static str, String)>,
    unknown: &[String],
) -> Value {
    let is_kept = |entry: &&Value| {
        let path = entry["path"].as_str().unwrap_or_default();
        let is_unplaced = unplaced.contains(&(part, path.to_owned()));
        let path = format!("{part}.{path}");
        let is_known = !unknown.iter().any(|above| is_at_or_below(&path, above));
        is_known && (is_unplaced || !is_marker(entry))
    };
    items(list).filter(is_kept).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bundle::descriptors::describe_fields;

    fn crd() -> Value {
        let server = json!({ "properties": { "memory": { "type": "string", "description": "Memory of\nthe server." } } });
        json!({
            "metadata": { "name": "cups.example.com" },
            "spec": { "group": "example.com", "names": { "kind": "Cup" }, "versions": [{
                "name": "v1",
                "schema": { "openAPIV3Schema": { "description": "Cups.", "properties": { "spec": { "properties": {
                    "name": { "type": "string" },
                    "servers": { "type": "array", "items": server },
                    "size": { "type": "integer" },
                } } } } },
            }] },
        })
    }

    #[track_caller]
    fn check(fields: Value, expected: &[(&str, &str)], rest: Value) {
        let entry =
            json!({ "name": "cups.example.com", "version": "v1", "kind": "Cup", "specDescriptors": fields });
        let crd = crd();
        let split = EntryMarkers::read(&entry, &crd).expect("an entry of the CRD");
        let spec = &split.markers.spec;
        let shown: Vec<(&str, String)> = spec
            .iter()
            .map(|(path, marker)| (path.as_str(), show(marker)))
            .collect();
        let expected: Vec<(&str, String)> = expected
            .iter()
            .map(|(path, marker)| (*path, (*marker).to_owned()))
            .collect();
        assert_eq!(shown, expected, "{entry}");
        let kept = split.rest(&BTreeSet::new());
        assert_eq!(
            kept.map_or(Value::Null, |kept| kept["specDescriptors"].clone()),
            rest,
            "{entry}"
        );
        // Round trip: the attributes must generate the original entry.
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let made = describe_fields(schema, "spec", &rest, spec);
        for field in items(&entry["specDescriptors"]) {
            let path = format!("spec.{}", field["path"].as_str().unwrap_or_default());
            if split.unknown.iter().any(|above| is_at_or_below(&path, above)) {
                continue;
            }
            let found = made.iter().find(|made| made["path"] == field["path"]);
            let found = found.expect("a descriptor");
            for (key, value) in filled(field, &["description"]) {
                assert_eq!(found[key], *value, "{key} of {field}");
            }
        }
    }

    fn show(marker: &Descriptor) -> String {
        let texts = [&marker.display_name, &marker.description].map(|text| text.clone().unwrap_or_default());
        let order = marker.order.map(|order| order.to_string()).unwrap_or_default();
        format!(
            "{} {} {}{order}",
            texts[0],
            texts[1],
            marker.x_descriptors.join(",")
        )
        .trim()
        .to_owned()
    }

    #[test]
    fn markers_contain_differences_only() {
        let number = "urn:alm:descriptor:com.tectonic.ui:number";
        check(
            json!([{ "path": "size", "displayName": "Size", "x-descriptors": [number] }]),
            &[],
            Value::Null,
        );
        check(
            json!([{ "path": "size", "displayName": "Pods" }]),
            &[("size", "Pods")],
            Value::Null,
        );
        check(
            json!([{ "path": "size", "x-descriptors": ["a", "b"] }]),
            &[("size", "a,b")],
            Value::Null,
        );
        check(
            json!([{ "path": "servers[0].memory", "displayName": "Memory", "description": "Memory of the server." }]),
            &[("servers[0].memory", "")],
            Value::Null,
        );
        check(
            json!([{ "path": "size", "displayName": "Size" }, { "path": "name", "description": "Other." }]),
            &[("size", "1"), ("name", "Other. 2")],
            Value::Null,
        );
        check(
            json!([{ "path": "size", "displayName": "Size" }, { "path": "gone" }, { "path": "gone.inner" }]),
            &[],
            Value::Null,
        );
        let with_value = json!([{ "path": "size", "displayName": "Pods", "value": 5 }]);
        check(with_value.clone(), &[], with_value);
    }

    #[test]
    fn base_keeps_what_markers_cannot_express() {
        let check = |resources: Value, marked: &[&str], rest: Value| {
            let entry = json!({
                "name": "cups.example.com", "version": "v1", "kind": "Cup", "displayName": "Cup", "description": "Cups.",
                "resources": resources,
            });
            let crd = crd();
            let split = EntryMarkers::read(&entry, &crd).expect("an entry of the CRD");
            let of_kind = &split.markers.of_kind;
            assert_eq!((&of_kind.display_name, &of_kind.description), (&None, &None));
            let kinds: Vec<&str> = of_kind
                .resources
                .iter()
                .map(|resource| resource.kind.as_str())
                .collect();
            assert_eq!(kinds, marked, "{entry}");
            let kept = split.rest(&BTreeSet::new());
            assert_eq!(
                kept.map_or(Value::Null, |kept| kept["resources"].clone()),
                rest,
                "{entry}"
            );
        };
        let own = json!({ "kind": "Cup", "name": "", "version": "v1" });
        let service = json!({ "kind": "Service", "name": "", "version": "v1" });
        check(json!([own, service, service]), &["Service"], Value::Null);
        for other in [
            json!({ "kind": "Deployment", "name": "", "version": "apps/v1" }),
            json!({ "kind": "Deployment", "name": "cup-server", "version": "v1" }),
            json!({ "kind": "deployments", "name": "", "version": "v1" }),
        ] {
            check(json!([service, other]), &[], json!([service, other]));
        }
        assert!(
            EntryMarkers::read(&json!({ "name": "mugs.example.com", "version": "v1" }), &crd()).is_none()
        );
        assert!(
            EntryMarkers::read(&json!({ "name": "cups.example.com", "version": "v2" }), &crd()).is_none()
        );
    }
}
