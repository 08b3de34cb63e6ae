//! Ports the names, paths, policies and operations of webhooks from the original's configurations.

use std::collections::BTreeMap;

use serde_json::Value;

use super::composed::{Composed, webhook_key};
use super::kinds::{Kind, Leftover};
use super::published::{CONFIGURATIONS, Published, find_published, has_configurations, path_of, plural_of};
use crate::commands::attributes::{print_attribute, quoted};
use crate::commands::permissions::list_strings;
use crate::project::{Resource, Webhooks};
use rbuilder_go_project::GoProject;

/// Webhooks of a version with their paths, according to the configurations.
pub(super) fn with_configurations(
    original: &GoProject,
    kind: &Kind<'_>,
    version: &Resource,
    recorded: Webhooks,
) -> Webhooks {
    let mut webhooks = recorded;
    let group = version.qualified_group().replace('.', "-");
    let published = find_published(original);
    for (what, verb) in [("mutating", "mutate"), ("validating", "validate")] {
        let (is_wanted, path) = match what {
            "mutating" => (&mut webhooks.defaulting, &mut webhooks.defaulting_path),
            _ => (&mut webhooks.validation, &mut webhooks.validation_path),
        };
        let is_own = |found: &&Published<'_>| {
            let owner = found.version_of(kind);
            found.what == what && owner.is_some_and(|owner| owner.same(version))
        };
        let Some(found) = published.iter().find(is_own) else {
            // Without any configurations, rely on PROJECT.
            *is_wanted &= !has_configurations(original);
            continue;
        };
        let default = format!(
            "/{verb}-{group}-{}-{}",
            version.version,
            version.kind.to_lowercase()
        );
        *is_wanted = true;
        if path.is_empty() && found.path() != default && !found.path().is_empty() {
            *path = found.path().to_owned();
        }
    }
    webhooks
}

/// Leaves webhooks that PROJECT lists but no configuration contains to the user.
pub(super) fn leave_unpublished(original: &GoProject, kind: &Kind<'_>, left: &mut Vec<Leftover>) {
    if !has_configurations(original) {
        return;
    }
    let published = find_published(original);
    for version in kind.versions.iter().filter(|version| !version.external) {
        let Some(listed) = &version.webhooks else { continue };
        let plural = plural_of(kind, version);
        for (what, is_listed, flag) in [
            ("mutating", listed.defaulting, "--defaulting"),
            ("validating", listed.validation, "--programmatic-validation"),
        ] {
            let is_it = |found: &Published<'_>| found.what == what && found.is_of_kind(version, &plural);
            if !is_listed || published.iter().any(is_it) {
                continue;
            }
            left.push(Leftover::new(
                format!("{what} webhook of `{}` in {}", version.kind, version.version),
                format!(
                    "PROJECT lists it, and the manifests of the Go project do not have it: if it is served, add it with `rbuilder create webhook {} {flag}`",
                    version.naming_flags()
                ),
            ));
        }
    }
}

struct Served<'a> {
    file: String,
    what: &'static str,
    version: Resource,
    webhooks: Vec<Part<'a>>,
}

struct Part<'a> {
    webhook: &'a Value,
    resources: Vec<String>,
    /// False if another kind's handler already has the name and path.
    is_first: bool,
}

