//! Estimates the maximum cost of an expression, in the API server's units.
//!
//! Follows cel-go's `checker/cost.go` and Kubernetes' additions in
//! `apiserver/pkg/cel/library/cost.go`. Costs grow with the sizes of the operands, which are
//! limited by the schema, or else by the maximum request size.
//!
//! For example, take `self.names.exists(n, n == self.name)`, where `names` has at most 10 items of
//! up to 20 characters and `name` has up to 63 characters. The macro expands to a loop (see
//! `macros`) with these costs:
//!
//! | part | cost |
//! |---|---|
//! | the range, `self.names`: a variable and a field | 1 + 1 |
//! | each round, the condition `@not_strictly_false(!@result)`: a variable and two calls | 1 + 1 + 1 |
//! | each round, `@result \|\| n == self.name`: `@result`, `n`, `self.name` | 1 + 1 + 2 |
//! | each round, `==`: 0.1 per byte of the shorter string, here 20 · 4 of at most 63 · 4 bytes | 8 |
//! | the result, `@result` | 1 |
//!
//! The total is 2 + 10 · (3 + 4 + 8) + 1 = 153, same as the API server's estimate
//! (`tests/recorded.jsonl`).
//!
//! Counting nodes and iterations alone isn't enough. The cost of `==` depends on the size of `n`,
//! which is only known because `n` is an item of `self.names`. Hence the estimator tracks the path
//! of each value (`self`, `names`, `@items`) and looks up its size in the schema. Without
//! `max_items`, the list is only limited by the request size of 3 MiB, to (3 · 2²⁰ − 2) / 3 =
//! 1,048,575 items. The rule then costs 34,602,978, which exceeds the budget.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{ACCUMULATOR, Expr, Fold, Kind, Literal};
use super::check::{self, Checked};
use super::types::{Decl, Type};

const READ: u64 = 1;
const NEW_LIST: u64 = 10;
const NEW_MAP: u64 = 30;

mod price;

use price::{Call, Price};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    min: u64,
    pub(crate) max: u64,
}

/// For values that the schema doesn't bound.
const UNKNOWN: Estimate = Estimate {
    min: 0,
    max: u64::MAX,
};

impl Estimate {
    fn exactly(value: u64) -> Estimate {
        Estimate {
            min: value,
            max: value,
        }
    }

    fn up_to(max: u64) -> Estimate {
        Estimate { min: 0, max }
    }

    fn between(min: u64, max: u64) -> Estimate {
        Estimate { min, max }
    }

