//! Removes the lines that the additions inserted, and nothing else. If they were changed since, we
//! report an obstacle with the lines to remove by hand.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::TokenTree;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, ExprMethodCall, Item, ItemFn, Stmt, UseTree, Visibility};

use super::calls::{Imports, TypeNames, find_calls, find_functions, has_ident, strip_raw_prefix};
use super::registration::Chain;
use super::source::{Source, byte_range};
use super::{CHAIN_WIDTH, MAX_WIDTH};
use crate::edit::Obstacle;
use crate::line_ends;

const BY_HAND: &str = "remove these lines";

/// Removes `mod name;`. No-op if there is none.
///
/// # Errors
/// Fails if the file does not parse, or if the item has attributes or comments of its own.
pub fn remove_module(text: &str, name: &str) -> Result<String, Obstacle> {
    remove_modules(text, &[name]).map_err(|(_, obstacle)| obstacle)
}

/// Removes several modules like [`remove_module`], but parses the file only once.
///
/// # Errors
/// Fails with the first module that cannot be removed, and the reason.
pub fn remove_modules<'n>(text: &str, names: &[&'n str]) -> Result<String, (&'n str, Obstacle)> {
    let Some(first) = names.first() else {
        return Ok(text.to_owned());
    };
    let source = Source::parse(text).map_err(|reason| (*first, reason.into()))?;
    let mut left: BTreeMap<String, &str> = names.iter().map(|name| (strip_raw_prefix(name), *name)).collect();
    let mut found = Vec::new();
    for item in &source.file.items {
        let Item::Mod(module) = item else { continue };
        let Some(name) = left.remove(&strip_raw_prefix(&module.ident.to_string())) else {
            continue;
        };
        if !module.attrs.is_empty() || module.content.is_some() {
            let reason = format!("`mod {name}` has attributes, comments or a body");
            return Err((
                name,
                Obstacle::new(reason).with_lines(BY_HAND, format!("mod {name};")),
            ));
        }
        found.push((name, byte_range(item.span())));
    }
    let mut edited = text.to_owned();
    // From the end, because a cut moves what is below it.
    for (name, range) in found.into_iter().rev() {
        edited = cut_line(&edited, range).ok_or_else(|| {
            let obstacle = Obstacle::new(format!("`mod {name};` is not on a line of its own"));
            (name, obstacle.with_lines(BY_HAND, format!("mod {name};")))
        })?;
    }
    Ok(edited)
}

/// Removes `pub use path::names;`. No-op if there is none. `names` is `*` or a single name.
///
/// # Errors
/// Fails if the file does not parse, or if it re-exports the names of the module in a different
/// form.
pub fn remove_reexport(text: &str, path: &str, names: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let name = path.trim_start_matches("self::");
    // How a token stream prints paths.
    let wanted = [format!("{name} :: {names}"), format!("self :: {name} :: {names}")];
    for item in &source.file.items {
        let Item::Use(import) = item else { continue };
        if !matches!(import.vis, Visibility::Public(_)) || !has_ident(&import.tree.to_token_stream(), name) {
            continue;
        }
        let tree = import.tree.to_token_stream().to_string();
        let line = cut_line(text, byte_range(item.span()));
        return match line {
            Some(edited) if wanted.contains(&tree) && import.attrs.is_empty() => Ok(edited),
            _ => {
                let lines = text[byte_range(item.span())].to_owned();
                Err(
                    Obstacle::new(format!("it exports `{name}` in an unrecognized form"))
                        .with_lines(BY_HAND, lines),
                )
            }
        };
    }
    Ok(text.to_owned())
}