/// Replaces the scaffolded attributes with ones that generate the original webhooks. A handler
/// serves one kind, so a webhook for several kinds is split.
pub(super) fn port(original: &GoProject, composed: &mut Composed<'_>) {
    let published = find_published(original);
    let mut handlers = Vec::new();
    let mut names: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for kind in &composed.kinds {
        let own_kind = format!("{}/{}", kind.resource.qualified_group(), kind.resource.kind);
        for version in &kind.versions {
            let Some(file) = composed.webhook_files.get(&webhook_key(version)) else {
                continue;
            };
            let plural = plural_of(kind, version);
            for (_, what) in CONFIGURATIONS {
                let own = published.iter().filter(|found| {
                    found.what == what && found.version_of(kind).is_some_and(|owner| owner.same(version))
                });
                let own: Vec<&Published<'_>> = own.collect();
                let Some(first) = own.first() else { continue };
                // A handler serves one path, with an attribute for each webhook there.
                let mut webhooks = Vec::new();
                for found in own.iter().filter(|found| found.path() == first.path()) {
                    let name = (what, found.name());
                    let owner = names.entry(name).or_insert_with(|| own_kind.clone());
                    webhooks.push(Part {
                        webhook: found.webhook,
                        resources: resources_of(found.webhook, &plural),
                        is_first: *owner == own_kind,
                    });
                }
                let served = (what, webhook_key(version));
                composed.served_paths.insert(served, first.path().to_owned());
                handlers.push(Served {
                    file: file.clone(),
                    what,
                    version: version.clone(),
                    webhooks,
                });
            }
        }
    }
    let mut paths: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for handler in &handlers {
        let Some(text) = composed.files.get_mut(&handler.file) else {
            continue;
        };
        let own = (handler.file.as_str(), handler.what);
        let markers: Vec<String> = handler
            .webhooks
            .iter()
            .map(|part| {
                let has_path = *paths.entry(path_of(part.webhook)).or_insert(own) == own;
                print_marker(handler.what, part, &handler.version, has_path)
            })
            .collect();
        match replace_marker(text, handler.what, &markers.join("\n")) {
            Some(changed) => *text = changed,
            None => composed.left.push(Leftover::new(
                format!("marker of a webhook in {}", handler.file),
                "it was not recognized; compare it with the original",
            )),
        }
        for part in handler.webhooks.iter().filter(|part| part.is_first) {
            leave_restrictions(part.webhook, &handler.file, &mut composed.left);
        }
    }
}

/// Resources and subresources of a kind in the first rule of a webhook, or else all resources of
/// the rule.
fn resources_of(webhook: &Value, plural: &str) -> Vec<String> {
    let all = list_strings(&webhook["rules"][0]["resources"]);
    let is_own = |resource: &&String| {
        let base = resource.split('/').next().unwrap_or_default();
        base == plural || base == "*"
    };
    let own: Vec<String> = all.iter().filter(is_own).cloned().collect();
    if own.is_empty() { all } else { own }
}

/// Fields that restrict a webhook, and the corresponding attribute arguments.
const RESTRICTIONS: [(&str, &str); 3] = [
    ("matchConditions", "match_condition"),
    ("namespaceSelector", "namespace_selector"),
    ("objectSelector", "object_selector"),
];

fn leave_restrictions(webhook: &Value, file: &str, left: &mut Vec<Leftover>) {
    for (key, argument) in RESTRICTIONS {
        if print_restrictions(argument, &webhook[key]).is_none() {
            let name = webhook["name"].as_str().unwrap_or_default();
            left.push(Leftover::new(
                format!("`{key}` of the webhook `{name}`"),
                format!(
                    "it does not have the form that the API server expects: compare it with the marker in {file}"
                ),
            ));
        }
    }
}

/// Arguments for a selector or for match conditions, or `None` for any other form.
fn print_restrictions(argument: &str, value: &Value) -> Option<Vec<String>> {
    let string = |value: &Value| value.as_str().map(quoted);
    if let Some(conditions) = value.as_array().filter(|_| argument == "match_condition") {
        let condition = |condition: &Value| {
            let (name, expression) = (string(&condition["name"])?, string(&condition["expression"])?);
            Some(format!("{argument}(name = {name}, expression = {expression})"))
        };
        return conditions.iter().map(condition).collect();
    }
    if value.is_null() {
        return Some(Vec::new());
    }
    let selector = value.as_object()?;
    let mut parts = Vec::new();
    for (key, value) in selector {
        match key.as_str() {
            "matchLabels" => {
                let labels: Option<Vec<String>> = value
                    .as_object()?
                    .iter()
                    .map(|(key, value)| Some(format!("{}: {}", quoted(key), string(value)?)))
                    .collect();
                parts.push(format!("match_labels = {{ {} }}", labels?.join(", ")));
            }
            "matchExpressions" => {
                for expression in value.as_array()? {
                    let (key, operator) = (string(&expression["key"])?, string(&expression["operator"])?);
                    let values = match &expression["values"] {
                        Value::Null => String::new(),
                        values => {
                            let values: Option<Vec<String>> = values.as_array()?.iter().map(string).collect();
                            format!(", values = [{}]", values?.join(", "))
                        }
                    };
                    parts.push(format!(
                        "match_expression(key = {key}, operator = {operator}{values})"
                    ));
                }
            }
            _ => return None,
        }
    }
    match parts.is_empty() {
        true => Some(Vec::new()),
        false => Some(vec![format!("{argument}({})", parts.join(", "))]),
    }
}

