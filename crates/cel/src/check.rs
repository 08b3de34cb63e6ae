//! Type checker: infers the type of every node like cel-go's checker, and reports everything that
//! the API server would reject.

use std::ops::Range;
use std::sync::Arc;

use rbuilder_diagnostic::suggest;
use rbuilder_kubernetes::go::parse_duration;
use rbuilder_re2::Pattern;
use rbuilder_schema::{cel_name, is_cel_word};

use super::Diagnostic;
use super::ast::{ACCUMULATOR, Expr, Fold, Kind, Literal};
use super::functions::{self, Overload};
use super::literals::{find_unknown_clause, is_timestamp};
use super::mismatch::describe_mismatch;
use super::types::{Decl, DeclKind, Type};
use super::unify::{Bindings, is_less_specific};

pub(crate) struct Checked {
    /// Indexed by node id.
    pub(crate) types: Vec<Type>,
    /// Indexed by node id of the call. Arguments of type `dyn` may match several overloads.
    pub(crate) overloads: Vec<Vec<&'static Overload>>,
    pub(crate) result: Type,
    /// Variables used in the expression, except loop variables.
    pub(crate) used: Vec<String>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

pub(crate) fn check_expression(root: &mut Expr, nodes: usize, variables: &[(&str, Type)]) -> Checked {
    let mut checker = Checker {
        scopes: variables
            .iter()
            .map(|(name, ty)| ((*name).to_owned(), ty.clone()))
            .collect(),
        free: variables.len(),
        bindings: Bindings::default(),
        types: vec![Type::Error; nodes],
        overloads: std::iter::repeat_with(Vec::new).take(nodes).collect(),
        used: Vec::new(),
        diagnostics: Vec::new(),
        in_format: false,
    };
    checker.check(root);
    let bindings = &checker.bindings;
    let types: Vec<Type> = checker.types.iter().map(|ty| bindings.settle(ty)).collect();
    Checked {
        result: types.get(root.id).cloned().unwrap_or(Type::Error),
        types,
        overloads: checker.overloads,
        used: checker.used,
        diagnostics: checker.diagnostics,
    }
}

/// Types that can be used as values, as in `type(x) == string`.
const TYPE_NAMES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// Same as `TYPE_NAMES`, for types of Kubernetes' libraries.
const QUALIFIED_TYPE_NAMES: &[&str] = &["net.CIDR", "net.IP"];

/// Protocol buffer types with CEL equivalents. Rules may mention others, but no value has such a
/// type.
const MESSAGE_TYPE_NAMES: &[&str] = &["google.protobuf.Duration", "google.protobuf.Timestamp"];

pub(crate) fn type_name(path: &str) -> Option<&'static str> {
    let names = [TYPE_NAMES, QUALIFIED_TYPE_NAMES, MESSAGE_TYPE_NAMES];
    names.into_iter().flatten().copied().find(|name| *name == path)
}

struct Checker {
    /// Innermost scope last.
    scopes: Vec<(String, Type)>,
    /// Number of leading `scopes` that are variables of the expression. The rest are loop
    /// variables.
    free: usize,
    bindings: Bindings,
    types: Vec<Type>,
    overloads: Vec<Vec<&'static Overload>>,
    used: Vec<String>,
    diagnostics: Vec<Diagnostic>,
    /// Set inside the arguments of `format`, whose list may have mixed types.
    in_format: bool,
}

impl Checker {
    fn error(&mut self, at: &Range<usize>, message: impl Into<String>, help: Option<String>) -> Type {
        self.diagnostics
            .push(Diagnostic::error(at.clone(), message).maybe_help(help));
        Type::Error
    }

    fn check(&mut self, expr: &mut Expr) -> Type {
        let ty = self.kind(expr);
        self.types[expr.id] = ty.clone();
        ty
    }

    fn kind(&mut self, expr: &mut Expr) -> Type {
        let (id, at) = (expr.id, expr.at.clone());
        if matches!(expr.kind, Kind::Select { .. })
            && let Some(path) = path(expr)
        {
            // Variables may have qualified names, e.g. `authorizer.requestResource`.
            if let Some((_, ty)) = self.scopes.iter().rfind(|(known, _)| *known == path) {
                return ty.clone();
            }
            if is_type_name(&path) {
                return Type::Kind;
            }
        }
        match &mut expr.kind {
            Kind::Literal(literal) => of_literal(literal),
            Kind::Ident(name) => self.ident(name, &at),
            Kind::Select { operand, field, test } => {
                let operand = self.check(operand);
                let ty = self.select(&operand, field, &at);
                if *test { Type::Bool } else { ty }
            }
            Kind::Call { .. } => self.call(expr),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Message(name) => match type_of_message(name) {
                Some(ty) => ty,
                None => {
                    let message =
                        format!("`{name}{{…}}` creates a message, and Kubernetes declares no message types");
                    self.error(&at, message, None)
                }
            },
            Kind::Fold(fold) => self.fold(fold),
            Kind::Bind { name, value, body } => {
                let value = self.check(value);
                self.scopes.push((name.clone(), value));
                let body = self.check(body);
                self.scopes.pop();
                self.overloads[id].clear();
                body
            }
        }
    }

