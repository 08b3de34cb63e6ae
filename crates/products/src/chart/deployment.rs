//! Renders the manager's Deployment. Fields that users are likely to change become values, with
//! their defaults from the manifest.

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use super::conditions::{condition, is_certain};
use super::config::{CERTIFICATES, Condition, Config, METRICS, Object, WEBHOOKS};
use super::lists::{Entry, Lists};
use super::ports::{
    HEALTH_FLAG, HEALTH_PORT, METRICS_PORT, Ports, WEBHOOK_PORT, default_port, health_argument,
};
use super::references::{MANAGED_BY, References};
use super::sharding::{SPREAD, Sharding};
use super::template::{Node, Part, quote};
use super::values::{self, Setting};
use rbuilder_project::labels::NAME_LABEL;

const CONTAINER: &str = "manager";
const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";
/// Environment variable with the name of the Secret for the manager's self-issued certificate.
const CERTIFICATE_SECRET: &str = "WEBHOOK_CERT_SECRET";
const METRICS_ADDRESS: &str = "METRICS_BIND_ADDRESS";
/// Key for template text in place of an environment variable's value.
const TEMPLATE: &str = "template";

/// Finds the manager's Deployment. Fails if there is none, or if there are several and none is
/// recognizable as the manager's.
pub(crate) fn find_manager(config: &Config) -> Result<&Object> {
    let all: Vec<&Object> = config
        .objects
        .iter()
        .filter(|object| object.kind() == "Deployment")
        .collect();
    let (name, container) = (config.names.deployment(), config.names.container());
    let is_named = |object: &&&Object| object.name() == name;
    let is_manager = |object: &&&Object| containers(&object.value).any(|own| own["name"] == container);
    let mut managers = all.iter().filter(is_manager);
    let named = managers.clone().find(is_named);
    match (all.as_slice(), named.or_else(|| managers.next())) {
        (_, Some(manager)) => Ok(manager),
        ([only], None) => Ok(only),
        ([], None) => bail!(
            "found no Deployment in config/: list config/manager/manager.yaml in its kustomization; if it was deleted, run `rbuilder update --restore config/manager/manager.yaml`"
        ),
        _ => bail!(
            "found {} Deployments in config/, and none has a container named `{container}`: give the manager's container this name",
            all.len()
        ),
    }
}

fn containers(deployment: &Value) -> impl Iterator<Item = &Value> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    containers.into_iter().flatten()
}

pub(super) struct Manager<'a> {
    references: &'a References,
    pub(super) settings: Vec<Setting>,
    /// Warnings about patches that the template ignores, as message and help.
    pub(super) warnings: Vec<(String, String)>,
    /// Whether the manager is built with rbuilder and has our environment variables.
    is_ours: bool,
    is_namespaced: bool,
    has_webhooks: bool,
    /// Ports that are values of the chart.
    ports: Ports,
    /// Settings of the sharding component, if the project has it.
    sharding: Option<Sharding>,
}

impl<'a> Manager<'a> {
    pub(super) fn new(
        references: &'a References,
        config: &Config,
        is_ours: bool,
        is_namespaced: bool,
        ports: Ports,
    ) -> Self {
        Manager {
            references,
            settings: Vec::new(),
            warnings: Vec::new(),
            is_ours,
            is_namespaced,
            has_webhooks: config.has(WEBHOOKS),
            ports,
            sharding: None,
        }
    }

    pub(super) fn with_sharding(self, sharding: Option<Sharding>) -> Self {
        Manager { sharding, ..self }
    }

    fn add(&mut self, path: &'static str, default: Value, schema: Value, about: &'static str) {
        self.settings.push(Setting::new(path, default, schema, about));
    }

