//! The tree of a CEL expression, with its macros expanded.
//!
//! Operators are calls of functions with CEL's names for them (`_+_`, `!_`, `_?_:_`), so that the checker and the
//! estimator handle one form of call.

use std::ops::Range;

/// One node.
#[derive(Debug)]
pub(crate) struct Expr {
    /// Its number: an index into what the checker and the estimator note about nodes.
    pub(crate) id: usize,
    /// The bytes of the source it comes from.
    pub(crate) at: Range<usize>,
    /// The number of nodes on the longest path down from this one.
    pub(crate) depth: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(String),
    /// `operand.field`, or `has(operand.field)` with `test`.
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
    /// Elements, each with `true` if it is written with `?`.
    List(Vec<(Expr, bool)>),
    /// Keys and values, each with `true` if it is written with `?`.
    Map(Vec<(Expr, Expr, bool)>),
    /// `Name{…}`: a message, of the types that come with CEL. Its fields are not parsed.
    Message(String),
    Fold(Box<Fold>),
    /// `let name = value in body`, which CEL has only inside macros.
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
    Uint,
    Double(f64),
    String(String),
    /// The number of bytes.
    Bytes(usize),
}

/// A loop over a list or the keys of a map, to which `all`, `exists`, `map` and other macros expand.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Expr,
    pub(crate) variable: String,
    /// The second variable of the forms with key and value.
    pub(crate) second: Option<String>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Kind {
    /// Returns the number of nodes on the longest path down.
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

/// The variable that accumulates the result of a loop; no expression can spell its name.
pub(crate) const ACCUMULATOR: &str = "@result";
