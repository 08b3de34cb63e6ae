//! Results of the reader: values, or nodes with their places.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::place::{Content, Fields, Node};

pub(crate) struct Field<T> {
    pub(crate) name: String,
    pub(crate) place: Range<usize>,
    pub(crate) value: T,
}

pub(crate) trait Tree: Sized {
    fn from_scalar(value: Value, place: Range<usize>) -> Self;
    fn from_items(items: Vec<Self>, place: Range<usize>) -> Self;
    /// Returns `None` if a name occurs more than once.
    fn from_fields(fields: Vec<Field<Self>>, place: Range<usize>) -> Option<Self>;
}

impl Tree for Value {
    fn from_scalar(value: Value, _: Range<usize>) -> Value {
        value
    }

    fn from_items(items: Vec<Value>, _: Range<usize>) -> Value {
        Value::Array(items)
    }

    fn from_fields(fields: Vec<Field<Value>>, _: Range<usize>) -> Option<Value> {
        let count = fields.len();
        let fields = fields.into_iter().map(|field| (field.name, field.value));
        let fields: Map<String, Value> = fields.collect();
        (fields.len() == count).then_some(Value::Object(fields))
    }
}

impl Tree for Node {
    fn from_scalar(value: Value, place: Range<usize>) -> Node {
        Node::new(Content::Scalar(value), place, false)
    }

    fn from_items(items: Vec<Node>, place: Range<usize>) -> Node {
        Node::new(Content::List(items), place, false)
    }

    fn from_fields(fields: Vec<Field<Node>>, place: Range<usize>) -> Option<Node> {
        let fields = fields.into_iter();
        let fields = Fields::new(
            fields
                .map(|field| (field.name, field.place, field.value))
                .collect(),
        );
        (!fields.has_duplicates()).then(|| Node::new(Content::Fields(fields), place, false))
    }
}
