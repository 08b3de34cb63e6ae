//! Finds the files of `mod` and `include!`.

use rbuilder_reader::grammar::{Items, Macro};
use rbuilder_reader::token::{Cursor, Ident};
use rbuilder_reader::{Attribute, Span};
use rbuilder_syntax::Diagnostic;

use super::file::FileReader;
use super::gaps::describe_rewritten;
use super::include::{self, Included};
use super::path::{self, Location};
use super::versioned::{VersionedOn, read_versioned};
use super::{Content, Declared, Doubt, MAX_MODULES, OpenFile, attributes, writes_markers};
use crate::gap::Gap;
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
        if let Some(version) = self.version.clone() {
            return self.imports_of_version(ident, content, &version, parent);
        }
        let versioned = content.and_then(|_| read_versioned(attrs, text, VersionedOn::Module));
        let unread = match (content, versioned) {
            (Some(content), Some(Ok(versioned))) => {
                return self.versioned_module(ident, content, versioned, parent, location);
            }
            (_, versioned) => versioned.and_then(Result::err),
        };
        let package = self.collector.package.module(parent).package;
        let id = self.collector.add_module(package, Some(parent));
        self.name(parent, ident, Name::Module(id));
        let written = path::path_attribute(attrs);
        let macros = attrs.iter().find(|attr| !attributes::is_harmless(attr));
        let rewritten = macros.map(|attr| unread.unwrap_or_else(|| describe_rewritten(attr, text)));
        if let (Some(attr), Some(reason)) = (macros, &rewritten) {
            self.add_rewritten(attr, text, reason, &[parent, id]);
        }
        let Some(content) = content else {
            if let Some(reason) = rewritten.filter(|_| !self.is_foreign) {
                self.session.report(reason);
            }
            self.module_file(ident, id, location, written);
            return Ok(());
        };
        let outer = self.rewritten.clone();
        // A macro on an enclosing module may change the items in here just as well.
        self.rewritten = rewritten.or_else(|| outer.clone());
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
        let declared = Declared::Module {
            name: ident.text.to_owned(),
            folder: location.folder.clone(),
            written,
            place,
            ancestors,
            doubts: self.doubts(),
        };
        self.collector.declare(id, declared, !self.is_foreign);
    }

    fn doubts(&self) -> Vec<Doubt> {
        let pending = self.pending.iter().map(|pending| (self.id, pending.clone()));
        self.open.doubts.iter().cloned().chain(pending).collect()
    }

    /// Queues a file for reading, unless it includes itself.
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
            doubts: self.doubts(),
            content,
        });
    }

    pub(super) fn include(&mut self, mac: &Macro<'_>, module: ModuleId, content: Content) {
        let span = mac.span;
        let folder = self.collector.package.member(module).folder.clone();
        let diagnostic = match include::read_argument(mac, &folder, path::parent(&self.open.path)) {
            Included::Path(path) => {
                if self.collector.is_file(&path) {
                    return self.open(path, module, span, content);
                }
                Diagnostic::error(span, format!("file not found for `include!`: `{path}`"))
            }
            Included::Built => self.built(span, module),
            Included::Unknown => {
                Diagnostic::error(span, "the path of this `include!` is not a string literal")
                    .help("write the path as a string literal, or declare the file with `mod`")
            }
        };
        self.session.report(diagnostic);
    }

    /// The build script may generate the file. An error if the script mentions kinds or markers;
    /// otherwise only a warning, plus a report wherever a kind uses a type that may come from the
    /// file.
    fn built(&mut self, span: Span, module: ModuleId) -> Diagnostic {
        let message = "files generated by the build script are not read";
        let script = self.collector.build_script(self.open.module);
        if script.is_some_and(|text| writes_markers(&text)) {
            let help = "move the kinds to a source file of the package";
            return Diagnostic::error(span, message).help(help);
        }
        let help = "move kinds and markers to a source file of the package: those in this file are ignored";
        let reason = Diagnostic::error(
            span,
            "this file, which the build script generates, may define types that a kind needs",
        )
        .help("move the types to a source file of the package");
        self.collector.add_gap(module, Gap::of_build(self.id, reason));
        Diagnostic::warning(span, message).help(help)
    }
}
