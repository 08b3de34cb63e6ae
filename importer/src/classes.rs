//! The types that one version of a kind needs: one for each shape of its schema.
//!
//! Two places with the same schema have one type. What a field can say about its value by itself, such as the description, the
//! default or the way in which a list is merged, is not part of the shape; descriptions of the fields inside are.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_schema::{Schema, SchemaType};

use crate::recognize::{ANY_OBJECT, KubernetesTypes, leaf, without_field_keys};
use crate::words::{singular, type_name};

/// A type in Rust.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    /// A type without parts, by its path.
    Leaf(&'static str),
    /// A type of k8s-openapi, by its path.
    Kubernetes(String, Arc<Schema>),
    /// A struct or an enum of the file, by its position.
    Class(usize),
    List(Box<Ty>),
    Map(Box<Ty>),
    /// An item or a value that can be `null`.
    Nullable(Box<Ty>),
}

/// A struct or an enum.
#[derive(Debug)]
pub(crate) struct Class {
    /// The schema that it is to have, without what its fields say.
    pub(crate) schema: Arc<Schema>,
    pub(crate) body: Body,
    /// The places that have it, in the order of the schema.
    pub(crate) uses: Vec<Use>,
    /// The name; until names are given, the one that is fixed.
    pub(crate) name: String,
    /// Set if it is the spec or the status, which no other place shares.
    pub(crate) is_root: bool,
    /// The description in the schema of the type.
    pub(crate) doc: Option<Arc<str>>,
}

#[derive(Debug)]
pub(crate) enum Body {
    Struct(Vec<Member>),
    /// Identifiers and names on the wire.
    Enum(Vec<(String, String)>),
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) wire: Arc<str>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) ty: Ty,
}

/// A place that has a type.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    /// The names on the way to it, as parts of type names, from the kind on.
    pub(crate) path: Vec<String>,
    pub(crate) description: Option<Arc<str>>,
    /// Set for a field, which has a description of its own; not for items and values.
    pub(crate) is_field: bool,
}

/// All classes of one version.
pub(crate) struct Classes<'k> {
    pub(crate) list: Vec<Class>,
    by_shape: BTreeMap<String, usize>,
    kubernetes: &'k KubernetesTypes,
}

impl<'k> Classes<'k> {
    pub(crate) fn new(kubernetes: &'k KubernetesTypes) -> Self {
        Classes {
            list: Vec::new(),
            by_shape: BTreeMap::new(),
            kubernetes,
        }
    }

    /// Adds a struct with a name of its own.
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

    /// The type of a value.
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

    /// The type of the items of a list or of the values of a map.
    fn part(&mut self, schema: &Schema, path: &[String]) -> Ty {
        let mut path = path.to_vec();
        if let Some(last) = path.last_mut() {
            *last = singular(last);
        }
        let ty = self.ty(schema, &path, false);
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
            Err(key) => {
                let id = self.push(Arc::new(shape.clone()), String::new(), false);
                self.by_shape.insert(key, id);
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
            Err(key) => {
                let id = self.push(Arc::new(shape), String::new(), false);
                self.by_shape.insert(key, id);
                self.list[id].body = Body::Enum(variants);
                id
            }
        };
        self.note(id, schema, path, is_field)
    }

    fn known(&self, shape: &Schema) -> Result<usize, String> {
        let key = serde_json::to_string(shape).unwrap_or_default();
        self.by_shape.get(&key).copied().ok_or(key)
    }

    fn note(&mut self, id: usize, schema: &Schema, path: &[String], is_field: bool) -> Ty {
        self.list[id].uses.push(Use {
            path: path.iter().map(|step| type_name(step)).collect(),
            description: schema.description.clone(),
            is_field,
        });
        Ty::Class(id)
    }

    /// Chooses the description of each type. Items and values have no other description than that of their type; fields
    /// have their own, and then the type can have any.
    pub(crate) fn describe(&mut self) {
        for class in self.list.iter_mut().filter(|class| !class.is_root) {
            let all_described = class.uses.iter().all(|place| place.description.is_some());
            let mut of_parts = class.uses.iter().filter(|place| !place.is_field);
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

/// The first sentence of a text, or its first line.
fn first_sentence(text: &str) -> &str {
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    let end = paragraph
        .find(". ")
        .or_else(|| paragraph.find(".\n"))
        .map(|end| end + 1);
    paragraph[..end.unwrap_or(paragraph.len())].trim_end()
}

/// Returns whether an object has content that the schema does not describe.
fn is_open(schema: &Schema) -> bool {
    schema.preserve_unknown_fields || schema.embedded_resource
}

/// A schema without what a field says about its value.
fn shape(schema: &Schema) -> Schema {
    Schema {
        map_type: None,
        min_properties: None,
        max_properties: None,
        embedded_resource: false,
        ..without_field_keys(schema)
    }
}

/// The variants of an enum: nothing if a value would have no good name, or two the same.
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
    /// Calls a function with each class that the type mentions.
    pub(crate) fn each_class(&self, look: &mut dyn FnMut(usize)) {
        match self {
            Ty::Class(id) => look(*id),
            Ty::List(inner) | Ty::Map(inner) | Ty::Nullable(inner) => inner.each_class(look),
            Ty::Leaf(_) | Ty::Kubernetes(..) => {}
        }
    }

    /// Returns whether the type mentions a struct or an enum of the file.
    pub(crate) fn has_class(&self) -> bool {
        let mut found = false;
        self.each_class(&mut |_| found = true);
        found
    }

    /// The path of the type of another crate that the type mentions.
    pub(crate) fn foreign_path(&self) -> Option<&str> {
        match self {
            Ty::Leaf(path) if path.starts_with("k8s_openapi::") => Some(path),
            Ty::Kubernetes(path, _) => Some(path),
            Ty::List(inner) | Ty::Map(inner) | Ty::Nullable(inner) => inner.foreign_path(),
            Ty::Leaf(_) | Ty::Class(_) => None,
        }
    }

    /// Returns whether the value is a map.
    pub(crate) fn is_map(&self) -> bool {
        match self {
            Ty::Map(_) => true,
            Ty::Leaf(path) => *path == ANY_OBJECT,
            Ty::Nullable(inner) => inner.is_map(),
            Ty::List(_) | Ty::Class(_) | Ty::Kubernetes(..) => false,
        }
    }

    /// The type of the items of a list or of the values of a map.
    pub(crate) fn part(&self) -> Option<&Ty> {
        match self {
            Ty::List(part) | Ty::Map(part) => Some(part),
            Ty::Nullable(inner) => inner.part(),
            Ty::Leaf(_) | Ty::Class(_) | Ty::Kubernetes(..) => None,
        }
    }

    /// Returns whether the type is written with `BTreeMap`.
    pub(crate) fn has_map(&self) -> bool {
        match self {
            Ty::Map(_) => true,
            Ty::List(inner) | Ty::Nullable(inner) => inner.has_map(),
            Ty::Leaf(path) => *path == ANY_OBJECT,
            Ty::Class(_) | Ty::Kubernetes(..) => false,
        }
    }
}