    /// Renders the `spec` of the Deployment. Fails if there is no container.
    pub(super) fn spec(&mut self, object: &Object) -> Result<Part> {
        let mut spec = object.value["spec"].as_object().cloned().unwrap_or_default();
        let Some(container) = manager_container(&spec) else {
            bail!("the Deployment in {} has no container", object.path);
        };
        let lists = Lists::of(object, &container, &mut self.warnings);
        // The order here determines the order in values.yaml.
        self.image(&container);
        let replicas = spec.remove("replicas").unwrap_or(json!(1));
        self.add(
            "replicas",
            replicas,
            json!({ "type": "integer", "minimum": 0 }),
            "Number of replicas. The leader reconciles; all replicas serve webhooks.",
        );
        let mut template = spec.remove("template").unwrap_or_default();
        let selector = spec.remove("selector").unwrap_or_default();
        let pod = std::mem::take(&mut template["spec"]);
        let container = self.container(container, &lists);
        let replicas = Part::Field(
            "replicas".into(),
            Node::Text(format!("{{{{ {} | int }}}}", self.references.value("replicas"))),
        );
        let mut parts = vec![
            match self.sharding {
                Some(_) => Sharding::replicas(self.references, replicas),
                None => replicas,
            },
            Part::Field(
                "selector".into(),
                self.references.replace_field("Deployment", "selector", &selector),
            ),
        ];
        let mut strategy = Vec::new();
        self.take(
            &mut spec,
            &mut strategy,
            "strategy",
            "strategy",
            json!({}),
            values::object(),
            "Update strategy; the Kubernetes default if empty.",
        );
        match self.sharding {
            Some(_) => parts.push(Sharding::strategy(self.references, strategy)),
            None => parts.extend(strategy),
        }
        parts.extend(self.rest("Deployment", &spec));
        let metadata = self.pod_metadata(&template["metadata"]);
        let pod = self.pod(pod.as_object().cloned().unwrap_or_default(), container, &lists);
        parts.push(Part::Field("template".into(), Node::Map(vec![metadata, pod])));
        Ok(Part::Field("spec".into(), Node::Map(parts)))
    }

    /// Turns a field into a value of the chart, unless it refers to an object of the chart.
    #[allow(clippy::too_many_arguments)] // a row of a table
    fn take(
        &mut self,
        map: &mut Map<String, Value>,
        parts: &mut Vec<Part>,
        key: &str,
        path: &'static str,
        empty: Value,
        schema: Value,
        about: &'static str,
    ) {
        let value = map.remove(key);
        if let Some(value) = &value {
            let node = self.references.replace_field("Deployment", key, value);
            // Values can't contain template expressions, so fields that refer to other objects stay
            // in the template.
            if !matches!(node, Node::Value(_)) {
                parts.push(Part::Field(key.into(), node));
                return;
            }
        }
        let (is_string, is_flag) = (empty.is_string(), empty.is_boolean());
        self.add(path, value.unwrap_or(empty), schema, about);
        let path = self.references.value(path);
        parts.push(match is_string {
            true => Part::Block(
                format!("with {path}"),
                vec![Part::Field(key.into(), Node::Text("{{ . | quote }}".into()))],
            ),
            false if is_flag => Part::Block(
                format!("if {path}"),
                vec![Part::Field(key.into(), Node::Value(json!(true)))],
            ),
            false => Part::of_values(key, &path),
        });
    }

    fn rest(&self, kind: &str, map: &Map<String, Value>) -> Vec<Part> {
        let field = |(key, value): (&String, &Value)| {
            Part::Field(key.clone(), self.references.replace_field(kind, key, value))
        };
        map.iter().map(field).collect()
    }

