//! Validates values against their schema, like `kube-openapi/pkg/validation/validate`.
//!
//! Errors alone aren't enough: if no alternative of an `anyOf` or `oneOf` matches, the server
//! reports the errors of the alternative with the most passed checks. Hence we count checks in the
//! same way.

mod alternatives;
mod number;
mod text;

use std::collections::HashSet;
use std::sync::Arc;

use rbuilder_schema::{FORMATS, Schema, SchemaType, accepts_format, format_type};
use serde_json::{Map, Value};

use crate::correlate::Correlated;
use crate::error::FieldError;
use crate::go;
use crate::path::Path;
use crate::verdict::Undecided;

pub(crate) struct Checker<'u> {
    /// Path of the checked value. Included in the fields of errors, but not in their messages.
    base: Path,
    undecided: &'u mut Vec<Undecided>,
    /// Whether values with the format `byte` are decoded by Go, as for built-in kinds.
    decodes_bytes: bool,
    /// Top-level fields of the checked value to skip.
    skipped: &'static [&'static str],
}

#[derive(Debug, Default)]
struct Outcome {
    errors: Vec<Violation>,
    /// The messages of `errors`, of which the server reports each only once.
    messages: HashSet<Arc<str>>,
    passed: u32,
}

#[derive(Clone, Debug)]
struct Violation {
    message: Arc<str>,
    error: FieldError,
}

impl Violation {
    fn new(message: impl Into<Arc<str>>, error: FieldError) -> Violation {
        Violation {
            message: message.into(),
            error,
        }
    }
}

impl Outcome {
    fn passed(count: u32) -> Outcome {
        Outcome {
            passed: count,
            ..Outcome::default()
        }
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    fn add(&mut self, violation: Violation) {
        if self.messages.insert(violation.message.clone()) {
            self.errors.push(violation);
        }
    }

    fn merge(&mut self, other: Outcome) {
        let passed = self.passed + other.passed;
        // Errors pass through each level of an object.
        if self.is_valid() {
            *self = other;
        } else {
            other.errors.into_iter().for_each(|error| self.add(error));
        }
        self.passed = passed;
    }
}

impl From<Violation> for Outcome {
    fn from(violation: Violation) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.add(violation);
        outcome
    }
}

impl From<Option<Violation>> for Outcome {
    fn from(violation: Option<Violation>) -> Outcome {
        violation.map(Outcome::from).unwrap_or_default()
    }
}

