//! Serde's four enum representations as structural schemas.
//!
//! A structural schema must define every field once, outside of `oneOf` and `anyOf`, whose
//! alternatives may only tell which fields go together. That's why the fields of all variants are
//! hoisted into a single object. There is a module for each way of telling the variants apart: by
//! key (`external`), by tag (`tagged`), or by trial and error (`untagged`).

mod external;
mod tagged;
mod unchecked;
mod untagged;

use std::collections::BTreeSet;
use std::sync::Arc;

use rbuilder_diagnostic::Diagnostic;
use serde_json::Value;

pub use self::unchecked::{Unchecked, find_unchecked};
use crate::absent::AbsentValues;
use crate::apply::apply_markers;
use crate::build::of_type;
use crate::object::object_schema;
use crate::{
    Content, Field, KEYS, Key, Markers, Part, Role, Schema, SchemaType, Site, Slot, Tagging, Variant,
};

struct Case<'a> {
    position: usize,
    variant: &'a Variant,
    carried: Option<Carried>,
    /// True if serde rejects fields that the variant lacks, even if other variants have them.
    is_closed: bool,
}

struct Carried {
    schema: Schema,
    /// True for an `Option`, whose `None` serde serializes as `null`.
    optional: bool,
}

impl Case<'_> {
    fn site(&self) -> Site {
        Site::Variant(self.position)
    }
}

pub(crate) fn enum_schema(
    tagging: &Tagging,
    (variants, denies_unknown): (&[Variant], bool),
    slots: &[Slot],
    absent: &mut AbsentValues<'_>,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) -> Schema {
    if variants.is_empty() {
        return no_value();
    }
    let mut none = AbsentValues::default();
    let cases = variants.iter().enumerate().map(|(position, variant)| {
        // If all variants share one object, the API server would add the default to objects of the
        // other variants, too.
        let is_apart = variants.len() == 1 || *tagging == Tagging::External && !variant.untagged;
        let absent = if is_apart { &mut *absent } else { &mut none };
        let mut carried = carried(position, variant, slots, absent, diagnostics);
        if let Some(carried) = carried.as_mut().filter(|_| !is_apart) {
            drop_defaults(&variant.content, &mut carried.schema);
        }
        Case {
            position,
            variant,
            carried,
            is_closed: denies_unknown && matches!(variant.content, Content::Object(_)),
        }
    });
    let is_untagged = |case: &Case<'_>| case.variant.untagged || *tagging == Tagging::Untagged;
    let (untagged, tagged): (Vec<_>, Vec<_>) = cases.partition(is_untagged);
    check_names(&tagged, diagnostics);
    if untagged.is_empty() {
        return by_tag(tagging, tagged, diagnostics);
    }
    // Put the tagged variants first, because serde tries them before the others.
    let tagged = (!tagged.is_empty()).then(|| by_tag(tagging, tagged, diagnostics));
    untagged::any_of_these(tagged, untagged, diagnostics)
}

fn no_value() -> Schema {
    Schema {
        // An empty `enum` wouldn't do: the API server drops it and would then accept every string.
        not: Some(Arc::default()),
        ..of_type(SchemaType::String)
    }
}

