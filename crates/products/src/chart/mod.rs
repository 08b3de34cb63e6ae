//! Generates a Helm chart for a project.
//!
//! The input is the parsed manifests in `config/`, which `make deploy` applies, commands add to,
//! and users edit. A kustomize component becomes a condition on a value, and a directory in
//! `config/` becomes a directory in `templates/`. This module never reads an existing chart;
//! `commands/helm` merges the two.
//!
//! To add a value for a field of the Deployment, add a row to a table in `deployment`; for any
//! other value, add a `Setting` here and use it in `documents` or `files/`. A feature of the
//! deployment is a row in `config::FEATURES`, a port of the manager a row in `ports::PORTS`, and a
//! field that refers to another object a row in `references`. Names within strings are replaced in
//! `text`, and the fields of admission webhooks are in `webhooks`. Test the value in
//! `xtask/src/helm/values.yaml`.

mod conditions;
pub mod config;
mod deployment;
mod documents;
mod lists;
mod ports;
pub(crate) mod references;
pub(crate) mod sharding;
pub(crate) mod size;
pub(crate) mod template;
mod text;
mod values;
mod webhooks;

use std::collections::BTreeMap;

use anyhow::Result;
use rbuilder_kubernetes::crd::Crd;
use serde_json::{Value, json};

use self::config::{BUDGET, CERTIFICATES, Config, METRICS_CERTIFICATE, MONITOR, Object, RULES, WEBHOOKS};
use self::deployment::Manager;
pub(crate) use self::deployment::find_manager;
use self::documents::Documents;
use self::ports::{HEALTH_PORT, METRICS_PORT, Ports, WEBHOOK_PORT, default_port, find_ports};
use self::references::References;
use self::sharding::Sharding;
use self::values::Setting;
use rbuilder_project::plan::Plan;
use rbuilder_project::tree::Tree;

const LABEL: usize = 63;

/// Settings of a chart from PROJECT.
#[derive(Clone, Debug)]
pub struct ChartOptions {
    /// Name of the project and the chart.
    pub name: String,
    /// Path of the chart in the project, as shown in the README.
    pub folder: String,
    /// Whether the manager only watches its own namespace.
    pub is_namespaced: bool,
    /// Whether the manager is built with rbuilder, and so supports our arguments and environment
    /// variables.
    pub is_ours: bool,
}

/// A chart, not yet merged with an existing one.
#[derive(Debug, Default)]
pub struct Chart {
    /// File contents by path in the chart, except for README.md.
    pub files: BTreeMap<String, String>,
    /// README.md with a placeholder for the table of values.
    readme: String,
    settings: Vec<Setting>,
    /// Warnings about objects that `config/` deploys but the chart doesn't contain, as message and
    /// help.
    pub warnings: Vec<(String, String)>,
}

