//! Renders manifests as templates. Every object gets its name, namespace, labels and conditions.

use anyhow::Result;
use rbuilder_generator::find_kubernetes_kind;
use rbuilder_kubernetes::crd::{Crd, KIND};
use rbuilder_kubernetes::gvk;
use serde_json::{Map, Value, json};

use super::conditions::condition;
use super::config::{
    BUDGET, CERTIFICATES, Condition, Config, METRICS_CERTIFICATE, MONITOR, Object, RULES, WEBHOOKS,
    read_tls_operation,
};
use super::deployment::{Manager, fail};
use super::references::{MANAGED_BY, References};
use super::template::{Node, Part, print_document};
use super::webhooks;
use rbuilder_project::labels::NAME_LABEL;

/// Name suffixes of roles for users, and the built-in roles to aggregate them to.
const USER_ROLES: &[(&str, &str)] = &[
    ("-admin-role", "admin"),
    ("-editor-role", "edit"),
    ("-viewer-role", "view"),
];
const RBAC: &[&str] = &["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];
/// For each value that enables a certificate, the value that overrides its issuer.
const ISSUERS: &[(&str, &str)] = &[
    (CERTIFICATES, "webhooks.certManager.issuerRef"),
    (METRICS_CERTIFICATE, "metrics.certManager.issuerRef"),
];

pub(super) struct Documents<'a> {
    pub(super) config: &'a Config,
    pub(super) references: &'a References,
    pub(super) is_namespaced: bool,
    /// Whether the manager supports `WATCH_NAMESPACE`.
    pub(super) is_ours: bool,
}

