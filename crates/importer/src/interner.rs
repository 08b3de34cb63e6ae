//! Numbers schemas for fast lookup of equal ones. Comparing or serializing a schema again at each
//! level above it would take quadratic time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use rbuilder_schema::Schema;

/// Assigns the same number to equal schemas.
#[derive(Default)]
pub(crate) struct Interner {
    /// Numbers by content, i.e. the schema without its parts, plus the numbers of these parts.
    by_content: BTreeMap<String, usize>,
    /// Numbered parts by address. Holding the `Arc` keeps the address from being reused.
    by_address: BTreeMap<*const Schema, (Arc<Schema>, usize)>,
}

impl Interner {
    pub(crate) fn number(&mut self, schema: &Schema) -> usize {
        let mut content = serde_json::to_string(&without_parts(schema)).unwrap_or_default();
        for (name, property) in &schema.properties {
            let number = self.number_of_part(property);
            let _ = write!(content, "\n{number} {name:?}");
        }
        for (key, part) in [
            ("items", &schema.items),
            ("additionalProperties", &schema.additional_properties),
        ] {
            if let Some(part) = part {
                let number = self.number_of_part(part);
                let _ = write!(content, "\n{key} {number}");
            }
        }
        let next = self.by_content.len();
        *self.by_content.entry(content).or_insert(next)
    }

    fn number_of_part(&mut self, part: &Arc<Schema>) -> usize {
        if let Some((_, number)) = self.by_address.get(&Arc::as_ptr(part)) {
            return *number;
        }
        let number = self.number(part);
        self.by_address
            .insert(Arc::as_ptr(part), (Arc::clone(part), number));
        number
    }
}

fn without_parts(schema: &Schema) -> Schema {
    Schema {
        properties: BTreeMap::new(),
        items: None,
        additional_properties: None,
        ..schema.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn equal_schemas_have_equal_numbers() {
        let mut interner = Interner::default();
        let mut number = |schema: Value| {
            let schema: Schema = serde_json::from_value(schema).expect("a schema");
            interner.number(&schema)
        };
        let field = |inner: Value| json!({ "type": "object", "properties": { "a": inner } });
        let text = || json!({ "type": "string" });
        assert_eq!(number(field(text())), number(field(text())));
        let different = [
            text(),
            field(text()),
            field(json!({ "type": "integer" })),
            json!({ "type": "object", "properties": { "b": text() } }),
            json!({ "type": "object", "properties": { "a": text() }, "required": ["a"] }),
            json!({ "type": "object", "additionalProperties": text() }),
            json!({ "type": "array", "items": text() }),
            json!({ "type": "array", "items": field(text()) }),
        ];
        let numbers: Vec<usize> = different.iter().cloned().map(&mut number).collect();
        let unique: std::collections::BTreeSet<usize> = numbers.iter().copied().collect();
        assert_eq!(unique.len(), different.len(), "{numbers:?}");
    }
}
