//! Modules with stackable-versioned's `#[versioned]`.
//!
//! The macro generates one module per version, each with the items of the original. Only modules
//! with a single version are supported. With several versions, fields and variants differ between
//! them.

use rbuilder_reader::grammar::Items;
use rbuilder_reader::token::{Cursor, Ident};
use rbuilder_reader::{Arg, ArgValue, Attribute, Form};
use rbuilder_syntax::Diagnostic;

use super::attributes;
use super::file::FileReader;
use super::path::Location;
use crate::gap::words;
use crate::package::{Glob, ModuleId, Name};

/// The arguments of `#[versioned]` on a module.
pub(super) struct Versioned {
    /// The only version.
    version: String,
    /// True if the module of the version is nested in the original module.
    keeps_module: bool,
}

/// Returns the arguments of `#[versioned]`, if it is the only macro on the module and declares a
/// single version.
///
/// Nested modules are not supported, because the macro would change what their imports refer to.
/// Kinds must derive `CustomResource` in the source: early releases of the macro added the derive.
pub(super) fn read_versioned(attrs: &[Attribute<'_>], text: &str) -> Option<Versioned> {
    let mut macros = attrs.iter().filter(|attr| !attributes::is_harmless(attr));
    let attr = macros.next().filter(|attr| attr.last_segment() == "versioned")?;
    let count = |name: &str| words(text).filter(|word| *word == name).count();
    if macros.next().is_some() || count("mod") > 1 || count_kinds(text) > count("CustomResource") {
        return None;
    }
    let Form::List(list) = attr.form() else {
        return None;
    };
    let (args, malformed) = Arg::read_list(list);
    if malformed.is_some() {
        return None;
    }
    let mut versions = args.iter().filter(|arg| arg.name == "version");
    let version = read_version(versions.next()?)?;
    if versions.next().is_some() {
        return None;
    }
    let keeps_module = |arg: &Arg<'_>| {
        let options = match &arg.value {
            ArgValue::List(options) if arg.name == "options" => options.as_slice(),
            _ => &[],
        };
        options.iter().any(|option| option.name == "preserve_module")
    };
    Some(Versioned {
        version,
        keeps_module: args.iter().any(keeps_module),
    })
}

/// Returns the number of structs with `#[versioned(crd(…))]`.
fn count_kinds(text: &str) -> usize {
    let arguments = text.split("versioned(").skip(1).map(str::trim_start);
    arguments
        .filter(|arguments| ["crd(", "k8s("].iter().any(|start| arguments.starts_with(start)))
        .count()
}

/// Returns the name of a version. Returns `None` if it has its own documentation or deprecation.
fn read_version(arg: &Arg<'_>) -> Option<String> {
    let ArgValue::List(args) = &arg.value else {
        return None;
    };
    if !args.iter().all(|arg| matches!(arg.name, "name" | "skip")) {
        return None;
    }
    let name = args.iter().find(|arg| arg.name == "name")?;
    Some(name.literal()?.value.as_str()?.to_owned())
}

impl<'c> FileReader<'c, '_> {
    /// Reads the items of a module into a child module with the name of the version.
    pub(super) fn versioned_module(
        &mut self,
        ident: Ident<'_>,
        content: Cursor<'_>,
        versioned: Versioned,
        parent: ModuleId,
        location: &Location,
    ) -> Result<(), Diagnostic> {
        let Versioned {
            version,
            keeps_module,
        } = versioned;
        let package = self.collector.package.module(parent).package;
        let around = match keeps_module {
            true => {
                let id = self.collector.add_module(package, Some(parent));
                self.name(parent, ident, Name::Module(id));
                id
            }
            false => parent,
        };
        let id = self.collector.add_module(package, Some(around));
        let modules = &mut self.collector.package.modules;
        modules[around.0].names.insert(version.clone(), Name::Module(id));
        modules[id.0].globs.push(Glob {
            path: vec!["super".to_owned()],
            undecided: None,
        });
        let outer = self.session.set_module_version(Some(version.clone()));
        let around = self.version.replace(version);
        let read = self.items(Items::new(content, Some(self.cfg)), id, location);
        self.version = around;
        self.session.set_module_version(outer);
        read
    }
}