/// Removes `.controller(call)` (or another method) from the return value of `register`. No-op if
/// there is none.
///
/// # Errors
/// Fails if the file does not parse, or if it calls the function elsewhere.
pub fn remove_registration(text: &str, method: &str, call: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let imports = Imports::of(&source.file);
    let called = call.split_once('(').map_or(call, |(path, _)| path);
    let mut wanted = vec![method.to_owned()];
    wanted.extend(called.split("::").map(strip_raw_prefix));
    let is_call = |expr: &Expr| match expr {
        Expr::Call(inner) => match &*inner.func {
            Expr::Path(path) => {
                let names = path.path.segments.iter().map(|part| part.ident.to_string());
                imports.absolute(&names.collect::<Vec<_>>(), &[method]) == wanted
            }
            _ => false,
        },
        _ => false,
    };
    for register in find_functions(&source.file, "register") {
        let is_wanted = |link: &ExprMethodCall| {
            link.method == method && link.args.len() == 1 && link.args.iter().all(is_call)
        };
        if let Some(edited) = remove_link(text, register, is_wanted) {
            return Ok(join_chain(&edited, "register").unwrap_or(edited));
        }
    }
    if source.file.items.iter().any(|item| mentions_path(item, called)) {
        let line = format!(".{method}({call})");
        return Err(
            Obstacle::new(format!("it uses `{called}` in an unrecognized form")).with_lines(BY_HAND, line),
        );
    }
    Ok(text.to_owned())
}

/// Removes `.spoke::<spoke>()` from the return value of `webhook`. No-op if there is none. `spoke`
/// is an absolute path, such as `crate::api::v2::CronJob`, and `module` is the path of the file's
/// module.
///
/// # Errors
/// Fails if the file does not parse, or if it names the spoke elsewhere.
pub fn remove_spoke(text: &str, spoke: &str, module: &[&str]) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let types = TypeNames::new(&source.file, module);
    let is_spoke = |link: &ExprMethodCall| {
        link.method == "spoke"
            && link.turbofish.as_ref().is_some_and(|generics| {
                let tokens: Vec<TokenTree> = generics.args.to_token_stream().into_iter().collect();
                types.is_named(&tokens, spoke)
            })
    };
    for webhook in find_functions(&source.file, "webhook") {
        if let Some(edited) = remove_link(text, webhook, is_spoke) {
            return Ok(join_chain(&edited, "webhook").unwrap_or(edited));
        }
    }
    let calls = find_calls(&source.file.to_token_stream());
    if calls.iter().any(|call| types.is_spoke(call, spoke)) {
        let line = format!(".spoke::<{spoke}>()");
        return Err(
            Obstacle::new(format!("it converts `{spoke}` in an unrecognized form")).with_lines(BY_HAND, line),
        );
    }
    Ok(text.to_owned())
}

fn remove_link(text: &str, function: &ItemFn, is_wanted: impl Fn(&ExprMethodCall) -> bool) -> Option<String> {
    let Some(Stmt::Expr(tail, None)) = function.block.stmts.last() else {
        return None;
    };
    let mut expr = tail;
    while let Expr::MethodCall(link) = expr {
        if is_wanted(link) {
            let dot = byte_range(link.dot_token.span()).start;
            return Some(cut(
                text,
                whole_line_before(text, dot)..byte_range(link.span()).end,
            ));
        }
        expr = &link.receiver;
    }
    None
}

/// Removes a function, its attributes and its documentation. No-op if there is none.
///
/// # Errors
/// Fails if the file does not parse, or if the function shares a line with other code.
pub fn remove_function(text: &str, name: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let Some(function) = find_function(&source.file, name) else {
        return Ok(text.to_owned());
    };
    let range = byte_range(function.span());
    let lines = text[range.clone()].to_owned();
    cut_line(text, range).ok_or_else(|| {
        Obstacle::new(format!("`{name}` is not on lines of its own")).with_lines(BY_HAND, lines)
    })
}

/// Tokens of a function with its attributes and documentation. `None` if the function is missing or
/// `text` is not Rust.
pub fn function_tokens(text: &str, name: &str) -> Option<String> {
    let source = Source::parse(text).ok()?;
    find_function(&source.file, name).map(|function| function.to_token_stream().to_string())
}

fn find_function<'f>(file: &'f syn::File, name: &str) -> Option<&'f ItemFn> {
    file.items.iter().find_map(|item| match item {
        Item::Fn(function) if function.sig.ident == name => Some(function),
        _ => None,
    })
}

