//! Parses the OpenAPI v3 documents which are published with kube-apiserver.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rbuilder_catalogue::write::{Node, Types};
use rbuilder_schema::{FORMATS, Form, Key, Schema, is_known};
use serde_json::{Map, Value, json};

use super::go::{self, Comment, Comments};
use crate::committed::list_folder;

pub(crate) struct Found {
    /// The types by their path (which doesn't include the crate's name).
    pub(crate) types: Types,
    /// Describes where the documents differ from the Go source.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn read_documents(folder: &Path, comments: &Comments) -> Result<Found> {
    let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
    for path in list_folder(folder)? {
        let document: Value = serde_json::from_slice(&fs_err::read(path)?)?;
        let schemas = document["components"]["schemas"].as_object();
        for (name, schema) in schemas.into_iter().flatten() {
            let mut schema = schema.clone();
            // We ignore the kinds, since each group has a document with a different list of them.
            // Everything else must be the same.
            if let Some(schema) = schema.as_object_mut() {
                schema.remove("x-kubernetes-group-version-kind");
            }
            let first = definitions.entry(name.clone()).or_insert_with(|| schema.clone());
            ensure!(*first == schema, "the documents differ in what `{name}` is");
        }
    }
    let mut found = Found {
        types: Types::new(),
        notes: Vec::new(),
    };
    for (name, schema) in &definitions {
        let path = rust_path(name).with_context(|| format!("`{name}` is not Kubernetes'"))?;
        if is_known(&format!("k8s_openapi::{path}")) {
            continue;
        }
        let node =
            definition(name, schema, comments, &mut found.notes).with_context(|| format!("`{name}`"))?;
        found.types.insert(path, node);
    }
    Ok(found)
}

/// Converts the name of a type to a path in k8s-openapi. For example, `io.k8s.api.core.v1.Pod`
/// becomes `api::core::v1::Pod`.
pub(crate) fn rust_path(name: &str) -> Option<String> {
    Some(name.strip_prefix("io.k8s.")?.replace('-', "_").replace('.', "::"))
}

fn definition(name: &str, schema: &Value, comments: &Comments, notes: &mut Vec<String>) -> Result<Node> {
    let (package, type_name) = go::package_of(name)?;
    let mut node = node(schema).context("the schema")?;
    if let Some(comment) = comments.of_type(&package, type_name)
        && !describe(&mut node, comment)
    {
        notes.push(format!("`{name}` is described otherwise in Go"));
    }
    for (field, property) in &mut node.properties {
        let nothing = Comment::default();
        let found = comments.of_field(&package, type_name, field);
        match found.map(|comment| describe(property, comment)) {
            Some(true) => {}
            Some(false) => notes.push(format!("`{name}.{field}` is described otherwise in Go")),
            None => notes.push(format!("`{name}.{field}` is not found in Go")),
        }
        let comment = found.unwrap_or(&nothing);
        if let Some(comment) = comments.of_items(&package, type_name, field) {
            let members = property.items.iter_mut().chain(&mut property.values);
            members.for_each(|member| describe_member(member, comment));
        }
        choose_default(property, comment).with_context(|| format!("the default of `{field}`"))?;
        restrict(&mut property.own, comment).with_context(|| format!("the markers of `{field}`"))?;
    }
    Ok(node)
}

/// Copies the line breaks from the Go comment to the description. Returns false if these are not
/// the same words.
fn describe(node: &mut Node, comment: &Comment) -> bool {
    let words = node.own.description.as_deref().unwrap_or_default();
    let is_same = words.split_whitespace().eq(comment.text.split_whitespace());
    if is_same && node.own.description.is_some() {
        node.own.description = Some(comment.text.as_str().into());
    }
    is_same
}

/// Adds a description to the items or values. It is taken from their Go type, since there is none
/// in the documents.
fn describe_member(items: &mut Node, comment: &Comment) {
    if items.reference.is_none() && items.own.description.is_none() && !comment.text.is_empty() {
        items.own.description = Some(comment.text.as_str().into());
    }
}

