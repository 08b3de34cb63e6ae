//! Compares two manifests. A difference is described by a path that the table can match.

use std::fmt;

use serde_json::Value;

pub(crate) struct Found<'a> {
    /// Has the form `run:kind/version.field[].field/keyword`, see [`Place`].
    pub(crate) path: String,
    /// `None` if rbuilder's manifest has no value.
    pub(crate) ours: Option<&'a Value>,
    /// `None` if controller-gen's manifest has no value.
    pub(crate) theirs: Option<&'a Value>,
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
        write!(
            f,
            "{}: ours {}, theirs {}",
            self.path,
            show(self.ours),
            show(self.theirs)
        )
    }
}

/// The outermost differences come first. Once a difference is accepted, we don't search inside it.
pub(crate) fn compare<'a>(
    path: &str,
    ours: Option<&'a Value>,
    theirs: Option<&'a Value>,
    accept: &mut dyn FnMut(&Found<'a>) -> bool,
) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    descend(&Place::Other(path.to_owned()), ours, theirs, accept, &mut found);
    found
}

fn descend<'a>(
    place: &Place,
    ours: Option<&'a Value>,
    theirs: Option<&'a Value>,
    accept: &mut dyn FnMut(&Found<'a>) -> bool,
    found: &mut Vec<Found<'a>>,
) {
    if ours == theirs {
        return;
    }
    let here = Found {
        path: place.path().to_owned(),
        ours,
        theirs,
    };
    if accept(&here) {
        return;
    }
    match (ours, theirs) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                descend(&place.key(key), left.get(key), right.get(key), accept, found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) if place.is_versions() => {
            let names = |list: &'a [Value]| list.iter().filter_map(|version| version["name"].as_str());
            let mut all: Vec<&str> = names(left).chain(names(right)).collect();
            all.sort_unstable();
            all.dedup();
            if !names(left).eq(names(right)) {
                found.push(here);
            }
            let find = |list: &'a [Value], name| list.iter().find(|version| version["name"] == name);
            for name in all {
                let version = Place::Other(format!("{}/{name}", place.root()));
                descend(&version, find(left, name), find(right, name), accept, found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                let item = place.key(&index.to_string());
                descend(&item, Some(left), Some(right), accept, found);
            }
        }
        _ => found.push(here),
    }
}

/// The type of the value determines how the path continues. A property adds `.field`, list items
/// add `[]`, map values add `{}`, and everything else adds `/keyword`. `properties` and the path to
/// the versions are left out.
enum Place {
    Schema(String),
    Properties(String),
    Versions { root: String, path: String },
    Other(String),
}

impl Place {
    fn path(&self) -> &str {
        match self {
            Place::Schema(path) | Place::Properties(path) | Place::Other(path) => path,
            Place::Versions { path, .. } => path,
        }
    }

    fn root(&self) -> &str {
        match self {
            Place::Versions { root, .. } => root,
            other => other.path(),
        }
    }

    fn is_versions(&self) -> bool {
        matches!(self, Place::Versions { .. })
    }

    fn key(&self, key: &str) -> Place {
        let path = self.path();
        match (self, key) {
            (Place::Properties(_), name) => Place::Schema(format!("{path}.{name}")),
            (Place::Schema(_), "properties") => Place::Properties(path.to_owned()),
            (Place::Schema(_), "items") => Place::Schema(format!("{path}[]")),
            (Place::Schema(_), "additionalProperties") => Place::Schema(format!("{path}{{}}")),
            (Place::Other(_), "openAPIV3Schema") => {
                Place::Schema(path.strip_suffix("/schema").unwrap_or(path).to_owned())
            }
            (Place::Other(_), "versions") => Place::Versions {
                root: path.strip_suffix("/spec").unwrap_or(path).to_owned(),
                path: format!("{path}/versions"),
            },
            _ => Place::Other(format!("{path}/{key}")),
        }
    }
}
