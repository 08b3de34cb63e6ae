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

use anyhow::Result;
use rbuilder_control_plane::private_folder;
use serde_json::{Value, json};

use self::audit::{AuditLog, OwnObjects};
use self::neighbors::Neighbors;
use crate::control_plane::ControlPlane;
use crate::helm::{Helm, kustomize};
use crate::kubectl::Kubectl;
use crate::project::{edit, scaffold};
use crate::run::{BASH, run_script};
use crate::sh::Cmd;
use crate::value::parse_objects;
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

/// Names used in a deployment. walk.sh uses the same ones.
struct Deployment {
    /// Release name. For kustomize, it is the prefix without the dash.
    prefix: &'static str,
    namespace: &'static str,
}

const GREEN: Deployment = Deployment {
    prefix: "workshop",
    namespace: "green",
};
const BLUE: Deployment = Deployment {
    prefix: "prod-shop",
    namespace: "blue",
};
const SCAFFOLDED: Deployment = Deployment {
    prefix: "shop",
    namespace: "shop-system",
};

/// Name of the user who runs the commands of the project.
const USER: &str = "walker";

pub(crate) fn check_shared_cluster() -> Result<()> {
    let helm = Helm::ensure()?;
    let bin = repo::build_rbuilder()?;
    // It contains kubeconfigs.
    let folder = private_folder("rbuilder-shared-")?;
    let folder = folder.path();
    let audit = AuditLog::create(folder)?;
    let (scaffolded, green) = make_projects(&bin, folder)?;
    let objects = kustomize(&scaffolded)?;
    let renamed = kustomize(&green)?;
    packages::compare_release(&helm, &scaffolded.join("charts/shop"), &BLUE, (&GREEN, &renamed))?;
    packages::compare_bundle(&scaffolded.join("bundle"), &objects)?;
    println!("Helm, kustomize and the bundle deploy the same objects");

    let plane = ControlPlane::start_audited(&assets::ensure_controllers()?, &audit.arguments())?;
    let kubeconfig = write_kubeconfigs(folder, plane.kubeconfig())?;
    let cluster = Cluster {
        folder: folder.to_owned(),
        platform: Kubectl::find(Path::new(plane.kubeconfig()))?,
    };
    let neighbors = Neighbors::settle(&cluster)?;
    let kubectl = assets::ensure_kubectl()?;
    let programs = [Some(bin.as_path()), helm.folder(), kubectl.as_deref()];
    let walk = |function: &str| {
        let script = format!("{}\n{function}", include_str!("walk.sh"));
        let bash = Cmd::new(BASH).dir(folder).env("KUBECONFIG", &kubeconfig);
        run_script(bash, &script, &programs)
    };
    walk("deploy")?;
    // We must do this as long as the API server knows all kinds.
    let resources = cluster.platform("api-resources --no-headers")?;
    let mut own = OwnObjects::new(GROUP, "sh.helm.release.v1.prod-shop.", &resources);
    let is_own =
        |object: &&Value| object["kind"] != "Namespace" || object["metadata"]["name"] == SCAFFOLDED.namespace;
    own.add(objects.iter().chain(&renamed).filter(is_own), "")?;
    let manifest = helm.command("get manifest prod-shop --namespace blue");
    let manifest = manifest.env("KUBECONFIG", &kubeconfig).read()?;
    own.add(&parse_objects(&manifest)?, BLUE.namespace)?;
    let removed = walk("remove");
    // This comes first, because anything else that fails might just be a consequence.
    let writes = audit.read_writes(USER)?;
    own.check_foreign(&writes)?;
    removed?;
    neighbors.check(&cluster)?;
    own.check_complete(&writes)?;
    println!("all {} writes were to objects of the project", writes.len());
    Ok(())
}

/// Creates two checkouts of the same project. The first has a chart and a bundle, and its names are
/// those of the scaffold. The second has the names from [`GREEN`].
fn make_projects(bin: &Path, folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let (scaffolded, green) = (folder.join("shop"), folder.join("green"));
    scaffold(bin, &scaffolded, COMMANDS)?;
    for line in ["helm", "bundle --version 0.1.0 --image example.com/shop:v1"] {
        repo::rbuilder_command(bin, &scaffolded, line)?.read()?;
    }
    Cmd::new("cp -R").arg(&scaffolded).arg(&green).run()?;
    let path = green.join("config/default/kustomization.yaml");
    edit(
        &path,
        "namespace: shop-system",
        &format!("namespace: {}", GREEN.namespace),
    )?;
    edit(
        &path,
        "namePrefix: shop-",
        &format!("namePrefix: {}-", GREEN.prefix),
    )?;
    Ok((scaffolded, green))
}

/// Writes the kubeconfigs of the platform's user and of [`USER`]. Returns the path of the latter.
fn write_kubeconfigs(folder: &Path, admin: &str) -> Result<PathBuf> {
    fs_err::copy(admin, folder.join("admin.kubeconfig"))?;
    let path = folder.join("kubeconfig");
    let mut config: Value = serde_json::from_str(&fs_err::read_to_string(admin)?)?;
    let user = &mut config["users"][0]["user"];
    user["as"] = json!(USER);
    user["as-groups"] = json!(["system:masters"]);
    fs_err::write(&path, config.to_string())?;
    Ok(path)
}

/// The cluster, as seen by the platform's user.
struct Cluster {
    folder: PathBuf,
    platform: Kubectl,
}

impl Cluster {
    fn platform(&self, line: &str) -> Result<String> {
        self.platform.command(line)?.read()
    }

    fn with_manifest(&self, line: &str, manifest: &str) -> Result<String> {
        let path = self.folder.join("manifest.yaml");
        fs_err::write(&path, manifest)?;
        self.platform.command(line)?.arg(path).read()
    }

    fn read_objects(&self, manifest: &str) -> Result<Vec<Value>> {
        let text = self.with_manifest("get --output=json -f", manifest)?;
        let mut list: Value = serde_json::from_str(&text)?;
        Ok(match list["items"].take() {
            Value::Array(items) => items,
            _ => vec![list],
        })
    }
}
