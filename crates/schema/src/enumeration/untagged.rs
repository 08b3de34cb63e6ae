//! `#[serde(untagged)]`: only the content, which serde tries to read as each variant in turn.

use rbuilder_diagnostic::Diagnostic;

use super::{
    Carried, Case, check_defaults_of_others, hoist_variant, only_of, presence_of, refuse_rules, same,
    value_only, without_others,
};
use crate::build::{any, int_or_string, of_type};
use crate::{Key, Part, Schema, SchemaType, Site, Subject};

/// One way to read a value, and where to report problems with it.
type Alternative = (Site, Schema);

type ClosedSites = Vec<Site>;

/// Builds the schema of variants that serde tries in turn. `tagged` is the schema of all tagged
/// variants, which serde tries first.
pub(super) fn any_of_these(
    tagged: Option<Schema>,
    cases: Vec<Case<'_>>,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) -> Schema {
    let mut contents: Vec<Alternative> = Vec::with_capacity(cases.len() + 1);
    contents.extend(tagged.map(|schema| (Site::Container, schema)));
    let mut closed = ClosedSites::new();
    for case in cases {
        let site = case.site();
        closed.extend(case.is_closed.then_some(site));
        match case.carried {
            Some(Carried {
                schema,
                optional: false,
            }) => contents.push((site, schema)),
            Some(_) => {
                let diagnostic = Diagnostic::error(
                    (),
                    "a variant with an `Option` in an untagged enum can be `null`, which a CRD cannot store",
                );
                let help = "remove the `Option`, and make the field that holds the enum an `Option`";
                diagnostics.push(diagnostic.help(help).at(site.into()));
            }
            None => {
                let diagnostic = Diagnostic::error(
                    (),
                    "a unit variant of an untagged enum is `null`, which a CRD cannot store",
                );
                diagnostics.push(diagnostic.help("write `{}` after its name").at(site.into()));
            }
        }
    }
    merged(&contents, &closed, diagnostics)
}

fn merged(contents: &[Alternative], closed: &ClosedSites, diagnostics: &mut Vec<Diagnostic<Part>>) -> Schema {
    let all = |holds: &dyn Fn(&Schema) -> bool| contents.iter().all(|(_, content)| holds(content));
    let is = |schema_type| move |content: &Schema| content.schema_type == Some(schema_type);
    let is_int_or_text = |content: &Schema| {
        content.int_or_string || is(SchemaType::Integer)(content) || is(SchemaType::String)(content)
    };
    let is_number = |content: &Schema| is(SchemaType::Integer)(content) || is(SchemaType::Number)(content);
    let Some((_, first)) = contents.first() else {
        return any();
    };
    // Maps have no fields to merge.
    if first.additional_properties.is_some() && all(&|content| same(first, content)) {
        return first.clone();
    }
    if all(&is(SchemaType::Object)) {
        return objects(contents, closed, diagnostics);
    }
    if contents
        .iter()
        .any(|(_, content)| content.preserve_unknown_fields && content.schema_type.is_none())
    {
        return any();
    }
    if all(&|content| same(first, content)) {
        return first.clone();
    }
    no_rules(contents, diagnostics);
    match first.schema_type {
        Some(only) if only != SchemaType::Array && all(&is(only)) => one_type(only, contents),
        _ if all(&is_number) => one_type(SchemaType::Number, contents),
        _ if all(&is_int_or_text) => int_or_text(contents),
        _ => {
            let diagnostic =
                Diagnostic::error((), "the variants of this untagged enum have different JSON types");
            let help = "add `#[serde(tag = \"…\")]`, or accept any content with `#[crd(preserve_unknown_fields)]` on the enum";
            diagnostics.push(diagnostic.help(help).at(Site::Container.into()));
            any()
        }
    }
}

fn no_rules(contents: &[Alternative], diagnostics: &mut Vec<Diagnostic<Part>>) {
    refuse_rules(
        contents.iter().map(|(site, content)| (*site, content)),
        "a rule on a variant of an untagged enum cannot tell which variant a value is",
        "move the rule to the enum, or add `#[serde(tag = \"…\")]`",
        diagnostics,
    );
}

