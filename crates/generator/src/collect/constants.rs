//! Constants in attributes of schemars and validators, such as `range(max = MAX)` or
//! `regex(path = *NAME)`.
//!
//! The constants of an item may not have been read yet when the item is parsed. Such items are
//! parsed again at the end, when the values are known, and the new diagnostics replace those of the
//! first pass.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use rbuilder_reader::cfg::Cfg;
use rbuilder_reader::grammar::{Item, ItemKind, Items};
use rbuilder_reader::token::{Cursor, LiteralKind, lex, text_value};
use rbuilder_reader::{Expr, ExprKind};
use rbuilder_syntax::{ModuleVersion, Session, parse_type};
use serde_json::Value;

use super::Collector;
use super::macro_call::Wrapped;
use super::renamed::RenamedDerives;
use crate::advice;
use crate::defaults::{bound, calculate};
use crate::package::{ModuleId, TypeId, ValueId};
use crate::resolve::{ValueTarget, find_value};

/// Constants can refer to other constants, or to themselves in code that doesn't compile.
const MAX_DEPTH: usize = 32;

/// Maximum number of constants evaluated for one item. A constant can mention another one twice, so
/// the number can grow exponentially.
const MAX_STEPS: usize = 1000;

/// Maximum number of bytes lexed again, for all items together.
const MAX_BYTES: usize = 256 << 20;

pub(super) struct Deferred {
    pub(super) id: TypeId,
    /// The item with its attributes, and the offset where it starts.
    pub(super) text: String,
    pub(super) start: u32,
    pub(super) cfg: Rc<Cfg>,
    pub(super) version: Option<ModuleVersion>,
    pub(super) renamed: RenamedDerives,
    pub(super) wrapped: Option<Wrapped>,
    /// As written, e.g. `limits::MAX`.
    pub(super) constants: BTreeSet<String>,
    /// The diagnostics of the first pass, as a range in those of the type.
    pub(super) said: Range<usize>,
}

