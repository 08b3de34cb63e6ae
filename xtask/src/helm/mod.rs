//! `cargo xtask helm`: checks the charts of scaffolds. They must render the same objects as
//! kustomize, and it must be possible to install, upgrade and uninstall them with Helm.

mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::Value;

use crate::control_plane::{ControlPlane, run_without_warning};
use crate::kubectl::Kubectl;
use crate::sh::Cmd;
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

/// A scaffold. We compare its chart with the output of kustomize for several combinations of
/// features.
pub(crate) struct Case {
    pub(crate) commands: &'static [&'static str],
    /// Flags of `rbuilder edit`, and the values of the chart that should have the same effect. They
    /// are applied in order, but the chart is generated before that.
    variants: &'static [(&'static str, &'static str)],
}

const INIT: &str = "init --domain example.com --project-name shop --library path";
const CUP: &str = "create api --group cache --version v1 --kind Cup";
const SHELF: &str = "create api --group cache --version v1 --kind Shelf --namespaced=false";

/// A webhook for Pods, which must not apply to its own manager.
const POD: &str = "create webhook --group core --version v1 --kind Pod --defaulting";

pub(crate) const CASES: &[Case] = &[
    Case {
        commands: &[INIT],
        variants: &[
            ("--enable metrics-certificate", "metrics.certManager.enabled=true"),
            (
                "--disable metrics-certificate,metrics",
                "metrics.enabled=false,metrics.certManager.enabled=false",
            ),
        ],
    },
    Case {
        commands: &[
            INIT,
            CUP,
            SHELF,
            "create api --group cache --version v2 --kind Cup",
            "create webhook --group cache --version v1 --kind Cup --defaulting --validation --conversion --spoke v2",
            POD,
        ],
        variants: &[
            ("--enable prometheus", "metrics.serviceMonitor.enabled=true"),
            ("--enable metrics-certificate", "metrics.certManager.enabled=true"),
            ("--enable network-policy", "networkPolicy.enabled=true"),
            ("--enable cert-manager", "webhooks.certManager.enabled=true"),
            ("--enable sharding", "sharding.enabled=true"),
        ],
    },
    Case {
        commands: &[
            "init --domain example.com --project-name shop --library path --namespaced --multigroup",
            CUP,
            SHELF,
            "create webhook --group cache --version v1 --kind Cup --validation",
            POD,
        ],
        variants: &[
            ("--enable cert-manager", "webhooks.certManager.enabled=true"),
            (
                "--disable cert-manager,webhooks",
                "webhooks.enabled=false,webhooks.certManager.enabled=false",
            ),
            ("--enable sharding", "sharding.enabled=true"),
        ],
    },
];

/// Known differences between a chart and the output of kustomize. Each of them has a reason.
const DIFFERENCES: &[(Difference, &str)] = &[
    (
        Difference::Kind("Namespace"),
        "Helm creates it, with `--create-namespace`",
    ),
    (
        Difference::Label("app.kubernetes.io/name"),
        "all objects have it, and the name can be overridden",
    ),
    (
        Difference::Label("app.kubernetes.io/managed-by"),
        "Helm manages them",
    ),
    (
        Difference::Label("app.kubernetes.io/instance"),
        "two releases do not select each other's pods",
    ),
    (
        Difference::Label("app.kubernetes.io/version"),
        "that of the chart",
    ),
    (Difference::Label("helm.sh/chart"), "that of the chart"),
    (
        Difference::Annotation("helm.sh/resource-policy"),
        "`helm uninstall` keeps CRDs and their objects",
    ),
    (
        Difference::Text("shop-webhook-server-cert", "webhook-server-cert"),
        "two releases do not share a certificate",
    ),
    (
        Difference::Text("shop-metrics-server-cert", "metrics-server-cert"),
        "two releases do not share a certificate",
    ),
    (Difference::Variable("WEBHOOK_CERT_SECRET"), "its Secret"),
    (Difference::Variable("WEBHOOK_PORT"), "a value of the chart"),
    (Difference::Variable("METRICS_SECURE"), "a value of the chart"),
];

