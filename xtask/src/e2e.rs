//! `cargo xtask e2e`: runs the end-to-end test of a scaffold on a machine without containers.
//!
//! We check that `make test-e2e` passes, and that it fails with a report if there is no manager.
//! After that, we check that `rbuilder undeploy` keeps other objects in a namespace that is shared.
//!
//! The cluster's controllers are the real ones from Kubernetes. Nodes are only simulated, and
//! report all Pods as ready. Since we can't run containers, the manager is a process outside of the
//! cluster. There are stand-ins for kind and docker (both do nothing), and `kubectl port-forward`
//! just prints the port of the manager's process. Nothing else is replaced, e.g. this uses the real
//! make, Pod Security and garbage collector.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Context as _, Result, ensure};

use crate::control_plane::ControlPlane;
use crate::project::scaffold;
use crate::sh::{Cmd, find_program, write_program};
use crate::{assets, repo};

/// We need a kind without a group whose controller has a custom name, and an imported kind. The
/// controller of the latter is only a stub that never sets the status.
const COMMANDS: &[&str] = &[
    "init --domain example.com --library path",
    "create api --version v1alpha1 --kind Memcached --controller-name runner",
    "create api --from-crd ../backup.yaml",
];

/// The CRD of the second kind. It's written to a file next to the project.
const BACKUP: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: backups.example.com
spec:
  group: example.com
  names: {kind: Backup, listKind: BackupList, plural: backups, singular: backup}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              schedule: {type: string}
          status:
            type: object
            properties:
              last: {type: string}
";

/// Scripts that replace programs on the `PATH` of the user.
const STAND_INS: &[(&str, &str)] = &[
    ("docker", ""),
    (
        "kind",
        "case \"$*\" in 'get kubeconfig'*) cat \"$STAND_IN_KUBECONFIG\" ;; esac\n",
    ),
    // Without a kubelet, we can't forward a port.
    (
        "kubectl",
        "case \" $* \" in\n\
         *' port-forward '*) echo \"Forwarding from $STAND_IN_METRICS -> 8443\"; exec sleep 600 ;;\n\
         *) exec \"$STAND_IN_KUBECTL\" \"$@\" ;;\n\
         esac\n",
    ),
];

/// All these must be in the output of `make test-e2e` if it passes.
const PASSED: &[&str] = &[
    "successfully rolled out",
    "waiting for the status of Memcached.v1alpha1.example.com/memcached-sample",
    "namespace \"memcached-operator-system\" deleted",
    "test result: ok. 1 passed",
];

/// All these must be in the output of `make test-e2e` if it doesn't get a response from the
/// manager.
const FAILED: &[&str] = &[
    "a client without a token must be refused",
    "kubectl --namespace memcached-operator-system describe deployments,pods",
    "Image:         example.com/memcached-operator:e2e",
    "kubectl --namespace memcached-operator-system get events",
    "test result: FAILED",
];

/// Runs the test twice, with and without a manager. Then checks `rbuilder undeploy`.
pub(crate) fn check_end_to_end() -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let folder = tempfile::Builder::new().prefix("rbuilder-e2e-").tempdir()?;
    let project = folder.path().join("memcached-operator");
    fs_err::write(folder.path().join("backup.yaml"), BACKUP)?;
    scaffold(&bin, &project, COMMANDS)?;
    let plane = ControlPlane::start_with_nodes(&assets::ensure_controllers()?)?;
    let scene = Scene::set_up(folder.path(), project, bin, plane.kubeconfig())?;
    let manager = scene.start_manager()?;
    let (passed, printed) = scene.make_test()?;
    drop(manager);
    ensure!(
        passed,
        "`make test-e2e` failed:\n{printed}\n{}",
        scene.read_log()?
    );
    check_printed(&printed, PASSED)?;
    let (passed, printed) = scene.make_test()?;
    ensure!(!passed, "`make test-e2e` passed without a manager:\n{printed}");
    check_printed(&printed, FAILED)?;
    println!("`make test-e2e` passed beside a manager, and failed with a report without one");
    scene.check_removal()?;
    println!("`rbuilder undeploy` left a namespace of others as it was");
    Ok(())
}

fn check_printed(printed: &str, parts: &[&str]) -> Result<()> {
    for part in parts {
        ensure!(
            printed.contains(part),
            "`make test-e2e` does not print `{part}`:\n{printed}"
        );
    }
    Ok(())
}

/// The project, along with all programs that its Makefile needs.
struct Scene {
    project: PathBuf,
    bin: PathBuf,
    programs: PathBuf,
    kubectl: PathBuf,
    kubeconfig: String,
    /// Address of the manager's metrics.
    metrics: SocketAddr,
}

impl Scene {
    fn set_up(folder: &Path, project: PathBuf, bin: PathBuf, kubeconfig: &str) -> Result<Self> {
        let programs = folder.join("programs");
        fs_err::create_dir(&programs)?;
        for (name, script) in STAND_INS {
            write_program(&programs.join(name), &format!("#!/bin/sh\n{script}"))?;
        }
        Ok(Scene {
            project,
            bin,
            programs,
            kubectl: find_kubectl()?,
            kubeconfig: kubeconfig.to_owned(),
            metrics: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?,
        })
    }

