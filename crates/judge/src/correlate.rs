//! Correlates values with the old values that they replace, as far as the schema allows.

use rbuilder_schema::{ListType, Schema, SchemaType};
use serde_json::{Map, Value};

use crate::go;

/// A value in an updated object, along with the value that it replaces.
///
/// The server finds the old value by name for fields, and by key for map entries and items of lists
/// of type `map`. Items of other lists aren't correlatable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correlated<'a> {
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
    schema: &'a Schema,
}

impl<'a> Correlated<'a> {
    pub(crate) fn new(new: &'a Value, old: &'a Value, schema: &'a Schema) -> Correlated<'a> {
        Correlated { new, old, schema }
    }

    /// Descends into a field or map entry. `None` if it's new or unknown to the schema.
    pub(crate) fn key(self, name: &str) -> Option<Correlated<'a>> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        let schema = self.schema.properties.get(name);
        let schema = schema.or(self.schema.additional_properties.as_ref())?;
        Some(Correlated { new, old, schema })
    }

    pub(crate) fn index(self, index: usize) -> Option<Correlated<'a>> {
        let new = self.new.as_array()?.get(index)?;
        let old = find_item(self.schema, self.old.as_array()?, new)?;
        let schema = self.schema.items.as_deref()?;
        Some(Correlated { new, old, schema })
    }

    /// Returns true if the value is unchanged, ignoring the order of lists of type `map`. Objects
    /// with fields that the schema doesn't define never count as unchanged.
    pub(crate) fn is_same(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => new.len() == old.len() && self.has_same_items(new, old),
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|key| self.key(key).is_some_and(Correlated::is_same))
            }
            (new, old) => new == old,
        }
    }

    fn has_same_items(self, new: &[Value], old: &[Value]) -> bool {
        for index in 0..new.len() {
            match self.index(index) {
                Some(item) if item.is_same() => {}
                Some(_) => return false,
                None if is_keyed(self.schema) => return false,
                // Items of other lists aren't correlatable, so compare the lists as a whole.
                None => return new == old,
            }
        }
        true
    }
}

fn is_keyed(schema: &Schema) -> bool {
    schema.schema_type == Some(SchemaType::Array)
        && schema.list_type == Some(ListType::Map)
        && !schema.list_map_keys.is_empty()
}

pub(crate) fn find_item<'a>(list: &Schema, old: &'a [Value], new: &Value) -> Option<&'a Value> {
    if !is_keyed(list) {
        return None;
    }
    let key = composite_key(list, new.as_object()?)?;
    let is_match = |item: &&Value| {
        let fields = item.as_object();
        fields.and_then(|fields| composite_key(list, fields)).as_ref() == Some(&key)
    };
    old.iter().find(is_match)
}

/// Values of the key fields, unless any is absent or non-scalar.
fn composite_key(list: &Schema, item: &Map<String, Value>) -> Option<Vec<String>> {
    let keys = list.list_map_keys.iter().map(|key| match item.get(key)? {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        scalar => Some(format!("{} {}", go::type_name(scalar), go::plain(scalar))),
    });
    keys.collect()
}
