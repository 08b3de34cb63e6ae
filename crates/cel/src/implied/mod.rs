//! Whether a rule follows from other ones, and from what is known about values: no value that
//! satisfies them violates it.
//!
//! Rules are read as formulas about what they ask of a value: whether fields are present, which of the
//! mentioned constants an expression equals, and what is true of a list's items. Everything else is a
//! term of which we only know that it is the same wherever it is written the same way. So there are
//! more states than values, and a rule that holds in every state that satisfies the others holds for
//! every value. The reverse isn't true.

mod search;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::search::Search;
use self::text::text;
use super::ast::{ACCUMULATOR, Expr, Fold, Kind, Literal};
use super::outline::optional_select;
use super::parser::parse_expression;

/// What is known about the values that a rule is evaluated for. Paths are names of fields below `self`
/// and `oldSelf`, as the rule spells them.
pub trait Facts {
    /// Whether a field is absent.
    fn is_absent(&self, path: &[&str]) -> bool;

    /// Whether a field, and all fields above it, have a value other than null.
    fn is_present(&self, path: &[&str]) -> bool;

    /// Whether a field that is present never has this value.
    fn is_excluded(&self, path: &[&str], value: &Value) -> bool;
}

/// Returns true if a rule certainly holds for every value that satisfies the `former` rules and the
/// facts. Rules that don't parse and rules about `oldSelf` among the former are ignored.
pub fn follows_from<'r>(rule: &str, former: impl IntoIterator<Item = &'r str>, facts: &dyn Facts) -> bool {
    let Ok(parsed) = parse_expression(rule) else {
        return false;
    };
    let mut model = Model::new(facts);
    let goal = model.read(&parsed.root, &Place::Whole { goal: true });
    let former = former.into_iter().filter_map(|text| parse_expression(text).ok());
    let mut unread: Vec<_> = former.collect();
    let mut premises = Vec::new();
    // A rule about other things says nothing here. One that is about the same may add terms, which
    // others are about.
    loop {
        let before = premises.len();
        unread.retain(|parsed| match model.with_premise(&parsed.root) {
            Some((longer, premise)) => {
                model = longer;
                premises.push(premise);
                false
            }
            None => true,
        });
        if premises.len() == before {
            return Search::new(&model).holds(&goal, &premises);
        }
    }
}

#[derive(Clone, Debug)]
enum Formula {
    Known(bool),
    Not(Box<Formula>),
    /// True if any (or, if the flag is unset, all) of them are, whatever errors the others are.
    Logic(bool, Vec<Formula>),
    If(Box<[Formula; 3]>),
    /// Whether a field is present.
    Has(usize),
    /// Whether an optional that selects a field of an object has a value.
    HasValue {
        field: usize,
        object: usize,
    },
    /// A term that is a truth value itself.
    Holds(usize),
    /// Whether a term equals one of these constants.
    Is(usize, Vec<Value>),
    /// `all` or `exists` in the rule in question. The result is that of the body for one of the items,
    /// the deciding one: e.g. for `all`, one for which the body is false, if there is any.
    Items {
        list: List,
        is_exists: bool,
        body: Box<Formula>,
    },
    /// `all` or `exists` in a former rule, with its body for each of the deciding items of the rule in
    /// question.
    FormerItems {
        list: List,
        value: usize,
        is_exists: bool,
        bodies: Vec<Formula>,
    },
}

/// The list of a quantifier.
#[derive(Clone, Copy, Debug)]
struct List {
    term: usize,
    is_empty: usize,
}

/// Something about which rules ask. In state 0, it is absent or an error; in state 1, none of the
/// constants; in state `2 + n`, the constant `n`.
#[derive(Clone, Debug)]
struct Term {
    /// The object that has to be present. Only fields have one.
    parent: Option<usize>,
    constants: Vec<Value>,
    is_absent: bool,
    is_present: bool,
    /// Has no state but the constants and the error.
    is_bool: bool,
    /// Names of fields below `self`, about which there are facts.
    path: Option<Vec<String>>,
}

/// Where an expression is.
enum Place<'a> {
    Whole {
        /// Whether it's the rule in question, rather than a former one.
        goal: bool,
    },
    /// In the body of a quantifier over a list, whose variable stands for a deciding item.
    Item { variable: &'a str, item: &'a str },
}

