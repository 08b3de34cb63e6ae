//! Where the file of a module is.

use syn::ext::IdentExt;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use crate::SourceSet;
use crate::cargo::normalize_path;

/// The folder of a file.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `folder/name`.
pub(super) fn join(folder: &str, name: &str) -> String {
    normalize_path(&format!("{folder}/{name}"))
}

/// A module's file, and the folder of the files of its own modules.
pub(super) struct Found {
    pub(super) path: String,
    pub(super) folder: String,
}

/// Finds the file of `mod name;`. The error is what was looked for.
pub(super) fn find(
    sources: &SourceSet,
    folder: &str,
    name: &syn::Ident,
    written: Option<String>,
) -> Result<Found, String> {
    if let Some(path) = written {
        return match sources.get(&path) {
            Some(_) => Ok(Found {
                folder: parent(&path).to_owned(),
                path,
            }),
            None => Err(format!("`{path}`")),
        };
    }
    let name = name.unraw();
    let flat = join(folder, &format!("{name}.rs"));
    let nested = join(folder, &format!("{name}/mod.rs"));
    let children = join(folder, &name.to_string());
    match [flat, nested] {
        [path, _] if sources.get(&path).is_some() => Ok(Found {
            path,
            folder: children,
        }),
        [_, path] if sources.get(&path).is_some() => Ok(Found {
            path,
            folder: children,
        }),
        [flat, nested] => Err(format!("`{flat}` or `{nested}`")),
    }
}

/// The value of `#[path = "…"]`.
pub(super) fn path_attribute(attrs: &[Attribute]) -> Option<String> {
    attrs.iter().find_map(|attr| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// What a reader of one file knows about where it is.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// Where files of modules are.
    pub(super) folder: String,
    /// What `#[path]` is relative to: the file's own folder, or that of the inline module.
    pub(super) path_folder: String,
}
