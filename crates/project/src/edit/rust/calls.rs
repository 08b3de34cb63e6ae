//! Finds calls in a Rust file by its tokens, so that comments, strings and formatting don't matter.
//! Macro arguments are treated as code.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Item, ItemFn, UseTree};

pub(super) struct Call {
    pub(super) path: Vec<String>,
    pub(super) is_method: bool,
    /// Tokens between the `::<` and `>` at the end of the path.
    pub(super) generics: Vec<TokenTree>,
    pub(super) arguments: Group,
    pub(super) start: usize,
}

impl Call {
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    pub(super) fn variable(&self) -> Option<String> {
        let arguments: Vec<TokenTree> = self.arguments.stream().into_iter().collect();
        match arguments.as_slice() {
            [TokenTree::Ident(name)] => Some(name.to_string()),
            _ => None,
        }
    }
}

pub(super) fn find_calls(tokens: &TokenStream) -> Vec<Call> {
    let mut calls = Vec::new();
    for level in levels(tokens) {
        for (at, token) in level.iter().enumerate() {
            if let TokenTree::Group(group) = token
                && group.delimiter() == Delimiter::Parenthesis
                && let Some(call) = call_before(&level[..at], group)
            {
                calls.push(call);
            }
        }
    }
    // `levels` doesn't return groups in source order.
    calls.sort_by_key(|call| call.start);
    calls
}

fn call_before(tokens: &[TokenTree], arguments: &Group) -> Option<Call> {
    let (mut rest, generics) = without_generics(tokens)?;
    let mut path = Vec::new();
    let mut start = 0;
    while let Some((TokenTree::Ident(name), before)) = rest.split_last() {
        path.insert(0, strip_raw_prefix(&name.to_string()));
        start = name.span().byte_range().start;
        rest = before;
        match before {
            [outer @ .., TokenTree::Punct(first), TokenTree::Punct(second)]
                if first.as_char() == ':' && second.as_char() == ':' =>
            {
                rest = without_generics(outer)?.0;
            }
            _ => break,
        }
    }
    // `fn name(…)` is a declaration, not a call.
    if path.is_empty() || matches!(rest.last(), Some(TokenTree::Ident(word)) if word == "fn") {
        return None;
    }
    let is_method = matches!(rest.last(), Some(TokenTree::Punct(dot)) if dot.as_char() == '.');
    Some(Call {
        path,
        is_method,
        generics,
        arguments: arguments.clone(),
        start,
    })
}

/// Splits a trailing `::<…>` off the tokens. Returns `None` if the last `>` doesn't close a generic
/// argument list.
fn without_generics(tokens: &[TokenTree]) -> Option<(&[TokenTree], Vec<TokenTree>)> {
    let is = |at: usize, wanted: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
    // The `>` of an arrow doesn't count, e.g. in `::<fn() -> T>`.
    let is_arrow = |at: usize| is(at, '>') && at > 0 && is(at - 1, '-');
    let last = tokens.len().checked_sub(1);
    let Some(last) = last.filter(|last| is(*last, '>') && !is_arrow(*last)) else {
        return Some((tokens, Vec::new()));
    };
    let mut depth = 0_usize;
    for at in (0..=last).rev() {
        if is(at, '>') && !is_arrow(at) {
            depth += 1;
        } else if is(at, '<') {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                let colons = at >= 2 && is(at - 1, ':') && is(at - 2, ':');
                return colons.then(|| (&tokens[..at - 2], tokens[at + 1..last].to_vec()));
            }
        }
    }
    None
}

/// Returns the tokens of the stream and of each nested group, without attributes.
fn levels(tokens: &TokenStream) -> Vec<Vec<TokenTree>> {
    let mut levels = Vec::new();
    let mut open = vec![tokens.clone()];
    while let Some(stream) = open.pop() {
        let mut level: Vec<TokenTree> = Vec::new();
        for token in stream {
            if let TokenTree::Group(group) = &token {
                if group.delimiter() == Delimiter::Bracket && ends_in_hash(&level) {
                    continue;
                }
                open.push(group.stream());
            }
            level.push(token);
        }
        levels.push(level);
    }
    levels
}

fn ends_in_hash(tokens: &[TokenTree]) -> bool {
    let is = |token: Option<&TokenTree>, wanted: char| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
    let mut back = tokens.iter().rev();
    match back.next() {
        last if is(last, '#') => true,
        last => is(last, '!') && is(back.next(), '#'),
    }
}