/// Removes the call to `webhook::register` from `main`, and its import.
///
/// # Errors
/// Fails if the file does not parse, or if it calls the function in a different form.
pub fn unregister_webhooks(text: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let imports = Imports::of(&source.file);
    let is_register = |expr: &Expr| match expr {
        Expr::Call(call) if call.args.len() == 1 => match &*call.func {
            Expr::Path(path) => {
                let names = path.path.segments.iter().map(|part| part.ident.to_string());
                let names = imports.absolute(&names.collect::<Vec<_>>(), &[]);
                names.ends_with(&["webhook".to_owned(), "register".to_owned()])
            }
            _ => false,
        },
        _ => false,
    };
    let functions = source.file.items.iter().filter_map(|item| match item {
        Item::Fn(function) => Some(function),
        _ => None,
    });
    let statement = functions.flat_map(|function: &ItemFn| &function.block.stmts).find(|statement| {
        matches!(statement, Stmt::Local(local) if local.init.as_ref().is_some_and(|init| is_register(&init.expr)))
    });
    let lines = "let manager = webhook::register(manager);";
    let unusual =
        || Obstacle::new("it calls `webhook::register` in an unrecognized form").with_lines(BY_HAND, lines);
    let edited = match statement {
        Some(statement) => cut_line(text, byte_range(statement.span())).ok_or_else(unusual)?,
        None if mentions(&source.file, "webhook") => return Err(unusual()),
        None => text.to_owned(),
    };
    remove_import(&edited, "webhook")
}

fn remove_import(text: &str, name: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    if mentions(&source.file, name) {
        return Ok(text.to_owned());
    }
    for item in &source.file.items {
        let Item::Use(import) = item else { continue };
        if !has_ident(&import.tree.to_token_stream(), name) {
            continue;
        }
        let Some(group) = group_with(&import.tree, name) else {
            return cut_line(text, byte_range(item.span())).ok_or_else(|| {
                Obstacle::new("an import is not on a line of its own")
                    .with_lines(BY_HAND, format!("use …::{name};"))
            });
        };
        let names: Vec<Range<usize>> = group.items.iter().map(|tree| byte_range(tree.span())).collect();
        let at = group
            .items
            .iter()
            .position(|tree| is_name(tree, name))
            .unwrap_or_default();
        // A single remaining name needs no braces.
        let other = (names.len() == 2).then(|| &group.items[1 - at]);
        if let Some(other @ UseTree::Name(_)) = other {
            let braces = byte_range(group.brace_token.span.open()).start
                ..byte_range(group.brace_token.span.close()).end;
            let mut edited = text.to_owned();
            edited.replace_range(braces, &text[byte_range(other.span())]);
            return Ok(edited);
        }
        let range = match names.get(at + 1) {
            Some(next) => names[at].start..next.start,
            None if at > 0 => names[at - 1].end..names[at].end,
            None => names[at].clone(),
        };
        return Ok(cut(text, range));
    }
    Ok(text.to_owned())
}

/// Removes `#[crd(conversion)]` from the type that defines a kind.
///
/// # Errors
/// Fails if the file does not parse, or if the attribute has arguments.
pub fn remove_conversion(text: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    for item in &source.file.items {
        let Item::Struct(item) = item else { continue };
        for attribute in item
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("crd"))
        {
            let tokens = attribute.meta.to_token_stream();
            if !has_ident(&tokens, "conversion") {
                continue;
            }
            let lines = "#[crd(conversion)]";
            let stop =
                || Obstacle::new("`#[crd(conversion)]` has an unrecognized form").with_lines(BY_HAND, lines);
            if tokens.to_string() != "crd (conversion)" {
                return Err(stop());
            }
            return cut_line(text, byte_range(attribute.span())).ok_or_else(stop);
        }
    }
    Ok(text.to_owned())
}

/// Whether a file contains no items, and no comments except for a scaffolded module's header.
pub fn is_bare_module(text: &str, header: &str) -> bool {
    let Ok(source) = Source::parse(text) else {
        return false;
    };
    let text = line_ends::unify(text);
    let body = text.strip_prefix(header).unwrap_or(&text);
    let is_heading = |line: &str| line.is_empty() || line.starts_with("//!");
    source.file.items.is_empty() && body.lines().all(|line| is_heading(line.trim()))
}

/// Whether an edit only removed text, ignoring whitespace.
pub fn has_only_lost(before: &str, after: &str) -> bool {
    let mut left = before.chars();
    after
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .all(|letter| left.any(|other| other == letter))
}

