//! Explains why there are no manifests.

use rbuilder_generator::{Diagnostic, FileRange, Findings, KindOutcome, KindSummary};

use crate::count::counted;
use crate::tree::TreeSources;

const MOST_NAMED: usize = 3;

pub(super) fn explain_nothing(found: &Findings, sources: &TreeSources) -> Option<Diagnostic> {
    let place = FileRange::new("Cargo.toml", 0..0);
    if let Some(reasons) = list_reasons(&found.kinds) {
        // Always a warning: `--check` would have nothing to compare.
        return Some(
            Diagnostic::warning(
                place,
                format!("no manifests are generated or compared: all kinds are excluded ({reasons})"),
            )
            .help("remove a kind from `skip`, or add it to `only`, to generate its CRD"),
        );
    }
    // One of the diagnostics probably explains it. Otherwise a note is enough, since a new project
    // may not have any kinds.
    if !found.diagnostics.is_empty() {
        return None;
    }
    let files = counted(sources.rust_files_read(), "Rust file");
    Some(
        Diagnostic::note(
            place,
            format!("no kinds or markers found in {files} of the library and the binaries"),
        )
        .help("add a struct with `#[derive(CustomResource)]`, or select other source with `--package`, `--example` or `--features`"),
    )
}

/// Explains why each kind is skipped, e.g. ```Cup`: `skip` in Cargo.toml lists it``. `None` without
/// kinds.
fn list_reasons(kinds: &[KindSummary]) -> Option<String> {
    let mut reasons: Vec<String> = kinds
        .iter()
        .filter_map(|summary| match &summary.outcome {
            KindOutcome::Skipped { reason } => Some(format!("`{}`: {reason}", summary.kind)),
            _ => None,
        })
        .collect();
    // Settings first, because users can change those, but not which project a kind belongs to.
    reasons.sort_by_key(|reason| !reason.contains("Cargo.toml"));
    let more = reasons.len().saturating_sub(MOST_NAMED);
    reasons.truncate(MOST_NAMED);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}
