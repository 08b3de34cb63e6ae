//! A table of all schema keys and their properties, so that code that treats many keys alike
//! doesn't have to list them.
//!
//! Which fields [`Schema`] has and how they're ordered in a manifest is up to `schema.rs`. What a
//! key *does* to a value can't be put in a table, so it's in the code (see "Adding a key" there).

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
    /// The name in a manifest, e.g. `maxItems`. With its first letter in upper case, it's the name
    /// in Go and in `kubebuilder:validation:…`.
    pub name: &'static str,
    /// What type the value has in Rust, and how to get at it.
    pub form: Form,
    /// Which values the key applies to.
    pub subject: Subject,
    /// What the key does.
    pub role: Role,
    /// The name in `validation(…)`, e.g. `max_items`. It's empty if the key isn't a constraint that
    /// users write there.
    pub argument: &'static str,
    /// Describes the argument in one line.
    pub doc: &'static str,
    /// On which side the key limits values, or `None` if it isn't a bound.
    pub side: Option<Side>,
    /// Whether the schema of a whole object may have the key.
    pub root: Root,
}

/// Which values a key applies to.
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

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It constrains values. Within `allOf`, `anyOf`, `oneOf` and `not`, only keys with this role
    /// are allowed.
    Constraint,
    /// It describes the value to users.
    Words,
    /// It says which values there can be, or how the API server stores and merges them.
    Structure,
}

/// On which side a bound limits values. Of two bounds on the same side, the tighter one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It's a minimum.
    Lower,
    /// It's a maximum.
    Upper,
}

/// Whether the schema of a whole object may have a key. This follows `allowedFieldsAtRootSchema` in
/// apiextensions-apiserver, but leaves out the keys that have no effect there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// `root_schema` can set it.
    Settable,
    /// `root_schema` can set it, although the API server rejects it if the status is a subresource.
    WithoutStatus,
    /// `root_schema` can't set it, and the API server rejects it if the status is a subresource.
    Refused,
    /// It has no effect there, or [`check_root`](crate::check_root) treats it specially.
    Unlisted,
}

impl Subject {
    /// Returns what we call the values in messages about schemas.
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

    /// Returns what we call the values in messages about markers. They're about Rust, so objects
    /// are maps and structs there.
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

/// The keys for the minimum and the maximum of the same size, e.g. `minItems` and `maxItems`.
pub type SizePair = [(&'static Key, Access<Option<u64>>); 2];

impl Key {
    /// Finds a key by its name in a manifest.
    pub fn named(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Returns the names of the keys that match, in the order of a manifest.
    pub fn names(is_listed: impl Fn(&Key) -> bool) -> Vec<&'static str> {
        let listed = KEYS.iter().filter(|key| is_listed(key));
        let mut names: Vec<&str> = listed.map(|key| key.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the keys that `validation(…)` accepts, in the order of the reference.
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

    /// Returns the bounds on sizes, i.e. on how many characters, items or fields there are.
    pub fn sizes() -> impl Iterator<Item = (&'static Key, Access<Option<u64>>, Side)> {
        KEYS.iter().filter_map(|key| match (key.form, key.side) {
            (Form::Count(count), Some(side)) => Some((key, count, side)),
            _ => None,
        })
    }

    /// Returns the minimum and the maximum of each size.
    pub fn size_pairs() -> impl Iterator<Item = SizePair> {
        // Keep them, since every field of a package is checked against them twice.
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

    /// Returns those keys of a schema that have a number as their value.
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

    /// Copies the value of the key, or removes the key if `from` doesn't have it.
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

    /// Returns whether the API server rejects the key in the schema of a whole object if the status
    /// is a subresource.
    pub fn is_refused_with_status(&self) -> bool {
        matches!(self.root, Root::WithoutStatus | Root::Refused)
    }
}

impl Schema {
    /// Returns a copy that has only the keys that match.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(&Key) -> bool) -> Schema {
        let mut schema = Schema::default();
        for key in KEYS.iter().filter(|key| is_kept(key)) {
            key.copy(self, &mut schema);
        }
        schema
    }

    /// Returns a copy that lacks the keys that match.
    #[must_use]
    pub fn without(&self, is_dropped: impl Fn(&Key) -> bool) -> Schema {
        let mut schema = self.clone();
        for key in KEYS.iter().filter(|key| is_dropped(key)) {
            key.clear(&mut schema);
        }
        schema
    }

    /// Takes over all keys that the other schema has.
    pub fn overlay(&mut self, other: &Schema) {
        for key in KEYS.iter().filter(|key| key.is_set(other)) {
            key.copy(other, self);
        }
    }
}
