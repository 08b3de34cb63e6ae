//! Lines in Rust files, placed by the spans of what is there: nothing is printed anew, so comments and spacing
//! stay, and what is added stands where rustfmt would put it.

use std::cmp::Ordering;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::{Expr, Item, Stmt, Visibility};

/// Adds `mod name;` among the modules in order, with `pub` when asked; the same text when it is there.
///
/// # Errors
/// When the file does not parse.
pub fn add_module(text: &str, name: &str, public: bool) -> Result<String, String> {
    let file = parse(text)?;
    let known = |item: &Item| match item {
        Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    };
    let line = format!("{}mod {name};", if public { "pub " } else { "" });
    Ok(add_item(text, &file, known, name, &line))
}

/// Adds `pub use name::*;` among the re-exports in order; the same text when it, or one name of the module, is there.
///
/// # Errors
/// When the file does not parse.
pub fn add_reexport(text: &str, name: &str) -> Result<String, String> {
    let file = parse(text)?;
    let known = |item: &Item| match item {
        Item::Use(import) if matches!(import.vis, Visibility::Public(_)) => first_segment(&import.tree),
        _ => None,
    };
    if file.items.iter().any(|item| known(item).as_deref() == Some(name)) {
        return Ok(text.to_owned());
    }
    if file.items.iter().any(|item| known(item).is_some()) {
        return Ok(add_item(text, &file, known, name, &format!("pub use {name}::*;")));
    }
    // The first one stands below the modules, an empty line between.
    let after = file
        .items
        .iter()
        .rfind(|item| matches!(item, Item::Mod(_)))
        .map(|item| end_of(text, item));
    let at = after.unwrap_or(text.len());
    Ok(insert(text, at, &format!("\npub use {name}::*;\n")))
}

/// Adds `.controller(call)` to what `register` returns; the same text when it is there.
///
/// # Errors
/// When the file does not parse, or has no such function, or the function ends in something else than its
/// manager and calls on it.
pub fn add_controller(text: &str, call: &str) -> Result<String, String> {
    let file = parse(text)?;
    let register = file.items.iter().find_map(|item| match item {
        Item::Fn(function) if function.sig.ident == "register" => Some(function),
        _ => None,
    });
    let register = register.ok_or("it has no function `register`")?;
    let body = &text[range(register.block.span())];
    let squeezed = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    if squeezed(body).contains(&squeezed(&format!(".controller({call})"))) {
        return Ok(text.to_owned());
    }
    let Some(Stmt::Expr(tail, None)) = register.block.stmts.last() else {
        return Err("`register` does not end in the manager".into());
    };
    let calls = chain(tail).ok_or("`register` does not end in the manager and calls on it")?;
    let whole = range(tail.span());
    let added = format!(".controller({call})");
    let current = &text[whole.clone()];
    let indent = indent_at(text, whole.start);
    let on_one_line = !current.contains('\n') && current.len() + added.len() <= CHAIN_WIDTH;
    if on_one_line {
        return Ok(insert(text, whole.end, &added));
    }
    let mut edited = insert(text, whole.end, &format!("\n{indent}    {added}"));
    if !current.contains('\n') {
        // A chain is broken before each call or before none.
        for call in calls.iter().rev() {
            edited.insert_str(*call, &format!("\n{indent}    "));
        }
    }
    Ok(edited)
}

/// Longest chain that rustfmt leaves on one line.
const CHAIN_WIDTH: usize = 60;

fn parse(text: &str) -> Result<syn::File, String> {
    syn::parse_file(text).map_err(|error| {
        let start = error.span().start();
        format!("it does not parse: {error} at line {}", start.line)
    })
}

/// Where each call of `a.b().c()` begins, at its dot; nothing when the innermost receiver is not a name.
fn chain(expr: &Expr) -> Option<Vec<usize>> {
    match expr {
        Expr::Path(_) => Some(Vec::new()),
        Expr::MethodCall(call) => {
            let mut calls = chain(&call.receiver)?;
            calls.push(call.dot_token.span().byte_range().start);
            Some(calls)
        }
        _ => None,
    }
}

fn add_item(
    text: &str,
    file: &syn::File,
    known: impl Fn(&Item) -> Option<String>,
    name: &str,
    line: &str,
) -> String {
    let mut last = None;
    for item in &file.items {
        let Some(other) = known(item) else { continue };
        match compare(name, &other) {
            Ordering::Equal => return text.to_owned(),
            Ordering::Less => {
                let at = start_of(text, item);
                return insert(text, at, &format!("{line}\n"));
            }
            Ordering::Greater => last = Some(item),
        }
    }
    match (last, file.items.first()) {
        (Some(last), _) => insert(text, end_of(text, last), &format!("{line}\n")),
        (None, Some(first)) => insert(text, start_of(text, first), &format!("{line}\n\n")),
        (None, None) => {
            let gap = if text.trim().is_empty() { "" } else { "\n" };
            insert(text, text.len(), &format!("{gap}{line}\n"))
        }
    }
}

