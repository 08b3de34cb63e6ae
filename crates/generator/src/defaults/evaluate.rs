//! Evaluates expressions, given the expected type of each value.

use std::collections::BTreeMap;

use rbuilder_reader::token::lex;
use rbuilder_reader::{Expr, ExprKind, Operator, StructExpr, TypeKind};
use rbuilder_schema::{Content, Shape};
use serde_json::{Map, Value};

use super::object::Rest;
use super::{Evaluator, Frame, leaf};
use crate::package::{TypeId, ValueId};
use crate::resolve::{Bindings, Owner, Scope, Ty, ValueTarget, find_owner, find_value};

/// Methods that return their receiver, possibly as another type.
const CONVERSIONS: &[&str] = &[
    "to_string",
    "to_owned",
    "into",
    "clone",
    "to_vec",
    "iter",
    "into_iter",
    "collect",
    "cloned",
    "copied",
    "as_str",
    "into_boxed_str",
    "to_path_buf",
];

/// Functions that return their argument, possibly as another type.
const WRAPPERS: &[(&str, &str)] = &[
    ("Box", "new"),
    ("Arc", "new"),
    ("Rc", "new"),
    ("Cow", "Borrowed"),
    ("Cow", "Owned"),
    ("ToString", "to_string"),
    ("ToOwned", "to_owned"),
    ("Into", "into"),
];

