//! `rbuilder validate`: judges objects as the API server would.

mod objects;
mod place;
mod sarif;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rbuilder_generator::{Diagnostic, SourceSet, yaml};
use rbuilder_judge::{Body, Failure, FieldValidation, Judge, Verdict};
use serde_json::{Value, json};

use self::objects::{Judges, Object, read_objects};
use super::decide;
use super::manifests::{Request, collect_manifests};
use crate::flags::{FieldLevel, ValidateFlags, ValidateFormat};
use crate::report::{counted, render_snippet, to_json};
use crate::shell::Shell;

const SAMPLES: &str = "config/samples";

/// The beginning of the error that the server adds where it does not run CEL rules.
const UNCHECKED: &str = "some validation rules were not checked";

/// The verdict on an object.
struct Judged {
    object: Object,
    /// `None` if no definition of the kind is known.
    verdict: Option<Verdict>,
    diagnostics: Vec<Diagnostic>,
}

impl Judged {
    fn is_refused(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Runs the command. Returns exit code 1 if an object would be refused.
pub(super) fn run(dir: &Path, typed_in: &Path, flags: &ValidateFlags, shell: &mut Shell) -> Result<u8> {
    let judges = read_judges(dir, typed_in, flags, shell)?;
    let mut sources = SourceSet::default();
    let objects = match flags.files.is_empty() {
        true => read_objects(dir, &[PathBuf::from(SAMPLES)], &mut sources)?,
        false => read_objects(typed_in, &flags.files, &mut sources)?,
    };
    let old = read_objects(typed_in, &flags.old, &mut SourceSet::default())?;
    let judged: Vec<Judged> = objects
        .into_iter()
        .map(|object| judge(object, &old, &judges, flags.field_validation))
        .collect();
    match flags.output {
        ValidateFormat::Text => print_text(&judged, flags, &sources, shell),
        ValidateFormat::Json => shell.out(&format!("{:#}\n", describe(&judged, &sources))),
        ValidateFormat::Sarif => shell.out(&format!("{:#}\n", sarif::render(&judged, &sources))),
    }
    Ok(u8::from(judged.iter().any(Judged::is_refused)))
}

/// Reads the definitions that are named, and those of the project if there is one.
fn read_judges(dir: &Path, typed_in: &Path, flags: &ValidateFlags, shell: &mut Shell) -> Result<Judges> {
    let mut judges = Judges::default();
    if dir.join("Cargo.toml").is_file() {
        let request = Request::for_source(&flags.source, shell);
        let (_, (files, found)) = decide(dir, shell, &mut |tree| collect_manifests(tree, &request))?;
        found.print_around("", shell);
        for file in files
            .iter()
            .filter(|file| file.text.contains("CustomResourceDefinition"))
        {
            judges.add_text(&file.path, &file.text)?;
        }
    }
    judges.add_files(typed_in, &flags.crds)?;
    if judges.is_empty() {
        bail!(
            "no CustomResourceDefinition to judge by: run in a project that defines kinds, or pass `--crds`"
        );
    }
    Ok(judges)
}

fn judge(object: Object, old: &[Object], judges: &Judges, level: FieldLevel) -> Judged {
    let Some(judge) = judges.find(&object) else {
        let diagnostics = describe_unknown_kind(&object, judges);
        return Judged {
            object,
            verdict: None,
            diagnostics,
        };
    };
    let verdict = judge_object(judge, &object, old, level);
    let diagnostics = describe_verdict(&verdict, &object);
    Judged {
        object,
        verdict: Some(verdict),
        diagnostics,
    }
}

fn judge_object(judge: &Judge, object: &Object, old: &[Object], level: FieldLevel) -> Verdict {
    let body = Body::of_yaml(&object.value);
    let fields = match level {
        FieldLevel::Strict => FieldValidation::Strict,
        FieldLevel::Warn => FieldValidation::Warn,
        FieldLevel::Ignore => FieldValidation::Ignore,
    };
    match old.iter().find(|old| old.identity() == object.identity()) {
        Some(old) => judge.update(&body, &old.stored(judge.definition().is_namespaced), fields),
        None => judge.create(&body, object.namespace(), fields),
    }
}

/// Reports a version that a known kind does not have. Other kinds are not judged.
fn describe_unknown_kind(object: &Object, judges: &Judges) -> Vec<Diagnostic> {
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

fn describe_verdict(verdict: &Verdict, object: &Object) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    match &verdict.result {
        Ok(_) => {}
        Err(Failure::Invalid { errors, .. }) => {
            for error in errors {
                let place = object.place(&field_of(&error.field, &error.message));
                let found = match error.message.split_once(UNCHECKED) {
                    Some(_) => Diagnostic::note(place, format!("{UNCHECKED} because the object was invalid")),
                    None => Diagnostic::error(place, error.to_string()),
                };
                // The server repeats some errors of an update.
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

/// Returns the field of an error. Some messages only mention it in their text.
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

fn print_text(judged: &[Judged], flags: &ValidateFlags, sources: &SourceSet, shell: &mut Shell) {
    let color = shell.color();
    let mut text = String::new();
    for diagnostic in judged.iter().flat_map(|judged| &judged.diagnostics) {
        text.push_str(&render_snippet(diagnostic, sources, color));
        text.push('\n');
    }
    shell.note_always(&text);
    if flags.show_defaults {
        let stored = judged
            .iter()
            .filter_map(|judged| judged.verdict.as_ref()?.result.as_ref().ok());
        let documents: String = stored
            .map(|object| format!("---\n{}", yaml::to_string(object)))
            .collect();
        shell.out(&documents);
        return;
    }
    let count =
        |predicate: &dyn Fn(&Judged) -> bool| judged.iter().filter(|judged| predicate(judged)).count();
    let refused = count(&Judged::is_refused);
    let skipped = count(&|judged| judged.verdict.is_none() && !judged.is_refused());
    let accepted = judged.len() - refused - skipped;
    let mut summary = format!("{} accepted, {refused} refused", counted(accepted, "object"));
    if skipped > 0 {
        summary.push_str(&format!(", {skipped} of kinds without a definition not judged"));
    }
    shell.report(&format!("{summary}\n"));
}

fn describe(judged: &[Judged], sources: &SourceSet) -> Value {
    let objects = judged.iter().map(|judged| {
        let object = &judged.object;
        let diagnostics: Vec<Value> = judged
            .diagnostics
            .iter()
            .map(|found| to_json(found, sources))
            .collect();
        let result = judged.verdict.as_ref().map(|verdict| &verdict.result);
        json!({
            "path": object.path,
            "apiVersion": object.api_version(),
            "kind": object.kind(),
            "name": object.name(),
            "verdict": match (judged.is_refused(), result) {
                (true, _) => "refused",
                (false, Some(_)) => "accepted",
                (false, None) => "unknown kind",
            },
            "diagnostics": diagnostics,
            "status": result.and_then(|result| result.as_ref().err()).map(Failure::status),
            "object": result.and_then(|result| result.as_ref().ok()),
        })
    });
    json!({ "command": "validate", "objects": objects.collect::<Vec<_>>() })
}
