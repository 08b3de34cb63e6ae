//! `cargo xtask helm`: checks the charts of scaffolds. They must render the same objects as
//! kustomize, and it must be possible to install, upgrade and uninstall them with Helm.

mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::kubectl::Kubectl;
use crate::project::{edit, make_project, run_again};
use crate::run::{BASH, run_script};
use crate::sh::Cmd;
use crate::value::{find_kind, items, parse_objects, text};
use crate::{assets, repo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only find or build Helm
    #[arg(long)]
    build: bool,
    /// Only compare, without an API server
    #[arg(long)]
    offline: bool,
}

/// A row of cases.yaml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) commands: Vec<String>,
    variants: Vec<(String, String)>,
}

pub(crate) fn cases() -> Result<Vec<Case>> {
    Ok(serde_saphyr::from_str(include_str!("cases.yaml"))?)
}

// Known differences between a chart and the output of kustomize.

/// Helm creates it, with `--create-namespace`.
const KIND: &str = "Namespace";
const LABELS: [&str; 5] = [
    // All objects have it, and the name can be overridden.
    "app.kubernetes.io/name",
    "app.kubernetes.io/managed-by",
    // Two releases must not select each other's Pods.
    "app.kubernetes.io/instance",
    // These are about the chart.
    "app.kubernetes.io/version",
    "helm.sh/chart",
];
/// `helm uninstall` keeps CRDs and their objects.
const ANNOTATION: &str = "helm.sh/resource-policy";
/// Two releases must not share a certificate.
const SECRETS: [(&str, &str); 2] = [
    ("shop-webhook-server-cert", "webhook-server-cert"),
    ("shop-metrics-server-cert", "metrics-server-cert"),
];
/// The name of such a Secret, and values of the chart.
const VARIABLES: [&str; 3] = ["WEBHOOK_CERT_SECRET", "WEBHOOK_PORT", "METRICS_SECURE"];

/// Compares all charts with kustomize. Also installs one of them, unless this is disabled.
pub(crate) fn check_charts(args: &Args) -> Result<()> {
    let helm = Helm::ensure()?;
    if args.build {
        return Ok(());
    }
    let bin = repo::build_rbuilder()?;
    let folder = tempfile::Builder::new().prefix("rbuilder-helm-").tempdir()?;
    let mut projects = Vec::new();
    for (number, case) in cases()?.iter().enumerate() {
        let project = folder.path().join(format!("project-{number}"));
        compare_charts(&helm, &bin, &project, case)
            .with_context(|| format!("the chart of {:?} differs", case.commands))?;
        projects.push(project);
    }
    println!("{} charts are what kustomize renders", projects.len());
    values::check_values(&helm, &projects[1].join("charts/shop"))?;
    println!("the values of a chart change what they say");
    if args.offline {
        return Ok(());
    }
    let control_plane = ControlPlane::start_servers(&assets::ensure_assets()?)?;
    let kubectl = assets::ensure_kubectl()?;
    let programs = [Some(bin.as_path()), helm.folder(), kubectl.as_deref()];
    let walk = Cmd::new(BASH)
        .dir(&projects[1])
        .env("KUBECONFIG", control_plane.kubeconfig());
    run_script(walk, include_str!("release.sh"), &programs)?;
    println!("Helm installs, upgrades and uninstalls a chart");
    Ok(())
}

/// Creates a project and its chart. The chart is then compared with the project for each of the
/// variants.
fn compare_charts(helm: &Helm, bin: &Path, project: &Path, case: &Case) -> Result<()> {
    make_project(bin, project, &case.commands)?;
    edit_source(project)?;
    let run = |line: &str| repo::rbuilder_command(bin, project, line)?.read();
    run("helm")?;
    run_again(bin, project, "helm")?;
    let chart = project.join("charts/shop");
    helm.command("lint --strict").arg(&chart).read()?;
    compare_objects(&helm.render(&chart, "shop", "")?, &kustomize(project)?)?;
    let mut values = Vec::new();
    for (flags, value) in &case.variants {
        run(&format!("edit {flags}"))?;
        values.push(value.as_str());
        let rendered = helm.render(&chart, "shop", &values.join(","))?;
        compare_objects(&rendered, &kustomize(project)?).with_context(|| format!("after `edit {flags}`"))?;
    }
    run("helm")?;
    compare_objects(&helm.render(&chart, "shop", "")?, &kustomize(project)?)?;
    check_second_release(helm, &chart)
}

/// Changes to the source before the chart is generated. Each consists of the files, the old text
/// and the new text. The first change adds the syntax of templates to a description. The second one
/// needs roles in other namespaces.
const EDITS: &[(&[&str], &str, &str)] = &[
    (
        &["src/api/v1/cup.rs", "src/api/cache/v1/cup.rs"],
        "/// CupSpec defines",
        "/// CupSpec, as `{{ .Values.cup }}` and {{{ }}}, defines",
    ),
    (
        &["src/controller/cup.rs", "src/controller/cache/cup.rs"],
        "pub async fn reconcile",
        "#[rbac(groups = \"\", resources = \"secrets\", verbs = \"get\", namespace = \"infra\")]\n\
         #[rbac(groups = \"\", resources = \"services\", verbs = \"list\", namespace = \"users\")]\n\
         pub async fn reconcile",
    ),
];

/// Applies [`EDITS`]. Files that don't exist are ignored.
fn edit_source(project: &Path) -> Result<()> {
    for (paths, before, after) in EDITS {
        let paths = paths.iter().map(|path| project.join(path));
        for path in paths.filter(|path| path.is_file()) {
            edit(&path, before, after)?;
        }
    }
    Ok(())
}