enum Difference {
    Kind(&'static str),
    Label(&'static str),
    Annotation(&'static str),
    Text(&'static str, &'static str),
    Variable(&'static str),
}

/// Compares all charts with kustomize. Also installs one of them, unless this is disabled.
pub(crate) fn check_charts(args: &Args) -> Result<()> {
    let helm = Helm::ensure()?;
    if args.build {
        return Ok(());
    }
    let bin = repo::build_rbuilder()?;
    let folder = tempfile::Builder::new().prefix("rbuilder-helm-").tempdir()?;
    let mut projects = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
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
    let cluster = Cluster {
        helm: &helm,
        kubeconfig: Path::new(control_plane.kubeconfig()),
        kubectl: Kubectl::find(Path::new(control_plane.kubeconfig()))?,
    };
    cluster.follow_release(&bin, &projects[1])?;
    println!("Helm installs, upgrades and uninstalls a chart");
    Ok(())
}

/// Creates a project and its chart. The chart is then compared with the project for each of the
/// variants.
fn compare_charts(helm: &Helm, bin: &Path, project: &Path, case: &Case) -> Result<()> {
    fs_err::create_dir(project)?;
    let run = |line: &str| repo::rbuilder_command(bin, project, line)?.read();
    for line in case.commands {
        run(line)?;
    }
    edit_source(project)?;
    run("helm")?;
    let again = run("helm")?;
    ensure!(
        again.starts_with("unchanged"),
        "a second run changes the chart:\n{again}"
    );
    let chart = project.join("charts/shop");
    helm.command("lint --strict").arg(&chart).read()?;
    compare_objects(&helm.render(&chart, "shop", "")?, &kustomize(project)?)?;
    let mut values = Vec::new();
    for (flags, value) in case.variants {
        run(&format!("edit {flags}"))?;
        values.push(*value);
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
            let text = fs_err::read_to_string(&path)?;
            ensure!(text.contains(before), "{} has no `{before}`", path.display());
            fs_err::write(&path, text.replace(before, after))?;
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
    let deployment = second.iter().find(|object| object["kind"] == "Deployment");
    let deployment = deployment.context("the chart has no Deployment")?;
    let instance = &deployment["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"];
    ensure!(instance == "b", "the Deployment selects pods of {instance}");
    let long = helm.render(chart, &"a".repeat(53), "")?;
    let names = long
        .iter()
        .filter(|object| object["kind"] == "Service")
        .map(|object| &object["metadata"]["name"]);
    for name in names {
        let name = name.as_str().unwrap_or_default();
        ensure!(name.len() <= 63, "`{name}` is not a name of a Service");
    }
    check_sharded_release(&helm.render_in("elsewhere", chart, "b", "sharding.enabled=true")?)
}

/// Checks that a release with shards in the namespace `elsewhere` has its Leases in that namespace.
/// This is because the manager uses the namespace of its Pod, and isn't allowed to use Leases
/// anywhere else.
fn check_sharded_release(objects: &[Value]) -> Result<()> {
    let namespaced = objects.iter().filter(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        kind == "Deployment"
            || object["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.contains("sharding-role"))
    });
    let namespaced: Vec<&Value> = namespaced.collect();
    ensure!(
        namespaced.len() == 3,
        "a Deployment, a Role and a RoleBinding, not {namespaced:?}"
    );
    for object in namespaced {
        let namespace = &object["metadata"]["namespace"];
        ensure!(namespace == "elsewhere", "{} is in {namespace}", identify(object));
        for subject in object["subjects"].as_array().into_iter().flatten() {
            ensure!(subject["namespace"] == "elsewhere", "a subject is {subject}");
        }
        let text = object["spec"]["template"]["spec"]["containers"].to_string();
        ensure!(
            !text.contains("leader-election-namespace") && !text.contains("LEADER_ELECTION_NAMESPACE"),
            "the manager has a namespace for its Leases: {text}"
        );
    }
    Ok(())
}

/// The path of Helm.
pub(crate) struct Helm(PathBuf);

impl Helm {
    /// Finds Helm. It is built if necessary.
    ///
    /// # Errors
    ///
    /// Same as [`assets::ensure_helm`].
    pub(crate) fn ensure() -> Result<Self> {
        Ok(Helm(assets::ensure_helm()?))
    }

    /// Returns a command that runs Helm. The arguments are in `line`.
    pub(crate) fn command(&self, line: &str) -> Cmd {
        Cmd::program(&self.0).shown_as("helm").words(line)
    }

    /// Renders a chart. The syntax of `values` is the same as for `--set`.
    fn render(&self, chart: &Path, release: &str, values: &str) -> Result<Vec<Value>> {
        self.render_in("shop-system", chart, release, values)
    }

    /// Like [`render`](Self::render), but for the given namespace.
    fn render_in(&self, namespace: &str, chart: &Path, release: &str, values: &str) -> Result<Vec<Value>> {
        let line = format!("template {release} --namespace {namespace} --set");
        parse(&self.command(&line).arg(values).arg(chart).read()?)
    }
}

fn kustomize(project: &Path) -> Result<Vec<Value>> {
    let kubectl = Kubectl::find(Path::new("/dev/null"))?;
    parse(
        &kubectl
            .command("kustomize")?
            .arg(project.join("config/default"))
            .read()?,
    )
}

/// Parses a stream of YAML documents.
pub(crate) fn parse(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| anyhow!("{error}"))?;
    Ok(documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect())
}

fn identify(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let metadata = &object["metadata"];
    format!(
        "{} {}/{}",
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"])
    )
}

/// Compares the objects of a chart with the objects from kustomize. The known [`DIFFERENCES`] are
/// ignored.
pub(crate) fn compare_objects(chart: &[Value], kustomize: &[Value]) -> Result<()> {
    let index = |objects: &[Value]| -> BTreeMap<String, Value> {
        let mut objects = objects.to_vec();
        objects.retain_mut(strip);
        objects
            .into_iter()
            .map(|object| (identify(&object), object))
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

/// Removes all known [`DIFFERENCES`] from an object. Lists are sorted if their items have names.
/// Returns false if the object as a whole is a known difference.
fn strip(object: &mut Value) -> bool {
    let mut is_kept = true;
    for (difference, _) in DIFFERENCES {
        if let Difference::Kind(kind) = difference {
            is_kept &= object["kind"] != **kind;
        }
    }
    strip_value(object);
    is_kept
}

fn strip_value(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                for (difference, _) in DIFFERENCES {
                    match (difference, value.as_object_mut()) {
                        (Difference::Label(label), Some(labels))
                            if ["labels", "matchLabels", "selector"].contains(&key.as_str()) =>
                        {
                            labels.remove(*label);
                        }
                        (Difference::Annotation(name), Some(annotations)) if key == "annotations" => {
                            annotations.remove(*name);
                        }
                        _ => {}
                    }
                }
                strip_value(value);
            }
            let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
            map.retain(|key, value| !(["labels", "annotations"].contains(&key.as_str()) && is_empty(value)));
        }
        Value::Array(items) => {
            let is_removed = |item: &Value| {
                let is_it = |(difference, _): &(Difference, _)| matches!(difference, Difference::Variable(name) if item["name"] == **name);
                DIFFERENCES.iter().any(is_it)
            };
            items.retain(|item| !is_removed(item));
            items.iter_mut().for_each(strip_value);
            if items.iter().all(|item| item["name"].is_string()) {
                items.sort_by_key(|item| item["name"].to_string());
            }
        }
        Value::String(text) => {
            for (difference, _) in DIFFERENCES {
                if let Difference::Text(chart, kustomize) = difference {
                    *text = text.replace(chart, kustomize);
                }
            }
        }
        _ => {}
    }
}

/// The cluster to which we install the charts.
struct Cluster<'a> {
    helm: &'a Helm,
    kubeconfig: &'a Path,
    kubectl: Kubectl,
}

impl Cluster<'_> {
    /// Installs a chart, upgrades it (with a new version of a CRD), and uninstalls it again.
    fn follow_release(&self, bin: &Path, project: &Path) -> Result<()> {
        let chart = project.join("charts/shop");
        // These require cert-manager and the Prometheus Operator, which are not in the cluster.
        let values = "webhooks.certManager.enabled=false,metrics.certManager.enabled=false,metrics.serviceMonitor.enabled=false";
        let install = format!("install shop --namespace shop-system --create-namespace --set {values}");
        for namespace in ["infra", "users"] {
            self.kubectl(&format!("create namespace {namespace}"))?;
        }
        self.run(&install, Some(&chart))?;
        self.check_objects()?;

        // Add a field here. We expect that it's also in the CRD of the cluster after the upgrade.
        let path = project.join("src/api/v1/shelf.rs");
        let text = fs_err::read_to_string(&path)?;
        let start = text
            .find("pub struct ShelfSpec {")
            .context("the type of the kind")?;
        let at = start + text[start..].find('\n').context("a line end")? + 1;
        fs_err::write(
            &path,
            format!(
                "{}    /// color of the shelf.\n    pub color: Option<String>,\n{}",
                &text[..at],
                &text[at..]
            ),
        )?;
        repo::rbuilder_command(bin, project, "helm")?.read()?;
        self.run(
            &format!("upgrade shop --namespace shop-system --set {values},replicas=2"),
            Some(&chart),
        )?;
        self.check_objects()?;
        let color = "get crd shelves.cache.example.com -o jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.color.type}";
        ensure!(self.kubectl(color)? == "string", "the CRD was not upgraded");
        let replicas = "get deployment shop-controller-manager -n shop-system -o jsonpath={.spec.replicas}";
        ensure!(self.kubectl(replicas)? == "2", "the Deployment was not upgraded");

        let notes = self.helm.command("get notes shop --namespace shop-system");
        let notes = notes.env("KUBECONFIG", self.kubeconfig).read()?;
        self.run("uninstall shop --namespace shop-system", None)?;
        self.read_without_release(project, &notes)?;
        let kept =
            "get crd,clusterrole,mutatingwebhookconfiguration -l app.kubernetes.io/instance=shop -o name";
        let kept = self.kubectl(kept)?;
        ensure!(
            kept.lines()
                .all(|name| name.starts_with("customresourcedefinition"))
                && kept.lines().count() == 2,
            "uninstalled, there are:\n{kept}"
        );

        // The CRDs are still there. A new release adopts them, and removes them at the end because
        // of `crds.keep=false`.
        self.run(&format!("{install},crds.keep=false"), Some(&chart))?;
        ensure!(
            self.kubectl("get crd cups.cache.example.com -o jsonpath={.spec.conversion.strategy}")?
                == "Webhook",
            "the CRD that a release takes back does not convert"
        );
        self.run("uninstall shop --namespace shop-system", None)?;
        let left = self.kubectl("get crd -o name")?;
        ensure!(
            left.is_empty(),
            "uninstalled without `crds.keep`, there are:\n{left}"
        );
        self.install_with_values(&chart, values)
    }

    /// Turns off the conversion by following the release notes. Checks that all objects can be read
    /// even if there's no manager and the requested version isn't the stored one.
    fn read_without_release(&self, project: &Path, notes: &str) -> Result<()> {
        let patch = notes
            .lines()
            .find_map(|line| line.trim().strip_prefix("kubectl patch "));
        let patch =
            patch.with_context(|| format!("no command in the notes turns conversions off:\n{notes}"))?;
        self.kubectl(&format!("patch {}", patch.replace('\'', "")))?;
        let sample = project.join("config/samples/cache_v2_cup.yaml");
        self.kubectl.command("create -f")?.arg(&sample).read()?;
        let found = self.kubectl("get cups.v1.cache.example.com -o name")?;
        ensure!(found.lines().count() == 1, "there is no Cup in the other version");
        self.kubectl.command("delete -f")?.arg(sample).read()?;
        Ok(())
    }

    /// Installs a release with values that are not the default. There is also a dot in the name of
    /// the release.
    fn install_with_values(&self, chart: &Path, values: &str) -> Result<()> {
        for namespace in ["a", "b"] {
            self.kubectl(&format!("create namespace {namespace}"))?;
        }
        let values = format!(
            "{values},watchNamespaces={{a,b}},healthProbe.port=9002,metrics.port=9000,metrics.secure=false,webhooks.port=9001,hostNetwork=true,\
             dnsPolicy=ClusterFirstWithHostNet,webhooks.failurePolicy=Ignore,webhooks.timeoutSeconds=3,\
             webhooks.objectSelector.matchLabels.a=b,deploymentAnnotations.a=b,networkPolicy.enabled=true"
        );
        let install = format!("install shop.v1 --namespace other --create-namespace --set {values}");
        self.run(&install, Some(chart))?;
        self.run("uninstall shop.v1 --namespace other", None)
    }

    /// Runs Helm. Warnings of the API server are treated as errors.
    fn run(&self, line: &str, chart: Option<&Path>) -> Result<()> {
        println!("helm {line}");
        let command = self.helm.command(line).args(chart);
        run_without_warning(command.env("KUBECONFIG", self.kubeconfig))
    }

    fn kubectl(&self, line: &str) -> Result<String> {
        self.kubectl.command(line)?.read()
    }

    /// Checks that all objects of the release are in the cluster.
    fn check_objects(&self) -> Result<()> {
        let manifest = self.helm.command("get manifest shop --namespace shop-system");
        let objects = parse(&manifest.env("KUBECONFIG", self.kubeconfig).read()?)?;
        for object in &objects {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("shop-system");
            self.kubectl(&format!("get {kind} {name} --namespace {namespace} -o name"))?;
        }
        ensure!(
            objects.len() > 20,
            "the release has {} objects only",
            objects.len()
        );
        Ok(())
    }
}
