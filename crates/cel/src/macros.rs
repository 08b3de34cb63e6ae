//! Expands CEL's macros into loops and field tests, so that checker and estimator don't have to
//! support them. Covers the standard macros and the extensions enabled by Kubernetes.
//!
//! The cost of a rule depends on the expansion, so the expanded nodes are the same as in cel-go.

use std::ops::Range;

use super::Diagnostic;
use super::ast::{ACCUMULATOR, Expr, Fold, Kind, Literal};
use super::nodes::Nodes;

type Result = std::result::Result<Expr, Diagnostic>;

/// Expands `name(…)`, which is a plain call unless it's `has(a.b)`.
pub(crate) fn expand_function(
    name: &str,
    mut args: Vec<Expr>,
    at: &Range<usize>,
    nodes: &mut Nodes,
) -> Result {
    if name != "has" || args.len() != 1 {
        return Ok(nodes.call(at, name, args));
    }
    let argument = args.remove(0);
    match argument.kind {
        Kind::Select { operand, field, .. } => Ok(nodes.make(
            at,
            Kind::Select {
                operand,
                field,
                test: true,
            },
        )),
        _ => Err(Diagnostic::error(
            argument.at,
            "`has` takes a field, as in `has(self.field)`",
        )),
    }
}

/// Expands `target.name(…)`, which may be a macro or a plain call.
pub(crate) fn expand_method(
    target: Expr,
    name: &str,
    args: Vec<Expr>,
    at: &Range<usize>,
    nodes: &mut Nodes,
) -> Result {
    nodes.check_size(at)?;
    let mut maker = Maker { at, nodes };
    match (name, args.len()) {
        ("all" | "exists" | "exists_one", 2) => maker.quantifier(target, name, args, 1),
        ("all" | "exists" | "existsOne", 3) => maker.quantifier(target, name, args, 2),
        ("map", 2) => maker.list(target, args, 1, false),
        ("map", 3) => maker.list(target, args, 1, true),
        ("filter", 2) => maker.filter(target, args),
        ("transformList", 3) => maker.list(target, args, 2, false),
        ("transformList", 4) => maker.list(target, args, 2, true),
        ("transformMap" | "transformMapEntry", 3 | 4) => maker.map(target, name, args),
        ("optMap" | "optFlatMap", 2) => maker.optional(target, name, args),
        ("sortBy", 2) => maker.sort(target, args),
        _ => Ok(nodes.make(
            at,
            Kind::Call {
                function: name.to_owned(),
                target: Some(Box::new(target)),
                args,
            },
        )),
    }
}

struct Maker<'m> {
    at: &'m Range<usize>,
    nodes: &'m mut Nodes,
}

