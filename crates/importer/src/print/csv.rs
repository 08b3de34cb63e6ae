//! Prints `#[csv(…)]`.

use rbuilder_schema::{CsvKind, CsvResource, Descriptor};
use serde_json::Value;

use super::{Meta, literal, string_literal};

pub(crate) fn csv_args(descriptor: &Descriptor) -> Vec<Meta> {
    let mut args = text_args(&descriptor.display_name, &descriptor.description);
    if !descriptor.x_descriptors.is_empty() {
        let hints = Value::from(descriptor.x_descriptors.clone());
        args.push(Meta::assign("x_descriptors", literal(&hints)));
    }
    args.extend(descriptor.order.map(|order| Meta::assign("order", order)));
    args
}

pub(crate) fn kind_csv_args(kind: &CsvKind) -> Vec<Vec<Meta>> {
    let mut texts = text_args(&kind.display_name, &kind.description);
    texts.extend(kind.order.map(|order| Meta::assign("order", order)));
    let resources = kind.resources.iter().map(|resource| vec![resource_arg(resource)]);
    let mut attributes = vec![texts];
    attributes.extend(resources);
    attributes.retain(|args| !args.is_empty());
    attributes
}

fn text_args(display_name: &Option<String>, description: &Option<String>) -> Vec<Meta> {
    let texts = [("display_name", display_name), ("description", description)];
    texts
        .into_iter()
        .filter_map(|(name, text)| Some(Meta::assign(name, string_literal(text.as_ref()?))))
        .collect()
}

fn resource_arg(resource: &CsvResource) -> Meta {
    let texts = [
        ("kind", &resource.kind),
        ("version", &resource.version),
        ("name", &resource.name),
    ];
    let args = texts.into_iter().filter(|(_, text)| !text.is_empty());
    Meta::list(
        "resource",
        args.map(|(name, text)| Meta::assign(name, string_literal(text)))
            .collect(),
    )
}
