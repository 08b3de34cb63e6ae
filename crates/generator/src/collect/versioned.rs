//! stackable-versioned's `#[versioned]` on modules and, as in releases before 0.8, on single
//! structs and enums.
//!
//! The macro generates a module per version, with the items as of that version, so the items are
//! read once for each version.

use rbuilder_reader::grammar::{ItemKind, Items};
use rbuilder_reader::token::{Cursor, Ident};
use rbuilder_reader::{Attribute, Span};
use rbuilder_syntax::{
    Diagnostic, ModuleVersion, VersionedModule, read_versioned_item, read_versioned_module,
};

use super::attributes;
use super::file::FileReader;
use super::gaps::{generated_kinds, makes_kinds};
use super::path::Location;
use crate::gap::words;
use crate::package::{Glob, ModuleId, Name, TypeItem};

/// Limit for all versions of a module together.
const MAX_BYTES: usize = 16 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionedOn {
    Module,
    Type,
}

#[derive(Clone, Copy)]
pub(super) enum VersionedContent<'s, 'a, 'c> {
    Module(Cursor<'a>),
    /// A single struct or enum, which is the next item.
    Type(&'s Items<'a, 'c>),
}

/// Returns the arguments of `#[versioned]`, unless another macro changes the item.
pub(super) fn read_versioned(
    attrs: &[Attribute<'_>],
    text: &str,
    on: VersionedOn,
) -> Option<Result<VersionedModule, Diagnostic>> {
    let attr = only_macro(attrs, on)?;
    Some(read_arguments(attr, text, on))
}

fn only_macro<'s, 'a>(attrs: &'s [Attribute<'a>], on: VersionedOn) -> Option<&'s Attribute<'a>> {
    // A macro below a derive runs after the derive has read the item, so it doesn't matter.
    let above = attrs
        .iter()
        .take_while(|attr| on == VersionedOn::Module || !attr.is("derive"));
    let mut macros = above.filter(|attr| !attributes::is_harmless(attr));
    let attr = macros.next().filter(|attr| attr.last_segment() == "versioned")?;
    macros.next().is_none().then_some(attr)
}

fn read_arguments(attr: &Attribute<'_>, text: &str, on: VersionedOn) -> Result<VersionedModule, Diagnostic> {
    let count = |name: &str| words(text).filter(|word| *word == name).count();
    let kinds = match on {
        VersionedOn::Module => count_kinds(text),
        VersionedOn::Type => usize::from(makes_kinds(attr, attr.text())),
    };
    // Early releases of the macro emit the derive themselves, with arguments that we can't see.
    if kinds > count("CustomResource") {
        return Err(generated_kinds(attr.span()));
    }
    let module = match on {
        VersionedOn::Module => read_versioned_module(attr)?,
        VersionedOn::Type => read_versioned_item(attr)?,
    };
    if module.versions.len() * text.len() > MAX_BYTES {
        let message = "the module is too large: all of its versions have more than 16 MiB";
        return Err(Diagnostic::error(attr.span(), message).help("split it into several modules"));
    }
    Ok(module)
}

fn count_kinds(text: &str) -> usize {
    let arguments = text.split("versioned(").skip(1).map(str::trim_start);
    arguments
        .filter(|arguments| ["crd(", "k8s("].iter().any(|start| arguments.starts_with(start)))
        .count()
}

impl<'c> FileReader<'c, '_> {
    /// Reads a struct or enum with `#[versioned]` outside of a `#[versioned]` module. `items`
    /// starts at the type. Returns false if the macro is absent.
    pub(super) fn versioned_type(
        &mut self,
        items: &Items<'_, 'c>,
        (attrs, text): (&[Attribute<'_>], &str),
        ident: Ident<'_>,
        module: ModuleId,
        location: &Location,
    ) -> Result<bool, Diagnostic> {
        if self.version.is_some() || self.rewritten.is_some() {
            return Ok(false);
        }
        let Some(attr) = only_macro(attrs, VersionedOn::Type) else {
            return Ok(false);
        };
        match read_arguments(attr, text, VersionedOn::Type) {
            Ok(versioned) => {
                for version in versioned.versions {
                    self.module_of_version(VersionedContent::Type(items), version, module, location)?;
                }
            }
            Err(reason) if makes_kinds(attr, text) => {
                self.add_rewritten(attr, text, &reason, &[module]);
                self.name(module, ident, Name::Opaque);
            }
            // Presumably some other macro with the same name.
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn versioned_module(
        &mut self,
        ident: Ident<'_>,
        content: Cursor<'_>,
        versioned: VersionedModule,
        parent: ModuleId,
        location: &Location,
    ) -> Result<(), Diagnostic> {
        let package = self.collector.package.module(parent).package;
        let around = match versioned.keeps_module {
            true => {
                let id = self.collector.add_module(package, Some(parent));
                self.name(parent, ident, Name::Module(id));
                id
            }
            false => parent,
        };
        for version in versioned.versions {
            self.module_of_version(VersionedContent::Module(content), version, around, location)?;
        }
        Ok(())
    }

    fn module_of_version(
        &mut self,
        content: VersionedContent<'_, '_, 'c>,
        version: ModuleVersion,
        around: ModuleId,
        location: &Location,
    ) -> Result<(), Diagnostic> {
        let package = self.collector.package.module(around).package;
        let id = self.collector.add_module(package, Some(around));
        let modules = &mut self.collector.package.modules;
        let name = version.name().to_owned();
        modules[around.0].names.insert(name, Name::Module(id));
        modules[id.0].globs.push(Glob {
            path: vec!["super".to_owned()],
            undecided: None,
        });
        let outer = self.session.set_module_version(Some(version.clone()));
        let outer_version = self.version.replace(version);
        let first = self.collector.package.types.len();
        let read = match content {
            VersionedContent::Module(content) => {
                self.items(Items::new(content, Some(self.cfg)), id, location)
            }
            VersionedContent::Type(items) => self.one_item(&mut items.clone(), id, location).map(drop),
        };
        self.version = outer_version;
        self.session.set_module_version(outer);
        self.name_generated_enums(first, around);
        self.add_tracked_statuses(first, around);
        read
    }

    /// Besides the version modules, the macro generates two enums per kind, of which only the names
    /// are needed.
    fn name_generated_enums(&mut self, first: usize, module: ModuleId) {
        let package = &mut self.collector.package;
        let kinds = package.types[first..].iter().filter_map(TypeItem::resource);
        for kind in kinds.map(|resource| &resource.kind) {
            let names = &mut package.modules[module.0].names;
            for name in [kind.clone(), format!("{kind}Version")] {
                names.entry(name).or_insert(Name::Opaque);
            }
        }
    }

    /// Reads a module inside of a `#[versioned]` module. It isn't a real module: the macro moves
    /// its imports into the version of that name.
    pub(super) fn imports_of_version(
        &mut self,
        ident: Ident<'_>,
        content: Option<Cursor<'_>>,
        version: &ModuleVersion,
        module: ModuleId,
    ) -> Result<(), Diagnostic> {
        let names = version.all_names();
        // The macro rejects any other item, so don't report markers inside them.
        if let Some(content) = content {
            self.seen_marks.note(content.span_to_end());
        }
        let Some(content) = content.filter(|_| names.iter().any(|name| name == ident.text)) else {
            self.session.report(not_a_version(ident.span, names));
            return Ok(());
        };
        let mut items = Items::new(content, Some(self.cfg));
        while let Some(item) = items.read()? {
            match item.kind {
                ItemKind::Use(tree) if ident.text == version.name() => self.imports(tree, module)?,
                ItemKind::Use(_) => {}
                _ if !item.active => {}
                _ => {
                    let message = "a module inside of a `versioned` module has only imports";
                    let help = "move the item to the outer module, or out of it";
                    self.session
                        .report(Diagnostic::error(item.span, message).help(help));
                }
            }
        }
        Ok(())
    }
}

fn not_a_version(at: Span, names: &[String]) -> Diagnostic {
    let message = "a module inside of a `versioned` module has the name of a version, and only imports";
    Diagnostic::error(at, message).help(format!("the versions are {}", names.join(", ")))
}