#[derive(Clone)]
struct Model<'f> {
    facts: &'f dyn Facts,
    terms: Vec<Term>,
    /// Terms by their text.
    names: BTreeMap<String, usize>,
    /// The list, and the name, of each deciding item of the rule in question.
    items: Vec<(String, String)>,
    mentions_old: bool,
}

impl<'f> Model<'f> {
    fn new(facts: &'f dyn Facts) -> Self {
        Self {
            facts,
            terms: Vec::new(),
            names: BTreeMap::new(),
            items: Vec::new(),
            mentions_old: false,
        }
    }

    /// Adds a former rule, if it says something about the present terms.
    fn with_premise(&self, rule: &Expr) -> Option<(Self, Formula)> {
        let mut longer = self.clone();
        longer.mentions_old = false;
        let premise = longer.read(rule, &Place::Whole { goal: false });
        let is_useful = longer.uses_term_before(&premise, self.terms.len());
        (is_useful && !longer.mentions_old).then_some((longer, premise))
    }

    fn read(&mut self, expr: &Expr, place: &Place<'_>) -> Formula {
        match &expr.kind {
            Kind::Literal(Literal::Bool(value)) => Formula::Known(*value),
            Kind::Select { test: true, .. } => match (self.optional(expr, place), self.field(expr, place)) {
                (Some(has_value), _) => has_value,
                (None, Some(term)) => Formula::Has(term),
                (None, None) => self.truth(expr, place),
            },
            Kind::Call {
                function,
                target: Some(target),
                args,
            } => match (function.as_str(), self.optional(target, place), args.as_slice()) {
                ("hasValue", Some(has_value), []) => has_value,
                ("orValue", Some(has_value), [other]) => {
                    let value = self.truth(target, place);
                    Formula::If(Box::new([has_value, value, self.read(other, place)]))
                }
                _ => self.truth(expr, place),
            },
            Kind::Call { function, args, .. } => match (function.as_str(), args.as_slice()) {
                ("_&&_", args) => Formula::Logic(false, self.read_all(args, place)),
                ("_||_", args) => Formula::Logic(true, self.read_all(args, place)),
                ("!_", [arg]) => Formula::Not(Box::new(self.read(arg, place))),
                ("_?_:_", [condition, yes, no]) => {
                    let mut part = |expr| self.read(expr, place);
                    Formula::If(Box::new([part(condition), part(yes), part(no)]))
                }
                ("_==_" | "_!=_", [left, right]) => match self.equality(left, right, place) {
                    Some(equal) if function == "_!=_" => Formula::Not(Box::new(equal)),
                    Some(equal) => equal,
                    None => self.truth(expr, place),
                },
                ("@in", [item, list]) => self.membership(expr, item, list, place),
                _ => self.truth(expr, place),
            },
            Kind::Fold(fold) => self.quantifier(expr, fold, place),
            _ => self.truth(expr, place),
        }
    }

    fn read_all(&mut self, exprs: &[Expr], place: &Place<'_>) -> Vec<Formula> {
        exprs.iter().map(|expr| self.read(expr, place)).collect()
    }

    fn equality(&mut self, left: &Expr, right: &Expr, place: &Place<'_>) -> Option<Formula> {
        match (constant(left), constant(right)) {
            (None, Some(value)) => Some(self.comparison(left, vec![value], place)),
            (Some(value), None) => Some(self.comparison(right, vec![value], place)),
            _ => None,
        }
    }

    fn membership(&mut self, expr: &Expr, item: &Expr, list: &Expr, place: &Place<'_>) -> Formula {
        let Kind::List(values) = &list.kind else {
            return self.truth(expr, place);
        };
        let constants = values.iter().map(|(value, optional)| match optional {
            false => constant(value),
            true => None,
        });
        match constants.collect::<Option<Vec<Value>>>() {
            Some(values) if constant(item).is_none() => self.comparison(item, values, place),
            _ => self.truth(expr, place),
        }
    }

    fn comparison(&mut self, expr: &Expr, values: Vec<Value>, place: &Place<'_>) -> Formula {
        let term = self.term(expr, place);
        for value in &values {
            self.terms[term].add_constant(value);
        }
        Formula::Is(term, values)
    }

    /// An expression that is true or false, of which nothing else is known.
    fn truth(&mut self, expr: &Expr, place: &Place<'_>) -> Formula {
        let term = self.term(expr, place);
        self.terms[term].become_bool();
        Formula::Holds(term)
    }

