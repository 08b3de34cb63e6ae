//! Finds code that modifies the CRD from `crd()` before it writes or applies it.
//!
//! Manifests are generated from types and attributes, so they lack such changes. The search goes
//! through one function body at a time, tracking the variables that contain a CRD, a list of CRDs,
//! or a CRD as JSON. For example, in
//!
//! ```text
//! let mut crd = Cup::crd();
//! crd.metadata.resource_version = current.resource_version();
//! let mut value = serde_json::to_value(&crd)?;
//! value["spec"]["preserveUnknownFields"] = json!(false);
//! ```
//!
//! `value` contains the CRD of `Cup`, and the last line changes a field of our manifest. The second
//! line doesn't count, because no manifest has a resource version. Changes to a copy of a field,
//! such as `crd.spec.names.kind.clone()`, don't count either.

mod held;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rbuilder_reader::Span;
use rbuilder_reader::grammar::{Function, Implementation};
use rbuilder_reader::token::{Cursor, Delimiter, Kind, lex};

use self::held::{Held, method, path_of};
use super::file::FileReader;
use crate::package::{ModuleId, Patch};
use crate::sources::is_in_file;

/// The call, as rustfmt writes it.
const CALL: &str = "crd()";

/// Longer bodies are skipped: the sets of CRDs in variables are copied, which could take long.
const MAX_BODY: usize = 1 << 18;

/// Methods that modify their receiver, besides those whose names end in `_mut`.
const CHANGING: [&str; 13] = [
    "insert",
    "push",
    "push_str",
    "extend",
    "append",
    "retain",
    "clear",
    "truncate",
    "entry",
    "get_or_insert",
    "get_or_insert_with",
    "get_or_insert_default",
    "dedup",
];

/// Methods that remove something and return it. They count only if the result is unused, because
/// programs often call them just to read a part.
const REMOVING: [&str; 5] = ["remove", "swap_remove", "pop", "take", "drain"];

/// Methods of `ResourceExt` for metadata that no manifest contains.
const SERVER_MANAGED: [&str; 3] = ["finalizers_mut", "owner_references_mut", "managed_fields_mut"];

pub(super) fn may_patch(text: &str) -> bool {
    is_in_file(CALL, text)
}

impl FileReader<'_, '_> {
    /// Records the first place where a function modifies the CRD of each kind.
    pub(super) fn patches(
        &mut self,
        function: &Function<'_>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) {
        let Some(body) = function
            .body
            .filter(|body| self.may_patch && body.len() <= MAX_BODY && may_patch(body))
        else {
            return;
        };
        let self_type = around.and_then(|around| around.self_type().ok());
        for (kind, span) in find_patches(body) {
            let kind = match (kind.as_slice(), &self_type) {
                ([word], Some(self_type)) if word == "Self" => path_of(self_type),
                _ => Some(kind),
            };
            let Some(kind) = kind else { continue };
            self.collector.package.patches.push(Patch {
                file: self.id,
                module,
                kind,
                span: span.shifted(function.body_start),
            });
        }
    }
}

/// Returns each kind whose CRD is modified, with the first place.
fn find_patches(body: &str) -> Vec<(Vec<String>, Span)> {
    let Ok(tokens) = lex(body) else {
        return Vec::new();
    };
    let mut finder = Finder::default();
    finder.walk(tokens.cursor());
    finder.found
}

#[derive(Default)]
struct Finder<'a> {
    held: BTreeMap<&'a str, Held>,
    found: Vec<(Vec<String>, Span)>,
    known: BTreeSet<Vec<String>>,
    /// The kinds of the latest change. Programs often change the same variable several times in a
    /// row.
    latest: Option<Rc<BTreeSet<Vec<String>>>>,
}

