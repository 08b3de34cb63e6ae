//! Sends many rules and values to a real API server at once, as a CRD and its objects.
//!
//! Requests take most of the time. So a CRD has many rules, and an object has a value for each of
//! them: the API server reports every rule that an object violates.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::server::{Cause, Client, causes};
use crate::run::wait_until;
use crate::value::text;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "cel.example.com";
/// Maximum number of rules in a CRD. With more than that, we'd get close to the total cost limit.
const RULES: usize = 150;

/// A rule, and the values that it is evaluated for.
pub(super) struct Case {
    /// An expression or a complete rule.
    pub(super) source: Value,
    pub(super) kind: Kind,
    /// The schema of the field.
    pub(super) schema: Value,
    /// The field of `spec` that has the rule. Cases with equal schemas and writes can share one.
    pub(super) field: String,
    pub(super) writes: Vec<Write>,
    /// Whether the API server refuses a CRD with this rule.
    pub(super) is_rejected: bool,
}

/// A value, and what the API server says about it.
pub(super) struct Write {
    /// The value to replace. If there is none, the object is created.
    pub(super) old: Option<Value>,
    pub(super) new: Value,
    pub(super) says: Value,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// An expression to format as a string.
    Print,
    /// A condition: either true, false or an error.
    Rule,
    /// A rule with messages and reasons. The result is the complete error.
    Full,
}

impl Case {
    fn rule(&self) -> Value {
        match self.kind {
            Kind::Print => {
                let text = format!("'%s'.format([{}])", self.expression());
                // This is always false, so we get an error for every expression.
                json!({ "rule": format!("{text} == 'never'"), "messageExpression": text })
            }
            Kind::Rule => json!({ "rule": self.expression() }),
            Kind::Full => self.source.clone(),
        }
    }

    fn expression(&self) -> &str {
        self.source.as_str().unwrap_or_default()
    }

    /// Returns the result if there is no error.
    fn accepted(&self) -> Value {
        match self.kind {
            Kind::Rule => json!(true),
            Kind::Print | Kind::Full => Value::Null,
        }
    }

    /// Reads an error. Returns `None` if it's not for this case.
    fn read(&self, cause: &Cause) -> Option<Value> {
        let field = format!("spec.{}", self.field);
        let relative = cause.field.strip_prefix(&field)?;
        if !relative.is_empty() && !relative.starts_with(['.', '[']) {
            return None;
        }
        let message = cause.message.as_str();
        if self.kind == Kind::Full {
            return Some(json!({ "field": relative, "message": message }));
        }
        let rule = self.rule();
        let rule = text(&rule, "/rule").trim();
        let error = message
            .strip_suffix(&format!(" evaluating rule: {rule}"))
            .or_else(|| message.strip_suffix(&format!(" for rule: {rule}")));
        if let Some(error) = error {
            // The error contains the name of the schema's type as the value.
            let text = error.split_once("\": ").map_or(error, |(_, text)| text);
            return Some(json!(format!("!{text}")));
        }
        let is_own = message.ends_with(&format!("failed rule: {rule}"));
        match self.kind {
            // The API server doesn't use messages that are empty or have multiple lines.
            Kind::Print if is_own => Some(json!("")),
            Kind::Print => Some(json!(message.strip_prefix("Invalid value: ").unwrap_or(message))),
            _ => is_own.then_some(Value::Bool(false)),
        }
    }
}

/// Cases whose rules are in the same CRD.
pub(super) struct Batch {
    /// The kind and the resource.
    pub(super) name: String,
    pub(super) cases: Vec<Case>,
    /// Whether each case needs an object of its own. If a rule is too expensive, the API server
    /// skips all other rules of the object.
    pub(super) has_costly_rules: bool,
}

/// Splits cases into parts that fit into a batch.
pub(super) fn split(mut cases: Vec<Case>) -> Vec<Vec<Case>> {
    let mut parts = Vec::new();
    while !cases.is_empty() {
        let rest = cases.split_off(cases.len().min(RULES));
        parts.push(std::mem::replace(&mut cases, rest));
    }
    parts
}

/// Sends all writes of all cases, and stores what the API server says about each.
pub(super) fn evaluate(client: &Client, batches: &mut [Batch]) -> Result<()> {
    // It takes seconds until the server uses a CRD, so write all of them before we wait.
    let mut installed = Vec::new();
    for batch in batches {
        installed.push(Installed::create(client, batch)?);
    }
    for batch in &mut installed {
        batch.store_old_values()?;
    }
    for batch in &mut installed {
        batch.send_writes()?;
    }
    Ok(())
}