/// Merges variants of the same type. At least one variant's constraints must hold, so if any
/// variant has none, there are none.
fn one_type(schema_type: SchemaType, contents: &[Alternative]) -> Schema {
    let mut any_of: Vec<_> = contents.iter().map(|(_, content)| value_only(content)).collect();
    // The API server only checks the format of a number next to the type, so keep it there if all
    // variants have the same format.
    let is_number = matches!(schema_type, SchemaType::Integer | SchemaType::Number);
    let mut formats: Vec<_> = contents.iter().map(|(_, content)| &content.format).collect();
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

fn int_or_text(contents: &[Alternative]) -> Schema {
    let mut schema = int_or_string();
    let of_sort = |schema_type: SchemaType| -> Vec<Schema> {
        let sort = contents
            .iter()
            .map(|(_, content)| content)
            .filter(|content| content.int_or_string || content.schema_type == Some(schema_type));
        sort.map(|content| own_constraints(schema_type, content))
            .collect()
    };
    for (schema_type, other) in [
        (SchemaType::Integer, SchemaType::String),
        (SchemaType::String, SchemaType::Integer),
    ] {
        let mut alternatives = of_sort(schema_type);
        if alternatives.contains(&Schema::default()) {
            continue;
        }
        let has_values = alternatives.iter().any(|one| !one.enumeration.is_empty());
        match alternatives.as_slice() {
            [] => {}
            [only] if !has_values => beside(&mut schema, only),
            _ => {
                // Unlike bounds, an `enum` applies to values of every type, so let the other type
                // through.
                if has_values {
                    alternatives.push(only_of(other, Schema::default()));
                }
                schema.all_of.push(Schema {
                    any_of: alternatives,
                    ..Schema::default()
                });
            }
        }
    }
    schema
}

/// Returns a variant's constraints on values of one type. A format, which only works next to a
/// type, becomes the bounds that it implies.
fn own_constraints(schema_type: SchemaType, content: &Schema) -> Schema {
    let own = value_only(content);
    let kept = Schema {
        int_or_string: false,
        // For an integer-or-string, `anyOf` only lists the two types.
        any_of: if content.int_or_string {
            Vec::new()
        } else {
            own.any_of.clone()
        },
        ..own
    };
    if schema_type == SchemaType::String {
        return kept.without(|key| key.subject == Subject::Number);
    }
    let narrow = content.format.as_deref() == Some("int32");
    Schema {
        format: None,
        minimum: kept.minimum.clone().or_else(|| narrow.then(|| i32::MIN.into())),
        maximum: kept.maximum.clone().or_else(|| narrow.then(|| i32::MAX.into())),
        ..kept.without(|key| key.subject == Subject::Text)
    }
}

fn beside(schema: &mut Schema, only: &Schema) {
    let is_scalar = |key: &Key| matches!(key.subject, Subject::Number | Subject::Text);
    schema.overlay(&only.only(is_scalar));
    let rest = only.without(is_scalar);
    if rest != Schema::default() {
        schema.all_of.push(rest);
    }
}

fn objects(
    contents: &[Alternative],
    closed: &ClosedSites,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) -> Schema {
    no_rules(contents, diagnostics);
    let mut schema = of_type(SchemaType::Object);
    for (site, content) in contents {
        if let Err(diagnostic) = hoist_variant(content, &mut schema) {
            diagnostics.push(diagnostic.at((*site).into()));
        }
    }
    let mut any_of = Vec::with_capacity(contents.len());
    for (site, content) in contents {
        let mut alternative = presence_of(content);
        if closed.contains(site) {
            if let Err(diagnostic) = check_defaults_of_others(content, &schema) {
                diagnostics.push(diagnostic.at((*site).into()));
            }
            alternative.not = without_others(content, &schema, None);
        }
        any_of.push(alternative);
    }
    // A variant without requirements matches every object, so `anyOf` would be a no-op.
    if !any_of.contains(&Schema::default()) {
        schema.any_of = any_of;
    }
    schema
}
