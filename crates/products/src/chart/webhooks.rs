//! Webhook configurations. Values restrict when a webhook is called, and for which objects.

use rbuilder_generator::MANAGER_NAMESPACE;
use serde_json::{Map, Value, json};

use super::references::References;
use super::template::{Node, Part, quote};

const FAIL: &str = "Fail";

/// `is_ours`: whether the manager supports `watchNamespaces`.
pub(super) fn follow_values(references: &References, kind: &str, webhooks: &Value, is_ours: bool) -> Node {
    let webhooks = webhooks.as_array().into_iter().flatten();
    let webhooks = webhooks.map(|webhook| {
        let map = webhook.as_object().cloned().unwrap_or_default();
        Part::Item(Node::Map(follow(references, kind, &map, is_ours)))
    });
    Node::List(webhooks.collect())
}

fn follow(references: &References, kind: &str, webhook: &Map<String, Value>, is_ours: bool) -> Vec<Part> {
    let policy = references.value("webhooks.failurePolicy");
    let timeout = references.value("webhooks.timeoutSeconds");
    let mut parts = Vec::new();
    for (key, value) in webhook {
        let node = match key.as_str() {
            "failurePolicy" => {
                let default = quote(value.as_str().unwrap_or(FAIL));
                Node::Text(format!("{{{{ {policy} | default {default} }}}}"))
            }
            "timeoutSeconds" => Node::Text(format!("{{{{ {timeout} | default {value} | int }}}}")),
            "namespaceSelector" | "objectSelector" => match selector(references, kind, key, value) {
                Some(node) => node,
                None => continue,
            },
            "matchConditions" => continue,
            _ => references.replace_field(kind, key, value),
        };
        parts.push(Part::Field(key.clone(), node));
    }
    if !webhook.contains_key("failurePolicy") {
        let value = Part::Field("failurePolicy".into(), Node::Text("{{ . }}".into()));
        parts.push(Part::Block(format!("with {policy}"), vec![value]));
    }
    if !webhook.contains_key("timeoutSeconds") {
        let value = Part::Field("timeoutSeconds".into(), Node::Text("{{ . | int }}".into()));
        parts.push(Part::Block(format!("with {timeout}"), vec![value]));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if webhook.get(key).is_none_or(is_empty) {
            parts.push(Part::of_values(
                key,
                &references.value(&format!("webhooks.{key}")),
            ));
        }
    }
    parts.extend(match_conditions(references, kind, webhook, is_ours));
    parts
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

/// A selector with additional requirements from a value. Values only add to the manifest's
/// requirements. `None` for an empty selector.
fn selector(references: &References, kind: &str, key: &str, own: &Value) -> Option<Node> {
    if is_empty(own) {
        return None;
    }
    let mut parts = Vec::new();
    for field in ["matchLabels", "matchExpressions"] {
        let path = references.value(&format!("webhooks.{key}.{field}"));
        let Some(value) = own.get(field) else {
            parts.push(Part::of_values(field, &path));
            continue;
        };
        // Replace references in the whole list, because the adjacent key decides which strings
        // count.
        let whole = references.replace_field(kind, key, &json!({ field: value }));
        let mut inner = match whole {
            Node::Map(fields) => fields.into_iter().next().map_or_else(Vec::new, into_parts),
            other => into_parts(Part::Field(
                field.into(),
                Node::Value(other.into_value()[field].clone()),
            )),
        };
        inner.push(Part::items_of_values(&path));
        let node = match field {
            "matchLabels" => Node::Map(inner),
            _ => Node::List(inner),
        };
        parts.push(Part::Field(field.into(), node));
    }
    // A map must start with a field rather than a block.
    parts.sort_by_key(|part| !matches!(part, Part::Field(..)));
    Some(Node::Map(parts))
}

fn into_parts(field: Part) -> Vec<Part> {
    match field {
        Part::Field(_, Node::Map(parts) | Node::List(parts)) => parts,
        Part::Field(_, Node::Value(Value::Object(map))) => {
            let fields = map.into_iter();
            fields
                .map(|(key, value)| Part::Field(key, Node::Value(value)))
                .collect()
        }
        Part::Field(_, Node::Value(Value::Array(items))) => {
            items.into_iter().map(Node::Value).map(Part::Item).collect()
        }
        _ => Vec::new(),
    }
}

/// Match conditions that keep the API server from calling the webhook for objects outside the
/// watched namespaces.
fn match_conditions(
    references: &References,
    kind: &str,
    webhook: &Map<String, Value>,
    is_ours: bool,
) -> Option<Part> {
    let own = webhook.get("matchConditions").and_then(Value::as_array);
    let own: Vec<&Value> = own.into_iter().flatten().collect();
    let is_restriction = |condition: &&Value| {
        let expression = condition["expression"].as_str().unwrap_or_default();
        condition["name"] == MANAGER_NAMESPACE && !expression.starts_with('!')
    };
    let mut parts: Vec<Part> = own
        .iter()
        .map(|condition| Part::Item(references.replace(kind, condition)))
        .collect();
    let watched = references.value("watchNamespaces");
    let control = format!("with {watched}");
    if is_ours && !own.iter().any(is_restriction) {
        // Requests for cluster-scoped objects have an empty namespace.
        let expression = "'request.namespace == '''' || request.namespace in [''{{ join \"'', ''\" . }}'']'";
        let condition = Part::Item(Node::Map(vec![
            Part::Field("expression".into(), Node::Text(expression.into())),
            Part::Field("name".into(), Node::Value(json!("watched-namespaces"))),
        ]));
        parts.push(match own.is_empty() {
            true => condition,
            false => Part::Block(control.clone(), vec![condition]),
        });
    }
    if parts.is_empty() {
        return None;
    }
    let list = Part::Field("matchConditions".into(), Node::List(parts));
    Some(match own.is_empty() {
        true => Part::Block(control, vec![list]),
        false => list,
    })
}
