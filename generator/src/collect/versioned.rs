//! Modules with stackable-versioned's `#[versioned]`. Its macro makes a module for each version of them, whose items are those of the
//! original. This is read for one version; for several, fields and variants come and go between the versions.

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
    /// True if the module of the version stays within the original one.
    keeps_module: bool,
}

/// Returns the arguments of `#[versioned]`, if it is the only macro of a module and there is one version. A module may have no modules
/// in it, whose imports the macro would move, and its kinds must derive `CustomResource`, which early releases of the macro added.
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

/// Returns the name of a version without a documentation or a deprecation of its own.
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
    /// Reads the items into the module of their version.
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
