//! Files with markers that don't belong to any module.

use std::collections::BTreeSet;
use std::sync::Arc;

use rbuilder_syntax::{MarkKind, lex_file};

use crate::collect::Collected;
use crate::package::Orphan;
use crate::report::Report;
use crate::sources::{Sources, is_within, join};
use crate::{Diagnostic, FileRange, Options, survey};

/// Warns about files with markers that rustc ignores, because no `mod` declares them. Files of
/// another build, e.g. for tests or with another feature, are left out on purpose and get no
/// warning.
pub(crate) fn warn_of_orphans(
    sources: &dyn Sources,
    options: &Options,
    collected: &mut Collected,
    report: &mut Report,
) {
    let mut orphans = Vec::new();
    let mut of_every_build: Option<BTreeSet<String>> = None;
    for folder in &collected.folders {
        // Without a readable directory, there are no modules, or the error has already been
        // reported.
        let files = sources.rust_files(&join(folder, "src")).unwrap_or_default();
        for path in files {
            if collected.files.contains(&path) {
                continue;
            }
            let Some((warning, text)) = orphan(sources, &path) else {
                continue;
            };
            // Most runs have no candidate, so read the other builds only when there is one.
            let others = of_every_build.get_or_insert_with(|| survey::files_of_every_build(sources, options));
            if !others.contains(&path) {
                report.push(warning);
                let declaration = find_missing_declaration(&path, folder, &collected.files);
                orphans.push(Orphan {
                    path,
                    text,
                    declaration,
                });
            }
        }
    }
    collected.package.orphans = orphans;
}

/// Returns the outermost module on the path to the file that no `mod` declares.
fn find_missing_declaration(path: &str, package: &str, read: &BTreeSet<String>) -> String {
    let source = join(package, "src");
    let mut at = path
        .strip_suffix("/mod.rs")
        .or(path.strip_suffix(".rs"))
        .unwrap_or(path);
    loop {
        let (folder, name) = at.rsplit_once('/').unwrap_or(("", at));
        let candidates = match folder == source {
            true => vec![format!("{folder}/lib.rs"), format!("{folder}/main.rs")],
            false => vec![format!("{folder}/mod.rs"), format!("{folder}.rs")],
        };
        let parent = candidates.iter().find(|candidate| read.contains(*candidate));
        if parent.is_some() || folder == source || !is_within(&source, folder) {
            let parent = parent.unwrap_or(&candidates[0]);
            return format!("`mod {name};` to `{parent}`");
        }
        at = folder;
    }
}

fn orphan(sources: &dyn Sources, path: &str) -> Option<(Diagnostic, Arc<str>)> {
    let text = sources.text(path).ok()??;
    if !survey::may_hold_markers(&text) {
        return None;
    }
    // The file isn't compiled, so it need not be valid Rust.
    let tokens = lex_file(&text).ok()?;
    let mark = tokens.marks().iter().find(|mark| !mark.in_body)?;
    let what = match MarkKind::of(mark) {
        MarkKind::Kind => "this kind",
        MarkKind::Rbac | MarkKind::Webhook => "this marker",
    };
    let warning = Diagnostic::warning(
        FileRange::new(path, mark.span().range()),
        format!("{what} is ignored: no `mod` declares the file"),
    )
    .help("add the `mod` declaration, or delete the file");
    drop(tokens);
    Some((warning, text))
}
