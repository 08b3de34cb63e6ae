//! Finds the paths in modules' code.
//!
//! Code is read as tokens, since a path looks the same in types, expressions, patterns,
//! visibilities and macro arguments. Among the tokens we recognize imports, blocks with their own
//! imports, attributes and macros.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ItemUse, Lit, Token, UseTree};

use super::super::calls::{has_ident, strip_raw_prefix};
use super::super::source::byte_range;
use super::modules::{ModuleId, Modules, Name, Scope, join_path};
use super::resolve::{Place, Resolver};
use super::rewrite::{Edit, Rewrite, Segment, WrittenPath};
use super::{FileFate, ModuleMoves, Obstruction};
use crate::paths::folder_of;

pub(super) type FileEdits = BTreeMap<String, Vec<Edit>>;

/// Collects the edits for all paths in all modules, or all the paths that cannot be edited if there
/// are any.
pub(super) fn scan_modules(
    modules: &Modules<'_>,
    moves: &ModuleMoves,
) -> Result<FileEdits, Vec<Obstruction>> {
    let mut scanner = Scanner {
        modules,
        moves,
        resolver: Resolver::new(modules),
        added: moves.added(),
        edits: FileEdits::new(),
        obstructions: BTreeSet::new(),
    };
    scanner.check_taken_names();
    for (id, module) in modules.all.iter().enumerate() {
        let mut context = Context {
            module: id,
            blocks: Vec::new(),
            opaque: None,
        };
        for item in &module.items {
            scanner.scan_stream(item.to_token_stream(), &mut context);
        }
    }
    match scanner.obstructions.is_empty() {
        true => Ok(scanner.edits),
        false => Err(scanner.obstructions.into_iter().collect()),
    }
}

struct Scanner<'m, 't> {
    modules: &'m Modules<'t>,
    moves: &'m ModuleMoves,
    resolver: Resolver<'m, 't>,
    /// Names of the modules that the moves create, by parent module.
    added: BTreeMap<Vec<String>, BTreeSet<String>>,
    edits: FileEdits,
    obstructions: BTreeSet<Obstruction>,
}

struct Context {
    module: ModuleId,
    /// Imports of the enclosing blocks, outermost first.
    blocks: Vec<Scope>,
    /// Why the tokens may not be code, if they may not.
    opaque: Option<&'static str>,
}

