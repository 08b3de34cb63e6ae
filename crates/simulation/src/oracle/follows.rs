//! Fields that are derived from generated Secrets, such as the hash of a password.
//!
//! Both differ from run to run, so their values are not compared. But when the operator makes a
//! Secret again, a field derived from it must change, too.

use serde_json::Value;

use super::{Oracle, Violation};
use crate::world::Snapshot;

/// A field that follows a Secret, and the values of both in the undisturbed run.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    pub(crate) secret: String,
    data: Value,
    pub(crate) object: String,
    path: String,
    value: String,
}

impl Follower {
    /// `None` if there's no such field. `path` is as in differences, e.g. `.data.hash`.
    pub(crate) fn new(state: &Snapshot, secret: &str, object: &str, path: &str) -> Option<Self> {
        Some(Self {
            data: state.objects.get(secret)?["data"].clone(),
            value: find(state.objects.get(object)?, "", path)?,
            secret: secret.to_owned(),
            object: object.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Returns whether the field has the value of the undisturbed run.
    pub(crate) fn is_unchanged(&self, state: &Snapshot) -> bool {
        let object = state.objects.get(&self.object);
        object.and_then(|object| find(object, "", &self.path)).as_ref() == Some(&self.value)
    }

    /// Reports a field that still has its former value although the Secret has another one.
    pub(crate) fn check(&self, state: &Snapshot) -> Option<Violation> {
        let Self {
            secret, object, path, ..
        } = self;
        let is_other = state.objects.get(secret)?["data"] != self.data;
        (is_other && self.is_unchanged(state)).then(|| {
            let message = format!("{object}: {path} is as before, although {secret} has been made again");
            Violation::new(Oracle::EndState, format!("{object} {path}"), message)
        })
    }
}

fn find(value: &Value, path: &str, wanted: &str) -> Option<String> {
    if path == wanted {
        return Some(value.to_string());
    }
    if !wanted.starts_with(path) {
        return None;
    }
    match value {
        Value::Object(fields) => fields
            .iter()
            .find_map(|(name, value)| find(value, &format!("{path}.{name}"), wanted)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| find(item, &format!("{path}[{index}]"), wanted)),
        _ => None,
    }
}