/// Types from std and common crates whose `new` returns an empty value.
const EMPTY: &[&str] = &[
    "Vec",
    "VecDeque",
    "LinkedList",
    "BTreeMap",
    "HashMap",
    "BTreeSet",
    "HashSet",
    "IndexMap",
    "IndexSet",
    "String",
    "PathBuf",
    "Map",
];

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn call_path(&mut self, path: &str, ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        let tokens = lex(path).ok()?;
        match Expr::read(&mut tokens.cursor()).ok()?.kind {
            ExprKind::Path(names) => self.call(&names, &[], ty, frame),
            _ => None,
        }
    }

    pub(super) fn value(&mut self, expr: &Expr<'_>, ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        self.step(|this| this.evaluate(expr, ty, frame))
    }

    fn evaluate(&mut self, expr: &Expr<'_>, ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        match &expr.kind {
            ExprKind::Literal(value) => leaf::literal(value, ty),
            ExprKind::Path(names) => self.path(names, ty, frame),
            ExprKind::Call(function, args) => match &function.kind {
                ExprKind::Path(names) => self.call(names, args, ty, frame),
                _ => None,
            },
            ExprKind::Method(receiver, name, args) => self.method(receiver, name, args, ty, frame),
            ExprKind::Array(items) => self.list(items, ty, frame),
            ExprKind::Struct(written) => self.written_struct(written, ty, frame),
            ExprKind::Negative(inner) => {
                let value = self.value(inner, ty, frame)?;
                calculate(&0.into(), Operator::Sub, &value).or_else(|| {
                    // Must be a float: `calculate` only supports integers.
                    let negative = Value::from(-value.as_f64()?);
                    leaf::literal(&negative, ty)
                })
            }
            ExprKind::Binary(left, operator, right) => {
                let (left, right) = (self.value(left, ty, frame)?, self.value(right, ty, frame)?);
                leaf::literal(&calculate(&left, *operator, &right)?, ty)
            }
            ExprKind::Not(inner) => self.value(inner, ty, frame)?.as_bool().map(|flag| (!flag).into()),
            ExprKind::Associated(..)
            | ExprKind::Field(..)
            | ExprKind::Index(..)
            | ExprKind::Macro(..)
            | ExprKind::Tuple(_)
            | ExprKind::Block(_)
            | ExprKind::Equals(..)
            | ExprKind::Other => None,
        }
    }

    fn target(&self, names: &[&str], frame: Frame<'_>) -> Option<ValueTarget> {
        if let Some((&"Self", rest)) = names.split_first() {
            return match (frame.owner?, rest) {
                (Owner::Type(id), []) => Some(ValueTarget::Type(*id)),
                (owner, [name]) => Some(ValueTarget::Of(owner.clone(), (*name).to_owned())),
                _ => None,
            };
        }
        let segments: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        find_value(self.package(), frame.scope.module, &segments)
    }

    fn find_named(&self, target: Option<ValueTarget>) -> Option<ValueId> {
        match target? {
            ValueTarget::Value(id) => Some(id),
            ValueTarget::Of(owner, name) => self.associated.get(&(owner, name)).copied(),
            ValueTarget::Type(_) | ValueTarget::External(_) => None,
        }
    }

    /// Only finds functions of our packages, not those of std.
    pub(super) fn find_function(&self, names: &[&str], frame: Frame<'_>) -> Option<ValueId> {
        self.find_named(self.target(names, frame))
    }

    pub(super) fn in_body<T>(
        &mut self,
        id: ValueId,
        argument: Option<(&Value, &Ty)>,
        run: impl FnOnce(&mut Self, &Expr<'_>, Frame<'_>) -> Option<T>,
    ) -> Option<T> {
        let package = self.package();
        let item = &package.values[id.0];
        let parameter = match (argument, &item.parameter) {
            (Some((value, ty)), Some(name)) => Some((name.as_str(), value, ty)),
            (None, None) => None,
            _ => return None,
        };
        let tokens = lex(without_return(&item.body)).ok()?;
        let mut cursor = tokens.cursor();
        let expr = Expr::read(&mut cursor).ok()?;
        if !cursor.is_end() {
            return None;
        }
        let owner = self.owner(id);
        let bindings = Bindings::new();
        let frame = Frame {
            scope: Scope {
                file: item.file,
                module: item.module,
                bindings: &bindings,
            },
            owner: owner.as_ref(),
            parameter,
        };
        self.step(|this| run(this, &expr, frame))
    }

    fn owner(&self, id: ValueId) -> Option<Owner> {
        let item = &self.package().values[id.0];
        match &item.self_type.as_ref()?.kind {
            TypeKind::Path(segments, _) => find_owner(self.package(), item.module, segments),
            _ => None,
        }
    }

    fn path(&mut self, names: &[&str], ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        if let (Some((name, value, _)), [only]) = (frame.parameter, names)
            && name == *only
        {
            return Some(value.clone());
        }
        if names.last() == Some(&"None") && matches!(ty, Ty::Option(_)) {
            return Some(Value::Null);
        }
        let target = self.target(names, frame);
        if let Some(id) = self.find_named(target.clone()) {
            // Without a call, a function isn't a value.
            let is_constant = !self.package().values[id.0].is_function;
            return is_constant
                .then(|| self.in_body(id, None, |this, expr, frame| this.value(expr, ty, frame)))?;
        }
        match target {
            Some(ValueTarget::Of(Owner::Type(id), name)) => {
                let (model, position) = self.find_variant(id, &name, ty)?;
                self.variant(id, model, position, None)
            }
            _ => leaf::literal(&bound(names)?, ty),
        }
    }

    /// Returns the variant, or `None` unless the expected type is this enum.
    fn find_variant(&self, id: TypeId, name: &str, ty: &Ty) -> Option<(&'a rbuilder_syntax::Type, usize)> {
        let model = self.plain_model(id).or_else(|| self.numbered_model(id))?;
        let Shape::Enum { variants, .. } = &model.container.shape else {
            return None;
        };
        let is_wanted = matches!(ty, Ty::Item(wanted, _) if *wanted == id);
        let position = variants.iter().position(|variant| variant.ident == name)?;
        is_wanted.then_some((model, position))
    }

    fn call(&mut self, names: &[&str], args: &[Expr<'_>], ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        if let (Some(&"Some"), [only], Ty::Option(inner)) = (names.last(), args, ty) {
            return self.value(only, inner, frame);
        }
        let target = self.target(names, frame);
        if let Some(id) = self.find_named(target.clone()) {
            return args
                .is_empty()
                .then(|| self.in_body(id, None, |this, expr, frame| this.value(expr, ty, frame)))?;
        }
        match (target, args) {
            (Some(ValueTarget::Of(Owner::Type(id), name)), []) if name == "default" => {
                let is_wanted = matches!(ty, Ty::Item(wanted, _) if *wanted == id);
                is_wanted.then(|| self.zero(ty))?
            }
            (Some(ValueTarget::Of(Owner::Type(id), name)), [only]) => {
                let (model, position) = self.find_variant(id, &name, ty)?;
                self.newtype_variant(id, model, position, only, ty, frame)
            }
            (Some(ValueTarget::Type(id)), [only]) => self.newtype(id, only, ty, frame),
            (None | Some(ValueTarget::External(_)), args) => self.call_std(names, args, ty, frame),
            _ => None,
        }
    }

    fn newtype_variant(
        &mut self,
        id: TypeId,
        model: &rbuilder_syntax::Type,
        position: usize,
        content: &Expr<'_>,
        ty: &Ty,
        frame: Frame<'_>,
    ) -> Option<Value> {
        let (Shape::Enum { variants, .. }, Ty::Item(_, args)) = (&model.container.shape, ty) else {
            return None;
        };
        let Content::Newtype(slot) = &variants.get(position)?.content else {
            return None;
        };
        let inner = self.type_of(id, args, *slot)?;
        let content = self.value(content, &inner, frame)?;
        self.variant(id, model, position, Some(content))
    }

    fn newtype(&mut self, id: TypeId, content: &Expr<'_>, ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        let model = self.plain_model(id)?;
        let (Shape::Transparent(slot), Ty::Item(wanted, args)) = (&model.container.shape, ty) else {
            return None;
        };
        if *wanted != id {
            return None;
        }
        let inner = self.type_of(id, args, *slot)?;
        self.value(content, &inner, frame)
    }

    fn call_std(&mut self, names: &[&str], args: &[Expr<'_>], ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        let (last, prefix) = names.split_last()?;
        let of = prefix.last().copied().unwrap_or_default();
        match (of, *last, args) {
            (_, "default", []) => match ty {
                // A type of our own would have been found already. And `T::default()` is an
                // `Option` only if `T` is.
                Ty::Item(..) if of != "Default" => None,
                Ty::Option(_) if of != "Default" && of != "Option" => None,
                _ => self.zero(ty),
            },
            (_, "new", []) | (_, "with_capacity", [_]) if EMPTY.contains(&of) => match ty {
                Ty::Option(_) | Ty::Item(..) | Ty::Array(..) => None,
                _ => self.zero(ty),
            },
            (_, "Quantity", [only]) if leaf::is_quantity(ty) => self.value(only, &text(), frame),
            ("IntOrString", "Int", [only]) if leaf::is_int_or_string(ty) => {
                self.value(only, &Ty::Known("i32".into()), frame)
            }
            ("IntOrString", "String", [only]) if leaf::is_int_or_string(ty) => {
                self.value(only, &text(), frame)
            }
            (of, name, [only]) if WRAPPERS.contains(&(of, name)) => self.value(only, ty, frame),
            (_, "from" | "from_iter", [only])
                if leaf::is_text(ty) || matches!(ty, Ty::List(_) | Ty::Set(_) | Ty::Map(..)) =>
            {
                self.value(only, ty, frame)
            }
            _ => None,
        }
    }

    fn method(
        &mut self,
        receiver: &Expr<'_>,
        name: &str,
        args: &[Expr<'_>],
        ty: &Ty,
        frame: Frame<'_>,
    ) -> Option<Value> {
        match (name, args) {
            ("to_string", []) if leaf::is_text(ty) && matches!(receiver.kind, ExprKind::Literal(_)) => {
                match &receiver.kind {
                    ExprKind::Literal(Value::String(text)) => Some(text.as_str().into()),
                    // Floats can print differently: `1.0.to_string()` is "1".
                    ExprKind::Literal(Value::Number(number)) if !number.is_f64() => {
                        Some(number.to_string().into())
                    }
                    ExprKind::Literal(Value::Bool(flag)) => Some(flag.to_string().into()),
                    _ => None,
                }
            }
            (name, []) if CONVERSIONS.contains(&name) => {
                let value = self.value(receiver, ty, frame);
                match ty {
                    // `into()` also converts a `T` to `Some(T)`.
                    Ty::Option(inner) if name == "into" => {
                        value.or_else(|| self.value(receiver, inner, frame))
                    }
                    _ => value,
                }
            }
            ("map", [function]) if converts_text(function) => self.value(receiver, ty, frame),
            // E.g. `NonZeroU16::new(80).unwrap()`.
            ("unwrap", []) | ("expect", [_]) if leaf::is_non_zero(ty) => match &receiver.kind {
                ExprKind::Call(function, args) => match (&function.kind, args.as_slice()) {
                    (ExprKind::Path(names), [number]) if names.last() == Some(&"new") => {
                        self.value(number, &Ty::Known("i64".into()), frame)
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    fn list(&mut self, items: &[Expr<'_>], ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        match ty {
            Ty::List(item) | Ty::Array(item, _) | Ty::Set(item) => {
                let values = items.iter().map(|expr| self.value(expr, item, frame));
                let mut values = values.collect::<Option<Vec<_>>>()?;
                if matches!(ty, Ty::Set(_)) {
                    // serde writes a set in order, but the order of an enum's variants isn't known.
                    if values.len() > 1 && !matches!(**item, Ty::Known(_)) {
                        return None;
                    }
                    values.sort_by_cached_key(|value| (value.as_i64(), value.to_string()));
                    values.dedup();
                }
                Some(Value::Array(values))
            }
            Ty::Map(key, value) => {
                let mut entries = Map::new();
                for item in items {
                    let ExprKind::Tuple(pair) = &item.kind else {
                        return None;
                    };
                    let [name, content] = pair.as_slice() else {
                        return None;
                    };
                    let name = match self.value(name, key, frame)? {
                        Value::String(name) => name,
                        Value::Number(number) => number.to_string(),
                        _ => return None,
                    };
                    entries.insert(name, self.value(content, value, frame)?);
                }
                Some(Value::Object(entries))
            }
            _ => None,
        }
    }

    fn written_struct(&mut self, written: &StructExpr<'_>, ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        let Ty::Item(wanted, args) = ty else { return None };
        let given: BTreeMap<&str, &Expr<'_>> = written
            .fields
            .iter()
            .map(|(name, value)| (*name, value))
            .collect();
        match self.target(&written.path, frame)? {
            ValueTarget::Type(id) if id == *wanted => {
                let base = match &written.base {
                    Some(base) => Some(self.value(base, ty, frame)?),
                    None => None,
                };
                let rest = match &base {
                    Some(Value::Object(fields)) => Rest::Of(fields),
                    Some(_) => return None,
                    None => Rest::None,
                };
                self.structure(id, args, &given, &rest, frame)
            }
            ValueTarget::Of(Owner::Type(id), name) => {
                let (_, position) = self.find_variant(id, &name, ty)?;
                self.variant_fields(id, args, position, &given, frame)
            }
            _ => None,
        }
    }
}

/// Strips the `return` of a body like `return 3;`.
fn without_return(body: &str) -> &str {
    let body = body.trim();
    let returned = body
        .strip_prefix("return ")
        .and_then(|rest| rest.strip_suffix(';'));
    returned.unwrap_or(body)
}

fn text() -> Ty {
    Ty::Known("std::string::String".into())
}

/// Returns true if the function converts a `&str` to a `String`, e.g. `String::from` or
/// `|s| s.to_string()`.
fn converts_text(function: &Expr<'_>) -> bool {
    const NAMES: &[&str] = &["from", "to_string", "to_owned", "into"];
    if let ExprKind::Path(names) = &function.kind {
        return names.last().is_some_and(|last| NAMES.contains(last));
    }
    let written: String = function.text.split_whitespace().collect();
    let Some((name, body)) = written.strip_prefix('|').and_then(|rest| rest.split_once('|')) else {
        return false;
    };
    let rest = body.strip_prefix(name.trim_start_matches('&'));
    let method = rest.and_then(|rest| rest.strip_prefix('.')?.strip_suffix("()"));
    method.is_some_and(|method| NAMES.contains(&method)) || body == format!("String::from({name})")
}

pub(crate) fn bound(names: &[&str]) -> Option<Value> {
    let text = names.join("::");
    let tokens = lex(&text).ok()?;
    Expr::read(&mut tokens.cursor()).ok()?.value().ok()
}

pub(crate) fn calculate(left: &Value, operator: Operator, right: &Value) -> Option<Value> {
    let integer = |value: &Value| {
        let signed = value.as_i64().map(i128::from);
        signed.or_else(|| value.as_u64().map(i128::from))
    };
    let (left, right) = (integer(left)?, integer(right)?);
    let result = operator.apply(left, right)?;
    let signed = i64::try_from(result).map(Value::from);
    signed.or_else(|_| u64::try_from(result).map(Value::from)).ok()
}
