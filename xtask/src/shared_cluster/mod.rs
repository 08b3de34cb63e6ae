//! `cargo xtask shared-cluster`: deploys a project to a cluster that is also used by others.
//!
//! The project is deployed twice, first with kustomize and then with Helm. We drain the nodes,
//! upgrade both of the deployments, and remove them again. All writes of the commands are in the
//! audit log of kube-apiserver. We check that they only affect objects of the project, and that
//! objects of anyone else are the same as before.
//!
//! There are no containers. The nodes are simulated, and webhooks never respond (as if all replicas
//! of the manager had just been evicted). If the manager would have to do something, this task does
//! it.

mod audit;
mod neighbors;
mod packages;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use self::audit::{AuditLog, OwnObjects};
use self::neighbors::Neighbors;
use crate::control_plane::ControlPlane;
use crate::helm::{Helm, parse};
use crate::kubectl::Kubectl;
use crate::project::scaffold;
use crate::sh::Cmd;
use crate::{assets, repo};

/// A kind that has a conversion, and a webhook for Pods. There are no other webhooks for the kind,
/// because we'd need a manager for every write.
const COMMANDS: &[&str] = &[
    "init --domain example.com --project-name shop --library path",
    "create api --group cache --version v1 --kind Cup",
    "create api --group cache --version v2 --kind Cup",
    "create webhook --group cache --version v1 --kind Cup --conversion --spoke v2",
    "create webhook --group core --version v1 --kind Pod --defaulting",
];
const GROUP: &str = "cache.example.com";

/// Values for Helm. We don't need the CRDs, since they are installed already.
const VALUES: &str = "crds.enabled=false";

/// Custom resource that was created by a user of the operator.
const CUP: &str = "\
apiVersion: cache.example.com/v1
kind: Cup
metadata: {name: cup, namespace: apps}
spec: {foo: bar}
";

/// Names used in a deployment.
struct Deployment {
    /// Release name. For kustomize, it is the prefix without the dash.
    prefix: &'static str,
    namespace: &'static str,
}

/// The deployment with kustomize.
const GREEN: Deployment = Deployment {
    prefix: "workshop",
    namespace: "green",
};
/// The deployment with Helm.
const BLUE: Deployment = Deployment {
    prefix: "prod-shop",
    namespace: "blue",
};
/// Names which are used in a scaffold.
const SCAFFOLDED: Deployment = Deployment {
    prefix: "shop",
    namespace: "shop-system",
};

/// Name of the user who runs the commands of the project.
const USER: &str = "walker";

/// Runs all steps in order.
pub(crate) fn check_shared_cluster() -> Result<()> {
    let helm = Helm::ensure()?;
    let bin = repo::build_rbuilder()?;
    let folder = tempfile::Builder::new().prefix("rbuilder-shared-").tempdir()?;
    let audit = AuditLog::create(folder.path())?;
    let projects = Projects::make(&bin, folder.path())?;
    let kustomize = projects.render(&projects.green)?;
    packages::compare_release(&helm, &projects.chart(), &BLUE, (&GREEN, &kustomize))?;
    packages::compare_bundle(
        &projects.scaffolded.join("bundle"),
        &projects.render(&projects.scaffolded)?,
    )?;
    println!("Helm, kustomize and the bundle deploy the same objects");

    let plane = ControlPlane::start_audited(&assets::ensure_controllers()?, &audit.arguments())?;
    let cluster = Cluster::reach(folder.path(), &plane, bin, helm)?;
    let neighbors = Neighbors::settle(&cluster)?;
    let walk = Walk { cluster, projects };
    walk.deploy()?;
    walk.drain()?;
    walk.upgrade()?;
    walk.install_beside_deployment()?;
    let own = walk.list_own_objects()?;
    let removed = walk.remove();
    // This comes first, because anything else that fails might just be a consequence.
    let writes = audit.read_writes(USER)?;
    own.check_foreign(&writes)?;
    removed?;
    neighbors.check(&walk.cluster)?;
    own.check_complete(&writes)?;
    println!("all {} writes were to objects of the project", writes.len());
    Ok(())
}

/// Several checkouts of the same project.
struct Projects {
    /// This one has a chart and a bundle. Its names are those of the scaffold.
    scaffolded: PathBuf,
    /// This one has the names from [`GREEN`].
    green: PathBuf,
}

