//! The syntax tree of a CEL expression, after macro expansion.
//!
//! Operators are represented as calls of functions with CEL's names (`_+_`, `!_`, `_?_:_`), so that
//! checker and estimator only have to handle calls.

use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Expr {
    /// Index into the tables of the checker and the estimator.
    pub(crate) id: usize,
    /// Byte range in the source.
    pub(crate) at: Range<usize>,
    /// Height of the subtree, i.e. number of nodes on the longest path to a leaf, inclusive.
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
    /// The flag marks optional items (`[?item]`).
    List(Vec<(Expr, bool)>),
    /// The flag marks optional entries (`{?key: value}`).
    Map(Vec<(Expr, Expr, bool)>),
    /// `Name{…}`. Fields aren't parsed, since Kubernetes declares no message types.
    Message(String),
    Fold(Box<Fold>),
    /// `let name = value in body`. Only produced by macros; CEL has no syntax for it.
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

/// A loop over the items of a list or the keys of a map, as expanded from `all`, `exists`, `map`
/// and other macros.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Expr,
    pub(crate) variable: String,
    /// Second variable, for macros that take an index or key in addition to the value.
    pub(crate) second: Option<String>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Expr {
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) | Kind::Message(_) => Vec::new(),
            Kind::Select { operand, .. } => vec![operand],
            Kind::Call { target, args, .. } => target.as_deref().into_iter().chain(args).collect(),
            Kind::List(items) => items.iter().map(|(item, _)| item).collect(),
            Kind::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Kind::Fold(fold) => vec![&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result],
            Kind::Bind { value, body, .. } => vec![value, body],
        }
    }
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

/// Accumulator variable of loops. Inaccessible to user expressions, since `@` isn't allowed in
/// identifiers.
pub(crate) const ACCUMULATOR: &str = "@result";
