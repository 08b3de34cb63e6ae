//! Enums: serde's four representations as structural schemas.
//!
//! A structural schema names every field once, outside of `oneOf` and `anyOf`; the alternatives only say which
//! fields go together. So the fields of all variants are hoisted into one object.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::apply::{Complaint, apply, cel_text};
use crate::build::{any, int_or_string, of_type};
use crate::object::object;
use crate::{Cel, Content, Markers, Problem, Schema, SchemaType, Site, Slot, Tagging, Variant, cel_name};

/// Builds the schema of an enum.
pub(crate) fn enumeration(
    tagging: &Tagging,
    variants: &[Variant],
    slots: &[Slot],
    problems: &mut Vec<Problem>,
) -> Schema {
    if variants.is_empty() {
        problems.push(Complaint::new("an enum without variants has no values").at(Site::Container));
        return Schema::default();
    }
    let contents: Vec<Option<Schema>> = variants
        .iter()
        .enumerate()
        .map(|(position, variant)| content(position, variant, slots, problems))
        .collect();
    match tagging {
        _ if contents.iter().all(Option::is_none) && !matches!(tagging, Tagging::Untagged) => {
            unit_only(tagging, variants)
        }
        Tagging::External => external(variants, contents),
        Tagging::Internal(tag) => internal(tag, variants, contents, problems),
        Tagging::Adjacent(tag, content) => adjacent(tag, content, variants, contents),
        Tagging::Untagged => untagged(contents, problems),
    }
}

impl Complaint {
    pub(crate) fn at(self, site: Site) -> Problem {
        Problem {
            site,
            message: self.message,
            help: self.help,
        }
    }
}

/// What one variant carries; nothing for a unit variant.
fn content(
    position: usize,
    variant: &Variant,
    slots: &[Slot],
    problems: &mut Vec<Problem>,
) -> Option<Schema> {
    let mut schema = match &variant.content {
        Content::Unit => {
            if variant.markers != Markers::default() {
                let complaint = Complaint::new("a variant that carries nothing has nothing to constrain");
                problems.push(complaint.at(Site::Variant(position)));
            }
            return None;
        }
        Content::Newtype(slot) => slots
            .get(*slot)
            .map(|slot| Schema::clone(&slot.schema))
            .unwrap_or_default(),
        Content::Object(fields) => {
            let mut complaints = Vec::new();
            let schema = object(fields, slots, &mut complaints);
            let site = |field| Site::VariantField(position, field);
            problems.extend(
                complaints
                    .into_iter()
                    .map(|(field, complaint)| complaint.at(site(field))),
            );
            schema
        }
    };
    if variant.description.is_some() {
        schema.description = variant.description.as_deref().map(Arc::from);
    }
    let mut complaints = Vec::new();
    apply(&variant.markers, &mut schema, &mut complaints);
    problems.extend(
        complaints
            .into_iter()
            .map(|complaint| complaint.at(Site::Variant(position))),
    );
    Some(schema)
}

fn names(variants: &[Variant]) -> Vec<Value> {
    variants
        .iter()
        .map(|variant| Value::String(variant.name.clone()))
        .collect()
}

fn one_name(name: &str) -> Schema {
    Schema {
        enumeration: vec![Value::String(name.to_owned())],
        ..Schema::default()
    }
}

/// The names as a text, with what the variants' doc comments say, since nothing else in a CRD can say it.
fn name_schema(variants: &[Variant]) -> Schema {
    Schema {
        enumeration: names(variants),
        ..of_type(SchemaType::String)
    }
}