impl Projects {
    fn make(bin: &Path, folder: &Path) -> Result<Self> {
        let (scaffolded, green) = (folder.join("shop"), folder.join("green"));
        scaffold(bin, &scaffolded, COMMANDS)?;
        for line in ["helm", "bundle --version 0.1.0 --image example.com/shop:v1"] {
            repo::rbuilder_command(bin, &scaffolded, line)?.read()?;
        }
        Cmd::new("cp -R").arg(&scaffolded).arg(&green).run()?;
        let path = green.join("config/default/kustomization.yaml");
        let text = fs_err::read_to_string(&path)?;
        let renamed = text
            .replace(
                "namespace: shop-system",
                &format!("namespace: {}", GREEN.namespace),
            )
            .replace("namePrefix: shop-", &format!("namePrefix: {}-", GREEN.prefix));
        fs_err::write(path, renamed)?;
        Ok(Self { scaffolded, green })
    }

    fn chart(&self) -> PathBuf {
        self.scaffolded.join("charts/shop")
    }

    /// Renders the objects of the deployment with kustomize.
    fn render(&self, project: &Path) -> Result<Vec<Value>> {
        let kubectl = Kubectl::find(Path::new("/dev/null"))?.command("kustomize")?;
        parse(&kubectl.arg(project.join("config/default")).read()?)
    }
}

/// The cluster. There are two users, each with a kubeconfig.
struct Cluster {
    folder: PathBuf,
    bin: PathBuf,
    helm: Helm,
    platform: Kubectl,
    /// Path of the kubeconfig of [`USER`].
    kubeconfig: PathBuf,
}

impl Cluster {
    fn reach(folder: &Path, plane: &ControlPlane, bin: PathBuf, helm: Helm) -> Result<Self> {
        let admin = Path::new(plane.kubeconfig());
        let kubeconfig = folder.join("kubeconfig");
        let mut config: Value = serde_json::from_str(&fs_err::read_to_string(admin)?)?;
        let user = &mut config["users"][0]["user"];
        user["as"] = json!(USER);
        user["as-groups"] = json!(["system:masters"]);
        fs_err::write(&kubeconfig, config.to_string())?;
        Ok(Self {
            folder: folder.to_owned(),
            bin,
            helm,
            platform: Kubectl::find(admin)?,
            kubeconfig,
        })
    }

    /// Runs kubectl, but not as the project's user.
    fn platform(&self, line: &str) -> Result<String> {
        self.platform.command(line)?.read()
    }

    /// Creates all objects of a manifest. They belong to another user.
    fn create(&self, manifest: &str) -> Result<()> {
        let path = self.write(manifest)?;
        self.platform.command("create -f")?.arg(path).read().map(drop)
    }

    /// Gets all objects of a manifest from the cluster.
    fn read_objects(&self, manifest: &str) -> Result<Vec<Value>> {
        let path = self.write(manifest)?;
        let text = self.platform.command("get --output=json -f")?.arg(path).read()?;
        let mut list: Value = serde_json::from_str(&text)?;
        Ok(match list["items"].take() {
            Value::Array(items) => items,
            _ => vec![list],
        })
    }

    fn write(&self, manifest: &str) -> Result<PathBuf> {
        let path = self.folder.join("manifest.yaml");
        fs_err::write(&path, manifest)?;
        Ok(path)
    }

    /// Runs `rbuilder` in one of the checkouts. Returns the output, and whether it was successful.
    fn try_rbuilder(&self, project: &Path, line: &str) -> Result<(bool, String)> {
        println!("rbuilder {line}");
        let path = self.folder.join("printed");
        let printed = fs_err::File::create(&path)?.into_parts().0;
        let mut command =
            repo::rbuilder_command(&self.bin, project, line)?.env("KUBECONFIG", &self.kubeconfig);
        if let Some(folder) = assets::ensure_kubectl()? {
            command = command.env("KUBECTL", folder.join("kubectl"));
        }
        let is_success = command.run_into(&printed).is_ok();
        Ok((is_success, fs_err::read_to_string(path)?))
    }

    /// Runs `rbuilder` in one of the checkouts. Returns the output.
    fn rbuilder(&self, project: &Path, line: &str) -> Result<String> {
        let (is_success, printed) = self.try_rbuilder(project, line)?;
        ensure!(is_success, "`rbuilder {line}` failed:\n{printed}");
        Ok(printed)
    }

