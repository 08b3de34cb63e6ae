//! What the test declares to be on purpose: kinds whose objects stay, and fields that may differ.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::world::resource_of;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tolerance {
    /// Resources whose objects may stay, e.g. `jobs.batch`.
    kept: BTreeSet<String>,
    ignored: Vec<Field>,
    regular: Vec<(Field, Duration)>,
}

#[derive(Clone, Debug)]
struct Field {
    /// E.g. `deployments.apps`, or the name of an external system.
    resource: String,
    /// As in reports, but without the indices of lists, e.g. `.spec.ports.nodePort`.
    path: String,
}

impl Field {
    /// Parses a field such as `deployments.apps .spec.replicas`.
    fn parse(text: &str) -> Option<Self> {
        let (resource, path) = text.split_once(' ')?;
        let is_field = !resource.is_empty() && path.starts_with('.') && !path.contains(' ');
        is_field.then(|| Self {
            resource: resource.to_owned(),
            path: without_indices(path),
        })
    }

    fn remove_from(&self, value: &mut Value) {
        remove(value, "", &self.path);
    }
}

impl Tolerance {
    pub(crate) fn keep(&mut self, group: &str, plural: &str) {
        self.kept.insert(resource_of(group, plural));
    }

    pub(crate) fn ignore(&mut self, field: &str) -> Result<(), String> {
        self.ignored.push(parse(field)?);
        Ok(())
    }

    pub(crate) fn expect_every(&mut self, field: &str, interval: Duration) -> Result<(), String> {
        self.regular.push((parse(field)?, interval));
        Ok(())
    }

    pub(crate) fn keeps(&self, resource: &str) -> bool {
        self.kept.contains(resource)
    }

    /// Removes the fields that are not compared.
    pub(crate) fn strip(&self, resource: &str, value: &mut Value) {
        let regular = self.regular.iter().map(|(field, _)| field);
        for field in self.ignored.iter().chain(regular) {
            if field.resource == resource {
                field.remove_from(value);
            }
        }
    }

    pub(crate) fn has_regular(&self, resource: &str) -> bool {
        self.regular.iter().any(|(field, _)| field.resource == resource)
    }

    /// Returns the interval of a write that only changes fields with an interval.
    pub(crate) fn interval_of(&self, resource: &str, before: &Value, after: &Value) -> Option<Duration> {
        let regular = self.regular.iter();
        let regular: Vec<_> = regular.filter(|(field, _)| field.resource == resource).collect();
        let bare = |object: &Value| {
            let mut object = object.clone();
            regular
                .iter()
                .for_each(|(field, _)| field.remove_from(&mut object));
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.retain(|name, _| !matches!(name.as_str(), "managedFields" | "resourceVersion"));
            }
            object
        };
        if bare(before) != bare(after) {
            return None;
        }
        regular.iter().map(|(_, interval)| *interval).min()
    }
}

fn parse(field: &str) -> Result<Field, String> {
    Field::parse(field).ok_or_else(|| {
        format!("expected a resource and a field, such as `deployments.apps .spec.replicas`, found `{field}`")
    })
}

fn remove(value: &mut Value, path: &str, wanted: &str) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let path = format!("{path}.{name}");
                if path == wanted {
                    return false;
                }
                if wanted.starts_with(&path) {
                    remove(value, &path, wanted);
                }
                true
            });
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, path, wanted)),
        _ => {}
    }
}

/// Removes list indices from a path, e.g. `.spec.ports[0].port` becomes `.spec.ports.port`.
pub(crate) fn without_indices(path: &str) -> String {
    let mut is_index = false;
    path.chars()
        .filter(|letter| {
            is_index = *letter == '[' || is_index && *letter != ']';
            !is_index && *letter != ']'
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strips_fields_in_lists_and_with_dots() {
        let mut tolerance = Tolerance::default();
        for field in [
            "pods .metadata.annotations.example.com/at",
            "pods .spec.containers[0].image",
            "services .spec",
        ] {
            tolerance.ignore(field).unwrap();
        }
        let mut pod = json!({
            "metadata": { "annotations": { "example.com/at": "1", "example.com/at-all": "2" } },
            "spec": { "containers": [{ "name": "a", "image": "b" }] },
        });
        tolerance.strip("pods", &mut pod);
        assert_eq!(
            pod,
            json!({
                "metadata": { "annotations": { "example.com/at-all": "2" } },
                "spec": { "containers": [{ "name": "a" }] },
            })
        );
    }

    #[test]
    fn rejects_fields_without_a_resource() {
        for field in ["", "pods", ".status.phase", "pods status", "pods .a b"] {
            let error = Tolerance::default().ignore(field).unwrap_err();
            assert!(error.ends_with(&format!("found `{field}`")), "{error}");
        }
    }

    #[test]
    fn write_of_regular_fields_has_an_interval() {
        let mut tolerance = Tolerance::default();
        let minute = Duration::from_secs(60);
        tolerance.expect_every("pods .status.at", minute).unwrap();
        let pod = |version: &str, at: &str, phase: &str| json!({ "metadata": { "resourceVersion": version }, "status": { "at": at, "phase": phase } });
        let before = pod("1", "a", "Running");
        assert_eq!(
            tolerance.interval_of("pods", &before, &pod("2", "b", "Running")),
            Some(minute)
        );
        assert_eq!(
            tolerance.interval_of("pods", &before, &pod("2", "b", "Failed")),
            None
        );
        assert_eq!(tolerance.interval_of("services", &before, &before), None);
    }
}
