//! Evaluates functions that return a schema, either for `schema_with` or in a handwritten
//! `impl JsonSchema`.
//!
//! Most of them write a schema as literals, take the schema of a type, or add to it, so they can be
//! evaluated without running any code. The first unsupported statement is reported, and the schema
//! is left out. `derive(CrdSchema)` calls the functions instead. Both front ends convert the result
//! with `crates/schema/src/import/`.

mod evaluate;
mod legacy;
mod place;

use std::collections::BTreeMap;

use rbuilder_reader::token::{Cursor, Delimiter, Ident, lex};
use rbuilder_reader::{Expr, ExprKind, Span, Statement, TypeKind, read_block};
use rbuilder_schema::{check_literal, check_structural, mark_structural, read_json_schema};
use serde_json::{Value, json};

use super::Schemas;
use crate::package::{TypeId, ValueId, ValueItem};
use crate::place::{FileId, Place};
use crate::resolve::{Bindings, Owner, Scope, Ty, ValueTarget, find_owner, find_value};

const MAX_DEPTH: usize = 16;

/// Maximum number of JSON values created for one schema. A function can double a value with each
/// statement.
const MAX_PARTS: usize = 500_000;

/// A part of a function that can't be evaluated.
struct Unread {
    place: Place,
    what: String,
    help: Option<String>,
}

type Read<T> = Result<T, Unread>;

#[derive(Clone, PartialEq)]
enum Variable {
    Value(Value),
    /// A reference to part of another variable, given by its name and the keys.
    Part(String, Vec<String>),
    /// Not a schema, or evaluation failed.
    Unknown,
}

#[derive(Clone)]
struct Function<'f> {
    item: &'f ValueItem,
    bindings: &'f Bindings,
    owner: Option<Owner>,
    variables: BTreeMap<String, Variable>,
}

impl Function<'_> {
    fn place(&self, span: Span) -> Place {
        Place {
            file: self.item.file,
            span: span.shifted(self.item.start),
        }
    }

    fn unread<T>(&self, span: Span, what: impl Into<String>) -> Read<T> {
        self.unread_helped(span, what, None)
    }

    fn unread_helped<T>(&self, span: Span, what: impl Into<String>, help: Option<String>) -> Read<T> {
        Err(Unread {
            place: self.place(span),
            what: what.into(),
            help,
        })
    }

    fn size(&self) -> usize {
        let values = self.variables.values().map(|variable| match variable {
            Variable::Value(value) => count(value),
            Variable::Part(..) | Variable::Unknown => 1,
        });
        values.sum()
    }

    fn body_scope(&self) -> Scope<'_> {
        Scope {
            module: self.item.body_module(),
            ..self.outer_scope()
        }
    }

    /// Returns the scope for the `Self` type, which excludes the items of the body.
    fn outer_scope(&self) -> Scope<'_> {
        Scope {
            file: self.item.file,
            module: self.item.module,
            bindings: self.bindings,
        }
    }

    fn unread_statement<T>(&self, at: Cursor<'_>) -> Read<T> {
        let Some(name) = local_item(at) else {
            let what = format!("`{}` cannot be evaluated without running the program", at.text());
            return self.unread(at.span(), what);
        };
        let Ident { text, span } = name;
        let what = format!("`{text}` is declared inside of the function, where declarations are not read");
        self.unread_helped(span, what, Some(format!("move `{text}` out of the function")))
    }
}

pub(crate) struct SchemaReader<'s, 'a> {
    schemas: &'s mut Schemas<'a>,
    depth: usize,
    parts: usize,
}

impl<'s, 'a> SchemaReader<'s, 'a> {
    pub(crate) fn new(schemas: &'s mut Schemas<'a>) -> Self {
        SchemaReader {
            schemas,
            depth: 0,
            parts: 0,
        }
    }

