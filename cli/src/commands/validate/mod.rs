//! `rbuilder validate`: validates objects as the API server would.

mod fix;
mod inputs;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rbuilder_generator::{Diagnostic, Minor, SourceSet, yaml};
use rbuilder_judge::{Failure, FieldValidation, Verdict};
use serde_json::{Value, json};

use super::decide;
use super::kubernetes::find_project_minor;
use super::manifests::{Request, read_definitions};
use super::verdicts::{
    Judges, Object, RENDERED, describe_missing_type, describe_unknown_kind, describe_verdict, is_in_file,
    judge_object,
};
use crate::count::counted;
use crate::flags::{FieldLevel, ValidateFlags, ValidateFormat};
use crate::report::{render_snippet, to_json};
use crate::sarif;
use crate::shell::Shell;
use crate::tree::{InputFile, Tree};
use fix::{correct_files, judge_file};
use inputs::{read_files, read_objects};

const SAMPLES: &str = "config/samples";

struct Judged {
    object: Object,
    /// `None` if there is no definition of the kind.
    verdict: Option<Verdict>,
    /// Set for a kind of Kubernetes itself, for which the verdict only covers a part of the API
    /// server's checks.
    is_builtin: bool,
    diagnostics: Vec<Diagnostic>,
}

impl Judged {
    fn is_refused(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Whether nothing is known about the object.
    fn is_skipped(&self) -> bool {
        self.verdict.is_none() && !self.is_refused()
    }

    fn answer(&self) -> Option<&Result<Value, Failure>> {
        let verdict = self.verdict.as_ref().filter(|_| !self.is_builtin);
        verdict.map(|verdict| &verdict.result)
    }
}

pub(super) fn run(dir: &Path, typed_in: &Path, flags: &ValidateFlags, shell: &mut Shell) -> Result<u8> {
    let mut judges = read_judges(dir, typed_in, flags, shell)?;
    let (old, _) = read_objects(&read_files(dir, typed_in, &flags.old)?)?;
    if !flags.old.is_empty() && old.is_empty() && !flags.allow_empty {
        bail!("expected objects in the files of `--old`, found none");
    }
    let mut judge_one = |object| judge(object, &old, &mut judges, flags.field_validation);
    let mut files = match flags.files.is_empty() {
        true if flags.allow_empty && !dir.join(SAMPLES).exists() => Vec::new(),
        true => read_files(dir, dir, &[PathBuf::from(SAMPLES)])?,
        false => read_files(dir, typed_in, &flags.files)?,
    };
    let (mut objects, mut sources) = read_objects(&files)?;
    let mut corrected = Vec::new();
    if flags.fix {
        let judge_all = &mut |file: &InputFile| judge_file(file, &mut judge_one);
        corrected = correct_files(dir, &mut files, flags.dry_run, judge_all, shell)?;
        (objects, sources) = read_objects(&files)?;
    }
    let judged: Vec<Judged> = objects.into_iter().map(judge_one).collect();
    let is_nothing = !flags.allow_empty && judged.iter().all(Judged::is_skipped);
    if judges.has_no_crds() && !judged.is_empty() && is_nothing {
        bail!(
            "no CustomResourceDefinition to judge by: run in a project that defines kinds, or pass `--crds`"
        );
    }
    match flags.output {
        ValidateFormat::Text => print_text(&judged, flags, &sources, shell),
        ValidateFormat::Json => {
            let mut answer = json!({ "command": "validate", "objects": describe(&judged, &sources) });
            if flags.fix {
                answer["corrected"] = json!(corrected);
            }
            shell.out(&format!("{answer:#}\n"));
        }
        ValidateFormat::Sarif => {
            let diagnostics = judged.iter().flat_map(|judged| &judged.diagnostics);
            shell.out(&format!(
                "{:#}\n",
                sarif::render(diagnostics, &sources, &place_in_log)
            ));
        }
    }
    if is_nothing {
        bail!(
            "nothing was judged: expected objects with `apiVersion`, `kind` and a known definition; pass `--allow-empty` \
             if that is intended"
        );
    }
    Ok(u8::from(judged.iter().any(Judged::is_refused)))
}

/// Definitions from the command line, plus the project's if `dir` is one.
fn read_judges(dir: &Path, typed_in: &Path, flags: &ValidateFlags, shell: &mut Shell) -> Result<Judges> {
    let has_package = dir.join("Cargo.toml").is_file();
    let minor = match flags.source.kubernetes {
        Some(minor) => minor,
        None if has_package => find_project_minor(&Tree::new(dir)),
        None => Minor::LATEST,
    };
    let mut judges = Judges::new(minor);
    if has_package {
        let request = Request::for_source(&flags.source, shell);
        let (_, mut found) = decide(dir, shell, &mut |tree| read_definitions(tree, &request))?;
        found.print_around("", shell);
        judges.add_all(found.take_definitions());
    }
    judges.add_files(typed_in, &flags.crds)?;
    Ok(judges)
}

fn judge(object: Object, old: &[Object], judges: &mut Judges, level: FieldLevel) -> Judged {
    let untyped = describe_missing_type(&object);
    if !untyped.is_empty() {
        return Judged {
            object,
            verdict: None,
            is_builtin: false,
            diagnostics: untyped,
        };
    }
    judges.add_builtin(&object);
    let Some(judge) = judges.find(&object) else {
        let diagnostics = describe_unknown_kind(&object, judges);
        return Judged {
            object,
            verdict: None,
            is_builtin: false,
            diagnostics,
        };
    };
    let fields = match level {
        FieldLevel::Strict => FieldValidation::Strict,
        FieldLevel::Warn => FieldValidation::Warn,
        FieldLevel::Ignore => FieldValidation::Ignore,
    };
    let verdict = judge_object(judge, &object, old, fields);
    let diagnostics = describe_verdict(&verdict, &object, judge);
    Judged {
        verdict: Some(verdict),
        is_builtin: judge.is_builtin(),
        diagnostics,
        object,
    }
}

fn print_text(judged: &[Judged], flags: &ValidateFlags, sources: &SourceSet, shell: &mut Shell) {
    let color = shell.color();
    let mut text = String::new();
    for diagnostic in judged.iter().flat_map(|judged| &judged.diagnostics) {
        text.push_str(&render_snippet(diagnostic, sources, color));
        text.push('\n');
    }
    shell.note_painted(&text);
    if flags.show_defaults {
        let stored = judged.iter().filter_map(|judged| judged.answer()?.as_ref().ok());
        let documents: String = stored
            .map(|object| format!("---\n{}", yaml::to_string(object)))
            .collect();
        shell.out(&documents);
        return;
    }
    let count =
        |predicate: &dyn Fn(&Judged) -> bool| judged.iter().filter(|judged| predicate(judged)).count();
    let refused = count(&Judged::is_refused);
    let skipped = count(&Judged::is_skipped);
    let accepted = judged.len() - refused - skipped;
    shell.report(&format!(
        "{} accepted, {refused} refused\n",
        counted(accepted, "object")
    ));
    if skipped > 0 {
        shell.report(&describe_skipped(judged, skipped));
    }
}

fn describe_skipped(judged: &[Judged], count: usize) -> String {
    let skipped = judged.iter().filter(|judged| judged.is_skipped());
    let kinds: BTreeSet<String> = skipped
        .map(|judged| format!("{} of {}", judged.object.kind(), judged.object.api_version()))
        .collect();
    let kinds: Vec<String> = kinds.into_iter().collect();
    format!(
        "{} not judged, because no CRD here defines {}: pass the CRD with `--crds`\n",
        counted(count, "object"),
        kinds.join(", ")
    )
}

fn place_in_log(path: &str) -> sarif::Artifact<'_> {
    match path.strip_suffix(RENDERED) {
        // Lines of kustomize's or Helm's output aren't in any file.
        Some(directory) => sarif::as_whole(directory),
        None if is_in_file(path) => sarif::in_file(path),
        None => sarif::as_whole(path),
    }
}

fn describe(judged: &[Judged], sources: &SourceSet) -> Vec<Value> {
    let objects = judged.iter().map(|judged| {
        let object = &judged.object;
        let diagnostics: Vec<Value> = judged
            .diagnostics
            .iter()
            .map(|found| {
                let mut said = to_json(found, sources);
                if found.place.path.ends_with(RENDERED) {
                    // Its range refers to kustomize's output, so it can't be applied to a file.
                    said["replacement"] = Value::Null;
                }
                said
            })
            .collect();
        let answer = judged.answer();
        json!({
            "path": object.path,
            "apiVersion": object.api_version(),
            "kind": object.kind(),
            "name": object.name(),
            "verdict": match (judged.is_refused(), judged.is_skipped()) {
                (true, _) => "refused",
                (false, true) => "unknown kind",
                (false, false) => "accepted",
            },
            "diagnostics": diagnostics,
            "status": answer.and_then(|answer| answer.as_ref().err()).map(Failure::status),
            "object": answer.and_then(|answer| answer.as_ref().ok()),
        })
    });
    objects.collect()
}