    fn plus(self, other: Estimate) -> Estimate {
        Estimate {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    fn times(self, other: Estimate) -> Estimate {
        Estimate {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    fn scaled(self, factor: f64) -> Estimate {
        // `as` saturates, so infinity becomes `u64::MAX`.
        let scale = |value: u64| (value as f64 * factor).ceil() as u64;
        Estimate {
            min: scale(self.min),
            max: scale(self.max),
        }
    }

    fn or(self, other: Estimate) -> Estimate {
        Estimate {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// Sizes of the keys and values of a list or map created by the expression itself.
#[derive(Clone, Copy)]
struct Entries {
    is_list: bool,
    key: Estimate,
    value: Estimate,
}

impl Entries {
    fn or(self, other: Entries) -> Entries {
        Entries {
            is_list: self.is_list,
            key: self.key.or(other.key),
            value: self.value.or(other.value),
        }
    }
}

/// The path from a variable to a value. Empty for computed values.
///
/// The API server keeps paths in Go slices. Slices can share memory, so appending to one path may
/// overwrite the end of another, which affects the estimates. To match them, [`push`](Path::push)
/// behaves like Go's `append`. In
///
/// ```text
/// self.objects.all(o, o.tags.all(t, t != o.key))
/// ```
///
/// the path of `o` is `self`, `objects`, `@items`: three steps in an array with capacity four,
/// since Go doubles the capacity. `o.tags` writes `tags` to the fourth element, which `o.key` then
/// overwrites with `key`. When the inner loop finally looks up the size of its range, the path
/// reads `objects[].key`, a string of at most 40 bytes, instead of `objects[].tags`, a list of at
/// most 5 items. The estimate is 2611; with `self.name` in place of `o.key`, it's 371.
#[derive(Clone, Default)]
struct Path {
    steps: Rc<RefCell<Vec<String>>>,
    length: usize,
    capacity: usize,
}

impl Path {
    fn push(&self, step: &str) -> Path {
        let step = step.to_owned();
        if self.length < self.capacity {
            let mut steps = self.steps.borrow_mut();
            match steps.get_mut(self.length) {
                Some(old) => *old = step,
                None => steps.push(step),
            }
            drop(steps);
            return Path {
                length: self.length + 1,
                ..self.clone()
            };
        }
        let mut steps = self.steps();
        steps.push(step);
        Path {
            steps: Rc::new(RefCell::new(steps)),
            length: self.length + 1,
            capacity: (self.capacity * 2).max(1),
        }
    }

    fn steps(&self) -> Vec<String> {
        self.steps.borrow().iter().take(self.length).cloned().collect()
    }

    fn is_empty(&self) -> bool {
        self.length == 0
    }
}

struct Local {
    path: Path,
    size: Option<Estimate>,
    entries: Option<Entries>,
}

pub(crate) fn estimate_cost(root: &Expr, checked: &Checked, decl: &Arc<Decl>) -> u64 {
    let mut estimator = Estimator {
        checked,
        decl,
        locals: BTreeMap::new(),
        paths: vec![Path::default(); checked.types.len()],
        sizes: vec![None; checked.types.len()],
        entries: vec![None; checked.types.len()],
    };
    estimator.cost(root).max
}

struct Estimator<'e> {
    checked: &'e Checked,
    decl: &'e Arc<Decl>,
    locals: BTreeMap<String, Vec<Local>>,
    paths: Vec<Path>,
    sizes: Vec<Option<Estimate>>,
    entries: Vec<Option<Entries>>,
}

impl Estimator<'_> {
    fn cost(&mut self, expr: &Expr) -> Estimate {
        match &expr.kind {
            Kind::Literal(_) => Estimate::exactly(0),
            Kind::Message(_) => Estimate::exactly(40),
            Kind::Ident(name) => {
                self.paths[expr.id] = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => Path::default().push(name),
                };
                Estimate::exactly(READ)
            }
            Kind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            Kind::Call {
                function,
                target,
                args,
            } => self.call(expr, function, target.as_deref(), args),
            Kind::List(items) => {
                let mut sum = Estimate::exactly(NEW_LIST);
                let mut value = None;
                for (item, _) in items {
                    sum = sum.plus(self.cost(item));
                    value = join(value, self.size(item));
                }
                self.entries[expr.id] = Some(Entries {
                    is_list: true,
                    key: Estimate::exactly(1),
                    value: value.unwrap_or(Estimate::exactly(0)),
                });
                sum
            }
            Kind::Map(pairs) => {
                let mut sum = Estimate::exactly(NEW_MAP);
                let (mut keys, mut values) = (None, None);
                for (key, value, _) in pairs {
                    sum = sum.plus(self.cost(key)).plus(self.cost(value));
                    keys = join(keys, self.size(key));
                    values = join(values, self.size(value));
                }
                self.entries[expr.id] = Some(Entries {
                    is_list: false,
                    key: keys.unwrap_or(Estimate::exactly(0)),
                    value: values.unwrap_or(Estimate::exactly(0)),
                });
                sum
            }
            Kind::Fold(fold) => self.fold(expr, fold),
            Kind::Bind { name, value, body } => {
                // cel-go binds variables with a loop over an empty list, so include the cost of
                // that list.
                let sum = Estimate::exactly(NEW_LIST).plus(self.cost(value));
                self.bind(name, value);
                let sum = sum.plus(self.cost(body));
                self.unbind(name);
                self.sizes[expr.id] = self.known_size(body);
                self.entries[expr.id] = self.entries_of(body);
                sum
            }
        }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &str, test: bool) -> Estimate {
        // A type name is a single variable, even if it contains dots.
        if *self.ty(expr) == Type::Kind
            && let Some(name) = check::path(expr)
        {
            self.paths[expr.id] = Path::default().push(&name);
            return Estimate::exactly(READ);
        }
        let cost = self.cost(operand);
        if test {
            return cost;
        }
        self.paths[expr.id] = self.path(operand).push(field);
        match self.ty(operand) {
            Type::Map(..) | Type::Object(_) | Type::Variable(_) => cost.plus(Estimate::exactly(READ)),
            _ => cost,
        }
    }

    fn ty(&self, expr: &Expr) -> &Type {
        &self.checked.types[expr.id]
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name)?.last()
    }

    fn push(&mut self, name: &str, local: Local) {
        self.locals.entry(name.to_owned()).or_default().push(local);
    }

    fn bind(&mut self, name: &str, value: &Expr) {
        let local = Local {
            path: self.path(value),
            size: self.known_size(value),
            entries: self.entries_of(value),
        };
        self.push(name, local);
    }

    fn unbind(&mut self, name: &str) {
        if let Some(stack) = self.locals.get_mut(name) {
            stack.pop();
        }
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths[expr.id].clone()
    }

    fn declared_size(&self, path: &Path) -> Option<Estimate> {
        if path.is_empty() {
            return None;
        }
        let mut decl = self.decl.clone();
        for step in path.steps().iter().skip(1) {
            decl = decl.step(step)?;
        }
        Some(Estimate::up_to(decl.max_size))
    }

    fn known_size(&mut self, expr: &Expr) -> Option<Estimate> {
        if let Some(size) = self.sizes[expr.id] {
            return Some(size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(Estimate::exactly(size));
        }
        if let Some(size) = self.declared_size(&self.path(expr)) {
            self.sizes[expr.id] = Some(size);
            return Some(size);
        }
        if is_scalar(self.ty(expr)) {
            return Some(Estimate::exactly(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size(&mut self, expr: &Expr) -> Estimate {
        self.known_size(expr).unwrap_or(UNKNOWN)
    }

    fn entries_of(&self, expr: &Expr) -> Option<Entries> {
        if let Some(entries) = self.entries[expr.id] {
            return Some(entries);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Estimate {
        let sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.bind(ACCUMULATOR, &fold.init);
        let entries = self.entries_of(&fold.range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.ty(&fold.range), Type::List(_)),
        };
        let (keys, values) = (
            entries.map(|entries| entries.key),
            entries.map(|entries| entries.value),
        );
        let path = self.path(&fold.range);
        let variable = |this: &mut Self, name: &str, step: &str, size| {
            let path = path.push(step);
            this.push(
                name,
                Local {
                    path,
                    size,
                    entries: None,
                },
            );
        };
        match (&fold.second, is_list) {
            (Some(second), true) => {
                variable(self, &fold.variable, "@indices", keys);
                variable(self, second, "@items", values);
            }
            (Some(second), false) => {
                variable(self, &fold.variable, "@keys", keys);
                variable(self, second, "@values", values);
            }
            (None, true) => variable(self, &fold.variable, "@items", values),
            (None, false) => variable(self, &fold.variable, "@keys", keys),
        }
        let round = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.unbind(&fold.variable);
        if let Some(second) = &fold.second {
            self.unbind(second);
        }
        let sum = sum.plus(self.cost(&fold.result));
        self.unbind(ACCUMULATOR);
        // The size must come last, because an iteration may have overwritten the path of the range
        // (see `Path`).
        let rounds = self.size(&fold.range);
        match fold.init.kind {
            Kind::Literal(_) => self.sizes[expr.id] = self.known_size(&fold.init),
            _ => {
                self.sizes[expr.id] = Some(rounds);
                self.entries[expr.id] = self.entries_of(&fold.step);
            }
        }
        sum.plus(rounds.times(round))
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Estimate {
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.cost(arg).plus(Estimate::exactly(1));
            self.sizes[expr.id] = self.known_size(arg);
            self.entries[expr.id] = self.entries_of(arg);
            return cost;
        }
        // Look up each size immediately, before the next argument can overwrite the path (see
        // `Path`).
        let mut costs = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(arg));
            self.known_size(arg);
        }
        let of_args = costs
            .iter()
            .fold(Estimate::exactly(0), |sum, cost| sum.plus(*cost));
        let mut of_target = Estimate::exactly(0);
        if let Some(target) = target {
            of_target = self.cost(target);
            self.known_size(target);
        }
        if function == "_?._" {
            return of_args.plus(Estimate::exactly(1));
        }
        let overloads = &self.checked.overloads[expr.id];
        let (mut min, mut max, mut result) = (u64::MAX, 0, None);
        for overload in overloads {
            let call = Call {
                expr,
                function,
                parameters: &overload.args,
                target,
                args,
                costs: &costs,
            };
            let (cost, size) = match self.price_call(&call) {
                Some(Price::Whole(cost, size)) => (cost, size),
                Some(Price::Own(cost, size)) => (cost.plus(of_args), size),
                None => (of_args.plus(Estimate::exactly(1)), None),
            };
            (min, max) = (min.min(cost.min), max.max(cost.max));
            result = match (result, size) {
                (Some(a), Some(b)) => Some(Estimate::or(a, b)),
                (a, b) => a.or(b),
            };
            self.note_index(&call, &mut result);
            result = result.or_else(|| self.known_size(expr));
        }
        if result.is_some() {
            self.sizes[expr.id] = result;
        }
        of_target.plus(Estimate {
            min: min.min(max),
            max,
        })
    }

    fn note_index(&mut self, call: &Call<'_>, result: &mut Option<Estimate>) {
        let step = match (call.function, call.parameters.first()) {
            ("_[_]", Some(Type::List(_))) => "@items",
            ("_[_]", Some(Type::Map(..))) => "@values",
            _ => return,
        };
        let Some(container) = call.args.first() else {
            return;
        };
        *result = self.entries_of(container).map(|entries| entries.value);
        self.paths[call.expr.id] = self.path(container).push(step);
    }
}

fn join(joined: Option<Estimate>, size: Estimate) -> Option<Estimate> {
    Some(joined.map_or(size, |joined| Estimate::or(joined, size)))
}

fn literal_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        Kind::Literal(Literal::String(string)) => string.chars().count() as u64,
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Kind::Literal(_) => 1,
        Kind::List(items) => items.len() as u64,
        Kind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