/// Generates a project's chart with the changes in `plan`.
///
/// # Errors
/// Fails if `config/` can't be read, or if it contains no manager.
pub fn make_chart(plan: &Plan, tree: &Tree, options: &ChartOptions) -> Result<Chart> {
    let config = Config::read(plan, tree)?;
    let deployment = find_manager(&config)?;
    let mut patched = deployment.clone();
    let sharding = Sharding::take(&config, &mut patched);
    let ports = match options.is_ours {
        true => find_ports(&config),
        false => Ports::default(),
    };
    let references =
        References::new(&options.name, &config, deployment).with_values(options.is_namespaced, ports.clone());
    let mut manager = Manager::new(
        &references,
        &config,
        options.is_ours,
        options.is_namespaced,
        ports.clone(),
    )
    .with_sharding(sharding.clone());
    let documents = Documents {
        config: &config,
        references: &references,
        is_namespaced: options.is_namespaced,
        is_ours: options.is_ours,
    };
    let mut chart = Chart::default();
    for object in config
        .objects
        .iter()
        // The namespace is chosen by whoever installs the chart.
        .filter(|object| object.kind() != "Namespace")
    {
        let is_manager = std::ptr::eq(object, deployment);
        let object = if is_manager { &patched } else { object };
        let text = documents.print(object, &mut manager, is_manager)?;
        let path = template_path(&object.path);
        chart.files.entry(path).or_default().push_str(&text);
    }
    let mut settings = settings_before(&config, options);
    settings.append(&mut manager.settings);
    settings.extend(settings_after(&config, &ports, sharding.as_ref()));
    chart.warnings.clone_from(&config.warnings);
    chart.warnings.append(&mut manager.warnings);
    chart.warnings.extend(warn_of_names(&references, &settings));
    for (path, text) in fixed_files(&config, deployment, options) {
        // Append, because a manifest may have the same path as one of these files.
        chart.files.entry(path).or_default().push_str(&text);
    }
    // README.md depends on the user's values, so `print_readme` renders it later.
    chart.readme = chart.files.remove(README).unwrap_or_default();
    chart
        .files
        .insert("values.yaml".into(), values::print_values(&settings));
    chart
        .files
        .insert("values.schema.json".into(), values::print_schema(&settings));
    chart.warnings.extend(size::check_release(&chart.files));
    chart.settings = settings;
    Ok(chart)
}

/// Warns about values that contain a project name, because names in values can't follow the
/// release.
fn warn_of_names(references: &References, settings: &[Setting]) -> Vec<(String, String)> {
    let named = settings
        .iter()
        .filter_map(|setting| Some((setting.path, find_name(references, &setting.default)?)));
    named
        .map(|(path, text)| {
            (
                format!("`{path}` in values.yaml has `{text}`, which is the same in every release of the chart"),
                "set it in an environment variable whose value is the name of a Service, or let users of the chart set it"
                    .to_owned(),
            )
        })
        .collect()
}

fn find_name<'v>(references: &References, value: &'v Value) -> Option<&'v str> {
    match value {
        Value::String(text) => references.names_project(text).then_some(text),
        Value::Array(items) => items.iter().find_map(|item| find_name(references, item)),
        Value::Object(map) => map.values().find_map(|value| find_name(references, value)),
        _ => None,
    }
}

/// Path of the README in a chart.
pub const README: &str = "README.md";

/// Placeholder image in `config/`, which no cluster can pull.
const PLACEHOLDER: &str = "controller";

impl Chart {
    /// Renders README.md for the user's values.yaml. Missing values are shown with the chart's
    /// defaults.
    pub fn print_readme(&self, values: &Value) -> String {
        let table = values::print_table(&self.settings, values);
        self.readme.replace("TABLE\n", &table)
    }
}

/// Whether the values name an image that a cluster could pull.
pub fn has_image(values: &Value) -> bool {
    let repository = values["image"]["repository"].as_str().unwrap_or_default();
    !["", PLACEHOLDER].contains(&repository)
}

/// Path of a manifest's template, e.g. `templates/rbac/role.yaml` for `config/rbac/role.yaml`.
fn template_path(path: &str) -> String {
    let within = path.strip_prefix("config/").unwrap_or(path);
    let within = within.replace("crd/bases/", "crd/");
    let stem = ["yaml", "yml", "json"]
        .iter()
        .find_map(|end| within.strip_suffix(&format!(".{end}")));
    format!("templates/{}.yaml", stem.unwrap_or(&within))
}

