//! Records how kube-apiserver evaluates rules.
//!
//! The cases are in crates/cel/tests/evaluated/cases.json. Each group has a schema, a value and a
//! number of rules. A rule can be a template, in which we replace `{class}` with each entry of that
//! class. We create CRDs with these rules, send the value to a real API server (as a dry run), and
//! record what it says about each rule. The tests of `rbuilder-cel` are compared with this record,
//! so they don't need a server.
//!
//! There are three kinds of cases in a group:
//!
//! - `prints` are expressions. We record their value, formatted as a string.
//! - `rules` are conditions. We record whether they are true.
//! - `full` are complete rules, with messages and reasons. We record the complete error.
//!
//! If the evaluation fails, the error is recorded with a leading `!`. There is no record for a rule
//! that cannot be in a CRD because the API server rejects it. If a group has an `old` value, it is
//! an update.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::server::{Cause, Client, causes};
use crate::control_plane::ControlPlane;
use crate::run::wait_until;
use crate::value::text;
use crate::{assets, repo};

const CASES: &str = "crates/cel/tests/evaluated/cases.json";
pub(super) const RECORDED: &str = "crates/cel/tests/evaluated/recorded.jsonl";

/// Maximum number of rules in a CRD. With more than that, we'd get close to the total cost limit.
const RULES: usize = 150;
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "cel.example.com";

#[derive(Deserialize)]
struct Cases {
    classes: BTreeMap<String, Vec<String>>,
    groups: Vec<Group>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    schema: Value,
    value: Value,
    old: Option<Value>,
    #[serde(default)]
    prints: Vec<String>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    full: Vec<Value>,
}

/// A case, and the API server's response.
struct Case {
    /// An expression or a complete rule.
    source: Value,
    kind: Kind,
    says: Option<Value>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Print,
    Rule,
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

    fn field(&self, index: usize) -> String {
        match self.kind {
            Kind::Full => format!("v{index}"),
            _ => "value".to_owned(),
        }
    }