/// What the doc comments of unit variants add to the description of the enum: one line for each.
pub(crate) fn variant_docs(variants: &[Variant]) -> Option<String> {
    if !variants.iter().all(|variant| variant.content == Content::Unit) {
        return None;
    }
    let line = |variant: &Variant| {
        let text = variant.description.as_ref()?;
        let words: Vec<_> = text.split_whitespace().collect();
        Some(format!("- {}: {}", variant.name, words.join(" ")))
    };
    let lines: Vec<_> = variants.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn unit_only(tagging: &Tagging, variants: &[Variant]) -> Schema {
    match tagging {
        Tagging::Internal(tag) | Tagging::Adjacent(tag, _) => tagged_object(tag, variants),
        Tagging::External | Tagging::Untagged => name_schema(variants),
    }
}

fn tagged_object(tag: &str, variants: &[Variant]) -> Schema {
    let mut schema = of_type(SchemaType::Object);
    schema.properties.insert(tag.into(), name_schema(variants).into());
    schema.required.insert(tag.into());
    schema
}

fn requires(names: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Schema {
    Schema {
        required: names.into_iter().map(Into::into).collect(),
        ..Schema::default()
    }
}

/// `required` holds of everything that is no object, and a value validation may not say `type`. Bounds that
/// cross rule the other types out, for each of them is asked of its own type only.
fn object_only(alternative: Schema) -> Schema {
    let truths = Schema {
        enumeration: vec![Value::Bool(true), Value::Bool(false)],
        ..Schema::default()
    };
    Schema {
        min_length: Some(1),
        max_length: Some(0),
        min_items: Some(1),
        max_items: Some(0),
        minimum: Some(1.into()),
        maximum: Some(0.into()),
        not: Some(truths.into()),
        ..alternative
    }
}

/// `"A"` or `{"B": …}`.
fn external(variants: &[Variant], contents: Vec<Option<Schema>>) -> Schema {
    if contents.iter().any(Option::is_none) {
        // A text or an object: no type says that, so the content is open and only the names are checked.
        let units = variants
            .iter()
            .zip(&contents)
            .filter(|(_, content)| content.is_none());
        let mut any_of = vec![Schema {
            enumeration: units
                .map(|(variant, _)| Value::String(variant.name.clone()))
                .collect(),
            ..Schema::default()
        }];
        let carrying = variants
            .iter()
            .zip(&contents)
            .filter(|(_, content)| content.is_some());
        any_of.extend(carrying.map(|(variant, _)| object_only(requires([variant.name.as_str()]))));
        return Schema { any_of, ..any() };
    }
    let mut schema = of_type(SchemaType::Object);
    for (variant, content) in variants.iter().zip(contents) {
        schema
            .properties
            .insert(variant.name.as_str().into(), content.unwrap_or_default().into());
    }
    match variants {
        [only] => schema.required.extend([Arc::from(only.name.as_str())]),
        several => {
            schema.one_of = several
                .iter()
                .map(|variant| requires([variant.name.as_str()]))
                .collect()
        }
    }
    schema
}

/// `{"tag": "A", …}`.
fn internal(
    tag: &str,
    variants: &[Variant],
    contents: Vec<Option<Schema>>,
    problems: &mut Vec<Problem>,
) -> Schema {
    let mut schema = tagged_object(tag, variants);
    let mut one_of = Vec::with_capacity(variants.len());
    for (position, (variant, content)) in variants.iter().zip(contents).enumerate() {
        let mut alternative = Schema::default();
        alternative
            .properties
            .insert(tag.into(), one_name(&variant.name).into());
        if let Some(content) = content {
            if content.properties.contains_key(tag) {
                let message = format!("the variant has a field \"{tag}\", which is also the name of the tag");
                problems.push(Complaint::new(message).at(Site::Variant(position)));
                continue;
            }
            if let Err(complaint) = hoist_variant(&content, &mut schema) {
                problems.push(complaint.at(Site::Variant(position)));
            }
            schema
                .validations
                .extend(only_for(tag, &variant.name, &content.validations));
            alternative.required = content.required;
            alternative.one_of = content.one_of;
            alternative.any_of = content.any_of;
            alternative.all_of = content.all_of;
        }
        one_of.push(alternative);
    }
    let says_more = |alternative: &Schema| {
        let Schema {
            required,
            one_of,
            any_of,
            all_of,
            ..
        } = alternative;
        !(required.is_empty() && one_of.is_empty() && any_of.is_empty() && all_of.is_empty())
    };
    if one_of.iter().any(says_more) {
        schema.one_of = one_of;
    }
    schema
}

/// The rules of one variant, asked only of objects with its tag.
fn only_for(tag: &str, name: &str, rules: &[Cel]) -> Vec<Cel> {
    // A tag that no rule can name leaves the rules to every variant: refused too often rather than never.
    let Some(tag) = cel_name(tag) else {
        return rules.to_vec();
    };
    let name = cel_text(name);
    let guard = |rule: &Cel| Cel {
        rule: format!("self.{tag} != {name} || ({})", rule.rule),
        ..rule.clone()
    };
    rules.iter().map(guard).collect()
}

/// `{"tag": "A", "content": …}`.
fn adjacent(tag: &str, content: &str, variants: &[Variant], contents: Vec<Option<Schema>>) -> Schema {
    let mut schema = tagged_object(tag, variants);
    let all_carry = contents.iter().all(Option::is_some);
    if all_carry {
        schema.required.insert(content.into());
    } else {
        let alternatives = variants.iter().zip(&contents).map(|(variant, carried)| {
            let mut alternative = Schema::default();
            alternative
                .properties
                .insert(tag.into(), one_name(&variant.name).into());
            if carried.is_some() {
                alternative.required.insert(content.into());
            }
            alternative
        });
        schema.one_of = alternatives.collect();
    }
    let mut carried = contents.into_iter().flatten();
    let first = carried.next().unwrap_or_default();
    // Different contents have no schema in common that would be true of each; any content is.
    let property = if carried.all(|other| same(&first, &other)) {
        first
    } else {
        any()
    };
    schema.properties.insert(content.into(), property.into());
    schema
}

/// The content alone: which variant it is, serde finds out by trying.
fn untagged(contents: Vec<Option<Schema>>, problems: &mut Vec<Problem>) -> Schema {
    for (position, _) in contents
        .iter()
        .enumerate()
        .filter(|(_, content)| content.is_none())
    {
        let complaint =
            Complaint::new("a unit variant of an untagged enum is `null`, which a CRD cannot hold");
        problems.push(
            complaint
                .help("write `{}` after its name")
                .at(Site::Variant(position)),
        );
    }
    let contents: Vec<Schema> = contents.into_iter().flatten().collect();
    let types: BTreeSet<_> = contents
        .iter()
        .map(|content| content.schema_type.map(|kind| kind as u8))
        .collect();
    if contents
        .iter()
        .all(|content| content.schema_type == Some(SchemaType::Object))
    {
        return untagged_objects(&contents, problems);
    }
    if contents
        .iter()
        .any(|content| content.preserve_unknown_fields && content.schema_type.is_none())
    {
        return any();
    }
    let number = |content: &Schema| {
        matches!(
            content.schema_type,
            Some(SchemaType::Integer | SchemaType::Number)
        )
    };
    let int_or_text = |content: &Schema| {
        content.int_or_string
            || matches!(
                content.schema_type,
                Some(SchemaType::Integer | SchemaType::String)
            )
    };
    if let Some(first) = contents.first()
        && contents.iter().all(|content| same(first, content))
    {
        return first.clone();
    }
    refuse_rules(&contents, problems);
    match contents.first().and_then(|first| first.schema_type) {
        Some(only) if types.len() == 1 && only != SchemaType::Array => one_type(only, &contents),
        Some(_) if contents.iter().all(number) => one_type(SchemaType::Number, &contents),
        _ if contents.iter().all(int_or_text) => int_or_string(),
        _ => {
            let complaint =
                Complaint::new("the variants of this untagged enum are of different types on the wire");
            let help = "give the variants a tag, or take any content with `#[crd(preserve_unknown_fields)]` on the enum";
            problems.push(complaint.help(help).at(Site::Container));
            any()
        }
    }
}

/// Variants of one type: any one of their constraints must hold, unless one of them has none.
fn one_type(schema_type: SchemaType, contents: &[Schema]) -> Schema {
    let mut any_of: Vec<_> = contents.iter().map(value_only).collect();
    // The formats of numbers are known only beside a type, so the one that all have stands there.
    let is_number = matches!(schema_type, SchemaType::Integer | SchemaType::Number);
    let mut formats: Vec<_> = contents.iter().map(|content| &content.format).collect();
    formats.dedup();
    let format = match formats.as_slice() {
        [only] if is_number => (*only).clone(),
        _ => None,
    };
    if is_number {
        any_of.iter_mut().for_each(|member| member.format = None);
    }
    if any_of.contains(&Schema::default()) {
        any_of.clear();
    }
    Schema {
        format,
        any_of,
        ..of_type(schema_type)
    }
}

/// Rules have no place where nothing tells which variant a value is.
fn refuse_rules(contents: &[Schema], problems: &mut Vec<Problem>) {
    for (position, _) in contents
        .iter()
        .enumerate()
        .filter(|(_, content)| !content.validations.is_empty())
    {
        let complaint =
            Complaint::new("nothing tells which variant a value is, so a rule on one has no place");
        let help = "move the rules to the enum, or give the variants a tag";
        problems.push(complaint.help(help).at(Site::Variant(position)));
    }
}

fn untagged_objects(contents: &[Schema], problems: &mut Vec<Problem>) -> Schema {
    refuse_rules(contents, problems);
    let mut schema = of_type(SchemaType::Object);
    for (position, content) in contents.iter().enumerate() {
        if let Err(complaint) = hoist_variant(content, &mut schema) {
            problems.push(complaint.at(Site::Variant(position)));
        }
    }
    // A variant that demands nothing fits every object.
    if contents.iter().all(|content| !content.required.is_empty()) {
        schema.any_of = contents
            .iter()
            .map(|content| requires(content.required.iter().map(Arc::clone)))
            .collect();
    }
    schema
}

/// What a value validation may say: no type, no words.
fn value_only(schema: &Schema) -> Schema {
    Schema {
        schema_type: None,
        description: None,
        title: None,
        default: None,
        example: None,
        external_docs: None,
        nullable: false,
        validations: Vec::new(),
        ..schema.clone()
    }
}

/// Puts the fields of a variant among those of the enum. A field that two variants have must be the same.
fn hoist_variant(content: &Schema, schema: &mut Schema) -> Result<(), Complaint> {
    if content.preserve_unknown_fields && content.properties.is_empty() {
        schema.preserve_unknown_fields = true;
        return Ok(());
    }
    if content.schema_type != Some(SchemaType::Object) {
        let complaint = Complaint::new("this variant carries no object, so its tag has no place");
        return Err(
            complaint.help("put a struct into the variant, or use `#[serde(tag = \"…\", content = \"…\")]`")
        );
    }
    if content.min_properties.is_some() || content.max_properties.is_some() {
        let complaint =
            Complaint::new("the fields of this variant stand among others, so they cannot be counted");
        return Err(complaint.help("remove `min_properties` and `max_properties`"));
    }
    for (name, property) in &content.properties {
        match schema.properties.get(name) {
            Some(other) if !same(other, property) => {
                let complaint = Complaint::new(format!(
                    "the field \"{name}\" is of another type, or otherwise constrained, in an earlier variant"
                ));
                return Err(complaint.help("give the fields different names, or the same type and markers"));
            }
            Some(_) => {}
            None => {
                schema.properties.insert(name.clone(), property.clone());
            }
        }
    }
    if content.additional_properties.is_some() || content.preserve_unknown_fields {
        schema.preserve_unknown_fields = true;
    }
    Ok(())
}

/// Whether two schemas accept the same; words may differ.
fn same(left: &Schema, right: &Schema) -> bool {
    let plain = |schema: &Schema| Schema {
        description: None,
        title: None,
        example: None,
        external_docs: None,
        ..schema.clone()
    };
    plain(left) == plain(right)
}
