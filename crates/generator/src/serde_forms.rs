//! Differences between serde and a schema: things that serde reads or writes but schemas can't
//! express.

use rbuilder_schema::{Container, KeyForm, Markers, Schema, Shape, Site, Slot, Unchecked, find_unchecked};

use serde_json::Number;

use crate::resolve::Ty;

/// A possible mistake in a field.
pub(crate) struct Doubt {
    pub(crate) message: String,
    pub(crate) help: String,
    /// Help for a type that doesn't derive `CrdSchema`.
    pub(crate) help_of_schemars: String,
}

pub(crate) fn key_form(key: &Ty) -> KeyForm {
    let Ty::Known(path) = key else {
        // An enum has fields instead of keys, and other types of the package have their own schema.
        return KeyForm(None);
    };
    KeyForm(match path.as_str() {
        "bool" => Some("`true` and `false`"),
        "char" => Some("single characters"),
        "f32" | "f64" => Some("numbers"),
        _ if path.starts_with("std::net::") => Some("addresses"),
        _ if path.starts_with("std::num::") || !path.contains("::") && path != "str" => Some("integers"),
        "std::string::String" | "std::path::PathBuf" | "std::path::Path" | "str" => None,
        _ => Some("strings of one format"),
    })
}

pub(crate) fn find_doubts(container: &Container, slots: &[Slot]) -> Vec<(Site, Doubt)> {
    let fields = match &container.shape {
        Shape::Object(fields) => fields.as_slice(),
        Shape::Enum { variants, .. } if variants.is_empty() => return vec![(Site::Container, no_values())],
        Shape::Transparent(_) | Shape::Enum { .. } => &[],
    };
    let keys = fields.iter().enumerate().filter_map(|(position, field)| {
        let form = unheld_keys(&slots.get(field.slot)?.schema, Some(&field.markers))?;
        (!field.stated).then(|| (Site::Field(position), any_key(form)))
    });
    let bounds = fields.iter().enumerate().filter_map(|(position, field)| {
        let constraints = field.markers.stated();
        let bounds = [&constraints.minimum, &constraints.maximum];
        let bound = bounds.into_iter().flatten().find(|bound| is_rounded(bound))?;
        Some((Site::Field(position), rounded_bound(bound)))
    });
    let keys = keys.chain(bounds);
    let unchecked = find_unchecked(container, slots);
    keys.chain(unchecked.into_iter().map(|(site, what)| (site, describe(what))))
        .collect()
}

/// Returns true if the API server, which stores bounds as floats, would round the bound.
fn is_rounded(bound: &Number) -> bool {
    let whole = bound.as_i64().map(i128::from).or(bound.as_u64().map(i128::from));
    // Don't complain about the limits of 64-bit integers: no value exceeds them anyway.
    let is_end = |whole: i128| [i64::MAX.into(), u64::MAX.into()].contains(&whole);
    whole.is_some_and(|whole| !is_end(whole) && whole as f64 as i128 != whole)
}

fn rounded_bound(bound: &Number) -> Doubt {
    let stored = bound.as_f64().unwrap_or_default();
    let help = format!(
        "use a bound that is a multiple of a larger power of 2, or a rule: `cel(rule = \"self <= {bound}\")`"
    );
    Doubt {
        message: format!(
            "the API server rounds the bound {bound} to {stored}, because it stores bounds as floating-point numbers"
        ),
        help_of_schemars: help.clone(),
        help,
    }
}

/// Describes a value that the API server accepts but serde rejects.
fn describe(what: Unchecked) -> Doubt {
    let (message, help) = match what {
        Unchecked::MapOfVariant => (
            "the API server does not check the values of this map, because the variants share one object, and serde rejects \
             what does not fit",
            "put the map into a field of the variant, or use `serde_json::Value` for its values",
        ),
        Unchecked::FlattenedMap => (
            "the API server does not check the values of this map, because a schema has fields or a map, and serde rejects what \
             does not fit",
            "remove `flatten`, or use `serde_json::Value` for the values of the map",
        ),
        Unchecked::OtherFields => (
            "the API server accepts fields of other variants here, and serde rejects them",
            "let the type of the content ignore unknown fields, or write its fields in the variant",
        ),
        Unchecked::Content => (
            "the API server accepts any content, because the variants hold different types, and serde rejects what does not fit",
            "use structs in all variants, with different names of fields or with the same types",
        ),
        Unchecked::BesideNames => (
            "the API server accepts any content of variants with data, because other variants are names, and serde rejects what \
             does not fit",
            "write `{}` after the name of each variant without data, or add `#[serde(tag = \"…\")]`",
        ),
        Unchecked::KeptFields => (
            "the API server keeps unknown fields here, but serde rejects them",
            "remove `preserve_unknown_fields`, or let the type ignore unknown fields",
        ),
    };
    Doubt {
        message: message.to_owned(),
        help: help.to_owned(),
        help_of_schemars: help.to_owned(),
    }
}

fn no_values() -> Doubt {
    let help = "add a variant, or put `#[serde(skip)]` on the fields of this type";
    Doubt {
        message: "an enum without variants has no values: a field of this type can only be absent".to_owned(),
        help: help.to_owned(),
        help_of_schemars: help.to_owned(),
    }
}

fn any_key(form: &str) -> Doubt {
    let (rule, condition) = match form {
        "integers" => (
            "validation(pattern = \"^[0-9]{1,9}$\")",
            "key.matches('^[0-9]{1,9}$')",
        ),
        "`true` and `false`" => (
            "validation(enum = [\"true\", \"false\"])",
            "key in ['true', 'false']",
        ),
        "single characters" => ("validation(min_length = 1, max_length = 1)", "size(key) == 1"),
        _ => ("validation(pattern = \"…\")", "key.matches('…')"),
    };
    Doubt {
        message: format!(
            "serde accepts only {form} as keys of this map, but the API server accepts any string"
        ),
        help: format!("restrict the keys: `#[kube(keys({rule}), validation(max_properties = 64))]`"),
        help_of_schemars: format!(
            "restrict the keys: `#[schemars(extend(\"maxProperties\" = 64, \"x-kubernetes-validations\" = [{{ \"rule\": \"self.all(key, {condition})\" }}]))]`"
        ),
    }
}

/// Returns the format of keys that no marker validates. The map may be nested in a list or another
/// map.
fn unheld_keys(schema: &Schema, markers: Option<&Markers>) -> Option<&'static str> {
    if let Some(form) = schema.keys.0
        && markers.is_none_or(|markers| markers.keys.is_none() && !has_rule_on_keys(markers))
    {
        return Some(form);
    }
    let items = markers.and_then(|markers| markers.items.as_deref());
    let values = markers.and_then(|markers| markers.values.as_deref());
    let inside = |part: &Option<_>, markers| {
        let part: &Option<std::sync::Arc<Schema>> = part;
        unheld_keys(part.as_deref()?, markers)
    };
    inside(&schema.items, items).or_else(|| inside(&schema.additional_properties, values))
}

fn has_rule_on_keys(markers: &Markers) -> bool {
    markers.cel.iter().any(|rule| rule.rule.contains("self.all("))
}

/// Returns serde's names, sorted, or `None` if this isn't a struct.
pub(crate) fn field_names(shape: &Shape) -> Option<Vec<String>> {
    let Shape::Object(fields) = shape else {
        return None;
    };
    let mut names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
    names.sort();
    Some(names)
}
