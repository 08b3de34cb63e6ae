//! `use` trees to single imports.

use syn::UseTree;
use syn::ext::IdentExt;

/// One name brought in, or everything of a module.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Import {
    /// The name here, and the path it stands for.
    Name(String, Vec<String>),
    /// The path of the module.
    Glob(Vec<String>),
}

/// All imports of a `use` item; a leading `::` is an empty first segment.
pub(super) fn imports(item: &syn::ItemUse) -> Vec<Import> {
    let mut prefix: Vec<String> = item.leading_colon.iter().map(|_| String::new()).collect();
    let mut found = Vec::new();
    walk(&item.tree, &mut prefix, &mut found);
    found
}

fn walk(tree: &UseTree, prefix: &mut Vec<String>, found: &mut Vec<Import>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.unraw().to_string());
            walk(&path.tree, prefix, found);
            prefix.pop();
        }
        UseTree::Name(name) => {
            let name = name.ident.unraw().to_string();
            found.extend(named(prefix, &name, None));
        }
        UseTree::Rename(rename) => {
            let (name, rename) = (
                rename.ident.unraw().to_string(),
                rename.rename.unraw().to_string(),
            );
            found.extend(named(prefix, &name, Some(rename)));
        }
        UseTree::Glob(_) => found.push(Import::Glob(prefix.clone())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, prefix, found)),
    }
}

/// `a::{self}` brings in `a` itself; `as _` brings in no name.
fn named(prefix: &[String], name: &str, rename: Option<String>) -> Option<Import> {
    let mut path = prefix.to_vec();
    if name != "self" || path.is_empty() {
        path.push(name.to_owned());
    }
    let here = rename.or_else(|| path.last().cloned())?;
    (here != "_").then_some(Import::Name(here, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_become_single_imports() {
        let cases: &[(&str, &[&str])] = &[
            ("use a::b;", &["b = a::b"]),
            ("use a::{b, c as d, self};", &["b = a::b", "d = a::c", "a = a"]),
            (
                "use ::k8s::{x::{Y, self as z}, *};",
                &["Y = ::k8s::x::Y", "z = ::k8s::x", "* = ::k8s"],
            ),
            ("use super::*;", &["* = super"]),
            ("use a::r#type::T as _;", &[]),
            ("use a::r#type;", &["type = a::type"]),
        ];
        for (input, expected) in cases {
            let item: syn::ItemUse = syn::parse_str(input).expect("a use item");
            let found: Vec<String> = imports(&item)
                .into_iter()
                .map(|import| match import {
                    Import::Name(name, path) => format!("{name} = {}", path.join("::")),
                    Import::Glob(path) => format!("* = {}", path.join("::")),
                })
                .collect();
            assert_eq!(found, *expected, "{input}");
        }
    }
}