fn is_name(tree: &UseTree, name: &str) -> bool {
    matches!(tree, UseTree::Name(only) if only.ident == name)
}

fn group_with<'t>(tree: &'t UseTree, name: &str) -> Option<&'t syn::UseGroup> {
    match tree {
        UseTree::Path(path) => group_with(&path.tree, name),
        UseTree::Group(group) if group.items.iter().any(|tree| is_name(tree, name)) => Some(group),
        UseTree::Group(group) => group.items.iter().find_map(|tree| group_with(tree, name)),
        _ => None,
    }
}

/// Whether a file uses a module of the package, e.g. `api::v1`. False if the file doesn't parse.
pub fn uses_module(text: &str, module: &str) -> bool {
    let Ok(source) = Source::parse(text) else {
        return false;
    };
    let path = format!("crate::{module}");
    // Token streams print paths with spaces around `::`.
    let spaced = format!("{} ::", path.split("::").collect::<Vec<_>>().join(" :: "));
    source.file.items.iter().any(|item| match item {
        Item::Use(import) => has_import_of(&import.tree, &path),
        item => item.to_token_stream().to_string().contains(&spaced),
    })
}

fn has_import_of(tree: &UseTree, path: &str) -> bool {
    let (first, rest) = path
        .split_once("::")
        .map_or((path, None), |(first, rest)| (first, Some(rest)));
    match tree {
        UseTree::Path(step) if step.ident == first => rest.is_none_or(|rest| has_import_of(&step.tree, rest)),
        UseTree::Name(name) => name.ident == first && rest.is_none(),
        UseTree::Rename(name) => name.ident == first && rest.is_none(),
        UseTree::Group(group) => group.items.iter().any(|tree| has_import_of(tree, path)),
        // Glob imports aren't resolved.
        UseTree::Path(_) | UseTree::Glob(_) => false,
    }
}

fn mentions(file: &syn::File, name: &str) -> bool {
    let mut items = file.items.iter().filter(|item| !matches!(item, Item::Use(_)));
    items.any(|item| has_ident(&item.to_token_stream(), name))
}

/// Whether an item contains a path that ends with `path`.
fn mentions_path(item: &Item, path: &str) -> bool {
    let tokens = item.to_token_stream().to_string();
    tokens.contains(&path.split("::").collect::<Vec<_>>().join(" :: "))
}

fn cut(text: &str, range: Range<usize>) -> String {
    let mut edited = text.to_owned();
    edited.replace_range(range, "");
    edited
}

/// Moves back to the end of the previous line if only whitespace precedes `at` on its line.
fn whole_line_before(text: &str, at: usize) -> usize {
    match text[..at].rfind('\n') {
        Some(end) if text[end..at].trim().is_empty() => {
            if text[..end].ends_with('\r') {
                end - 1
            } else {
                end
            }
        }
        _ => at,
    }
}

/// Removes a range that spans whole lines, and one of the two empty lines around it. Returns `None`
/// if other text shares its lines.
fn cut_line(text: &str, range: Range<usize>) -> Option<String> {
    let start = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let mut end = text[range.end..]
        .find('\n')
        .map_or(text.len(), |at| range.end + at + 1);
    if !text[start..range.start].trim().is_empty() || !text[range.end..end].trim().is_empty() {
        return None;
    }
    let is_blank_before = text[..start]
        .lines()
        .next_back()
        .is_none_or(|line| line.trim().is_empty());
    let next = text[end..].split_inclusive('\n').next();
    let mut from = start;
    match next {
        Some(line) if is_blank_before && line.trim().is_empty() => end += line.len(),
        None if is_blank_before && start > 0 => {
            // At the end of the file, remove the empty line above instead.
            from = text[..start].trim_end().len();
            from += text[from..].find('\n').map_or(0, |at| at + 1);
        }
        _ => {}
    }
    Some(cut(text, from..end))
}

