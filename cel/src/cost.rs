//! What a rule costs at the most, in the API server's own units.
//!
//! The rules are those of cel-go's `checker/cost.go` with Kubernetes' additions (`apiserver/pkg/cel/library/cost.go`):
//! a value costs what its size says, and its size is bounded by the schema or else by the largest request.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{ACCUMULATOR, Expr, Fold, Kind, Literal};
use super::check::Checked;
use super::types::{Decl, Type};

/// Reading a variable or a field.
const READ: u64 = 1;
const NEW_LIST: u64 = 10;
const NEW_MAP: u64 = 30;

mod price;

use price::{Call, Price};

/// From least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    least: u64,
    pub(crate) most: u64,
}

const UNKNOWN: Span = Span {
    least: 0,
    most: u64::MAX,
};

impl Span {
    fn exactly(value: u64) -> Span {
        Span {
            least: value,
            most: value,
        }
    }

    fn up_to(most: u64) -> Span {
        Span { least: 0, most }
    }

    fn plus(self, other: Span) -> Span {
        Span {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    fn times(self, other: Span) -> Span {
        Span {
            least: self.least.saturating_mul(other.least),
            most: self.most.saturating_mul(other.most),
        }
    }

    /// Times a factor, rounded up.
    fn by(self, factor: f64) -> Span {
        // A conversion from a float stops at the largest number by itself.
        let scale = |value: u64| (value as f64 * factor).ceil() as u64;
        Span {
            least: scale(self.least),
            most: scale(self.most),
        }
    }

    fn or(self, other: Span) -> Span {
        Span {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

/// The sizes of keys and values of a list or map made in the expression.
#[derive(Clone, Copy)]
struct Entries {
    is_list: bool,
    key: Span,
    value: Span,
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

/// How a value is reached from `self`; empty for what is not reached from there.
///
/// The API server keeps these in slices of Go and lets slices share their memory, so that a longer path can
/// overwrite the end of another: of `o.tags` and `o.key`, both read off `o`, the one that is read first may later be
/// taken for the other. Its verdicts come from that, so ours must: `push` does what `append` does.
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

/// What is known of a variable of a loop.
struct Local {
    path: Path,
    size: Option<Span>,
    entries: Option<Entries>,
}

/// The most that the expression can cost when run once.
pub(crate) fn estimate(root: &Expr, checked: &Checked, decl: &Arc<Decl>) -> u64 {
    let mut estimator = Estimator {
        checked,
        decl,
        locals: BTreeMap::new(),
        paths: vec![Path::default(); checked.types.len()],
        sizes: vec![None; checked.types.len()],
        entries: vec![None; checked.types.len()],
    };
    estimator.cost(root).most
}

struct Estimator<'e> {
    checked: &'e Checked,
    decl: &'e Arc<Decl>,
    locals: BTreeMap<String, Vec<Local>>,
    /// How each node is reached.
    paths: Vec<Path>,
    sizes: Vec<Option<Span>>,
    entries: Vec<Option<Entries>>,
}

impl Estimator<'_> {
    fn cost(&mut self, expr: &Expr) -> Span {
        match &expr.kind {
            Kind::Literal(_) | Kind::Message(_) => Span::exactly(0),
            Kind::Ident(name) => {
                self.paths[expr.id] = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => Path::default().push(name),
                };
                Span::exactly(READ)
            }
            Kind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            Kind::Call {
                function,
                target,
                args,
            } => self.call(expr, function, target.as_deref(), args),
            Kind::List(items) => {
                let mut sum = Span::exactly(NEW_LIST);
                let mut value = None;
                for (item, _) in items {
                    sum = sum.plus(self.cost(item));
                    value = join(value, self.size(item));
                }
                self.entries[expr.id] = Some(Entries {
                    is_list: true,
                    key: Span::exactly(1),
                    value: value.unwrap_or(Span::exactly(0)),
                });
                sum
            }
            Kind::Map(pairs) => {
                let mut sum = Span::exactly(NEW_MAP);
                let (mut keys, mut values) = (None, None);
                for (key, value, _) in pairs {
                    sum = sum.plus(self.cost(key)).plus(self.cost(value));
                    keys = join(keys, self.size(key));
                    values = join(values, self.size(value));
                }
                self.entries[expr.id] = Some(Entries {
                    is_list: false,
                    key: keys.unwrap_or(Span::exactly(0)),
                    value: values.unwrap_or(Span::exactly(0)),
                });
                sum
            }
            Kind::Fold(fold) => self.fold(expr, fold),
            Kind::Bind { name, value, body } => {
                // The empty list that the binding is written with costs too.
                let sum = Span::exactly(NEW_LIST).plus(self.cost(value));
                self.bind(name, value);
                let sum = sum.plus(self.cost(body));
                self.unbind(name);
                self.sizes[expr.id] = self.known_size(body);
                self.entries[expr.id] = self.entries_of(body);
                sum
            }
        }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &str, test: bool) -> Span {
        let cost = self.cost(operand);
        if test {
            return cost;
        }
        self.paths[expr.id] = self.path(operand).push(field);
        match self.ty(operand) {
            Type::Map(..) | Type::Object(_) | Type::Variable(_) => cost.plus(Span::exactly(READ)),
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

    /// The size of the value that a path leads to.
    fn declared(&self, path: &Path) -> Option<Span> {
        if path.is_empty() {
            return None;
        }
        let mut decl = self.decl.clone();
        for step in path.steps().iter().skip(1) {
            decl = decl.step(step)?;
        }
        Some(Span::up_to(decl.most))
    }

    fn known_size(&mut self, expr: &Expr) -> Option<Span> {
        if let Some(size) = self.sizes[expr.id] {
            return Some(size);
        }
        if let Some(size) = written_size(expr) {
            return Some(Span::exactly(size));
        }
        if let Some(size) = self.declared(&self.path(expr)) {
            self.sizes[expr.id] = Some(size);
            return Some(size);
        }
        if is_scalar(self.ty(expr)) {
            return Some(Span::exactly(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size(&mut self, expr: &Expr) -> Span {
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

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Span {
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

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Span {
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.cost(arg).plus(Span::exactly(1));
            self.sizes[expr.id] = self.known_size(arg);
            self.entries[expr.id] = self.entries_of(arg);
            return cost;
        }
        // Sizes are asked for at once, while the path that leads to them is what it is.
        let mut costs = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(arg));
            self.known_size(arg);
        }
        let of_args = costs.iter().fold(Span::exactly(0), |sum, cost| sum.plus(*cost));
        let mut of_target = Span::exactly(0);
        if let Some(target) = target {
            of_target = self.cost(target);
            self.known_size(target);
        }
        if function == "_?._" {
            return of_args.plus(Span::exactly(1));
        }
        let overloads = &self.checked.overloads[expr.id];
        let (mut least, mut most, mut result) = (u64::MAX, 0, None);
        for overload in overloads {
            let call = Call {
                expr,
                function,
                wanted: &overload.args,
                target,
                args,
                costs: &costs,
            };
            let (cost, size) = match self.priced(&call) {
                // These know what their arguments cost.
                Some(Price::Whole(cost, size)) => (cost, size),
                Some(Price::Own(cost, size)) => (cost.plus(of_args), size),
                None => (of_args.plus(Span::exactly(1)), None),
            };
            (least, most) = (least.min(cost.least), most.max(cost.most));
            result = match (result, size) {
                (Some(a), Some(b)) => Some(Span::or(a, b)),
                (a, b) => a.or(b),
            };
            self.index(&call, &mut result);
            result = result.or_else(|| self.known_size(expr));
        }
        if result.is_some() {
            self.sizes[expr.id] = result;
        }
        of_target.plus(Span {
            least: least.min(most),
            most,
        })
    }

    /// `list[1]` and `map['a']` lead to values that the schema knows.
    fn index(&mut self, call: &Call<'_>, result: &mut Option<Span>) {
        let step = match (call.function, call.wanted.first()) {
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

fn join(joined: Option<Span>, size: Span) -> Option<Span> {
    Some(joined.map_or(size, |joined| Span::or(joined, size)))
}

/// The size of what is written out.
fn written_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        Kind::Literal(Literal::String(text)) => text.chars().count() as u64,
        Kind::Literal(Literal::Bytes(count)) => *count as u64,
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
