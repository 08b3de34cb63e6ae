//! The manifest affected by a change, and access to its values.

use serde_json::Value;

use crate::change::Change;
use crate::rules::rule;

#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) kind: String,
    pub(crate) name: String,
    version: Option<String>,
}

impl Place {
    pub(crate) fn of(object: &Value) -> Place {
        let name = text(&object["metadata"]["name"]);
        let name = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        };
        Place {
            kind: text(&object["kind"]),
            name,
            version: None,
        }
    }

    pub(crate) fn version(&self, version: &str) -> Place {
        Place {
            version: Some(version.to_owned()),
            ..self.clone()
        }
    }

    pub(crate) fn change(&self, name: &str, field: &str, message: String) -> Change {
        let rule = rule(name);
        Change {
            rule,
            level: rule.level,
            affects: rule.affects.iter().copied().collect(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            version: self.version.clone(),
            field: field.to_owned(),
            message,
            witness: None,
            tried: None,
            is_cut_short: false,
        }
    }
}

/// Returns an empty string if the value isn't a string.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns an empty list if the value isn't a list.
pub(crate) fn list(value: &Value) -> Vec<&Value> {
    value
        .as_array()
        .map(|items| items.iter().collect())
        .unwrap_or_default()
}

pub(crate) fn shown(value: &Value) -> String {
    format!(
        "`{}`",
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    )
}