    /// Returns a command to run in the project. It finds the stand-ins before other programs.
    fn command(&self, line: &str) -> Result<Cmd> {
        let command = repo::project_command(&self.project, line)
            .path_first(&self.bin)?
            .env("STAND_IN_KUBECONFIG", &self.kubeconfig)
            .env("STAND_IN_KUBECTL", &self.kubectl)
            .env("STAND_IN_METRICS", self.metrics.to_string())
            // cargo and make set these for child processes.
            .without("CARGO")
            .without("MAKEFLAGS")
            .without_input();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.programs.clone(), self.bin.clone()];
        let folders = folders.into_iter().chain(std::env::split_paths(&path));
        Ok(command.env("PATH", std::env::join_paths(folders)?))
    }

    /// Installs the CRDs and starts the manager. The manager must be a process because there are no
    /// containers.
    fn start_manager(&self) -> Result<Manager> {
        self.in_cluster("make install")?.run()?;
        self.command("cargo build --quiet --bin manager")?.echo().run()?;
        let log = File::create(self.log())?;
        let manager = self.in_cluster("cargo run --quiet --bin manager -- --health-probe-bind-address=0")?;
        let manager = manager.arg(format!("--metrics-bind-address={}", self.metrics));
        let (mut manager, _) = manager.into_parts();
        manager.stdout(log.try_clone()?).stderr(log);
        Ok(Manager(manager.spawn().context("cannot run the manager")?))
    }

    /// Runs `make test-e2e`. Returns true if it passes, along with its output.
    fn make_test(&self) -> Result<(bool, String)> {
        let path = self.programs.join("printed");
        let printed = File::create(&path)?;
        let passed = self.command("make test-e2e")?.echo().run_into(&printed).is_ok();
        Ok((passed, fs_err::read_to_string(path)?))
    }

    /// Checks that `rbuilder undeploy` doesn't remove a namespace which is shared, or objects of
    /// other users in it. Also checks that there's a message if an object can't be removed because
    /// of a finalizer.
    fn check_removal(&self) -> Result<()> {
        let kustomization = self.project.join("config/default/kustomization.yaml");
        let text = fs_err::read_to_string(&kustomization)?;
        let text = text.replace("namespace: memcached-operator-system", "namespace: team");
        fs_err::write(&kustomization, text)?;
        for line in [
            "kubectl create namespace team",
            "kubectl label namespace team app.kubernetes.io/managed-by=platform",
            "kubectl create configmap precious --namespace team --from-literal=a=b",
            "rbuilder deploy --image example.com/memcached-operator:e2e",
            "kubectl wait --for=condition=established --timeout=60s crd/memcacheds.example.com",
            "kubectl apply --namespace team -f config/samples/v1alpha1_memcached.yaml",
        ] {
            self.in_cluster(line)?.run()?;
        }
        let owner = self.in_cluster(
            "kubectl get namespace team --output=jsonpath={.metadata.labels.app\\.kubernetes\\.io/managed-by}",
        )?;
        let owner = owner.read()?;
        ensure!(
            owner == "platform",
            "`rbuilder deploy` has set a label of others to `{owner}`"
        );
        // The deployment of the failed test is still there. Remove it first.
        self.in_cluster("rbuilder undeploy")?.run()?;
        for line in [
            "kubectl get clusterrole memcached-operator-manager-role",
            "kubectl get memcached memcached-sample --namespace team",
            "kubectl delete namespace memcached-operator-system",
            "rbuilder deploy --image example.com/memcached-operator:e2e",
        ] {
            self.in_cluster(line)?.run()?;
        }
        self.set_finalizers("[\"example.com/busy\"]")?;
        let printed = File::create(self.log())?;
        let removed = self
            .in_cluster("rbuilder undeploy --timeout 3")?
            .run_into(&printed);
        let printed = self.read_log()?;
        let named = "Memcached team/memcached-sample (finalizer example.com/busy)";
        ensure!(
            removed.is_err() && printed.contains(named),
            "`rbuilder undeploy` does not fail with `{named}`:\n{printed}"
        );
        // The manager must be there until all of its finalizers are removed.
        let manager = "kubectl get deployment memcached-operator-controller-manager --namespace team";
        self.in_cluster(manager)?.run()?;
        self.set_finalizers("null")?;
        self.in_cluster("rbuilder undeploy")?.run()?;
        self.in_cluster("kubectl get configmap precious --namespace team")?
            .run()
    }

    /// Replaces the finalizers of the sample in the shared namespace.
    fn set_finalizers(&self, finalizers: &str) -> Result<()> {
        let patch = format!("{{\"metadata\":{{\"finalizers\":{finalizers}}}}}");
        self.in_cluster("kubectl patch memcached memcached-sample --namespace team --type merge --patch")?
            .arg(patch)
            .run()
    }

    /// Returns a command to run in the project. It uses the cluster, i.e. `KUBECONFIG` is set.
    fn in_cluster(&self, line: &str) -> Result<Cmd> {
        Ok(self.command(line)?.env("KUBECONFIG", &self.kubeconfig))
    }

    fn log(&self) -> PathBuf {
        self.programs.join("log")
    }

    fn read_log(&self) -> Result<String> {
        Ok(fs_err::read_to_string(self.log())?)
    }
}

/// Returns the path of kubectl. It is built if necessary.
fn find_kubectl() -> Result<PathBuf> {
    match assets::ensure_kubectl()? {
        Some(folder) => Ok(folder.join("kubectl")),
        None => find_program("kubectl"),
    }
}

/// The manager's process. It is killed on drop.
struct Manager(Child);

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
