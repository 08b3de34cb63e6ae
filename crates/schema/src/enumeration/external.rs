//! `"A"` or `{"B": …}`, where the string or the only key is the name of the variant.

use std::sync::Arc;

use rbuilder_diagnostic::Diagnostic;

use super::{Carried, Case, name, only_of, refuse_rules, requires};
use crate::build::{any, of_type};
use crate::{Part, Schema, SchemaType};

/// Builds the schema of an externally tagged enum that has variants with content.
pub(super) fn external_enum(cases: Vec<Case<'_>>, diagnostics: &mut Vec<Diagnostic<Part>>) -> Schema {
    if cases.iter().any(|case| case.carried.is_none()) {
        return mixed(&cases, diagnostics);
    }
    let mut schema = of_type(SchemaType::Object);
    for case in &cases {
        let mut content = case
            .carried
            .as_ref()
            .map(|carried| carried.schema.clone())
            .unwrap_or_default();
        // The key identifies the variant, so the API server must not drop it for being `null`.
        content.nullable |= case.carried.as_ref().is_some_and(|carried| carried.optional);
        schema.properties.insert(key(case), content.into());
    }
    match cases.as_slice() {
        [only] => schema.required.extend([key(only)]),
        several => schema.one_of = several.iter().map(|case| requires([key(case)])).collect(),
    }
    schema
}

fn mixed(cases: &[Case<'_>], diagnostics: &mut Vec<Diagnostic<Part>>) -> Schema {
    let contents = cases.iter().filter_map(|case| {
        let Carried { schema, .. } = case.carried.as_ref()?;
        Some((case.site(), schema))
    });
    refuse_rules(
        contents,
        "a rule on this variant would never run: some variants are strings and others are objects, so the content has no schema",
        "write `{}` after the name of each variant without data, or add `#[serde(tag = \"…\")]`",
        diagnostics,
    );
    // There is no structural type for "a string or an object", so accept anything and only check
    // the names.
    let is_unit = |case: &&Case<'_>| case.carried.is_none();
    let is_open = cases.iter().any(|case| case.variant.other);
    let names = if is_open {
        only_of(SchemaType::String, Schema::default())
    } else {
        Schema {
            enumeration: cases.iter().filter(is_unit).map(name).collect(),
            ..Schema::default()
        }
    };
    let carrying = cases.iter().filter(|case| case.carried.is_some());
    let mut any_of = vec![names];
    any_of.extend(carrying.map(|case| only_of(SchemaType::Object, requires([key(case)]))));
    Schema { any_of, ..any() }
}

fn key(case: &Case<'_>) -> Arc<str> {
    Arc::from(case.variant.name.as_str())
}
