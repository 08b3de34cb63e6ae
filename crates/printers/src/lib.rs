//! Objects as tables, which `kubectl get` asks the API server for and prints: the answers of
//! kube-apiserver to the media type `application/json;as=Table;v=v1;g=meta.k8s.io`.
//!
//! [`table`] makes a `Table` of an object or a list. The columns of built-in kinds are in a table that
//! `cargo xtask tables` generates from kube-apiserver's printers, and the cells in `kinds.rs`. Cells of
//! custom resources come from the printer columns of their CRD.

mod age;
mod cell;
mod columns;
mod custom;
mod kinds;
mod pod;
mod selector;
#[cfg(test)]
mod tests;
mod text;
mod view;

use serde_json::{Value, json};

use crate::columns::columns_of;

/// Whose columns a table has.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a> {
    /// Those of a built-in kind. Kinds without any have their name and their time of creation.
    BuiltIn {
        /// The group, e.g. `apps`. The core group is empty.
        group: &'a str,
        /// The kind, e.g. `Deployment`.
        kind: &'a str,
    },
    /// The `additionalPrinterColumns` of a version of a CRD. Without any, tables have the age.
    Custom(&'a [Value]),
}

/// What a table is made of.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// An object, e.g. of an event of a watch.
    Object(&'a Value),
    /// A list.
    List {
        /// Its metadata: `resourceVersion`, `continue` and `remainingItemCount`.
        metadata: &'a Value,
        /// Its objects.
        items: &'a [Value],
    },
}

/// What the rows of a table have besides cells: the query parameter `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The metadata, as `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// The object.
    Object,
}

impl IncludeObject {
    /// Parses the query parameter. An empty one is the default. Returns `None` for unknown values.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "None" => IncludeObject::None,
            "" | "Metadata" => IncludeObject::Metadata,
            "Object" => IncludeObject::Object,
            _ => return None,
        })
    }
}

/// How a table is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What the rows have besides cells.
    pub include_object: IncludeObject,
    /// Whether the definitions of the columns are null, as in all events of a watch but the first.
    pub no_headers: bool,
    /// The time to which ages are relative, in nanoseconds since 1970.
    pub now: i128,
}

/// Returns a `Table`. Objects must have the defaults that the server stores.
///
/// # Examples
///
/// ```
/// use rbuilder_printers::{Columns, Content, Options, table};
/// use serde_json::json;
///
/// let object = json!({
///     "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1", "b": "2" },
///     "metadata": { "name": "cfg", "creationTimestamp": "1970-01-01T00:00:00Z" },
/// });
/// let columns = Columns::BuiltIn { group: "", kind: "ConfigMap" };
/// let options = Options { now: 180_000_000_000, ..Options::default() };
/// let printed = table(columns, Content::Object(&object), &options);
/// assert_eq!(printed["columnDefinitions"][1]["name"], "Data");
/// assert_eq!(printed["rows"][0]["cells"], json!(["cfg", 2, "3m"]));
/// ```
pub fn table(columns: Columns<'_>, content: Content<'_>, options: &Options) -> Value {
    let (metadata, items) = match content {
        Content::Object(object) => (&object["metadata"], std::slice::from_ref(object)),
        Content::List { metadata, items } => (metadata, items),
    };
    let is_list = matches!(content, Content::List { .. });
    let (definitions, mut rows) = match columns {
        Columns::BuiltIn { group, kind } => {
            let print = kinds::print_rows(group, kind, items, is_list, options.now);
            (json!(columns_of(group, kind)), print)
        }
        Columns::Custom(columns) => custom::print_rows(columns, items, options.now),
    };
    for (row, object) in &mut rows {
        row["object"] = match options.include_object {
            IncludeObject::None => Value::Null,
            IncludeObject::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
            IncludeObject::Object => (*object).clone(),
        };
    }
    let mut list = json!({});
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = metadata
            .get(name)
            .filter(|_| is_list || name == "resourceVersion")
        {
            list[name] = value.clone();
        }
    }
    let rows = match columns {
        // Go has no empty list here.
        Columns::BuiltIn { group, kind } if rows.is_empty() && !kinds::has_empty_list(group, kind) => {
            Value::Null
        }
        _ => rows.into_iter().map(|(row, _)| row).collect(),
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list,
        "columnDefinitions": if options.no_headers { Value::Null } else { definitions },
        "rows": rows,
    })
}

/// A row with its object.
type Row<'a> = (Value, &'a Value);

fn row<'a>(cells: Vec<Value>, object: &'a Value) -> Row<'a> {
    (json!({ "cells": cells }), object)
}