    pub(crate) fn of_path(
        &mut self,
        id: TypeId,
        path: &str,
        bindings: &Bindings,
        at: Place,
    ) -> Option<Value> {
        let item = self.schemas.package().item(id);
        let scope = Scope {
            file: item.file,
            module: item.module,
            bindings,
        };
        let tokens = lex(path).ok()?;
        let expr = Expr::read(&mut tokens.cursor()).ok()?;
        let ExprKind::Path(names) = &expr.kind else {
            return None;
        };
        let target = self.find(names, scope, Some(Owner::Type(id)));
        let Some(function) = target.or_else(|| self.find_of_type(names, &expr, scope)) else {
            let message = format!("cannot read the function `{path}`, which returns the schema");
            let help = "define it in this package or in a path dependency, with one parameter; or name a type with the same form: `#[schemars(with = \"String\")]`";
            self.schemas.report().error(at, message, help);
            return None;
        };
        let mut args = Vec::new();
        for ty in &expr.generic.arguments {
            args.push(self.schemas.resolve(&ty.clone().placed_at(at.span), scope)?);
        }
        let names = self.schemas.package().values[function.0].type_parameters.iter();
        let inner: Bindings = names.cloned().zip(args).collect();
        self.of_function(function, &inner)
    }

    /// Finds `Type::json_schema`, an associated function.
    fn find_of_type(&mut self, names: &[&str], _: &Expr<'_>, scope: Scope<'_>) -> Option<ValueId> {
        let (last, prefix) = names.split_last()?;
        let prefix: Vec<String> = prefix.iter().map(|name| (*name).to_owned()).collect();
        let owner = find_owner(self.schemas.package(), scope.module, &prefix)?;
        self.schemas
            .associated()
            .get(&(owner, (*last).to_owned()))
            .copied()
    }

    pub(crate) fn of_type(&mut self, function: ValueId, args: &[Ty]) -> Option<Value> {
        let item = &self.schemas.package().values[function.0];
        let parameters = match item.self_type.as_ref().map(|ty| &ty.kind) {
            Some(TypeKind::Path(_, parameters)) => parameters.as_slice(),
            _ => &[],
        };
        let names = parameters.iter().map(|parameter| match &parameter.kind {
            TypeKind::Path(segments, args) if args.is_empty() && segments.len() == 1 => segments[0].clone(),
            _ => String::new(),
        });
        let bindings: Bindings = names.zip(args.iter().cloned()).collect();
        self.of_function(function, &bindings)
    }

    fn of_function(&mut self, function: ValueId, bindings: &Bindings) -> Option<Value> {
        match self.call(function, bindings, None) {
            Ok(value) => Some(value),
            Err(unread) => {
                // Without a reason, the error has already been reported.
                if !unread.what.is_empty() {
                    let message = format!(
                        "cannot read the schema that this function returns: {}",
                        unread.what
                    );
                    let help = "return `json_schema!({ … })` with literals, or the schema of a type by `generator.subschema_for::<T>()`; or name a type with the same form where the schema is used: `#[schemars(with = \"String\")]`";
                    let help = unread.help.as_deref().unwrap_or(help);
                    self.schemas.report().error(unread.place, message, help);
                }
                None
            }
        }
    }

    fn call(&mut self, id: ValueId, bindings: &Bindings, argument: Option<Variable>) -> Read<Value> {
        let item = &self.schemas.package().values[id.0];
        let owner = match item.self_type.as_ref().map(|ty| &ty.kind) {
            Some(TypeKind::Path(segments, _)) => find_owner(self.schemas.package(), item.module, segments),
            _ => None,
        };
        let mut function = Function {
            item,
            bindings,
            owner,
            variables: BTreeMap::new(),
        };
        if let Some(name) = &item.parameter {
            let argument = argument.unwrap_or(Variable::Unknown);
            function.variables.insert(name.clone(), argument);
        }
        let whole = Span {
            start: 0,
            end: u32::try_from(item.body.len()).unwrap_or(u32::MAX),
        };
        if self.depth > MAX_DEPTH {
            return function.unread(whole, "its functions call each other too deeply");
        }
        let Ok(tokens) = lex(&item.body) else {
            return function.unread(whole, "it is not Rust");
        };
        let Ok(statements) = read_block(tokens.cursor()) else {
            return function.unread(whole, "it is nested too deeply");
        };
        self.depth += 1;
        let value = self.statements(&statements, whole, &mut function);
        self.depth -= 1;
        value
    }

