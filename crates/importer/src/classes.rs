//! The types of one version of a kind, one per shape in its schema.
//!
//! Places of the same shape share a type. A shape excludes everything that a field can set itself,
//! e.g. its description, its default, or how a list is merged, but includes the descriptions of
//! inner fields.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_schema::{Key, Schema, SchemaType, Subject};

use crate::interner::Interner;
use crate::recognize::{ANY_OBJECT, KubernetesTypes, leaf, without_field_keys};
use crate::words::{singular, type_name};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    /// Path of a type without type arguments.
    Leaf(&'static str),
    Kubernetes(String, Arc<Schema>),
    /// A struct or enum in the file, as an index into [`Classes::list`].
    Class(usize),
    List(Box<Ty>),
    Map(Box<Ty>),
    /// A list item or map value that may be `null`.
    Nullable(Box<Ty>),
}

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) schema: Arc<Schema>,
    pub(crate) body: Body,
    /// Places that use the type, in schema order.
    pub(crate) uses: Vec<Use>,
    /// Empty until names are assigned, unless it is fixed.
    pub(crate) name: String,
    /// Set for the spec and the status, which are never shared.
    pub(crate) is_root: bool,
    pub(crate) doc: Option<Arc<str>>,
}

#[derive(Debug)]
pub(crate) enum Body {
    Struct(Vec<Member>),
    /// Rust identifier and JSON name of each variant.
    Enum(Vec<(String, String)>),
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) wire: Arc<str>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) ty: Ty,
}

#[derive(Clone, Debug)]
pub(crate) struct Use {
    /// Path from the kind to this place, with each step as part of a type name.
    pub(crate) path: Vec<String>,
    pub(crate) description: Option<Arc<str>>,
    /// Whether this is a field. Unlike an item or a value, a field can have its own description.
    pub(crate) is_field: bool,
}

pub(crate) struct Classes<'k> {
    pub(crate) list: Vec<Class>,
    by_shape: BTreeMap<usize, usize>,
    shapes: Interner,
    kubernetes: &'k KubernetesTypes,
}

impl<'k> Classes<'k> {
    pub(crate) fn new(kubernetes: &'k KubernetesTypes) -> Self {
        Classes {
            list: Vec::new(),
            by_shape: BTreeMap::new(),
            shapes: Interner::default(),
            kubernetes,
        }
    }

    pub(crate) fn add_root(&mut self, schema: &Schema, name: String, path: Vec<String>) -> usize {
        let id = self.push(Arc::new(schema.clone()), name, true);
        let members = self.members(schema, &path);
        self.list[id].body = Body::Struct(members);
        id
    }

    fn push(&mut self, schema: Arc<Schema>, name: String, is_root: bool) -> usize {
        let doc = schema.description.clone().filter(|_| is_root);
        self.list.push(Class {
            schema,
            body: Body::Struct(Vec::new()),
            uses: Vec::new(),
            name,
            is_root,
            doc,
        });
        self.list.len() - 1
    }

    fn members(&mut self, schema: &Schema, path: &[String]) -> Vec<Member> {
        let mut members = Vec::new();
        for (wire, property) in &schema.properties {
            let mut below = path.to_vec();
            below.push(wire.to_string());
            members.push(Member {
                wire: Arc::clone(wire),
                schema: Arc::clone(property),
                ty: self.ty(property, &below, true),
            });
        }
        members
    }

    fn ty(&mut self, schema: &Schema, path: &[String], is_field: bool) -> Ty {
        let key = path.last().map_or("", String::as_str);
        match schema.schema_type {
            Some(SchemaType::Array) => match &schema.items {
                Some(items) => Ty::List(Box::new(self.part(items, path))),
                None => Ty::Leaf("serde_json::Value"),
            },
            Some(SchemaType::String) if !schema.int_or_string => match variants(schema) {
                Some(variants) => self.enumeration(schema, variants, path, is_field),
                None => Ty::Leaf(leaf(schema)),
            },
            Some(SchemaType::Object) if !schema.properties.is_empty() => {
                match self.kubernetes.find(schema, key) {
                    Some((path, schema)) => Ty::Kubernetes(path.to_owned(), schema),
                    None => self.object(schema, path, is_field),
                }
            }
            Some(SchemaType::Object) => match &schema.additional_properties {
                Some(values) => Ty::Map(Box::new(self.part(values, path))),
                None if is_open(schema) || key == "metadata" => Ty::Leaf(leaf(schema)),
                None => self.object(schema, path, is_field),
            },
            _ => Ty::Leaf(leaf(schema)),
        }
    }

    fn part(&mut self, schema: &Schema, path: &[String]) -> Ty {
        let mut path = path.to_vec();
        if let Some(last) = path.last_mut() {
            *last = singular(last);
        }
        let ty = self.ty(schema, &path, false);
        // `Value` already has a variant for `null`.
        let is_any = ty == Ty::Leaf("serde_json::Value");
        if schema.nullable && !is_any {
            Ty::Nullable(Box::new(ty))
        } else {
            ty
        }
    }

    fn object(&mut self, schema: &Schema, path: &[String], is_field: bool) -> Ty {
        let shape = shape(schema);
        let id = match self.known(&shape) {
            Ok(id) => id,
            Err(number) => {
                let id = self.push(Arc::new(shape.clone()), String::new(), false);
                self.by_shape.insert(number, id);
                let members = self.members(&shape, path);
                self.list[id].body = Body::Struct(members);
                id
            }
        };
        self.note(id, schema, path, is_field)
    }