    fn image(&mut self, container: &Map<String, Value>) {
        let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
        let (name, digest) = image.split_once('@').unwrap_or((image, ""));
        // A colon before a slash separates a registry's port, not a tag.
        let (repository, tag) = match name.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag),
            _ => (name, ""),
        };
        let policy = container.get("imagePullPolicy").cloned().unwrap_or(json!(""));
        self.add(
            "image.repository",
            json!(repository),
            values::string(),
            "Image of the manager, without tag.",
        );
        self.add(
            "image.tag",
            json!(tag),
            values::string(),
            "Tag of the image; the chart's `appVersion` if the tag and the digest are empty.",
        );
        self.add(
            "image.digest",
            json!(digest),
            values::string(),
            "Digest of the image, such as `sha256:…`; takes precedence over the tag.",
        );
        self.add(
            "image.pullPolicy",
            policy,
            json!({ "enum": ["", "Always", "IfNotPresent", "Never"] }),
            "Image pull policy; the Kubernetes default if empty.",
        );
    }

    fn pod_metadata(&mut self, metadata: &Value) -> Part {
        self.add(
            "deploymentAnnotations",
            json!({}),
            values::strings_by_name(),
            "Annotations of the Deployment.",
        );
        self.add(
            "podAnnotations",
            json!({}),
            values::strings_by_name(),
            "Annotations of the pods.",
        );
        self.add(
            "podLabels",
            json!({}),
            values::strings_by_name(),
            "Additional labels of the pods.",
        );
        let mut annotations: Vec<Part> = metadata["annotations"]
            .as_object()
            .map(|map| self.rest("Deployment", map))
            .unwrap_or_default();
        let has_own = !annotations.is_empty();
        let path = self.references.value("podAnnotations");
        annotations.push(Part::items_of_values(&path));
        let annotations = Part::Field("annotations".into(), Node::Map(annotations));
        let annotations = match has_own {
            true => annotations,
            false => Part::Block(format!("if {path}"), vec![annotations]),
        };
        let empty = Map::new();
        let own = metadata["labels"].as_object().unwrap_or(&empty);
        let mut labels = vec![Part::Lines(self.references.include("selectorLabels"))];
        // The name is part of `selectorLabels`, and these pods aren't managed by kustomize.
        let is_other = |key: &str| ![NAME_LABEL, MANAGED_BY].contains(&key);
        labels.splice(
            0..0,
            own.iter()
                .filter(|(key, _)| is_other(key))
                .map(|(key, value)| Part::Field(key.clone(), Node::Value(value.clone()))),
        );
        labels.push(Part::items_of_values(&self.references.value("podLabels")));
        let labels = Part::Field("labels".into(), Node::Map(labels));
        Part::Field("metadata".into(), Node::Map(vec![annotations, labels]))
    }

    fn pod(&mut self, mut pod: Map<String, Value>, container: Node, lists: &Lists) -> Part {
        let mut parts = Vec::new();
        for (key, path, empty, schema, about) in POD_VALUES {
            let (empty, schema) = (parse(empty), schema());
            let mut taken = Vec::new();
            self.take(&mut pod, &mut taken, key, path, empty, schema, about);
            parts.extend(match &self.sharding {
                Some(sharding) if *key == SPREAD => sharding.spread(self.references, taken),
                _ => taken,
            });
        }
        let grace = pod.remove("terminationGracePeriodSeconds").unwrap_or(Value::Null);
        self.add("terminationGracePeriodSeconds", grace, values::optional_count(), "Termination grace period in seconds; the Kubernetes default if null. The manager waits up to 30 seconds for running reconciles.");
        // `with` would skip 0, which is a valid period.
        let grace = self.references.value("terminationGracePeriodSeconds");
        parts.push(Part::Block(
            format!("if not (kindIs \"invalid\" {grace})"),
            vec![Part::Field(
                "terminationGracePeriodSeconds".into(),
                Node::Text(format!("{{{{ {grace} | int }}}}")),
            )],
        ));
        if pod.remove("serviceAccountName").is_some() {
            parts.push(Part::Field(
                "serviceAccountName".into(),
                self.references.account(),
            ));
        }
        let others = pod.remove("containers").unwrap_or_default();
        let others = others.as_array().into_iter().flatten();
        let others = others.filter(|other| !is_same_name(other, &container));
        let mut containers = vec![Part::Item(container.clone())];
        containers.extend(others.map(|other| Part::Item(self.references.replace("Deployment", other))));
        self.add(
            "extraContainers",
            json!([]),
            values::objects_with("name"),
            "Additional containers of the pods.",
        );
        containers.push(Part::items_of_values(&self.references.value("extraContainers")));
        // `lists` has the volumes, including patched ones.
        pod.remove("volumes");
        parts.extend(self.rest("Deployment", &pod));
        parts.insert(0, Part::Field("containers".into(), Node::List(containers)));
        self.add(
            "extraVolumes",
            json!([]),
            values::objects_with("name"),
            "Additional volumes of the pods.",
        );
        parts.extend(self.list("volumes", &lists.volumes, Some("extraVolumes"), Vec::new()));
        Part::Field("spec".into(), Node::Map(parts))
    }

    fn container(&mut self, mut container: Map<String, Value>, lists: &Lists) -> Node {
        let name = container.remove("name").unwrap_or(json!(CONTAINER));
        let mut parts = vec![
            Part::Field("name".into(), Node::Value(name)),
            Part::Field(
                "image".into(),
                Node::Text(format!("{{{{ {} | quote }}}}", self.references.include("image"))),
            ),
        ];
        let policy = self.references.value("image.pullPolicy");
        parts.push(Part::Block(
            format!("with {policy}"),
            vec![Part::Field(
                "imagePullPolicy".into(),
                Node::Text("{{ . }}".into()),
            )],
        ));
        for key in ["image", "imagePullPolicy", "env", "ports", "volumeMounts"] {
            container.remove(key);
        }
        let arguments = container.remove("args");
        let values: Vec<&str> = CONTAINER_VALUES.iter().map(|row| row.0).collect();
        let is_value = |key: &str| values.contains(&key);
        let fixed = container.iter().filter(|(key, _)| !is_value(key));
        let fixed: Map<String, Value> = fixed.map(|(key, value)| (key.clone(), value.clone())).collect();
        parts.extend(self.rest("Deployment", &fixed));
        for (conditions, field, value) in &lists.fields {
            let field = self.rest("Deployment", &Map::from_iter([(field.clone(), value.clone())]));
            match condition(self.references, conditions) {
                Some(reason) => parts.push(Part::Block(format!("if {reason}"), field)),
                None => parts.extend(field),
            }
        }
        self.arguments(arguments, &mut parts);
        for (key, path, empty, schema, about) in CONTAINER_VALUES {
            let (empty, schema) = (parse(empty), schema());
            self.take(&mut container, &mut parts, key, path, empty, schema, about);
        }
        let variables = self.variables(lists);
        parts.extend(variables);
        parts.extend(self.list("ports", &lists.ports, None, Vec::new()));
        self.add(
            "extraVolumeMounts",
            json!([]),
            values::objects_with("name"),
            "Additional volume mounts of the manager's container.",
        );
        parts.extend(self.list(
            "volumeMounts",
            &lists.mounts,
            Some("extraVolumeMounts"),
            Vec::new(),
        ));
        Node::Map(parts)
    }

    /// Adds the arguments. Excludes the health probe port's argument if that port is a value.
    fn arguments(&mut self, arguments: Option<Value>, parts: &mut Vec<Part>) {
        let mut arguments = arguments;
        let health = default_port(&self.ports, HEALTH_PORT);
        if let (Some(port), Some(Value::Array(arguments))) = (health, &mut arguments) {
            arguments.retain(|argument| *argument != *health_argument(port));
        }
        self.add(
            "args",
            arguments.unwrap_or(json!([])),
            values::strings(),
            "Arguments of the manager.",
        );
        self.add(
            "extraArgs",
            json!([]),
            values::strings(),
            "Additional arguments, after `args`.",
        );
        let both = ["args", "extraArgs"].map(|path| self.references.value(path));
        let [arguments, extra] = &both;
        let given = format!("concat ({arguments} | default list) ({extra} | default list)");
        // Add the flag with the probe port, unless it is among the user's arguments.
        let all = match health {
            Some(_) => {
                let port = self.references.value(HEALTH_PORT);
                let address = format!("list (printf \"{HEALTH_FLAG}=:%d\" ({port} | int))");
                format!(
                    "{given} (ternary (list) ({address}) (contains \"{HEALTH_FLAG}\" (join \" \" ({given}))))"
                )
            }
            None => given,
        };
        let lines = match &self.sharding {
            Some(sharding) => sharding.arguments(),
            None => Part::Lines("toYaml .".into()),
        };
        parts.push(Part::Block(
            format!("with {all}"),
            vec![Part::Field("args".into(), Node::Map(vec![lines]))],
        ));
    }

    /// Environment variables: those that depend on a feature, then those from the values.
    fn variables(&mut self, lists: &Lists) -> Option<Part> {
        let is_value = |(conditions, variable): &&Entry| {
            let node = self
                .references
                .replace("Deployment", &json!({ "env": [variable] }));
            conditions.is_empty() && matches!(node, Node::Value(_)) && !self.is_watched(variable)
        };
        let base: Vec<Value> = lists
            .variables
            .iter()
            .filter(is_value)
            .map(|(_, value)| value.clone())
            .collect();
        let mut others: Vec<Entry> = lists
            .variables
            .iter()
            .filter(|entry| !is_value(entry) && !self.is_watched(&entry.1))
            .cloned()
            .collect();
        if self.is_ours {
            self.follow_ports(&mut others);
        }
        if self.has_webhooks && self.is_ours {
            others.extend(self.certificate_secret(&others));
        }
        let watched = self.is_ours.then(|| self.watched_namespaces());
        self.add(
            "env",
            json!(base),
            values::objects_with("name"),
            "Environment variables of the manager, each with `name` and `value` or `valueFrom`.",
        );
        self.list("env", &others, Some("env"), watched.into_iter().collect())
    }

    fn is_watched(&self, variable: &Value) -> bool {
        self.is_ours && variable["name"] == WATCH_NAMESPACE
    }

    /// Environment variable with the Secret for the manager's certificate. Like all names in a
    /// chart, the Secret's name contains the release name.
    fn certificate_secret(&self, others: &[Entry]) -> Option<Entry> {
        let secret = self.references.webhook_secret()?;
        let is_set = others
            .iter()
            .any(|(_, variable)| variable["name"] == CERTIFICATE_SECRET);
        let conditions = [(WEBHOOKS, true), (CERTIFICATES, false)];
        let conditions = conditions.map(|(value, is_true)| Condition { value, is_true });
        let value = self.references.name(secret);
        let variable = json!({ "name": CERTIFICATE_SECRET, "value": { TEMPLATE: value } });
        (!is_set).then(|| (conditions.to_vec(), variable))
    }

    fn follow_ports(&self, variables: &mut Vec<Entry>) {
        let on = |value| vec![Condition { value, is_true: true }];
        let mut add = |value: &'static str, name: &str, text: String| {
            if !variables.iter().any(|(_, variable)| variable["name"] == name) {
                variables.push((on(value), json!({ "name": name, "value": { TEMPLATE: text } })));
            }
        };
        if default_port(&self.ports, METRICS_PORT).is_some() {
            let secure = self.references.value("metrics.secure");
            add(METRICS, "METRICS_SECURE", format!("{{{{ {secure} | quote }}}}"));
        }
        if default_port(&self.ports, WEBHOOK_PORT).is_some() {
            let port = self.references.value(WEBHOOK_PORT);
            add(
                WEBHOOKS,
                "WEBHOOK_PORT",
                format!("{{{{ {port} | int | quote }}}}"),
            );
        }
        let address = default_port(&self.ports, METRICS_PORT).map(|port| format!(":{port}"));
        let Some(address) = address else { return };
        let port = self.references.value(METRICS_PORT);
        for (_, variable) in variables {
            if variable["name"] == METRICS_ADDRESS && variable["value"] == *address {
                variable["value"] = json!({ TEMPLATE: format!("\":{{{{ {port} | int }}}}\"") });
            }
        }
    }

    fn watched_namespaces(&self) -> Part {
        let path = self.references.value("watchNamespaces");
        let variable = |value: Part| {
            Part::Item(Node::Map(vec![
                Part::Field("name".into(), Node::Value(json!(WATCH_NAMESPACE))),
                value,
            ]))
        };
        let list = Part::Field("value".into(), Node::Text("{{ join \",\" . | quote }}".into()));
        match self.is_namespaced {
            false => Part::Block(format!("with {path}"), vec![variable(list)]),
            true => {
                let own = json!({ "fieldRef": { "fieldPath": "metadata.namespace" } });
                let own = Part::Field("valueFrom".into(), Node::Value(own));
                Part::Either(format!("with {path}"), vec![variable(list)], vec![variable(own)])
            }
        }
    }

    /// A list of conditional entries, followed by the entries in a value. `None` if it would always
    /// be empty.
    fn list(&self, key: &str, entries: &[Entry], value: Option<&str>, first: Vec<Part>) -> Option<Part> {
        let mut parts = first;
        let mut reasons: Vec<String> = Vec::new();
        let is_always_first = self.is_namespaced && !parts.is_empty();
        if !is_always_first && !parts.is_empty() {
            reasons.push(self.references.value("watchNamespaces"));
        }
        for (conditions, entry) in entries {
            let item = Part::Item(self.entry(key, entry));
            let Some(reason) = condition(self.references, conditions) else {
                parts.push(item);
                continue;
            };
            let control = format!("if {reason}");
            let is_same = |part: &&mut Part| matches!(part, Part::Block(known, _) if *known == control);
            // Entries with the same condition share a block.
            match parts.iter_mut().find(is_same) {
                Some(Part::Block(_, items)) => items.push(item),
                _ => {
                    // Arguments of `or` need parentheses, unless they are a single word.
                    reasons.push(if reason.contains(' ') {
                        format!("({reason})")
                    } else {
                        reason
                    });
                    parts.push(Part::Block(control, vec![item]));
                }
            }
        }
        if let Some(path) = value {
            let path = self.references.value(path);
            parts.push(Part::items_of_values(&path));
            reasons.push(path);
        }
        if parts.is_empty() {
            return None;
        }
        let alternatives: Vec<&[Condition]> = entries
            .iter()
            .map(|(conditions, _)| conditions.as_slice())
            .collect();
        let list = Part::Field(key.into(), Node::List(parts));
        Some(match reasons.as_slice() {
            _ if is_always_first || is_certain(&alternatives) => list,
            [] => list,
            [only] => Part::Block(format!("if {only}"), vec![list]),
            reasons => Part::Block(format!("if or {}", reasons.join(" ")), vec![list]),
        })
    }

    fn entry(&self, key: &str, entry: &Value) -> Node {
        if let Some(text) = entry["value"][TEMPLATE].as_str() {
            let name = Part::Field("name".into(), Node::Value(entry["name"].clone()));
            let value = Part::Field("value".into(), Node::Text(text.to_owned()));
            return Node::Map(vec![name, value]);
        }
        let replaced = self.references.replace("Deployment", &json!({ key: [entry] }));
        let unchanged = || Node::Value(entry.clone());
        let Node::Map(mut fields) = replaced else {
            return unchanged();
        };
        match fields.pop() {
            Some(Part::Field(_, Node::List(mut items))) => match items.pop() {
                Some(Part::Item(node)) => node,
                _ => unchanged(),
            },
            _ => unchanged(),
        }
    }
}

