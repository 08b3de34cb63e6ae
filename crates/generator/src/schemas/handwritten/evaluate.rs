//! Evaluates expressions to JSON.

use rbuilder_reader::token::Cursor;
use rbuilder_reader::{Expr, ExprKind, Json, Statement, StructExpr, TypeRef, read_block};
use serde_json::{Map, Value};

use super::{Bindings, Function, Read, SchemaReader, Variable, count, legacy};
use crate::defaults::{bound, calculate};

/// Methods that return their receiver, possibly as another type.
const SAME: &[&str] = &[
    "as_str",
    "as_value",
    "clone",
    "cloned",
    "collect",
    "copied",
    "expect",
    "into",
    "into_boxed_str",
    "into_iter",
    "into_object",
    "into_value",
    "iter",
    "ok",
    "to_owned",
    "to_value",
    "to_vec",
    "try_into",
    "unwrap",
];

/// Functions and variants that return or wrap their only argument.
const WRAPPERS: &[&str] = &[
    "Array",
    "Bool",
    "Borrowed",
    "Number",
    "Object",
    "Ok",
    "Owned",
    "Single",
    "Some",
    "String",
    "Vec",
    "from",
    "from_iter",
    "from_value",
    "to_value",
    "try_from",
    "into",
];

/// Types with an empty `new` and `default`.
const MAPS: &[&str] = &["BTreeMap", "HashMap", "IndexMap", "Map", "Schema"];
const LISTS: &[&str] = &["BTreeSet", "HashSet", "IndexSet", "Set", "Vec"];

impl SchemaReader<'_, '_> {
    pub(super) fn value(&mut self, expr: &Expr<'_>, function: &Function<'_>) -> Read<Value> {
        self.spend(1, expr.span, function)?;
        if let Some((of, path)) = function.find_part(expr) {
            let value = function.get(&of, &path).cloned().unwrap_or_default();
            self.spend(count(&value), expr.span, function)?;
            return Ok(value);
        }
        match &expr.kind {
            ExprKind::Literal(value) => Ok(value.clone()),
            ExprKind::Path(names) => self.path(names, expr, function),
            ExprKind::Macro(names, body) => match names.last() {
                Some(&("json" | "json_schema")) => match Json::read(*body) {
                    Ok(json) => self.json(&json, function),
                    Err(_) => unknown(expr, function),
                },
                _ => unknown(expr, function),
            },
            ExprKind::Array(items) => self.list(items, function),
            ExprKind::Struct(written) => self.structure(written, expr, function),
            ExprKind::Call(callee, args) => self.call_expr(callee, args, expr, function),
            ExprKind::Method(receiver, name, args) => self.method(receiver, name, args, expr, function),
            ExprKind::Field(inner, field) => {
                let value = self.value(inner, function)?;
                Ok(match &value {
                    _ if legacy::is_flattened(field) => value,
                    _ => value.get(legacy::key(field)).cloned().unwrap_or_default(),
                })
            }
            ExprKind::Binary(left, operator, right) => {
                let (left, right) = (self.value(left, function)?, self.value(right, function)?);
                calculate(&left, *operator, &right).map_or_else(|| unknown(expr, function), Ok)
            }
            ExprKind::Negative(_) => expr.value().or_else(|_| unknown(expr, function)),
            ExprKind::Block(body) => self.block(*body, expr, function),
            ExprKind::Associated(..)
            | ExprKind::Index(..)
            | ExprKind::Tuple(_)
            | ExprKind::Not(_)
            | ExprKind::Equals(..)
            | ExprKind::Other => unknown(expr, function),
        }
    }

    fn path(&mut self, names: &[&str], expr: &Expr<'_>, function: &Function<'_>) -> Read<Value> {
        match names {
            ["None"] => return Ok(Value::Null),
            [.., "Value", "Null"] => return Ok(Value::Null),
            [.., "InstanceType", name] => return Ok(name.to_lowercase().into()),
            _ => {}
        }
        let scope = function.body_scope();
        if let Some(id) = self.find(names, scope, function.owner.clone())
            && !self.schemas.package().values[id.0].is_function
        {
            return self.call(id, &Bindings::new(), None);
        }
        bound(names).map_or_else(|| unknown(expr, function), Ok)
    }

    fn json(&mut self, json: &Json<'_>, function: &Function<'_>) -> Read<Value> {
        Ok(match json {
            Json::Null => Value::Null,
            Json::Value(expr) => self.value(expr, function)?,
            Json::List(items) => {
                let items = items.iter().map(|item| self.json(item, function));
                Value::Array(items.collect::<Read<_>>()?)
            }
            Json::Object(entries) => {
                let mut fields = Map::new();
                for (key, value) in entries {
                    let name = self.text(key, function)?;
                    fields.insert(name, self.json(value, function)?);
                }
                Value::Object(fields)
            }
        })
    }

    fn text(&mut self, expr: &Expr<'_>, function: &Function<'_>) -> Read<String> {
        match self.value(expr, function)? {
            Value::String(text) => Ok(text),
            _ => unknown(expr, function),
        }
    }

