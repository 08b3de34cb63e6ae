//! Whether a rule follows from other ones: no value that satisfies them violates it.
//!
//! Rules are read as formulas about what they ask of a value: whether fields are present, which of the
//! mentioned constants an expression equals, and what is true of a list's items. Everything else is a
//! term of which we only know that it is the same wherever it is written the same way. So there are
//! more states than values, and a rule that holds in every state that satisfies the others holds for
//! every value. The reverse isn't true.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ast::{ACCUMULATOR, Expr, Fold, Kind, Literal};
use super::outline::Facts;
use super::parser::parse_expression;

/// Limit for the number of states that are tried for a rule.
const MOST_STATES: usize = 1 << 14;

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
    // A rule about other things says nothing here, and each of its terms multiplies the states.
    while let Some((at, longer, premise)) = unread.iter().enumerate().find_map(|(at, parsed)| {
        let (longer, premise) = model.with_premise(&parsed.root)?;
        Some((at, longer, premise))
    }) {
        unread.remove(at);
        model = longer;
        premises.push(premise);
    }
    model.states() <= MOST_STATES && model.holds_in_all_states(&goal, &premises)
}

/// The result of an expression.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Truth {
    Yes,
    No,
    Error,
}

impl Truth {
    fn of(value: bool) -> Self {
        if value { Truth::Yes } else { Truth::No }
    }