/// Finds the variables bound by `let`, with the calls in their values.
pub(super) fn find_variables(tokens: &TokenStream) -> Vec<(String, Vec<Call>)> {
    let mut variables = Vec::new();
    for level in levels(tokens) {
        let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';');
        for statement in level.split(is_end) {
            let is_let = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "let");
            let Some(start) = statement.iter().rposition(is_let) else {
                continue;
            };
            let mut pattern = statement[start + 1..].iter();
            let mut name = pattern.next();
            if matches!(name, Some(TokenTree::Ident(word)) if word == "mut") {
                name = pattern.next();
            }
            let Some(TokenTree::Ident(name)) = name else {
                continue;
            };
            let value: TokenStream = statement[start..].iter().cloned().collect();
            variables.push((name.to_string(), find_calls(&value)));
        }
    }
    variables
}

pub(super) fn has_ident(tokens: &TokenStream, name: &str) -> bool {
    let is_it = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident == name);
    levels(tokens).iter().flatten().any(is_it)
}

/// Whether a file contains an identifier outside of comments and strings. False if `text` is not
/// Rust.
pub fn mentions(text: &str, name: &str) -> bool {
    let tokens: Result<TokenStream, _> = text.trim_start_matches('\u{feff}').parse();
    tokens.is_ok_and(|tokens| has_ident(&tokens, name))
}

pub(super) fn find_functions<'f>(file: &'f syn::File, name: &str) -> Vec<&'f ItemFn> {
    let named = |item: &'f Item| match item {
        Item::Fn(function) if function.sig.ident == name && !is_for_tests(&function.attrs) => Some(function),
        _ => None,
    };
    file.items.iter().filter_map(named).collect()
}

/// Collects the bodies of `function` and of all functions in the same file that it calls, directly
/// or indirectly.
pub(super) fn reachable_code(file: &syn::File, function: &ItemFn) -> TokenStream {
    let mut bodies = function.block.to_token_stream();
    let mut left: Vec<&ItemFn> = file
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Fn(other) if !std::ptr::eq(other, function) && !is_for_tests(&other.attrs) => Some(other),
            _ => None,
        })
        .collect();
    while let Some(at) = left
        .iter()
        .position(|other| has_ident(&bodies, &other.sig.ident.to_string()))
    {
        bodies.extend(left.swap_remove(at).block.to_token_stream());
    }
    bodies
}

pub(super) fn code_without_tests(file: &syn::File) -> TokenStream {
    let mut code = TokenStream::new();
    for item in &file.items {
        let for_tests = match item {
            Item::Mod(module) => is_for_tests(&module.attrs),
            Item::Fn(function) => is_for_tests(&function.attrs),
            _ => false,
        };
        if !for_tests {
            item.to_tokens(&mut code);
        }
    }
    code
}

pub(super) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = || {
            let arguments = attribute.parse_args::<syn::Path>();
            attribute.path().is_ident("cfg") && arguments.is_ok_and(|path| path.is_ident("test"))
        };
        attribute.path().is_ident("test") || is_cfg_test()
    })
}

pub(super) struct Imports(BTreeMap<String, Vec<String>>);

impl Imports {
    pub(super) fn of(file: &syn::File) -> Imports {
        let mut imports = Imports(BTreeMap::new());
        for item in &file.items {
            if let Item::Use(import) = item
                && !is_for_tests(&import.attrs)
            {
                imports.add(&import.tree, &mut Vec::new());
            }
        }
        imports
    }

    fn add(&mut self, tree: &UseTree, path: &mut Vec<String>) {
        let depth = path.len();
        match tree {
            UseTree::Path(outer) => {
                path.push(strip_raw_prefix(&outer.ident.to_string()));
                self.add(&outer.tree, path);
            }
            UseTree::Name(name) => self.bind(name.ident.to_string(), &name.ident, path),
            UseTree::Rename(rename) => self.bind(rename.rename.to_string(), &rename.ident, path),
            UseTree::Group(group) => {
                for inner in &group.items {
                    self.add(inner, path);
                }
            }
            _ => {}
        }
        path.truncate(depth);
    }

    fn bind(&mut self, name: String, last: &syn::Ident, path: &[String]) {
        let mut path = path.to_vec();
        let name = if last != "self" {
            path.push(strip_raw_prefix(&last.to_string()));
            name
        } else if name == "self" {
            path.last().cloned().unwrap_or_default()
        } else {
            name
        };
        // Several traits may be imported as `_`; they must not overwrite each other.
        let name = if name == "_" {
            path.join("::")
        } else {
            strip_raw_prefix(&name)
        };
        self.0.insert(name, path);
    }