impl<'a> Finder<'a> {
    fn walk(&mut self, mut cursor: Cursor<'a>) {
        // A variable gets its value at the end of the statement, so hold it until then.
        let mut declared: Option<(&'a str, Option<Held>)> = None;
        let mut is_start = true;
        while !cursor.is_end() {
            let starts_statement = std::mem::replace(&mut is_start, false);
            if let Some((name, value)) = self.binding(&mut cursor) {
                declared = Some((name, value));
            } else if cursor.eat_word("for") {
                self.for_loop(&mut cursor);
            } else if cursor.is_pair(b'.', b'.') {
                self.base(&mut cursor);
            } else if cursor.eat(b'.') || cursor.eat_pair(b':', b':') {
                cursor.any_ident();
            } else if cursor.is_punct(b'&') {
                self.borrow(&mut cursor);
            } else if cursor.is_ident() {
                self.variable(&mut cursor, starts_statement);
            } else {
                is_start = cursor.is_punct(b';') || cursor.is_group(Delimiter::Brace);
                if cursor.is_punct(b';') {
                    self.declare(declared.take());
                }
                match cursor.any_group() {
                    Some(inner) => self.walk(inner),
                    None => cursor.skip(),
                }
            }
        }
        self.declare(declared);
    }

    fn declare(&mut self, declared: Option<(&'a str, Option<Held>)>) {
        match declared {
            Some((name, Some(value))) => {
                self.held.insert(name, value);
            }
            Some((name, None)) => {
                self.held.remove(name);
            }
            None => {}
        }
    }

    /// Parses `let mut name: Type =` and stops before the value, which may contain changes itself.
    fn binding(&self, cursor: &mut Cursor<'a>) -> Option<(&'a str, Option<Held>)> {
        if !cursor.eat_word("let") {
            return None;
        }
        let mut ahead = *cursor;
        ahead.eat_word("mut");
        let name = ahead.ident().ok()?;
        while !(ahead.is_end() || ahead.is_punct(b'=') || ahead.is_punct(b';')) {
            ahead.skip();
        }
        // In a pattern such as `Some(name)`, treat `Some` as a variable that contains nothing.
        ahead.eat(b'=');
        *cursor = ahead;
        let value = self.held_by(&mut ahead).filter(|_| ahead.is_punct(b';'));
        Some((name.text, value))
    }

    /// Parses `mut name in` of a `for` loop, whose variable holds the CRDs of the list.
    fn for_loop(&mut self, cursor: &mut Cursor<'a>) {
        let mut ahead = *cursor;
        ahead.eat_word("mut");
        let Ok(name) = ahead.ident() else { return };
        if !ahead.eat_word("in") {
            return;
        }
        *cursor = ahead;
        let held = self
            .held_by(&mut ahead)
            .filter(|_| ahead.is_group(Delimiter::Brace))
            .map(|held| Held {
                is_list: false,
                ..held
            });
        self.declare(Some((name.text, held)));
    }

    /// Parses the `..` of a struct update. If the base is a CRD, so is the struct, but with other
    /// fields.
    fn base(&mut self, cursor: &mut Cursor<'a>) {
        cursor.eat_pair(b'.', b'.');
        let start = *cursor;
        let mut ahead = start;
        if let Some(held) = self.held_by(&mut ahead)
            && ahead.kind() == Kind::Close(Delimiter::Brace)
        {
            self.add(&held, ahead.span_since(start));
            *cursor = ahead;
        }
    }

    /// Parses `&` or `&mut`. A mutable borrow of a CRD, or of a part of one, can modify it.
    fn borrow(&mut self, cursor: &mut Cursor<'a>) {
        let start = *cursor;
        cursor.eat(b'&');
        if !cursor.eat_word("mut") {
            return;
        }
        let mut ahead = *cursor;
        let held = match ahead.any_ident().and_then(|name| self.held.get(name.text)) {
            Some(held) => {
                let place = pass_place(&mut ahead);
                place.is_in_manifest().then(|| held.clone())
            }
            None => {
                ahead = *cursor;
                self.held_by(&mut ahead)
            }
        };
        if let Some(held) = held {
            self.add(&held, ahead.span_since(start));
            *cursor = ahead;
        }
    }

    /// Parses a name. If the variable contains CRDs, records how the code modifies it.
    fn variable(&mut self, cursor: &mut Cursor<'a>, starts_statement: bool) {
        let start = *cursor;
        let Some(name) = cursor.any_ident() else { return };
        let Some(held) = self.held.get(name.text).cloned() else {
            return self.pushed(name.text, *cursor);
        };
        let mut ahead = *cursor;
        let place = pass_place(&mut ahead);
        if !place.is_in_manifest() {
            return;
        }
        if is_assigned(ahead) {
            let is_whole = place.fields.is_empty();
            if !is_whole || is_result_of(ahead, name.text) {
                self.add(&held, ahead.span_since(start));
            } else if !place.is_indexed {
                ahead.eat(b'=');
                let value = self.held_by(&mut ahead).filter(|_| ahead.is_punct(b';'));
                self.declare(Some((name.text, value)));
            }
            return;
        }
        let Some(method) = method(&mut ahead) else { return };
        let is_own = held.is_list && place.fields.is_empty() && !place.is_indexed;
        let is_change = if method.ends_with("_mut") {
            !SERVER_MANAGED.contains(&method)
        } else if REMOVING.contains(&method) {
            !is_own && starts_statement && ahead.is_punct(b';')
        } else {
            !is_own && CHANGING.contains(&method)
        };
        if is_change {
            self.add(&held, ahead.span_since(start));
        } else {
            // Release the `Rc`, so that the push below does not copy the set.
            drop(held);
            self.pushed(name.text, *cursor);
        }
    }

    fn pushed(&mut self, name: &'a str, mut cursor: Cursor<'a>) {
        if !(cursor.eat(b'.') && cursor.eat_word("push")) {
            return;
        }
        let Some(mut argument) = cursor.group(Delimiter::Paren) else {
            return;
        };
        if let Some(pushed) = self.held_by(&mut argument) {
            let list = self.held.entry(name).or_insert(Held {
                kinds: Rc::default(),
                is_list: true,
            });
            Rc::make_mut(&mut list.kinds).extend(pushed.kinds.iter().cloned());
        }
    }

    fn add(&mut self, held: &Held, span: Span) {
        if self
            .latest
            .as_ref()
            .is_some_and(|latest| Rc::ptr_eq(latest, &held.kinds))
        {
            return;
        }
        for kind in held.kinds.iter() {
            if self.known.insert(kind.clone()) {
                self.found.push((kind.clone(), span));
            }
        }
        self.latest = Some(Rc::clone(&held.kinds));
    }
}

#[derive(Default)]
struct Part<'a> {
    /// The fields along the path, including keys of JSON objects.
    fields: Vec<&'a str>,
    is_indexed: bool,
}

impl Part<'_> {
    /// False for what only the API server sets: the status and most of the metadata.
    fn is_in_manifest(&self) -> bool {
        match self.fields.as_slice() {
            ["status", ..] => false,
            ["metadata", field, ..] => matches!(*field, "annotations" | "labels" | "name"),
            _ => true,
        }
    }
}

