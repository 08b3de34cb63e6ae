//! Generates a bundle for the Operator Lifecycle Manager, and a catalog of this and earlier
//! releases.
//!
//! The input is the manifests in `config/`, read as for a chart, with the names that kustomize
//! would give them. The lifecycle manager creates the Deployment, the service account, the
//! permissions and the webhooks from the ClusterServiceVersion; everything else is in separate
//! files.
//!
//! The catalog is generated last, from the merged ClusterServiceVersion, so that both contain the
//! user's descriptions. Users usually edit the catalog as well, so a release is added to the
//! existing file (`catalog/release.rs`). Catalogs that the lifecycle manager would reject are never
//! written: see `catalog/shape.rs` for the types of fields, `catalog/check.rs` for rules across
//! documents, and `catalog/channel.rs` for the upgrade graph.

mod base;
mod catalog;
mod csv;
mod deployment;
mod descriptors;
mod entry_markers;
mod permissions;
pub mod version;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rbuilder_generator::{CsvMarkers, yaml};
use rbuilder_kubernetes::crd::{self, Crd};
use serde_json::{Value, json};

pub use self::base::{Base, list_owned};
pub use self::catalog::{Catalog, CheckedRelease, add_release, check_csv};
pub(crate) use self::deployment::find_container;
pub use self::entry_markers::EntryMarkers;
use crate::chart::config::{CERTIFICATES, Condition, Config, METRICS_CERTIFICATE, Object, SHARDING};
use crate::chart::find_manager;
use crate::chart::references::References;
use crate::chart::sharding::turn_off_leader;
use crate::chart::size::check_bundle;
use rbuilder_project::plan::Plan;
use rbuilder_project::tree::Tree;

/// Directory of the bundle.
pub const FOLDER: &str = "bundle";
/// Annotation with the range of versions that an upgrade may skip.
const SKIP_RANGE: &str = "olm.skipRange";
/// Annotation with the tool that created a ClusterServiceVersion. `LAYOUT` is the one with the
/// project layout.
const BUILDER: &str = "operators.operatorframework.io/builder";
const LAYOUT: &str = "operators.operatorframework.io/project_layout";
const ICON: &str = include_str!("icon.svg");

/// Settings of a bundle from PROJECT, Cargo.toml and flags.
#[derive(Clone, Debug)]
pub struct BundleOptions {
    /// Name of the project and the package.
    pub name: String,
    /// Provider of the operator.
    pub provider: String,
    /// Version of the operator, which must be a semantic version.
    pub version: String,
    /// Image of the manager. Defaults to the image in the manifests.
    pub image: Option<String>,
    /// Image of the bundle, referenced by the catalog.
    pub bundle_image: String,
    /// Channels that get the release. Never empty.
    pub channels: Vec<String>,
    /// Channel for users who don't choose one.
    pub default_channel: String,
    /// Version that this release replaces, if requested explicitly.
    pub replaces: Option<String>,
    /// Name of the version that this release replaces in its first channel.
    pub replaced: Option<String>,
    /// Versions that an upgrade to this release skips.
    pub skips: Vec<String>,
    /// Range of versions that an upgrade to this release skips.
    pub skip_range: Option<String>,
    /// Path of an SVG icon in the project.
    pub icon: Option<String>,
    /// Whether the manager only watches its own namespace.
    pub is_namespaced: bool,
    /// Whether the manager is built with rbuilder, and so supports our environment variables.
    pub is_ours: bool,
}

impl BundleOptions {
    pub(crate) fn csv_name(&self, version: &str) -> String {
        format!("{}.v{version}", self.name)
    }

    fn skipped_names(&self) -> Vec<String> {
        self.skips.iter().map(|version| self.csv_name(version)).collect()
    }

    /// Path of the ClusterServiceVersion.
    pub fn csv_path(&self) -> String {
        format!("{FOLDER}/manifests/{}.clusterserviceversion.yaml", self.name)
    }
}

/// A bundle and its ClusterServiceVersion.
#[derive(Debug, Default)]
pub struct Bundle {
    /// File contents by path in the project.
    pub files: BTreeMap<String, String>,
    /// The ClusterServiceVersion.
    pub csv: Value,
    /// Warnings about objects that `config/` deploys but a bundle can't contain, as message and
    /// help.
    pub warnings: Vec<(String, String)>,
}

/// The user's descriptions of the operator and its kinds.
#[derive(Debug)]
pub struct Descriptions<'a> {
    /// The base in `config/manifests/bases`.
    pub base: &'a Base,
    /// `#[csv(…)]` in the source.
    pub markers: &'a [CsvMarkers],
}

struct Deployed {
    objects: Vec<Value>,
    manager: Value,
    namespace: String,
    /// Other namespaces with roles and bindings.
    kept_namespaces: BTreeSet<String>,
    samples: Vec<Value>,
}