    /// Reads an error. Returns `None` if it's not for this case.
    fn read(&self, index: usize, cause: &Cause) -> Option<Value> {
        let field = format!("spec.{}", self.field(index));
        let relative = cause.field.strip_prefix(&field)?;
        if !relative.is_empty() && !relative.starts_with(['.', '[']) {
            return None;
        }
        let message = cause.message.as_str();
        if self.kind == Kind::Full {
            return Some(json!({ "field": relative, "message": message }));
        }
        let rule = self.rule();
        let rule = text(&rule, "/rule");
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

/// Evaluates all of the cases. Returns the record, which consists of one line per group and one
/// line per case.
pub(super) fn record_evaluation() -> Result<String> {
    let cases: Cases = serde_json::from_str(&fs_err::read_to_string(repo::root().join(CASES))?)?;
    let servers = ControlPlane::start_servers(&assets::ensure_assets()?)?;
    let client = Client::new(servers.kubeconfig())?;
    let mut parts = Vec::new();
    for group in &cases.groups {
        let mut all = expand_group(group, &cases.classes)?;
        while !all.is_empty() {
            let rest = all.split_off(all.len().min(RULES));
            let number = parts.len();
            parts.push(Part {
                client: &client,
                number,
                group,
                cases: std::mem::replace(&mut all, rest),
            });
        }
    }
    // It takes seconds until a new resource is served, so create all of them before we wait.
    for part in &mut parts {
        part.install()?;
    }
    for part in &mut parts {
        part.evaluate()?;
    }
    let mut lines = Vec::new();
    for part in parts {
        let header = json!({ "group": part.group.name }).to_string();
        if !lines.contains(&header) {
            lines.push(header);
        }
        // A rule that cannot be in a CRD isn't evaluated.
        let is_accepted = |case: &Case| case.says != Some(json!("rejected"));
        for case in part.cases.into_iter().filter(is_accepted) {
            let says = case.says.unwrap_or(match case.kind {
                Kind::Rule => json!(true),
                Kind::Print | Kind::Full => Value::Null,
            });
            lines.push(json!([case.source, says]).to_string());
        }
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

fn expand_group(group: &Group, classes: &BTreeMap<String, Vec<String>>) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut seen = BTreeSet::new();
    for (templates, kind) in [(&group.prints, Kind::Print), (&group.rules, Kind::Rule)] {
        for template in templates {
            for expression in expand(template, classes) {
                // Skip duplicates, since several templates can result in the same expression.
                if seen.insert((expression.clone(), kind == Kind::Print)) {
                    cases.push((Value::String(expression), kind));
                }
            }
        }
    }
    cases.extend(group.full.iter().map(|rule| (rule.clone(), Kind::Full)));
    ensure!(!cases.is_empty(), "the group {} has no cases", group.name);
    let case = |(source, kind)| Case {
        source,
        kind,
        says: None,
    };
    Ok(cases.into_iter().map(case).collect())
}

/// Replaces the first class in a template, and calls itself for the rest.
fn expand(template: &str, classes: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let found = template.match_indices('{').find_map(|(start, _)| {
        let end = start + template[start..].find('}')?;
        let texts = classes.get(&template[start + 1..end])?;
        Some((start, end, texts))
    });
    let Some((start, end, texts)) = found else {
        return vec![template.to_owned()];
    };
    let (before, after) = (&template[..start], &template[end + 1..]);
    let mut expanded = Vec::new();
    for rest in expand(after, classes) {
        expanded.extend(texts.iter().map(|text| format!("{before}{text}{rest}")));
    }
    expanded
}

/// Part of a group, and the CRD with the rules of its cases.
struct Part<'c> {
    client: &'c Client,
    number: usize,
    group: &'c Group,
    cases: Vec<Case>,
}

impl Part<'_> {
    fn objects(&self) -> String {
        format!("/apis/{GROUP}/v1/namespaces/default/things{}", self.number)
    }

    fn crd(&self) -> String {
        format!("{CRDS}/things{}.{GROUP}", self.number)
    }

    /// Creates the CRD. If this is an update there are no rules at first, since the old value might
    /// not satisfy them.
    fn install(&mut self) -> Result<()> {
        match self.group.old {
            None => self.install_rules(),
            Some(_) => {
                self.client.send("POST", CRDS, &self.definition(false))?;
                Ok(())
            }
        }
    }

    /// Adds the rules to the CRD, but not the ones that the API server rejects.
    fn install_rules(&mut self) -> Result<()> {
        loop {
            let mut definition = self.definition(true);
            let response = match self.group.old {
                None => self.client.send("POST", CRDS, &definition)?,
                Some(_) => {
                    let version = self.version_of(&self.crd())?;
                    definition["metadata"]["resourceVersion"] = json!(version);
                    self.client.send("PUT", &self.crd(), &definition)?
                }
            };
            match causes(&response).as_slice() {
                [] if response["spec"].is_object() => return Ok(()),
                errors => reject(&mut self.cases, errors, &response)?,
            }
        }
    }

    /// Sends the value and records the response for each of the cases.
    fn evaluate(&mut self) -> Result<()> {
        let mut version = None;
        if let Some(old) = &self.group.old {
            let old = self.object(old);
            wait(|| {
                let response = self.client.send("POST", &self.objects(), &old)?;
                Ok(response["spec"].is_object())
            })?;
            version = Some(self.version_of(&format!("{}/a", self.objects()))?);
            self.install_rules()?;
        }
        // If we get an error for `ready`, we know that the server uses the new rules.
        let mut not_ready = self.object(&Value::Null);
        not_ready["spec"] = json!({ "ready": false });
        not_ready["metadata"]["name"] = json!("not-ready");
        let create = format!("{}?dryRun=All", self.objects());
        wait(|| {
            let response = self.client.send("POST", &create, &not_ready)?;
            Ok(causes(&response).iter().any(|cause| cause.field == "spec.ready"))
        })?;
        // Use an object per rule for complete rules. Otherwise, a rule that is too expensive would
        // make the server skip all other rules of the object.
        let size = match self.group.full.is_empty() {
            true => self.cases.len(),
            false => 1,
        };
        for start in (0..self.cases.len()).step_by(size) {
            let range = start..start + size;
            let mut new = self.object(&self.group.value);
            if let Some(spec) = new["spec"].as_object_mut() {
                let cases = self.cases[range.clone()].iter().zip(start..);
                let fields: Vec<String> = cases.map(|(case, index)| case.field(index)).collect();
                spec.retain(|name, _| fields.contains(name));
            }
            let (method, path) = match &version {
                None => ("POST", create.clone()),
                Some(version) => {
                    new["metadata"]["resourceVersion"] = json!(version);
                    ("PUT", format!("{}/a?dryRun=All", self.objects()))
                }
            };
            // If the server is busy, the error could be about something else. Retry in that case.
            let mut response = Value::Null;
            wait(|| {
                response = self.client.send(method, &path, &new)?;
                Ok(response["spec"].is_object() || response["reason"] == "Invalid")
            })?;
            assign(self.group, &mut self.cases[range], start, &causes(&response))?;
        }
        Ok(())
    }

    fn version_of(&self, path: &str) -> Result<String> {
        let object = self.client.send("GET", path, &Value::Null)?;
        Ok(text(&object, "/metadata/resourceVersion").to_owned())
    }

    /// Returns the CRD. `with_rules` determines if it contains the rules.
    fn definition(&self, with_rules: bool) -> Value {
        let mut properties = Map::new();
        properties.insert("ready".to_owned(), json!({ "type": "boolean" }));
        if with_rules {
            properties["ready"]["x-kubernetes-validations"] = json!([{ "rule": "self" }]);
        }
        for (index, case) in self.cases.iter().enumerate() {
            let property = properties
                .entry(case.field(index))
                .or_insert_with(|| self.group.schema.clone());
            if with_rules && case.says.is_none() {
                let rules = &mut property["x-kubernetes-validations"];
                match rules.as_array_mut() {
                    Some(rules) => rules.push(case.rule()),
                    None => *rules = json!([case.rule()]),
                }
            }
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("things{}.{GROUP}", self.number) },
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {
                    "kind": format!("Thing{}", self.number),
                    "plural": format!("things{}", self.number),
                },
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

    fn object(&self, value: &Value) -> Value {
        let fields = self.cases.iter().enumerate();
        let spec: Map<String, Value> = fields
            .map(|(index, case)| (case.field(index), value.clone()))
            .collect();
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": format!("Thing{}", self.number),
            "metadata": { "name": "a", "namespace": "default" },
            "spec": spec,
        })
    }
}