/// Parses any number of `.field`, `[index]` and `["key"]`.
fn pass_place<'a>(cursor: &mut Cursor<'a>) -> Part<'a> {
    let mut part = Part::default();
    loop {
        let mut ahead = *cursor;
        if let Some(index) = ahead.group(Delimiter::Bracket) {
            match index.text().strip_prefix('"') {
                Some(key) => part.fields.push(key.trim_end_matches('"')),
                None => part.is_indexed = true,
            }
        } else if !ahead.is_pair(b'.', b'.') && ahead.eat(b'.') {
            match ahead.any_ident() {
                Some(field) if !ahead.is_group(Delimiter::Paren) && !ahead.is_pair(b':', b':') => {
                    part.fields.push(field.text);
                }
                _ => return part,
            }
        } else {
            return part;
        }
        *cursor = ahead;
    }
}

fn is_assigned(cursor: Cursor<'_>) -> bool {
    let is_plain = cursor.is_punct(b'=') && !cursor.is_pair(b'=', b'=') && !cursor.is_pair(b'=', b'>');
    is_plain || b"+-|&".iter().any(|sign| cursor.is_pair(*sign, b'='))
}

/// Matches `= function(variable`, which assigns the modified value back to the variable.
fn is_result_of(mut cursor: Cursor<'_>, variable: &str) -> bool {
    cursor.eat(b'=');
    while cursor.any_ident().is_some() && cursor.eat_pair(b':', b':') {}
    cursor.group(Delimiter::Paren).is_some_and(|mut arguments| {
        arguments.eat_word(variable) && (arguments.is_end() || arguments.is_punct(b','))
    })
}
