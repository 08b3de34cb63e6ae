//! A table of all schema keys and their properties, so that code that treats many keys alike
//! doesn't have to list them.
//!
//! The fields of [`Schema`] and their order in a manifest are defined in `schema.rs`. The *effect*
//! of a key on a value can't be put in a table, so it's in code (see "Adding a key" there).

mod form;
mod table;

pub use form::{Access, Form};
pub use table::KEYS;

use std::sync::LazyLock;

use serde_json::Number;

use crate::{Schema, SchemaType};

/// A key of a schema.
#[derive(Clone, Copy)]
pub struct Key {
    /// The name in a manifest, e.g. `maxItems`. In upper camel case, it's the name in Go and in
    /// `kubebuilder:validation:…`.
    pub name: &'static str,
    /// The Rust type of the value, with access to it.
    pub form: Form,
    /// The values that the key applies to.
    pub subject: Subject,
    /// The purpose of the key.
    pub role: Role,
    /// The name in `validation(…)`, e.g. `max_items`. Empty if the key isn't a constraint that
    /// users can write there.
    pub argument: &'static str,
    /// A one-line description of the argument.
    pub doc: &'static str,
    /// The side on which the key limits values, or `None` if it isn't a bound.
    pub side: Option<Side>,
    /// Whether the schema of an entire object may have the key.
    pub root: Root,
}

/// The values that a key applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Integers and floating-point numbers.
    Number,
    /// Strings.
    Text,
    /// Lists.
    List,
    /// Structs and maps.
    Object,
    /// Structs and maps, and lists of them.
    Open,
    /// Values of any type.
    Any,
}

/// The purpose of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Constrains values. Only keys with this role are allowed within `allOf`, `anyOf`, `oneOf` and
    /// `not`.
    Constraint,
    /// Describes the value to users.
    Words,
    /// Defines the possible values, or how the API server stores and merges them.
    Structure,
}

/// The side on which a bound limits values. Of two bounds on the same side, the tighter one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A minimum.
    Lower,
    /// A maximum.
    Upper,
}

/// Whether the schema of an entire object may have a key. Follows `allowedFieldsAtRootSchema` in
/// apiextensions-apiserver, but leaves out keys that are no-ops there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// Settable in `root_schema`.
    Settable,
    /// Settable in `root_schema`, although the API server rejects it if the status is a
    /// subresource.
    WithoutStatus,
    /// Not settable in `root_schema`, and rejected by the API server if the status is a
    /// subresource.
    Refused,
    /// A no-op at the root, or handled separately by [`check_root`](crate::check_root).
    Unlisted,
}

impl Subject {
    /// Returns the name for these values in messages about schemas.
    pub fn noun(self) -> &'static str {
        match self {
            Subject::Number => "numbers",
            Subject::Text => "strings",
            Subject::List => "lists",
            Subject::Object => "objects",
            Subject::Open => "objects and lists of them",
            Subject::Any => "all values",
        }
    }

    /// Returns the name for these values in messages about markers. In Rust, objects are maps and
    /// structs.
    pub fn rust_noun(self) -> &'static str {
        match self {
            Subject::Object => "maps and structs",
            other => other.noun(),
        }
    }

    /// Returns whether this includes values of the given type.
    pub fn includes(self, schema_type: SchemaType) -> bool {
        match self {
            Subject::Number => matches!(schema_type, SchemaType::Integer | SchemaType::Number),
            Subject::Text => schema_type == SchemaType::String,
            Subject::List => schema_type == SchemaType::Array,
            Subject::Object => schema_type == SchemaType::Object,
            Subject::Open => matches!(schema_type, SchemaType::Array | SchemaType::Object),
            Subject::Any => true,
        }
    }
}

