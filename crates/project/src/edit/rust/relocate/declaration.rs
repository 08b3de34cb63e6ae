//! Changes declarations of moved modules, e.g. from `pub mod cup;` to its group's module.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use syn::spanned::Spanned;
use syn::{Item, ItemMod, Visibility};

use super::super::calls::strip_raw_prefix;
use super::super::source::{Source, byte_range};
use super::super::{add_module, compare_names, remove_modules};
use super::Obstruction;

/// Replaces the declarations of modules that move out of a file. The first one is renamed in place
/// if the modules remain sorted, so that the comments around it are kept.
///
/// # Errors
/// Fails with the location if the file does not parse, or if it declares a module in a form that
/// would be lost.
pub fn replace_declarations(
    path: &str,
    text: &str,
    removed: &[&str],
    added: &[&str],
) -> Result<String, Obstruction> {
    let refused = |reason: String| Obstruction::at(path, text, 0, reason, "correct it".to_owned());
    let source = Source::parse(text).map_err(refused)?;
    let declared = find_declarations(&source);
    let is_declared = |name: &&str| declared.contains_key(&strip_raw_prefix(name));
    let (mut removed, mut added) = (removed.to_vec(), added.to_vec());
    removed.retain(is_declared);
    added.retain(|name| !is_declared(name));
    for name in &removed {
        if let Some(module) = declared.get(&strip_raw_prefix(name)) {
            check_form(path, &source, name, module)?;
        }
    }
    let mut edited = text.to_owned();
    if let (Some(from), Some(to)) = (removed.first(), added.first())
        && let Some(renamed) = rename_declaration(&source, &declared, from, to)
    {
        edited = renamed;
        removed.remove(0);
        added.remove(0);
    }
    for name in &added {
        edited = add_module(&edited, name, true)
            .map_err(|_| refused(format!("`pub mod {name};` cannot be added")))?;
    }
    remove_modules(&edited, &removed).map_err(|(name, _)| {
        let module = declared.get(&strip_raw_prefix(name));
        let start = module.map_or(0, |module| byte_range(module.span()).start);
        let reason = format!("`pub mod {name};` moves, but is not on a line of its own");
        let help = "write it in a line of its own".to_owned();
        Obstruction::at(path, text, start, reason, help)
    })
}

/// Returns the modules that a file declares, by name. The first one counts.
fn find_declarations<'s>(source: &'s Source<'_>) -> BTreeMap<String, &'s ItemMod> {
    let mut found = BTreeMap::new();
    for item in &source.file.items {
        if let Item::Mod(module) = item {
            found.entry(name_of(module)).or_insert(module);
        }
    }
    found
}

fn name_of(module: &ItemMod) -> String {
    strip_raw_prefix(&module.ident.to_string())
}

fn check_form(path: &str, source: &Source<'_>, name: &str, declared: &ItemMod) -> Result<(), Obstruction> {
    let start = byte_range(declared.span()).start;
    let obstruct = |reason: String, help: String| Obstruction::at(path, source.text, start, reason, help);
    if declared.content.is_some() {
        return Err(obstruct(
            format!("`mod {name}` moves, but is an inline module"),
            format!("move the content to {name}/mod.rs, and write `pub mod {name};`"),
        ));
    }
    if !declared.attrs.is_empty() || !matches!(declared.vis, Visibility::Public(_)) {
        return Err(obstruct(
            format!("`mod {name}` moves, but has attributes, comments or another visibility"),
            format!(
                "write `pub mod {name};`, and move attributes and comments to the top of its file, as `#![…]` and `//!`"
            ),
        ));
    }
    Ok(())
}

/// Renames a module in its declaration. Returns `None` if the modules would no longer be sorted.
fn rename_declaration(
    source: &Source<'_>,
    declared: &BTreeMap<String, &ItemMod>,
    from: &str,
    to: &str,
) -> Option<String> {
    let declared = declared.get(&strip_raw_prefix(from))?;
    let names = source.file.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() => Some(name_of(module)),
        _ => None,
    });
    let before: Vec<String> = names.collect();
    let after = before
        .iter()
        .map(|name| if name == from { to } else { name.as_str() });
    let is_sorted = |names: &[&str]| {
        let mut pairs = names.windows(2);
        pairs.all(|pair| compare_names(pair[0], pair[1]) != Ordering::Greater)
    };
    let was_sorted = is_sorted(&before.iter().map(String::as_str).collect::<Vec<_>>());
    if was_sorted && !is_sorted(&after.collect::<Vec<_>>()) {
        return None;
    }
    let mut edited = source.text.to_owned();
    edited.replace_range(byte_range(declared.ident.span()), to);
    Some(edited)
}
