//! The syntax tree of a CEL expression, with its macros expanded.
//!
//! Operators are calls of functions with CEL's names (`_+_`, `!_`, `_?_:_`), so that the checker
//! and the estimator only handle calls.

use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Expr {
    /// Index into the tables of the checker and the estimator.
    pub(crate) id: usize,
    /// Where it is in the source, in bytes.
    pub(crate) at: Range<usize>,
    /// Nodes on the longest path down to a leaf, including this one and the leaf.
    pub(crate) depth: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(String),
    /// `operand.field`, or `has(operand.field)` if `test` is set.
    Select {
        operand: Box<Expr>,
        field: String,
        test: bool,
    },
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// The flag is set for `[?item]`.
    List(Vec<(Expr, bool)>),
    /// The flag is set for `{?key: value}`.
    Map(Vec<(Expr, Expr, bool)>),
    /// `Name{…}`. We don't parse the fields, since Kubernetes declares no message types.
    Message(String),
    Fold(Box<Fold>),
    /// `let name = value in body`. CEL has no syntax for this; only macros expand to it.
    Bind {
        name: String,
        value: Box<Expr>,
        body: Box<Expr>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// A loop over the items of a list or the keys of a map, to which `all`, `exists`, `map` and other
/// macros expand.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Expr,
    pub(crate) variable: String,
    /// Set by macros that take an index or key in addition to the value.
    pub(crate) second: Option<String>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Kind {
    pub(crate) fn depth(&self) -> usize {
        let of = |exprs: &mut dyn Iterator<Item = &Expr>| exprs.map(|expr| expr.depth).max().unwrap_or(0);
        match self {
            Kind::Literal(_) | Kind::Ident(_) | Kind::Message(_) => 0,
            Kind::Select { operand, .. } => operand.depth,
            Kind::Call { target, args, .. } => of(&mut target.as_deref().into_iter().chain(args)),
            Kind::List(items) => of(&mut items.iter().map(|(item, _)| item)),
            Kind::Map(entries) => of(&mut entries.iter().flat_map(|(key, value, _)| [key, value])),
            Kind::Fold(fold) => {
                of(&mut [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result].into_iter())
            }
            Kind::Bind { value, body, .. } => value.depth.max(body.depth),
        }
    }
}

/// The loop variable with the result so far. No expression can refer to it, since `@` isn't allowed
/// in identifiers.
pub(crate) const ACCUMULATOR: &str = "@result";