/// Finds the case for each error. This relies on the fact that we get exactly one error for each
/// printed expression, and that those are in order.
fn assign(group: &Group, cases: &mut [Case], first: usize, errors: &[Cause]) -> Result<()> {
    let is_print = |index: &usize| cases[*index].kind == Kind::Print && cases[*index].says.is_none();
    let prints: Vec<usize> = (0..cases.len()).filter(is_print).collect();
    let mut prints = prints.into_iter();
    for error in errors {
        let print = prints.as_slice().first().copied();
        let own = print.and_then(|index| Some((index, cases[index].read(first + index, error)?)));
        let found = match own {
            Some(found) => {
                prints.next();
                Some(found)
            }
            None => (0..cases.len())
                .filter(|index| cases[*index].kind != Kind::Print)
                .find_map(|index| Some((index, cases[index].read(first + index, error)?))),
        };
        match found {
            Some((index, says)) => cases[index].says = Some(says),
            None => bail!("{}: no case for {}: {}", group.name, error.field, error.message),
        }
    }
    ensure!(
        prints.next().is_none(),
        "{}: an expression has no error",
        group.name
    );
    Ok(())
}

fn wait(is_done: impl FnMut() -> Result<bool>) -> Result<()> {
    wait_until(
        Duration::from_secs(60),
        "the API server did not load a CRD",
        is_done,
    )
}

/// Marks the rules rejected by the API server.
fn reject(cases: &mut [Case], errors: &[Cause], response: &Value) -> Result<()> {
    // The errors refer to rules by their index in the request, which only contained the cases that
    // have no record yet.
    let sent: Vec<usize> = (0..cases.len())
        .filter(|index| cases[*index].says.is_none())
        .collect();
    let mut rejected = BTreeSet::new();
    for error in errors {
        let number = |name: &str| -> Option<usize> {
            let (_, after) = error.field.rsplit_once(name)?;
            after.split(']').next()?.parse().ok()
        };
        let position = number("x-kubernetes-validations[").and_then(|position| sent.get(position).copied());
        rejected.extend(number("properties[v").or(position));
    }
    ensure!(!rejected.is_empty(), "the API server rejects a CRD: {response}");
    for index in rejected {
        cases[index].says = Some(json!("rejected"));
    }
    Ok(())
}