/// Joins a function's trailing method chain if rustfmt would put it on one line. Returns `None` if
/// nothing changes.
fn join_chain(text: &str, function: &str) -> Option<String> {
    let source = Source::parse(text).ok()?;
    for function in find_functions(&source.file, function) {
        let Some(Stmt::Expr(tail, None)) = function.block.stmts.last() else {
            continue;
        };
        let (range, chain) = (byte_range(tail.span()), Chain::of(tail)?);
        let current = &text[range.clone()];
        if !current.contains('\n') || current.contains("//") || current.contains("/*") {
            continue;
        }
        let lines: Vec<&str> = current.lines().map(str::trim).collect();
        let joined = lines.concat();
        let is_chain = lines[1..].iter().all(|line| line.starts_with('.'));
        let limit = if chain.calls() > 1 {
            CHAIN_WIDTH
        } else {
            MAX_WIDTH.saturating_sub(source.indent_at(range.start).len())
        };
        if is_chain && joined.len() <= limit {
            let mut edited = text.to_owned();
            edited.replace_range(range, &joined);
            return Some(edited);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{add_conversion, add_module, add_reexport, add_registration, register_webhooks};
    use super::*;

    #[track_caller]
    fn check(
        before: &str,
        add: impl Fn(&str) -> Result<String, Obstacle>,
        remove: impl Fn(&str) -> Result<String, Obstacle>,
    ) {
        let added = add(before).expect(before);
        assert_ne!(added, before);
        let removed = remove(&added).expect(&added);
        assert_eq!(removed, before, "from\n{added}");
        assert!(has_only_lost(&added, &removed));
        assert_eq!(remove(&removed).expect(before), before, "twice");
    }

    #[test]
    fn removes_added_module() {
        for before in [
            "//! Head.\n",
            "//! Head.\n\nuse a::b;\n",
            "pub mod a;\npub mod z;\n\nuse a::b;\n",
            "mod a;\n\npub use a::*;\n",
            "//! Head.\r\n\r\npub mod a;\r\n",
        ] {
            check(
                before,
                |text| add_module(text, "m", true),
                |text| remove_module(text, "m"),
            );
        }
        for text in ["#[cfg(x)]\nmod m;\n", "mod m { fn a() {} }\n", "mod a; mod m;\n"] {
            assert!(remove_module(text, "m").is_err(), "{text}");
        }
    }

    #[test]
    fn removes_added_reexport() {
        for before in ["mod a;\n", "mod a;\n\npub use a::*;\n", "mod m;\n"] {
            check(
                before,
                |text| add_reexport(text, "m", "*"),
                |text| remove_reexport(text, "m", "*"),
            );
            check(
                before,
                |text| add_reexport(text, "self::m", "*"),
                |text| remove_reexport(text, "self::m", "*"),
            );
        }
        assert!(remove_reexport("mod m;\npub use m::{A, B};\n", "m", "*").is_err());
    }

    #[test]
    fn removes_added_registration() {
        let register =
            |body: &str| format!("pub fn register(manager: Manager) -> Manager {{\n    {body}\n}}\n");
        for body in [
            "manager",
            "manager.controller(cup::controller())",
            "manager\n        .controller(cup::controller())\n        .controller(saucer::controller())",
            "manager\n        .controller(cup::controller()) // the first\n        .task(sweep())",
            "let manager = manager.task(sweep());\n    manager",
            "manager.controller(a_group_with_a_long_name::a_kind_with_a_long_name::controller())",
        ] {
            check(
                &register(body),
                |text| add_registration(text, "controller", "memcached::controller()"),
                |text| remove_registration(text, "controller", "memcached::controller()"),
            );
        }
        let own = register("let manager = manager.controller(memcached::controller());\n    manager");
        assert!(remove_registration(&own, "controller", "memcached::controller()").is_err());
    }

    #[test]
    fn removes_registration_of_webhooks() {
        let main = |import: &str| {
            format!(
                "use {import};\n\n#[tokio::main]\nasync fn main() -> Result<()> {{\n    let manager = Manager::new().await?;\n    controller::register(manager).start().await\n}}\n"
            )
        };
        for import in ["shop::controller", "shop::{clock, controller}"] {
            check(&main(import), register_webhooks, unregister_webhooks);
        }
    }

    #[test]
    fn removes_added_spoke() {
        let module = ["webhook", "v2", "cup"];
        let webhook = |body: &str| {
            format!(
                "use rbuilder::Webhook;\n\nuse crate::api::v2::Cup;\n\npub fn webhook() -> Webhook<Cup> {{\n    {body}\n}}\n"
            )
        };
        let add = |text: &str| {
            let wanted = super::super::Handlers {
                scaffold: "",
                kind: "Cup",
                variable: "cup",
                module: &module,
                defaulting: false,
                validation: false,
                spokes: &["crate::api::v1::Cup".to_owned()],
            };
            super::super::add_handlers(text, &wanted)
        };
        let remove = |text: &str| remove_spoke(text, "crate::api::v1::Cup", &module);
        for body in [
            "Webhook::new()",
            "Webhook::new().validator(validate)",
            "Webhook::new()\n        .defaulter(default)\n        .spoke::<crate::api::v3::Cup>()",
        ] {
            check(&webhook(body), add, remove);
        }
        // The removed spoke is named by an import or an alias, next to spokes that stay.
        for (lines, name) in [
            ("use crate::api::v1;\n", "v1::Cup"),
            ("use crate::api::v1::Cup as Old;\n", "Old"),
            ("type Old = super::super::super::api::v1::Cup;\n", "Old"),
        ] {
            let lines = format!("{lines}{}", webhook("Webhook::new().SPOKE.spoke::<v3::Cup>()"));
            let text = lines.replace("SPOKE", &format!("spoke::<{name}>()"));
            assert_eq!(remove(&text).expect(&text), lines.replace(".SPOKE", ""));
        }
        let other = webhook("let webhook = Webhook::new().spoke::<crate::api::v1::Cup>();\n    webhook");
        assert!(remove(&other).is_err());
    }

    #[test]
    fn removes_function_with_its_documentation() {
        let test = "/// Converting must not change it.\n#[test]\nfn t() {\n    assert!(true);\n}\n";
        for (before, after, expected) in [
            ("use a::b;\n\n", "", "use a::b;\n"),
            ("", "\nfn u() {}\n", "fn u() {}\n"),
            ("fn s() {}\n\n", "\nfn u() {}\n", "fn s() {}\n\nfn u() {}\n"),
        ] {
            let text = format!("{before}{test}{after}");
            assert_eq!(remove_function(&text, "t").expect(&text), expected);
            assert_eq!(remove_function(expected, "t").expect(expected), expected);
        }
        assert!(remove_function("fn s() {} fn t() {}\n", "t").is_err());
        let same = test.replace("    ", "\t");
        assert_eq!(function_tokens(test, "t"), function_tokens(&same, "t"));
        let other = test.replace("true", "false");
        assert_ne!(function_tokens(test, "t"), function_tokens(&other, "t"));
    }

    #[test]
    fn removes_added_conversion() {
        let before = "#[derive(CustomResource)]\n#[kube(kind = \"Cup\", version = \"v1\")]\n#[serde(default)]\npub struct CupSpec {}\n";
        check(before, |text| add_conversion(text, "Cup"), remove_conversion);
        let own = before.replace("#[serde", "#[crd(conversion(path = \"/x\"))]\n#[serde");
        assert!(remove_conversion(&own).is_err());
    }

    #[test]
    fn finds_uses_of_a_module() {
        for (text, expected) in [
            ("use crate::api::v1::Cup;", true),
            ("use crate::api::{v1::{Cup, CupStatus}, v2};", true),
            ("use crate::{api::v1 as old, controller};", true),
            ("use crate::api::v1;", true),
            ("fn f(cup: &crate::api::v1::Cup) {}", true),
            ("use crate::api::v1alpha1::Cup;", false),
            ("fn f(cup: &crate::api::v1alpha1::Cup) {}", false),
            (
                "use k8s_openapi::api::core::v1::Pod; // crate::api::v1::Cup",
                false,
            ),
            ("use crate::api::v2::Cup;", false),
            ("use crate::api::v1::Cup", false),
        ] {
            assert_eq!(uses_module(text, "api::v1"), expected, "{text}");
        }
    }

    #[test]
    fn module_with_only_its_header_is_bare() {
        assert!(is_bare_module("// Owner\n\n//! Head.\n", "// Owner\n\n"));
        for text in ["//! Head.\n\nmod a;\n", "//! Head.\n\n// Mine.\n"] {
            assert!(!is_bare_module(text, ""), "{text}");
        }
    }
}