/// Decides if the default value in the document should be kept.
///
/// In the documents, the default of a Go field that is always serialized is its zero value. This is
/// not very useful, so we drop it unless it's also declared by a marker.
fn choose_default(node: &mut Node, comment: &Comment) -> Result<()> {
    let written = comment
        .marker("kubebuilder:default")
        .or_else(|| comment.marker("default"))
        .filter(|value| !value.starts_with("ref("));
    match written {
        Some(value) => node.own.default = Some(serde_json::from_str(value).context(value.to_owned())?),
        None if node.own.default.as_ref().is_some_and(is_zero) => node.own.default = None,
        None => {}
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    let zeros = [
        Value::Null,
        json!(false),
        json!(0),
        json!(0.0),
        json!(""),
        json!([]),
        json!({}),
    ];
    zeros.contains(value)
}

/// Adds constraints from the markers of controller-gen.
fn restrict(own: &mut Schema, comment: &Comment) -> Result<()> {
    for (name, value) in comment.below("kubebuilder:validation:") {
        let value = value.trim_matches('`');
        match Key::of_go(name).map(|key| key.form) {
            // These are in the documents already.
            _ if ["Required", "Optional", "Type", "Format"].contains(&name) => {}
            Some(Form::Count(count)) => *count.get_mut(own) = Some(value.parse()?),
            Some(Form::Number(number)) => *number.get_mut(own) = Some(value.parse()?),
            Some(Form::Text(text)) => *text.get_mut(own) = Some(value.into()),
            Some(Form::Values(values)) => *values.get_mut(own) = value.split(';').map(Value::from).collect(),
            _ => bail!("`{name}` is a marker that this task does not know"),
        }
    }
    Ok(())
}

fn node(value: &Value) -> Result<Node> {
    let map = value.as_object().context("a schema is an object")?;
    let mut node = Node::default();
    for (key, value) in map {
        read_key(&mut node, key, value).with_context(|| format!("`{key}`: {value}"))?;
    }
    node.own.description = map.get("description").and_then(Value::as_str).map(Into::into);
    Ok(node)
}

/// Reads a keyword of the schema. Returns an error for unknown keywords, because we don't want to
/// lose anything silently.
fn read_key(node: &mut Node, key: &str, value: &Value) -> Result<()> {
    match key {
        "description" => {}
        "type" => node.own.schema_type = serde_json::from_value(value.clone())?,
        "default" => node.own.default = Some(value.clone()),
        "format" => {
            let format = value.as_str().context("a text")?;
            ensure!(
                FORMATS.contains(&format),
                "the API server would warn about this format in a CRD"
            );
            node.own.format = Some(format.into());
        }
        "$ref" => node.reference = Some(reference(value)?),
        "allOf" => match value.as_array().map(Vec::as_slice) {
            Some([Value::Object(only)]) if only.len() == 1 => {
                node.reference = Some(reference(only.get("$ref").context("a reference")?)?);
            }
            _ => bail!("more than one reference"),
        },
        "items" => node.items = Some(inner(value)?),
        "additionalProperties" => node.values = Some(inner(value)?),
        "properties" => node.properties = properties(value.as_object().context("an object")?)?,
        "required" => node.required = serde_json::from_value(value.clone())?,
        "x-kubernetes-list-type" => node.own.list_type = serde_json::from_value(value.clone())?,
        "x-kubernetes-list-map-keys" => node.own.list_map_keys = serde_json::from_value(value.clone())?,
        "x-kubernetes-map-type" => node.own.map_type = serde_json::from_value(value.clone())?,
        // Strategic merge patches and union discriminators are not supported by CRDs.
        "x-kubernetes-patch-strategy" | "x-kubernetes-patch-merge-key" | "x-kubernetes-unions" => {}
        _ => bail!("this task does not know the keyword"),
    }
    Ok(())
}

fn properties(map: &Map<String, Value>) -> Result<BTreeMap<String, Node>> {
    let each = map.iter().map(|(name, value)| {
        let property = node(value).with_context(|| format!("`{name}`"))?;
        Ok((name.clone(), property))
    });
    each.collect()
}

/// Reads the schema of items or values. There are no markers for these, so we drop defaults that
/// are zero.
fn inner(value: &Value) -> Result<Box<Node>> {
    let mut node = node(value)?;
    if node.own.default.as_ref().is_some_and(is_zero) {
        node.own.default = None;
    }
    Ok(Box::new(node))
}

fn reference(value: &Value) -> Result<String> {
    let name = value
        .as_str()
        .and_then(|text| text.strip_prefix("#/components/schemas/"));
    name.and_then(rust_path)
        .context("a reference to a type of Kubernetes")
}