/// Generates a project's bundle with the changes in `plan`.
///
/// # Errors
/// Fails if `config/` can't be read, or if it contains no manager or no CRD.
pub fn make_bundle(
    plan: &Plan,
    tree: &Tree,
    options: &BundleOptions,
    descriptions: &Descriptions<'_>,
) -> Result<Bundle> {
    let config = Config::read(plan, tree)?;
    let mut bundle = Bundle {
        warnings: config.warnings.clone(),
        ..Bundle::default()
    };
    if config.enabled.contains(METRICS_CERTIFICATE) {
        bundle.warnings.push((
            "a bundle cannot have a certificate of cert-manager, so the manager serves metrics with a self-signed one".into(),
            "to serve another, set METRICS_CERT_PATH, `volumes` and `volumeMounts` in `spec.config` of the Subscription".into(),
        ));
    }
    let deployed = resolve_objects(plan, tree, &config, options)?;
    if !deployed.objects.iter().any(crd::is_crd) {
        bail!(
            "the project has no CRD: create an API with `rbuilder create api`, and run `rbuilder manifests`"
        );
    }
    let icon = match &options.icon {
        Some(path) => match plan.read(tree, path)? {
            Some(text) if text.contains("<svg") => text,
            Some(_) => bail!("expected an SVG image in {path}"),
            None => bail!("{path} does not exist"),
        },
        None => ICON.to_owned(),
    };
    bundle.csv = csv::make_csv(
        &deployed,
        descriptions,
        options,
        &BASE64_STANDARD.encode(icon.as_bytes()),
        &mut bundle.warnings,
    );
    bundle
        .files
        .insert(options.csv_path(), yaml::to_string(&bundle.csv));
    for object in deployed
        .objects
        .iter()
        .filter(|object| !deployed.is_in_csv(object))
    {
        match deployed.kept_namespace(object) {
            Some(namespace) => bundle.warnings.push(warn_of_namespace(object, namespace)),
            None => add_manifest(&mut bundle, &deployed.without_own_accounts(object)),
        }
    }
    for (path, value) in metadata_files(options) {
        bundle.files.insert(path, yaml::to_string(&value));
    }
    // Check before adding the Dockerfile, which the lifecycle manager doesn't unpack.
    bundle.warnings.extend(check_bundle(&bundle.files));
    bundle
        .files
        .insert("bundle.Dockerfile".into(), dockerfile(options));
    Ok(bundle)
}

fn resolve_objects(plan: &Plan, tree: &Tree, config: &Config, options: &BundleOptions) -> Result<Deployed> {
    let manager = find_manager(config)?;
    let references = References::new(&options.name, config, manager).plain(&options.name);
    let holds = |condition: &Condition| {
        let is_on = match condition.value {
            // The lifecycle manager mounts certificates as files, like cert-manager does. But it
            // doesn't create cert-manager objects, so the manager has to issue its own certificate
            // for metrics.
            CERTIFICATES => true,
            METRICS_CERTIFICATE => false,
            value => config.enabled.contains(value),
        };
        is_on == condition.is_true
    };
    let is_there = |object: &&Object| {
        object.conditions.iter().all(holds) && !object.path.starts_with("config/certmanager/")
    };
    let mut objects = Vec::new();
    for object in config
        .objects
        .iter()
        .filter(is_there)
        .filter(|object| !std::ptr::eq(*object, manager))
    {
        let mut value = references.replace(object.kind(), &object.value).into_value();
        if object.kind() != crd::KIND {
            value["metadata"]["name"] = json!(references.name(object.name()));
        }
        objects.push(value);
    }
    let mut manager = deployment::resolve_manager(manager, &references, &holds, options);
    if config.turns_off_leader && config.enabled.contains(SHARDING) {
        find_container(&mut manager).map(turn_off_leader);
    }
    let samples = Config::read_samples(plan, tree)?;
    Ok(Deployed {
        objects,
        manager,
        namespace: config.namespace.clone(),
        kept_namespaces: config.kept_namespaces.clone(),
        samples,
    })
}

/// Kinds covered by the ClusterServiceVersion.
const IN_CSV: &[&str] = &[
    "Namespace",
    "Deployment",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];
/// Kinds that the lifecycle manager creates from files.
const IN_FILES: &[&str] = &[
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ServiceAccount",
    "Service",
    "ConfigMap",
    "Secret",
    "ServiceMonitor",
    "PrometheusRule",
    "PodDisruptionBudget",
    "PriorityClass",
    "NetworkPolicy",
];

impl Deployed {
    fn deployments(&self) -> impl Iterator<Item = &Value> {
        let others = self
            .objects
            .iter()
            .filter(|object| object["kind"] == "Deployment");
        std::iter::once(&self.manager).chain(others)
    }

