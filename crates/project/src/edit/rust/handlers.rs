//! Adds webhooks to a handler file that the user may have edited.

use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Item, ItemFn, Stmt};

use super::CHAIN_WIDTH;
use super::calls::{
    Call, Imports, TypeNames, find_calls, find_functions, has_ident, is_for_tests, reachable_code,
};
use super::registration::Chain;
use super::source::{Addition, Source, byte_range, line_starts};
use crate::edit::Obstacle;

/// The webhooks to add to a file.
#[derive(Clone, Copy, Debug)]
pub struct Handlers<'a> {
    /// The file as scaffolded with only these webhooks. Missing parts are copied from it.
    pub scaffold: &'a str,
    /// The kind, e.g. `CronJob`.
    pub kind: &'a str,
    /// The kind as a Rust variable, e.g. `cron_job`.
    pub variable: &'a str,
    /// Module path of the file within the crate, e.g. `["webhook", "v1", "cron_job"]`.
    pub module: &'a [&'a str],
    /// Whether to add a defaulter.
    pub defaulting: bool,
    /// Whether to add a validator.
    pub validation: bool,
    /// Types to convert from and to, e.g. `crate::api::v2::CronJob`.
    pub spokes: &'a [String],
}

/// A method of `Webhook`, and the marker of its handler function.
struct HandlerType {
    method: &'static str,
    marker: &'static str,
}

const DEFAULTER: HandlerType = HandlerType {
    method: "defaulter",
    marker: "mutating",
};

const VALIDATOR: HandlerType = HandlerType {
    method: "validator",
    marker: "validating",
};

#[derive(Default)]
struct Missing {
    /// Method calls to append to the result of `webhook`.
    calls: Vec<String>,
    /// Markers of scaffolded functions to add, with their new names.
    functions: Vec<(&'static str, String)>,
    markers: Vec<Addition>,
}

impl Missing {
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.functions.is_empty() && self.markers.is_empty()
    }
}

/// Adds handlers to a file and registers them in its `webhook` function. Existing handlers are left
/// alone. A missing `webhook` function is added.
///
/// # Errors
/// Fails if the file does not parse, has several functions named `webhook`, or if the function does
/// not end in method calls on a `Webhook`.
pub fn add_handlers(text: &str, wanted: &Handlers<'_>) -> Result<String, Obstacle> {
    let scaffold = Source::parse(wanted.scaffold)?;
    let source = match Source::parse(text) {
        Ok(source) => source,
        Err(reason) => {
            // We don't know what the file contains, so list everything that is wanted in the
            // message.
            let empty = Source::parse("")?;
            let missing = Edit::new(&empty, &scaffold, wanted).find_missing(&[])?;
            return Err(Edit::new(&empty, &scaffold, wanted).stop(reason, &missing));
        }
    };
    let edit = Edit::new(&source, &scaffold, wanted);
    let webhooks = find_functions(&source.file, "webhook");
    let missing = edit.find_missing(&webhooks)?;
    if missing.is_empty() {
        return Ok(text.to_owned());
    }
    let mut additions = Vec::new();
    let mut functions = edit.function_texts(&missing);
    match webhooks.as_slice() {
        _ if missing.calls.is_empty() => {}
        [] => functions.insert(0, edit.webhook_text(&missing)?),
        [webhook] => additions.extend(edit.extend(webhook, &missing)?),
        _ => return Err(edit.stop("it has several functions `webhook`".into(), &missing)),
    }
    if !missing.functions.is_empty() {
        additions.extend(edit.traits().map(|line| edit.import(&line)));
    }
    if !functions.is_empty() {
        additions.push(edit.at_end(&format!("\n{}\n", functions.join("\n\n"))));
    }
    additions.extend(missing.markers);
    Ok(source.with(additions))
}

struct Edit<'e> {
    source: &'e Source<'e>,
    scaffold: &'e Source<'e>,
    wanted: &'e Handlers<'e>,
    imports: Imports,
}

