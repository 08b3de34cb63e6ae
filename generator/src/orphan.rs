//! Files with markers that no module leads to.

use std::collections::BTreeSet;

use rbuilder_syntax::{MarkKind, lex_file};

use crate::collect::Collected;
use crate::report::Report;
use crate::sources::{Sources, join};
use crate::{Diagnostic, FileRange, Options, survey};

/// Warns of each file that rustc ignores because no `mod` names it: a marker in it is most likely meant. A file
/// that some other build reads, such as that of the tests or of a feature, is left out on purpose.
pub(crate) fn warn_of_orphans(
    sources: &dyn Sources,
    options: &Options,
    collected: &Collected,
    report: &mut Report,
) {
    let mut of_every_build: Option<BTreeSet<String>> = None;
    for folder in &collected.folders {
        // A folder that cannot be read holds no module, or there was an error about the module.
        let files = sources.rust_files(&join(folder, "src")).unwrap_or_default();
        for path in files {
            if collected.files.contains(&path) {
                continue;
            }
            let Some(warning) = orphan(sources, &path) else {
                continue;
            };
            let others = of_every_build.get_or_insert_with(|| survey::files_of_every_build(sources, options));
            if !others.contains(&path) {
                report.push(warning);
            }
        }
    }
}

/// The warning about a file that is in no module, where it holds a marker.
fn orphan(sources: &dyn Sources, path: &str) -> Option<Diagnostic> {
    let text = sources.text(path).ok()??;
    if !survey::may_hold_markers(&text) {
        return None;
    }
    // What no module leads to need not be Rust.
    let tokens = lex_file(&text).ok()?;
    let mark = tokens.marks().iter().find(|mark| !mark.in_body)?;
    let what = match MarkKind::of(mark) {
        MarkKind::Kind => "this kind",
        MarkKind::Rbac | MarkKind::Webhook => "this marker",
    };
    Some(
        Diagnostic::warning(
            FileRange::new(path, mark.span().range()),
            format!("{what} is ignored: no `mod` declares the file"),
        )
        .help("add the `mod` declaration, or delete the file"),
    )
}
