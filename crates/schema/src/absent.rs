//! Uses the values that serde fills in for absent fields as the defaults in a schema.
//!
//! The front ends compute the values (e.g. from `impl Default`). This module only decides which of
//! them the API server would accept as a default.

use std::sync::Arc;

use serde_json::Value;

use crate::validate::check_default;
use crate::{Field, LacksDefault, Markers, OneOf, Schema, Site};

#[derive(Default)]
pub(crate) struct AbsentValues<'a> {
    values: &'a [(Site, Option<Value>)],
    /// Identifiers of the fields counted by a rule such as `exactly_one_of(…)`. They can't have a
    /// default, because the API server would then set all of them.
    counted: Vec<&'a str>,
    /// Fields whose value can't be the default because the schema rejects it, with the reason.
    pub(crate) refused: Vec<(Site, String)>,
}

impl<'a> AbsentValues<'a> {
    pub(crate) fn new(values: &'a [(Site, Option<Value>)], markers: &'a Markers) -> Self {
        let counted = markers.one_of.iter().flat_map(|rule| {
            let (OneOf::AtMost(idents) | OneOf::Exactly(idents) | OneOf::AtLeast(idents)) = rule;
            idents.iter().map(String::as_str)
        });
        AbsentValues {
            values,
            counted: counted.collect(),
            refused: Vec::new(),
        }
    }

    /// Sets the default of a field if serde has a usable value for it. Returns whether the default
    /// was set.
    pub(crate) fn fill_in(&mut self, site: Site, field: &Field, property: &mut Arc<Schema>) -> bool {
        let Some((_, value)) = self.values.iter().find(|(at, _)| *at == site) else {
            return false;
        };
        let has_marker = field.markers.default.is_some();
        let is_null = value.as_ref().is_some_and(Value::is_null);
        // A marker wins over serde, and a counted field has to be absent for its rules to work.
        // `null` needs no default, since it's how serde reads an absent field anyway.
        if is_null || has_marker || self.counted.contains(&field.ident.as_str()) {
            return false;
        }
        let property = Arc::make_mut(property);
        let Some(mut value) = value.clone() else {
            property.lacks_default = LacksDefault(true);
            return false;
        };
        drop_nulls(&mut value, property);
        match check_default(&value, property) {
            Ok(()) => {
                property.default = Some(value);
                true
            }
            Err(reason) => {
                property.lacks_default = LacksDefault(true);
                self.refused.push((site, reason));
                false
            }
        }
    }
}

fn drop_nulls(value: &mut Value, schema: &Schema) {
    // The API server rejects a default with a `null` that the schema doesn't allow, but silently
    // drops such fields from the objects that users send. Dropping them here is equivalent.
    match value {
        Value::Object(fields) => {
            let inner = |name: &str| {
                let property = schema.properties.get(name);
                property.or(schema.additional_properties.as_ref())
            };
            fields.retain(|name, field| {
                !field.is_null() || inner(name).is_none_or(|inner| inner.nullable || is_open(inner))
            });
            for (name, field) in fields {
                if let Some(inner) = inner(name) {
                    drop_nulls(field, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(item, inner));
            }
        }
        _ => {}
    }
}

fn is_open(schema: &Schema) -> bool {
    schema.schema_type.is_none() && !schema.int_or_string
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        Container, Field, Markers, OneOf, Presence, Shape, Site, Slot, assemble_with_defaults, known, map_of,
        of_type,
    };
    use crate::{Schema, SchemaType};

    fn container(markers: Markers, of_field: Markers) -> Container {
        let field = Field {
            ident: "x".into(),
            name: "x".into(),
            description: None,
            slot: 0,
            flatten: false,
            presence: Presence::Defaulted,
            stated: false,
            markers: of_field,
        };
        Container {
            denies_unknown: false,
            name: "S".into(),
            markers,
            shape: Shape::Object(vec![field]),
            ..Container::default()
        }
    }

    fn check(
        container: &Container,
        schema: Schema,
        value: serde_json::Value,
        default: Option<serde_json::Value>,
        refused: &[&str],
    ) {
        let slot = Slot {
            schema: schema.into(),
            optional: false,
        };
        let made = assemble_with_defaults(container, &[slot], &[(Site::Field(0), Some(value.clone()))]);
        let made = made.expect("a schema");
        assert_eq!(made.schema.properties["x"].default, default, "{value}");
        let reasons: Vec<_> = made.refused.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(reasons, refused, "{value}");
    }

    #[test]
    fn values_become_defaults() {
        let plain = container(Markers::default(), Markers::default());
        let integer = || Schema::clone(&known("i32").expect("a schema"));
        check(&plain, integer(), json!(3), Some(json!(3)), &[]);
        check(&plain, integer(), json!(null), None, &[]);
        check(
            &plain,
            integer(),
            json!("a"),
            None,
            &["expected an integer, found \"a\""],
        );
        let object = map_of(&of_type(SchemaType::String), integer());
        check(
            &plain,
            object,
            json!({"a": null, "b": 1}),
            Some(json!({"b": 1})),
            &[],
        );
        let marked = Markers {
            default: Some(json!(4)),
            ..Markers::default()
        };
        check(
            &container(Markers::default(), marked),
            integer(),
            json!(3),
            Some(json!(4)),
            &[],
        );
        let bounded = Markers {
            stated: Some(Box::new(Schema {
                minimum: Some(1.into()),
                ..Schema::default()
            })),
            ..Markers::default()
        };
        check(
            &container(Markers::default(), bounded),
            integer(),
            json!(0),
            None,
            &["0 is less than the minimum 1"],
        );
        let counted = Markers {
            one_of: vec![OneOf::AtMost(vec!["x".into()])],
            ..Markers::default()
        };
        check(
            &container(counted, Markers::default()),
            integer(),
            json!(3),
            None,
            &[],
        );
    }
}