    fn quantifier(&mut self, expr: &Expr, fold: &Fold, place: &Place<'_>) -> Formula {
        let (Place::Whole { goal }, Some((is_exists, body))) = (place, quantified(fold)) else {
            return self.truth(expr, place);
        };
        // Without a value, `all` is true of no items.
        let (range, has_value) = match or_empty_list(&fold.range) {
            Some(target) => (target, self.optional(target, place)),
            None => (&fold.range, None),
        };
        let (range, has_value) = match has_value {
            Some(has_value) => (range, has_value),
            None => (&fold.range, Formula::Known(true)),
        };
        let of_items = self.of_items(expr, fold, (range, body), (*goal, is_exists));
        Formula::If(Box::new([has_value, of_items, Formula::Known(!is_exists)]))
    }

    fn of_items(
        &mut self,
        expr: &Expr,
        fold: &Fold,
        (range, body): (&Expr, &Expr),
        (goal, is_exists): (bool, bool),
    ) -> Formula {
        let place = &Place::Whole { goal };
        let term = self.term(range, place);
        let range = text(range, place);
        let is_empty = self.add(format!("{range} is empty"), Term::root());
        self.terms[is_empty].become_bool();
        self.terms[is_empty].is_present = true;
        let list = List { term, is_empty };
        if !goal {
            let value = self.add(text(expr, place), Term::root());
            self.terms[value].become_bool();
            let items = self.items.iter().filter(|(of, _)| *of == range);
            let items: Vec<String> = items.map(|(_, item)| item.clone()).collect();
            let bodies = items.iter().map(|item| self.read_body(fold, body, item));
            return Formula::FormerItems {
                list,
                value,
                is_exists,
                bodies: bodies.collect(),
            };
        }
        let item = format!("@{}", self.items.len());
        self.items.push((range, item.clone()));
        let body = Box::new(self.read_body(fold, body, &item));
        Formula::Items {
            list,
            is_exists,
            body,
        }
    }

    fn read_body(&mut self, fold: &Fold, body: &Expr, item: &str) -> Formula {
        let variable = &fold.variable;
        self.read(body, &Place::Item { variable, item })
    }

    /// The term of an expression: a field if it selects one, otherwise a term by its text.
    fn term(&mut self, expr: &Expr, place: &Place<'_>) -> usize {
        match self.field(expr, place) {
            Some(term) => term,
            None => {
                self.mentions_old |= mentions_old(expr);
                self.add(text(expr, place), Term::root())
            }
        }
    }

    /// Whether an optional such as `self.a.?b.c` has a value.
    fn optional(&mut self, expr: &Expr, place: &Place<'_>) -> Option<Formula> {
        let (operand, name) = match &expr.kind {
            Kind::Select { operand, field, .. } => (&**operand, field.as_str()),
            _ => optional_select(expr)?,
        };
        let (parent, object) = match self.optional(operand, place) {
            Some(Formula::HasValue { field, object }) => (field, object),
            _ if matches!(expr.kind, Kind::Select { .. }) => return None,
            _ => {
                let object = self.field(operand, place)?;
                (object, object)
            }
        };
        let field = self.field_of(parent, name);
        Some(Formula::HasValue { field, object })
    }

    /// The term of `self.a.b`, with or without `has`, and those of the objects around it.
    fn field(&mut self, expr: &Expr, place: &Place<'_>) -> Option<usize> {
        match &expr.kind {
            Kind::Ident(name) => {
                let (name, path) = match (name.as_str(), place) {
                    (name, Place::Item { variable, item }) if name == *variable => (*item, None),
                    ("self", _) => ("self", Some(Vec::new())),
                    ("oldSelf", _) => ("oldSelf", Some(Vec::new())),
                    _ => return None,
                };
                self.mentions_old |= name == "oldSelf";
                let mut root = Term::root();
                root.is_present = true;
                root.path = path;
                Some(self.add(name.to_owned(), root))
            }
            Kind::Select { operand, field, .. } => {
                let parent = self.field(operand, place)?;
                Some(self.field_of(parent, field))
            }
            _ => None,
        }
    }

    fn field_of(&mut self, parent: usize, field: &str) -> usize {
        let path = self.terms[parent].path.as_ref();
        let path = path.map(|path| [&path[..], &[field.to_owned()]].concat());
        let is = |fact: fn(&dyn Facts, &[&str]) -> bool| {
            let names: Option<Vec<&str>> = path.as_deref().map(names);
            names.is_some_and(|names| fact(self.facts, &names))
        };
        let term = Term {
            parent: Some(parent),
            is_absent: is(|facts, names| facts.is_absent(names)),
            is_present: is(|facts, names| facts.is_present(names)),
            ..Term::root()
        };
        self.add(format!("field {parent} {field}"), Term { path, ..term })
    }