    fn negated(self) -> Self {
        match self {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            Truth::Error => Truth::Error,
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
        (is_useful && !longer.mentions_old && longer.states() <= MOST_STATES).then_some((longer, premise))
    }

    fn read(&mut self, expr: &Expr, place: &Place<'_>) -> Formula {
        match &expr.kind {
            Kind::Literal(Literal::Bool(value)) => Formula::Known(*value),
            Kind::Select { test: true, .. } => match self.field(expr, place) {
                Some(term) => Formula::Has(term),
                None => self.truth(expr, place),
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
        let range = text(&fold.range, place);
        let term = self.term(&fold.range, place);
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

    /// The term of `self.a.b`, with or without `has`, and those of the objects around it.
    fn field(&mut self, expr: &Expr, place: &Place<'_>) -> Option<usize> {
        match &expr.kind {
            Kind::Ident(name) => {
                let (name, path) = match (name.as_str(), place) {
                    (name, Place::Item { variable, item }) if name == *variable => (*item, None),
                    ("self", _) => ("self", Some(Vec::new())),
                    ("oldSelf", _) => ("oldSelf", None),
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
                let path = self.terms[parent].path.as_ref().map(|path| {
                    let mut path = path.clone();
                    path.push(field.clone());
                    path
                });
                let names: Option<Vec<&str>> = path
                    .as_ref()
                    .map(|path| path.iter().map(String::as_str).collect());
                let is = |fact: fn(&dyn Facts, &[&str]) -> bool| {
                    names.as_ref().is_some_and(|names| fact(self.facts, names))
                };
                let term = Term {
                    parent: Some(parent),
                    is_absent: is(|facts, names| facts.is_absent(names)),
                    is_present: is(|facts, names| facts.is_present(names)),
                    ..Term::root()
                };
                let name = format!("field {parent} {field}");
                Some(self.add(name, Term { path, ..term }))
            }
            _ => None,
        }
    }

    fn add(&mut self, name: String, term: Term) -> usize {
        *self.names.entry(name).or_insert_with(|| {
            self.terms.push(term);
            self.terms.len() - 1
        })
    }

    /// Possible states of a term.
    fn states_of(&self, term: &Term) -> Vec<usize> {
        let excludes = |value: &Value| {
            let path = term
                .path
                .as_ref()
                .map(|path| path.iter().map(String::as_str).collect::<Vec<_>>());
            path.is_some_and(|path| !path.is_empty() && self.facts.is_excluded(&path, value))
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

    fn states(&self) -> usize {
        let counts = self.terms.iter().map(|term| self.states_of(term).len());
        counts.fold(1, usize::saturating_mul)
    }

    fn holds_in_all_states(&self, goal: &Formula, premises: &[Formula]) -> bool {
        let possible: Vec<Vec<usize>> = self.terms.iter().map(|term| self.states_of(term)).collect();
        let mut chosen = vec![0; possible.len()];
        if possible.iter().any(Vec::is_empty) {
            return false;
        }
        loop {
            let state: Vec<usize> = chosen
                .iter()
                .zip(&possible)
                .map(|(at, states)| states[*at])
                .collect();
            let state = State {
                terms: &self.terms,
                state,
            };
            let is_refuted = premises.iter().all(|premise| state.of(premise) == Truth::Yes)
                && state.of(goal) != Truth::Yes;
            if is_refuted {
                return false;
            }
            // Count up, with a digit for each term.
            let Some(next) = (0..chosen.len()).find(|at| chosen[*at] + 1 < possible[*at].len()) else {
                return true;
            };
            chosen[next] += 1;
            chosen[..next].fill(0);
        }
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
            Formula::Has(term) | Formula::Holds(term) | Formula::Is(term, _) => uses(*term),
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

/// A state of each term.
struct State<'a> {
    terms: &'a [Term],
    state: Vec<usize>,
}

impl State<'_> {
    fn of(&self, formula: &Formula) -> Truth {
        match formula {
            Formula::Known(value) => Truth::of(*value),
            Formula::Not(part) => self.of(part).negated(),
            Formula::Logic(decisive, parts) => {
                let mut result = Truth::of(!decisive);
                for part in parts {
                    match self.of(part) {
                        found if found == Truth::of(*decisive) => return found,
                        Truth::Error => result = Truth::Error,
                        _ => {}
                    }
                }
                result
            }
            Formula::If(parts) => match self.of(&parts[0]) {
                Truth::Yes => self.of(&parts[1]),
                Truth::No => self.of(&parts[2]),
                Truth::Error => Truth::Error,
            },
            Formula::Has(term) => match self.terms[*term]
                .parent
                .is_none_or(|parent| self.is_there(parent))
            {
                true => Truth::of(self.state[*term] != 0),
                false => Truth::Error,
            },
            Formula::Holds(term) => match self.value(*term) {
                Some(Some(Value::Bool(value))) => Truth::of(*value),
                _ => Truth::Error,
            },
            Formula::Is(term, values) => match self.value(*term) {
                None => Truth::Error,
                Some(None) => Truth::No,
                Some(Some(value)) => Truth::of(values.contains(value)),
            },
            Formula::Items {
                list,
                is_exists,
                body,
            } => self.of_list(*list, *is_exists).unwrap_or_else(|| self.of(body)),
            Formula::FormerItems {
                list,
                value,
                is_exists,
                bodies,
            } => self.of_list(*list, *is_exists).unwrap_or_else(|| {
                let result = self.of(&Formula::Holds(*value));
                // A true `all` and a false `exists` say the same of each item.
                let is_general = result == Truth::of(!is_exists);
                match is_general && bodies.iter().any(|body| self.of(body) != result) {
                    // No value is in this state. The error excludes it, unless the rest of the rule
                    // holds whatever this is.
                    true => Truth::Error,
                    false => result,
                }
            }),
        }
    }

    /// The result of a quantifier that doesn't depend on items.
    fn of_list(&self, list: List, is_exists: bool) -> Option<Truth> {
        match (self.is_there(list.term), self.of(&Formula::Holds(list.is_empty))) {
            (false, _) => Some(Truth::Error),
            (true, Truth::Yes) => Some(Truth::of(!is_exists)),
            (true, _) => None,
        }
    }

    fn is_there(&self, term: usize) -> bool {
        let above = self.terms[term].parent;
        self.state[term] != 0 && above.is_none_or(|parent| self.is_there(parent))
    }

    /// The constant that a term equals, if any. The outer `None` means an error.
    fn value(&self, term: usize) -> Option<Option<&Value>> {
        let constants = &self.terms[term].constants;
        self.is_there(term)
            .then(|| self.state[term].checked_sub(2).and_then(|at| constants.get(at)))
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

/// The text of an expression, which is the same for the same expression. The variable of a quantifier
/// has the name of the item that it stands for.
fn text(expr: &Expr, place: &Place<'_>) -> String {
    let list = |exprs: &mut dyn Iterator<Item = &Expr>| {
        let texts: Vec<String> = exprs.map(|expr| text(expr, place)).collect();
        texts.join(", ")
    };
    match &expr.kind {
        Kind::Literal(literal) => format!("{literal:?}"),
        Kind::Ident(name) => match place {
            Place::Item { variable, item } if name == variable => (*item).to_owned(),
            _ => name.clone(),
        },
        Kind::Select { operand, field, test } => {
            let has = if *test { "has " } else { "" };
            format!("{has}{}.{field}", text(operand, place))
        }
        Kind::Call {
            function,
            target,
            args,
        } => {
            let target = target.as_deref().map(|target| text(target, place));
            format!(
                "{}.{function}({})",
                target.unwrap_or_default(),
                list(&mut args.iter())
            )
        }
        Kind::List(items) => {
            let flags: Vec<bool> = items.iter().map(|(_, flag)| *flag).collect();
            format!("[{} {flags:?}]", list(&mut items.iter().map(|(item, _)| item)))
        }
        Kind::Map(entries) => {
            let flags: Vec<bool> = entries.iter().map(|(.., flag)| *flag).collect();
            let parts = entries.iter().flat_map(|(key, value, _)| [key, value]);
            format!("{{{} {flags:?}}}", list(&mut { parts }))
        }
        Kind::Message(name) => format!("{name}{{}}"),
        Kind::Fold(fold) => {
            let names = [Some(&fold.variable), fold.second.as_ref()];
            let inner = within(place, names.into_iter().flatten());
            let parts = [&fold.init, &fold.condition, &fold.step, &fold.result];
            let parts: Vec<String> = parts.into_iter().map(|part| text(part, &inner)).collect();
            format!(
                "fold({names:?}, {}, {})",
                text(&fold.range, place),
                parts.join(", ")
            )
        }
        Kind::Bind { name, value, body } => {
            let inner = within(place, [name].into_iter());
            format!("let({name}, {}, {})", text(value, place), text(body, &inner))
        }
    }
}

/// Where the names are bound, the variable of a quantifier with such a name is another one.
fn within<'p>(place: &Place<'p>, mut names: impl Iterator<Item = &'p String>) -> Place<'p> {
    match *place {
        Place::Item { variable, item } if !names.any(|name| name == variable) => {
            Place::Item { variable, item }
        }
        _ => Place::Whole { goal: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kind` is `Cup` or `Glass` and always present, and `n` is always absent.
    struct Sample;

    impl Facts for Sample {
        fn is_absent(&self, path: &[&str]) -> bool {
            path.last() == Some(&"n")
        }

        fn is_present(&self, path: &[&str]) -> bool {
            path == ["kind"]
        }

        fn is_excluded(&self, path: &[&str], value: &Value) -> bool {
            path == ["kind"] && value != "Cup" && value != "Glass"
        }
    }

    #[track_caller]
    fn check(former: &[&str], rule: &str, expected: bool) {
        let found = follows_from(rule, former.iter().copied(), &Sample);
        assert_eq!(found, expected, "{rule} after {former:?}");
    }

    #[test]
    fn weaker_conditions_follow() {
        check(
            &["has(self.a) || has(self.b)"],
            "has(self.a) || has(self.b) || has(self.c)",
            true,
        );
        check(
            &["has(self.a) || has(self.b)"],
            "has(self.a) || has(self.c)",
            false,
        );
        check(
            &["!(has(self.a) && has(self.b))"],
            "has(self.a) ? !has(self.b) : true",
            true,
        );
        check(&["has(self.a)"], "has(self.a.b)", false);
        check(&["has(self.a.b)"], "has(self.a)", true);
        check(
            &["self.t == 'x' ? !has(self.a) : true"],
            "self.t == 'x' && has(self.a) ? !has(self.a.b) : true",
            true,
        );
        check(
            &["has(self.a)", "!has(self.a) || has(self.b)"],
            "has(self.b)",
            true,
        );
        check(&[], "has(self.kind) || has(self.a)", true);
        check(&[], "has(self.a) || !has(self.a)", true);
        check(&[], "has(self.n)", false);
        check(&["has(self."], "has(self.a)", false);
    }

    #[test]
    fn constants_are_compared() {
        check(&["self.t in ['x', 'y']"], "self.t in ['x', 'y', 'z']", true);
        check(&["self.t in ['x', 'y']"], "self.t == 'x' || self.t == 'y'", true);
        check(&["self.t == 'x' || self.t == 'y'"], "self.t == 'x'", false);
        check(
            &["self.t in ['x', 'y'] ? !has(self.a) : true"],
            "self.t == 'x' ? !has(self.a) : true",
            true,
        );
        check(
            &["self.kind in ['Cup', 'Glass'] ? !has(self.a) : true"],
            "self.kind in ['Cup', 'Pot'] ? !has(self.a) : true",
            true,
        );
        check(&["self.t == 1"], "self.t == 1.0", false);
        check(&["self.a == self.b"], "self.a != self.b", false);
        check(
            &["self.split('@')[0] in ['x', 'y']"],
            "self.split('@')[0] in ['x', 'y', 'z']",
            true,
        );
        check(
            &["self.split('@')[0] in ['x', 'y']"],
            "self.split('#')[0] in ['x', 'y', 'z']",
            false,
        );
    }

    #[test]
    fn errors_refuse_values() {
        // Where `t` is absent, the former rule fails.
        check(
            &["self.t == 'x' ? has(self.a) : !has(self.a)"],
            "has(self.t)",
            true,
        );
        check(
            &["self.t == 'x' ? has(self.a) : !has(self.a)"],
            "has(self.t) && self.t == 'x' ? has(self.a) : true",
            true,
        );
        check(&["has(self.a)"], "self.t == 'x' || has(self.a)", true);
        check(&["!has(self.t) || self.t == 'x'"], "self.t == 'x'", false);
        check(
            &["has(self.a) ? self.t == 'x' : true"],
            "self.t == 'x' || has(self.b)",
            false,
        );
        check(
            &["self.size() > 3 || has(self.a)"],
            "self.size() > 3 || has(self.a) || has(self.b)",
            true,
        );
    }

    #[test]
    fn items_of_lists_are_compared() {
        let old = "has(self.l) ? self.l.all(f, f.kind == 'x' || f.kind == 'y') : true";
        check(
            &[old],
            "has(self.l) ? self.l.all(g, g.kind in ['x', 'y', 'z']) : true",
            true,
        );
        check(&[old], "has(self.l) ? self.l.all(f, f.kind == 'x') : true", false);
        check(
            &[old],
            "has(self.m) ? self.m.all(f, f.kind in ['x', 'y', 'z']) : true",
            false,
        );
        check(&[old], "self.l.all(g, g.kind in ['x', 'y', 'z'])", false);
        check(&[old], "!has(self.l) || !self.l.exists(f, f.kind == 'z')", true);
        check(
            &["self.all(x, has(x.a) || has(x.b))"],
            "self.all(x, has(x.a) || has(x.b) || has(x.c))",
            true,
        );
        check(
            &["!self.exists(x, has(x.a) && has(x.b))"],
            "self.all(x, !has(x.a) || !has(x.b))",
            true,
        );
        check(&["self.all(x, x == 'a')"], "self.exists(x, x == 'a')", false);
        check(
            &["self.exists(x, x == 'a')"],
            "self.exists(x, x in ['a', 'b'])",
            false,
        );
        // Without items, both hold, but `has(self.b)` need not.
        check(
            &["self.l.all(x, x == 'a')"],
            "self.l.all(x, x == 'b') && has(self.b)",
            false,
        );
        check(&["self.l.all(x, x == 'a')"], "!self.l.all(x, x == 'b')", false);
        // The inner variable hides the outer one.
        check(
            &["self.all(x, x.b.exists(x, x == 1))"],
            "self.all(y, y.b.exists(x, y == 1))",
            false,
        );
        check(
            &["self.all(x, x.b.exists(y, y == 1))"],
            "self.all(z, z.b.exists(y, y == 1))",
            true,
        );
    }

    #[test]
    fn transition_rules_only_apply_to_updates() {
        check(
            &["!has(oldSelf.a) || has(self.a)", "has(oldSelf.a)"],
            "has(self.a)",
            false,
        );
        check(&["has(self.a)"], "!has(oldSelf.b) || has(self.a)", true);
        check(
            &["self.v.startsWith(oldSelf.v)"],
            "self.v.startsWith(oldSelf.v) || has(self.a)",
            false,
        );
    }

    #[test]
    fn rules_with_many_terms_are_undecided() {
        let all: Vec<String> = (0..40).map(|at| format!("has(self.f{at})")).collect();
        check(&[&all.join(" && ")], &all.join(" || "), false);
    }
}
