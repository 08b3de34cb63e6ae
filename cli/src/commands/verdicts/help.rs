//! Help for the API server's messages where the object itself shows what to write.
//!
//! `crate::replacement` applies unambiguous help, e.g. for a misspelling, missing quotes or a
//! repeated item. A merely similar name is proposed but never applied.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use rbuilder_diagnostic::suggest::{find_misspelled, find_nearest, is_misspelling, list_names};
use rbuilder_judge::{FieldError, Judge, Reason};
use rbuilder_schema::Schema;
use rbuilder_yaml::first_names;
use serde_json::{Number, Value};

use super::builtin::object_meta;
use super::objects::Object;

const STANZA: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) struct Helper<'o> {
    object: &'o Object,
    schema: &'o Schema,
    /// Schema of `metadata`, which the schemas of kinds leave out. Built on demand, since most
    /// objects need no help.
    metadata: OnceCell<Schema>,
}

#[derive(Clone, Copy)]
struct Step<'s> {
    name: &'s str,
    value: &'s Value,
    /// `None` where the schema doesn't define the value.
    schema: Option<&'s Schema>,
}

impl<'o> Helper<'o> {
    pub(super) fn new(object: &'o Object, judge: &'o Judge) -> Helper<'o> {
        Helper {
            object,
            schema: &judge.definition().schema,
            metadata: OnceCell::new(),
        }
    }

    pub(super) fn explain_error(&self, error: &FieldError) -> Option<String> {
        match error.reason {
            Reason::NotSupported => self.propose_value(&error.field),
            Reason::TypeInvalid => {
                let (_, wanted) = error.message.split_once(" must be of type ")?;
                self.correct_type(&error.field, wanted.split(": ").next()?)
            }
            Reason::Duplicate => self.find_equal_item(&error.field),
            _ => None,
        }
    }

    /// Help for an unknown or repeated field, e.g. for `unknown field "spec.sise"`.
    pub(super) fn explain_problem(&self, problem: &str) -> Option<String> {
        let field = |prefix: &str| problem.strip_prefix(prefix)?.strip_suffix('"');
        if let Some(field) = field("unknown field \"") {
            return self.propose_field(field);
        }
        let field = field("duplicate field \"")?;
        self.object
            .repeats(field)
            .then(|| "remove it: both values are equal".to_owned())
    }

    /// Help for a value in `metadata` that should be a string. The message only names the map or
    /// list, so this finds the entry and also returns its path.
    pub(super) fn explain_metadata(&self, field: &str, message: &str) -> Option<(String, String)> {
        if !message.ends_with(" of type string") {
            return None;
        }
        let is_wrong = |value: &Value| !value.is_string() && !value.is_null();
        let field = match self.find(field)?.last()?.value {
            Value::Object(entries) => {
                let names: BTreeSet<&String> = entries.keys().collect();
                let name = names.into_iter().find(|name| is_wrong(&entries[*name]))?;
                format!("{field}[{name}]")
            }
            Value::Array(items) => format!("{field}[{}]", items.iter().position(is_wrong)?),
            _ => field.to_owned(),
        };
        let help = self.correct_type(&field, "string")?;
        Some((field, help))
    }

    fn propose_field(&self, field: &str) -> Option<String> {
        let steps = self.find(field)?;
        let [.., parent, field] = &steps[..] else {
            return None;
        };
        let (schema, fields) = (parent.schema?, parent.value.as_object()?);
        let is_object = steps.len() == 2 || schema.embedded_resource;
        let stanza = STANZA.into_iter().filter(|_| is_object);
        let known = schema.properties.keys().map(AsRef::as_ref).chain(stanza);
        let free: BTreeSet<&str> = known.filter(|name| !fields.contains_key(*name)).collect();
        propose(field.name, &free)
    }

    fn propose_value(&self, field: &str) -> Option<String> {
        let steps = self.find(field)?;
        let field = steps.last()?;
        let allowed = field.schema?.enumeration.iter().filter_map(Value::as_str);
        propose(field.value.as_str()?, &allowed.collect())
    }

    fn correct_type(&self, field: &str, wanted: &str) -> Option<String> {
        let value = self.find(field)?.last()?.value;
        let right = match (value, wanted) {
            (Value::String(text), "integer") => is_integer(text).then(|| text.clone())?,
            (Value::String(text), "number") => is_number(text).then(|| text.clone())?,
            (Value::String(text), "boolean") => {
                let text = text.to_ascii_lowercase();
                matches!(&*text, "true" | "false").then_some(text)?
            }
            (Value::Number(_) | Value::Bool(_), "string") => {
                let written = self.object.written(field);
                let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "+-._".contains(letter);
                let is_word = !written.is_empty() && written.chars().all(is_plain);
                return is_word.then(|| format!("quote it: `\"{written}\"`"));
            }
            _ => return None,
        };
        Some(format!("remove the quotes: `{right}`"))
    }

    fn find_equal_item(&self, field: &str) -> Option<String> {
        let (list, index) = field.strip_suffix(']')?.rsplit_once('[')?;
        let items = self.find(list)?.last()?.value.as_array()?;
        let index: usize = index.parse().ok()?;
        let item = items.get(index)?;
        let same = items[..index].iter().position(|before| before == item)?;
        Some(format!("remove it: `{list}[{same}]` is equal"))
    }

    fn find<'s>(&'s self, field: &str) -> Option<Vec<Step<'s>>> {
        let mut steps = vec![Step {
            name: "",
            value: &self.object.value,
            schema: Some(self.schema),
        }];
        let mut rest = field;
        while !rest.is_empty() {
            let above = *steps.last()?;
            let (step, after) = match above.value {
                Value::Array(items) => {
                    let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
                    let value = items.get(index.parse::<usize>().ok()?)?;
                    let schema = above.schema.and_then(|schema| schema.items.as_deref());
                    let name = "";
                    (Step { name, value, schema }, after)
                }
                Value::Object(fields) => {
                    // Keys may contain dots (e.g. in labels), so there may be several candidates
                    // for the first one.
                    let mut fitting = first_names(rest).into_iter();
                    let (name, value, after) = fitting.find_map(|(name, after)| {
                        let (name, value) = fields.get_key_value(name)?;
                        Some((name, value, after))
                    })?;
                    let schema = self.schema_of(above.schema, name, steps.len() == 1);
                    (Step { name, value, schema }, after)
                }
                _ => return None,
            };
            steps.push(step);
            rest = after.strip_prefix('.').unwrap_or(after);
        }
        Some(steps)
    }

    fn schema_of<'s>(&'s self, schema: Option<&'s Schema>, name: &str, is_root: bool) -> Option<&'s Schema> {
        if name == "metadata" && (is_root || schema.is_some_and(|schema| schema.embedded_resource)) {
            return Some(self.metadata.get_or_init(object_meta));
        }
        let inner = schema?.properties.get(name);
        inner
            .or(schema?.additional_properties.as_ref())
            .map(AsRef::as_ref)
    }
}

/// Proposes the candidate that `word` misspells, or else the most similar one.
pub(super) fn propose(word: &str, candidates: &BTreeSet<&str>) -> Option<String> {
    let all = || candidates.iter().copied();
    if let Some(right) = find_misspelled(word, all()) {
        return Some(format!("did you mean `{right}`?"));
    }
    let near: Vec<&str> = all().filter(|other| is_misspelling(word, other)).collect();
    match near.is_empty() {
        true => find_nearest(word, all()).map(|similar| format!("did you mean `{similar}`?")),
        false => Some(format!("use one of: {}", list_names(near))),
    }
}

fn is_integer(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|number| number.to_string() == text)
}

fn is_number(text: &str) -> bool {
    text.trim() == text && serde_json::from_str::<Number>(text).is_ok()
}