/// A batch with its CRD in the API server.
struct Installed<'b> {
    client: &'b Client,
    batch: &'b mut Batch,
    /// The versions of the stored objects. If there is none, the write creates an object.
    versions: Vec<Option<String>>,
}

impl<'b> Installed<'b> {
    /// Creates the CRD. If there are updates it has no rules at first, since the old values might
    /// not satisfy them.
    fn create(client: &'b Client, batch: &'b mut Batch) -> Result<Self> {
        let writes = batch.cases.iter().map(|case| case.writes.len()).max();
        let mut installed = Installed {
            client,
            batch,
            versions: vec![None; writes.unwrap_or_default()],
        };
        match installed.has_updates() {
            true => {
                client.send("POST", CRDS, &installed.definition(false))?;
            }
            false => installed.install_rules()?,
        }
        Ok(installed)
    }

    fn has_updates(&self) -> bool {
        let mut writes = self.batch.cases.iter().flat_map(|case| &case.writes);
        writes.any(|write| write.old.is_some())
    }

    /// Creates the objects to update, and adds the rules to the CRD.
    fn store_old_values(&mut self) -> Result<()> {
        if !self.has_updates() {
            return Ok(());
        }
        for number in 0..self.versions.len() {
            let old = self.spec(0..self.batch.cases.len(), number, |write| write.old.as_ref());
            if old.is_empty() {
                continue;
            }
            let object = self.object(&format!("a{number}"), old);
            let stored = self.send_until("POST", &self.objects(), &object, |response| {
                response["spec"].is_object()
            })?;
            self.versions[number] = Some(version_of(&stored));
        }
        self.install_rules()
    }

    /// Writes the CRD with all rules, but not the ones that the API server rejects.
    fn install_rules(&mut self) -> Result<()> {
        let path = format!("{CRDS}/{}.{GROUP}", self.batch.name);
        loop {
            let mut definition = self.definition(true);
            let response = match self.has_updates() {
                false => self.client.send("POST", CRDS, &definition)?,
                true => {
                    let current = self.client.send("GET", &path, &Value::Null)?;
                    definition["metadata"]["resourceVersion"] = json!(version_of(&current));
                    self.client.send("PUT", &path, &definition)?
                }
            };
            match causes(&response).as_slice() {
                [] if response["spec"].is_object() => return Ok(()),
                errors => reject(&mut self.batch.cases, errors, &response)?,
            }
        }
    }

    /// Waits for the rules, sends the new values and stores the response for each of the cases.
    fn send_writes(&mut self) -> Result<()> {
        let create = format!("{}?dryRun=All", self.objects());
        // If we get an error for `ready`, we know that the server uses the new rules.
        let not_ready = self.object("not-ready", Map::from_iter([("ready".to_owned(), json!(false))]));
        self.send_until("POST", &create, &not_ready, |response| {
            causes(response).iter().any(|cause| cause.field == "spec.ready")
        })?;
        let count = self.batch.cases.len();
        let size = if self.batch.has_costly_rules { 1 } else { count };
        for number in 0..self.versions.len() {
            for start in (0..count).step_by(size) {
                let range = start..start + size;
                let name = format!("a{number}");
                let mut object =
                    self.object(&name, self.spec(range.clone(), number, |write| Some(&write.new)));
                let (method, path) = match &self.versions[number] {
                    None => ("POST", create.clone()),
                    Some(version) => {
                        object["metadata"]["resourceVersion"] = json!(version);
                        ("PUT", format!("{}/{name}?dryRun=All", self.objects()))
                    }
                };
                // If the server is busy, the error could be about something else. Retry in that case.
                let response = self.send_until(method, &path, &object, |response| {
                    response["spec"].is_object() || response["reason"] == "Invalid"
                })?;
                assign(&mut self.batch.cases[range], number, &causes(&response))?;
            }
        }
        Ok(())
    }

    fn objects(&self) -> String {
        format!("/apis/{GROUP}/v1/namespaces/default/{}", self.batch.name)
    }

