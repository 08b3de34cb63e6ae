//! Validates objects in YAML like the API server, and reports errors as diagnostics at their
//! location in the YAML.

mod builtin;
mod objects;
mod rendered;

use rbuilder_generator::Diagnostic;
use rbuilder_judge::{Body, Failure, FieldError, FieldValidation, Judge, Reason, Verdict};

use builtin::drop_zero_values;
pub(super) use objects::{Judges, Object, parse_objects, read_objects};
pub(super) use rendered::RENDERED;

/// Prefix of the API server's additional error when CEL rules were not run.
const UNCHECKED: &str = "some validation rules were not checked";

/// Validates the creation of an object, or its update if `old` contains the previous object.
pub(super) fn judge_object(
    judge: &Judge,
    object: &Object,
    old: &[Object],
    fields: FieldValidation,
) -> Verdict {
    if judge.is_builtin() {
        let mut value = object.value.clone();
        drop_zero_values(&mut value, &judge.definition().schema);
        return judge.create(&Body::of_yaml(&value), object.namespace(), fields);
    }
    let body = Body::of_yaml(&object.value);
    match old.iter().find(|old| old.identity() == object.identity()) {
        Some(old) => judge.update(&body, &old.stored(judge.definition().is_namespaced), fields),
        None => judge.create(&body, object.namespace(), fields),
    }
}

/// Reports a version that does not exist for a known kind. Objects of other kinds are not
/// validated.
pub(super) fn describe_unknown_kind(object: &Object, judges: &Judges) -> Vec<Diagnostic> {
    let versions = judges.versions(object);
    if versions.is_empty() {
        return Vec::new();
    }
    let message = format!(
        "no matches for kind \"{}\" in version \"{}\"",
        object.kind(),
        object.api_version()
    );
    let help = format!("the kind has the versions: {}", versions.join(", "));
    vec![Diagnostic::error(object.place("apiVersion"), message).help(help)]
}

/// Returns the API server's errors for an object, and the checks that were not made.
pub(super) fn describe_verdict(verdict: &Verdict, object: &Object, judge: &Judge) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    match &verdict.result {
        Ok(_) => {}
        Err(Failure::Invalid { errors, .. }) => {
            for error in errors {
                let place = object.place(&field_of(&error.field, &error.message));
                let found = match error.message.split_once(UNCHECKED) {
                    Some(_) => Diagnostic::note(place, format!("{UNCHECKED} because the object was invalid")),
                    None if judge.is_builtin() => describe_builtin(error).at(place),
                    None => Diagnostic::error(place, error.to_string()),
                };
                // The API server repeats some errors of an update.
                if !diagnostics
                    .iter()
                    .any(|known: &Diagnostic| known.message == found.message)
                {
                    diagnostics.push(found);
                }
            }
        }
        Err(Failure::Malformed { problems, .. }) if !problems.is_empty() => {
            for problem in problems {
                let place = object.place_of_name(quoted(problem).unwrap_or_default());
                diagnostics.push(Diagnostic::error(
                    place,
                    format!("strict decoding error: {problem}"),
                ));
            }
        }
        Err(failure) => {
            let place = object.place(&field_of("", &failure.message()));
            diagnostics.push(Diagnostic::error(place, failure.message()));
        }
    }
    for warning in &verdict.warnings {
        let unknown = quoted(warning).filter(|_| warning.contains(" field \""));
        let place = match unknown {
            Some(field) => object.place_of_name(field),
            None => object.place(warning.split(": ").next().unwrap_or_default()),
        };
        diagnostics.push(Diagnostic::warning(place, warning.as_str()));
    }
    for undecided in &verdict.undecided {
        let message = format!("not checked: {}", undecided.what);
        diagnostics.push(Diagnostic::note(object.place(&undecided.field), message));
    }
    diagnostics
}

/// Describes an error in an object of a built-in Kubernetes kind. The API server treats many absent
/// fields as empty, even if the schema requires them.
fn describe_builtin(error: &FieldError) -> rbuilder_diagnostic::Diagnostic<()> {
    match error.reason {
        Reason::Required if !error.field.starts_with("metadata.") => rbuilder_diagnostic::Diagnostic::warning((), error.to_string())
            .help("the schema of Kubernetes requires the field; the API server may accept the object without it"),
        _ => rbuilder_diagnostic::Diagnostic::error((), error.to_string()),
    }
}

/// Returns an error's field. Some messages only mention the field in their text.
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

/// Returns the first quoted text in a message.
fn quoted(message: &str) -> Option<&str> {
    message.split('"').nth(1)
}