impl Documents<'_> {
    pub(super) fn print(
        &self,
        object: &Object,
        manager: &mut Manager<'_>,
        is_manager: bool,
    ) -> Result<String> {
        let mut conditions = object.conditions.clone();
        conditions.extend(self.own_conditions(object));
        if object.kind() == "PrometheusRule" {
            for condition in conditions
                .iter_mut()
                .filter(|condition| condition.value == MONITOR)
            {
                condition.value = RULES;
            }
        }
        let document = if is_manager {
            self.document(self.references, object, Some(manager.spec(object)?))
        } else if self.follows_namespaces(object) {
            self.in_namespaces(object)
        } else {
            self.document(self.references, object, None)
        };
        let before = self.refusal(object);
        Ok(match condition(self.references, &conditions) {
            Some(condition) => format!("{before}{{{{- if {condition} }}}}\n{document}{{{{- end }}}}\n"),
            None => format!("{before}{document}"),
        })
    }

    fn own_conditions(&self, object: &Object) -> Vec<Condition> {
        let value = match object.kind() {
            "CustomResourceDefinition" => "crds.enabled",
            "ServiceAccount" if self.references.is_account(object.name()) => "serviceAccount.create",
            "Issuer" => {
                let given = issuer_value(object);
                return given
                    .map(|value| Condition {
                        value,
                        is_true: false,
                    })
                    .into_iter()
                    .collect();
            }
            "ClusterRole" if self.is_user_role(object) => "rbac.userRoles.create",
            // A pod matched by two budgets can't be evicted.
            "PodDisruptionBudget" if self.references.selects_manager(&object.value) => {
                return vec![Condition {
                    value: BUDGET,
                    is_true: false,
                }];
            }
            kind if RBAC.contains(&kind) => "rbac.create",
            _ => return Vec::new(),
        };
        vec![Condition { value, is_true: true }]
    }

    /// Whether a role is for users of the operator. We assume so if nothing binds it and its name
    /// has one of the usual suffixes.
    fn is_user_role(&self, object: &Object) -> bool {
        let is_bound = |other: &Object| other.value["roleRef"]["name"] == object.name();
        user_role(object).is_some() && !self.config.objects.iter().any(is_bound)
    }

    /// Makes rendering fail if a CRD needs a webhook that is turned off.
    fn refusal(&self, object: &Object) -> String {
        let crd = Crd::read(&object.value).filter(|crd| crd.has_webhook() && self.config.has(WEBHOOKS));
        let Some(crd) = crd else {
            return String::new();
        };
        let kind = crd.kind();
        let message =
            format!("webhooks.enabled must be true: the versions of kind {kind} are converted by a webhook");
        let (crds, webhooks) = (
            self.references.value("crds.enabled"),
            self.references.value("webhooks.enabled"),
        );
        format!(
            "{{{{- if and {crds} (not {webhooks}) }}}}\n{{{{- {} }}}}\n{{{{- end }}}}\n",
            fail(&message)
        )
    }

    fn document(&self, references: &References, object: &Object, spec: Option<Part>) -> String {
        format!("---\n{}", print_document(&self.parts(references, object, spec)))
    }

    fn parts(&self, references: &References, object: &Object, spec: Option<Part>) -> Vec<Part> {
        let map = object.value.as_object().cloned().unwrap_or_default();
        let kind = object.kind();
        let mut parts = Vec::new();
        for (key, value) in &map {
            parts.push(match (key.as_str(), &spec) {
                ("metadata", _) => {
                    let metadata = self.metadata(references, object, spec.is_some());
                    Part::Field("metadata".into(), Node::Map(metadata))
                }
                ("webhooks", _) if kind.ends_with("WebhookConfiguration") && self.config.has(WEBHOOKS) => {
                    let webhooks = webhooks::follow_values(references, kind, value, self.is_ours);
                    Part::Field("webhooks".into(), webhooks)
                }
                ("spec", Some(spec)) => spec.clone(),
                ("spec", None) if kind == "CustomResourceDefinition" => {
                    Part::Field("spec".into(), crd_spec(references, value))
                }
                ("spec", None) if kind == "Certificate" => {
                    Part::Field("spec".into(), certificate_spec(references, object, value))
                }
                ("spec", None) if kind == "ServiceMonitor" => {
                    Part::Field("spec".into(), monitor_spec(references, object, value))
                }
                ("data", None) if kind == "Secret" => Part::Field(key.clone(), Node::Value(value.clone())),
                ("data" | "stringData", None) if ["ConfigMap", "Secret"].contains(&kind) => {
                    Part::Field(key.clone(), references.follow_in_data(value))
                }
                _ => Part::Field(key.clone(), references.replace_field(kind, key, value)),
            });
        }
        parts
    }

    fn metadata(&self, references: &References, object: &Object, is_manager: bool) -> Vec<Part> {
        let metadata = object.value["metadata"].as_object().cloned().unwrap_or_default();
        let mut parts = Vec::new();
        parts.extend(self.annotations(references, object, &metadata, is_manager));
        parts.push(Part::Field(
            "labels".into(),
            Node::Map(self.labels(references, object, &metadata)),
        ));
        parts.push(Part::Field(
            "name".into(),
            match object.kind() {
                "CustomResourceDefinition" => Node::Value(json!(object.name())),
                "ServiceAccount" if references.is_account(object.name()) => references.account(),
                _ => Node::Text(references.name(object.name())),
            },
        ));
        if let Some(namespace) = self.config.kept_namespace(&object.value) {
            parts.push(Part::Field("namespace".into(), Node::Value(json!(namespace))));
        } else if self.is_in_namespace(object) {
            parts.push(Part::Field(
                "namespace".into(),
                Node::Text(references.namespace()),
            ));
        }
        let known = ["annotations", "labels", "name", "namespace"];
        let others = metadata.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        parts.extend(others.map(|(key, value)| Part::Field(key.clone(), Node::Value(value.clone()))));
        parts
    }

    fn labels(&self, references: &References, object: &Object, metadata: &Map<String, Value>) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let own = metadata.get("labels").and_then(Value::as_object);
        for (key, value) in own.into_iter().flatten() {
            if ![NAME_LABEL, MANAGED_BY].contains(&key.as_str()) {
                parts.push(Part::Field(key.clone(), Node::Value(value.clone())));
            }
        }
        parts.push(Part::Lines(references.include("labels")));
        match object.kind() {
            "ClusterRole" if self.is_user_role(object) => {
                let (_, role) = user_role(object).unwrap_or_default();
                let label = format!("rbac.authorization.k8s.io/aggregate-to-{role}");
                parts.push(Part::Block(
                    format!("if {}", references.value("rbac.userRoles.aggregate")),
                    vec![Part::Field(label, Node::Value(json!("true")))],
                ));
            }
            "ServiceMonitor" => parts.push(Part::items_of_values(
                &references.value("metrics.serviceMonitor.labels"),
            )),
            _ => {}
        }
        parts
    }

    /// Annotations: the object's own, then those that depend on a feature, then those from the
    /// values.
    fn annotations(
        &self,
        references: &References,
        object: &Object,
        metadata: &Map<String, Value>,
        is_manager: bool,
    ) -> Option<Part> {
        let kind = object.kind();
        let field = |(key, value): (&String, &Value)| {
            Part::Field(key.clone(), references.replace_field(kind, key, value))
        };
        let own = metadata.get("annotations").and_then(Value::as_object);
        let mut parts: Vec<Part> = own.into_iter().flatten().map(field).collect();
        let is_certain = !parts.is_empty();
        let mut reasons = Vec::new();
        for (conditions, patch) in &object.patches {
            let added = patch["metadata"]["annotations"].as_object().into_iter().flatten();
            let added: Vec<Part> = added.map(field).collect();
            if let Some(condition) = condition(references, conditions).filter(|_| !added.is_empty()) {
                parts.push(Part::Block(format!("if {condition}"), added));
                reasons.push(format!("({condition})"));
            }
        }
        match kind {
            "CustomResourceDefinition" => {
                let keep = references.value("crds.keep");
                let annotation = Part::Field("helm.sh/resource-policy".into(), Node::Value(json!("keep")));
                parts.push(Part::Block(format!("if {keep}"), vec![annotation]));
                parts.push(Part::items_of_values(&references.value("crds.annotations")));
                reasons.extend([keep, references.value("crds.annotations")]);
            }
            "ServiceAccount" if references.is_account(object.name()) => {
                let path = references.value("serviceAccount.annotations");
                parts.push(Part::items_of_values(&path));
                reasons.push(path);
            }
            "Deployment" if is_manager => {
                let path = references.value("deploymentAnnotations");
                parts.push(Part::items_of_values(&path));
                reasons.push(path);
            }
            _ => {}
        }
        // If all entries share one condition, wrap `annotations:` itself in it.
        if !is_certain
            && let [Part::Block(control, inner)] = parts.as_mut_slice()
            && control.starts_with("if ")
        {
            let annotations = Part::Field("annotations".into(), Node::Map(std::mem::take(inner)));
            return Some(Part::Block(control.clone(), vec![annotations]));
        }
        if parts.is_empty() {
            return None;
        }
        let annotations = Part::Field("annotations".into(), Node::Map(parts));
        Some(match (is_certain, reasons.as_slice()) {
            (true, _) | (_, []) => annotations,
            (false, [only]) => Part::Block(format!("if {only}"), vec![annotations]),
            (false, reasons) => Part::Block(format!("if or {}", reasons.join(" ")), vec![annotations]),
        })
    }

    /// Whether an object is namespaced. Like kustomize, assume so for unknown kinds.
    fn is_in_namespace(&self, object: &Object) -> bool {
        let kind = object.kind();
        let api_version = object.value["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = gvk::split(api_version);
        if let Some(known) = find_kubernetes_kind(None, group, version, kind) {
            return known.is_namespaced;
        }
        let is_cluster_scoped =
            |crd: Crd<'_>| (crd.group(), crd.kind()) == (group, kind) && !crd.is_namespaced();
        let mut crds = self
            .config
            .objects
            .iter()
            .filter_map(|object| Crd::read(&object.value));
        kind != KIND && !crds.any(is_cluster_scoped)
    }

    /// Whether an object grants the manager permissions that `watchNamespaces` restricts.
    fn follows_namespaces(&self, object: &Object) -> bool {
        let is_manager = match object.kind() {
            "Role" => self.is_namespaced && object.name() == MANAGER_ROLE,
            "RoleBinding" if self.is_namespaced => object.value["roleRef"]["name"] == MANAGER_ROLE,
            "ClusterRoleBinding" if !self.is_namespaced => object.value["roleRef"]["name"] == MANAGER_ROLE,
            _ => false,
        };
        is_manager && self.is_ours && self.config.kept_namespace(&object.value).is_none()
    }

    fn in_namespaces(&self, object: &Object) -> String {
        let inner = self.references.in_loop();
        let path = self.references.value("watchNamespaces");
        let mut narrowed = object.clone();
        if object.kind() == "ClusterRoleBinding" {
            // A RoleBinding to the same ClusterRole only grants its rules in one namespace.
            narrowed.value["kind"] = json!("RoleBinding");
        }
        let mut parts = self.parts(&inner, &narrowed, None);
        for part in &mut parts {
            if let Part::Field(key, Node::Map(fields)) = part
                && key == "metadata"
            {
                let namespace = Part::Field("namespace".into(), Node::Text("{{ . | quote }}".into()));
                fields.retain(|field| !matches!(field, Part::Field(key, _) if key == "namespace"));
                fields.push(namespace);
            }
        }
        let each = format!("---\n{}", print_document(&parts));
        if self.is_namespaced {
            return format!(
                "{{{{- range {path} | default (list .Release.Namespace) }}}}\n{each}{{{{- end }}}}\n"
            );
        }
        let whole = self.document(self.references, object, None);
        let everywhere = self.references.value("rbac.clusterWide");
        format!(
            "{{{{- if and {path} (not {everywhere}) }}}}\n{{{{- range {path} }}}}\n{each}{{{{- end }}}}\n{{{{- else }}}}\n{whole}{{{{- end }}}}\n"
        )
    }
}