fn fixed_files(config: &Config, manager: &Object, options: &ChartOptions) -> Vec<(String, String)> {
    let limit = fullname_limit(config);
    let account = &manager.value["spec"]["template"]["spec"]["serviceAccountName"];
    let namespace = match config.namespace.as_str() {
        "" => format!("{}-system", options.name),
        namespace => namespace.to_owned(),
    };
    let fill = |text: &str| {
        text.replace("CHART", &options.name)
            .replace("MANAGER", manager.name())
            .replace("ACCOUNT", account.as_str().unwrap_or("controller-manager"))
            .replace("LIMIT", &limit.to_string())
            // Longer names are truncated and get a suffix of a hyphen and eight hash digits.
            .replace("CUT", &limit.saturating_sub(9).to_string())
            .replace("PATH", &options.folder)
            .replace("NAMESPACE", &namespace)
            .replace("CONVERSIONS\n", &conversion_notes(config))
    };
    [
        ("templates/_helpers.tpl", include_str!("files/helpers.tpl")),
        ("templates/NOTES.txt", include_str!("files/NOTES.txt")),
        (
            "templates/manager/pod_disruption_budget.yaml",
            include_str!("files/pod_disruption_budget.yaml"),
        ),
        (
            "templates/extra_objects.yaml",
            include_str!("files/extra_objects.yaml"),
        ),
        (".helmignore", include_str!("files/helmignore")),
        (README, include_str!("files/README.md")),
    ]
    .map(|(path, text)| (path.to_owned(), fill(text)))
    .into_iter()
    .chain([("Chart.yaml".to_owned(), chart_file(&options.name))])
    .collect()
}

/// Notes about CRDs with conversion webhooks, since such a CRD outlives the manager that serves its
/// webhook.
fn conversion_notes(config: &Config) -> String {
    let converted = config
        .objects
        .iter()
        .filter(|object| Crd::read(&object.value).is_some_and(Crd::has_webhook));
    let commands: String = converted
        .map(|crd| {
            format!(
                "  kubectl patch crd {} --type=merge --patch='{{\"spec\":{{\"conversion\":{{\"strategy\":\"None\",\"webhook\":null}}}}}}'\n",
                crd.name()
            )
        })
        .collect();
    match commands.is_empty() {
        true => String::new(),
        false => format!(
            "{{{{- if or .Values.crds.keep (not .Values.crds.enabled) }}}}\n\nThe manager converts the versions of objects. Without it, objects \
             cannot be read in other versions than the stored\none. If you uninstall the release and do not install it again, turn the \
             conversions off:\n\n{commands}{{{{- end }}}}\n"
        ),
    }
}

/// Maximum length of the name prefix for which all Service names still fit in a DNS label.
fn fullname_limit(config: &Config) -> usize {
    let services = config.objects.iter().filter(|object| object.kind() == "Service");
    let longest = services.map(|object| object.name().len() + 1).max().unwrap_or(20);
    LABEL.saturating_sub(longest).max(16)
}

/// Chart.yaml. Lines that users change are never adjacent to lines that we change, so that both
/// merge.
fn chart_file(name: &str) -> String {
    let name = rbuilder_generator::yaml::to_string(&json!(name));
    format!(
        "apiVersion: v2\nname: {name}description: A Kubernetes operator\ntype: application\n\n# Version of the chart.\nversion: \
         0.1.0\n\n# Version of the operator, the default tag of its image.\nappVersion: \"0.1.0\"\n"
    )
}