    /// Whether the ClusterServiceVersion covers an object. This includes objects derived by the
    /// lifecycle manager: service accounts, their role bindings, and the Services of webhooks.
    fn is_in_csv(&self, object: &Value) -> bool {
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = &object["metadata"]["name"];
        match kind {
            "ServiceAccount" => self.has_permissions(name),
            "Service" => webhooks::service_names(&self.objects).contains(name),
            "RoleBinding" | "ClusterRoleBinding" => self.binds_own_accounts(object),
            "Role" | "ClusterRole" => {
                let bindings = self
                    .objects
                    .iter()
                    .filter(|binding| self.is_referred(object, binding));
                let mut bindings = bindings.peekable();
                bindings.peek().is_some() && bindings.all(|binding| self.binds_own_accounts(binding))
            }
            kind => IN_CSV.contains(&kind),
        }
    }
}

fn warn_of_namespace(object: &Value, namespace: &str) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    (
        format!(
            "{kind} `{name}` in namespace `{namespace}` is not part of the bundle: the Operator Lifecycle Manager creates it in the namespace of the manager alone"
        ),
        "create it in the manager, or ask your users to create it".to_owned(),
    )
}

fn add_manifest(bundle: &mut Bundle, object: &Value) {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if !IN_FILES.contains(&kind) {
        bundle.warnings.push((
            format!(
                "{kind} `{name}` is not part of the bundle: the Operator Lifecycle Manager does not create it"
            ),
            "create it in the manager, or ask your users to create it".to_owned(),
        ));
        return;
    }
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // The lifecycle manager creates everything in the namespace chosen by the user.
        metadata.remove("namespace");
    }
    let api_version = object["apiVersion"]
        .as_str()
        .unwrap_or_default()
        .replace('/', "_");
    let file = match kind {
        crd::KIND => {
            let crd = Crd::of(&object);
            format!("{}_{}", crd.group(), crd.plural())
        }
        kind => format!("{name}_{api_version}_{}", kind.to_lowercase()),
    };
    let path = format!("{FOLDER}/manifests/{}.yaml", file.replace(':', "-"));
    bundle.files.insert(path, yaml::to_string(&object));
}

fn labels(options: &BundleOptions) -> Vec<(&'static str, String)> {
    vec![
        (
            "operators.operatorframework.io.bundle.mediatype.v1",
            "registry+v1".into(),
        ),
        (
            "operators.operatorframework.io.bundle.manifests.v1",
            "manifests/".into(),
        ),
        (
            "operators.operatorframework.io.bundle.metadata.v1",
            "metadata/".into(),
        ),
        (
            "operators.operatorframework.io.bundle.package.v1",
            options.name.clone(),
        ),
        (
            "operators.operatorframework.io.bundle.channels.v1",
            options.channels.join(","),
        ),
        (
            "operators.operatorframework.io.bundle.channel.default.v1",
            options.default_channel.clone(),
        ),
        (
            "operators.operatorframework.io.metrics.project_layout",
            "rust.rbuilder.dev/v1".into(),
        ),
        (
            "operators.operatorframework.io.test.mediatype.v1",
            "scorecard+v1".into(),
        ),
        (
            "operators.operatorframework.io.test.config.v1",
            "tests/scorecard/".into(),
        ),
    ]
}

fn dockerfile(options: &BundleOptions) -> String {
    let labels = labels(options).into_iter();
    let labels: String = labels
        .map(|(key, value)| format!("LABEL {key}={value}\n"))
        .collect();
    format!(
        "FROM scratch\n\n{labels}\nCOPY {FOLDER}/manifests /manifests/\nCOPY {FOLDER}/metadata /metadata/\nCOPY {FOLDER}/tests/scorecard /tests/scorecard/\n"
    )
}

const SCORECARD: &str = "quay.io/operator-framework/scorecard-test:v1.41.1";

fn metadata_files(options: &BundleOptions) -> Vec<(String, Value)> {
    let annotations: Value = labels(options)
        .into_iter()
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    let test = |suite: &str, name: &str| {
        json!({
            "entrypoint": ["scorecard-test", name],
            "image": SCORECARD,
            "labels": { "suite": suite, "test": format!("{name}-test") },
            "storage": { "spec": { "mountPath": {} } },
        })
    };
    let tests = json!([
        test("basic", "basic-check-spec"),
        test("olm", "olm-bundle-validation"),
        test("olm", "olm-crds-have-validation"),
        test("olm", "olm-crds-have-resources"),
        test("olm", "olm-spec-descriptors"),
        test("olm", "olm-status-descriptors"),
    ]);
    let scorecard = json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": { "name": "config" },
        "stages": [{ "parallel": true, "tests": tests }],
        "storage": { "spec": { "mountPath": {} } },
    });
    vec![
        (
            format!("{FOLDER}/metadata/annotations.yaml"),
            json!({ "annotations": annotations }),
        ),
        (format!("{FOLDER}/tests/scorecard/config.yaml"), scorecard),
    ]
}
