//! Adds a call to `webhook::register` to `main`.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Block, Item, Stmt, UseTree};

use super::calls::{Call, Imports, code_without_tests, find_calls, is_for_tests};
use super::source::{Addition, Source, byte_range, line_starts};
use crate::edit::Obstacle;

/// Adds a call to `webhook::register` before `controller::register`, unless `main` already calls
/// it.
///
/// # Errors
/// Fails if the file does not parse, imports `controller` in an unsupported way, or does not call
/// `controller::register` exactly once with a variable.
pub fn register_webhooks(text: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let imports = Imports::of(&source.file);
    let code = code_without_tests(&source.file);
    let calls = find_calls(&code);
    let named = |call: &Call, module: &str| {
        !call.is_method
            && imports
                .absolute(&call.path, &[])
                .ends_with(&[module.to_owned(), "register".to_owned()])
    };
    let mut additions: Vec<Addition> = Vec::new();
    if let Some(call) = calls.iter().find(|call| named(call, "webhook")) {
        // The call may be there without the import.
        if is_short(call, "webhook") && imports.get("webhook").is_none() && !declares(&source.file, "webhook")
        {
            additions.extend(import_webhook(&source.file).unwrap_or_default());
        }
        return Ok(source.with(additions));
    }
    let found: Vec<&Call> = calls.iter().filter(|call| named(call, "controller")).collect();
    let (call, manager) = match found.as_slice() {
        [call] => (call, call.variable()),
        _ => return Err("it does not call `controller::register(manager)` exactly once".into()),
    };
    let manager = manager.ok_or("the argument of `controller::register` is not a variable")?;
    let path = imports.absolute(&call.path, &[]);
    let sibling = [&path[..path.len() - 2], &["webhook".to_owned()]].concat();
    let name = match imports.get("webhook") {
        Some(known) if known == sibling => "webhook".to_owned(),
        None if is_short(call, "controller") => {
            let import = import_webhook(&source.file).ok_or("it does not import `controller` by name")?;
            additions.extend(import);
            "webhook".to_owned()
        }
        // The name is taken by something else, or the call uses an absolute path.
        _ => sibling.join("::"),
    };
    let statement = format!("let {manager} = {name}::register({manager});");
    additions.push(
        before_statement(&source, &code, call.start, &statement)
            .ok_or("its call of `controller::register` is not in a function")?,
    );
    Ok(source.with(additions))
}

/// Whether a file calls `module::register`. False if `text` is not Rust.
pub fn calls_register(text: &str, module: &str) -> bool {
    let Ok(source) = Source::parse(text) else {
        return false;
    };
    let imports = Imports::of(&source.file);
    let calls = find_calls(&code_without_tests(&source.file));
    let wanted = [module.to_owned(), "register".to_owned()];
    calls
        .iter()
        .any(|call| !call.is_method && imports.absolute(&call.path, &[]).ends_with(&wanted))
}

fn is_short(call: &Call, module: &str) -> bool {
    let path = match call.path.split_first() {
        Some((first, rest)) if first == "self" => rest,
        _ => &call.path,
    };
    path.len() == 2 && path[0] == module
}

fn declares(file: &syn::File, name: &str) -> bool {
    file.items
        .iter()
        .any(|item| matches!(item, Item::Mod(module) if module.ident == name))
}

fn before_statement(
    source: &Source<'_>,
    code: &TokenStream,
    place: usize,
    statement: &str,
) -> Option<Addition> {
    let mut blocks = blocks_around(code, place);
    blocks.reverse();
    for block in blocks {
        let Ok(statements) = Block::parse_within.parse2(block.stream()) else {
            continue; // the arms of a `match`, the fields of a struct
        };
        let holds = |statement: &Stmt| byte_range(statement.span()).contains(&place);
        let Some(index) = statements.iter().position(holds) else {
            continue;
        };
        let start = byte_range(statements[index].span()).start;
        let end_before = match index.checked_sub(1) {
            Some(before) => byte_range(statements[before].span()).end,
            None => byte_range(block.span_open()).end,
        };
        let indent = source.indent_at(start);
        return Some(match line_starts(source.text, end_before..start).last() {
            Some(line) => Addition::new(*line, format!("{indent}{statement}\n")),
            None => Addition::new(start, format!("{statement} ")),
        });
    }
    None
}

fn blocks_around(tokens: &TokenStream, place: usize) -> Vec<Group> {
    let mut blocks = Vec::new();
    let mut level = tokens.clone();
    loop {
        let inner = level.into_iter().find_map(|token| match token {
            TokenTree::Group(group) if byte_range(group.span()).contains(&place) => Some(group),
            _ => None,
        });
        let Some(group) = inner else { return blocks };
        level = group.stream();
        if group.delimiter() == Delimiter::Brace {
            blocks.push(group);
        }
    }
}

/// Imports `webhook` next to `controller`. Returns `None` if the file doesn't import `controller`
/// by name.
fn import_webhook(file: &syn::File) -> Option<Vec<Addition>> {
    let name = file.items.iter().find_map(|item| match item {
        Item::Use(import) if !is_for_tests(&import.attrs) => imported(&import.tree, "controller"),
        _ => None,
    })?;
    Some(match name {
        Imported::Alone(name) => vec![
            Addition::new(name.start, "{"),
            Addition::new(name.end, ", webhook}"),
        ],
        Imported::InGroup(name) => vec![Addition::new(name.end, ", webhook")],
    })
}

enum Imported {
    /// At the end of a path, e.g. `use shop::controller`.
    Alone(Range<usize>),
    /// In braces, e.g. `use shop::{api, controller}`.
    InGroup(Range<usize>),
}

fn imported(tree: &UseTree, name: &str) -> Option<Imported> {
    match tree {
        UseTree::Path(path) => match &*path.tree {
            UseTree::Name(last) if last.ident == name => Some(Imported::Alone(byte_range(last.span()))),
            inner => imported(inner, name),
        },
        UseTree::Group(group) => group.items.iter().find_map(|tree| match tree {
            UseTree::Name(last) if last.ident == name => Some(Imported::InGroup(byte_range(last.span()))),
            inner => imported(inner, name),
        }),
        _ => None,
    }
}
