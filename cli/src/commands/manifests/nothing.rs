//! The explanation of a run that generates no manifests.

use rbuilder_generator::{Diagnostic, FileRange, Findings, KindOutcome, KindSummary};

use crate::tree::TreeSources;

/// Most kinds that a message names.
const MOST_NAMED: usize = 3;

/// Returns why no manifests are generated: the source has no markers, which is no error, because a project may have no kinds right
/// after `init`, and which another diagnostic may explain; or all of its kinds are left out, which is a warning whatever else is
/// reported, because `--check` then compares nothing.
pub(super) fn explain_nothing(found: &Findings, sources: &TreeSources) -> Option<Diagnostic> {
    let place = FileRange::new("Cargo.toml", 0..0);
    if let Some(reasons) = list_reasons(&found.kinds) {
        return Some(
            Diagnostic::warning(
                place,
                format!("no manifests are generated or compared: all kinds are excluded ({reasons})"),
            )
            .help("remove a kind from `skip`, or add it to `only`, to generate its CRD"),
        );
    }
    if !found.diagnostics.is_empty() {
        return None;
    }
    let files = match sources.rust_files_read() {
        1 => "1 Rust file".to_owned(),
        files => format!("{files} Rust files"),
    };
    Some(
        Diagnostic::note(
            place,
            format!("no kinds or markers found in {files} of the library and the binaries"),
        )
        .help("add a struct with `#[derive(CustomResource)]`, or select other source with `--package`, `--example` or `--features`"),
    )
}

/// Returns why each kind is left out: ```Cup`: `skip` in Cargo.toml lists it``; `None` without kinds.
fn list_reasons(kinds: &[KindSummary]) -> Option<String> {
    let mut reasons: Vec<String> = kinds
        .iter()
        .filter_map(|summary| match &summary.outcome {
            KindOutcome::Skipped { reason } => Some(format!("`{}`: {reason}", summary.kind)),
            _ => None,
        })
        .collect();
    // The user can change settings, and not whose a kind is.
    reasons.sort_by_key(|reason| !reason.contains("Cargo.toml"));
    let more = reasons.len().saturating_sub(MOST_NAMED);
    reasons.truncate(MOST_NAMED);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}