/// As rustfmt orders names: numbers by their value, so that `v2` stands before `v10`.
fn compare(left: &str, right: &str) -> Ordering {
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

fn first_segment(tree: &syn::UseTree) -> Option<String> {
    match tree {
        syn::UseTree::Path(path) if path.ident == "self" => first_segment(&path.tree),
        syn::UseTree::Path(path) => Some(path.ident.to_string()),
        syn::UseTree::Name(name) => Some(name.ident.to_string()),
        _ => None,
    }
}

fn range(span: proc_macro2::Span) -> Range<usize> {
    span.byte_range()
}

/// The start of the line on which an item, its attributes and docs included, begins.
fn start_of(text: &str, item: &Item) -> usize {
    let start = range(item.span()).start;
    text[..start].rfind('\n').map_or(0, |at| at + 1)
}

/// The start of the line after the one on which an item ends.
fn end_of(text: &str, item: &Item) -> usize {
    let end = range(item.span()).end;
    text[end..].find('\n').map_or(text.len(), |at| end + at + 1)
}

fn indent_at(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
    text[line..]
        .chars()
        .take_while(|c| *c == ' ' || *c == '\t')
        .collect()
}

/// Inserts lines, in the file's own line ends.
fn insert(text: &str, at: usize, lines: &str) -> String {
    let gap = if at == text.len() && lines.ends_with('\n') && !text.is_empty() && !text.ends_with('\n') {
        "\n"
    } else {
        ""
    };
    let mut lines = format!("{gap}{lines}");
    if text.contains("\r\n") {
        lines = lines.replace('\n', "\r\n");
    }
    let mut edited = text.to_owned();
    edited.insert_str(at, &lines);
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(edit: impl Fn(&str) -> Result<String, String>, before: &str, after: &str) {
        let edited = edit(before).expect(before);
        assert_eq!(edited, after, "editing\n{before}");
        assert_eq!(edit(&edited).expect(after), after, "editing twice\n{before}");
    }

    #[test]
    fn a_module_stands_among_the_others() {
        let edit = |text: &str| add_module(text, "v2", true);
        check(edit, "//! Docs.\n", "//! Docs.\n\npub mod v2;\n");
        check(edit, "", "pub mod v2;\n");
        check(edit, "//! Docs.", "//! Docs.\n\npub mod v2;\n");
        check(
            edit,
            "pub mod v1;\npub mod v10;\n",
            "pub mod v1;\npub mod v2;\npub mod v10;\n",
        );
        check(
            edit,
            "pub mod v1;\n\n// after\n",
            "pub mod v1;\npub mod v2;\n\n// after\n",
        );
        check(
            edit,
            "/// Third.\npub mod v3;\n",
            "pub mod v2;\n/// Third.\npub mod v3;\n",
        );
        check(
            edit,
            "//! Docs.\n\nuse a::b;\n\nfn f() {}\n",
            "//! Docs.\n\npub mod v2;\n\nuse a::b;\n\nfn f() {}\n",
        );
        check(edit, "mod v2 {}\n", "mod v2 {}\n");
        check(
            edit,
            "pub mod v1; // old\r\n",
            "pub mod v1; // old\r\npub mod v2;\r\n",
        );
    }

    #[test]
    fn a_reexport_stands_among_the_others() {
        let edit = |text: &str| add_reexport(text, "mug");
        check(edit, "mod mug;\n", "mod mug;\n\npub use mug::*;\n");
        check(
            edit,
            "mod cup;\nmod mug;\n\npub use cup::*;\n",
            "mod cup;\nmod mug;\n\npub use cup::*;\npub use mug::*;\n",
        );
        check(
            edit,
            "mod mug;\npub use self::mug::Mug;\n",
            "mod mug;\npub use self::mug::Mug;\n",
        );
    }

    #[test]
    fn a_controller_is_registered() {
        let edit = |text: &str| add_controller(text, "mug::controller()");
        check(
            edit,
            "pub fn register(manager: Manager) -> Manager {\n    manager\n}\n",
            "pub fn register(manager: Manager) -> Manager {\n    manager.controller(mug::controller())\n}\n",
        );
        check(
            edit,
            "fn register(m: Manager) -> Manager {\n    m.controller(a_kind_with_a_name::controller())\n}\n",
            "fn register(m: Manager) -> Manager {\n    m\n        .controller(a_kind_with_a_name::controller())\n        .controller(mug::controller())\n}\n",
        );
        check(
            edit,
            "fn register(m: Manager) -> Manager {\n    let m = other(m);\n    m\n        // The first.\n        .controller(a::controller())\n}\n",
            "fn register(m: Manager) -> Manager {\n    let m = other(m);\n    m\n        // The first.\n        .controller(a::controller())\n        .controller(mug::controller())\n}\n",
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "fn register( {",
            "fn start() {}",
            "fn register(m: M) -> M { return m; }",
            "fn register(m: M) -> M { if a { m } else { m } }",
        ] {
            assert!(add_controller(text, "mug::controller()").is_err(), "{text}");
        }
    }
}
