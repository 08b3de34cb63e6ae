//! Estimates the size of a schema in a manifest, where the schema of a type is repeated at each use
//! of the type.
//!
//! Since schemas share their parts, a few types suffice for a manifest that doesn't fit into
//! memory. Each part caches its weight and is visited only once.

use std::ops::Add;
use std::sync::Arc;

use serde_json::Value;

use crate::weight_slot::Weight;
use crate::{Cel, Schema};

/// `{"type":"string"},` plus the quotes and the colon of the name.
const NODE: usize = 21;

/// The weight of a member of `allOf` and similar lists. Accounts for memory rather than bytes in
/// the manifest: such members aren't shared, but copied along with their schema.
const ALTERNATIVE: usize = 256;

impl Schema {
    /// Estimates the size of the schema and its parts in a manifest.
    ///
    /// The parts cache the result, so don't mutate them afterwards except in a clone (which
    /// [`Arc::make_mut`] makes of a shared part).
    pub fn weight(&self) -> Weight {
        let parts = [&self.additional_properties, &self.items, &self.not];
        let shared = parts.into_iter().flatten().chain(self.properties.values());
        shared.map(weight_of_part).fold(self.own_weight(), Add::add)
    }

    /// Counts the members of `allOf`, `anyOf` and `oneOf` at any depth, all of which are copied
    /// with the schema.
    pub fn alternatives(&self) -> usize {
        let members = self.all_of.iter().chain(&self.any_of).chain(&self.one_of);
        members.map(|member| 1 + member.alternatives()).sum()
    }

    fn own_weight(&self) -> Weight {
        let names = self.properties.keys().chain(&self.required);
        let texts = [&self.format, &self.pattern, &self.title].into_iter().flatten();
        let values = self.enumeration.iter().chain(&self.default).chain(&self.example);
        let bytes = NODE
            + names.chain(texts).map(|text| text.len()).sum::<usize>()
            + values.map(size_of_value).sum::<usize>()
            + self.validations.iter().map(size_of_rule).sum::<usize>();
        let own = Weight {
            structure: saturate(bytes),
            descriptions: saturate(self.description.as_ref().map_or(0, |text| text.len())),
        };
        let members = self.all_of.iter().chain(&self.any_of).chain(&self.one_of);
        members.fold(own, |sum, member| {
            let extra = Weight {
                structure: saturate(ALTERNATIVE),
                descriptions: 0,
            };
            sum + extra + member.weight()
        })
    }
}

fn weight_of_part(part: &Arc<Schema>) -> Weight {
    if let Some(known) = part.weight.get() {
        return known;
    }
    let weight = part.weight();
    part.weight.set(weight);
    weight
}

fn size_of_rule(rule: &Cel) -> usize {
    let others = [&rule.field_path, &rule.message, &rule.message_expression];
    rule.rule.len() + others.into_iter().flatten().map(String::len).sum::<usize>()
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => 3 + text.len(),
        Value::Array(items) => 2 + items.iter().map(size_of_value).sum::<usize>(),
        Value::Object(keys) => {
            let pairs = keys
                .iter()
                .map(|(key, value)| 4 + key.len() + size_of_value(value));
            2 + pairs.sum::<usize>()
        }
    }
}

fn saturate(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SchemaType, of_type};

    fn twice(inner: &Arc<Schema>) -> Arc<Schema> {
        let mut schema = of_type(SchemaType::Object);
        for name in ["a", "b"] {
            schema.properties.insert(name.into(), Arc::clone(inner));
        }
        Arc::new(schema)
    }

    #[test]
    fn weight_counts_each_use_of_a_shared_part() {
        let mut schema: Arc<Schema> = of_type(SchemaType::String).into();
        for _ in 0..10 {
            schema = twice(&schema);
        }
        let json = serde_json::to_string(&schema).unwrap().len();
        let weight = schema.weight().total();
        assert!((json / 2..=json).contains(&weight), "{weight} of {json}");
        // Would not terminate without caching.
        for _ in 0..60 {
            schema = twice(&schema);
        }
        assert_eq!(schema.weight().structure, u32::MAX);
    }

    #[test]
    fn changed_clone_is_weighed_again() {
        let schema = twice(&of_type(SchemaType::String).into());
        let whole = twice(&schema);
        let before = whole.weight();
        let mut changed = Schema::clone(&whole);
        let part = changed.properties.get_mut("a").unwrap();
        Arc::make_mut(part).description = Some("x".repeat(100).into());
        assert_eq!(changed.weight().descriptions, before.descriptions + 100);
        assert_eq!(whole.weight(), before);
    }
}