    /// Returns the CRD. `with_rules` determines if it contains the rules.
    fn definition(&self, with_rules: bool) -> Value {
        let mut properties = Map::new();
        properties.insert("ready".to_owned(), json!({ "type": "boolean" }));
        if with_rules {
            properties["ready"]["x-kubernetes-validations"] = json!([{ "rule": "self" }]);
        }
        for case in &self.batch.cases {
            let property = properties
                .entry(&case.field)
                .or_insert_with(|| case.schema.clone());
            if with_rules && !case.is_rejected {
                let rules = &mut property["x-kubernetes-validations"];
                match rules.as_array_mut() {
                    Some(rules) => rules.push(case.rule()),
                    None => *rules = json!([case.rule()]),
                }
            }
        }
        let name = &self.batch.name;
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{name}.{GROUP}") },
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": { "kind": name, "plural": name },
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": { "openAPIV3Schema": {
                        "type": "object",
                        "properties": { "spec": { "type": "object", "properties": properties } },
                    }},
                }],
            },
        })
    }

    /// Returns a `spec` with a value for each of the cases, taken from the write with this number.
    fn spec(
        &self,
        cases: Range<usize>,
        number: usize,
        value: impl Fn(&Write) -> Option<&Value>,
    ) -> Map<String, Value> {
        let cases = self.batch.cases[cases].iter();
        cases
            .filter_map(|case| {
                let value = value(case.writes.get(number)?)?;
                Some((case.field.clone(), value.clone()))
            })
            .collect()
    }

    fn object(&self, name: &str, spec: Map<String, Value>) -> Value {
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": self.batch.name,
            "metadata": { "name": name, "namespace": "default" },
            "spec": spec,
        })
    }

    /// Repeats a request until the response is as expected, since a new CRD is not served at once.
    fn send_until(
        &self,
        method: &str,
        path: &str,
        object: &Value,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut response = Value::Null;
        let sent = wait_until(Duration::from_secs(60), "there was no such response", || {
            response = self.client.send(method, path, object)?;
            Ok(is_expected(&response))
        });
        sent.with_context(|| format!("{method} {path}: {object}: {response}"))?;
        Ok(response)
    }
}

fn version_of(object: &Value) -> String {
    text(object, "/metadata/resourceVersion").to_owned()
}

/// Finds the case for each error. This relies on the fact that we get exactly one error for each
/// printed expression, and that those are in order.
fn assign(cases: &mut [Case], number: usize, errors: &[Cause]) -> Result<()> {
    for case in &mut *cases {
        let accepted = case.accepted();
        if let Some(write) = case.writes.get_mut(number) {
            write.says = accepted;
        }
    }
    let is_print = |index: &usize| cases[*index].kind == Kind::Print && !cases[*index].is_rejected;
    let prints: Vec<usize> = (0..cases.len()).filter(is_print).collect();
    let mut prints = prints.into_iter();
    for error in errors {
        let print = prints.as_slice().first().copied();
        let own = print.and_then(|index| Some((index, cases[index].read(error)?)));
        let found = match own {
            Some(found) => {
                prints.next();
                Some(found)
            }
            None => (0..cases.len())
                .filter(|index| cases[*index].kind != Kind::Print)
                .find_map(|index| Some((index, cases[index].read(error)?))),
        };
        match found {
            Some((index, says)) => cases[index].writes[number].says = says,
            None => bail!("no case for {}: {}", error.field, error.message),
        }
    }
    ensure!(prints.next().is_none(), "an expression has no error");
    Ok(())
}

/// Marks the rules rejected by the API server.
fn reject(cases: &mut [Case], errors: &[Cause], response: &Value) -> Result<()> {
    let mut rejected = BTreeSet::new();
    for error in errors {
        let after = |name: &str| error.field.rsplit_once(name)?.1.split(']').next();
        let Some(field) = after("properties[spec].properties[") else {
            continue;
        };
        // The number of a rule only counts those of its field in the request.
        let sent: Vec<usize> = (0..cases.len())
            .filter(|index| cases[*index].field == field && !cases[*index].is_rejected)
            .collect();
        match sent.as_slice() {
            [index] => rejected.insert(*index),
            sent => {
                let number =
                    after("x-kubernetes-validations[").and_then(|number| number.parse::<usize>().ok());
                number
                    .and_then(|number| sent.get(number))
                    .is_some_and(|index| rejected.insert(*index))
            }
        };
    }
    ensure!(!rejected.is_empty(), "the API server rejects a CRD: {response}");
    for index in rejected {
        cases[index].is_rejected = true;
    }
    Ok(())
}