/// A row in a table of values: field, path, default as JSON, schema, description.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    fn() -> Value,
    &'static str,
);

#[rustfmt::skip]
const POD_VALUES: &[Row] = &[
    ("imagePullSecrets", "imagePullSecrets", "[]", || values::objects_with("name"), "Image pull secrets, each with a `name`."),
    ("initContainers", "initContainers", "[]", || values::objects_with("name"), "Init containers of the pods."),
    ("securityContext", "podSecurityContext", "{}", values::object, "Security context of the pods."),
    ("nodeSelector", "nodeSelector", "{}", values::strings_by_name, "Node selector of the pods."),
    ("tolerations", "tolerations", "[]", values::objects, "Tolerations of the pods."),
    ("affinity", "affinity", "{}", values::object, "Affinity of the pods."),
    ("topologySpreadConstraints", "topologySpreadConstraints", "[]", values::objects, "Topology spread constraints of the pods."),
    ("priorityClassName", "priorityClassName", "\"\"", values::string, "Priority class of the pods."),
    ("hostNetwork", "hostNetwork", "false", values::flag, "Use the network of the node. `metrics.port` and `webhooks.port` must be free on it."),
    ("dnsPolicy", "dnsPolicy", "\"\"", values::string, "DNS policy of the pods; with `hostNetwork`, `ClusterFirstWithHostNet` resolves Services."),
    ("runtimeClassName", "runtimeClassName", "\"\"", values::string, "Runtime class of the pods."),
];