fn settings_before(config: &Config, options: &ChartOptions) -> Vec<Setting> {
    let mut settings = vec![
        Setting::new(
            "nameOverride",
            json!(""),
            values::string(),
            "Overrides the name of the chart in labels and object names.",
        ),
        Setting::new(
            "fullnameOverride",
            json!(""),
            values::string(),
            "Overrides the prefix of all object names.",
        ),
        Setting::new(
            "commonLabels",
            json!({}),
            values::strings_by_name(),
            "Additional labels of all objects.",
        ),
    ];
    if options.is_ours {
        let about = match options.is_namespaced {
            true => {
                "Namespaces to watch; only the release namespace if empty. The manager gets a Role in each of them."
            }
            false => {
                "Namespaces to watch; all if empty. Limits the manager's permissions to these namespaces, unless `rbac.clusterWide` is true."
            }
        };
        settings.push(Setting::new(
            "watchNamespaces",
            json!([]),
            values::strings(),
            about,
        ));
    }
    let is_cluster_scoped =
        |object: &Object| Crd::read(&object.value).is_some_and(|crd| !crd.is_namespaced());
    let is_wide = config.objects.iter().any(is_cluster_scoped);
    let flag = |path, default: bool, about| Setting::new(path, json!(default), values::flag(), about);
    settings.extend([
        flag(
            "crds.enabled",
            true,
            "Install and upgrade the CRDs with the release.",
        ),
        flag(
            "crds.keep",
            true,
            "Keep the CRDs, and with them all custom resources, when the release is uninstalled.",
        ),
        Setting::new(
            "crds.annotations",
            json!({}),
            values::strings_by_name(),
            "Annotations of the CRDs.",
        ),
        flag(
            "rbac.create",
            true,
            "Create the roles of the manager and their bindings.",
        ),
    ]);
    if options.is_ours && !options.is_namespaced {
        settings.push(flag("rbac.clusterWide", is_wide, "Grant the permissions cluster-wide even if `watchNamespaces` is set; required for cluster-scoped kinds."));
    }
    settings.extend([
        flag(
            "rbac.userRoles.create",
            true,
            "Create admin, editor and viewer roles of each kind, for users of the operator.",
        ),
        flag(
            "rbac.userRoles.aggregate",
            false,
            "Aggregate these roles to the built-in roles admin, edit and view.",
        ),
        flag(
            "serviceAccount.create",
            true,
            "Create the service account of the manager.",
        ),
        Setting::new(
            "serviceAccount.name",
            json!(""),
            values::string(),
            "Name of the service account; derived from the release if empty.",
        ),
        Setting::new(
            "serviceAccount.annotations",
            json!({}),
            values::strings_by_name(),
            "Annotations of the service account, for example for workload identity.",
        ),
    ]);
    settings
}