    fn statements(
        &mut self,
        statements: &[Statement<'_>],
        whole: Span,
        function: &mut Function<'_>,
    ) -> Read<Value> {
        for statement in statements {
            match statement {
                Statement::Item(_) if function.item.local.is_some() => {}
                Statement::Let(name, value) => {
                    let variable = match function.find_part(value) {
                        Some((of, path)) => Variable::Part(of, path),
                        None => match self.value(value, function) {
                            Ok(value) => Variable::Value(value),
                            // A type that couldn't be resolved has been reported, so stop. After
                            // any other error, the variable may turn out to be unused.
                            Err(unread) if unread.what.is_empty() => return Err(unread),
                            // E.g. `let _ = schema.insert(…)`.
                            Err(_) => {
                                if self.change(value, function).is_err() {
                                    function.forget_changed(value);
                                }
                                Variable::Unknown
                            }
                        },
                    };
                    function.variables.insert((*name).to_owned(), variable);
                }
                Statement::Assign(target, value) => {
                    let value = self.value(value, function)?;
                    function.assign(target, value)?;
                }
                Statement::Expr(expr) => self.change(expr, function)?,
                Statement::Result(value) => return self.value(value, function),
                Statement::Item(at) | Statement::Other(at) => {
                    return function.unread_statement(*at);
                }
            }
        }
        function.unread(whole, "it returns nothing")
    }

    fn find(&self, names: &[&str], scope: Scope<'_>, owner: Option<Owner>) -> Option<ValueId> {
        if let [first, name] = names
            && *first == "Self"
        {
            return self
                .schemas
                .associated()
                .get(&(owner?, (*name).to_owned()))
                .copied();
        }
        let segments: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        match find_value(self.schemas.package(), scope.module, &segments)? {
            ValueTarget::Value(id) => Some(id),
            ValueTarget::Of(owner, name) => self.schemas.associated().get(&(owner, name)).copied(),
            ValueTarget::Type(_) | ValueTarget::External(_) => None,
        }
    }

    /// Returns the schema of a type as JSON, marked as structural.
    fn type_schema(
        &mut self,
        ty: &rbuilder_reader::TypeRef,
        at: Span,
        function: &Function<'_>,
    ) -> Read<Value> {
        let place = function.place(at);
        let ty = ty.clone().placed_at(place.span);
        let resolved = match (&ty.kind, function.item.self_type.as_ref()) {
            (TypeKind::Path(segments, _), Some(own)) if *segments == ["Self"] => {
                self.schemas.resolve(own, function.outer_scope())
            }
            _ => self.schemas.resolve(&ty, function.body_scope()),
        };
        let slot = resolved.and_then(|resolved| self.schemas.value(&resolved, place));
        let Some(slot) = slot else {
            return function.unread(at, "");
        };
        let own = mark_structural(&slot.schema);
        self.spend(count(&own), at, function)?;
        Ok(if slot.optional {
            json!({ "anyOf": [own, { "type": "null" }] })
        } else {
            own
        })
    }

    /// Charges newly created values against [`MAX_PARTS`].
    fn spend(&mut self, parts: usize, at: Span, function: &Function<'_>) -> Read<()> {
        self.parts = self.parts.saturating_add(parts);
        if self.parts > MAX_PARTS {
            return function.unread(at, "it is too large");
        }
        Ok(())
    }
}

fn local_item(mut cursor: Cursor<'_>) -> Option<Ident<'_>> {
    const KEYWORDS: [&str; 8] = [
        "struct", "enum", "union", "type", "trait", "mod", "const", "static",
    ];
    while cursor.eat(b'#') {
        cursor.group(Delimiter::Bracket)?;
    }
    if cursor.eat_word("pub") {
        cursor.group(Delimiter::Paren);
    }
    let keyword = cursor.any_ident()?;
    let name = KEYWORDS.contains(&keyword.text).then(|| cursor.any_ident());
    name.flatten()
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Reads a schema that must be structural. If the schema isn't, the error says why.
pub(crate) fn structural_schema(value: &Value) -> Result<rbuilder_schema::Schema, String> {
    let schema = read_json_schema(value)?;
    let mut said = check_structural(&schema).into_iter();
    if let Some(diagnostic) = said.next() {
        return Err(describe(&diagnostic.place, &diagnostic.message));
    }
    let mut said = check_literal(&schema).into_iter().filter(|said| said.is_error());
    match said.next() {
        Some(diagnostic) => Err(describe(&diagnostic.place, &diagnostic.message)),
        None => Ok(schema),
    }
}

fn describe(place: &str, message: &str) -> String {
    if place.is_empty() {
        message.to_owned()
    } else {
        format!("at `{place}`: {message}")
    }
}

pub(crate) fn place_of(item: &ValueItem) -> (FileId, Span) {
    let end = u32::try_from(item.body.len()).unwrap_or(u32::MAX);
    let span = Span { start: 0, end }.shifted(item.start);
    (item.file, span)
}
