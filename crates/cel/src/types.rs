//! CEL's types, and the types and maximum sizes that Kubernetes declares for values in a schema.
//!
//! Sizes follow `k8s.io/apiserver/pkg/cel/common/schemas.go`. Values that the schema doesn't bound
//! are limited by the maximum request size.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_schema::{Schema, SchemaType, cel_name};

/// Maximum request size of the API server: 3 MiB.
pub(crate) const MAX_REQUEST: u64 = 3 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Type-checked at run time.
    Dyn,
    /// An error was already reported for this expression. Compatible with any type, to avoid
    /// follow-up errors.
    Error,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    Duration,
    Timestamp,
    /// The type of `type(x)`.
    Kind,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Optional(Arc<Type>),
    /// Every object schema is a distinct type.
    Object(Arc<Decl>),
    /// A type of Kubernetes' libraries, e.g. `quantity`.
    Opaque(&'static str),
    /// A type variable that isn't bound yet.
    Variable(usize),
}

impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => a == b,
            (Type::Map(a, b), Type::Map(c, d)) => a == c && b == d,
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b),
            (Type::Opaque(a), Type::Opaque(b)) => a == b,
            (Type::Variable(a), Type::Variable(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

impl Type {
    pub(crate) fn list(item: Type) -> Type {
        Type::List(Arc::new(item))
    }

    pub(crate) fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(inner: Type) -> Type {
        Type::Optional(Arc::new(inner))
    }

    /// The type's name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Type::Dyn | Type::Error | Type::Variable(_) => "dyn".into(),
            Type::Bool => "bool".into(),
            Type::Int => "int".into(),
            Type::Uint => "uint".into(),
            Type::Double => "double".into(),
            Type::String => "string".into(),
            Type::Bytes => "bytes".into(),
            Type::Null => "null".into(),
            Type::Duration => "duration".into(),
            Type::Timestamp => "timestamp".into(),
            Type::Kind => "type".into(),
            Type::List(item) => format!("list({})", item.name()),
            Type::Map(key, value) => format!("map({}, {})", key.name(), value.name()),
            Type::Optional(inner) => format!("optional({})", inner.name()),
            Type::Object(_) => "object".into(),
            Type::Opaque(name) => (*name).into(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Decl {
    pub(crate) kind: DeclKind,
    /// Maximum number of bytes, items or keys. 0 for values of fixed size.
    pub(crate) max_size: u64,
    /// Minimum size of the JSON representation.
    pub(crate) min_bytes: u64,
}

#[derive(Debug)]
pub(crate) enum DeclKind {
    Simple(Type),
    List(Arc<Decl>),
    Map(Arc<Decl>),
    /// Fields by CEL name. `None` if a field is inaccessible to rules.
    Object(BTreeMap<String, Option<Arc<Decl>>>),
}

fn simple(ty: Type, max_size: u64, min_bytes: u64) -> Decl {
    Decl {
        kind: DeclKind::Simple(ty),
        max_size,
        min_bytes,
    }
}

impl Decl {
    /// Returns `None` if rules can't access the values. With `is_object`, values have `metadata`,
    /// `apiVersion` and `kind`.
    pub(crate) fn of(schema: &Schema, is_object: bool) -> Option<Arc<Decl>> {
        if schema.int_or_string {
            let max_size = schema
                .max_length
                .map_or(MAX_REQUEST - 2, |max_length| max_length.saturating_mul(4));
            return Some(Arc::new(simple(Type::Dyn, max_size, 1)));
        }
        let decl = match schema.schema_type? {
            SchemaType::Boolean => simple(Type::Bool, 0, 4),
            SchemaType::Integer => simple(Type::Int, 0, 1),
            SchemaType::Number => simple(Type::Double, 0, 1),
            SchemaType::String => string(schema),
            SchemaType::Array => {
                let items = Decl::child(schema.items.as_deref()?)?;
                Decl {
                    max_size: schema
                        .max_items
                        .unwrap_or((MAX_REQUEST - 2) / (items.min_bytes + 1)),
                    kind: DeclKind::List(items),
                    min_bytes: 2,
                }
            }
            SchemaType::Object => match schema.additional_properties.as_deref() {
                Some(values) => {
                    let values = Decl::child(values)?;
                    Decl {
                        max_size: schema
                            .max_properties
                            .unwrap_or((MAX_REQUEST - 2) / (values.min_bytes + 6)),
                        kind: DeclKind::Map(values),
                        min_bytes: 2,
                    }
                }
                None => object(schema, is_object),
            },
        };
        Some(Arc::new(decl))
    }

    fn child(schema: &Schema) -> Option<Arc<Decl>> {
        Decl::of(schema, schema.embedded_resource)
    }

    pub(crate) fn ty(self: &Arc<Decl>) -> Type {
        match &self.kind {
            DeclKind::Simple(ty) => ty.clone(),
            DeclKind::List(items) => Type::list(items.ty()),
            DeclKind::Map(values) => Type::map(Type::String, values.ty()),
            DeclKind::Object(_) => Type::Object(self.clone()),
        }
    }

    /// The declaration of a field, or of `@items`, `@keys` or `@values`.
    pub(crate) fn step(self: &Arc<Decl>, step: &str) -> Option<Arc<Decl>> {
        match (&self.kind, step) {
            (DeclKind::List(items), "@items") => Some(items.clone()),
            (DeclKind::Map(values), "@items" | "@values") => Some(values.clone()),
            // Kubernetes declares keys without a size.
            (DeclKind::Map(_), "@keys") => Some(Arc::new(simple(Type::String, 0, 2))),
            (DeclKind::Object(fields), name) => fields.get(name).cloned().flatten(),
            _ => None,
        }
    }
}

fn string(schema: &Schema) -> Decl {
    let max_length = schema.max_length;
    match schema.format.as_deref() {
        Some("byte") => simple(Type::Bytes, max_length.unwrap_or(MAX_REQUEST - 2), 2),
        Some("duration") => simple(Type::Duration, 32, 3),
        Some("date") => simple(Type::Timestamp, 12, 12),
        Some("date-time") => simple(Type::Timestamp, 32, 21),
        _ => {
            let longest = || {
                schema
                    .enumeration
                    .iter()
                    .filter_map(|value| value.as_str())
                    .map(str::len)
                    .max()
            };
            let max_size = match max_length {
                // UTF-8 takes up to four bytes per character.
                Some(max_length) => max_length.saturating_mul(4),
                None if schema.enumeration.is_empty() => MAX_REQUEST - 2,
                None => longest().unwrap_or(0) as u64,
            };
            simple(Type::String, max_size, 2)
        }
    }
}

fn object(schema: &Schema, is_object: bool) -> Decl {
    let mut fields = BTreeMap::new();
    let mut min_bytes = 2;
    for (name, property) in &schema.properties {
        if is_object && matches!(&**name, "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let decl = Decl::child(property);
        if let Some(decl) = &decl
            && schema.required.contains(name)
            && property.default.is_none()
        {
            min_bytes += name.len() as u64 + decl.min_bytes + 4;
        }
        if let Some(name) = cel_name(name) {
            fields.insert(name, decl);
        }
    }
    if is_object {
        let name = || Some(Arc::new(simple(Type::String, MAX_REQUEST - 2, 2)));
        let names = ["name", "generateName"].map(|field| (field.to_owned(), name()));
        let metadata = Decl {
            kind: DeclKind::Object(names.into()),
            max_size: 0,
            min_bytes: 2,
        };
        fields.insert("metadata".into(), Some(Arc::new(metadata)));
        fields.insert("apiVersion".into(), name());
        fields.insert("kind".into(), name());
    }
    Decl {
        kind: DeclKind::Object(fields),
        max_size: 0,
        min_bytes,
    }
}
