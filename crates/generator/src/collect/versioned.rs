//! Modules with stackable-versioned's `#[versioned]`.
//!
//! The macro generates one module per version, each with the items of the original as that version
//! has them. So the items are read once per version.

use rbuilder_reader::grammar::{ItemKind, Items};
use rbuilder_reader::token::{Cursor, Ident};
use rbuilder_reader::{Attribute, Span};
use rbuilder_syntax::{Diagnostic, ModuleVersion, VersionedModule, read_versioned_module};

use super::attributes;
use super::file::FileReader;
use super::gaps::generated_kinds;
use super::path::Location;
use crate::gap::words;
use crate::package::{Glob, ModuleId, Name, TypeItem};

/// Maximum number of bytes of all versions of a module together.
const MAX_BYTES: usize = 16 << 20;

/// The option that adds a field to the status, in a crate that is not part of the project.
const TRACKING: &str = "experimental_conversion_tracking";

/// Returns the arguments of `#[versioned]`, if it is the only macro on the module. Returns the reason
/// if the module cannot be read.
pub(super) fn read_versioned(
    attrs: &[Attribute<'_>],
    text: &str,
) -> Option<Result<VersionedModule, Diagnostic>> {
    let mut macros = attrs.iter().filter(|attr| !attributes::is_harmless(attr));
    let attr = macros.next().filter(|attr| attr.last_segment() == "versioned")?;
    macros.next().is_none().then(|| read_arguments(attr, text))
}

fn read_arguments(attr: &Attribute<'_>, text: &str) -> Result<VersionedModule, Diagnostic> {
    let count = |name: &str| words(text).filter(|word| *word == name).count();
    let kinds = count_kinds(text);
    // Early releases of the macro added the derive.
    if kinds > count("CustomResource") {
        return Err(generated_kinds(attr.span()));
    }
    if kinds > 0 && count(TRACKING) > 0 {
        let message = format!("`{TRACKING}` adds a field to the status, which rbuilder does not read");
        let help = "keep the CRDs that the program prints, or remove the option";
        return Err(Diagnostic::error(attr.span(), message).help(help));
    }
    let module = read_versioned_module(attr)?;
    if module.versions.len() * text.len() > MAX_BYTES {
        let message = "the module is too large: all of its versions have more than 16 MiB";
        return Err(Diagnostic::error(attr.span(), message).help("split it into several modules"));
    }
    Ok(module)
}

/// Returns the number of structs with `#[versioned(crd(…))]`.
fn count_kinds(text: &str) -> usize {
    let arguments = text.split("versioned(").skip(1).map(str::trim_start);
    arguments
        .filter(|arguments| ["crd(", "k8s("].iter().any(|start| arguments.starts_with(start)))
        .count()
}

impl<'c> FileReader<'c, '_> {
    /// Reads the items of a module into a child module for each version.
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
            self.module_of_version(content, version, around, location)?;
        }
        Ok(())
    }

    fn module_of_version(
        &mut self,
        content: Cursor<'_>,
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
        let read = self.items(Items::new(content, Some(self.cfg)), id, location);
        self.version = outer_version;
        self.session.set_module_version(outer);
        self.name_generated_enums(first, around);
        read
    }

    /// Names the two enums that the macro generates for each kind beside the modules of the versions.
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

    /// Reads a module inside of a `#[versioned]` one. The macro moves its imports to the version of
    /// the same name.
    pub(super) fn imports_of_version(
        &mut self,
        ident: Ident<'_>,
        content: Option<Cursor<'_>>,
        version: &ModuleVersion,
        module: ModuleId,
    ) -> Result<(), Diagnostic> {
        let names = version.all_names();
        // The macro refuses the other items, so markers in them do not matter.
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
