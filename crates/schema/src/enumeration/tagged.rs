//! `{"tag": "A", …}` and `{"tag": "A", "content": …}`.

use rbuilder_diagnostic::Diagnostic;
use serde_json::Value;

use super::{
    Case, check_defaults_of_others, hoist_variant, name, name_schema, presence_of, refuse_rules, requires,
    same, value_only, without_others,
};
use crate::apply::cel_text;
use crate::build::{any, of_type};
use crate::variant_docs::tag_docs;
use crate::{Cel, Part, Role, Schema, SchemaType, cel_name};

pub(super) fn tag_object(tag: &str, cases: &[Case<'_>]) -> Schema {
    let mut schema = of_type(SchemaType::Object);
    let names = Schema {
        description: tag_docs(cases.iter().map(|case| case.variant)).map(Into::into),
        ..name_schema(cases)
    };
    schema.properties.insert(tag.into(), names.into());
    schema.required.insert(tag.into());
    schema
}

/// Returns the validation of the tag: it accepts the name of the variant or, for `#[serde(other)]`,
/// everything but the names of the other variants.
fn tag_of(case: &Case<'_>, cases: &[Case<'_>]) -> Schema {
    let one_of = |names: Vec<Value>| Schema {
        enumeration: names,
        ..Schema::default()
    };
    if case.variant.other {
        let others = cases.iter().filter(|other| !other.variant.other);
        Schema {
            not: Some(one_of(others.map(name).collect()).into()),
            ..Schema::default()
        }
    } else {
        one_of(vec![name(case)])
    }
}

/// `{"tag": "A", …}`.
pub(super) fn internal_enum(
    tag: &str,
    cases: Vec<Case<'_>>,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) -> Schema {
    let mut schema = tag_object(tag, &cases);
    let mut one_of = Vec::with_capacity(cases.len());
    for case in &cases {
        let mut alternative = Schema::default();
        if let Some(carried) = &case.carried {
            let content = &carried.schema;
            if content.properties.contains_key(tag) {
                let message = format!("the field \"{tag}\" of the variant has the same name as the tag");
                diagnostics.push(Diagnostic::error(case.site().into(), message));
                continue;
            }
            if carried.optional {
                let diagnostic = Diagnostic::error((), "serde cannot serialize an `Option` next to a tag");
                let help = "remove the `Option`, or make the fields of the type optional";
                diagnostics.push(diagnostic.help(help).at(case.site().into()));
                continue;
            }
            if let Err(diagnostic) = hoist_variant(content, &mut schema) {
                diagnostics.push(diagnostic.at(case.site().into()));
            }
            schema
                .validations
                .extend(only_for(tag, &case.variant.name, &content.validations));
            alternative = presence_of(content);
        }
        alternative
            .properties
            .insert(tag.into(), tag_of(case, &cases).into());
        one_of.push((case, alternative));
    }
    let one_of: Vec<Schema> = one_of
        .into_iter()
        .map(|(case, alternative)| close(case, alternative, Some(tag), &schema, diagnostics))
        .collect();
    let is_constrained =
        |alternative: &Schema| presence_of(alternative) != Schema::default() || alternative.not.is_some();
    // The `enum` of the tag already checks the names, so `oneOf` is only needed for further
    // constraints.
    if one_of.iter().any(is_constrained) {
        schema.one_of = one_of;
    }
    schema
}

fn close(
    case: &Case<'_>,
    alternative: Schema,
    tag: Option<&str>,
    all: &Schema,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) -> Schema {
    let Some(carried) = case.carried.as_ref().filter(|_| case.is_closed) else {
        return alternative;
    };
    if let Err(diagnostic) = check_defaults_of_others(&carried.schema, all) {
        diagnostics.push(diagnostic.at(case.site().into()));
    }
    Schema {
        not: without_others(&carried.schema, all, tag),
        ..alternative
    }
}

fn only_for(tag: &str, name: &str, rules: &[Cel]) -> Vec<Cel> {
    // If CEL can't refer to the tag, apply the rules to every variant: rejecting too much is better
    // than never running them.
    let Some(tag) = cel_name(tag) else {
        return rules.to_vec();
    };
    let guard = |rule: &Cel| Cel {
        rule: format!("{} || ({})", other_variant(&tag, name, rule), rule.rule),
        ..rule.clone()
    };
    rules.iter().map(guard).collect()
}

/// Returns a condition that holds for objects of other variants.
fn other_variant(tag: &str, name: &str, rule: &Cel) -> String {
    let name = cel_text(name);
    let now = format!("self.{tag} != {name}");
    if is_transition(rule) {
        // The old object may have been a different variant that lacks the fields.
        format!("{now} || oldSelf.{tag} != {name}")
    } else {
        now
    }
}

/// Returns whether a rule only runs on updates: it uses `oldSelf` without setting
/// `optionalOldSelf`.
fn is_transition(rule: &Cel) -> bool {
    rule.rule.contains("oldSelf") && rule.optional_old_self.is_none()
}

