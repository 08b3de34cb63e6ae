//! Compares two schemas node by node.

mod alone;
mod constraints;
mod fields;
mod integers;
mod topology;
mod validations;

use std::borrow::Cow;

use rbuilder_schema::{Cel, KEYS, Role, Schema, SchemaType, misplaced_keys};
use serde_json::Value;

pub(crate) use self::alone::Alone;
use self::alone::{keeps_all_values, with_keys};
use crate::path::{Path, Step};
use crate::rules::{Rule, rule};
use crate::witness::{Candidate, edges};

pub(crate) struct Difference {
    pub(crate) rule: &'static Rule,
    pub(crate) path: Path,
    pub(crate) message: String,
    pub(crate) probe: Probe,
}

/// How to search for an object that is affected by a difference.
pub(crate) enum Probe {
    /// No observable effect.
    Nothing,
    /// No effect on anything that the old schema accepts, although the rule's changes have one in
    /// general.
    Unaffected,
    /// Objects with these values may be rejected or, if `reads` is set, be read differently.
    Values {
        path: Path,
        candidates: Vec<Candidate>,
        reads: bool,
        alone: Box<Alone>,
    },
    /// Objects without the value may be rejected, or be read differently.
    Default {
        /// The old and the new default.
        values: Vec<Value>,
        alone: Box<Alone>,
    },
    /// Objects with random values of the old schema may violate the rule.
    Rule {
        rule: Box<Cel>,
        node: Box<Schema>,
        alone: Box<Alone>,
    },
}

pub(crate) fn compare_schemas(old: &Schema, new: &Schema) -> Vec<Difference> {
    let mut comparison = Comparison::default();
    comparison.compare(old, new, &Path::default());
    // There may be hundreds of changed descriptions, so report them as a single change.
    if comparison.descriptions > 0 {
        let message = match comparison.descriptions {
            1 => "a description changes".to_owned(),
            count => format!("{count} descriptions change"),
        };
        comparison.add("description-changed", &Path::default(), message, Probe::Nothing);
    }
    comparison.found
}

#[derive(Default)]
struct Comparison {
    found: Vec<Difference>,
    descriptions: usize,
    /// Whether a default of the current value or of one around it has changed, so that the new one
    /// may contain fields that the old schema lacks.
    is_filled_differently: bool,
    /// Whether the API server drops `null` instead of the current value.
    drops_null: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Any,
    IntOrString,
    Typed(SchemaType),
}

impl Kind {
    fn of(schema: &Schema) -> Kind {
        match schema.schema_type {
            _ if schema.int_or_string => Kind::IntOrString,
            Some(schema_type) => Kind::Typed(schema_type),
            None => Kind::Any,
        }
    }

    fn describe(self) -> String {
        match self {
            Kind::Any => "any type".to_owned(),
            Kind::IntOrString => "integer or string".to_owned(),
            Kind::Typed(schema_type) => format!("type {}", schema_type.as_str()),
        }
    }

    /// Returns true if all values of this type also belong to the other type.
    fn fits(self, other: Kind) -> bool {
        use SchemaType::{Integer, Number, String};
        match (self, other) {
            (_, Kind::Any) | (Kind::Typed(Integer | String), Kind::IntOrString) => true,
            (Kind::Typed(Integer), Kind::Typed(Number)) => true,
            (one, other) => one == other,
        }
    }
}

impl Comparison {
    fn add(&mut self, name: &str, path: &Path, message: String, probe: Probe) {
        self.found.push(Difference {
            rule: rule(name),
            path: path.clone(),
            message,
            probe,
        });
    }

    /// Adds a difference for which the search tries values near the schemas' bounds. `alone` is the
    /// old node with this difference only.
    fn add_searched(
        &mut self,
        name: &str,
        path: &Path,
        message: String,
        (old, alone): (&Schema, Schema),
        reads: bool,
    ) {
        let probe = Probe::Values {
            path: path.clone(),
            candidates: edges(old, &alone),
            reads,
            alone: Alone::at(path, alone),
        };
        self.add(name, path, message, probe);
    }

    /// Adds a difference that rejects values. If the schemas show that all old values remain valid,
    /// nothing is searched.
    fn add_narrowing(&mut self, name: &str, path: &Path, message: String, (old, alone): (&Schema, Schema)) {
        match keeps_all_values(old, &alone) {
            true => {
                let message = format!("{message}, which all old values satisfy");
                self.add(name, path, message, Probe::Unaffected);
            }
            false => self.add_searched(name, path, message, (old, alone), false),
        }
    }

