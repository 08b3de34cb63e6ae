//! The rows of the table.

use super::Root::{Refused, Settable, WithoutStatus};
use super::Side::{Lower, Upper};
use super::Subject::{List, Number, Object, Open, Text};
use super::{Access, Form, Key, Role, Root, Side, Subject};

macro_rules! field {
    ($name:ident) => {
        Access {
            get: |schema| &schema.$name,
            get_mut: |schema| &mut schema.$name,
        }
    };
}

/// All keys, in the order used by messages and documents. (Manifests sort them.)
#[rustfmt::skip] // one key per paragraph
pub static KEYS: &[Key] = &[
    key("minimum", Form::Number(field!(minimum))).of(Number).bound(Lower)
        .argument("minimum", "Minimum value."),
    key("maximum", Form::Number(field!(maximum))).of(Number).bound(Upper)
        .argument("maximum", "Maximum value."),
    key("exclusiveMinimum", Form::Flag(field!(exclusive_minimum))).of(Number)
        .argument("exclusive_minimum", "Excludes `minimum` itself."),
    key("exclusiveMaximum", Form::Flag(field!(exclusive_maximum))).of(Number)
        .argument("exclusive_maximum", "Excludes `maximum` itself."),
    key("multipleOf", Form::Number(field!(multiple_of))).of(Number)
        .argument("multiple_of", "The value must be a multiple of this number."),

    key("minLength", Form::Count(field!(min_length))).of(Text).bound(Lower)
        .argument("min_length", "Minimum length in characters."),
    key("maxLength", Form::Count(field!(max_length))).of(Text).bound(Upper)
        .argument("max_length", "Maximum length in characters."),
    key("pattern", Form::Text(field!(pattern))).of(Text)
        .argument("pattern", "Regular expression (RE2) that the string must match."),

    key("minItems", Form::Count(field!(min_items))).of(List).bound(Lower)
        .argument("min_items", "Minimum number of items."),
    key("maxItems", Form::Count(field!(max_items))).of(List).bound(Upper)
        .argument("max_items", "Maximum number of items."),
    key("items", Form::Part(field!(items))).of(List).constraint(),

    key("minProperties", Form::Count(field!(min_properties))).of(Object).bound(Lower).root(WithoutStatus)
        .argument("min_properties", "Minimum number of properties."),
    key("maxProperties", Form::Count(field!(max_properties))).of(Object).bound(Upper).root(WithoutStatus)
        .argument("max_properties", "Maximum number of properties."),
    key("properties", Form::Fields(field!(properties))).of(Object).constraint().root(Settable),
    key("required", Form::Names(field!(required))).of(Object).constraint().root(Settable),
    key("additionalProperties", Form::Part(field!(additional_properties))).of(Object),

    key("enum", Form::Values(field!(enumeration))).root(Refused)
        .argument("enum", "Allowed values."),
    key("allOf", Form::Parts(field!(all_of))).root(WithoutStatus)
        .argument("all_of", "Schemas that must all hold, as in a manifest: `[{ \"required\": [\"a\"] }]`."),
    key("anyOf", Form::Parts(field!(any_of))).root(WithoutStatus)
        .argument("any_of", "Schemas of which at least one must hold."),
    key("oneOf", Form::Parts(field!(one_of))).root(WithoutStatus)
        .argument("one_of", "Schemas of which exactly one must hold."),
    key("not", Form::Part(field!(not))).root(WithoutStatus)
        .argument("not", "Schema that must not hold."),
    key("format", Form::Text(field!(format)))
        .argument("format", "Format that the API server validates, such as `date-time`."),
    key("type", Form::Type(field!(schema_type))).root(Settable)
        .argument("type", "Type, instead of that of the Rust type.")
        .structure(),

    key("default", Form::Value(field!(default))),
    key("nullable", Form::Flag(field!(nullable))),

    key("title", Form::Text(field!(title))).words(),
    key("description", Form::Text(field!(description))).words(),
    key("example", Form::Value(field!(example))).words(),
    key("externalDocs", Form::Docs(field!(external_docs))).words(),

    key("x-kubernetes-list-type", Form::ListType(field!(list_type))).of(List),
    // `check_literal` has a separate rule for keys without a list of type `map`.
    key("x-kubernetes-list-map-keys", Form::ListKeys(field!(list_map_keys))),
    key("x-kubernetes-map-type", Form::MapType(field!(map_type))).of(Object).root(WithoutStatus),
    // `check_structural` has a separate rule for values of other types.
    key("x-kubernetes-embedded-resource", Form::Flag(field!(embedded_resource))).root(Refused),
    key("x-kubernetes-int-or-string", Form::Flag(field!(int_or_string))),
    key("x-kubernetes-preserve-unknown-fields", Form::Flag(field!(preserve_unknown_fields)))
        .of(Open).root(Settable),
    key("x-kubernetes-validations", Form::Rules(field!(validations))).root(Settable),
];

const fn key(name: &'static str, form: Form) -> Key {
    Key {
        name,
        form,
        subject: Subject::Any,
        role: Role::Structure,
        argument: "",
        doc: "",
        side: None,
        root: Root::Unlisted,
    }
}

impl Key {
    const fn of(self, subject: Subject) -> Key {
        Key { subject, ..self }
    }

    const fn bound(self, side: Side) -> Key {
        Key {
            side: Some(side),
            ..self
        }
    }

    const fn root(self, root: Root) -> Key {
        Key { root, ..self }
    }

    const fn constraint(self) -> Key {
        Key {
            role: Role::Constraint,
            ..self
        }
    }

    const fn argument(self, argument: &'static str, doc: &'static str) -> Key {
        Key {
            argument,
            doc,
            ..self.constraint()
        }
    }

    const fn structure(self) -> Key {
        Key {
            role: Role::Structure,
            ..self
        }
    }

    /// Descriptive keys are allowed at the root, because the schema of an entire object can always
    /// be described.
    const fn words(self) -> Key {
        Key {
            role: Role::Words,
            root: Settable,
            ..self
        }
    }
}