    fn ident(&mut self, name: &str, at: &Range<usize>) -> Type {
        let found = self.scopes.iter().rposition(|(known, _)| known == name);
        if let Some(position) = found {
            if position < self.free && !self.used.iter().any(|used| used == name) {
                self.used.push(name.to_owned());
            }
            return self.scopes[position].1.clone();
        }
        if TYPE_NAMES.contains(&name) {
            return Type::Kind;
        }
        let known: Vec<&str> = self
            .scopes
            .iter()
            .map(|(known, _)| known.as_str())
            .filter(|known| *known != ACCUMULATOR)
            .collect();
        let help = match self.root_field(name) {
            Some(field) => format!("write `self.{field}`"),
            None => suggest::describe_candidates(name, known.iter().copied()),
        };
        self.error(at, format!("unknown variable `{name}`"), Some(help))
    }

    /// If `name` is a field of `self`, the user probably forgot the `self.`
    fn root_field(&self, name: &str) -> Option<String> {
        let (_, Type::Object(decl)) = self.scopes.iter().find(|(known, _)| known == "self")? else {
            return None;
        };
        let DeclKind::Object(fields) = &decl.kind else {
            return None;
        };
        fields.contains_key(name).then(|| name.to_owned())
    }

    fn select(&mut self, operand: &Type, field: &str, at: &Range<usize>) -> Type {
        let operand = self.bindings.resolve(operand);
        let (target, optional) = match &operand {
            Type::Optional(inner) => (self.bindings.resolve(inner), true),
            ty => (ty.clone(), false),
        };
        let found = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(decl) => self.field(decl, field, at),
            Type::Variable(_) => {
                self.bindings.accepts(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let message = format!("type {} has no field `{field}`", other.name());
                self.error(at, message, None)
            }
        };
        match optional {
            true => Type::optional(found),
            false => found,
        }
    }

    fn field(&mut self, decl: &Arc<Decl>, field: &str, at: &Range<usize>) -> Type {
        let DeclKind::Object(fields) = &decl.kind else {
            return Type::Dyn;
        };
        match fields.get(field) {
            Some(Some(decl)) => decl.ty(),
            Some(None) => {
                let help = "give it a type, or check it in a webhook".to_owned();
                let message =
                    format!("the field `{field}` is not visible to rules: its content has no schema");
                self.error(at, message, Some(help))
            }
            None => {
                let escaped = cel_name(field).filter(|escaped| fields.contains_key(escaped));
                if let Some(escaped) = &escaped
                    && is_cel_word(field)
                    && let Some(Some(decl)) = fields.get(escaped)
                {
                    let message = format!("older API servers accept the field `{field}` as `{escaped}` only");
                    self.diagnostics
                        .push(Diagnostic::warning(at.clone(), message).help(format!("write `{escaped}`")));
                    return decl.ty();
                }
                let help = match escaped {
                    Some(escaped) => format!("write `{escaped}`"),
                    None if fields.is_empty() => {
                        "the object has no fields that are visible to rules".to_owned()
                    }
                    None => suggest::describe_candidates(field, fields.keys().map(String::as_str)),
                };
                self.error(at, format!("unknown field `{field}`"), Some(help))
            }
        }
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let (id, at) = (expr.id, expr.at.clone());
        let Kind::Call {
            function,
            target,
            args,
        } = &mut expr.kind
        else {
            return Type::Error;
        };
        if function == "_?._" {
            let Some((operand, name)) = args.split_first_mut() else {
                return Type::Error;
            };
            let operand = self.check(operand);
            let Some(Expr {
                kind: Kind::Literal(Literal::String(field)),
                id: name,
                ..
            }) = name.first_mut()
            else {
                return Type::Error;
            };
            self.types[*name] = Type::String;
            let found = self.select(&operand, field, &at);
            return match found {
                Type::Optional(_) => found,
                found => Type::optional(found),
            };
        }
        let outer = std::mem::replace(&mut self.in_format, function == "format" && target.is_some());
        for arg in args.iter_mut() {
            self.check(arg);
        }
        self.in_format = outer;
        // In `optional.of(x)`, the apparent target is part of the function's name.
        if let Some(qualified) = target
            .as_deref()
            .and_then(path)
            .map(|path| format!("{path}.{function}"))
            && functions::find_overloads(&qualified).is_some()
        {
            *function = qualified;
            *target = None;
        }
        let mut given = Vec::with_capacity(args.len() + 1);
        if let Some(target) = target {
            given.push(self.check(target));
        }
        given.extend(args.iter().map(|arg| self.types[arg.id].clone()));
        self.literals(function, args);
        self.format_literal(function, target.as_deref());
        let Some(overloads) = functions::find_overloads(function) else {
            return self.unknown_function(function, &at);
        };
        self.resolve(id, function, overloads, target.is_some(), &given, &at)
    }

