//! Adds `mod` and `pub use` items, sorted by name.

use std::cmp::Ordering;

use syn::{Expr, Item, ItemMod, Lit, Meta, UseTree, Visibility};

use super::calls::{is_for_tests, strip_raw_prefix};
use super::source::Source;
use crate::edit::Obstacle;

/// Adds `mod name;`, or `pub mod name;` if `public`, in sorted order. No-op if the module is
/// already declared.
///
/// # Errors
/// Fails if the file does not parse, or if it declares a module with this name inline or in a
/// non-standard file.
pub fn add_module(text: &str, name: &str, public: bool) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let same = |item: &&ItemMod| strip_raw_prefix(&item.ident.to_string()) == strip_raw_prefix(name);
    let there: Vec<&ItemMod> = modules(&source.file).filter(same).collect();
    if let Some(reason) = there.iter().find_map(|module| wrong_place(module, name)) {
        return Err(reason.into());
    }
    if there.iter().any(|module| !is_for_tests(&module.attrs)) {
        return Ok(text.to_owned());
    }
    if !there.is_empty() {
        return Err(format!("`mod {name}` is compiled for tests only").into());
    }
    let declared = |item: &Item| match item {
        Item::Mod(module) if module.content.is_none() => Some(strip_raw_prefix(&module.ident.to_string())),
        _ => None,
    };
    let line = format!("{}mod {name};\n", if public { "pub " } else { "" });
    if let Some(edited) = insert_in_order(&source, declared, name, &line) {
        return Ok(edited);
    }
    let addition = if source.file.items.is_empty() {
        let gap = if text.trim().is_empty() { "" } else { "\n" };
        source.lines_at_end(&format!("{gap}{line}"))
    } else {
        source.lines_before(0, &format!("{line}\n"))
    };
    Ok(source.with(vec![addition]))
}

/// Explains why a module isn't in its standard file, if so.
fn wrong_place(module: &ItemMod, name: &str) -> Option<String> {
    if module.content.is_some() {
        return Some(format!(
            "`mod {name} {{ … }}` is an inline module, but new files need the directory `{name}/`: move the content \
             to {name}/mod.rs and declare `mod {name};`"
        ));
    }
    let path = module.attrs.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(path) => Some(path.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })?;
    let own = [format!("{name}.rs"), format!("{name}/mod.rs")];
    (!own.contains(&path))
        .then(|| format!("the attribute `path` of `mod {name}` refers to the file `{path}`"))
}

/// Adds `pub use path::names;` in sorted order, unless the file already re-exports names from the
/// module. `path` is the name of a module, prefixed with `self::` if a crate has the same name.
/// `names` is `*` or a single name.
///
/// # Errors
/// Fails if the file does not parse.
pub fn add_reexport(text: &str, path: &str, names: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let name = path.trim_start_matches("self::");
    let exported = |item: &Item| match item {
        Item::Use(import) if matches!(import.vis, Visibility::Public(_)) && !is_for_tests(&import.attrs) => {
            Some(first_segments(&import.tree))
        }
        _ => None,
    };
    if source
        .file
        .items
        .iter()
        .filter_map(exported)
        .flatten()
        .any(|known| known == strip_raw_prefix(name))
    {
        return Ok(text.to_owned());
    }
    let line = format!("pub use {path}::{names};\n");
    let single = |item: &Item| exported(item).and_then(|names| names.into_iter().next());
    let alike = |item: &Item| single(item).filter(|_| is_from_self(item) == (name != path));
    if let Some(edited) = insert_in_order(&source, alike, name, &line) {
        return Ok(edited);
    }
    // There's no re-export in our form. rustfmt sorts `self::` before everything else.
    let is_reexport = |item: &Item| single(item).is_some();
    let items = &source.file.items;
    let neighbour = if name != path {
        items
            .iter()
            .position(is_reexport)
            .map(|first| source.lines_before(first, &line))
    } else {
        items
            .iter()
            .rposition(is_reexport)
            .map(|last| source.lines_after(last, &line))
    };
    if let Some(addition) = neighbour {
        return Ok(source.with(vec![addition]));
    }
    // The first re-export goes below the modules, after an empty line.
    let is_module = |item: &Item| matches!(item, Item::Mod(module) if module.content.is_none());
    let addition = match source.file.items.iter().rposition(is_module) {
        Some(last) => source.lines_after(last, &format!("\n{line}")),
        None => source.lines_at_end(&format!("\n{line}")),
    };
    Ok(source.with(vec![addition]))
}

/// Inserts a line after the item that precedes `name`, or before the first item. Returns `None` if
/// no item has a name.
fn insert_in_order(
    source: &Source<'_>,
    name_of: impl Fn(&Item) -> Option<String>,
    name: &str,
    line: &str,
) -> Option<String> {
    let items = source.file.items.iter().enumerate();
    let known: Vec<(usize, String)> = items
        .filter_map(|(at, item)| Some((at, name_of(item)?)))
        .collect();
    let next = known
        .iter()
        .position(|(_, other)| compare_names(&strip_raw_prefix(name), other) == Ordering::Less);
    let addition = match (next, known.first()) {
        (Some(0), Some((first, _))) => source.lines_before(*first, line),
        (Some(next), _) => source.lines_after(known[next - 1].0, line),
        (None, _) => source.lines_after(known.last()?.0, line),
    };
    Some(source.with(vec![addition]))
}

fn modules(file: &syn::File) -> impl Iterator<Item = &ItemMod> {
    file.items.iter().filter_map(|item| match item {
        Item::Mod(module) => Some(module),
        _ => None,
    })
}

fn is_from_self(item: &Item) -> bool {
    let Item::Use(import) = item else { return false };
    matches!(&import.tree, UseTree::Path(path) if path.ident == "self")
}

fn first_segments(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(path) if path.ident == "self" => first_segments(&path.tree),
        UseTree::Path(path) => vec![strip_raw_prefix(&path.ident.to_string())],
        UseTree::Name(name) => vec![strip_raw_prefix(&name.ident.to_string())],
        UseTree::Group(group) => group.items.iter().flat_map(first_segments).collect(),
        _ => Vec::new(),
    }
}

/// Compares names in rustfmt's version sort, where `v2` comes before `v10`.
pub fn compare_names(left: &str, right: &str) -> Ordering {
    let key = |text: &str| {
        let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
        let mut digits = false;
        for c in text.chars() {
            if c.is_ascii_digit() {
                let number = &mut parts.last_mut().expect("one part from the start").1;
                *number = number
                    .saturating_mul(10)
                    .saturating_add(u64::from(c as u8 - b'0'));
                digits = true;
            } else {
                if digits {
                    parts.push((String::new(), 0));
                    digits = false;
                }
                parts.last_mut().expect("one part from the start").0.push(c);
            }
        }
        parts
    };
    key(left).cmp(&key(right)).then_with(|| left.cmp(right))
}
