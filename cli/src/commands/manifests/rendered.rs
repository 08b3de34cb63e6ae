//! Renders diagnostics of the generator as text, as JSON, and as a command's error.

use anyhow::{Result, anyhow};
use rbuilder_generator::{CsvMarkers, Definition, Diagnostic, Findings};
use serde_json::Value;

use super::held_back::{HeldBack, count_asked, count_readable};
use super::request::Request;
use crate::commands::Outcome;
use crate::flags::MessageFormat;
use crate::plan::Plan;
use crate::report;
use crate::sarif;
use crate::shell::Shell;
use crate::tree::TreeSources;

#[derive(Default)]
pub(in crate::commands) struct RenderedDiagnostics {
    pub(super) text: String,
    pub(super) data: Vec<Value>,
    /// The final error, if some manifests could not be generated.
    pub(super) failure: Option<anyhow::Error>,
    csv: Vec<CsvMarkers>,
    definitions: Vec<Definition>,
}

impl RenderedDiagnostics {
    pub(in crate::commands) fn csv_markers(&self) -> &[CsvMarkers] {
        &self.csv
    }

    pub(in crate::commands) fn take_definitions(&mut self) -> Vec<Definition> {
        std::mem::take(&mut self.definitions)
    }

    pub(in crate::commands) fn warnings(&self) -> Vec<&Value> {
        let diagnostics = self.data.iter();
        diagnostics.filter(|said| said["severity"] == "warning").collect()
    }

    pub(in crate::commands) fn first_error(&self) -> Option<&Value> {
        self.data.iter().find(|said| said["severity"] == "error")
    }

    pub(in crate::commands) fn failure(&self) -> Option<&anyhow::Error> {
        self.failure.as_ref()
    }

    pub(super) fn exit_code(&self) -> u8 {
        u8::from(self.failure.is_some())
    }

    /// Prints the diagnostics, the command's result and the final error (if any). Returns the exit
    /// code.
    pub(in crate::commands) fn print_around(&self, result: &str, shell: &mut Shell) -> u8 {
        shell.message(&self.text);
        shell.out(result);
        if let Some(failure) = &self.failure {
            shell.error(failure);
        }
        self.exit_code()
    }

    pub(in crate::commands) fn into_outcome(self, plan: Plan) -> Outcome {
        Outcome {
            plan,
            exit_code: self.exit_code(),
            failure: self.failure,
            warnings: self.text,
            diagnostics: self.data,
            ..Outcome::default()
        }
    }
}

/// Maximum number of diagnostics to print; the rest is only counted. So many are most likely due to
/// a single mistake, or to generated source.
const MAX_PRINTED: usize = 2000;

/// Renders all diagnostics, with the faults of the deployment. Fails on errors in the source, unless
/// the request can use partial results.
pub(super) fn render_findings(
    mut found: Findings,
    faults: Vec<Diagnostic>,
    sources: &TreeSources,
    request: &Request,
) -> Result<RenderedDiagnostics> {
    let has_errors = has_errors(&found.diagnostics);
    if has_errors && !request.options.keep_going {
        return Err(source_errors(&found, sources, request));
    }
    let failure = match has_errors {
        true => Some(anyhow!(HeldBack::new(&found, sources, request.writes))),
        false => super::has_errors(&faults)
            .then(|| anyhow!("config/default cannot be deployed as it is: correct the files above")),
    };
    found.diagnostics.extend(faults);
    let (text, data) = render_diagnostics(&found.diagnostics, sources, request);
    Ok(RenderedDiagnostics {
        text,
        data,
        failure,
        csv: found.csv,
        definitions: found.definitions,
    })
}

pub(super) fn source_errors(found: &Findings, sources: &TreeSources, request: &Request) -> anyhow::Error {
    let (snippets, diagnostics) = render_diagnostics(&found.diagnostics, sources, request);
    let readable = count_readable(&found.kinds);
    let advice = match request.advice {
        "" if readable > 0 && !request.options.keep_going => format!(
            "pass `--keep-going` to generate the manifests of the kinds without errors ({readable} of {})",
            count_asked(&found.kinds)
        ),
        advice => advice.to_owned(),
    };
    anyhow!(SourceErrors {
        errors: found.diagnostics.iter().filter(|found| found.is_error()).count(),
        advice,
        snippets,
        diagnostics,
    })
}

fn render_diagnostics(
    diagnostics: &[Diagnostic],
    sources: &TreeSources,
    request: &Request,
) -> (String, Vec<Value>) {
    let told = &diagnostics[..diagnostics.len().min(MAX_PRINTED)];
    let snippet = |said| format!("{}\n", report::render_snippet(said, sources, request.color));
    let text = match request.messages {
        MessageFormat::Human => told.iter().map(snippet).collect(),
        MessageFormat::Json => told
            .iter()
            .map(|said| report::to_json_line(said, sources))
            .collect(),
        MessageFormat::Sarif => format!("{:#}\n", sarif::render(told, sources, &sarif::in_file)),
    };
    let data = told
        .iter()
        .map(|diagnostic| report::to_json(diagnostic, sources))
        .collect();
    (text, data)
}

pub(super) fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

#[derive(Debug)]
pub(crate) struct SourceErrors {
    errors: usize,
    advice: String,
    pub(crate) snippets: String,
    pub(crate) diagnostics: Vec<Value>,
}

impl std::error::Error for SourceErrors {}

impl std::fmt::Display for SourceErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.errors {
            1 => write!(f, "found 1 error")?,
            errors => write!(f, "found {errors} errors")?,
        }
        write!(f, " in the source; no files were written")?;
        if self.advice.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.advice)
    }
}
