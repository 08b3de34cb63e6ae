//! Records the results of evaluating rules in kube-apiserver.
//!
//! crates/cel/tests/evaluated/cases.json contains groups of rules for a schema and a value. Rules
//! are templates: `{class}` is replaced with each entry of the class. This task adds the rules of a
//! group to CRDs, sends the value to a real API server as a dry run, and records the response for
//! each rule. The tests of `rbuilder-cel` compare their results with the record and do not need a
//! server.
//!
//! A group contains three kinds of cases:
//!
//! - `prints`: expressions. The record is the value formatted as a string.
//! - `rules`: conditions. The record is whether they are true.
//! - `full`: complete rules, with messages and reasons. The record is the complete error.
//!
//! Evaluation errors are recorded with a leading `!`. Rules that the API server rejects in a CRD
//! are not recorded. Groups with an `old` value are updates.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::server::{Cause, Client, causes};
use crate::control_plane::ControlPlane;
use crate::{assets, repo};

const CASES: &str = "crates/cel/tests/evaluated/cases.json";
pub(super) const RECORDED: &str = "crates/cel/tests/evaluated/recorded.jsonl";

/// The maximum number of rules in a CRD, which keeps it below the total cost limit.
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

/// A case and the API server's response.
struct Case {
    /// The expression, or the complete rule.
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
    /// Returns the rule for the CRD.
    fn rule(&self) -> Value {
        match self.kind {
            Kind::Print => {
                let text = format!("'%s'.format([{}])", self.expression());
                // The comparison is always false, so every expression causes an error.
                json!({ "rule": format!("{text} == 'never'"), "messageExpression": text })
            }
            Kind::Rule => json!({ "rule": self.expression() }),
            Kind::Full => self.source.clone(),
        }
    }

    fn expression(&self) -> &str {
        self.source.as_str().unwrap_or_default()
    }

    /// Returns the field to which the rule is attached.
    fn field(&self, index: usize) -> String {
        match self.kind {
            Kind::Full => format!("v{index}"),
            _ => "value".to_owned(),
        }
    }

    /// Parses an error. Returns `None` if it belongs to a different case.
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
        let rule = rule["rule"].as_str().unwrap_or_default();
        let error = message
            .strip_suffix(&format!(" evaluating rule: {rule}"))
            .or_else(|| message.strip_suffix(&format!(" for rule: {rule}")));
        if let Some(error) = error {
            // The error's value is the schema type's name.
            let text = error.split_once("\": ").map_or(error, |(_, text)| text);
            return Some(json!(format!("!{text}")));
        }
        let is_own = message.ends_with(&format!("failed rule: {rule}"));
        match self.kind {
            // An empty or multi-line string is not used as a message.
            Kind::Print if is_own => Some(json!("")),
            Kind::Print => Some(json!(message.strip_prefix("Invalid value: ").unwrap_or(message))),
            _ => is_own.then_some(Value::Bool(false)),
        }
    }
}

/// Evaluates all cases, and returns the record: one line per group, and one for each of its cases.
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
    // The API server takes seconds to serve a new resource, but can do so for all of them at once.
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
        // Rules that the API server rejects are not evaluated.
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
            for text in expand(template, classes) {
                // Two templates may expand to the same expression.
                if seen.insert((text.clone(), kind == Kind::Print)) {
                    cases.push((Value::String(text), kind));
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

/// Expands the first class in a template, then recursively the others.
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

/// Some of the cases in a group, and the CRD that contains their rules.
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

    /// Installs the CRD. For updates it has no rules yet, because the old value may violate them.
    fn install(&mut self) -> Result<()> {
        match self.group.old {
            None => self.install_rules(),
            Some(_) => {
                self.client.send("POST", CRDS, &self.definition(false))?;
                Ok(())
            }
        }
    }

    /// Installs the rules, except for those that the API server rejects.
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

    /// Sends the value, and records the API server's response for each case.
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
        // An error for `ready` shows that the server has loaded the rules.
        let mut not_ready = self.object(&Value::Null);
        not_ready["spec"] = json!({ "ready": false });
        not_ready["metadata"]["name"] = json!("not-ready");
        let create = format!("{}?dryRun=All", self.objects());
        wait(|| {
            let response = self.client.send("POST", &create, &not_ready)?;
            Ok(causes(&response).iter().any(|cause| cause.field == "spec.ready"))
        })?;
        // If a rule is too expensive, the server skips the object's other rules, so complete rules
        // get separate objects.
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
            // A busy server may return an unrelated error.
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
        let version = object["metadata"]["resourceVersion"].as_str();
        Ok(version.unwrap_or_default().to_owned())
    }

    /// Returns the CRD, with or without rules.
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

    /// Returns an object that contains a value in the field of each case.
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

/// Assigns the errors to cases. Each printed expression has exactly one error, and these errors are
/// in order.
fn assign(group: &Group, cases: &mut [Case], first: usize, errors: &[Cause]) -> Result<()> {
    let mut prints = cases
        .iter()
        .enumerate()
        .filter(|(_, case)| case.kind == Kind::Print && case.says.is_none())
        .map(|(index, _)| index)
        .collect::<Vec<_>>()
        .into_iter();
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

fn wait(mut is_done: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_done()? {
        ensure!(
            Instant::now() < deadline,
            "the API server did not load a CRD in time"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Marks the rules that the API server rejects.
fn reject(cases: &mut [Case], errors: &[Cause], response: &Value) -> Result<()> {
    // Indices in errors refer to the rules in the request, i.e. the cases without a record.
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