const MANAGER_ROLE: &str = "manager-role";

fn user_role(object: &Object) -> Option<(&'static str, &'static str)> {
    USER_ROLES
        .iter()
        .find(|(suffix, _)| object.name().ends_with(suffix))
        .copied()
}

/// The spec of a CRD. Only its conversion refers to other objects.
fn crd_spec(references: &References, spec: &Value) -> Node {
    let map = spec.as_object().cloned().unwrap_or_default();
    let fields = map.iter().map(|(key, value)| {
        let node = match key.as_str() {
            "conversion" => references.replace_field("CustomResourceDefinition", key, value),
            _ => Node::Value(value.clone()),
        };
        Part::Field(key.clone(), node)
    });
    Node::Map(fields.collect())
}

fn certificate_spec(references: &References, object: &Object, spec: &Value) -> Node {
    let mut node = references.replace_field("Certificate", "spec", spec);
    if let (Node::Map(parts), Some(issuer)) = (&mut node, issuer_value(object)) {
        for part in parts {
            if matches!(part, Part::Field(key, _) if key == "issuerRef") {
                let given = Part::Field(
                    "issuerRef".into(),
                    Node::Map(vec![Part::Lines("toYaml .".into())]),
                );
                *part = Part::Either(
                    format!("with {}", references.value(issuer)),
                    vec![given],
                    vec![part.clone()],
                );
            }
        }
    }
    node
}