impl Scanner<'_, '_> {
    fn scan_stream(&mut self, stream: TokenStream, context: &mut Context) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.scan_token(&tokens, at, context);
        }
    }

    /// Reports modules that import or define a name that a new child module will take.
    fn check_taken_names(&mut self) {
        let modules = self.modules;
        for (id, module) in modules
            .all
            .iter()
            .enumerate()
            .filter(|(_, module)| module.is_library)
        {
            for name in self.added.get(&module.path).cloned().unwrap_or_default() {
                if !matches!(module.scope.names.get(&name), Some(Name::Use(_) | Name::Type)) {
                    continue;
                }
                let mut items = module.items.iter().map(ToTokens::to_token_stream);
                let item = items.find(|item| has_ident(item, &name)).unwrap_or_default();
                let start = item
                    .into_iter()
                    .next()
                    .map_or(0, |token| byte_range(token.span()).start);
                let reason = format!("`{name}` will be the name of a module here");
                let help = "use another name for what this item imports or defines".to_owned();
                self.obstruct(id, start, reason, help);
            }
        }
    }

    fn scan_token(&mut self, tokens: &[TokenTree], at: usize, context: &mut Context) -> usize {
        match &tokens[at] {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let group = at + 1 + usize::from(is_punct(tokens, at + 1, '!'));
                match tokens.get(group) {
                    Some(TokenTree::Group(attribute)) if attribute.delimiter() == Delimiter::Bracket => {
                        self.scan_attribute(attribute, context);
                        group + 1
                    }
                    _ => at + 1,
                }
            }
            TokenTree::Punct(_) if is_colons(tokens, at) => {
                let is_continued = at > 0 && is_end_of_path(&tokens[at - 1]);
                match read_path(tokens, at + 2, true) {
                    Some((_, end)) if is_continued => end,
                    Some((path, end)) => self.scan_path(&path, tokens, end, context),
                    None => at + 2,
                }
            }
            TokenTree::Ident(word) if word == "use" => match read_import(tokens, at) {
                Some((import, end)) => {
                    self.scan_import(&import, context);
                    end
                }
                None => at + 1,
            },
            TokenTree::Ident(word) if word == "mod" => match tokens.get(at + 2) {
                // `Modules` already took out the content of inline modules, except for those in
                // functions.
                Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => {
                    let reason = "a module in a function";
                    self.scan_opaque(body.stream(), reason, context);
                    at + 3
                }
                _ => at + 1,
            },
            TokenTree::Ident(word) if word == "pub" => match tokens.get(at + 1) {
                Some(TokenTree::Group(of)) if of.delimiter() == Delimiter::Parenthesis => {
                    self.scan_visibility(of, context);
                    at + 2
                }
                _ => at + 1,
            },
            TokenTree::Ident(_) if is_member(tokens, at) => at + 1,
            TokenTree::Ident(_) => match read_path(tokens, at, false) {
                Some((path, end)) => self.scan_path(&path, tokens, end, context),
                None => at + 1,
            },
            TokenTree::Group(group) => {
                self.scan_group(group, context);
                at + 1
            }
            TokenTree::Literal(literal) => {
                if context.opaque == Some(ATTRIBUTE) {
                    self.scan_literal(literal, context);
                }
                at + 1
            }
            TokenTree::Punct(_) => at + 1,
        }
    }

    fn scan_group(&mut self, group: &Group, context: &mut Context) {
        if group.delimiter() != Delimiter::Brace {
            return self.scan_stream(group.stream(), context);
        }
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        // Collect the imports first: they apply to the entire block.
        let mut scope = Scope::default();
        let mut at = 0;
        while at < tokens.len() {
            let import = matches!(&tokens[at], TokenTree::Ident(word) if word == "use");
            match import.then(|| read_import(&tokens, at)).flatten() {
                Some((import, end)) => {
                    scope.add_import(&import);
                    at = end;
                }
                None => at += 1,
            }
        }
        context.blocks.push(scope);
        self.scan_stream(group.stream(), context);
        context.blocks.pop();
    }

    fn scan_opaque(&mut self, stream: TokenStream, reason: &'static str, context: &mut Context) {
        let outer = context.opaque.replace(reason);
        self.scan_stream(stream, context);
        context.opaque = outer;
    }

    fn scan_attribute(&mut self, attribute: &Group, context: &mut Context) {
        let first = attribute.stream().into_iter().next();
        let is_known = matches!(&first, Some(TokenTree::Ident(name)) if name == "doc" || name == "path");
        if !is_known {
            self.scan_opaque(attribute.stream(), ATTRIBUTE, context);
        }
    }

    fn scan_visibility(&mut self, of: &Group, context: &mut Context) {
        let tokens: Vec<TokenTree> = of.stream().into_iter().collect();
        let [TokenTree::Ident(word)] = tokens.as_slice() else {
            return self.scan_stream(of.stream(), context);
        };
        let module = &self.modules.all[context.module];
        let (Some(parent), true) = (module.parent, word == "super") else {
            return;
        };
        // If the module moves down a level, `pub(super)` would expose less than before.
        let after = self.modules.target(context.module).map(|mut path| {
            path.pop();
            path
        });
        let target = self.modules.target(parent);
        if after == target {
            return;
        }
        let start = byte_range(word.span()).start;
        let Some(target) = target else {
            let reason = "`pub(super)` refers to a module that will no longer exist".to_owned();
            return self.obstruct(context.module, start, reason, "write `pub(crate)`".to_owned());
        };
        let text = [vec!["in crate".to_owned()], target].concat().join("::");
        if context.opaque.is_some() {
            let reason = "`pub(super)` will refer to another module".to_owned();
            return self.obstruct(context.module, start, reason, format!("write `pub({text})`"));
        }
        let end = byte_range(word.span()).end;
        self.add_edits(context.module, [Edit { start, end, text }]);
    }

    /// Scans a path and any macro arguments after it. Returns the index of the next token.
    fn scan_path(
        &mut self,
        path: &WrittenPath,
        tokens: &[TokenTree],
        end: usize,
        context: &mut Context,
    ) -> usize {
        let is_start = path.segments[0].name == "super";
        if path.segments.len() > 1 || path.is_global || is_start {
            self.rewrite(path, context);
        }
        if !is_punct(tokens, end, '!') {
            return end;
        }
        // `macro_rules! name { … }` has a name before the braces.
        let is_definition = matches!(tokens.get(end + 1), Some(TokenTree::Ident(_)));
        let body = end + 1 + usize::from(is_definition);
        let Some(TokenTree::Group(group)) = tokens.get(body) else {
            return end;
        };
        let name = path.segments.last().map_or("", |segment| segment.name.as_str());
        if is_definition {
            self.scan_opaque(group.stream(), "the definition of a macro", context);
        } else if is_list_of_expressions(&group.stream()) {
            if ["include", "include_str", "include_bytes"].contains(&name) {
                self.check_included(group, context.module);
            }
            self.scan_stream(group.stream(), context);
        } else {
            self.scan_opaque(
                group.stream(),
                "macro arguments that are not expressions",
                context,
            );
        }
        body + 1
    }

    /// Checks that a relative path (e.g. in `include_str!`) stays valid after the move.
    fn check_included(&mut self, arguments: &Group, module: ModuleId) {
        let mut tokens = arguments.stream().into_iter();
        let (Some(TokenTree::Literal(literal)), None) = (tokens.next(), tokens.next()) else {
            return;
        };
        let Lit::Str(value) = Lit::new(literal.clone()) else {
            return;
        };
        let value = value.value().replace('\\', "/");
        let file = &self.modules.all[module].file;
        let after = |path: &str| match self.moves.file(path) {
            FileFate::Moves(to) => to,
            _ => path.to_owned(),
        };
        let folder = |path: &str| folder_of(path).to_owned();
        let included = join_path(&folder(file), &value);
        if value.starts_with('/') || join_path(&folder(&after(file)), &value) == after(&included) {
            return;
        }
        let start = byte_range(literal.span()).start;
        let reason = format!("`{value}` is relative to this file, which moves");
        let help = format!(
            "write `concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{}\")`",
            after(&included)
        );
        self.obstruct(module, start, reason, help);
    }

    fn scan_literal(&mut self, literal: &proc_macro2::Literal, context: &mut Context) {
        let Lit::Str(value) = Lit::new(literal.clone()) else {
            return;
        };
        // serde and other macros parse strings in attributes as paths.
        let Ok(path) = syn::parse_str::<syn::Path>(&value.value()) else {
            return;
        };
        let range = byte_range(literal.span());
        let segment = |segment: &syn::PathSegment| Segment {
            name: strip_raw_prefix(&segment.ident.to_string()),
            range: range.clone(),
            end_of_colons: None,
            depth: 0,
        };
        let path = WrittenPath {
            is_global: path.leading_colon.is_some(),
            segments: path.segments.iter().map(segment).collect(),
        };
        if path.segments.len() > 1 {
            self.rewrite(&path, context);
        }
    }

    fn scan_import(&mut self, import: &ItemUse, context: &mut Context) {
        let is_global = import.leading_colon.is_some();
        let mut leaves = Vec::new();
        collect_leaves(&import.tree, &mut Vec::new(), 0, &mut leaves);
        for segments in leaves {
            if !segments.is_empty() {
                self.rewrite(&WrittenPath { is_global, segments }, context);
            }
        }
    }

    fn rewrite(&mut self, path: &WrittenPath, context: &Context) {
        let place = Place {
            module: context.module,
            blocks: &context.blocks,
        };
        let hops = self.resolver.walk(place, path.is_global, &path.names());
        if hops.is_empty() {
            return self.check_added_name(path, place);
        }
        let rewrite = Rewrite {
            modules: self.modules,
            module: context.module,
            hops: &hops,
            path,
        };
        let (reason, absolute) = match (rewrite.edits(), context.opaque) {
            (Ok(edits), None) => return self.add_edits(context.module, edits),
            (Ok(edits), Some(_)) if edits.is_empty() => return,
            (Ok(_), Some(opaque)) => (
                format!("is in {opaque}, and will be at another path"),
                rewrite.absolute(),
            ),
            (Err(reason), _) => (reason, rewrite.absolute()),
        };
        let help = match absolute {
            Some(absolute) => format!("write `{absolute}`"),
            None => "name the modules in it by their own paths".to_owned(),
        };
        let reason = format!("`{}` {reason}", path.shown());
        self.obstruct(context.module, path.start(), reason, help);
    }

    /// Reports names that refer to something else (e.g. a crate) but would refer to a module after
    /// the moves.
    fn check_added_name(&mut self, path: &WrittenPath, place: Place<'_>) {
        let name = &path.segments[0].name;
        if path.is_global || self.resolver.is_bound(place, name) {
            return;
        }
        let is_seen = |above: &Vec<String>| self.resolver.sees_names_of(place, above);
        let added = self
            .added
            .iter()
            .find(|(above, names)| names.contains(name) && is_seen(above));
        if let Some((above, _)) = added {
            let reason = format!(
                "`{name}` names a crate here, and will name the module `{}::{name}`",
                above.join("::")
            );
            let help = format!("write `::{}`", path.shown());
            self.obstruct(place.module, path.start(), reason, help);
        }
    }

    fn add_edits(&mut self, module: ModuleId, edits: impl IntoIterator<Item = Edit>) {
        let file = self.modules.all[module].file.clone();
        self.edits.entry(file).or_default().extend(edits);
    }

    fn obstruct(&mut self, module: ModuleId, byte: usize, reason: String, help: String) {
        let file = &self.modules.all[module].file;
        let text = &self.modules.files[file];
        self.obstructions
            .insert(Obstruction::at(file, text, byte, reason, help));
    }
}