    fn add(&mut self, name: String, term: Term) -> usize {
        *self.names.entry(name).or_insert_with(|| {
            self.terms.push(term);
            self.terms.len() - 1
        })
    }

    /// Possible states of a term.
    fn states_of(&self, term: &Term) -> Vec<usize> {
        let excludes = |value: &Value| match &term.path {
            Some(path) if !path.is_empty() => self.facts.is_excluded(&names(path), value),
            _ => false,
        };
        let mut states = Vec::new();
        if !term.is_present {
            states.push(0);
        }
        if !term.is_absent {
            if !term.is_bool {
                states.push(1);
            }
            let constants = term.constants.iter().enumerate();
            states.extend(
                constants
                    .filter(|(_, value)| !excludes(value))
                    .map(|(at, _)| at + 2),
            );
        }
        states
    }

    fn uses_term_before(&self, formula: &Formula, limit: usize) -> bool {
        let uses = |term: usize| {
            let mut term = Some(term);
            while let Some(at) = term {
                // Every rule is about `self`.
                if at < limit && self.terms[at].path.as_ref().is_none_or(|path| !path.is_empty()) {
                    return true;
                }
                term = self.terms[at].parent;
            }
            false
        };
        let any = |formulas: &[Formula]| formulas.iter().any(|part| self.uses_term_before(part, limit));
        match formula {
            Formula::Known(_) => false,
            Formula::Not(part) => self.uses_term_before(part, limit),
            Formula::Logic(_, parts) => any(parts),
            Formula::If(parts) => any(&**parts),
            Formula::Has(term)
            | Formula::HasValue { field: term, .. }
            | Formula::Holds(term)
            | Formula::Is(term, _) => uses(*term),
            Formula::Items { list, body, .. } => uses(list.term) || self.uses_term_before(body, limit),
            Formula::FormerItems {
                list, value, bodies, ..
            } => uses(list.term) || uses(*value) || any(bodies),
        }
    }
}

impl Term {
    fn root() -> Self {
        Term {
            parent: None,
            constants: Vec::new(),
            is_absent: false,
            is_present: false,
            is_bool: false,
            path: None,
        }
    }

    fn become_bool(&mut self) {
        self.is_bool = true;
        self.add_constant(&json!(true));
        self.add_constant(&json!(false));
    }

    fn add_constant(&mut self, value: &Value) {
        if !self.constants.contains(value) {
            self.constants.push(value.clone());
        }
    }
}

/// The body of `all` or `exists`, and whether it's the latter.
fn quantified(fold: &Fold) -> Option<(bool, &Expr)> {
    let Kind::Literal(Literal::Bool(first)) = fold.init.kind else {
        return None;
    };
    let Kind::Call { function, args, .. } = &fold.step.kind else {
        return None;
    };
    let is_accumulator = |expr: &Expr| matches!(&expr.kind, Kind::Ident(name) if name == ACCUMULATOR);
    match (function.as_str(), args.as_slice()) {
        ("_&&_" | "_||_", [so_far, body])
            if is_accumulator(so_far) && is_accumulator(&fold.result) && fold.second.is_none() =>
        {
            let is_exists = function == "_||_";
            (first != is_exists).then_some((is_exists, body))
        }
        _ => None,
    }
}

/// The optional in `optional.orValue([])`.
fn or_empty_list(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        Kind::Call {
            function,
            target,
            args,
        } if function == "orValue" => match args.as_slice() {
            [
                Expr {
                    kind: Kind::List(items),
                    ..
                },
            ] if items.is_empty() => target.as_deref(),
            _ => None,
        },
        _ => None,
    }
}

fn names(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Constants that are equal only if they are written equally. Numbers of different types may be equal.
fn constant(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        Kind::Literal(Literal::Bool(value)) => Some(json!(value)),
        Kind::Literal(Literal::Int(value)) => Some(json!(value)),
        Kind::Literal(Literal::String(value)) => Some(json!(value)),
        _ => None,
    }
}

fn mentions_old(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Ident(name) if name == "oldSelf")
        || expr.children().into_iter().any(mentions_old)
}
