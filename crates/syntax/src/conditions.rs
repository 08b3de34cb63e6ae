//! Conditional compilation that makes a difference to manifests.

use rbuilder_reader::cfg::Conditions;
use rbuilder_reader::token::Cursor;
use rbuilder_reader::{Attribute, Form};

use crate::Diagnostic;

/// Returns the diagnostics about `cfg` conditions on an item and its parts.
pub fn check_conditions(conditions: &Conditions<'_>) -> Vec<Diagnostic> {
    let mut found: Vec<_> = conditions.on_parts.iter().filter_map(build_warning).collect();
    found.extend(conditions.undecided.iter().map(|span| {
        Diagnostic::error(*span, "cannot evaluate this `cfg`")
            .help("use only features, `unix` and `target_os` in conditions of API types")
    }));
    found
}

/// Warns about a field or variant that only exists in some builds: the manifest describes just one
/// build.
fn build_warning(attr: &Attribute<'_>) -> Option<Diagnostic> {
    let Form::List(mut list) = attr.form() else {
        return None;
    };
    let option = option_of_build(&mut list)?;
    if !(attr.is("cfg") || changes_shape(list)) {
        return None;
    }
    let message = format!(
        "this part of the schema depends on `{option}`; the manifest is that of a release build for Linux"
    );
    let help = "use a feature instead, or remove the condition";
    Some(Diagnostic::warning(attr.span(), message).help(help))
}

/// Returns the first option of the predicate that differs between profiles or targets. Consumes the
/// predicate.
fn option_of_build<'a>(list: &mut Cursor<'a>) -> Option<&'a str> {
    let name = list.any_ident()?.text;
    if list.eat(b'=') {
        list.skip();
    } else if let Some(mut inner) = list.any_group() {
        let mut found = None;
        while !inner.is_end() {
            found = found.or(option_of_build(&mut inner));
            if !inner.is_end() && !inner.eat(b',') {
                return found;
            }
        }
        return found;
    }
    (matches!(name, "debug_assertions" | "test") || name.starts_with("target_")).then_some(name)
}

fn changes_shape(mut list: Cursor<'_>) -> bool {
    while !list.is_end() {
        if ["serde", "kube", "crd", "schemars", "cfg"]
            .iter()
            .any(|word| list.is_word(word))
        {
            return true;
        }
        list.skip();
    }
    false
}