    /// Evaluates an array, or a map that is written as a list of pairs.
    fn list(&mut self, items: &[Expr<'_>], function: &Function<'_>) -> Read<Value> {
        let pairs: Option<Vec<_>> = items
            .iter()
            .map(|item| match &item.kind {
                ExprKind::Tuple(pair) => Some(pair.as_slice()),
                _ => None,
            })
            .collect();
        match pairs.filter(|pairs| !pairs.is_empty()) {
            Some(pairs) => {
                let mut fields = Map::new();
                for (pair, item) in pairs.into_iter().zip(items) {
                    let [key, value] = pair else {
                        return unknown(item, function);
                    };
                    let name = self.text(key, function)?;
                    fields.insert(name, self.value(value, function)?);
                }
                Ok(Value::Object(fields))
            }
            None => {
                let items = items.iter().map(|item| self.value(item, function));
                Ok(Value::Array(items.collect::<Read<_>>()?))
            }
        }
    }

    /// Evaluates one of the structs that make up a schema in schemars 0.8.
    fn structure(
        &mut self,
        written: &StructExpr<'_>,
        expr: &Expr<'_>,
        function: &Function<'_>,
    ) -> Read<Value> {
        if !written
            .path
            .last()
            .is_some_and(|name| legacy::is_schema_struct(name))
        {
            return unknown(expr, function);
        }
        let mut keys = match &written.base {
            Some(base) => match self.value(base, function)? {
                Value::Object(keys) => keys,
                Value::Null => Map::new(),
                _ => return unknown(base, function),
            },
            None => Map::new(),
        };
        for (field, value) in &written.fields {
            let value = self.value(value, function)?;
            match value {
                Value::Null => {}
                Value::Object(inner) if legacy::is_flattened(field) => keys.extend(inner),
                _ if legacy::is_flattened(field) => return unknown(expr, function),
                value => drop(keys.insert(legacy::key(field), legacy::whole_number(value))),
            }
        }
        Ok(Value::Object(keys))
    }

    fn call_expr(
        &mut self,
        callee: &Expr<'_>,
        args: &[Expr<'_>],
        expr: &Expr<'_>,
        function: &Function<'_>,
    ) -> Read<Value> {
        let names = match &callee.kind {
            ExprKind::Associated(ty, "json_schema") => return self.type_schema(ty, callee.span, function),
            ExprKind::Associated(_, "default" | "new") if args.is_empty() => return Ok(Value::Null),
            ExprKind::Path(names) => names.as_slice(),
            _ => return unknown(expr, function),
        };
        let (of, last) = match names {
            [.., of, last] => (*of, *last),
            [last] => ("", *last),
            [] => return unknown(expr, function),
        };
        if last == "json_schema" && !of.is_empty() {
            return match owner_type(callee, names) {
                Some(ty) => self.type_schema(&ty, callee.span, function),
                None => unknown(expr, function),
            };
        }
        if let Some(id) = self.find(names, function.body_scope(), function.owner.clone()) {
            return self.call_function(id, callee, args, function);
        }
        match (of, last, args) {
            (_, "default" | "new", []) if legacy::is_schema_struct(of) || MAPS.contains(&of) => {
                Ok(Value::Object(Map::new()))
            }
            (_, "default" | "new", []) if LISTS.contains(&of) => Ok(Value::Array(Vec::new())),
            ("Default", "default", []) => Ok(Value::Null),
            ("serde_json" | "", "from_str", [text]) => {
                let text = self.text(text, function)?;
                serde_json::from_str(&text).or_else(|_| unknown(expr, function))
            }
            ("Box" | "Arc", "new", [only]) => self.value(only, function),
            (_, last, [only]) if WRAPPERS.contains(&last) => self.value(only, function),
            _ => unknown(expr, function),
        }
    }

    /// Evaluates a block, unless it changes outer variables or declares items.
    fn block(&mut self, body: Cursor<'_>, expr: &Expr<'_>, function: &Function<'_>) -> Read<Value> {
        let Ok(statements) = read_block(body) else {
            return function.unread(expr.span, "it is nested too deeply");
        };
        self.spend(function.size(), expr.span, function)?;
        // Work on a copy so that variables of the block don't leak out.
        let mut inner = function.clone();
        let value = self.statements(&statements, expr.span, &mut inner)?;
        let has_items = statements.iter().any(|part| matches!(part, Statement::Item(_)));
        let is_own = |name: &str| {
            let mut bound = statements.iter();
            bound.any(|part| matches!(part, Statement::Let(bound, _) if *bound == name))
        };
        let mut around = function.variables.iter();
        if has_items || around.any(|(name, old)| !is_own(name) && inner.variables.get(name) != Some(old)) {
            return unknown(expr, function);
        }
        Ok(value)
    }

    fn call_function(
        &mut self,
        id: super::ValueId,
        callee: &Expr<'_>,
        args: &[Expr<'_>],
        function: &Function<'_>,
    ) -> Read<Value> {
        let item = &self.schemas.package().values[id.0];
        if !item.is_function || args.len() > 1 {
            return unknown(callee, function);
        }
        let place = function.place(callee.span);
        let mut types = Vec::new();
        for ty in &callee.generic.arguments {
            let ty = ty.clone().placed_at(place.span);
            match self.schemas.resolve(&ty, function.body_scope()) {
                Some(ty) => types.push(ty),
                None => return function.unread(callee.span, ""),
            }
        }
        let bindings: Bindings = item.type_parameters.iter().cloned().zip(types).collect();
        let argument = match args.first() {
            Some(argument) => self
                .value(argument, function)
                .map_or(Variable::Unknown, Variable::Value),
            None => Variable::Unknown,
        };
        self.call(id, &bindings, Some(argument))
    }

    fn method(
        &mut self,
        receiver: &Expr<'_>,
        name: &str,
        args: &[Expr<'_>],
        expr: &Expr<'_>,
        function: &Function<'_>,
    ) -> Read<Value> {
        match (name, args) {
            ("subschema_for" | "root_schema_for" | "into_root_schema_for", []) => {
                match expr.generic.arguments.as_slice() {
                    [ty] => self.type_schema(ty, expr.span, function),
                    _ => unknown(expr, function),
                }
            }
            ("to_string", []) => self.text(receiver, function).map(Value::String),
            ("len", []) => {
                let text = self.text(receiver, function)?;
                Ok(text.len().into())
            }
            (name, [] | [_]) if SAME.contains(&name) || legacy::is_accessor(name) => {
                self.value(receiver, function)
            }
            // With a value, the default doesn't matter. With `null`, it's unclear whether the
            // default applies.
            ("unwrap_or_default", []) | ("unwrap_or" | "unwrap_or_else", [_]) => {
                match self.value(receiver, function)? {
                    Value::Null => unknown(expr, function),
                    value => Ok(value),
                }
            }
            _ => unknown(expr, function),
        }
    }

    /// Runs a statement that changes a variable, such as `x.insert(…)`.
    pub(super) fn change(&mut self, expr: &Expr<'_>, function: &mut Function<'_>) -> Read<()> {
        let ExprKind::Method(receiver, name, args) = &expr.kind else {
            return unknown(expr, function);
        };
        if matches!(*name, "unwrap" | "expect") {
            return self.change(receiver, function);
        }
        let Some((of, path)) = function.find_part(receiver) else {
            return unknown(expr, function);
        };
        let values: Vec<Value> = match (*name, args.as_slice()) {
            ("insert", [key, value]) => vec![self.text(key, function)?.into(), self.value(value, function)?],
            ("insert" | "push" | "extend" | "append", [only]) => vec![self.value(only, function)?],
            ("remove", [key]) => vec![self.text(key, function)?.into()],
            _ => return unknown(expr, function),
        };
        let Some(place) = function.part(&of, &path) else {
            return unknown(expr, function);
        };
        if change_value(place, name, values).is_none() {
            return unknown(expr, function);
        }
        Ok(())
    }
}

fn change_value(place: &mut Value, name: &str, values: Vec<Value>) -> Option<()> {
    let mut values = values.into_iter();
    let (first, second) = (values.next()?, values.next());
    // `Default::default()` evaluates to `null`. Only at this point is it clear whether it's an
    // object or a list.
    if place.is_null() {
        *place = match (&second, &first) {
            (Some(_), _) | (None, Value::Object(_)) => Value::Object(Map::new()),
            _ => Value::Array(Vec::new()),
        };
    }
    match (name, place, first, second) {
        ("insert", Value::Object(fields), Value::String(key), Some(value)) => drop(fields.insert(key, value)),
        ("remove", Value::Object(fields), Value::String(key), None) => drop(fields.remove(&key)),
        ("remove", Value::Array(items), item, None) => items.retain(|other| *other != item),
        ("insert" | "push", Value::Array(items), item, None) => items.push(item),
        ("extend" | "append", Value::Array(items), Value::Array(more), None) => items.extend(more),
        ("extend" | "append", Value::Object(fields), Value::Object(more), None) => fields.extend(more),
        _ => return None,
    }
    Some(())
}

/// Returns `a::T` for `a::T::json_schema`.
fn owner_type(callee: &Expr<'_>, names: &[&str]) -> Option<TypeRef> {
    if let Some(owner) = &callee.generic.owner {
        return Some(TypeRef::clone(owner));
    }
    let (_, path) = names.split_last()?;
    TypeRef::parse(&path.join("::"), callee.span)
}

fn unknown<T>(expr: &Expr<'_>, function: &Function<'_>) -> Read<T> {
    const LONGEST: usize = 40;
    let line = expr.text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(LONGEST).collect();
    if shown.len() < expr.text.len() {
        shown.push('…');
    }
    function.unread(
        expr.span,
        format!("`{shown}` cannot be evaluated without running the program"),
    )
}
