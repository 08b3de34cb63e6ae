//! Reads JSON and YAML whose structure is not worth a type.

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;
use xtask_base::sh::Cmd;

/// Returns the string at a JSON pointer. It's empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of the list at a JSON pointer. There are none if it's not a list.
pub(crate) fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + Clone {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default().iter()
}

pub(crate) fn read_json(command: Cmd) -> Result<Value> {
    Ok(serde_json::from_str(&command.read()?)?)
}

pub(crate) fn parse_objects(text: &str) -> Result<Vec<Value>> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| anyhow!("{error}"))?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

pub(crate) fn find_kind<'v>(objects: &'v [Value], kind: &str) -> Result<&'v Value> {
    let found = objects.iter().find(|object| object["kind"] == kind);
    found.with_context(|| format!("there is no {kind}"))
}