/// The keys for the minimum and the maximum of a size, e.g. `minItems` and `maxItems`.
pub type SizePair = [(&'static Key, Access<Option<u64>>); 2];

impl Key {
    /// Finds a key by its name in a manifest.
    pub fn named(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Returns the names of the matching keys, in manifest order.
    pub fn names(is_listed: impl Fn(&Key) -> bool) -> Vec<&'static str> {
        let listed = KEYS.iter().filter(|key| is_listed(key));
        let mut names: Vec<&str> = listed.map(|key| key.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the keys accepted in `validation(…)`, in the order of the reference.
    pub fn arguments() -> impl Iterator<Item = &'static Key> + Clone {
        KEYS.iter().filter(|key| !key.argument.is_empty())
    }

    /// Finds a key by its name in `validation(…)`.
    pub fn of_argument(argument: &str) -> Option<&'static Key> {
        Key::arguments().find(|key| key.argument == argument)
    }

    /// Finds a key of `validation(…)` by its name in Go, e.g. `MaxItems`.
    pub fn of_go(name: &str) -> Option<&'static Key> {
        let mut letters = name.chars();
        let first = letters.next().filter(char::is_ascii_uppercase)?;
        let rest = letters.as_str();
        let is_same = |key: &Key| {
            key.name.strip_prefix(first.to_ascii_lowercase()) == Some(rest) && !key.form.has_schemas()
        };
        Key::arguments().find(|key| is_same(key))
    }

    /// Returns the bounds on sizes: the number of characters, items or fields.
    pub fn sizes() -> impl Iterator<Item = (&'static Key, Access<Option<u64>>, Side)> {
        KEYS.iter().filter_map(|key| match (key.form, key.side) {
            (Form::Count(count), Some(side)) => Some((key, count, side)),
            _ => None,
        })
    }

    /// Returns the minimum and maximum of each size.
    pub fn size_pairs() -> impl Iterator<Item = SizePair> {
        // Cached, because every field of a package is checked against them twice.
        static PAIRS: LazyLock<Vec<SizePair>> = LazyLock::new(|| {
            let lower = Key::sizes().filter(|(.., side)| *side == Side::Lower);
            let pairs = lower.filter_map(|(low, least, _)| {
                let size = low.name.strip_prefix("min")?;
                let is_same = |high: &Key| high.name.strip_prefix("max") == Some(size);
                let (high, most, _) = Key::sizes().find(|(high, ..)| is_same(high))?;
                Some([(low, least), (high, most)])
            });
            pairs.collect()
        });
        PAIRS.iter().copied()
    }

    /// Returns the keys of a schema with a numeric value.
    pub fn numbers(schema: &Schema) -> impl Iterator<Item = (&'static Key, &Number)> {
        KEYS.iter().filter_map(move |key| match key.form {
            Form::Number(number) => Some((key, number.get(schema).as_ref()?)),
            _ => None,
        })
    }

    /// Returns whether a schema has the key.
    pub fn is_set(&self, schema: &Schema) -> bool {
        self.form.slot().is_set(schema)
    }

    /// Returns whether both schemas have the same value for the key.
    pub fn is_same(&self, left: &Schema, right: &Schema) -> bool {
        self.form.slot().is_same(left, right)
    }

    /// Copies the value of the key, or removes the key if `from` lacks it.
    pub fn copy(&self, from: &Schema, to: &mut Schema) {
        self.form.slot().copy(from, to);
    }

    /// Removes the key.
    pub fn clear(&self, schema: &mut Schema) {
        self.form.slot().clear(schema);
    }

    /// Returns whether `root_schema` can set the key.
    pub fn is_in_root_schema(&self) -> bool {
        matches!(self.root, Root::Settable | Root::WithoutStatus)
    }

    /// Returns whether the API server rejects the key in the schema of an entire object if the
    /// status is a subresource.
    pub fn is_refused_with_status(&self) -> bool {
        matches!(self.root, Root::WithoutStatus | Root::Refused)
    }
}

impl Schema {
    /// Returns a copy with only the matching keys.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(&Key) -> bool) -> Schema {
        let mut schema = Schema::default();
        for key in KEYS.iter().filter(|key| is_kept(key)) {
            key.copy(self, &mut schema);
        }
        schema
    }

    /// Returns a copy without the matching keys.
    #[must_use]
    pub fn without(&self, is_dropped: impl Fn(&Key) -> bool) -> Schema {
        let mut schema = self.clone();
        for key in KEYS.iter().filter(|key| is_dropped(key)) {
            key.clear(&mut schema);
        }
        schema
    }

    /// Copies all keys set in the other schema.
    pub fn overlay(&mut self, other: &Schema) {
        for key in KEYS.iter().filter(|key| key.is_set(other)) {
            key.copy(other, self);
        }
    }
}
