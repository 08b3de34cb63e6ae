//! The arguments of `#[kube(…)]` and `#[crd(…)]` on the struct that defines a kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_schema::{Cel, Schema, SchemaType};

use crate::definition::{Column, Conversion, Definition, Scale, Version};
use crate::print::{Meta, literal, rule_arg, string_literal};
use crate::words::object_name;

#[derive(Debug, Default)]
pub(crate) struct Root {
    /// Schema of the struct that derives `CustomResource`.
    pub(crate) spec: Schema,
    /// Whether its fields are next to `metadata` rather than in `spec`.
    pub(crate) no_spec: bool,
    pub(crate) status: Option<Schema>,
    /// Remaining schema of the whole object.
    rest: Schema,
    optional_spec: bool,
    description: Option<Arc<str>>,
}

impl Root {
    pub(crate) fn new(version: &Version) -> Root {
        let mut rest = version.schema.clone();
        rest.schema_type = None;
        let mut properties = std::mem::take(&mut rest.properties);
        rest.properties.extend(take_type_meta(&mut properties));
        let mut root = Root {
            description: rest.description.take(),
            status: take_struct("status", &mut properties),
            ..Root::default()
        };
        // A status that isn't an object can't be a struct, so keep its schema on the root.
        rest.properties.extend(properties.remove_entry("status"));
        // With anything next to `spec`, all of these become fields of the kind's struct.
        let is_alone = properties.len() == 1;
        if let Some(spec) = take_struct("spec", &mut properties).filter(|_| is_alone) {
            root.spec = spec;
            root.optional_spec = !rest.required.remove("spec");
        } else {
            root.no_spec = true;
            root.spec = fields_of_root(version, properties, &mut rest);
        }
        root.rest = rest;
        root
    }

    /// The rules of the whole object, most of which `#[kube(validation = …)]` can express.
    fn rules(&self) -> &[Cel] {
        &self.rest.validations
    }
}

/// For an object without `spec`, the schema of its fields except for `apiVersion`, `kind` and
/// `metadata`. Rules and alternatives stay on the root, because they may refer to the metadata.
fn fields_of_root(
    version: &Version,
    mut properties: BTreeMap<Arc<str>, Arc<Schema>>,
    rest: &mut Schema,
) -> Schema {
    let spec = version.schema.properties.get_key_value("spec");
    properties.extend(spec.map(|(name, spec)| (Arc::clone(name), Arc::clone(spec))));
    let (of_fields, of_object) = std::mem::take(&mut rest.required)
        .into_iter()
        .partition(|name| properties.contains_key(name));
    rest.required = of_object;
    Schema {
        required: of_fields,
        properties,
        preserve_unknown_fields: std::mem::take(&mut rest.preserve_unknown_fields),
        schema_type: Some(SchemaType::Object),
        ..Schema::default()
    }
}

fn take_struct(name: &str, properties: &mut BTreeMap<Arc<str>, Arc<Schema>>) -> Option<Schema> {
    properties.get(name).filter(|schema| is_struct(schema))?;
    properties.remove(name).map(|schema| Schema::clone(&schema))
}

fn take_type_meta(properties: &mut BTreeMap<Arc<str>, Arc<Schema>>) -> Vec<(Arc<str>, Arc<Schema>)> {
    let types = [
        ("apiVersion", SchemaType::String),
        ("kind", SchemaType::String),
        ("metadata", SchemaType::Object),
    ];
    let mut constrained = Vec::new();
    for (name, schema_type) in types {
        let Some(schema) = properties.remove(name) else {
            continue;
        };
        let plain = Schema {
            schema_type: Some(schema_type),
            // The API server replaces these descriptions, so they don't matter.
            description: schema.description.clone(),
            ..Schema::default()
        };
        if *schema != plain {
            constrained.push((Arc::from(name), schema));
        }
    }
    constrained
}

fn is_struct(schema: &Schema) -> bool {
    schema.schema_type == Some(SchemaType::Object)
        && schema.additional_properties.is_none()
        && !schema.int_or_string
        && !schema.embedded_resource
}

pub(crate) fn kube_args(
    definition: &Definition,
    version: &Version,
    root: &Root,
    status: Option<&str>,
) -> Vec<Meta> {
    let names = &definition.names;
    let text = |name: &str, value: &str| Meta::assign(name, string_literal(value));
    let mut args = vec![
        text("group", &definition.group),
        text("version", &version.name),
        text("kind", &names.kind),
    ];
    let object = object_name(&names.kind);
    if object != names.kind {
        args.push(text("root", &object));
    }
    args.push(text("plural", &names.plural));
    if !names.singular.is_empty() && names.singular != names.kind.to_ascii_lowercase() {
        args.push(text("singular", &names.singular));
    }
    args.extend(names.short_names.iter().map(|name| text("shortname", name)));
    args.extend(names.categories.iter().map(|name| text("category", name)));
    if let Some(doc) = root
        .description
        .as_deref()
        .filter(|_| root.description != root.spec.description)
    {
        args.push(text("doc", doc));
    }
    let flags = [
        ("namespaced", definition.is_namespaced),
        ("no_spec", root.no_spec),
    ];
    args.extend(
        flags
            .into_iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(name, _)| Meta::word(name)),
    );
    args.extend(status.map(|status| text("status", status)));
    args.extend(version.scale.as_ref().map(scale_arg));
    args.extend(version.columns.iter().map(column_arg));
    args.extend(version.selectable.iter().map(|path| text("selectable", path)));
    args.extend(
        root.rules()
            .iter()
            .filter(|rule| is_kube_rule(rule))
            .map(kube_rule),
    );
    if !version.is_stored {
        args.push(Meta::assign("storage", false));
    }
    if !version.is_served {
        args.push(Meta::assign("served", false));
    }
    match &version.deprecated {
        Some(Some(warning)) => args.push(text("deprecated", warning)),
        Some(None) => args.push(Meta::word("deprecated")),
        None => {}
    }
    args
}

