//! Function calls: evaluates the arguments, resolves the overload and charges the cost.

use rbuilder_re2::Pattern;

use super::cost::Priced;
use super::value::{List, Map, Value};
use super::{Evaluator, Outcome, Stop, kubernetes, lists, operators, standard, strings};
use crate::ast::Expr;
use crate::functions::{self, Overload};
use crate::types::Type;

impl<'v, 'p> Evaluator<'v, 'p> {
    pub(super) fn call(
        &mut self,
        expr: &'p Expr,
        function: &'p str,
        target: Option<&'p Expr>,
        args: &'p [Expr],
    ) -> Outcome<'v> {
        match (function, target, args) {
            ("_&&_", None, [left, right]) => return self.junction(left, right, false),
            ("_||_", None, [left, right]) => return self.junction(left, right, true),
            ("@not_strictly_false", None, [condition]) => return self.is_not_strictly_false(condition),
            ("or", Some(target), [other]) => return self.or(target, other, false),
            ("orValue", Some(target), [other]) => return self.or(target, other, true),
            ("@in", None, [item, list]) => {
                if let Some(set) = self.constant_set(expr, list) {
                    return self.is_in_constant_set(item, &set);
                }
            }
            _ => {}
        }
        let overload = self.plan.overload(expr);
        // cel-go evaluates all arguments of an operator; for other functions, it stops at the first
        // error.
        let stops_early =
            target.iter().count() + args.len() > 2 || (overload.is_none() && !is_operator(function));
        let mut values: Vec<Option<Value<'v>>> = Vec::with_capacity(args.len() + 1);
        let mut error = None;
        for arg in target.into_iter().chain(args) {
            match self.evaluate(arg) {
                Ok(value) => values.push(Some(value)),
                Err(Stop::Error(text)) if stops_early => return Err(Stop::Error(text)),
                Err(Stop::Error(text)) => {
                    error.get_or_insert(text);
                    values.push(None);
                }
                Err(stop) => return Err(stop),
            }
        }
        let result = match error {
            Some(text) => Err(Stop::Error(text)),
            None => {
                let args: Vec<Value<'v>> = values.iter().flatten().cloned().collect();
                invoke(function, overload, &args, self.plan.pattern(expr))
            }
        };
        if matches!(result, Err(Stop::Unsupported(_))) {
            return result;
        }
        let priced = Priced {
            function,
            overload,
            args: &values,
            result: result.as_ref().ok(),
        };
        self.charge(priced.cost())?;
        result
    }

    /// Evaluates `&&` (`decisive` is false) or `||` (`decisive` is true). One operand may decide
    /// even if the other fails.
    fn junction(&mut self, left: &'p Expr, right: &'p Expr, decisive: bool) -> Outcome<'v> {
        let mut stop = None;
        for side in [left, right] {
            match self.evaluate(side) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => stop = stop.or(Some(Stop::no_overload())),
                Err(Stop::OverLimit) => return Err(Stop::OverLimit),
                // If an operand is unsupported, an error in the other one isn't conclusive.
                Err(unknown @ Stop::Unsupported(_)) => stop = Some(unknown),
                Err(error) => stop = stop.or(Some(error)),
            }
        }
        stop.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn is_not_strictly_false(&mut self, condition: &'p Expr) -> Outcome<'v> {
        let holds = match self.evaluate(condition) {
            Ok(Value::Bool(value)) => value,
            Ok(_) | Err(Stop::Error(_)) => true,
            Err(stop) => return Err(stop),
        };
        self.charge(1)?;
        Ok(Value::Bool(holds))
    }

    /// Evaluates `or`, or `orValue` if `unwraps` is set. Both are free in cel-go.
    fn or(&mut self, target: &'p Expr, other: &'p Expr, unwraps: bool) -> Outcome<'v> {
        match self.evaluate(target)? {
            Value::Optional(None) => self.evaluate(other),
            Value::Optional(Some(value)) if unwraps => Ok((*value).clone()),
            value @ Value::Optional(_) => Ok(value),
            _ => Err(Stop::no_overload()),
        }
    }

    /// Evaluates a constant list of primitive values, which cel-go turns into a set at compile
    /// time. `None` for other lists.
    fn constant_set(&mut self, expr: &Expr, list: &'p Expr) -> Option<Value<'v>> {
        if self.plan.overload(expr).is_none() || !self.plan.is_constant(list) {
            return None;
        }
        let set = self.evaluate(list).ok()?;
        let Value::List(items) = &set else {
            return None;
        };
        let is_primitive = |item: Outcome<'v>| {
            matches!(
                item,
                Ok(Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
            )
        };
        let is_set = items.iter().all(is_primitive);
        is_set.then_some(set)
    }

    /// Lookups in such sets are free in cel-go.
    fn is_in_constant_set(&mut self, item: &'p Expr, set: &Value<'v>) -> Outcome<'v> {
        match self.evaluate(item)? {
            Value::Bytes(_) => Err(super::value::UNHASHABLE),
            item => super::compare::contains(&item, set),
        }
    }
}