impl<'e> Edit<'e> {
    fn new(source: &'e Source<'e>, scaffold: &'e Source<'e>, wanted: &'e Handlers<'e>) -> Edit<'e> {
        Edit {
            source,
            scaffold,
            wanted,
            imports: Imports::of(&source.file),
        }
    }

    fn find_missing(&self, webhooks: &[&ItemFn]) -> Result<Missing, Obstacle> {
        let calls: Vec<Call> = webhooks
            .iter()
            .flat_map(|webhook| find_calls(&reachable_code(&self.source.file, webhook)))
            .collect();
        let mut missing = Missing::default();
        for (is_wanted, handler_type) in [
            (self.wanted.defaulting, DEFAULTER),
            (self.wanted.validation, VALIDATOR),
        ] {
            if is_wanted {
                self.look_for(&handler_type, &calls, &mut missing)?;
            }
        }
        let types = TypeNames::new(&self.source.file, self.wanted.module);
        for spoke in self.wanted.spokes {
            if !calls.iter().any(|call| types.is_spoke(call, spoke)) {
                missing.calls.push(format!(".spoke::<{spoke}>()"));
            }
        }
        Ok(missing)
    }

    fn look_for(
        &self,
        handler_type: &HandlerType,
        calls: &[Call],
        missing: &mut Missing,
    ) -> Result<(), Obstacle> {
        let waits = format!("{}_async", handler_type.method);
        let call = calls
            .iter()
            .find(|call| call.is_method && (call.name() == handler_type.method || call.name() == waits));
        if let Some(call) = call {
            // Either a closure or a function in another file, where we'd find its marker.
            let Some(name) = call.variable() else {
                return Ok(());
            };
            let handlers = find_functions(&self.source.file, &name);
            if let [handler] = handlers.as_slice()
                && !has_marker(handler, handler_type.marker)
            {
                missing.markers.push(self.marker(handler, handler_type.marker));
            }
            return Ok(());
        }
        let is_served = |function: &ItemFn| {
            let serves = |call: &Call| {
                call.is_method && call.variable().is_some_and(|name| function.sig.ident == name)
            };
            calls.iter().any(serves)
        };
        let marked: Vec<&ItemFn> = self
            .source
            .file
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Fn(function)
                    if !is_for_tests(&function.attrs) && self.handles(function, handler_type) =>
                {
                    Some(function)
                }
                _ => None,
            })
            .filter(|function| !is_served(function))
            .collect();
        let name = match marked.as_slice() {
            [] => self.new_function(handler_type, missing)?,
            // Async handlers are registered with another method.
            [handler] if handler.sig.asyncness.is_some() => {
                missing.calls.push(format!(".{waits}({})", handler.sig.ident));
                return Ok(());
            }
            [handler] => handler.sig.ident.to_string(),
            several => {
                return Err(Obstacle::new(format!(
                    "it has {} functions with `#[webhook({})]` for `{}`",
                    several.len(),
                    handler_type.marker,
                    self.wanted.kind
                ))
                .with_lines(
                    "add one of them to the result of `webhook`",
                    format!(".{}({})", handler_type.method, several[0].sig.ident),
                ));
            }
        };
        missing.calls.push(format!(".{}({name})", handler_type.method));
        Ok(())
    }

    fn handles(&self, function: &ItemFn, handler_type: &HandlerType) -> bool {
        let inputs = function.sig.inputs.to_token_stream();
        let is_kind = |name: &str| {
            let path = self.imports.get(name);
            name == self.wanted.kind
                || path
                    .and_then(|path| path.last())
                    .is_some_and(|last| last == self.wanted.kind)
        };
        let names = self.imports.iter().map(|(name, _)| name);
        let takes = names
            .chain([self.wanted.kind])
            .any(|name| is_kind(name) && has_ident(&inputs, name));
        takes && has_marker(function, handler_type.marker)
    }

    /// Plans to add a scaffolded function. The kind is appended if the usual name is taken.
    fn new_function(&self, handler_type: &HandlerType, missing: &mut Missing) -> Result<String, Obstacle> {
        let scaffolded = self.scaffolded(handler_type.marker)?;
        let usual = scaffolded.sig.ident.to_string();
        let is_free = |name: &&String| {
            let is_named = |item: &Item| matches!(item, Item::Fn(function) if function.sig.ident == *name);
            self.imports.get(name).is_none() && !self.source.file.items.iter().any(is_named)
        };
        let names = [usual.clone(), format!("{usual}_{}", self.wanted.variable)];
        let name = names.iter().find(is_free);
        let name = name
            .ok_or_else(|| format!("the name `{usual}` is taken"))?
            .clone();
        missing.functions.push((handler_type.marker, name.clone()));
        Ok(name)
    }

    fn scaffolded(&self, marker: &str) -> Result<&'e ItemFn, Obstacle> {
        let function = self.scaffold.file.items.iter().find_map(|item| match item {
            Item::Fn(function) if has_marker(function, marker) => Some(function),
            _ => None,
        });
        function.ok_or_else(|| format!("the scaffold has no handler that is {marker}").into())
    }

    fn marker(&self, function: &ItemFn, marker: &str) -> Addition {
        let text = self.source.text;
        let whole = byte_range(function.span()).start;
        let above = function
            .attrs
            .last()
            .map_or(whole, |last| byte_range(last.span()).end);
        let visibility = byte_range(function.vis.span());
        let start = if visibility.is_empty() {
            byte_range(function.sig.span()).start
        } else {
            visibility.start
        };
        let indent = self.source.indent_at(start);
        match line_starts(text, above..start).last() {
            Some(line) => Addition::new(*line, format!("{indent}#[rbuilder::webhook({marker})]\n")),
            // The function shares its first line with an attribute or the preceding item.
            None => Addition::new(start, format!("#[rbuilder::webhook({marker})]\n{indent}")),
        }
    }

    fn extend(&self, webhook: &ItemFn, missing: &Missing) -> Result<Vec<Addition>, Obstacle> {
        let stop = || {
            self.stop(
                "`webhook` does not end in method calls on a `Webhook`".into(),
                missing,
            )
        };
        let Some(Stmt::Expr(tail, None)) = webhook.block.stmts.last() else {
            return Err(stop());
        };
        let chain = Chain::of(tail).ok_or_else(stop)?;
        if matches!(chain.root, syn::Expr::Path(_)) && !chain.starts_with_variable_of(webhook) {
            return Err(stop());
        }
        let close = byte_range(webhook.block.brace_token.span.close()).start;
        Ok(chain.extended(self.source, &missing.calls, close))
    }

    fn webhook_text(&self, missing: &Missing) -> Result<String, Obstacle> {
        let scaffolded = find_functions(&self.scaffold.file, "webhook");
        let function = scaffolded
            .first()
            .ok_or("the scaffold has no function `webhook`")?;
        let head = byte_range(function.span()).start..byte_range(function.block.span()).start;
        let head = self.adapted(head, &function.to_token_stream(), None);
        let new = self.adapted_name("Webhook");
        let line = format!("{new}::new(){}", missing.calls.concat());
        let body = if line.len() <= CHAIN_WIDTH {
            line
        } else {
            format!("{new}::new()\n        {}", missing.calls.join("\n        "))
        };
        Ok(format!("{head}{{\n    {body}\n}}"))
    }

    fn function_texts(&self, missing: &Missing) -> Vec<String> {
        let functions = missing.functions.iter();
        let text = |(marker, name): &(&'static str, String)| {
            let function = self.scaffolded(marker).ok()?;
            let rename = (byte_range(function.sig.ident.span()), name.as_str());
            let adapted = self.adapted(
                byte_range(function.span()),
                &function.to_token_stream(),
                Some(rename),
            );
            Some(broken(&adapted))
        };
        functions.filter_map(text).collect()
    }

    /// Lines that import traits, i.e. names that the scaffold imports but never mentions.
    fn traits(&self) -> impl Iterator<Item = String> {
        let mut code = TokenStream::new();
        for item in &self.scaffold.file.items {
            if !matches!(item, Item::Use(_)) {
                item.to_tokens(&mut code);
            }
        }
        let imports = Imports::of(&self.scaffold.file);
        let lines: Vec<String> = imports
            .iter()
            .filter(|(name, path)| !mentions(&code, name) && !self.imports.has(path))
            .map(|(_, path)| format!("use {} as _;\n", path.join("::")))
            .collect();
        lines.into_iter()
    }

    fn import(&self, line: &str) -> Addition {
        let items = &self.source.file.items;
        if items.is_empty() {
            return self.source.lines_at_end(line);
        }
        match items.iter().rposition(|item| matches!(item, Item::Use(_))) {
            Some(last) => self.source.lines_after(last, line),
            None => self.source.lines_before(0, &format!("{line}\n")),
        }
    }

    fn at_end(&self, lines: &str) -> Addition {
        let is_code = |item: &Item| !matches!(item, Item::Mod(module) if is_for_tests(&module.attrs));
        match self.source.file.items.iter().rposition(is_code) {
            Some(last) => self.source.lines_after(last, lines),
            None => self.source.lines_at_end(lines),
        }
    }

    /// Copies a part of the scaffold, with absolute paths for names that the user's file doesn't
    /// import.
    fn adapted(
        &self,
        part: Range<usize>,
        tokens: &TokenStream,
        rename: Option<(Range<usize>, &str)>,
    ) -> String {
        let mut changes: Vec<(Range<usize>, String)> = rename
            .into_iter()
            .map(|(place, name)| (place, name.to_owned()))
            .collect();
        find_names(tokens, &mut |place, name| {
            let new = self.adapted_name(name);
            if new != name && !changes.iter().any(|(known, _)| *known == place) {
                changes.push((place, new));
            }
        });
        changes.retain(|(place, _)| part.contains(&place.start));
        changes.sort_by_key(|(place, _)| place.start);
        let mut text = String::new();
        let mut done = part.start;
        for (place, new) in changes {
            text.push_str(&self.scaffold.text[done..place.start]);
            text.push_str(&new);
            done = place.end;
        }
        text + &self.scaffold.text[done..part.end]
    }

    fn adapted_name(&self, name: &str) -> String {
        let imports = Imports::of(&self.scaffold.file);
        match imports.get(name) {
            Some(path) if self.imports.get(name) != Some(path) => path.join("::"),
            _ => name.to_owned(),
        }
    }

    fn stop(&self, reason: String, missing: &Missing) -> Obstacle {
        let mut parts = Vec::new();
        if !missing.calls.is_empty() {
            parts.push("// append to the result of `webhook()`:".to_owned());
            parts.extend(missing.calls.iter().cloned());
        }
        if !missing.functions.is_empty() {
            parts.push("// add next to `webhook()`:".to_owned());
            parts.extend(self.traits().map(|line| line.trim_end().to_owned()));
            parts.push(self.function_texts(missing).join("\n\n"));
        }
        Obstacle::new(reason).with_lines("add this code", parts.join("\n"))
    }
}

