//! Validates YAML objects like the API server does, and locates its errors in the YAML.

mod builtin;
mod help;
mod objects;
mod rendered;
mod unknown;

use rbuilder_generator::Diagnostic;
use rbuilder_judge::{Body, Failure, FieldValidation, Judge, Verdict};
use serde_json::Value;

use builtin::drop_zero_values;
use help::Helper;
pub(super) use objects::{Judges, Object, parse_objects, parse_values_of};
pub(super) use rendered::{RENDERED, is_in_file, read_texts};
pub(super) use unknown::{describe_missing_type, describe_unknown_kind, find_misspelled_stanza};

/// Text of the API server's error for CEL rules that weren't run.
const UNCHECKED: &str = "some validation rules were not checked";

/// Maximum number of errors, and of warnings, to report for an object. Go's JSON decoder stops at the
/// same number, and each of them is a snippet here.
const MOST_REPORTED: usize = 100;

/// Validates the creation of the objects in `text`. Only fails if `text` isn't valid YAML.
pub(super) fn judge_text(
    judges: &mut Judges,
    path: &str,
    text: &str,
) -> Result<Vec<Diagnostic>, serde_saphyr::Error> {
    let mut diagnostics = Vec::new();
    for object in parse_objects(path, text)? {
        judges.add_builtin(&object);
        diagnostics.extend(match judges.find(&object) {
            Some(judge) => {
                let verdict = judge_object(judge, &object, &[], FieldValidation::Strict);
                describe_verdict(&verdict, &object, judge)
            }
            None => describe_unknown_kind(&object, judges),
        });
    }
    Ok(diagnostics)
}

#[cfg(test)]
pub(crate) fn judge_by(crds: &str) -> impl FnMut(&str) -> Vec<Diagnostic> {
    let mut judges = Judges::new(rbuilder_generator::Minor::LATEST);
    judges.add_text("crds.yaml", crds).expect("definitions");
    move |text| {
        let said = judge_text(&mut judges, "object.yaml", text);
        said.unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// Validates the creation of an object, or its update from `old`.
pub(super) fn judge_object(
    judge: &Judge,
    object: &Object,
    old: &[Object],
    fields: FieldValidation,
) -> Verdict {
    let settle = |mut value: Value| {
        if judge.is_builtin() {
            drop_zero_values(&mut value, &judge.definition().schema);
        }
        value
    };
    let body = Body::of_yaml(&settle(object.value.clone())).with_duplicates(object.duplicates());
    match old.iter().find(|old| old.identity() == object.identity()) {
        Some(old) => {
            let old = settle(old.stored(judge.definition().is_namespaced));
            judge.update(&body, &old, fields)
        }
        None => judge.create(&body, object.namespace(), fields),
    }
}

/// The API server's errors, followed by notes on what could not be checked.
pub(super) fn describe_verdict(verdict: &Verdict, object: &Object, judge: &Judge) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let helper = Helper::new(object, judge);
    match &verdict.result {
        Ok(_) => {}
        Err(Failure::Invalid { errors, .. }) => {
            for error in errors.iter().take(MOST_REPORTED) {
                let place = object.place(&field_of(&error.field, &error.message));
                let found = match error.message.split_once(UNCHECKED) {
                    Some(_) => Diagnostic::note(place, format!("{UNCHECKED} because the object was invalid")),
                    None => Diagnostic::error(place, error.to_string()),
                };
                let found = match helper.explain_error(error) {
                    Some(help) => found.help(help),
                    None => found,
                };
                // The API server repeats some errors on update.
                if !diagnostics
                    .iter()
                    .any(|known: &Diagnostic| known.message == found.message)
                {
                    diagnostics.push(found);
                }
            }
            diagnostics.extend(count_others(errors.len(), "errors", object));
        }
        Err(Failure::Malformed { problems, .. }) if !problems.is_empty() => {
            for problem in problems.iter().take(MOST_REPORTED) {
                let place = object.place_of_name(quoted(problem).unwrap_or_default());
                let message = format!("strict decoding error: {problem}");
                let help = helper.explain_problem(problem);
                diagnostics.push(Diagnostic::error(place, message).maybe_help(help));
            }
            diagnostics.extend(count_others(problems.len(), "errors", object));
        }
        Err(failure) => {
            let message = failure.message();
            let field = field_of("", &message);
            let (field, help) = match helper.explain_metadata(&field, &message) {
                Some((entry, help)) => (entry, Some(help)),
                None => (field, None),
            };
            diagnostics.push(Diagnostic::error(object.place(&field), message).maybe_help(help));
        }
    }
    for warning in verdict.warnings.iter().take(MOST_REPORTED) {
        let unknown = quoted(warning).filter(|_| warning.contains(" field \""));
        let place = match unknown {
            Some(field) => object.place_of_name(field),
            None => object.place(warning.split(": ").next().unwrap_or_default()),
        };
        let help = match judge.is_builtin() && warning.ends_with(": Required value") {
            true => Some(REQUIRED_BY_SCHEMA.to_owned()),
            false => helper.explain_problem(warning),
        };
        diagnostics.push(Diagnostic::warning(place, warning.as_str()).maybe_help(help));
    }
    diagnostics.extend(count_others(verdict.warnings.len(), "warnings", object));
    for undecided in &verdict.undecided {
        let message = format!("not checked: {}", undecided.what);
        diagnostics.push(Diagnostic::note(object.place(&undecided.field), message));
    }
    diagnostics
}

/// Help for a field of a built-in kind that the API server may decode as empty.
const REQUIRED_BY_SCHEMA: &str =
    "the schema of Kubernetes requires the field; the API server may accept the object without it";

/// A note on the errors or warnings that aren't reported.
fn count_others(count: usize, what: &str, object: &Object) -> Option<Diagnostic> {
    let others = count.checked_sub(MOST_REPORTED).filter(|others| *others > 0)?;
    let message = format!("{others} more {what} of this object are not shown");
    Some(Diagnostic::note(object.place(""), message))
}

/// Field of an error. Some messages only mention it in their text.
fn field_of(field: &str, message: &str) -> String {
    if !matches!(field, "" | "<nil>") {
        return field.to_owned();
    }
    let message = message.strip_prefix("Invalid value: \"\": ").unwrap_or(message);
    let after = |word: &str| {
        message
            .rsplit_once(word)
            .map(|(_, field)| field.trim_matches('"'))
    };
    let named = if message.starts_with('"') {
        quoted(message)
    } else {
        after(" in ")
    };
    let decoded = message
        .split_once("ObjectMeta.")
        .and_then(|(_, rest)| rest.split(' ').next());
    match decoded {
        Some(field) => format!("metadata.{field}"),
        None => named.unwrap_or_default().to_owned(),
    }
}

fn quoted(message: &str) -> Option<&str> {
    message.split('"').nth(1)
}