const ATTRIBUTE: &str = "an attribute";

fn is_punct(tokens: &[TokenTree], at: usize, wanted: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let is_joint =
        matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.spacing() == Spacing::Joint);
    is_joint && is_punct(tokens, at, ':') && is_punct(tokens, at + 1, ':')
}

/// Whether a following `::` continues a path, as in `<T as Trait>::NAME`.
fn is_end_of_path(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(punct) => punct.as_char() == '>',
        TokenTree::Ident(_) => true,
        _ => false,
    }
}

fn is_member(tokens: &[TokenTree], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    let is_range = before > 0 && is_punct(tokens, before - 1, '.');
    (is_punct(tokens, before, '.') && !is_range) || is_punct(tokens, before, '\'')
}

fn read_path(tokens: &[TokenTree], start: usize, is_global: bool) -> Option<(WrittenPath, usize)> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut at = start;
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        segments.push(Segment {
            name: strip_raw_prefix(&name.to_string()),
            range: byte_range(name.span()),
            end_of_colons: None,
            depth: 0,
        });
        at += 1;
        if !is_colons(tokens, at) || !matches!(tokens.get(at + 2), Some(TokenTree::Ident(_))) {
            break;
        }
        if let Some(last) = segments.last_mut() {
            last.end_of_colons = Some(byte_range(tokens[at + 1].span()).end);
        }
        at += 2;
    }
    (!segments.is_empty()).then_some((WrittenPath { is_global, segments }, at))
}

