//! `mod` and `include!`: the files that a file leads to.

use rbuilder_reader::grammar::{Items, Macro};
use rbuilder_reader::token::{Cursor, Ident};
use rbuilder_reader::{Attribute, Span};
use rbuilder_syntax::Diagnostic;

use super::file::FileReader;
use super::include::{self, Included};
use super::markers::rewritten_module;
use super::path::{self, Location};
use super::{BUILT_MARKERS, Content, Declared, MAX_MODULES, OpenFile, attributes};
use crate::package::{ModuleId, Name};
use crate::place::Place;

impl<'c> FileReader<'c, '_> {
    pub(super) fn module(
        &mut self,
        ident: Ident<'_>,
        content: Option<Cursor<'_>>,
        attrs: &[Attribute<'_>],
        parent: ModuleId,
        location: &Location,
        text: &str,
    ) -> Result<(), Diagnostic> {
        if self.collector.package.modules.len() >= MAX_MODULES {
            let message = "the package has too many modules";
            self.session.report(Diagnostic::error(ident.span, message));
            return Ok(());
        }
        let package = self.collector.package.module(parent).package;
        let id = self.collector.add_module(package, Some(parent));
        self.name(parent, ident, Name::Module(id));
        let written = path::path_attribute(attrs);
        let macros = attrs.iter().find(|attr| !attributes::is_harmless(attr));
        let rewritten = macros.map(Attribute::span);
        if let Some(attr) = macros {
            self.add_rewritten(attr, text, &[parent, id]);
        }
        let Some(content) = content else {
            if let Some(span) = rewritten.filter(|_| !self.is_foreign) {
                self.session.report(rewritten_module(span));
            }
            self.module_file(ident, id, location, written);
            return Ok(());
        };
        let outer = self.rewritten;
        self.rewritten = rewritten.or(outer);
        let name = written.as_deref().unwrap_or(ident.text);
        let folder = path::join(&location.folder, name);
        let location = Location {
            path_folder: folder.clone(),
            folder,
        };
        self.items(Items::new(content, Some(self.cfg)), id, &location)?;
        self.rewritten = outer;
        Ok(())
    }

    fn module_file(&mut self, ident: Ident<'_>, id: ModuleId, location: &Location, written: Option<String>) {
        let mut ancestors = self.open.ancestors.clone();
        ancestors.push(self.open.path.clone());
        let place = Place {
            file: self.id,
            span: ident.span,
        };
        let written = written.map(|path| path::join(&location.path_folder, &path));
        if !self.pending.is_empty() && self.may_matter(ident.text, &location.folder, written.as_deref()) {
            self.report_pending();
        }
        let declared = Declared::Module {
            name: ident.text.to_owned(),
            folder: location.folder.clone(),
            written,
            place,
            ancestors,
        };
        self.collector.declare(id, declared, !self.is_foreign);
    }

    /// Returns whether an API can depend on the items in a module's file or below it.
    fn may_matter(&self, name: &str, folder: &str, written: Option<&str>) -> bool {
        const WORDS: [&str; 8] = [
            "CustomResource",
            "CrdSchema",
            "JsonSchema",
            "KubeSchema",
            "CELSchema",
            "rbac",
            "webhook",
            "include!",
        ];
        let sources = self.collector.sources;
        let inner = path::join(folder, name);
        let mut files = sources.rust_files(&inner).unwrap_or_default();
        files.push(format!("{inner}.rs"));
        if let Some(written) = written {
            files.push(written.to_owned());
            files.extend(sources.rust_files(path::parent(written)).unwrap_or_default());
        }
        files.iter().any(|path| match sources.text(path) {
            Ok(Some(text)) => WORDS.iter().any(|word| text.contains(word)),
            Ok(None) => false,
            Err(_) => true,
        })
    }

    /// Has a file read into a module, unless the file is being read already.
    fn open(&mut self, path: String, module: ModuleId, span: Span, content: Content) {
        let mut ancestors = self.open.ancestors.clone();
        ancestors.push(self.open.path.clone());
        if ancestors.contains(&path) {
            let message = format!("the file `{path}` includes itself");
            return self.session.report(Diagnostic::error(span, message));
        }
        self.collector.files.push(OpenFile {
            module,
            folder: path::parent(&path).to_owned(),
            path,
            ancestors,
            content,
        });
    }

    /// The items of another file, here.
    pub(super) fn include(&mut self, mac: &Macro<'_>, module: ModuleId, content: Content) {
        self.report_pending();
        let span = mac.span;
        let diagnostic = match include::read_argument(mac) {
            Included::Path(written) => {
                let path = path::join(path::parent(&self.open.path), &written);
                if self.collector.is_file(&path) {
                    return self.open(path, module, span, content);
                }
                Diagnostic::error(span, format!("file not found for `include!`: `{path}`"))
            }
            Included::Built => self.built(span),
            Included::Unknown => {
                Diagnostic::error(span, "the path of this `include!` is not a string literal")
                    .help("write the path as a string literal, or declare the file with `mod`")
            }
        };
        self.session.report(diagnostic);
    }

    /// A file that the build script writes: it is an error where that script knows of kinds or markers.
    fn built(&mut self, span: Span) -> Diagnostic {
        let message = "files generated by the build script are not read";
        let script = self.collector.build_script(self.open.module);
        // A type of such a file that a kind needs is found missing where the kind names it.
        if script.is_some_and(|text| BUILT_MARKERS.iter().any(|word| text.contains(word))) {
            let help = "move the kinds to a source file of the package";
            return Diagnostic::error(span, message).help(help);
        }
        Diagnostic::warning(span, message)
            .help("move kinds and markers to a source file of the package: those in this file are ignored")
    }
}