    pub(super) fn get(&self, name: &str) -> Option<&[String]> {
        self.0.get(name).map(Vec::as_slice)
    }

    pub(super) fn has(&self, path: &[String]) -> bool {
        self.0.values().any(|known| known == path)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(name, path)| (name.as_str(), path.as_slice()))
    }

    /// Resolves a path in `module` to an absolute path from a crate root.
    pub(super) fn absolute(&self, path: &[String], module: &[&str]) -> Vec<String> {
        let imported = path.first().and_then(|first| self.get(first));
        let whole = match imported {
            Some(start) => start.iter().chain(&path[1..]).cloned().collect(),
            None => path.to_vec(),
        };
        let mut base: Vec<String> = module.iter().map(|part| (*part).to_owned()).collect();
        let mut rest = whole.as_slice();
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => base.clear(),
                "super" => drop(base.pop()),
                "self" => {}
                _ => break,
            }
            rest = after;
        }
        base.extend_from_slice(rest);
        base
    }
}

pub(super) struct TypeNames<'f> {
    file: &'f syn::File,
    imports: Imports,
    module: &'f [&'f str],
}

impl<'f> TypeNames<'f> {
    pub(super) fn new(file: &'f syn::File, module: &'f [&'f str]) -> TypeNames<'f> {
        TypeNames {
            file,
            imports: Imports::of(file),
            module,
        }
    }

    /// Whether tokens (e.g. between `::<` and `>`) name a type, through a path, an import or an
    /// alias.
    pub(super) fn is_named(&self, tokens: &[TokenTree], wanted: &str) -> bool {
        let split = |path: &str| -> Vec<String> { path.split("::").map(strip_raw_prefix).collect() };
        let path = |tokens: TokenStream| split(&tokens.to_string().replace(' ', ""));
        let mut written = path(tokens.iter().cloned().collect());
        let alias = self.file.items.iter().find_map(|item| match item {
            Item::Type(alias) if written.len() == 1 && alias.ident == written[0] => Some(&alias.ty),
            _ => None,
        });
        if let Some(alias) = alias {
            written = path(alias.to_token_stream());
        }
        self.imports.absolute(&written, self.module) == self.imports.absolute(&split(wanted), self.module)
    }

    pub(super) fn is_spoke(&self, call: &Call, wanted: &str) -> bool {
        call.is_method && call.name() == "spoke" && self.is_named(&call.generics, wanted)
    }
}

pub(super) fn strip_raw_prefix(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let calls = find_calls(&text.parse().expect(text));
        let shown = |call: &Call| {
            format!(
                "{}{}",
                if call.is_method { "." } else { "" },
                call.path.join("::")
            )
        };
        calls.iter().map(shown).collect()
    }

    #[test]
    fn finds_calls_by_syntax() {
        assert_eq!(paths("a::b(c).d(e())"), ["a::b", ".d", "e"]);
        assert_eq!(paths("a . b ( /* .c() */ \".d()\" )"), [".b"]);
        assert_eq!(paths("x.spoke::<a::B<C>>().y()"), [".spoke", ".y"]);
        assert_eq!(paths("A::<B>::new()"), ["A::new"]);
        assert_eq!(paths("a < b -> (c()) > (d) < < (e)"), ["c"]);
        assert_eq!(paths("fn f(a: A) {} #[doc(b())] m!(g())"), ["g"]);
    }

    #[test]
    fn imports_are_full_paths() {
        let file = syn::parse_file("use a::{self, b::C as D, r#gen::E}; use f::G as _; use h::*;");
        let imports = Imports::of(&file.expect("it is Rust"));
        for (name, path) in [("a", "a"), ("D", "a::b::C"), ("E", "a::gen::E"), ("f::G", "f::G")] {
            assert_eq!(
                imports.get(name).map(|path| path.join("::")).as_deref(),
                Some(path),
                "{name}"
            );
        }
        let absolute = |path: &str| {
            let path: Vec<String> = path.split("::").map(str::to_owned).collect();
            imports.absolute(&path, &["m"]).join("::")
        };
        assert_eq!(absolute("self::x::y"), "m::x::y");
        assert_eq!(absolute("super::x"), "x");
        assert_eq!(absolute("crate::n::x"), "n::x");
        assert_eq!(absolute("x"), "m::x");
    }
}