    fn unknown_function(&mut self, function: &str, at: &Range<usize>) -> Type {
        let help = match suggest::find_nearest(function, functions::function_names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "see https://kubernetes.io/docs/reference/using-api/cel/".to_owned(),
        };
        self.error(at, format!("unknown function `{function}`"), Some(help))
    }

    fn resolve(
        &mut self,
        id: usize,
        function: &str,
        overloads: &'static [Overload],
        member: bool,
        given: &[Type],
        at: &Range<usize>,
    ) -> Type {
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            let fresh: Vec<usize> = (0..overload.variables).map(|_| self.bindings.fresh()).collect();
            let parameters: Vec<Type> = overload.args.iter().map(|arg| instance(arg, &fresh)).collect();
            if !self.bindings.all_accept(given, &parameters) {
                continue;
            }
            self.overloads[id].push(overload);
            let found = self.bindings.resolve(&instance(&overload.result, &fresh));
            result = Some(match result {
                None => found,
                Some(Type::Dyn) => Type::Dyn,
                Some(earlier) if earlier == found => earlier,
                Some(_) => Type::Dyn,
            });
        }
        if let Some(result) = result {
            return result;
        }
        // Already reported for the argument; don't repeat it here.
        if given.contains(&Type::Error) {
            return Type::Error;
        }
        let given: Vec<String> = given.iter().map(|ty| self.bindings.settle(ty).name()).collect();
        let (message, help) = describe_mismatch(function, member, &given);
        self.error(at, message, help)
    }

    fn list(&mut self, items: &mut [(Expr, bool)]) -> Type {
        let mut joined: Option<Type> = None;
        for (item, optional) in items {
            let ty = self.check(item);
            let ty = self.unwrap(ty, *optional, &item.at);
            joined = Some(self.join(joined, ty, &item.at, "list items"));
        }
        Type::list(joined.unwrap_or_else(|| Type::Variable(self.bindings.fresh())))
    }

    fn map(&mut self, entries: &mut [(Expr, Expr, bool)]) -> Type {
        let (mut keys, mut values) = (None, None);
        for (key, value, optional) in entries {
            let ty = self.check(key);
            keys = Some(self.join(keys, ty, &key.at, "map keys"));
            let ty = self.check(value);
            let ty = self.unwrap(ty, *optional, &value.at);
            values = Some(self.join(values, ty, &value.at, "map values"));
        }
        let mut or_fresh = |ty: Option<Type>| ty.unwrap_or_else(|| Type::Variable(self.bindings.fresh()));
        Type::map(or_fresh(keys), or_fresh(values))
    }

    fn unwrap(&mut self, ty: Type, optional: bool, at: &Range<usize>) -> Type {
        if !optional {
            return ty;
        }
        match self.bindings.resolve(&ty) {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn | Type::Error => ty,
            other => {
                let message = format!("expected an optional value after `?`, found {}", other.name());
                self.error(at, message, None)
            }
        }
    }

    fn join(&mut self, joined: Option<Type>, ty: Type, at: &Range<usize>, what: &str) -> Type {
        let Some(joined) = joined else { return ty };
        let differ = match (self.bindings.resolve(&joined), self.bindings.resolve(&ty)) {
            (Type::Error, _) | (_, Type::Error) => return Type::Error,
            // Kubernetes requires homogeneous lists, and counts `dyn` as a type of its own.
            (Type::Dyn, other) | (other, Type::Dyn) => {
                !self.in_format && !matches!(other, Type::Dyn | Type::Variable(_))
            }
            _ => false,
        };
        if !differ && self.bindings.accepts(&joined, &ty) {
            return match is_less_specific(&joined, &ty) {
                true => joined,
                false => ty,
            };
        }
        if self.in_format {
            return Type::Dyn;
        }
        let names = [&joined, &ty].map(|ty| self.bindings.settle(ty).name());
        let message = format!(
            "{what} must have the same type, found {} and {}",
            names[0], names[1]
        );
        self.error(at, message, None)
    }

    fn fold(&mut self, fold: &mut Fold) -> Type {
        let range = self.check(&mut fold.range);
        let start = self.check(&mut fold.init);
        let depth = self.scopes.len();
        self.scopes.push((ACCUMULATOR.to_owned(), start.clone()));
        let (first, second) = self.loop_types(range, fold);
        self.scopes.push((fold.variable.clone(), first));
        if let Some(name) = &fold.second {
            self.scopes.push((name.clone(), second));
        }
        self.check(&mut fold.condition);
        let step = self.check(&mut fold.step);
        if !self.bindings.accepts(&step, &start) {
            let names = [&start, &step].map(|ty| self.bindings.settle(ty).name());
            let message = format!(
                "the loop starts with {}, and a step of it returns {}",
                names[0], names[1]
            );
            self.error(&fold.step.at, message, None);
        }
        self.scopes.truncate(depth + 1);
        let result = self.check(&mut fold.result);
        self.scopes.truncate(depth);
        self.bindings.resolve(&result)
    }

    fn loop_types(&mut self, range: Type, fold: &Fold) -> (Type, Type) {
        let two = fold.second.is_some();
        match self.bindings.resolve(&range) {
            Type::List(item) if two => (Type::Int, (*item).clone()),
            Type::List(item) => ((*item).clone(), Type::Error),
            Type::Map(key, value) => ((*key).clone(), (*value).clone()),
            ty @ (Type::Dyn | Type::Error | Type::Variable(_)) => {
                self.bindings.accepts(&Type::Dyn, &ty);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!("expected a list or a map, found {}", other.name());
                self.error(&fold.range.at, message, None);
                (Type::Error, Type::Error)
            }
        }
    }

    fn format_literal(&mut self, function: &str, target: Option<&Expr>) {
        let Some(Expr {
            kind: Kind::Literal(Literal::String(text)),
            at,
            ..
        }) = target.filter(|_| function == "format")
        else {
            return;
        };
        // cel-go parses literal formats at compile time.
        if let Some(clause) = find_unknown_clause(text) {
            let message = format!("unrecognized formatting clause `{clause}`");
            let help = "use one of `%s`, `%d`, `%f`, `%e`, `%b`, `%o`, `%x`, `%X` and `%%`".to_owned();
            self.error(&at.clone(), message, Some(help));
        }
    }

    fn literals(&mut self, function: &str, args: &[Expr]) {
        // The second argument of `findAll` is a limit, so the pattern isn't always the last one.
        let read = match function {
            "find" | "findAll" => args.first(),
            _ => args.last(),
        };
        let Some(Expr {
            kind: Kind::Literal(Literal::String(text)),
            at,
            ..
        }) = read
        else {
            return;
        };
        let problem = match function {
            "matches" | "find" | "findAll" => Pattern::parse(text)
                .err()
                .map(|reason| format!("invalid regular expression: {reason}")),
            "duration" if parse_duration(text).is_none() => {
                Some(format!("expected a duration such as `1h30m`, found `{text}`"))
            }
            "timestamp" if !is_timestamp(text) => Some(format!(
                "expected a timestamp such as `2030-01-31T12:00:00Z`, found `{text}`"
            )),
            _ => None,
        };
        if let Some(problem) = problem {
            self.error(&at.clone(), problem, None);
        }
    }
}