/// The value that overrides the issuer of a certificate. Same for the issuer itself, which is left
/// out once the value is set.
fn issuer_value(object: &Object) -> Option<&'static str> {
    let values = object.conditions.iter().map(|condition| condition.value);
    let mut issuers = values.filter_map(|value| ISSUERS.iter().find(|(feature, _)| *feature == value));
    issuers.next().map(|(_, issuer)| *issuer)
}

/// Endpoint fields that are only needed if metrics are served over HTTPS.
const SECURE: &[&str] = &["authorization", "bearerTokenFile", "tlsConfig"];

/// The spec of a ServiceMonitor. Adds the scrape interval to its endpoints, and TLS settings that
/// may depend on a feature.
fn monitor_spec(references: &References, object: &Object, spec: &Value) -> Node {
    let map = spec.as_object().cloned().unwrap_or_default();
    let fields = map.iter().map(|(key, value)| {
        let node = match (key.as_str(), value) {
            ("endpoints", Value::Array(endpoints)) => {
                let endpoints = endpoints.iter().enumerate();
                let endpoints = endpoints.map(|(place, endpoint)| {
                    Part::Item(Node::Map(monitor_endpoint(references, object, place, endpoint)))
                });
                Node::List(endpoints.collect())
            }
            _ => references.replace_field("ServiceMonitor", key, value),
        };
        Part::Field(key.clone(), node)
    });
    Node::Map(fields.collect())
}

fn monitor_endpoint(references: &References, object: &Object, place: usize, endpoint: &Value) -> Vec<Part> {
    let map = endpoint.as_object().cloned().unwrap_or_default();
    let (secure, plain): (Vec<_>, Vec<_>) = map.iter().partition(|(key, _)| SECURE.contains(&key.as_str()));
    let field = |(key, value): (&String, &Value)| match key.as_str() {
        "tlsConfig" => tls_settings(references, object, place, value),
        _ => Part::Field(
            key.clone(),
            references.replace_field("ServiceMonitor", key, value),
        ),
    };
    // A map must start with a field rather than a block.
    let mut parts: Vec<Part> = plain.into_iter().map(field).collect();
    let secure: Vec<Part> = secure.into_iter().map(field).collect();
    match references.has_secure_metrics() && !parts.is_empty() && !secure.is_empty() {
        true => parts.push(Part::Block(
            format!("if {}", references.value("metrics.secure")),
            secure,
        )),
        false => parts.extend(secure),
    }
    for key in ["interval", "scrapeTimeout"] {
        let path = references.value(&format!("metrics.serviceMonitor.{key}"));
        let value = Part::Field(key.into(), Node::Text("{{ . }}".into()));
        parts.push(Part::Block(format!("with {path}"), vec![value]));
    }
    parts
}

fn tls_settings(references: &References, object: &Object, endpoint: usize, own: &Value) -> Part {
    let field = |settings| {
        let node = references.replace_field("ServiceMonitor", "tlsConfig", settings);
        Part::Field("tlsConfig".into(), node)
    };
    let mut part = field(own);
    for (conditions, patch) in &object.patches {
        let operations = patch.as_array().into_iter().flatten();
        let mut operations = operations.filter_map(read_tls_operation);
        let settings = operations.find(|(changed, _)| *changed == endpoint);
        if let (Some((_, settings)), Some(condition)) = (settings, condition(references, conditions)) {
            part = Part::Either(format!("if {condition}"), vec![field(settings)], vec![part]);
        }
    }
    part
}
