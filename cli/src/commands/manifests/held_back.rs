//! Summary for `--keep-going`, printed if some manifests could not be generated.

use std::fmt::{Display, Formatter, Result};

use rbuilder_generator::{FETCH, Findings, KindOutcome, KindSummary, Product, Sources};

use crate::report;

#[derive(Debug)]
pub(crate) struct HeldBack {
    errors: usize,
    asked: usize,
    /// Kinds that could not be generated, each with its first error.
    kinds: Vec<String>,
    /// Other manifests that could not be generated.
    products: Vec<&'static str>,
    /// Number of kinds that depend on a crate which Cargo has yet to download.
    unfetched: usize,
    /// Whether the command writes manifests rather than printing them.
    writes: bool,
}

impl HeldBack {
    pub(super) fn new(found: &Findings, sources: &dyn Sources, writes: bool) -> HeldBack {
        let needs_fetch = |kind: &&KindSummary| match &kind.outcome {
            KindOutcome::HeldBack { errors } => errors
                .iter()
                .any(|position| found.diagnostics[*position].help.as_deref() == Some(FETCH)),
            KindOutcome::Readable { .. } | KindOutcome::Skipped { .. } => false,
        };
        let held_back = found.kinds.iter().filter_map(|kind| match &kind.outcome {
            KindOutcome::HeldBack { errors } => Some(describe_kind(kind, errors, found, sources)),
            KindOutcome::Readable { .. } | KindOutcome::Skipped { .. } => None,
        });
        HeldBack {
            errors: found.diagnostics.iter().filter(|found| found.is_error()).count(),
            asked: count_asked(&found.kinds),
            kinds: held_back.collect(),
            products: found
                .held_back
                .iter()
                .map(|product| name_product(*product))
                .collect(),
            unfetched: found.kinds.iter().filter(needs_fetch).count(),
            writes,
        }
    }
}

pub(super) fn count_asked(kinds: &[KindSummary]) -> usize {
    let is_asked = |kind: &&KindSummary| !matches!(kind.outcome, KindOutcome::Skipped { .. });
    kinds.iter().filter(is_asked).count()
}

pub(super) fn count_readable(kinds: &[KindSummary]) -> usize {
    let is_readable = |kind: &&KindSummary| matches!(kind.outcome, KindOutcome::Readable { .. });
    kinds.iter().filter(is_readable).count()
}

fn name_product(product: Product) -> &'static str {
    match product {
        Product::Crds => "the CRDs",
        Product::Roles => "the roles",
        Product::Webhooks => "the webhook configurations",
    }
}

/// Formats a kind and its first error, e.g. ``Cup (cafe.io): src/lib.rs:3:5: cannot find type
/// `Size` (and 1 more error)``.
fn describe_kind(kind: &KindSummary, errors: &[usize], found: &Findings, sources: &dyn Sources) -> String {
    let name = if kind.group.is_empty() {
        format!("`{}`", kind.kind)
    } else {
        format!("{} ({})", kind.kind, kind.group)
    };
    let Some(first) = errors.first().map(|position| &found.diagnostics[*position]) else {
        return name;
    };
    let more = match errors.len() - 1 {
        0 => String::new(),
        1 => " (and 1 more error)".to_owned(),
        more => format!(" (and {more} more errors)"),
    };
    format!(
        "{name}: {}: {}{more}",
        report::locate(first, sources),
        first.message
    )
}

impl std::error::Error for HeldBack {}

impl Display for HeldBack {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.errors {
            1 => write!(f, "found 1 error in the source")?,
            errors => write!(f, "found {errors} errors in the source")?,
        }
        let mut parts: Vec<String> = Vec::new();
        if !self.kinds.is_empty() {
            parts.push(format!("{} of {} kinds", self.kinds.len(), self.asked));
        }
        parts.extend(self.products.iter().map(|product| (*product).to_owned()));
        let parts = parts.join(", ");
        match (parts.is_empty(), self.writes) {
            (true, true) => {
                return write!(f, ", which affect no manifest; no manifests were removed");
            }
            (true, false) => return write!(f, ", which affect no kind"),
            (false, true) => write!(f, "; these manifests were left as they are: {parts}")?,
            (false, false) => write!(f, "; these were left out: {parts}")?,
        }
        for kind in &self.kinds {
            write!(f, "\n  {kind}")?;
        }
        match self.unfetched {
            0 => Ok(()),
            1 => write!(
                f,
                "\n{FETCH} and then this command again: 1 of them needs a crate that is not on this machine"
            ),
            more => write!(
                f,
                "\n{FETCH} and then this command again: {more} of them need crates that are not on this machine"
            ),
        }
    }
}
