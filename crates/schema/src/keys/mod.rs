//! The table of schema keys: the properties of each key, so that code that treats keys alike does
//! not need to list them.
//!
//! The fields of [`Schema`] and their order in manifests are in `schema.rs`. What a key *does* to
//! values is code, not data: see "Adding a key" there.

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
    /// The name in a manifest, such as `maxItems`. With a capital letter, it is the name in Go and
    /// in `kubebuilder:validation:…`.
    pub name: &'static str,
    /// The type of the value in Rust, with access to it.
    pub form: Form,
    /// The values to which the key applies.
    pub subject: Subject,
    /// What the key does.
    pub role: Role,
    /// The name in `validation(…)`, such as `max_items`. Empty if it is not a constraint that
    /// users write there.
    pub argument: &'static str,
    /// The description of the argument, in one line.
    pub doc: &'static str,
    /// The side on which the key bounds values. `None` if it is not a bound.
    pub side: Option<Side>,
    /// Whether the schema of an entire object may contain the key.
    pub root: Root,
}

/// The values to which a key applies.
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
    /// Structs, maps, and lists of them.
    Open,
    /// Any value.
    Any,
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Constrains values. The only role that keys in `allOf`, `anyOf`, `oneOf` and `not` may have.
    Constraint,
    /// Describes the value to users.
    Words,
    /// Determines which values exist, and how the API server stores and merges them.
    Structure,
}

/// The side on which a bound limits values. If there are two bounds, the tighter one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A minimum.
    Lower,
    /// A maximum.
    Upper,
}

/// Whether the schema of an entire object may contain a key. Follows `allowedFieldsAtRootSchema` in
/// apiextensions-apiserver, and omits keys that have no effect there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// `root_schema` can set it.
    Settable,
    /// `root_schema` can set it, but the API server rejects it if the status is a subresource.
    WithoutStatus,
    /// The API server rejects it if the status is a subresource.
    Refused,
    /// It has no effect there, or [`check_root`](crate::check_root) has a special rule for it.
    Unlisted,
}

impl Subject {
    /// Returns the noun for the values in messages about schemas.
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

    /// Returns the noun for the values in messages about markers, in terms of Rust.
    pub fn rust_noun(self) -> &'static str {
        match self {
            Subject::Object => "maps and structs",
            other => other.noun(),
        }
    }

    /// Returns whether values of a type are included.
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

/// The minimum and the maximum of the same size.
pub type SizePair = [(&'static Key, Access<Option<u64>>); 2];

impl Key {
    /// Finds a key by its name in a manifest.
    pub fn named(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Returns the names of matching keys, in manifest order.
    pub fn names(is_listed: impl Fn(&Key) -> bool) -> Vec<&'static str> {
        let listed = KEYS.iter().filter(|key| is_listed(key));
        let mut names: Vec<&str> = listed.map(|key| key.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the keys of `validation(…)`, in reference order.
    pub fn arguments() -> impl Iterator<Item = &'static Key> + Clone {
        KEYS.iter().filter(|key| !key.argument.is_empty())
    }

    /// Finds a key of `validation(…)`.
    pub fn of_argument(argument: &str) -> Option<&'static Key> {
        Key::arguments().find(|key| key.argument == argument)
    }

    /// Finds a key of `validation(…)` by its name in Go, such as `MaxItems`.
    pub fn of_go(name: &str) -> Option<&'static Key> {
        let mut letters = name.chars();
        let first = letters.next().filter(char::is_ascii_uppercase)?;
        let rest = letters.as_str();
        let is_same = |key: &Key| {
            key.name.strip_prefix(first.to_ascii_lowercase()) == Some(rest) && !key.form.has_schemas()
        };
        Key::arguments().find(|key| is_same(key))
    }

    /// Returns the bounds on sizes: counts of characters, items or fields.
    pub fn sizes() -> impl Iterator<Item = (&'static Key, Access<Option<u64>>, Side)> {
        KEYS.iter().filter_map(|key| match (key.form, key.side) {
            (Form::Count(count), Some(side)) => Some((key, count, side)),
            _ => None,
        })
    }

    /// Returns the pairs of a minimum and a maximum of the same size.
    pub fn size_pairs() -> impl Iterator<Item = SizePair> {
        // Cached, because each field in a package is checked against them twice.
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

    /// Returns the keys in a schema whose value is a number.
    pub fn numbers(schema: &Schema) -> impl Iterator<Item = (&'static Key, &Number)> {
        KEYS.iter().filter_map(move |key| match key.form {
            Form::Number(number) => Some((key, number.get(schema).as_ref()?)),
            _ => None,
        })
    }

    /// Returns whether the key is set in a schema.
    pub fn is_set(&self, schema: &Schema) -> bool {
        self.form.slot().is_set(schema)
    }

    /// Returns whether the key has the same value in both schemas.
    pub fn is_same(&self, left: &Schema, right: &Schema) -> bool {
        self.form.slot().is_same(left, right)
    }

    /// Copies the value, or removes it if it is absent.
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

    /// Returns whether the API server rejects the key in the schema of an entire object whose
    /// status is a subresource.
    pub fn is_refused_with_status(&self) -> bool {
        matches!(self.root, Root::WithoutStatus | Root::Refused)
    }
}

impl Schema {
    /// Returns a copy that only contains matching keys.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(&Key) -> bool) -> Schema {
        let mut schema = Schema::default();
        for key in KEYS.iter().filter(|key| is_kept(key)) {
            key.copy(self, &mut schema);
        }
        schema
    }

    /// Returns a copy without matching keys.
    #[must_use]
    pub fn without(&self, is_dropped: impl Fn(&Key) -> bool) -> Schema {
        let mut schema = self.clone();
        for key in KEYS.iter().filter(|key| is_dropped(key)) {
            key.clear(&mut schema);
        }
        schema
    }

    /// Sets all keys that are set in another schema.
    pub fn overlay(&mut self, other: &Schema) {
        for key in KEYS.iter().filter(|key| key.is_set(other)) {
            key.copy(other, self);
        }
    }
}
