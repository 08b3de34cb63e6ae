//! Stored webhook configurations, and which writes they match.

use std::sync::Arc;
use std::time::Duration;

use rbuilder_cel::MatchCondition;
use rbuilder_kubernetes::selector;
use serde_json::Value;

use super::attributes::Attributes;
use crate::failure::Failure;
use crate::kinds::{ResourceId, Version, string_at};
use crate::roles::Roles;
use crate::store::State;

/// Default of the API server.
const TIMEOUT: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    Mutating,
    Validating,
}

impl Phase {
    fn resource(self) -> ResourceId {
        let plural = match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        };
        ResourceId::new("admissionregistration.k8s.io", plural)
    }
}

/// A webhook in a stored configuration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    configuration: Arc<Value>,
    index: usize,
}

pub(super) fn hooks(state: &State, phase: Phase) -> Vec<Hook> {
    let mut hooks = Vec::new();
    // Sorted by configuration name, same as the server.
    for (_, configuration) in state.objects(&phase.resource()) {
        let count = configuration["webhooks"].as_array().map_or(0, Vec::len);
        hooks.extend((0..count).map(|index| Hook {
            configuration: configuration.clone(),
            index,
        }));
    }
    hooks
}

impl Hook {
    fn webhook(&self) -> &Value {
        &self.configuration["webhooks"][self.index]
    }

    pub(super) fn configuration_name(&self) -> &str {
        string_at(&self.configuration, "/metadata/name")
    }

    pub(super) fn name(&self) -> &str {
        string_at(self.webhook(), "/name")
    }

    /// The URL that a real server would call, and its path, which we use to look up the webhook.
    pub(super) fn address(&self) -> (String, String) {
        address(&self.webhook()["clientConfig"])
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.webhook()["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT))
    }

    pub(super) fn ignores_failures(&self) -> bool {
        self.webhook()["failurePolicy"] == "Ignore"
    }

    pub(super) fn is_reinvoked(&self) -> bool {
        self.webhook()["reinvocationPolicy"] == "IfNeeded"
    }

    pub(super) fn supports_dry_run(&self) -> bool {
        matches!(string_at(self.webhook(), "/sideEffects"), "None" | "NoneOnDryRun")
    }

    /// Returns the version in which the webhook reviews a write, or `None` if it doesn't match.
    /// Fails if a match condition can't be evaluated and the failure policy is `Fail`.
    pub(super) fn matched_version<'a>(
        &self,
        attributes: Attributes<'a>,
        state: &State,
    ) -> Result<Option<&'a Version>, Failure> {
        let Some(version) = self.version_of_rules(attributes) else {
            return Ok(None);
        };
        if !self.selects_namespace(attributes, state) || !self.selects_object(attributes) {
            return Ok(None);
        }
        let conditions = self.webhook()["matchConditions"].as_array();
        if conditions.is_none_or(Vec::is_empty) {
            return Ok(Some(version));
        }
        let holds = self.evaluate_conditions(attributes, version, &state.roles)?;
        Ok(Some(version).filter(|_| holds))
    }

    fn version_of_rules<'a>(&self, attributes: Attributes<'a>) -> Option<&'a Version> {
        let definition = attributes.writer.definition;
        let asked = attributes.writer.version;
        let rules = self.webhook()["rules"].as_array()?;
        let is_matched = |version: &Version| {
            let mut rules = rules.iter();
            rules.any(|rule| matches_rule(rule, attributes, &version.name))
        };
        if is_matched(asked) {
            return Some(asked);
        }
        if self.webhook()["matchPolicy"] == "Exact" {
            return None;
        }
        // `Equivalent` (the default) also matches other versions of the kind; the object is
        // converted for the webhook.
        let mut versions = definition.versions.iter().filter(|version| version.served);
        versions.find(|version| is_matched(version))
    }

    fn selects_namespace(&self, attributes: Attributes<'_>, state: &State) -> bool {
        let selector = &self.webhook()["namespaceSelector"];
        let namespace = attributes.namespace();
        if namespace.is_empty() {
            return true;
        }
        // Use the namespace in the request: it may not be stored yet, and its labels may be
        // changing.
        if attributes.is_namespace() && !attributes.object.is_null() && attributes.subresource().is_empty() {
            return selects(selector, attributes.object);
        }
        let key = (String::new(), namespace.to_owned());
        let found = state.get(&ResourceId::namespaces(), &key);
        found.is_some_and(|namespace| selects(selector, namespace))
    }

    fn selects_object(&self, attributes: Attributes<'_>) -> bool {
        let selector = &self.webhook()["objectSelector"];
        let objects = [attributes.object, attributes.old];
        let mut objects = objects.into_iter().filter(|object| !object.is_null());
        objects.any(|object| selects(selector, object))
    }

    fn evaluate_conditions(
        &self,
        attributes: Attributes<'_>,
        version: &Version,
        roles: &Roles,
    ) -> Result<bool, Failure> {
        let mut request = attributes.to_request(version, roles)?;
        let (object, old) = (request["object"].take(), request["oldObject"].take());
        if let Some(request) = request.as_object_mut() {
            request.retain(|name, _| !matches!(name.as_str(), "object" | "oldObject"));
        }
        let mut errors = Vec::new();
        for condition in self.webhook()["matchConditions"].as_array().into_iter().flatten() {
            let expression = string_at(condition, "/expression");
            let evaluated = MatchCondition::compile(expression)
                .and_then(|condition| condition.evaluate(&object, &old, &request));
            match evaluated {
                Ok(true) => {}
                // A false condition takes precedence over errors in others.
                Ok(false) => return Ok(false),
                Err(why) => {
                    errors.push(format!("expression '{expression}' resulted in error: {why}"));
                }
            }
        }
        let why = match errors.as_slice() {
            [] => return Ok(true),
            _ if self.ignores_failures() => return Ok(false),
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Err(Failure::denied(attributes.writer.id(), attributes.name(), &why))
    }
}