fn check_names(cases: &[Case<'_>], diagnostics: &mut Vec<Diagnostic<Part>>) {
    let mut names = BTreeSet::new();
    for case in cases {
        let name = case.variant.name.as_str();
        // If two variants share a name, serde always deserializes to the first.
        if !names.insert(name) {
            let diagnostic = Diagnostic::error((), format!("duplicate variant name \"{name}\" in JSON"));
            diagnostics.push(diagnostic.at(case.site().into()));
        }
    }
}

fn by_tag(tagging: &Tagging, cases: Vec<Case<'_>>, diagnostics: &mut Vec<Diagnostic<Part>>) -> Schema {
    let carries = cases.iter().any(|case| case.carried.is_some());
    match tagging {
        Tagging::Internal(tag) | Tagging::Adjacent(tag, _) if !carries => tagged::tag_object(tag, &cases),
        Tagging::Internal(tag) => tagged::internal_enum(tag, cases, diagnostics),
        Tagging::Adjacent(tag, content) => tagged::adjacent_enum(tag, content, cases, diagnostics),
        Tagging::External | Tagging::Untagged if !carries => name_schema(&cases),
        Tagging::External | Tagging::Untagged => external::external_enum(cases, diagnostics),
    }
}

fn carried(
    position: usize,
    variant: &Variant,
    slots: &[Slot],
    absent: &mut AbsentValues<'_>,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) -> Option<Carried> {
    let mut optional = false;
    let mut schema = match &variant.content {
        Content::Unit => {
            if variant.markers != *Markers::none() {
                let diagnostic = Diagnostic::error((), "markers have no effect on a variant without data");
                diagnostics.push(diagnostic.at(Site::Variant(position).into()));
            }
            return None;
        }
        Content::Newtype(slot) => {
            let slot = slots.get(*slot);
            optional = slot.is_some_and(|slot| slot.optional);
            slot.map(|slot| Schema::clone(&slot.schema)).unwrap_or_default()
        }
        Content::Object(fields) => {
            let mut found = Vec::new();
            let site = |field| Site::VariantField(position, field);
            let schema = object_schema(fields, slots, absent, &site, &mut found);
            diagnostics.extend(
                found
                    .into_iter()
                    .map(|(field, diagnostic)| site(field).mark(diagnostic)),
            );
            schema
        }
    };
    // Like that of a field, the description of a variant replaces the description of its type.
    if variant.description.is_some() {
        schema.description = variant.description.as_deref().map(Arc::from);
    }
    let mut found = Vec::new();
    apply_markers(&variant.markers, &mut schema, &mut found);
    diagnostics.extend(
        found
            .into_iter()
            .map(|diagnostic| Site::Variant(position).mark(diagnostic)),
    );
    Some(Carried { schema, optional })
}

fn drop_defaults(content: &Content, schema: &mut Schema) {
    let fields = match content {
        Content::Object(fields) => fields.as_slice(),
        Content::Unit | Content::Newtype(_) => &[],
    };
    for (name, property) in &mut schema.properties {
        let is_marked = |field: &Field| *field.name == **name && field.markers.default.is_some();
        if property.default.is_some() && !fields.iter().any(is_marked) {
            Arc::make_mut(property).default = None;
        }
    }
}

fn name(case: &Case<'_>) -> Value {
    Value::String(case.variant.name.clone())
}

fn name_schema(cases: &[Case<'_>]) -> Schema {
    // `#[serde(other)]` matches any name.
    let is_open = cases.iter().any(|case| case.variant.other);
    Schema {
        enumeration: if is_open {
            Vec::new()
        } else {
            cases.iter().map(name).collect()
        },
        ..of_type(SchemaType::String)
    }
}

fn requires(names: impl IntoIterator<Item = Arc<str>>) -> Schema {
    Schema {
        required: names.into_iter().collect(),
        ..Schema::default()
    }
}

/// Restricts a value validation to values of one type. It must not contain `type`, so all other
/// types are excluded instead.
fn only_of(kept: SchemaType, alternative: Schema) -> Schema {
    // Contradictory bounds reject all values of their type without affecting values of other types.
    let mut alternative = alternative;
    if kept != SchemaType::String {
        alternative.min_length = Some(1);
        alternative.max_length = Some(0);
    }
    if kept != SchemaType::Array {
        alternative.min_items = Some(1);
        alternative.max_items = Some(0);
    }
    if kept != SchemaType::Integer {
        alternative.minimum = Some(1.into());
        alternative.maximum = Some(0.into());
    }
    if kept != SchemaType::Object {
        alternative.min_properties = Some(1);
        alternative.max_properties = Some(0);
    }
    // Booleans have no bounds, so exclude both values.
    let truths = Schema {
        enumeration: vec![Value::Bool(true), Value::Bool(false)],
        ..Schema::default()
    };
    Schema {
        not: Some(truths.into()),
        ..alternative
    }
}

/// Removes everything that a value validation must not contain, such as the type and the
/// descriptions.
fn value_only(schema: &Schema) -> Schema {
    Schema {
        schema_type: None,
        default: None,
        nullable: false,
        validations: Vec::new(),
        ..schema.without(|key| key.role == Role::Words)
    }
}

/// Keeps only the constraints on which fields must be present together.
fn presence_of(content: &Schema) -> Schema {
    Schema {
        required: content.required.clone(),
        one_of: content.one_of.clone(),
        any_of: content.any_of.clone(),
        all_of: content.all_of.clone(),
        ..Schema::default()
    }
}

/// Returns a validation that matches if a field of another variant is present, or `None` if the
/// other variants have no further fields.
fn without_others(own: &Schema, all: &Schema, tag: Option<&str>) -> Option<Arc<Schema>> {
    let is_other = |name: &&Arc<str>| !own.properties.contains_key(*name) && tag != Some(&***name);
    let mut others = all
        .properties
        .keys()
        .filter(is_other)
        .map(|name| requires([Arc::clone(name)]));
    let first = others.next()?;
    let rest: Vec<Schema> = others.collect();
    if rest.is_empty() {
        return Some(first.into());
    }
    let any_of = std::iter::once(first).chain(rest).collect();
    Some(Arc::new(Schema {
        any_of,
        ..Schema::default()
    }))
}

/// Reports the first field of another variant with a default: the API server would add it to
/// objects of this variant, which serde would then reject.
fn check_defaults_of_others(own: &Schema, all: &Schema) -> Result<(), Diagnostic<()>> {
    let is_other = |(name, property): &(&Arc<str>, &Arc<Schema>)| {
        !own.properties.contains_key(*name) && property.default.is_some()
    };
    let Some((name, _)) = all.properties.iter().find(is_other) else {
        return Ok(());
    };
    let message = format!(
        "the API server adds the default of \"{name}\" to every variant, and serde rejects it in this one"
    );
    Err(Diagnostic::error((), message).help("remove `deny_unknown_fields`, or the default"))
}

/// Adds the fields of a variant to the fields of the enum. Variants with a field of the same name
/// must agree on its schema.
fn hoist_variant(content: &Schema, schema: &mut Schema) -> Result<(), Diagnostic<()>> {
    if content.preserve_unknown_fields && content.properties.is_empty() {
        schema.preserve_unknown_fields = true;
        return Ok(());
    }
    if content.schema_type != Some(SchemaType::Object) {
        let diagnostic = Diagnostic::error((), "an internally tagged variant must hold an object");
        return Err(
            diagnostic.help("put a struct into the variant, or use `#[serde(tag = \"…\", content = \"…\")]`")
        );
    }
    if content.min_properties.is_some() || content.max_properties.is_some() {
        let diagnostic = Diagnostic::error(
            (),
            "the fields of this variant are merged with others, so they cannot be counted",
        );
        return Err(diagnostic.help("remove `min_properties` and `max_properties`"));
    }
    for (name, property) in &content.properties {
        match schema.properties.get(name) {
            Some(other) if !same(other, property) => {
                let diagnostic = Diagnostic::error(
                    (),
                    format!(
                        "the field \"{name}\" has a different type or different constraints in an earlier variant"
                    ),
                );
                return Err(diagnostic.help("give the fields different names, or the same type and markers"));
            }
            Some(_) => {}
            None => {
                schema.properties.insert(Arc::clone(name), Arc::clone(property));
            }
        }
    }
    if content.additional_properties.is_some() || content.preserve_unknown_fields {
        schema.preserve_unknown_fields = true;
    }
    Ok(())
}

/// Reports rules on content that can't have any, because either the type of the value or the
/// variant is unknown.
fn refuse_rules<'a>(
    contents: impl IntoIterator<Item = (Site, &'a Schema)>,
    reason: &str,
    help: &str,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) {
    for (site, _) in contents
        .into_iter()
        .filter(|(_, content)| !content.validations.is_empty())
    {
        diagnostics.push(Diagnostic::error(site.into(), reason).help(help));
    }
}

fn same(left: &Schema, right: &Schema) -> bool {
    let described = |key: &&Key| key.role != Role::Words;
    KEYS.iter().filter(described).all(|key| key.is_same(left, right))
}