fn settings_after(config: &Config, ports: &Ports, sharding: Option<&Sharding>) -> Vec<Setting> {
    let mut settings = Vec::new();
    let is_on = |value: &str| json!(config.enabled.contains(value));
    let feature = |path, about| Setting::new(path, is_on(path), values::flag(), about);
    let text = |path, about| Setting::new(path, json!(""), values::string(), about);
    let port = |path, about| {
        let number = default_port(ports, path)?;
        Some(Setting::new(path, json!(number), values::port(), about))
    };
    settings.extend(port(HEALTH_PORT, "Port of the health probes in the pods."));
    if config.has("metrics.enabled") {
        settings.push(feature(
            "metrics.enabled",
            "Serve metrics, with a Service and the role to read them.",
        ));
    }
    if let Some(port) = port(METRICS_PORT, "Port of the metrics in the pods.") {
        settings.push(port);
        settings.push(Setting::new(
            "metrics.secure",
            json!(true),
            values::flag(),
            "Serve metrics over HTTPS to authorized clients; if false, over HTTP to everyone.",
        ));
    }
    if config.has("metrics.serviceMonitor.enabled") {
        settings.extend([
            feature(
                "metrics.serviceMonitor.enabled",
                "Create a ServiceMonitor; needs the CRDs of the Prometheus Operator.",
            ),
            Setting::new(
                "metrics.serviceMonitor.labels",
                json!({}),
                values::strings_by_name(),
                "Labels of the ServiceMonitor, for Prometheus to select it.",
            ),
            text(
                "metrics.serviceMonitor.interval",
                "Scrape interval, such as `30s`; the default of Prometheus if empty.",
            ),
            text(
                "metrics.serviceMonitor.scrapeTimeout",
                "Scrape timeout, such as `10s`; the default of Prometheus if empty.",
            ),
        ]);
    }
    if config
        .objects
        .iter()
        .any(|object| object.kind() == "PrometheusRule")
    {
        settings.push(Setting::new(
            RULES,
            is_on(MONITOR),
            values::flag(),
            "Create the PrometheusRule with the alerts; needs the CRDs of the Prometheus Operator.",
        ));
    }
    if config.has(METRICS_CERTIFICATE) {
        settings.extend([
            feature(METRICS_CERTIFICATE, "Let cert-manager issue the certificate of the metrics, and the ServiceMonitor verify it; needs cert-manager."),
            Setting::new("metrics.certManager.issuerRef", json!({}), values::object(), "Issuer of the certificate, with `kind` and `name`; a self-signed issuer of the chart if empty."),
        ]);
    }
    if config.has(WEBHOOKS) {
        settings.push(feature(
            WEBHOOKS,
            "Serve the webhooks. Without cert-manager the manager issues their certificate.",
        ));
        settings.extend(port(WEBHOOK_PORT, "Port of the webhooks in the pods."));
    }
    let is_configuration = |object: &Object| object.kind().ends_with("WebhookConfiguration");
    if config.has(WEBHOOKS) && config.objects.iter().any(is_configuration) {
        settings.extend([
            Setting::new(
                "webhooks.failurePolicy",
                json!(""),
                json!({ "enum": ["", "Fail", "Ignore"] }),
                "Failure policy of all admission webhooks; that of each webhook if empty.",
            ),
            Setting::new(
                "webhooks.timeoutSeconds",
                Value::Null,
                json!({ "type": ["integer", "null"], "minimum": 1, "maximum": 30 }),
                "Timeout of all admission webhooks in seconds; that of each webhook if null.",
            ),
            Setting::new(
                "webhooks.namespaceSelector",
                json!({}),
                values::object(),
                "Requirements for the namespaces of objects, in addition to those of each webhook.",
            ),
            Setting::new(
                "webhooks.objectSelector",
                json!({}),
                values::object(),
                "Requirements for the labels of objects, in addition to those of each webhook.",
            ),
        ]);
    }
    if config.has(CERTIFICATES) {
        settings.extend([
            feature(CERTIFICATES, "Let cert-manager issue the certificate of the webhooks and inject its CA; needs cert-manager."),
            Setting::new("webhooks.certManager.issuerRef", json!({}), values::object(), "Issuer of the certificate, with `kind` and `name`; a self-signed issuer of the chart if empty."),
        ]);
    }
    if config.has("networkPolicy.enabled") {
        settings.push(feature(
            "networkPolicy.enabled",
            "Deny traffic to the manager except to its metrics and webhooks.",
        ));
    }
    settings.extend(
        sharding
            .into_iter()
            .flat_map(|sharding| sharding.settings(config)),
    );
    let share = json!({ "type": ["integer", "string", "null"] });
    settings.extend([
        Setting::new(
            BUDGET,
            json!(false),
            values::flag(),
            match sharding {
                Some(_) => {
                    "Create a PodDisruptionBudget, with shards instead of the one that comes with them."
                }
                None => "Create a PodDisruptionBudget.",
            },
        ),
        Setting::new(
            "podDisruptionBudget.minAvailable",
            json!(1),
            share.clone(),
            "Minimum number or percentage of available pods.",
        ),
        Setting::new(
            "podDisruptionBudget.maxUnavailable",
            Value::Null,
            share,
            "Maximum number or percentage of unavailable pods, instead of `minAvailable`.",
        ),
        Setting::new(
            "extraObjects",
            json!([]),
            values::objects(),
            "Additional objects of the release; template expressions in their strings are rendered.",
        ),
    ]);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_the_paths_of_their_manifests() {
        for (path, expected) in [
            ("config/rbac/role.yaml", "templates/rbac/role.yaml"),
            ("config/crd/bases/a_b.yaml", "templates/crd/a_b.yaml"),
            ("config/extra/x.yml", "templates/extra/x.yaml"),
            ("deploy/x.json", "templates/deploy/x.yaml"),
        ] {
            assert_eq!(template_path(path), expected);
        }
    }
}