pub(super) fn address(client: &Value) -> (String, String) {
    if let Some(url) = client["url"].as_str() {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = rest.find('/').map_or("/", |start| &rest[start..]);
        return (url.to_owned(), path.to_owned());
    }
    let service = &client["service"];
    let port = service["port"].as_u64().unwrap_or(443);
    let path = service["path"].as_str().unwrap_or("/");
    let (name, namespace) = (string_at(service, "/name"), string_at(service, "/namespace"));
    (
        format!("https://{name}.{namespace}.svc:{port}{path}"),
        path.to_owned(),
    )
}

fn matches_rule(rule: &Value, attributes: Attributes<'_>, version: &str) -> bool {
    let definition = attributes.writer.definition;
    let has = |list: &str, wanted: &str| {
        let items = rule[list].as_array().into_iter().flatten();
        let mut items = items.filter_map(Value::as_str);
        items.any(|item| item == "*" || item == wanted)
    };
    let is_namespaced = !attributes.is_namespace() && !attributes.namespace().is_empty();
    let is_in_scope = match string_at(rule, "/scope") {
        "Namespaced" => is_namespaced,
        "Cluster" => !is_namespaced,
        _ => true,
    };
    let resources = rule["resources"].as_array().into_iter().flatten();
    let mut resources = resources.filter_map(Value::as_str);
    is_in_scope
        && has("operations", attributes.operation.as_str())
        && has("apiGroups", &definition.id.group)
        && has("apiVersions", version)
        && resources.any(|pattern| {
            let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
            (resource == "*" || resource == definition.id.plural)
                && (subresource == "*" || subresource == attributes.subresource())
        })
}

fn selects(selector: &Value, object: &Value) -> bool {
    // The server's default is an empty selector.
    selector.is_null() || selector::selects(selector, &object["metadata"]["labels"])
}