    fn compare(&mut self, old: &Schema, new: &Schema, path: &Path) {
        if old == new {
            return;
        }
        let is_filled_differently = self.is_filled_differently;
        self.is_filled_differently |= old.default != new.default;
        self.compare_nodes(old, new, path);
        self.is_filled_differently = is_filled_differently;
    }

    fn compare_nodes(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let drops_null = std::mem::take(&mut self.drops_null);
        self.compare_words(old, new);
        let (mut old, new) = self.without_misplaced_keys(old, new, path);
        let new = new.as_ref();
        let (before, after) = (Kind::of(&old), Kind::of(new));
        if before != after {
            let message = format!("{} instead of {}", after.describe(), before.describe());
            if !before.fits(after) {
                self.add_searched("type-changed", path, message, (&old, new.clone()), false);
                return;
            }
            self.add("type-widened", path, message, Probe::Nothing);
            // The old type's constraints also apply to values of the new type, so keep comparing.
            if let Kind::Typed(_) = before {
                old.to_mut().int_or_string = false;
            }
        }
        let old = old.as_ref();
        self.compare_nullable(old, new, path, drops_null);
        self.compare_constraints(old, new, path);
        self.compare_alternatives(old, new, path);
        self.compare_defaults(old, new, path);
        self.compare_topology(old, new, path);
        self.compare_required(old, new, path);
        self.compare_fields(old, new, path);
        if let (Some(before), Some(after)) = (&old.items, &new.items) {
            self.compare(before, after, &path.then(Step::Items));
        }
        self.compare_rules(old, new, path);
    }

    fn compare_words(&mut self, old: &Schema, new: &Schema) {
        let mut words = KEYS.iter().filter(|key| key.role == Role::Words);
        self.descriptions += usize::from(words.any(|key| !key.is_same(old, new)));
    }

    /// Removes the keys that apply to values of other types. Adds a difference for each that only
    /// one of the schemas has.
    fn without_misplaced_keys<'s>(
        &mut self,
        old: &'s Schema,
        new: &'s Schema,
        path: &Path,
    ) -> (Cow<'s, Schema>, Cow<'s, Schema>) {
        let mut trimmed = (Cow::Borrowed(old), Cow::Borrowed(new));
        for (schema, other, trimmed) in [(old, new, &mut trimmed.0), (new, old, &mut trimmed.1)] {
            let noun = schema.schema_type.map(SchemaType::noun).unwrap_or_default();
            for (key, _) in misplaced_keys(schema) {
                key.clear(trimmed.to_mut());
                if !key.is_set(other) {
                    let message = format!("`{}` has no effect on {noun}", key.name);
                    self.add("key-ignored", path, message, Probe::Nothing);
                }
            }
        }
        trimmed
    }

    fn compare_nullable(&mut self, old: &Schema, new: &Schema, path: &Path, drops_null: bool) {
        if old.nullable && !new.nullable {
            let (name, message) = match drops_null && new.default.is_none() {
                true => ("null-dropped", "`null` is dropped"),
                false => ("nullable-removed", "`null` is not allowed"),
            };
            let probe = Probe::Values {
                path: path.clone(),
                candidates: vec![Candidate::Value(Value::Null)],
                reads: true,
                alone: Alone::at(path, with_keys(old, new, &["nullable"])),
            };
            self.add(name, path, message.to_owned(), probe);
        }
        if !old.nullable && new.nullable {
            self.add(
                "nullable-added",
                path,
                "`null` is allowed".to_owned(),
                Probe::Nothing,
            );
        }
    }

    fn compare_defaults(&mut self, old: &Schema, new: &Schema, path: &Path) {
        // The API server ignores `null` defaults.
        let default = |schema: &Schema| schema.default.clone().filter(|default| !default.is_null());
        let (name, message) = match (default(old), default(new)) {
            (None, Some(after)) => ("default-added", format!("default {after}")),
            (Some(before), None) => ("default-removed", format!("no default instead of {before}")),
            (Some(before), Some(after)) if before != after => {
                ("default-changed", format!("default {after} instead of {before}"))
            }
            _ => return,
        };
        let probe = Probe::Default {
            values: [old, new].into_iter().filter_map(default).collect(),
            alone: Alone::at(path, with_keys(old, new, &["default"])),
        };
        self.add(name, path, message, probe);
    }
}