/// Breaks a function's parameters into lines as rustfmt does, since absolute paths may exceed the
/// line width.
fn broken(function: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines = Vec::new();
    for line in function.lines() {
        let parameters = line.find('(').zip(line.find(") "));
        match parameters {
            Some((open, close)) if line.starts_with("fn ") && line.len() > WIDTH && open < close => {
                lines.push(line[..=open].to_owned());
                let parameters = line[open + 1..close].split(", ");
                lines.extend(parameters.map(|parameter| format!("    {parameter},")));
                lines.push(line[close..].to_owned());
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

/// Matches `#[webhook(marker)]`, possibly with a path such as `#[rbuilder::webhook(…)]`.
fn has_marker(function: &ItemFn, marker: &str) -> bool {
    function.attrs.iter().any(|attribute| {
        let is_webhook = attribute
            .path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "webhook");
        let list = attribute.meta.require_list();
        is_webhook && list.is_ok_and(|list| has_ident(&list.tokens, marker))
    })
}

/// Calls `found` for each name that isn't preceded by `.`, `::` or `fn`, including those in
/// attributes.
fn find_names(tokens: &TokenStream, found: &mut dyn FnMut(Range<usize>, &str)) {
    let (mut colons, mut is_part) = (0, false);
    for token in tokens.clone() {
        match &token {
            TokenTree::Ident(name) if !is_part => found(byte_range(name.span()), &name.to_string()),
            TokenTree::Group(group) => find_names(&group.stream(), found),
            _ => {}
        }
        let is = |wanted: char| matches!(&token, TokenTree::Punct(punct) if punct.as_char() == wanted);
        colons = if is(':') { colons + 1 } else { 0 };
        let is_definition = matches!(&token, TokenTree::Ident(word) if word == "fn");
        is_part = is('.') || colons == 2 || is_definition;
    }
}

fn mentions(tokens: &TokenStream, wanted: &str) -> bool {
    let mut is_there = false;
    find_names(tokens, &mut |_, name| is_there |= name == wanted);
    is_there
}