/// `{"tag": "A", "content": …}`.
pub(super) fn adjacent_enum(
    tag: &str,
    content: &str,
    cases: Vec<Case<'_>>,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) -> Schema {
    let mut schema = tag_object(tag, &cases);
    let contents: Vec<&Schema> = cases
        .iter()
        .filter_map(|case| case.carried.as_ref())
        .map(|carried| &carried.schema)
        .collect();
    let common = common(&contents);
    let is_required = |case: &Case<'_>| case.carried.as_ref().is_some_and(|carried| !carried.optional);
    let all_require = cases.iter().all(is_required);
    if all_require {
        schema.required.insert(content.into());
    }
    let mut one_of = Vec::with_capacity(cases.len());
    let mut is_constrained = false;
    let any_carries = !contents.is_empty();
    for case in &cases {
        let mut alternative = Schema::default();
        alternative
            .properties
            .insert(tag.into(), tag_of(case, &cases).into());
        if is_required(case) && !all_require {
            alternative.required.insert(content.into());
            is_constrained = true;
        }
        if let Some(carried) = &case.carried {
            let constraints = common.constraints_of(&carried.schema);
            let constraints = match &common {
                Common::Object(all) => close(case, constraints, None, all, diagnostics),
                _ => constraints,
            };
            if constraints != Schema::default() {
                alternative.properties.insert(content.into(), constraints.into());
                is_constrained = true;
            }
        } else if any_carries {
            // serde rejects content in a variant without content.
            alternative.not = Some(requires([content.into()]).into());
            is_constrained = true;
        }
        one_of.push(alternative);
    }
    if is_constrained {
        schema.one_of = one_of;
    }
    rules(tag, content, &common, &cases, &mut schema, diagnostics);
    schema
        .properties
        .insert(content.into(), common.into_schema().into());
    schema
}

/// The common part of the contents of all variants.
pub(super) enum Common {
    /// All contents have the same schema.
    Same(Schema),
    /// Objects whose fields can be merged. Each variant specifies its required fields.
    Object(Schema),
    /// Scalars of one type, with separate constraints for each variant.
    Scalar(Schema),
    /// Nothing in common, so the schema has to accept anything.
    Nothing,
}

pub(super) fn common(contents: &[&Schema]) -> Common {
    let Some((first, rest)) = contents.split_first() else {
        return Common::Nothing;
    };
    if rest.iter().all(|other| same(first, other)) {
        return Common::Same(Schema::clone(first));
    }
    let schema_type = first.schema_type;
    if rest.iter().any(|other| other.schema_type != schema_type) {
        return Common::Nothing;
    }
    match schema_type {
        Some(SchemaType::Object) => {
            let mut hoisted = of_type(SchemaType::Object);
            let fits = contents
                .iter()
                .all(|content| hoist_variant(content, &mut hoisted).is_ok());
            if fits {
                Common::Object(hoisted)
            } else {
                Common::Nothing
            }
        }
        None | Some(SchemaType::Array) => Common::Nothing,
        Some(scalar) => {
            let shared = rest.iter().all(|other| other.format == first.format);
            Common::Scalar(Schema {
                format: first.format.clone().filter(|_| shared),
                ..of_type(scalar)
            })
        }
    }
}

impl Common {
    /// Returns the constraints on a variant's content that are not in the common part, as a value
    /// validation.
    fn constraints_of(&self, content: &Schema) -> Schema {
        match self {
            Common::Same(_) => Schema::default(),
            Common::Object(_) => presence_of(content),
            Common::Scalar(_) => Schema {
                format: None,
                ..value_only(content)
            },
            // The schema defines neither fields nor items, so the validation must not mention any.
            // It can still constrain the value itself.
            Common::Nothing => content
                .only(|key| key.role == Role::Constraint && !key.form.has_schemas() && key.name != "format"),
        }
    }

    fn into_schema(self) -> Schema {
        match self {
            Common::Same(schema) | Common::Object(schema) | Common::Scalar(schema) => schema,
            Common::Nothing => any(),
        }
    }
}

/// Adds the rules of the contents. If all contents are the same, the rules can stay there;
/// otherwise they move to the parent, which has the tag.
fn rules(
    tag: &str,
    content: &str,
    common: &Common,
    cases: &[Case<'_>],
    schema: &mut Schema,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) {
    let contents = cases
        .iter()
        .filter_map(|case| Some((case, &case.carried.as_ref()?.schema)));
    match (common, cel_name(tag), cel_name(content)) {
        (Common::Same(_), ..) => {}
        (Common::Nothing, ..) => refuse_rules(
            contents.map(|(case, content)| (case.site(), content)),
            "a rule on this variant would never run: the variants hold different types, so the content has no schema",
            "use structs in all variants, whose fields have different names or the same types",
            diagnostics,
        ),
        (_, Some(tag), Some(path)) => {
            for (case, carried) in contents {
                let moved = carried
                    .validations
                    .iter()
                    .map(|rule| about_content(&tag, content, &path, &case.variant.name, rule));
                schema.validations.extend(moved);
            }
        }
        (..) => refuse_rules(
            contents.map(|(case, content)| (case.site(), content)),
            "CEL cannot refer to the tag and the content by these names",
            "rename them to names with letters",
            diagnostics,
        ),
    }
}

/// Converts a rule on the content of a variant to a rule on its parent.
fn about_content(tag: &str, content: &str, path: &str, variant: &str, rule: &Cel) -> Cel {
    let other = other_variant(tag, variant, rule);
    // Rebind `self` to the content by wrapping it in a list with a single item: CEL can only bind
    // names in a macro over a list.
    let asked = if is_transition(rule) {
        format!(
            "!has(self.{path}) || !has(oldSelf.{path}) || [self.{path}].all(self, [oldSelf.{path}].all(oldSelf, {}))",
            rule.rule
        )
    } else {
        format!("!has(self.{path}) || [self.{path}].all(self, {})", rule.rule)
    };
    Cel {
        rule: format!("{other} || {asked}"),
        field_path: rule.field_path.as_ref().map(|inner| format!(".{content}{inner}")),
        message_expression: rule
            .message_expression
            .as_ref()
            .map(|text| format!("[self.{path}].map(self, {text})[0]")),
        ..rule.clone()
    }
}