fn replace_marker(text: &str, what: &str, marker: &str) -> Option<String> {
    let is_start = |line: &str| line.starts_with("#[webhook(") || line == "#[webhook(";
    let mut start = None;
    let mut offset = 0;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (at, line) in lines.iter().enumerate() {
        // rustfmt moves long arguments to the next line.
        let rest = format!("{}{}", line, lines.get(at + 1).copied().unwrap_or_default());
        if is_start(line.trim_end()) && rest.contains(what) {
            start = Some(offset);
            break;
        }
        offset += line.len();
    }
    let start = start?;
    let end = start + text[start..].find(")]\n")? + 2;
    Some(format!("{}{marker}{}", &text[..start], &text[end..]))
}

/// Field with the supported AdmissionReview versions.
pub(super) const REVIEW_VERSIONS: &str = "admissionReviewVersions";

/// The attribute that generates a webhook, without arguments that equal the default, and without
/// the path if another handler serves it.
fn print_marker(what: &str, part: &Part<'_>, version: &Resource, has_path: bool) -> String {
    let mut arguments = vec![what.to_owned()];
    let kind = version.kind.to_lowercase();
    let webhook = part.webhook;
    let mut add = |key: &str, value: String| {
        if !value.is_empty() {
            arguments.push(format!("{key} = {}", quoted(&value)));
        }
    };
    let rule = &webhook["rules"][0];
    let (groups, versions, operations) = (
        list_strings(&rule["apiGroups"]),
        list_strings(&rule["apiVersions"]),
        list_strings(&rule["operations"]),
    );
    if version.core || groups != [version.qualified_group()] {
        arguments_of_group(&mut add, &groups);
    }
    if version.core || versions != [version.version.clone()] {
        add("versions", versions.join(";"));
    }
    if version.core || part.resources.len() > 1 {
        add("resources", part.resources.join(";"));
    }
    if operations != ["CREATE", "UPDATE"] {
        add("operations", operations.join(";").to_lowercase());
    }
    let text = |key: &str| webhook[key].as_str().unwrap_or_default().to_owned();
    let default_name = format!("{}{kind}-{}.kb.io", &what[..1], version.version);
    if part.is_first && (version.core || text("name") != default_name) {
        add("name", text("name"));
    }
    let path = path_of(webhook);
    let verb = if what == "mutating" { "mutate" } else { "validate" };
    let default = format!(
        "/{verb}-{}-{}-{kind}",
        version.qualified_group().replace('.', "-"),
        version.version
    );
    if has_path && (version.core || path != default) {
        add("path", path.to_owned());
    }
    for (key, name, default) in [
        ("failurePolicy", "failure_policy", "Fail"),
        ("sideEffects", "side_effects", "None"),
        ("matchPolicy", "match_policy", ""),
        ("reinvocationPolicy", "reinvocation_policy", ""),
    ] {
        if text(key) != default {
            add(name, text(key));
        }
    }
    let reviews = list_strings(&webhook[REVIEW_VERSIONS]);
    // The library only supports v1, which every API server sends on request. Older projects list
    // only v1beta1, or list it first.
    if reviews != ["v1"] && reviews.first().is_some_and(|first| first == "v1") {
        add("admission_review_versions", reviews.join(";"));
    }
    let scope = rule["scope"].as_str().unwrap_or_default();
    add("scope", scope.to_owned());
    if let Some(seconds) = webhook["timeoutSeconds"].as_u64() {
        arguments.push(format!("timeout_seconds = {seconds}"));
    }
    for (key, argument) in RESTRICTIONS {
        arguments.extend(print_restrictions(argument, &webhook[key]).unwrap_or_default());
    }
    print_attribute("webhook", &arguments)
}

/// The core group is an empty string, so name it explicitly.
fn arguments_of_group(add: &mut impl FnMut(&str, String), groups: &[String]) {
    match groups {
        [core] if core.is_empty() => add("groups", "core".to_owned()),
        groups => add("groups", groups.join(";")),
    }
}