/// Functions for which cel-go has a single implementation shared by all overloads.
fn is_operator(function: &str) -> bool {
    function.starts_with(['_', '!', '-', '@'])
        || matches!(function, "size" | "type" | "dyn" | "matches" | "sort")
}

fn invoke<'v>(
    function: &str,
    overload: Option<&'static Overload>,
    args: &[Value<'v>],
    pattern: Option<&Pattern>,
) -> Outcome<'v> {
    if is_operator(function) {
        let result = operators::call(function, args, pattern);
        return result
            .unwrap_or_else(|| lists::call(function, args).unwrap_or_else(|| mismatch(function, args)));
    }
    if pattern.is_some() && !matches!(args.first(), Some(Value::String(_))) {
        // Literal patterns are compiled together with the rule, which results in a different error.
        return Err(Stop::no_overload());
    }
    if function == "distinct" && !matches!(args.first(), Some(Value::List(_))) {
        return Err(Stop::Unsupported("a call that makes the API server panic"));
    }
    let is_guarded = !matches!(function, "contains" | "endsWith" | "startsWith" | "flatten");
    if is_guarded && !accepts(function, overload, args) {
        return mismatch(function, args);
    }
    let result = standard::call(function, args)
        .or_else(|| strings::call(function, args, pattern))
        .or_else(|| lists::call(function, args))
        .or_else(|| kubernetes::call(function, args));
    result.unwrap_or_else(|| match is_guarded {
        true => mismatch(function, args),
        false => Err(Stop::no_overload()),
    })
}

fn mismatch<'v>(function: &str, args: &[Value<'v>]) -> Outcome<'v> {
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    Err(Stop::error(format!(
        "no such overload: {function}({})",
        types.join(", ")
    )))
}

fn accepts(function: &str, overload: Option<&'static Overload>, args: &[Value<'_>]) -> bool {
    let fits = |overload: &Overload| {
        overload.args.len() == args.len()
            && overload
                .args
                .iter()
                .zip(args)
                .all(|(ty, arg)| is_assignable(ty, arg))
    };
    match overload {
        Some(overload) => fits(overload),
        None => functions::find_overloads(function).is_some_and(|overloads| overloads.iter().any(fits)),
    }
}

/// Only looks at the first item of a list or map, like cel-go.
fn is_assignable(ty: &Type, value: &Value<'_>) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Error | Type::Variable(_), _)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Null, Value::Null)
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Kind, Value::Type(_))
        | (Type::Optional(_), Value::Optional(_)) => true,
        (Type::List(item), Value::List(list)) => {
            first_item(list).is_none_or(|first| is_assignable(item, &first))
        }
        (Type::Map(key, value), Value::Map(map)) => first_entry(map)
            .is_none_or(|(first, second)| is_assignable(key, &first) && is_assignable(value, &second)),
        (Type::Opaque(name), value) => matches!(
            (*name, value),
            ("ip", Value::Ip(_))
                | ("cidr", Value::Cidr(_))
                | ("url", Value::Url(_))
                | ("quantity", Value::Quantity(_))
                | ("semver", Value::Semver(_))
                | ("format", Value::Format(_))
        ),
        _ => false,
    }
}

fn first_item<'v>(list: &List<'v>) -> Option<Value<'v>> {
    list.get(0)?.ok()
}

fn first_entry<'v>(map: &Map<'v>) -> Option<(Value<'v>, Value<'v>)> {
    let key = map.keys().into_iter().next()?;
    let value = map.find(&key).ok()??;
    Some((key, value))
}