impl Maker<'_> {
    fn ident(&mut self, name: &str) -> Expr {
        self.nodes.make(self.at, Kind::Ident(name.to_owned()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.nodes.make(self.at, Kind::Literal(literal))
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.nodes.call(self.at, function, args)
    }

    fn list_of(&mut self, items: Vec<Expr>) -> Expr {
        let items = items.into_iter().map(|item| (item, false)).collect();
        self.nodes.make(self.at, Kind::List(items))
    }

    fn variables(
        &self,
        args: &mut Vec<Expr>,
        count: usize,
    ) -> std::result::Result<(String, Option<String>), Diagnostic> {
        let mut names = Vec::with_capacity(count);
        for variable in args.drain(..count) {
            match variable.kind {
                Kind::Ident(name) if !names.contains(&name) => names.push(name),
                _ => {
                    return Err(Diagnostic::error(
                        variable.at,
                        "expected the name of a variable, as in `all(item, …)`",
                    ));
                }
            }
        }
        let mut names = names.into_iter();
        Ok((names.next().unwrap_or_default(), names.next()))
    }

    fn fold(
        &mut self,
        range: Expr,
        (variable, second): (String, Option<String>),
        init: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
    ) -> Expr {
        let fold = Fold {
            range,
            variable,
            second,
            init,
            condition,
            step,
            result,
        };
        self.nodes.make(self.at, Kind::Fold(Box::new(fold)))
    }

    fn quantifier(&mut self, target: Expr, name: &str, mut args: Vec<Expr>, count: usize) -> Result {
        let variables = self.variables(&mut args, count)?;
        let body = args.remove(0);
        let so_far = self.accumulator();
        let result = self.accumulator();
        let (init, condition, step, result) = match name {
            "all" => {
                let condition = self.accumulator();
                (
                    self.literal(Literal::Bool(true)),
                    self.call("@not_strictly_false", vec![condition]),
                    self.call("_&&_", vec![so_far, body]),
                    result,
                )
            }
            "exists" => {
                let condition = self.accumulator();
                let condition = self.call("!_", vec![condition]);
                (
                    self.literal(Literal::Bool(false)),
                    self.call("@not_strictly_false", vec![condition]),
                    self.call("_||_", vec![so_far, body]),
                    result,
                )
            }
            _ => {
                let one = self.literal(Literal::Int(1));
                let more = self.call("_+_", vec![so_far, one]);
                let same = self.accumulator();
                let one = self.literal(Literal::Int(1));
                (
                    self.literal(Literal::Int(0)),
                    self.literal(Literal::Bool(true)),
                    self.call("_?_:_", vec![body, more, same]),
                    self.call("_==_", vec![result, one]),
                )
            }
        };
        Ok(self.fold(target, variables, init, condition, step, result))
    }

    /// Expands `map` and `transformList`, with (`filtered`) or without a filter.
    fn list(&mut self, target: Expr, mut args: Vec<Expr>, count: usize, filtered: bool) -> Result {
        let variables = self.variables(&mut args, count)?;
        let test = filtered.then(|| args.remove(0));
        let item = args.remove(0);
        let item = self.list_of(vec![item]);
        self.gather(target, variables, test, item)
    }

    fn filter(&mut self, target: Expr, mut args: Vec<Expr>) -> Result {
        let variables = self.variables(&mut args, 1)?;
        let item = self.ident(&variables.0);
        let item = self.list_of(vec![item]);
        let test = Some(args.remove(0));
        self.gather(target, variables, test, item)
    }

    fn gather(
        &mut self,
        target: Expr,
        variables: (String, Option<String>),
        test: Option<Expr>,
        item: Expr,
    ) -> Result {
        let so_far = self.accumulator();
        let step = self.call("_+_", vec![so_far, item]);
        let step = self.when(test, step);
        let (init, condition) = (self.list_of(Vec::new()), self.literal(Literal::Bool(true)));
        let result = self.accumulator();
        Ok(self.fold(target, variables, init, condition, step, result))
    }

    fn when(&mut self, test: Option<Expr>, step: Expr) -> Expr {
        let Some(test) = test else { return step };
        // Items that don't pass leave the result unchanged.
        let same = self.accumulator();
        self.call("_?_:_", vec![test, step, same])
    }

    fn map(&mut self, target: Expr, name: &str, mut args: Vec<Expr>) -> Result {
        let filtered = args.len() == 4;
        let variables = self.variables(&mut args, 2)?;
        let test = filtered.then(|| args.remove(0));
        let mut inserted = vec![self.accumulator()];
        if name == "transformMap" {
            inserted.push(self.ident(&variables.0));
        }
        inserted.extend(args);
        let step = self.call("cel.@mapInsert", inserted);
        let step = self.when(test, step);
        let init = self.nodes.make(self.at, Kind::Map(Vec::new()));
        let condition = self.literal(Literal::Bool(true));
        let result = self.accumulator();
        Ok(self.fold(target, variables, init, condition, step, result))
    }

    fn optional(&mut self, target: Expr, name: &str, mut args: Vec<Expr>) -> Result {
        let (variable, _) = self.variables(&mut args, 1)?;
        let copy = copy(&target, self.nodes);
        let method = |target: Expr, function: &str, nodes: &mut Nodes, at: &Range<usize>| {
            nodes.make(
                at,
                Kind::Call {
                    function: function.to_owned(),
                    target: Some(Box::new(target)),
                    args: Vec::new(),
                },
            )
        };
        let has = method(target, "hasValue", self.nodes, self.at);
        let value = method(copy, "value", self.nodes, self.at);
        let bound = Kind::Bind {
            name: variable,
            value: Box::new(value),
            body: Box::new(args.remove(0)),
        };
        let mut mapped = self.nodes.make(self.at, bound);
        if name == "optMap" {
            mapped = self.call("optional.of", vec![mapped]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call("_?_:_", vec![has, mapped, none]))
    }

    fn sort(&mut self, target: Expr, args: Vec<Expr>) -> Result {
        const INPUT: &str = "@input";
        let input = self.ident(INPUT);
        let keys = self.list(input, args, 1, false)?;
        let sorted = Kind::Call {
            function: "@sortByAssociatedKeys".to_owned(),
            target: Some(Box::new(self.ident(INPUT))),
            args: vec![keys],
        };
        let bound = Kind::Bind {
            name: INPUT.to_owned(),
            value: Box::new(target),
            body: Box::new(self.nodes.make(self.at, sorted)),
        };
        Ok(self.nodes.make(self.at, bound))
    }
}

// Copies with new ids, because `target` occurs twice in the expansion and ids must be unique.
fn copy(expr: &Expr, nodes: &mut Nodes) -> Expr {
    let mut again = |expr: &Expr| copy(expr, nodes);
    let kind = match &expr.kind {
        Kind::Literal(literal) => Kind::Literal(literal.clone()),
        Kind::Ident(name) => Kind::Ident(name.clone()),
        Kind::Message(name) => Kind::Message(name.clone()),
        Kind::Select { operand, field, test } => Kind::Select {
            operand: Box::new(again(operand)),
            field: field.clone(),
            test: *test,
        },
        Kind::Call {
            function,
            target,
            args,
        } => Kind::Call {
            function: function.clone(),
            target: target.as_deref().map(|target| Box::new(again(target))),
            args: args.iter().map(again).collect(),
        },
        Kind::List(items) => Kind::List(
            items
                .iter()
                .map(|(item, optional)| (again(item), *optional))
                .collect(),
        ),
        Kind::Map(entries) => Kind::Map(
            entries
                .iter()
                .map(|(key, value, optional)| (again(key), again(value), *optional))
                .collect(),
        ),
        Kind::Bind { name, value, body } => Kind::Bind {
            name: name.clone(),
            value: Box::new(again(value)),
            body: Box::new(again(body)),
        },
        Kind::Fold(fold) => Kind::Fold(Box::new(Fold {
            range: again(&fold.range),
            variable: fold.variable.clone(),
            second: fold.second.clone(),
            init: again(&fold.init),
            condition: again(&fold.condition),
            step: again(&fold.step),
            result: again(&fold.result),
        })),
    };
    nodes.make(&expr.at, kind)
}