impl Collector<'_> {
    pub(super) fn resolve_constants(&mut self) {
        let mut left = MAX_BYTES;
        for deferred in std::mem::take(&mut self.deferred) {
            let bytes = deferred.start as usize + deferred.text.len();
            let Some(rest) = left.checked_sub(bytes) else {
                return;
            };
            left = rest;
            if let Some(said) = self.read_again(&deferred) {
                let known = &mut self.package.types[deferred.id.0].reserved;
                known.splice(deferred.said, said);
                if let Some(wrapped) = &deferred.wrapped {
                    wrapped.place_within(&mut self.package.types[deferred.id.0]);
                }
            }
        }
    }

    /// Returns the new diagnostics, or `None` if none of the values is known.
    fn read_again(&mut self, deferred: &Deferred) -> Option<Vec<rbuilder_syntax::Diagnostic>> {
        let module = self.package.item(deferred.id).module;
        let mut known = BTreeMap::new();
        let steps = &Cell::new(0);
        for path in &deferred.constants {
            let names: Vec<&str> = path.split("::").map(str::trim).collect();
            if let Some(value) = self.constant(module, &names, 0, steps) {
                known.insert(path.clone(), value);
            }
        }
        if known.is_empty() {
            return None;
        }
        // Keep the item at its original offset so that spans point into the real file.
        let mut text = " ".repeat(deferred.start as usize);
        text.push_str(&deferred.text);
        let tokens = lex(&text).ok()?;
        let mut items = Items::new(tokens.cursor(), Some(&deferred.cfg));
        let Item {
            mut attrs,
            kind: ItemKind::Type(item),
            ..
        } = items.read().ok()??
        else {
            return None;
        };
        deferred.renamed.add_to(&mut attrs);
        let mut session = Session::with_constants(known);
        session.set_module_version(deferred.version.clone());
        let model = parse_type(&attrs, item, &mut session);
        self.package.types[deferred.id.0].model = model;
        let mut said = session.diagnostics.into_vec();
        for diagnostic in &mut said {
            diagnostic.help = diagnostic.help.take().map(|help| advice::for_type(&help, false));
        }
        Some(said)
    }

    /// For a regular expression, returns the pattern.
    fn constant(&self, module: ModuleId, names: &[&str], depth: usize, steps: &Cell<usize>) -> Option<Value> {
        let segments: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let id = match find_value(&self.package, module, &segments) {
            Some(ValueTarget::Value(id)) => id,
            Some(ValueTarget::Of(owner, name)) => {
                let mut known = self.package.associated.iter();
                let found = known.find(|known| {
                    known.name == name
                        && super::reach::is_owner(&self.package, &known.self_type, known.module, &owner)
                });
                found?.value
            }
            _ => return bound(names),
        };
        self.value_of(id, depth, steps)
    }

    fn value_of(&self, id: ValueId, depth: usize, steps: &Cell<usize>) -> Option<Value> {
        steps.set(steps.get() + 1);
        if depth > MAX_DEPTH || steps.get() > MAX_STEPS {
            return None;
        }
        let value = &self.package.values[id.0];
        let tokens = lex(&value.body).ok()?;
        let mut cursor = tokens.cursor();
        let expr = Expr::read(&mut cursor).ok();
        let read = expr
            .filter(|_| cursor.is_end())
            .and_then(|expr| self.evaluate(&expr, value.module, depth, steps));
        // Not a constant expression, but it may be a `LazyLock` around `Regex::new("…")`.
        read.or_else(|| find_pattern(tokens.cursor()).map(Value::String))
    }

    fn evaluate(
        &self,
        expr: &Expr<'_>,
        module: ModuleId,
        depth: usize,
        steps: &Cell<usize>,
    ) -> Option<Value> {
        match &expr.kind {
            ExprKind::Literal(value) => Some(value.clone()),
            ExprKind::Path(names) => self.constant(module, names, depth + 1, steps),
            ExprKind::Negative(inner) => calculate(
                &0.into(),
                rbuilder_reader::Operator::Sub,
                &self.evaluate(inner, module, depth, steps)?,
            ),
            ExprKind::Binary(left, operator, right) => {
                let (left, right) = (
                    self.evaluate(left, module, depth, steps)?,
                    self.evaluate(right, module, depth, steps)?,
                );
                calculate(&left, *operator, &right)
            }
            _ => None,
        }
    }
}

/// Returns the pattern of `Regex::new("…")` if there is exactly one such call.
fn find_pattern(cursor: Cursor<'_>) -> Option<String> {
    let mut found = Vec::new();
    add_patterns(cursor, &mut found);
    match found.as_slice() {
        [Some(only)] => Some(only.clone()),
        _ => None,
    }
}

fn add_patterns(mut cursor: Cursor<'_>, found: &mut Vec<Option<String>>) {
    while !cursor.is_end() {
        let mut ahead = cursor;
        if ahead.eat_word("Regex") && ahead.eat_pair(b':', b':') && ahead.eat_word("new") {
            cursor = ahead;
            if let Some(mut args) = cursor.any_group() {
                found.push(read_text(&mut args));
            }
        } else if let Some(inner) = ahead_group(&mut cursor) {
            add_patterns(inner, found);
        }
    }
}

/// Supports a single string literal, or a `concat!` of them.
fn read_text(args: &mut Cursor<'_>) -> Option<String> {
    let mut text = String::new();
    if args.eat_word("concat") && args.eat(b'!') {
        let mut parts = args.any_group()?;
        while !parts.is_end() {
            text.push_str(&literal_text(&mut parts)?);
            parts.eat(b',');
        }
    } else {
        text = literal_text(args)?;
    }
    args.eat(b',');
    args.is_end().then_some(text)
}

fn literal_text(cursor: &mut Cursor<'_>) -> Option<String> {
    let (_, text) = cursor.literal().filter(|(kind, _)| *kind == LiteralKind::Text)?;
    text_value(text).map(std::borrow::Cow::into_owned)
}

fn ahead_group<'a>(cursor: &mut Cursor<'a>) -> Option<Cursor<'a>> {
    let inner = cursor.any_group();
    if inner.is_none() {
        cursor.skip();
    }
    inner
}
