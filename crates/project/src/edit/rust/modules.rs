//! Adds `mod` and `pub use` items, sorted by name.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

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
    add_modules(text, &[(name, public)])
}

/// Adds several modules like [`add_module`], but parses the file only once. Each has a name and
/// whether it is public.
///
/// # Errors
/// Fails like [`add_module`] if one of the modules cannot be added.
pub fn add_modules(text: &str, added: &[(&str, bool)]) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let mut known: BTreeMap<String, Vec<&ItemMod>> = BTreeMap::new();
    for module in modules(&source.file) {
        let name = strip_raw_prefix(&module.ident.to_string());
        known.entry(name).or_default().push(module);
    }
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for (name, public) in added {
        let bare = strip_raw_prefix(name);
        let there = known.get(&bare).map(Vec::as_slice).unwrap_or_default();
        if let Some(reason) = there.iter().find_map(|module| wrong_place(module, name)) {
            return Err(reason.into());
        }
        if there.iter().any(|module| !is_for_tests(&module.attrs)) {
            continue;
        }
        if !there.is_empty() {
            return Err(format!("`mod {name}` is compiled for tests only").into());
        }
        let visibility = if *public { "pub " } else { "" };
        lines
            .entry(bare)
            .or_insert_with(|| format!("{visibility}mod {name};\n"));
    }
    if lines.is_empty() {
        return Ok(text.to_owned());
    }
    let declared = |item: &Item| match item {
        Item::Mod(module) if module.content.is_none() => Some(strip_raw_prefix(&module.ident.to_string())),
        _ => None,
    };
    let lines = sort_lines(lines);
    if let Some(edited) = insert_in_order(&source, declared, &lines) {
        return Ok(edited);
    }
    let lines = join_lines(&lines);
    let addition = if source.file.items.is_empty() {
        let gap = if text.trim().is_empty() { "" } else { "\n" };
        source.lines_at_end(&format!("{gap}{lines}"))
    } else {
        source.lines_before(0, &format!("{lines}\n"))
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
    add_reexports(text, &[(path, names)])
}

/// Adds several re-exports like [`add_reexport`], but parses the file only once for each form of
/// path.
///
/// # Errors
/// Fails if the file does not parse.
pub fn add_reexports(text: &str, added: &[(&str, &str)]) -> Result<String, Obstacle> {
    let (of_self, plain): (Vec<_>, Vec<_>) = added
        .iter()
        .copied()
        .partition(|(path, _)| path.starts_with(SELF));
    let edited = add_alike_reexports(text, &plain, false)?;
    add_alike_reexports(&edited, &of_self, true)
}

const SELF: &str = "self::";

fn add_alike_reexports(text: &str, added: &[(&str, &str)], of_self: bool) -> Result<String, Obstacle> {
    if added.is_empty() {
        return Ok(text.to_owned());
    }
    let source = Source::parse(text)?;
    let items = &source.file.items;
    let exported = |item: &Item| match item {
        Item::Use(import) if matches!(import.vis, Visibility::Public(_)) && !is_for_tests(&import.attrs) => {
            Some(first_segments(&import.tree))
        }
        _ => None,
    };
    let known: BTreeSet<String> = items.iter().filter_map(exported).flatten().collect();
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for (path, names) in added {
        let name = strip_raw_prefix(path.trim_start_matches(SELF));
        if !known.contains(&name) {
            lines
                .entry(name)
                .or_insert_with(|| format!("pub use {path}::{names};\n"));
        }
    }
    if lines.is_empty() {
        return Ok(text.to_owned());
    }
    let single = |item: &Item| exported(item).and_then(|names| names.into_iter().next());
    let alike = |item: &Item| single(item).filter(|_| is_from_self(item) == of_self);
    let lines = sort_lines(lines);
    if let Some(edited) = insert_in_order(&source, alike, &lines) {
        return Ok(edited);
    }
    // There's no re-export in our form. rustfmt sorts `self::` before everything else.
    let lines = join_lines(&lines);
    let is_reexport = |item: &Item| single(item).is_some();
    let neighbour = if of_self {
        items
            .iter()
            .position(is_reexport)
            .map(|first| source.lines_before(first, &lines))
    } else {
        items
            .iter()
            .rposition(is_reexport)
            .map(|last| source.lines_after(last, &lines))
    };
    if let Some(addition) = neighbour {
        return Ok(source.with(vec![addition]));
    }
    // The first re-export goes below the modules, after an empty line.
    let is_module = |item: &Item| matches!(item, Item::Mod(module) if module.content.is_none());
    let addition = match items.iter().rposition(is_module) {
        Some(last) => source.lines_after(last, &format!("\n{lines}")),
        None => source.lines_at_end(&format!("\n{lines}")),
    };
    Ok(source.with(vec![addition]))
}

/// Sorts lines by the names that they declare.
fn sort_lines(lines: BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = lines.into_iter().collect();
    lines.sort_by(|(left, _), (right, _)| compare_names(left, right));
    lines
}

fn join_lines(lines: &[(String, String)]) -> String {
    lines.iter().map(|(_, line)| line.as_str()).collect()
}

/// Inserts each line after the item that precedes its name, or before the first item. The lines are
/// sorted by name. Returns `None` if no item has a name.
fn insert_in_order(
    source: &Source<'_>,
    name_of: impl Fn(&Item) -> Option<String>,
    lines: &[(String, String)],
) -> Option<String> {
    let items = source.file.items.iter().enumerate();
    let known: Vec<(usize, String)> = items
        .filter_map(|(at, item)| Some((at, name_of(item)?)))
        .collect();
    let (first, _) = known.first()?;
    let mut additions = Vec::new();
    // The position in `known` only grows, because the lines are sorted.
    let mut next = 0;
    for (name, line) in lines {
        while known
            .get(next)
            .is_some_and(|(_, other)| compare_names(name, other) != Ordering::Less)
        {
            next += 1;
        }
        additions.push(match next {
            0 => source.lines_before(*first, line),
            _ => source.lines_after(known[next - 1].0, line),
        });
    }
    Some(source.with(additions))
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