impl<'u> Checker<'u> {
    pub(crate) fn new(base: Path, undecided: &'u mut Vec<Undecided>) -> Checker<'u> {
        Checker {
            base,
            undecided,
            decodes_bytes: false,
            skipped: &[],
        }
    }

    /// For values that Go decodes into a struct. `skipped` lists top-level fields to skip.
    pub(crate) fn of_builtin(
        base: Path,
        undecided: &'u mut Vec<Undecided>,
        skipped: &'static [&'static str],
    ) -> Checker<'u> {
        Checker {
            decodes_bytes: true,
            skipped,
            ..Checker::new(base, undecided)
        }
    }

    /// Returns the errors in a value, ignoring unchanged parts.
    pub(crate) fn find_errors(
        &mut self,
        value: &Value,
        schema: &Schema,
        correlated: Option<Correlated<'_>>,
    ) -> Vec<FieldError> {
        let outcome = self.check(value, schema, "", correlated);
        outcome
            .errors
            .into_iter()
            .map(|violation| violation.error)
            .collect()
    }

    fn check(
        &mut self,
        value: &Value,
        schema: &Schema,
        path: &str,
        correlated: Option<Correlated<'_>>,
    ) -> Outcome {
        let outcome = self.check_all(value, schema, path, correlated);
        // Ratcheting: tolerate errors in unchanged values.
        if !outcome.is_valid() && correlated.is_some_and(Correlated::is_same) {
            return Outcome::default();
        }
        outcome
    }

    fn check_all(
        &mut self,
        value: &Value,
        schema: &Schema,
        path: &str,
        correlated: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if value.is_null() {
            outcome.merge(self.check_type(value, schema, path));
            outcome.merge(self.check_enumeration(value, schema, path));
            return outcome;
        }
        if !types(schema).is_empty() || format(schema).is_some() {
            outcome.merge(self.check_type(value, schema, path));
            outcome.passed += 1;
        }
        outcome.merge(self.check_alternatives(value, schema, path));
        outcome.passed += 1;
        match value {
            Value::String(text) => {
                outcome.merge(self.check_text(text, schema, path));
                outcome.passed += 1;
                if let Some(format) = format(schema).filter(|format| is_text_format(format)) {
                    outcome.merge(self.check_format(text, format, path));
                    outcome.passed += 1;
                }
            }
            Value::Number(number) => {
                outcome.merge(self.check_number(number, schema, path));
                outcome.passed += 1;
            }
            Value::Array(items) => {
                outcome.merge(self.check_items(items, schema, path, correlated));
                outcome.passed += 1;
            }
            _ => {}
        }
        outcome.merge(self.check_enumeration(value, schema, path));
        outcome.passed += 1;
        if let Value::Object(fields) = value {
            outcome.merge(self.check_fields(fields, schema, path, correlated));
            outcome.passed += 1;
        }
        outcome.passed += 1;
        outcome
    }

    fn check_type(&self, value: &Value, schema: &Schema, path: &str) -> Outcome {
        let types = types(schema);
        let wanted = || types.join(",");
        if value.is_null() {
            let fits = types.is_empty() || schema.nullable;
            return match fits {
                true => Outcome::passed(1),
                false => self.wrong_type(path, &wanted(), "null").into(),
            };
        }
        let (found, found_format) = json_type(value);
        let is_whole =
            matches!(value, Value::Number(number) if number::is_json_integer(go::as_float(number)));
        let fits = types.contains(&found)
            || found == "number" && is_whole && types.contains(&"integer")
            || found == "integer" && types.contains(&"number");
        let is_text_or_list = value.is_string() || value.is_array();
        // The validator checks the format first, and is lenient with strings and lists.
        if let Some(format) = format(schema) {
            if !is_text_or_list && !fits && found_format != format {
                return self.wrong_type(path, format, found_format).into();
            }
            if is_text_or_list && !types.contains(&"number") && !types.contains(&"integer") {
                return Outcome::passed(1);
            }
        }
        match fits {
            true => Outcome::passed(1),
            false => self.wrong_type(path, &wanted(), found).into(),
        }
    }

    fn check_enumeration(&self, value: &Value, schema: &Schema, path: &str) -> Outcome {
        let allowed = &schema.enumeration;
        if allowed.is_empty() || allowed.iter().any(|allowed| converts_to(value, allowed)) {
            return Outcome::default();
        }
        let message = format!(
            "{path} in body should be one of {}",
            go::plain(&allowed.clone().into())
        );
        let error = FieldError::not_supported(&self.field(path), value, allowed);
        Violation::new(message, error).into()
    }

    fn check_items(
        &mut self,
        items: &[Value],
        schema: &Schema,
        path: &str,
        correlated: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::passed(1);
        if let Some(inner) = &schema.items {
            for (index, item) in items.iter().enumerate() {
                let correlated = correlated.and_then(|correlated| correlated.index(index));
                outcome.merge(self.check(item, inner, &format!("{path}[{index}]"), correlated));
            }
        }
        let count = items.len();
        if let Some(least) = schema.min_items.filter(|least| (count as u64) < *least) {
            let rule = format!("should have at least {least} items");
            outcome.add(self.invalid(path, &count.into(), &rule));
        }
        if let Some(most) = schema.max_items.filter(|most| count as u64 > *most) {
            let message = format!("{path} in body should have at most {most} items");
            let error = FieldError::too_many(&self.field(path), count, most);
            outcome.add(Violation::new(message, error));
        }
        outcome
    }

    fn check_fields(
        &mut self,
        fields: &Map<String, Value>,
        schema: &Schema,
        path: &str,
        correlated: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let count = fields.len();
        if let Some(least) = schema.min_properties.filter(|least| (count as u64) < *least) {
            let rule = format!("should have at least {least} properties");
            outcome.add(self.invalid(path, &count.into(), &rule));
        }
        if let Some(most) = schema.max_properties.filter(|most| count as u64 > *most) {
            let message = format!("{path} in body should have at most {most} properties");
            let error = FieldError::too_many(&self.field(path), count, most);
            outcome.add(Violation::new(message, error));
        }
        let correlate = |name: &str| {
            // The server never ratchets these at the root.
            let is_identity = path.is_empty() && matches!(name, "apiVersion" | "kind");
            correlated.filter(|_| !is_identity)?.key(name)
        };
        if let Some(inner) = &schema.additional_properties {
            let is_other = |name: &str| !schema.properties.contains_key(name);
            for (name, value) in fields.iter().filter(|(name, _)| is_other(name)) {
                outcome.merge(self.check(value, inner, &format!("{path}.{name}"), correlate(name)));
            }
        }
        for (name, inner) in &schema.properties {
            if path.is_empty() && self.skipped.contains(&&**name) {
                continue;
            }
            if let Some(value) = fields.get(&**name) {
                let below = match path.is_empty() {
                    true => name.to_string(),
                    false => format!("{path}.{name}"),
                };
                outcome.merge(self.check(value, inner, &below, correlate(name)));
            }
        }
        for name in schema
            .required
            .iter()
            .filter(|name| !fields.contains_key(&***name))
        {
            let below = format!("{path}.{name}");
            let message = format!("{below} in body is required");
            let error = FieldError::required(&self.field(&below), "");
            outcome.add(Violation::new(message, error));
        }
        outcome
    }

    /// Some messages begin with `.`, but fields never do.
    fn field(&self, path: &str) -> Path {
        match path.strip_prefix('.').unwrap_or(path) {
            "" => self.base.clone(),
            path => self.base.child(path),
        }
    }

    fn invalid(&self, path: &str, value: &Value, rule: &str) -> Violation {
        let message = format!("{path} in body {rule}");
        let error = FieldError::invalid(&self.field(path), value, &message);
        Violation::new(message, error)
    }

    fn wrong_type(&self, path: &str, wanted: &str, found: &str) -> Violation {
        let message = format!("{path} in body must be of type {wanted}: {}", go::quote(found));
        let error = FieldError::type_invalid(&self.field(path), found, &message);
        Violation::new(message, error)
    }

    /// A violation that the server reports without a field.
    fn general(&self, message: String) -> Violation {
        let error = FieldError::invalid(&self.base, &"".into(), &message);
        Violation::new(message, error)
    }

    fn leave_undecided(&mut self, path: &str, what: String) {
        let undecided = Undecided {
            field: self.field(path).to_string(),
            what,
        };
        if !self.undecided.contains(&undecided) {
            self.undecided.push(undecided);
        }
    }
}

