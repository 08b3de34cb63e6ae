//! Runs the CEL rules of an object, outermost first.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_cel::{Budget, RuleSet, Violation, ViolationKind};
use rbuilder_schema::{Reason, Schema, SchemaType};
use serde_json::{Map, Value};

use crate::correlate::{Correlated, find_item};
use crate::error::FieldError;
use crate::path::Path;
use crate::verdict::Undecided;

/// The compiled rules of a schema and its descendants. Schemas without any rules are omitted.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Needed by rules to read the value.
    schema: Schema,
    own: RuleSet,
    items: Option<Box<Rules>>,
    entries: Option<Box<Rules>>,
    fields: BTreeMap<String, Rules>,
}

/// The old value used for ratcheting. Falls back to the nearest correlatable ancestor if the value
/// itself isn't correlatable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ratchet<'a> {
    current: Option<Correlated<'a>>,
    nearest: Option<Correlated<'a>>,
}

impl<'a> Ratchet<'a> {
    pub(crate) fn new(current: Option<Correlated<'a>>) -> Ratchet<'a> {
        Ratchet {
            current,
            nearest: None,
        }
    }

    fn key(self, name: &str) -> Ratchet<'a> {
        let Some(current) = self.current else {
            return self;
        };
        // The server never ratchets these at the root.
        if self.nearest.is_none() && matches!(name, "apiVersion" | "kind") {
            return Ratchet::default();
        }
        Ratchet {
            current: current.key(name),
            nearest: Some(current),
        }
    }

    fn index(self, index: usize) -> Ratchet<'a> {
        let Some(current) = self.current else {
            return self;
        };
        Ratchet {
            current: current.index(index),
            nearest: Some(current),
        }
    }

    /// Returns true if errors are downgraded to warnings because the value is unchanged.
    fn keeps_errors(self) -> bool {
        self.current.or(self.nearest).is_some_and(Correlated::is_same)
    }
}

#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<FieldError>,
    pub(crate) warnings: Vec<String>,
    pub(crate) undecided: Vec<Undecided>,
    budget: Budget,
}

impl Rules {
    pub(crate) fn compile(schema: &Schema) -> Option<Rules> {
        Rules::compile_at(schema, true)
    }

    // The server rejects rules in `allOf` and similar keywords, so skip those.
    fn compile_at(schema: &Schema, is_object: bool) -> Option<Rules> {
        let below = |schema: &Schema| Rules::compile_at(schema, schema.embedded_resource);
        let inner = |schema: &Option<Arc<Schema>>| schema.as_deref().and_then(below).map(Box::new);
        let fields = schema.properties.iter();
        let fields = fields.filter_map(|(name, schema)| Some((name.to_string(), below(schema)?)));
        let rules = Rules {
            own: RuleSet::compile(&schema.validations, schema, is_object),
            items: inner(&schema.items),
            entries: inner(&schema.additional_properties),
            fields: fields.collect(),
            schema: schema.clone(),
        };
        let is_empty = rules.own.is_empty()
            && rules.items.is_none()
            && rules.entries.is_none()
            && rules.fields.is_empty();
        (!is_empty).then_some(rules)
    }

    /// Runs all rules. Given an old object, also runs transition rules, and downgrades errors in
    /// unchanged parts to warnings.
    pub(crate) fn run(&self, object: &Value, old: Option<&Value>, ratchet: Ratchet<'_>) -> Findings {
        let mut findings = Findings {
            errors: Vec::new(),
            warnings: Vec::new(),
            undecided: Vec::new(),
            budget: Budget::per_object(),
        };
        self.visit(object, old, &Path::root(), ratchet, &mut findings);
        findings
    }

    fn visit(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &Path,
        ratchet: Ratchet<'_>,
        findings: &mut Findings,
    ) {
        if value.is_null() || findings.budget.is_exceeded() {
            return;
        }
        let violations = self.own.evaluate(value, old, &self.schema, &mut findings.budget);
        for violation in violations {
            self.report(&violation, value, path, ratchet, findings);
        }
        match value {
            Value::Array(items) => self.visit_items(items, old, path, ratchet, findings),
            Value::Object(fields) => self.visit_fields(fields, old, path, ratchet, findings),
            _ => {}
        }
    }

    fn visit_items(
        &self,
        items: &[Value],
        old: Option<&Value>,
        path: &Path,
        ratchet: Ratchet<'_>,
        findings: &mut Findings,
    ) {
        let Some(rules) = &self.items else { return };
        let old = old.and_then(Value::as_array);
        for (index, item) in items.iter().enumerate() {
            let old = old.and_then(|old| find_item(&self.schema, old, item));
            rules.visit(item, old, &path.index(index), ratchet.index(index), findings);
        }
    }

    fn visit_fields(
        &self,
        fields: &Map<String, Value>,
        old: Option<&Value>,
        path: &Path,
        ratchet: Ratchet<'_>,
        findings: &mut Findings,
    ) {
        let old = |name: &str| old.and_then(|old| old.get(name));
        for (name, value) in fields {
            if let Some(rules) = &self.entries {
                rules.visit(value, old(name), &path.key(name), ratchet.key(name), findings);
            }
            if let Some(rules) = self.fields.get(name) {
                rules.visit(value, old(name), &path.child(name), ratchet.key(name), findings);
            }
        }
    }

    fn report(
        &self,
        violation: &Violation,
        value: &Value,
        path: &Path,
        ratchet: Ratchet<'_>,
        findings: &mut Findings,
    ) {
        let path = match &violation.field {
            Some(field) => path.child(field),
            None => path.clone(),
        };
        let error = match violation.kind {
            ViolationKind::Fails => self.describe_failure(violation, value, &path),
            ViolationKind::Errors => {
                let shown = self.schema.schema_type.map_or("", SchemaType::as_str);
                FieldError::invalid(&path, &shown.into(), &violation.detail)
            }
            ViolationKind::Unsupported => {
                let what = format!("a rule: {}", violation.detail);
                findings.undecided.push(Undecided {
                    field: path.to_string(),
                    what,
                });
                return;
            }
        };
        match violation.ratchets && ratchet.keeps_errors() {
            true => findings.warnings.push(error.to_string()),
            false => findings.errors.push(error),
        }
    }

    fn describe_failure(&self, violation: &Violation, value: &Value, path: &Path) -> FieldError {
        // The server omits objects and lists, which may be large.
        let is_shown = !matches!(
            self.schema.schema_type,
            Some(SchemaType::Object | SchemaType::Array)
        );
        let shown = is_shown.then_some(value);
        let detail = &violation.detail;
        match violation.reason {
            Reason::FieldValueRequired => FieldError::required(path, detail),
            Reason::FieldValueForbidden => FieldError::forbidden(path, detail),
            Reason::FieldValueDuplicate => FieldError::duplicate(path, shown),
            Reason::FieldValueInvalid => match shown {
                Some(value) => FieldError::invalid(path, value, detail),
                None => FieldError::invalid_part(path, detail),
            },
        }
    }
}