/// Checks that it's possible to have two releases in a namespace. They must not share any objects,
/// and each has to select its own Pods.
fn check_second_release(helm: &Helm, chart: &Path) -> Result<()> {
    let (first, second) = (
        helm.render(chart, "a", "")?,
        helm.render(chart, "b", "crds.enabled=false")?,
    );
    for object in &second {
        let id = identify(object);
        ensure!(
            !first.iter().any(|other| identify(other) == id),
            "both releases have {id}"
        );
    }
    let deployment = find_kind(&second, "Deployment")?;
    let instance = &deployment["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"];
    ensure!(instance == "b", "the Deployment selects pods of {instance}");
    let long = helm.render(chart, &"a".repeat(53), "")?;
    for service in long.iter().filter(|object| object["kind"] == "Service") {
        let name = text(service, "/metadata/name");
        ensure!(name.len() <= 63, "`{name}` is not a name of a Service");
    }
    check_sharded_release(&helm.render_in("elsewhere", chart, "b", "sharding.enabled=true")?)
}

/// Checks that a release with shards in the namespace `elsewhere` has its Leases in that namespace.
/// This is because the manager uses the namespace of its Pod, and isn't allowed to use Leases
/// anywhere else.
fn check_sharded_release(objects: &[Value]) -> Result<()> {
    let is_namespaced = |object: &&Value| {
        object["kind"] == "Deployment" || text(object, "/metadata/name").contains("sharding-role")
    };
    let namespaced: Vec<&Value> = objects.iter().filter(is_namespaced).collect();
    ensure!(
        namespaced.len() == 3,
        "a Deployment, a Role and a RoleBinding, not {namespaced:?}"
    );
    for object in namespaced {
        let namespace = &object["metadata"]["namespace"];
        ensure!(namespace == "elsewhere", "{} is in {namespace}", identify(object));
        for subject in items(object, "/subjects") {
            ensure!(subject["namespace"] == "elsewhere", "a subject is {subject}");
        }
        let containers = object["spec"]["template"]["spec"]["containers"].to_string();
        ensure!(
            !containers
                .to_uppercase()
                .replace('-', "_")
                .contains("LEADER_ELECTION_NAMESPACE"),
            "the manager has a namespace for its Leases: {containers}"
        );
    }
    Ok(())
}

pub(crate) struct Helm(PathBuf);

impl Helm {
    /// Finds Helm. It is built if necessary.
    pub(crate) fn ensure() -> Result<Self> {
        Ok(Helm(assets::ensure_helm()?))
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.0.parent()
    }

    pub(crate) fn command(&self, line: &str) -> Cmd {
        Cmd::program(&self.0).shown_as("helm").words(line)
    }

    fn render(&self, chart: &Path, release: &str, values: &str) -> Result<Vec<Value>> {
        self.render_in("shop-system", chart, release, values)
    }

    /// Like [`render`](Self::render), but for the given namespace.
    pub(crate) fn render_in(
        &self,
        namespace: &str,
        chart: &Path,
        release: &str,
        values: &str,
    ) -> Result<Vec<Value>> {
        let line = format!("template {release} --namespace {namespace} --set");
        parse_objects(&self.command(&line).arg(values).arg(chart).read()?)
    }
}

pub(crate) fn kustomize(project: &Path) -> Result<Vec<Value>> {
    let kubectl = Kubectl::find(Path::new("/dev/null"))?.command("kustomize")?;
    parse_objects(&kubectl.arg(project.join("config/default")).read()?)
}

fn identify(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
    format!(
        "{} {}/{}",
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

/// Compares the objects of a chart with the objects from kustomize. Known differences are ignored.
pub(crate) fn compare_objects(chart: &[Value], kustomize: &[Value]) -> Result<()> {
    let index = |objects: &[Value]| -> BTreeMap<String, Value> {
        let kept = objects.iter().filter(|object| object["kind"] != KIND);
        kept.map(|object| {
            let mut object = object.clone();
            strip(&mut object);
            (identify(&object), object)
        })
        .collect()
    };
    let (chart, kustomize) = (index(chart), index(kustomize));
    let ids: Vec<&String> = kustomize.keys().chain(chart.keys()).collect();
    for id in ids {
        match (chart.get(id), kustomize.get(id)) {
            (Some(chart), Some(kustomize)) if chart == kustomize => {}
            (Some(chart), Some(kustomize)) => {
                let (before, after) = (format!("{kustomize:#}\n"), format!("{chart:#}\n"));
                let diff = similar::TextDiff::from_lines(before.as_str(), after.as_str());
                bail!("{id}:\n{}", diff.unified_diff().header("kustomize", "chart"));
            }
            (None, _) => bail!("{id} is not in the chart"),
            (_, None) => bail!("{id} is not in what kustomize renders"),
        }
    }
    Ok(())
}

/// Removes all known differences from a value. Lists are sorted if their items have names.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if let Some(values) = value.as_object_mut() {
                    match key.as_str() {
                        "labels" | "matchLabels" | "selector" => {
                            values.retain(|label, _| !LABELS.contains(&label.as_str()));
                        }
                        "annotations" => drop(values.remove(ANNOTATION)),
                        _ => {}
                    }
                }
                strip(value);
            }
            for key in ["labels", "annotations"] {
                if map.get(key).is_some_and(|value| *value == json!({})) {
                    map.remove(key);
                }
            }
        }
        Value::Array(items) => {
            items.retain(|item| VARIABLES.iter().all(|name| item["name"] != *name));
            items.iter_mut().for_each(strip);
            if items.iter().all(|item| item["name"].is_string()) {
                items.sort_by_key(|item| item["name"].to_string());
            }
        }
        Value::String(text) => {
            for (chart, kustomize) in SECRETS {
                *text = text.replace(chart, kustomize);
            }
        }
        _ => {}
    }
}
