//! Names, namespaces and selectors in manifests, which depend on the release in a chart.
//!
//! kustomize adds a prefix to object names and to the fields that refer to them, and sets the
//! namespace. Templates have `include "<chart>.fullname"` and `.Release.Namespace` in the same
//! places. What a field refers to follows from its name and the object's kind. A reference is only
//! replaced if its target is in the chart.
//!
//! kustomize doesn't update selectors, expressions, alerts and the host names of certificates.
//! Users write the project's prefix and namespace there, so templates replace those too.

use std::collections::BTreeSet;

use rbuilder_generator::MANAGER_NAMESPACE;
use rbuilder_project::labels::{NAME_LABEL, NAMESPACE_LABEL};
use serde_json::{Map, Value};

use super::config::{Config, Object, WEBHOOKS};
use super::ports::{METRICS_PORT, Ports};
use super::template::{Node, Part, escape, quote};
use super::text::{self, Literal};

/// Placeholder for the namespace in scaffolds.
const SYSTEM: &str = "system";
/// Label with the tool that installed an object. Set by the chart.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

const NAME_FIELDS: &[(&str, &str)] = &[
    ("secretName", "Secret"),
    ("serviceName", "Service"),
    ("claimName", "PersistentVolumeClaim"),
];
const REFERENCES: &[(&str, &str)] = &[
    ("service", "Service"),
    ("secret", "Secret"),
    ("configMap", "ConfigMap"),
    ("configMapRef", "ConfigMap"),
    ("configMapKeyRef", "ConfigMap"),
    ("secret", "Secret"),
    ("secretRef", "Secret"),
    ("secretKeyRef", "Secret"),
];
const TYPED_REFERENCES: &[&str] = &["roleRef", "subjects", "scaleTargetRef", "issuerRef"];
/// Kinds of objects whose names are passed to the manager in environment variables.
const NAMED_IN_VARIABLES: &[&str] = &[
    "Service",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];
/// Kinds with CEL expressions, in which kustomize doesn't update names.
const EXPRESSIONS: &[&str] = &[
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicy",
];
const INJECTIONS: &[&str] = &[
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
];

#[derive(Clone, Debug)]
pub(crate) struct References {
    style: Style,
    /// All objects, as kind and name.
    names: BTreeSet<(String, String)>,
    /// Secret with the webhook certificate.
    webhook_secret: Option<String>,
    /// Name of the project, used as the prefix where kustomize doesn't add one.
    project: String,
    /// Namespaces to replace with the release's: the placeholder, the namespace in config/default,
    /// and the default for that.
    namespaces: [String; 3],
    pod_labels: Map<String, Value>,
    service_account: String,
    /// Whether the manager only watches its own namespace by default.
    is_namespaced: bool,
    ports: Ports,
}

#[derive(Clone, Debug)]
enum Style {
    Template {
        /// Name of the chart, which prefixes named templates.
        chart: String,
        /// The root context: `.`, or `$` in a loop.
        root: &'static str,
    },
    /// As written by kustomize.
    Plain {
        /// Name of the project, which prefixes all names.
        prefix: String,
        namespace: String,
    },
}

impl References {
    pub(crate) fn new(chart: &str, config: &Config, manager: &Object) -> References {
        let mut names: BTreeSet<(String, String)> = config
            .objects
            .iter()
            .filter(|object| !matches!(object.kind(), "CustomResourceDefinition" | "Namespace"))
            .map(|object| (object.kind().to_owned(), object.name().to_owned()))
            .collect();
        // Some Secrets are created by other controllers. The manifests don't contain these, but
        // still name them.
        let secrets = config.objects.iter().flat_map(created_secrets);
        names.extend(secrets.map(|name| ("Secret".to_owned(), name)));
        let of_webhooks = config.objects.iter().filter(|object| {
            let mut conditions = object.conditions.iter();
            conditions.any(|condition| condition.value == WEBHOOKS)
        });
        let pod = &manager.value["spec"]["template"];
        let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or("default");
        References {
            style: Style::Template {
                chart: chart.to_owned(),
                root: ".",
            },
            names,
            webhook_secret: of_webhooks.flat_map(created_secrets).next(),
            project: chart.to_owned(),
            namespaces: [
                SYSTEM.to_owned(),
                config.namespace.clone(),
                format!("{chart}-system"),
            ],
            pod_labels: pod["metadata"]["labels"].as_object().cloned().unwrap_or_default(),
            service_account: account.to_owned(),
            is_namespaced: false,
            ports: Ports::default(),
        }
    }