#[rustfmt::skip]
const CONTAINER_VALUES: &[Row] = &[
    ("envFrom", "envFrom", "[]", values::objects, "ConfigMaps and Secrets that set environment variables."),
    ("resources", "resources", "{}", values::object, "Resource requests and limits of the manager."),
    ("securityContext", "securityContext", "{}", values::object, "Security context of the manager's container."),
    ("livenessProbe", "livenessProbe", "{}", values::object, "Liveness probe of the manager."),
    ("readinessProbe", "readinessProbe", "{}", values::object, "Readiness probe of the manager."),
];

fn parse(default: &str) -> Value {
    serde_json::from_str(default).unwrap_or_default()
}

fn is_same_name(container: &Value, manager: &Node) -> bool {
    let Node::Map(parts) = manager else { return false };
    let name = Part::Field("name".into(), Node::Value(container["name"].clone()));
    parts.first() == Some(&name)
}

/// The container named `manager`, or else the first one.
fn manager_container(spec: &Map<String, Value>) -> Option<Map<String, Value>> {
    let containers = spec.get("template")?["spec"]["containers"].as_array()?;
    let named = containers.iter().find(|container| container["name"] == CONTAINER);
    named.or(containers.first())?.as_object().cloned()
}

pub(super) fn fail(message: &str) -> String {
    format!("fail {}", quote(message))
}