/// Arguments of `#[crd(…)]` on a kind, each of which becomes an attribute.
pub(crate) fn crd_args(definition: &Definition, version: &Version, root: &Root) -> Vec<Meta> {
    let mut args = Vec::new();
    // Settings for the whole definition go on the storage version.
    if version.is_stored {
        for (name, pairs) in [
            ("annotation", &definition.annotations),
            ("label", &definition.labels),
        ] {
            let pair = |(key, value): (&String, &String)| {
                let parts = [key, value].map(|text| Meta::Text(string_literal(text)));
                Meta::list(name, parts.to_vec())
            };
            args.extend(pairs.iter().map(pair));
        }
        args.extend(definition.conversion.as_ref().map(conversion_arg));
    }
    if root.optional_spec {
        args.push(Meta::word("optional_spec"));
    }
    let has_status = root.status.is_some();
    if version.has_status != has_status {
        args.push(Meta::assign("status_subresource", version.has_status));
    }
    let mut rest = root.rest.clone();
    rest.validations.retain(|rule| !is_kube_rule(rule));
    let mut keys = serde_json::to_value(&rest).unwrap_or_default();
    if root.description.is_none() && root.spec.description.is_some() {
        // Without this, the whole object would get the description of the spec.
        keys["description"] = "".into();
    }
    if keys.as_object().is_some_and(|keys| !keys.is_empty()) {
        args.push(Meta::assign("root_schema", literal(&keys)));
    }
    args
}

fn column_arg(column: &Column) -> Meta {
    let mut args = vec![
        Meta::assign("name", string_literal(&column.name)),
        Meta::assign("type_", string_literal(&column.column_type)),
        Meta::assign("json_path", string_literal(column.json_path.trim())),
    ];
    for (name, text) in [("description", &column.description), ("format", &column.format)] {
        if !text.is_empty() {
            args.push(Meta::assign(name, string_literal(text)));
        }
    }
    if column.priority != 0 {
        args.push(Meta::assign("priority", column.priority));
    }
    Meta::list("printcolumn", args)
}

fn scale_arg(scale: &Scale) -> Meta {
    let mut args = vec![
        Meta::assign("spec_replicas_path", string_literal(&scale.spec_replicas_path)),
        Meta::assign(
            "status_replicas_path",
            string_literal(&scale.status_replicas_path),
        ),
    ];
    let selector = scale
        .label_selector_path
        .as_deref()
        .filter(|path| !path.is_empty());
    args.extend(selector.map(|path| Meta::assign("label_selector_path", string_literal(path))));
    Meta::list("scale", args)
}

fn conversion_arg(conversion: &Conversion) -> Meta {
    let mut args = Vec::new();
    if let Some(url) = &conversion.url {
        args.push(Meta::assign("url", string_literal(url)));
    } else if let Some(service) = &conversion.service {
        args.push(Meta::assign("service_name", string_literal(&service.name)));
        args.push(Meta::assign(
            "service_namespace",
            string_literal(&service.namespace),
        ));
        args.extend(service.port.map(|port| Meta::assign("service_port", port)));
        // Without a path, the API server calls `/`, but the generator would default to `/convert`.
        let path = service.path.as_deref().unwrap_or("/");
        args.push(Meta::assign("path", string_literal(path)));
    }
    args.extend(
        conversion
            .ca_bundle
            .as_ref()
            .map(|bundle| Meta::assign("ca_bundle", string_literal(bundle))),
    );
    let versions = serde_json::Value::from(conversion.review_versions.clone());
    args.push(Meta::assign("review_versions", literal(&versions)));
    Meta::list("conversion", args)
}

fn is_kube_rule(rule: &Cel) -> bool {
    rule.optional_old_self.is_none() && !(rule.message.is_some() && rule.message_expression.is_some())
}

fn kube_rule(rule: &Cel) -> Meta {
    let expression = string_literal(&rule.rule);
    let is_plain = *rule
        == (Cel {
            rule: rule.rule.clone(),
            ..Cel::default()
        });
    if is_plain {
        return Meta::assign("validation", expression);
    }
    let mut text = format!("Rule::new({expression})");
    if let Some(message) = &rule.message {
        text += &format!(".message({})", string_literal(message));
    }
    if let Some(message) = &rule.message_expression {
        text += &format!(
            ".message(Message::Expression({}.into()))",
            string_literal(message)
        );
    }
    if let Some(reason) = rule.reason {
        text += &format!(".reason(Reason::{})", reason.as_str());
    }
    if let Some(path) = &rule.field_path {
        text += &format!(".field_path({})", string_literal(path));
    }
    Meta::assign("validation", text)
}

/// A `cel(…)` for each rule, since each becomes an attribute.
pub(crate) fn rule_args(rules: &[Cel]) -> Vec<Meta> {
    rules.iter().map(rule_arg).collect()
}