/// Reads an import up to its `;`, and returns it with the index of the token after it.
fn read_import(tokens: &[TokenTree], start: usize) -> Option<(ItemUse, usize)> {
    let length = tokens[start..]
        .iter()
        .position(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';'))?;
    let end = start + length + 1;
    let import = tokens[start..end].iter().cloned().collect();
    Some((syn::parse2(import).ok()?, end))
}

fn is_list_of_expressions(arguments: &TokenStream) -> bool {
    let list = Punctuated::<Expr, Token![,]>::parse_terminated;
    let repeated = |input: ParseStream<'_>| -> syn::Result<()> {
        input.parse::<Expr>()?;
        input.parse::<Token![;]>()?;
        input.parse::<Expr>().map(drop)
    };
    list.parse2(arguments.clone()).is_ok() || repeated.parse2(arguments.clone()).is_ok()
}

fn collect_leaves(tree: &UseTree, prefix: &mut Vec<Segment>, depth: usize, leaves: &mut Vec<Vec<Segment>>) {
    let segment = |name: &syn::Ident| Segment {
        name: strip_raw_prefix(&name.to_string()),
        range: byte_range(name.span()),
        end_of_colons: None,
        depth,
    };
    match tree {
        UseTree::Path(path) => {
            let colons = path.colon2_token.spans[1];
            prefix.push(Segment {
                end_of_colons: Some(byte_range(colons).end),
                ..segment(&path.ident)
            });
            collect_leaves(&path.tree, prefix, depth, leaves);
            prefix.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                collect_leaves(tree, prefix, depth + 1, leaves);
            }
        }
        UseTree::Name(only) if only.ident == "self" => leaves.push(prefix.clone()),
        UseTree::Rename(only) if only.ident == "self" => leaves.push(prefix.clone()),
        UseTree::Name(only) => leaves.push(prefix.iter().cloned().chain([segment(&only.ident)]).collect()),
        UseTree::Rename(only) => leaves.push(prefix.iter().cloned().chain([segment(&only.ident)]).collect()),
        UseTree::Glob(_) => leaves.push(prefix.clone()),
    }
}
