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

/// Adds `.controller(call)`, or another method's call, to what `register` returns; the same text when it is there.
///
/// # Errors
/// When the file does not parse, or has no such function, or the function ends in something else than its
/// manager and calls on it.
pub fn add_registration(text: &str, method: &str, call: &str) -> Result<String, String> {
    let file = parse(text)?;
    let register = file.items.iter().find_map(|item| match item {
        Item::Fn(function) if function.sig.ident == "register" => Some(function),
        _ => None,
    });
    let register = register.ok_or("it has no function `register`")?;
    let body = &text[range(register.block.span())];
    let squeezed = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    if squeezed(body).contains(&squeezed(&format!(".{method}({call})"))) {
        return Ok(text.to_owned());
    }
    let Some(Stmt::Expr(tail, None)) = register.block.stmts.last() else {
        return Err("`register` does not end in the manager".into());
    };
    let calls = chain(tail).ok_or("`register` does not end in the manager and calls on it")?;
    let whole = range(tail.span());
    let added = format!(".{method}({call})");
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

/// Hands the manager of `main` to `webhook::register` before it goes to `controller::register`; the same text when it
/// does so already.
///
/// # Errors
/// When the file does not parse, imports `controller` in an unknown way, or does not call its `register` once, with a
/// variable.
pub fn register_webhooks(text: &str) -> Result<String, String> {
    let file = parse(text)?;
    let imports = file.items.iter().find_map(|item| match item {
        Item::Use(import) => imported_beside(&import.tree, "controller"),
        _ => None,
    });
    let imports = imports.ok_or("it does not import `controller` by name")?;
    let (at, manager) =
        find_registration(text).ok_or("it does not call `controller::register(manager)` once")?;
    let mut edited = text.to_owned();
    // From the end to the start, so that places stay true.
    if !text.contains("webhook::register(") {
        let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
        let indent = indent_at(text, at);
        edited = insert(
            text,
            line,
            &format!("{indent}let {manager} = webhook::register({manager});\n"),
        );
    }
    match imports {
        Beside::Alone(name) => edited.replace_range(name, "{controller, webhook}"),
        Beside::Group(_, true) => {}
        Beside::Group(name, false) => edited.insert_str(name.end, ", webhook"),
    }
    // A call in a comment or in the midst of a longer statement would have misled the search.
    parse(&edited)?;
    Ok(edited)
}

/// Where `controller::register(…)` is called, and with which variable; nothing when it is called otherwise.
fn find_registration(text: &str) -> Option<(usize, &str)> {
    const CALL: &str = "controller::register(";
    let mut places = text.match_indices(CALL);
    let (at, _) = places.next()?;
    if places.next().is_some() {
        return None;
    }
    let (manager, _) = text[at + CALL.len()..].split_once(')')?;
    syn::parse_str::<syn::Ident>(manager).ok()?;
    Some((at, manager))
}

/// How a name is imported.
enum Beside {
    /// At the end of a path: the name.
    Alone(Range<usize>),
    /// In braces: the name, and whether `webhook` is there too.
    Group(Range<usize>, bool),
}

fn imported_beside(tree: &syn::UseTree, name: &str) -> Option<Beside> {
    match tree {
        syn::UseTree::Path(path) => match &*path.tree {
            syn::UseTree::Name(last) if last.ident == name => Some(Beside::Alone(range(last.span()))),
            inner => imported_beside(inner, name),
        },
        syn::UseTree::Group(group) => {
            let named = |tree: &syn::UseTree, wanted: &str| match tree {
                syn::UseTree::Name(name) if name.ident == wanted => Some(range(name.span())),
                _ => None,
            };
            let has_webhook = group.items.iter().any(|tree| named(tree, "webhook").is_some());
            let found = group.items.iter().find_map(|tree| named(tree, name))?;
            Some(Beside::Group(found, has_webhook))
        }
        _ => None,
    }
}

/// Adds `#[crd(conversion)]` to the type that a kind is made of; the same text when it says something of a conversion.
///
/// # Errors
/// When the file does not parse, or holds no type of this name.
pub fn add_conversion(text: &str, spec: &str) -> Result<String, String> {
    let file = parse(text)?;
    let found = file.items.iter().find_map(|item| match item {
        Item::Struct(kind) if kind.ident == spec => Some(kind),
        _ => None,
    });
    let kind = found.ok_or_else(|| format!("it has no struct `{spec}`"))?;
    let says = |attribute: &syn::Attribute| {
        attribute.path().is_ident("crd") && text[range(attribute.span())].contains("conversion")
    };
    if kind.attrs.iter().any(says) {
        return Ok(text.to_owned());
    }
    let last = kind
        .attrs
        .iter()
        .rfind(|attribute| attribute.path().is_ident("kube"));
    let last = last.ok_or_else(|| format!("`{spec}` has no attribute `#[kube(…)]`"))?;
    let end = range(last.span()).end;
    let at = text[end..].find('\n').map_or(text.len(), |line| end + line + 1);
    Ok(insert(text, at, "#[crd(conversion)]\n"))
}

/// Longest chain that rustfmt leaves on one line.
const CHAIN_WIDTH: usize = 60;

/// Parses a file.
///
/// # Errors
/// Says what does not parse, and the line.
pub(super) fn parse(text: &str) -> Result<syn::File, String> {
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
        let edit = |text: &str| add_registration(text, "controller", "mug::controller()");
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
    fn webhooks_are_registered_beside_controllers() {
        let main = |import: &str, calls: &str| {
            format!("use {import};\n\nfn main() {{\n    let m = f();\n{calls}}}\n")
        };
        let controllers = "    controller::register(m).start()\n";
        let both = "    let m = webhook::register(m);\n    controller::register(m).start()\n";
        check(
            register_webhooks,
            &main("shop::controller", controllers),
            &main("shop::{controller, webhook}", both),
        );
        check(
            register_webhooks,
            &main("shop::{api, controller}", controllers),
            &main("shop::{api, controller, webhook}", both),
        );
        for text in [
            main("shop::controller", "    other(m)\n"),
            main("shop::*", controllers),
            main("shop::controller", "    controller::register(f(m))\n"),
            main("shop::controller", &format!("{controllers}{controllers}")),
        ] {
            assert!(register_webhooks(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_conversion_is_written_on_the_kind() {
        let edit = |text: &str| add_conversion(text, "MugSpec");
        let before = "/// A mug.\n#[derive(CustomResource)]\n#[kube(\n    kind = \"Mug\"\n)]\n#[serde(x)]\nstruct MugSpec {}\n";
        let after = before.replace(")]\n#[serde", ")]\n#[crd(conversion)]\n#[serde");
        check(edit, before, &after);
        let own = "#[kube()]\n#[crd(conversion(path = \"/c\"))]\nstruct MugSpec {}\n";
        check(edit, own, own);
        assert!(edit("struct CupSpec {}").is_err());
        assert!(edit("struct MugSpec {}").is_err());
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "fn register( {",
            "fn start() {}",
            "fn register(m: M) -> M { return m; }",
            "fn register(m: M) -> M { if a { m } else { m } }",
        ] {
            assert!(
                add_registration(text, "controller", "mug::controller()").is_err(),
                "{text}"
            );
        }
    }
}
