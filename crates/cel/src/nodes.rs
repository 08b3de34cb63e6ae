//! Creates nodes for the parser and the macros, limiting their number and depth.

use std::ops::Range;

use super::Diagnostic;
use super::ast::{Expr, Kind};

/// Trees are traversed recursively, so limit the depth to avoid a stack overflow.
const MAX_DEPTH: usize = 300;
const MAX_NODES: usize = 20_000;

#[derive(Default)]
pub(crate) struct Nodes {
    count: usize,
    depth: usize,
}

pub(crate) fn too_large(at: Range<usize>) -> Diagnostic {
    Diagnostic::warning(at, "the expression is too large to be checked here")
}

impl Nodes {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn check_size(&self, at: &Range<usize>) -> Result<(), Diagnostic> {
        match self.count <= MAX_NODES && self.depth <= MAX_DEPTH {
            true => Ok(()),
            false => Err(too_large(at.clone())),
        }
    }

    pub(crate) fn make(&mut self, at: &Range<usize>, kind: Kind) -> Expr {
        let id = self.count;
        self.count += 1;
        let depth = 1 + kind.depth();
        self.depth = self.depth.max(depth);
        Expr {
            id,
            at: at.clone(),
            depth,
            kind,
        }
    }

    pub(crate) fn call(&mut self, at: &Range<usize>, function: &str, args: Vec<Expr>) -> Expr {
        self.make(
            at,
            Kind::Call {
                function: function.to_owned(),
                target: None,
                args,
            },
        )
    }
}
