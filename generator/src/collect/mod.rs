//! Source text to the model of a package: follows `mod` from the root of every target, calls
//! `rbuilder-syntax` for each item on the way, and holds itself to having seen every marker token.

mod attributes;
mod file;
mod handler;
mod imports;
mod include;
mod path;

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_syntax::{Severity, cfg::Cfg};

use crate::cargo::Manifest;
use crate::lexer::{self, MarkKind};
use crate::package::{Module, ModuleId, Package};
use crate::report::Report;
use crate::{Diagnostic, SourceSet};

/// More modules than any package has: `#[path]` can name one file in many places.
const MAX_MODULES: usize = 20_000;

/// Reads every module of every target.
pub(crate) fn collect(sources: &SourceSet, manifest: Manifest, report: &mut Report) -> Package {
    let mut collector = Collector {
        sources,
        cfg: Cfg::with_features(manifest.features),
        package: Package {
            dependencies: manifest.dependencies,
            ..Package::default()
        },
        open: Vec::new(),
        seen: BTreeSet::new(),
        report,
    };
    for target in manifest.targets {
        let root = collector.add_module(None);
        if let Some(name) = target.lib_name {
            collector.package.library = Some((name, root));
        }
        let folder = path::parent(&target.path).to_owned();
        collector.open.push(OpenFile {
            module: root,
            path: target.path,
            folder,
            ancestors: Vec::new(),
        });
        while let Some(file) = collector.open.pop() {
            collector.read(file);
        }
    }
    collector.warn_of_orphans();
    collector.package
}

struct Collector<'a> {
    sources: &'a SourceSet,
    cfg: Cfg,
    package: Package,
    /// Files named by a `mod` and not read yet.
    open: Vec<OpenFile>,
    /// Files that some target reads.
    seen: BTreeSet<String>,
    report: &'a mut Report,
}

/// A file that a module's items are in.
struct OpenFile {
    module: ModuleId,
    path: String,
    /// Where the files of its own modules are.
    folder: String,
    /// The files that lead to it.
    ancestors: Vec<String>,
}

impl Collector<'_> {
    fn add_module(&mut self, parent: Option<ModuleId>) -> ModuleId {
        let id = ModuleId(self.package.modules.len());
        let root = parent.map_or(id, |parent| self.package.module(parent).root);
        self.package.modules.push(Module {
            parent,
            root,
            names: BTreeMap::new(),
            globs: Vec::new(),
        });
        id
    }

    /// rustc ignores a file that no `mod` names; a marker in it is most likely meant.
    fn warn_of_orphans(&mut self) {
        let candidates = self
            .sources
            .paths()
            .filter(|path| path.starts_with("src/") && path.ends_with(".rs"));
        for path in candidates.filter(|path| !self.seen.contains(*path)) {
            let text = self.sources.get(path).unwrap_or_default();
            if !["CustomResource", "rbac", "webhook"]
                .iter()
                .any(|word| text.contains(word))
            {
                continue;
            }
            if let Some(mark) = lexer::scan(text).marks.iter().find(|mark| !mark.in_body) {
                let what = match mark.kind {
                    MarkKind::Kind => "this kind",
                    MarkKind::Rbac | MarkKind::Webhook => "this marker",
                };
                self.report.push(Diagnostic {
                    path: path.to_owned(),
                    range: mark.at..mark.at + mark.kind.len(),
                    severity: Severity::Warning,
                    message: format!("{what} is ignored: no `mod` leads to the file"),
                    help: Some("add the `mod` line, or delete the file".into()),
                });
            }
        }
    }
}