    /// Runs Helm. The path of the chart is added to the command if it is set.
    fn helm(&self, line: &str, chart: Option<&Path>) -> Result<String> {
        println!("helm {line}");
        self.helm
            .command(line)
            .args(chart)
            .env("KUBECONFIG", &self.kubeconfig)
            .read()
    }
}

/// The steps. They have to be called in order.
struct Walk {
    cluster: Cluster,
    projects: Projects,
}

impl Walk {
    /// Deploys the project with kustomize and with Helm. There's already a custom resource.
    fn deploy(&self) -> Result<()> {
        self.install_crd()?;
        self.cluster.create(CUP)?;
        self.deploy_green("v1")?;
        let install = format!(
            "install {} --namespace {} --set {VALUES}",
            BLUE.prefix, BLUE.namespace
        );
        self.cluster.helm(&install, Some(&self.projects.chart()))?;
        self.wait_for_managers()
    }

    fn install_crd(&self) -> Result<()> {
        self.cluster
            .rbuilder(&self.projects.green, "install --manifests=false")?;
        let wait = format!("wait --for=condition=Established crd/cups.{GROUP}");
        self.cluster.platform(&wait).map(drop)
    }

    /// Runs `rbuilder deploy` with kustomize. Returns the output.
    fn deploy_green(&self, tag: &str) -> Result<String> {
        let line = format!("deploy --manifests=false --image example.com/shop:{tag}");
        self.cluster.rbuilder(&self.projects.green, &line)
    }

    fn wait_for_managers(&self) -> Result<()> {
        for Deployment { prefix, namespace } in [GREEN, BLUE] {
            let line = format!(
                "rollout status deployment {prefix}-controller-manager --namespace {namespace} --timeout=60s"
            );
            self.cluster.platform(&line)?;
        }
        Ok(())
    }

    /// Evicts all of the Pods. The managers must be able to start again, although the webhook for
    /// Pods doesn't respond.
    fn drain(&self) -> Result<()> {
        let node = self.cluster.platform("get nodes --output=name")?;
        let node = node.trim();
        self.cluster.platform(&format!(
            "drain {node} --ignore-daemonsets --delete-emptydir-data --timeout=60s"
        ))?;
        self.cluster.platform(&format!("uncordon {node}"))?;
        println!("the nodes are drained");
        self.wait_for_managers()
    }

    /// Upgrades the two deployments. One of them has been scaled by another user.
    fn upgrade(&self) -> Result<()> {
        let manager = format!(
            "deployment {}-controller-manager --namespace {}",
            GREEN.prefix, GREEN.namespace
        );
        self.cluster.platform(&format!("scale {manager} --replicas=3"))?;
        let printed = self.deploy_green("v2")?;
        let note = format!(
            "taking over fields from other managers:\n  Deployment {}/{}-controller-manager\n    .spec.replicas from `kubectl`",
            GREEN.namespace, GREEN.prefix
        );
        ensure!(
            printed.contains(&note),
            "`rbuilder deploy` takes fields over in silence:\n{printed}"
        );
        let upgrade = format!(
            "upgrade {} --namespace {} --set {VALUES},replicas=2,image.tag=v2",
            BLUE.prefix, BLUE.namespace
        );
        self.cluster.helm(&upgrade, Some(&self.projects.chart()))?;
        self.wait_for_managers()?;
        let seen = "jsonpath={.spec.replicas}/{.spec.template.spec.containers[0].image}";
        let seen = self.cluster.platform(&format!("get {manager} --output={seen}"))?;
        ensure!(
            seen == "1/example.com/shop:v2",
            "the upgraded deployment has {seen}"
        );
        Ok(())
    }

    /// Installs the CRDs. The checkout for this has other names than any of the deployments.
    fn install_beside_deployment(&self) -> Result<()> {
        self.cluster
            .rbuilder(&self.projects.scaffolded, "install --manifests=false")?;
        let client = ".spec.conversion.webhook.clientConfig";
        let service = format!("jsonpath={{{client}.service.namespace}}/{{{client}.service.name}}");
        let line = format!("get crd cups.{GROUP} --output={service}");
        let service = self.cluster.platform(&line)?;
        let expected = format!("{}/{}-webhook-service", GREEN.namespace, GREEN.prefix);
        ensure!(
            service == expected,
            "Service {service} converts after `rbuilder install`"
        );
        Ok(())
    }