    /// Sets the values that affect references. `is_namespaced`: the manager only watches its own
    /// namespace by default.
    pub(super) fn with_values(self, is_namespaced: bool, ports: Ports) -> References {
        References {
            is_namespaced,
            ports,
            ..self
        }
    }

    /// Same, with names as written by kustomize.
    pub(crate) fn plain(&self, prefix: &str) -> References {
        let prefix = prefix.to_owned();
        let namespace = self.namespaces[1].clone();
        References {
            style: Style::Plain { prefix, namespace },
            ..self.clone()
        }
    }

    /// Same for the body of a loop, where `.` is rebound.
    pub(crate) fn in_loop(&self) -> References {
        let mut inner = self.clone();
        if let Style::Template { root, .. } = &mut inner.style {
            *root = "$";
        }
        inner
    }

    fn root(&self) -> &'static str {
        match self.style {
            Style::Template { root, .. } => root,
            Style::Plain { .. } => ".",
        }
    }

    pub(crate) fn value(&self, path: &str) -> String {
        format!("{}.Values.{path}", self.root().trim_end_matches('.'))
    }

    pub(crate) fn include(&self, name: &str) -> String {
        match &self.style {
            Style::Template { chart, root } => format!("include \"{chart}.{name}\" {root}"),
            Style::Plain { prefix, .. } => quote(prefix),
        }
    }

    pub(crate) fn name(&self, name: &str) -> String {
        match &self.style {
            Style::Template { .. } => format!("{{{{ {} }}}}-{}", self.include("fullname"), escape(name)),
            Style::Plain { prefix, .. } => format!("{prefix}-{name}"),
        }
    }

    pub(crate) fn namespace(&self) -> String {
        match &self.style {
            Style::Template { .. } => {
                format!(
                    "{{{{ {}.Release.Namespace | quote }}}}",
                    self.root().trim_end_matches('.')
                )
            }
            Style::Plain { namespace, .. } => namespace.clone(),
        }
    }

    /// The namespace of the release within a longer string.
    fn release_namespace(&self) -> String {
        match &self.style {
            Style::Template { .. } => {
                format!(
                    "{{{{ {}.Release.Namespace }}}}",
                    self.root().trim_end_matches('.')
                )
            }
            Style::Plain { namespace, .. } => namespace.clone(),
        }
    }

    pub(crate) fn account(&self) -> Node {
        Node::Text(match self.style {
            Style::Template { .. } => format!("{{{{ {} }}}}", self.include("serviceAccountName")),
            Style::Plain { .. } => self.name(&self.service_account),
        })
    }

    pub(crate) fn is_account(&self, name: &str) -> bool {
        name == self.service_account
    }

    pub(crate) fn has(&self, kind: &str, name: &str) -> bool {
        self.names.contains(&(kind.to_owned(), name.to_owned()))
    }

    pub(crate) fn webhook_secret(&self) -> Option<&str> {
        self.webhook_secret.as_deref()
    }

    /// Secrets that manifests refer to but don't contain.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let secrets = self.names.iter().filter(|(kind, _)| kind == "Secret");
        secrets.map(|(_, name)| name.as_str())
    }

    fn reference(&self, kind: &str, name: &str) -> Option<Node> {
        if kind == "ServiceAccount" && self.is_account(name) && self.has(kind, name) {
            return Some(self.account());
        }
        self.has(kind, name).then(|| Node::Text(self.name(name)))
    }

    pub(crate) fn replace(&self, kind: &str, value: &Value) -> Node {
        let replaced = self.rewrite(kind, value, &mut Vec::new());
        replaced.unwrap_or_else(|| Node::Value(value.clone()))
    }

    pub(crate) fn replace_field(&self, kind: &str, key: &str, value: &Value) -> Node {
        let mut keys = vec![key];
        let replaced = self.rewrite_field(kind, &Map::new(), value, &mut keys);
        replaced.unwrap_or_else(|| Node::Value(value.clone()))
    }

    /// Rewrites a value, or returns `None` if nothing changes.
    fn rewrite<'v>(&self, kind: &str, value: &'v Value, keys: &mut Vec<&'v str>) -> Option<Node> {
        let mut has_changed = false;
        let mut keep = |node: Option<Node>, value: &Value| {
            has_changed |= node.is_some();
            node.unwrap_or_else(|| Node::Value(value.clone()))
        };
        let node = match value {
            Value::Object(map) => {
                let mut parts = Vec::new();
                for (key, value) in map {
                    keys.push(key);
                    let node = self.rewrite_field(kind, map, value, keys);
                    keys.pop();
                    parts.push(Part::Field(key.clone(), keep(node, value)));
                }
                Node::Map(parts)
            }
            Value::Array(items) => {
                let items = items
                    .iter()
                    .map(|item| keep(self.rewrite(kind, item, keys), item));
                Node::List(items.map(Part::Item).collect())
            }
            _ => return None,
        };
        has_changed.then_some(node)
    }

    fn rewrite_field<'v>(
        &self,
        kind: &str,
        beside: &Map<String, Value>,
        value: &'v Value,
        keys: &mut Vec<&'v str>,
    ) -> Option<Node> {
        let own = match value {
            Value::String(text) => self.rewrite_string(kind, beside, text, keys),
            Value::Object(labels) if is_selector(kind, keys) => self.selector(labels),
            Value::Array(items) => self.rewrite_list(kind, beside, items, keys),
            Value::Number(number) => self.port(kind, keys, number.as_u64()?),
            _ => None,
        };
        own.or_else(|| self.rewrite(kind, value, keys))
    }

    /// Rewrites a string. Its meaning depends on its field and on the enclosing field.
    fn rewrite_string(
        &self,
        kind: &str,
        beside: &Map<String, Value>,
        text: &str,
        keys: &[&str],
    ) -> Option<Node> {
        let (key, parents) = keys.split_last()?;
        let parent = parents.last().copied().unwrap_or_default();
        let find = |table: &[(&str, &'static str)], name: &str| {
            table
                .iter()
                .find(|(field, _)| *field == name)
                .map(|(_, kind)| *kind)
        };
        match *key {
            "name" if TYPED_REFERENCES.contains(&parent) => {
                self.reference(beside.get("kind")?.as_str()?, text)
            }
            "name" if kind == "Service" && parent == "ports" && self.is_metrics_port(beside) => {
                self.protocol(text)
            }
            "port" | "scheme" if kind == "ServiceMonitor" => self.protocol(text),
            "name" => self.reference(find(REFERENCES, parent)?, text),
            "namespace" if ["subjects", "service"].contains(&parent) => self.own_namespace(text),
            NAMESPACE_LABEL if parent == "matchLabels" => self.own_namespace(text),
            "serverName" => self.host_name(text),
            "expression" if EXPRESSIONS.contains(&kind) => self.expression(beside, text),
            _ if kind == "PrometheusRule" => self.follow_in_text(text, None),
            "serviceAccountName" => self.reference("ServiceAccount", text),
            "value" if parent == "env" => {
                let mut kinds = NAMED_IN_VARIABLES.iter();
                kinds.find_map(|kind| self.reference(kind, text))
            }
            key if INJECTIONS.contains(&key) => self.injection(text),
            "secretName" if kind == "Certificate" => self.reference("Secret", text),
            key => self.reference(find(NAME_FIELDS, key)?, text),
        }
    }

    /// The value for a port of the manager, or `None` for any other port.
    fn port(&self, kind: &str, keys: &[&str], number: u64) -> Option<Node> {
        let is_port = matches!(
            (kind, *keys.last()?),
            ("Deployment", "containerPort") | ("Service", "targetPort") | ("NetworkPolicy", "port")
        );
        let value = self.ports.get(&number).filter(|_| is_port)?;
        Some(Node::Text(format!("{{{{ {} | int }}}}", self.value(value))))
    }

    /// Whether a value decides if metrics are served over HTTPS.
    pub(super) fn has_secure_metrics(&self) -> bool {
        self.ports.values().any(|value| *value == METRICS_PORT)
    }

    fn is_metrics_port(&self, port: &Map<String, Value>) -> bool {
        let target = port.get("targetPort").and_then(Value::as_u64);
        target.is_some_and(|target| self.ports.get(&target) == Some(&METRICS_PORT))
    }

    /// Protocol of the metrics endpoint, which is also the name of its port.
    fn protocol(&self, text: &str) -> Option<Node> {
        let secure = self.value("metrics.secure");
        (self.has_secure_metrics() && text == "https")
            .then(|| Node::Text(format!("{{{{ ternary \"https\" \"http\" {secure} }}}}")))
    }

    fn own_namespace(&self, name: &str) -> Option<Node> {
        let is_own = self.namespaces.iter().any(|own| own == name);
        is_own.then(|| Node::Text(self.namespace()))
    }

    /// Replaces the project's names and namespaces in a text, e.g. in an alert's query.
    fn follow_in_text(&self, text: &str, placeholder: Option<Literal>) -> Option<Node> {
        let Style::Template { .. } = self.style else {
            return None;
        };
        let mut literals = self.literals();
        literals.extend(placeholder);
        text::rewrite(text, &literals)
    }

    pub(super) fn follow_in_data(&self, data: &Value) -> Node {
        let fields = data.as_object().into_iter().flatten().map(|(key, value)| {
            let followed = value.as_str().and_then(|text| self.follow_in_text(text, None));
            Part::Field(
                key.clone(),
                followed.unwrap_or_else(|| Node::Value(value.clone())),
            )
        });
        Node::Map(fields.collect())
    }

    pub(super) fn names_project(&self, text: &str) -> bool {
        self.follow_in_text(text, None).is_some()
    }

    /// Strings that contain the project's namespace or one of its names, with their replacements.
    fn literals(&self) -> Vec<Literal> {
        let fullname = self.include("fullname");
        let release = self.release_namespace();
        let mut literals = Vec::new();
        if self.has("ServiceAccount", &self.service_account) {
            // Only match `system:serviceaccount:<namespace>:<name>`, since a Deployment may have
            // the same name.
            let text = format!(":{}-{}", self.project, self.service_account);
            let action = format!(":{{{{ {} }}}}", self.include("serviceAccountName"));
            literals.push(Literal::new(text, action));
        }
        for (_, name) in &self.names {
            let text = format!("{}-{name}", self.project);
            literals.push(Literal::new(text, format!("{{{{ {fullname} }}}}-{name}")));
        }
        let [_, namespace, default] = &self.namespaces;
        literals.push(Literal::new(default.clone(), release.clone()));
        if namespace != default && !namespace.is_empty() {
            // Unlike the default, this namespace may be an ordinary word.
            literals.push(Literal::word(namespace.clone(), release));
        }
        literals
    }

    fn expression(&self, beside: &Map<String, Value>, text: &str) -> Option<Node> {
        let is_about_manager = beside.get("name").is_some_and(|name| name == MANAGER_NAMESPACE);
        let is_restriction = self.is_namespaced && !text.trim_start().starts_with('!');
        let namespace = match is_restriction {
            false => self.release_namespace(),
            true => format!(
                "{{{{ join \"', '\" ({} | default (list .Release.Namespace)) }}}}",
                self.value("watchNamespaces")
            ),
        };
        // The condition contains the namespace placeholder. If it restricts a webhook to the
        // manager's namespace, it must follow the watched namespaces.
        let placeholder = is_about_manager.then(|| Literal::word(SYSTEM.to_owned(), namespace));
        self.follow_in_text(text, placeholder)
    }

    fn own_label(&self, name: &str) -> Option<Node> {
        let is_own = matches!(self.style, Style::Template { .. }) && name == self.project;
        is_own.then(|| Node::Text(format!("{{{{ {} | quote }}}}", self.include("name"))))
    }

    fn injection(&self, text: &str) -> Option<Node> {
        let (_, name) = text.split_once('/')?;
        let is_known = self.has("Secret", name) || self.has("Certificate", name);
        let namespace = self.release_namespace();
        is_known.then(|| Node::Text(format!("{namespace}/{}", self.name(name))))
    }

    fn rewrite_list(
        &self,
        kind: &str,
        beside: &Map<String, Value>,
        items: &[Value],
        keys: &[&str],
    ) -> Option<Node> {
        let rewrite: &dyn Fn(&str) -> Option<Node> = match (kind, *keys.last()?) {
            ("Certificate", "dnsNames") => &|name| self.host_name(name),
            ("Role" | "ClusterRole", "resourceNames") => &|name| self.resource_name(beside, name),
            (_, "values") if beside.get("key").is_some_and(|key| key == NAMESPACE_LABEL) => {
                &|name| self.own_namespace(name)
            }
            (_, "values") if beside.get("key").is_some_and(|key| key == NAME_LABEL) => {
                &|name| self.own_label(name)
            }
            _ => return None,
        };
        let nodes: Vec<Option<Node>> = items.iter().map(|item| rewrite(item.as_str()?)).collect();
        let has_changed = nodes.iter().any(Option::is_some);
        let items = nodes.into_iter().zip(items);
        let items = items.map(|(node, item)| Part::Item(node.unwrap_or_else(|| Node::Value(item.clone()))));
        has_changed.then(|| Node::List(items.collect()))
    }

    /// Rewrites the host name of a Service, e.g. `webhook-service.system.svc`, with or without the
    /// project's prefix and namespace.
    fn host_name(&self, name: &str) -> Option<Node> {
        let mut parts = name.splitn(3, '.');
        let (service, namespace, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let with_prefix = service
            .strip_prefix(&*self.project)
            .and_then(|rest| rest.strip_prefix('-'));
        let service = with_prefix
            .filter(|name| self.has("Service", name))
            .unwrap_or(service);
        let is_own = self.has("Service", service) && self.namespaces.iter().any(|own| own == namespace);
        let release = self.release_namespace();
        is_own.then(|| Node::Text(format!("{}.{release}.{}", self.name(service), escape(rest))))
    }

    fn resource_name(&self, rule: &Map<String, Value>, name: &str) -> Option<Node> {
        let resources = rule.get("resources")?.as_array()?;
        let plural = |kind: &str| Value::from(format!("{}s", kind.to_lowercase()));
        let mut known = self.names.iter();
        let found = known.find(|(kind, known)| known == name && resources.contains(&plural(kind)));
        found.map(|_| Node::Text(self.name(name)))
    }

    pub(super) fn selects_manager(&self, object: &Value) -> bool {
        let labels = object["spec"]["selector"]["matchLabels"].as_object();
        labels.is_some_and(|labels| self.are_of_manager(labels))
    }

    fn are_of_manager(&self, labels: &Map<String, Value>) -> bool {
        let mut known = labels
            .iter()
            .map(|(key, value)| self.pod_labels.get(key) == Some(value));
        !labels.is_empty() && known.all(|is_known| is_known)
    }

    /// Rewrites a selector that matches the manager's pods, or anything else with the same labels.
    fn selector(&self, labels: &Map<String, Value>) -> Option<Node> {
        let is_manager = matches!(self.style, Style::Template { .. }) && self.are_of_manager(labels);
        is_manager.then(|| self.pod_selector(labels))
    }

    pub(crate) fn pod_selector(&self, labels: &Map<String, Value>) -> Node {
        let others = labels
            .iter()
            .filter(|(key, _)| ![NAME_LABEL, MANAGED_BY].contains(&key.as_str()));
        let mut parts: Vec<Part> = others
            .map(|(key, value)| Part::Field(key.clone(), Node::Value(value.clone())))
            .collect();
        parts.push(Part::Lines(self.include("selectorLabels")));
        Node::Map(parts)
    }
}

fn is_selector(kind: &str, keys: &[&str]) -> bool {
    keys.last() == Some(&"matchLabels") || (kind == "Service" && keys.last() == Some(&"selector"))
}

/// Names of Secrets created at run time, either by cert-manager or by the manager itself, whose
/// role then names the Secret.
fn created_secrets(object: &Object) -> Vec<String> {
    let strings = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    match object.kind() {
        "Certificate" => {
            let name = object.value["spec"]["secretName"].as_str();
            name.map(str::to_owned).into_iter().collect()
        }
        "Role" if object.path.starts_with("config/webhook/") => {
            let rules = object.value["rules"].as_array().into_iter().flatten();
            let of_secrets = rules.filter(|rule| strings(&rule["resources"]) == ["secrets"]);
            of_secrets
                .flat_map(|rule| strings(&rule["resourceNames"]))
                .collect()
        }
        _ => Vec::new(),
    }
}