fn of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Checks if a path is a type name that `type(x)` can be compared with, e.g.
/// `google.protobuf.Timestamp`.
fn is_type_name(path: &str) -> bool {
    let mut segments = path.split('.');
    let first = segments.next().unwrap_or_default();
    let last = segments.next_back().unwrap_or_default();
    QUALIFIED_TYPE_NAMES.contains(&path)
        || (first == "google" && last.starts_with(|letter: char| letter.is_ascii_uppercase()))
}

fn type_of_message(name: &str) -> Option<Type> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "Timestamp" => Type::Timestamp,
        "Duration" => Type::Duration,
        "Any" | "BoolValue" | "BytesValue" | "DoubleValue" | "Empty" | "FloatValue" | "Int32Value"
        | "Int64Value" | "ListValue" | "StringValue" | "Struct" | "UInt32Value" | "UInt64Value" | "Value" => {
            Type::Dyn
        }
        _ => return None,
    })
}

/// Returns `a.b.c` if the expression consists only of that.
pub(crate) fn path(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Ident(name) => Some(name.clone()),
        Kind::Select {
            operand,
            field,
            test: false,
        } => Some(format!("{}.{field}", path(operand)?)),
        _ => None,
    }
}

fn instance(ty: &Type, fresh: &[usize]) -> Type {
    match ty {
        Type::Variable(number) => fresh
            .get(*number)
            .map_or(Type::Dyn, |fresh| Type::Variable(*fresh)),
        Type::List(item) => Type::list(instance(item, fresh)),
        Type::Optional(inner) => Type::optional(instance(inner, fresh)),
        Type::Map(key, value) => Type::map(instance(key, fresh), instance(value, fresh)),
        ty => ty.clone(),
    }
}