/// Returns the allowed types. Empty means any.
fn types(schema: &Schema) -> Vec<&'static str> {
    match schema.schema_type {
        _ if schema.int_or_string => vec!["integer", "string"],
        Some(schema_type) => vec![schema_type.as_str()],
        None => Vec::new(),
    }
}

/// Returns the format, unless the server ignores it for values of this type.
fn format(schema: &Schema) -> Option<&str> {
    let format = schema.format.as_deref().filter(|format| !format.is_empty())?;
    let schema_type = schema.schema_type.filter(|_| !schema.int_or_string);
    let is_known = match schema_type {
        None | Some(SchemaType::String) => is_text_format(format),
        Some(schema_type @ (SchemaType::Integer | SchemaType::Number)) => {
            format_type(format) == Some(schema_type)
        }
        _ => false,
    };
    is_known.then_some(format)
}

/// Returns true if this is a known string format. The server ignores hyphens in format names.
fn is_text_format(format: &str) -> bool {
    known_format(format).is_some()
}

fn known_format(format: &str) -> Option<&'static str> {
    fn letters(format: &str) -> impl Iterator<Item = u8> {
        format.bytes().filter(|byte| *byte != b'-')
    }
    let mut known = FORMATS.iter().copied();
    known.find(|known| letters(known).eq(letters(format)) && format_type(known) == Some(SchemaType::String))
}

/// Type and format of a value, in the validator's terms.
fn json_type(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if go::integer(number).is_some() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Like Go, converts the value to the type of the allowed value before comparing.
fn converts_to(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(allowed)) => match go::integer(allowed) {
            Some(allowed) => go::integer(value).unwrap_or(go::as_float(value) as i64) == allowed,
            None => go::as_float(value) == go::as_float(allowed),
        },
        // Converting an integer to a string in Go yields the character with that code point.
        (Value::Number(value), Value::String(allowed)) => go::integer(value).is_some_and(|code| {
            let character = u32::try_from(code).ok().and_then(char::from_u32);
            *allowed == String::from(character.unwrap_or(char::REPLACEMENT_CHARACTER))
        }),
        (value, allowed) => value == allowed,
    }
}

/// Whether the server accepts a string, or `None` if unknown.
fn accepts(format: &str, text: &str) -> Option<bool> {
    accepts_format(known_format(format)?, text)
}