    /// Returns all objects of the deployments. This must be called as long as the API server knows
    /// their kinds.
    fn list_own_objects(&self) -> Result<OwnObjects> {
        let resources = self.cluster.platform("api-resources --no-headers")?;
        let mut own = OwnObjects::new(GROUP, "sh.helm.release.v1.prod-shop.", &resources);
        let is_own = |object: &&Value| {
            object["kind"] != "Namespace" || object["metadata"]["name"] == SCAFFOLDED.namespace
        };
        for project in [&self.projects.green, &self.projects.scaffolded] {
            own.add(self.projects.render(project)?.iter().filter(is_own), "")?;
        }
        let line = format!("get manifest {} --namespace {}", BLUE.prefix, BLUE.namespace);
        own.add(&parse(&self.cluster.helm(&line, None)?)?, BLUE.namespace)?;
        Ok(own)
    }

    fn remove(&self) -> Result<()> {
        self.remove_one_of_two()?;
        self.remove_with_finalizer()?;
        self.remove_from_created_namespace()
    }

    /// Removes one deployment after the other. The release must not be affected by the removal of
    /// the deployment with kustomize.
    fn remove_one_of_two(&self) -> Result<()> {
        let printed = self.cluster.rbuilder(&self.projects.green, "undeploy")?;
        let stays = format!("CustomResourceDefinition cups.{GROUP} stay, because Deployment blue/prod-shop-");
        ensure!(
            printed.contains(&stays),
            "`rbuilder undeploy` does not say `{stays}`:\n{printed}"
        );
        let warning = format!("warning: the Service that converts cups.{GROUP} is deleted");
        ensure!(
            printed.contains(&warning),
            "`rbuilder undeploy` does not warn:\n{printed}"
        );
        self.cluster
            .platform(&format!("get cups.v1.{GROUP} cup --namespace apps"))?;
        self.cluster
            .platform("get deployment prod-shop-controller-manager --namespace blue")?;
        let uninstall = format!("uninstall {} --namespace {}", BLUE.prefix, BLUE.namespace);
        self.cluster.helm(&uninstall, None).map(drop)
    }

    /// Removes a deployment. There's a finalizer, which isn't removed by the manager at first.
    fn remove_with_finalizer(&self) -> Result<()> {
        self.deploy_green("v2")?;
        let finalize = |finalizers: &str| {
            let patch = format!("{{\"metadata\":{{\"finalizers\":{finalizers}}}}}");
            let line = format!("patch cups.v1.{GROUP} cup --namespace apps --type merge --patch");
            self.cluster.platform.command(&line)?.arg(patch).read()
        };
        finalize("[\"example.com/busy\"]")?;
        let (is_success, printed) = self
            .cluster
            .try_rbuilder(&self.projects.green, "undeploy --timeout 3")?;
        let named = "Cup apps/cup (finalizer example.com/busy)";
        ensure!(
            !is_success && printed.contains(named),
            "`rbuilder undeploy` does not fail with `{named}`:\n{printed}"
        );
        // Nobody except for the manager removes the finalizer.
        self.cluster
            .platform("get deployment workshop-controller-manager --namespace green")?;
        finalize("null")?;
        self.cluster.rbuilder(&self.projects.green, "undeploy")?;
        let left = self.cluster.platform("get crd --output=name")?;
        ensure!(!left.contains(GROUP), "`rbuilder undeploy` left {left}");
        Ok(())
    }

    /// Removes a deployment from the namespace created for it. We do this twice, because the
    /// namespace must not be removed as long as another user has an object there.
    fn remove_from_created_namespace(&self) -> Result<()> {
        let namespace = SCAFFOLDED.namespace;
        let project = &self.projects.scaffolded;
        let deploy = "deploy --manifests=false --image example.com/shop:v1";
        self.cluster.rbuilder(project, deploy)?;
        let precious = format!("configmap precious --namespace {namespace}");
        self.cluster.platform(&format!("create {precious}"))?;
        self.cluster.rbuilder(project, "undeploy")?;
        self.cluster.platform(&format!("delete {precious}"))?;
        self.cluster.rbuilder(project, deploy)?;
        self.cluster.rbuilder(project, "undeploy")?;
        let left = self.cluster.platform("get namespaces --output=name")?;
        ensure!(!left.contains(namespace), "`rbuilder undeploy` left {left}");
        Ok(())
    }
}