    fn enumeration(
        &mut self,
        schema: &Schema,
        variants: Vec<(String, String)>,
        path: &[String],
        is_field: bool,
    ) -> Ty {
        let shape = Schema {
            schema_type: Some(SchemaType::String),
            enumeration: schema.enumeration.clone(),
            ..Schema::default()
        };
        let id = match self.known(&shape) {
            Ok(id) => id,
            Err(number) => {
                let id = self.push(Arc::new(shape), String::new(), false);
                self.by_shape.insert(number, id);
                self.list[id].body = Body::Enum(variants);
                id
            }
        };
        self.note(id, schema, path, is_field)
    }

    /// The type for a shape. The error is the number of a new shape.
    fn known(&mut self, shape: &Schema) -> Result<usize, usize> {
        let number = self.shapes.number(shape);
        self.by_shape.get(&number).copied().ok_or(number)
    }

    /// Frees the lookup tables that are only needed while schemas are added.
    pub(crate) fn forget_shapes(&mut self) {
        self.by_shape = BTreeMap::new();
        self.shapes = Interner::default();
    }

    fn note(&mut self, id: usize, schema: &Schema, path: &[String], is_field: bool) -> Ty {
        self.list[id].uses.push(Use {
            path: path.iter().map(|step| type_name(step)).collect(),
            description: schema.description.clone(),
            is_field,
        });
        Ty::Class(id)
    }

    pub(crate) fn describe(&mut self) {
        for class in self.list.iter_mut().filter(|class| !class.is_root) {
            let all_described = class.uses.iter().all(|place| place.description.is_some());
            let mut of_parts = class.uses.iter().filter(|place| !place.is_field);
            // Items and values can't have their own descriptions, so their type needs one. A field
            // can, in which case the choice hardly matters.
            class.doc = match (of_parts.next(), class.uses.first()) {
                (Some(part), _) => part.description.clone(),
                (None, Some(first)) if all_described => first
                    .description
                    .as_deref()
                    .map(|text| first_sentence(text).into()),
                _ => None,
            };
        }
    }
}

/// The first sentence, or the whole paragraph if no sentence ends in it.
fn first_sentence(text: &str) -> &str {
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    let end = paragraph
        .find(". ")
        .or_else(|| paragraph.find(".\n"))
        .map(|end| end + 1);
    paragraph[..end.unwrap_or(paragraph.len())].trim_end()
}

fn is_open(schema: &Schema) -> bool {
    schema.preserve_unknown_fields || schema.embedded_resource
}

fn shape(schema: &Schema) -> Schema {
    let is_constraint = |key: &Key| key.subject == Subject::Object && !key.argument.is_empty();
    Schema {
        map_type: None,
        embedded_resource: false,
        ..without_field_keys(schema).without(is_constraint)
    }
}

/// Variants of an enum. `None` if a value can't become a name, or if two values would get the same
/// one.
fn variants(schema: &Schema) -> Option<Vec<(String, String)>> {
    if schema.enumeration.is_empty() || schema.nullable {
        return None;
    }
    let mut variants: Vec<(String, String)> = Vec::new();
    for value in &schema.enumeration {
        let wire = value.as_str()?;
        let is_nameable = wire
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_./: ".contains(letter));
        let name = match wire {
            "" => "Empty".to_owned(),
            wire => type_name(wire),
        };
        // `Self` is the only keyword that isn't in lower case.
        let is_good =
            is_nameable && name.starts_with(|first: char| first.is_ascii_alphabetic()) && name != "Self";
        if !is_good || variants.iter().any(|(other, _)| *other == name) {
            return None;
        }
        variants.push((name, wire.to_owned()));
    }
    Some(variants)
}

impl Ty {
    pub(crate) fn each_class(&self, look: &mut dyn FnMut(usize)) {
        match self {
            Ty::Class(id) => look(*id),
            Ty::List(inner) | Ty::Map(inner) | Ty::Nullable(inner) => inner.each_class(look),
            Ty::Leaf(_) | Ty::Kubernetes(..) => {}
        }
    }

    pub(crate) fn has_class(&self) -> bool {
        let mut found = false;
        self.each_class(&mut |_| found = true);
        found
    }

    pub(crate) fn foreign_path(&self) -> Option<&str> {
        match self {
            Ty::Leaf(path) if path.starts_with("k8s_openapi::") => Some(path),
            Ty::Kubernetes(path, _) => Some(path),
            Ty::List(inner) | Ty::Map(inner) | Ty::Nullable(inner) => inner.foreign_path(),
            Ty::Leaf(_) | Ty::Class(_) => None,
        }
    }

    pub(crate) fn is_map(&self) -> bool {
        match self {
            Ty::Map(_) => true,
            Ty::Leaf(path) => *path == ANY_OBJECT,
            Ty::Nullable(inner) => inner.is_map(),
            Ty::List(_) | Ty::Class(_) | Ty::Kubernetes(..) => false,
        }
    }

    pub(crate) fn part(&self) -> Option<&Ty> {
        match self {
            Ty::List(part) | Ty::Map(part) => Some(part),
            Ty::Nullable(inner) => inner.part(),
            Ty::Leaf(_) | Ty::Class(_) | Ty::Kubernetes(..) => None,
        }
    }

    pub(crate) fn has_map(&self) -> bool {
        match self {
            Ty::Map(_) => true,
            Ty::List(inner) | Ty::Nullable(inner) => inner.has_map(),
            Ty::Leaf(path) => *path == ANY_OBJECT,
            Ty::Class(_) | Ty::Kubernetes(..) => false,
        }
    }
}
