// SPDX-License-Identifier: Apache-2.0

//! Starts an API server and creates objects like those of users.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use bench_operator::api::Memcached;
use bench_operator::latencies::SENT;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt};
use rbuilder::envtest::Environment;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Number of namespaces, over which the objects are distributed.
const NAMESPACES: usize = 10;
/// The feature gate with which the API server sends a replica its own objects only.
pub const SERVER_SHARDS: &str = "ShardedListAndWatch";
/// Number of concurrent requests.
const AT_A_TIME: usize = 16;

/// An API server with its etcd, and the number of objects.
pub struct Cluster {
    pub environment: Environment,
    pub client: Client,
    pub objects: usize,
    /// The data of etcd.
    data: TempDir,
}

/// The data of stopped clusters, of which copies can be started: creating and reconciling objects
/// takes most of the time of a measurement.
pub struct Snapshots {
    folder: PathBuf,
    objects: usize,
    /// Deletes the folder at the end, unless it is kept for the next measurement.
    _temporary: Option<TempDir>,
}

impl Snapshots {
    /// Uses this folder, which may already contain snapshots, or else a temporary one.
    pub fn new(folder: Option<&Path>, objects: usize) -> Result<Self> {
        let temporary = match folder {
            Some(_) => None,
            None => Some(tempfile::tempdir()?),
        };
        let folder = folder.or(temporary.as_ref().map(TempDir::path));
        Ok(Self {
            folder: folder.context("there is a folder")?.to_owned(),
            objects,
            _temporary: temporary,
        })
    }

    pub fn objects(&self) -> usize {
        self.objects
    }

    /// Starts a cluster with objects that no operator has seen, and with this feature gate if there
    /// is one.
    pub async fn created(&self, gate: Option<&str>) -> Result<Cluster> {
        if !self.path("created").exists() {
            let cluster = Cluster::start(tempfile::tempdir()?, self.objects, None).await?;
            cluster.populate().await?;
            self.save("created", cluster).await?;
        }
        self.start("created", gate).await
    }

    /// Starts a cluster where everything is reconciled; `None` if none was [saved](Self::save_reconciled).
    pub async fn reconciled(&self, gate: Option<&str>) -> Result<Option<Cluster>> {
        match self.path("reconciled").exists() {
            true => self.start("reconciled", gate).await.map(Some),
            false => Ok(None),
        }
    }

    /// Stops a cluster where everything is reconciled, and keeps its data if none is kept yet.
    pub async fn save_reconciled(&self, cluster: Cluster) -> Result<()> {
        match self.path("reconciled").exists() {
            true => Ok(()),
            false => self.save("reconciled", cluster).await,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-{}", self.objects))
    }

    async fn save(&self, name: &str, cluster: Cluster) -> Result<()> {
        let Cluster {
            environment, data, ..
        } = cluster;
        environment.stop().await?;
        let copy = tempfile::tempdir_in(&self.folder)?;
        copy_folder(data.path(), copy.path())?;
        std::fs::rename(copy.keep(), self.path(name))?;
        Ok(())
    }

    async fn start(&self, name: &str, gate: Option<&str>) -> Result<Cluster> {
        let data = tempfile::tempdir()?;
        copy_folder(&self.path(name), data.path())?;
        Cluster::start(data, self.objects, gate).await
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &copy)?,
            false => drop(std::fs::copy(entry.path(), copy)?),
        }
    }
    Ok(())
}

impl Cluster {
    /// Starts a cluster with the data of an etcd.
    async fn start(data: TempDir, objects: usize, gate: Option<&str>) -> Result<Self> {
        let builder = gate
            .into_iter()
            .fold(Environment::builder(), |builder, gate| {
                builder.apiserver_arg(format!("--feature-gates={gate}=true"))
            });
        let environment = builder
            .etcd_arg(format!("--data-dir={}", data.path().display()))
            // Large enough for several revisions of 50 000 objects and their Deployments.
            .etcd_arg("--quota-backend-bytes=8589934592")
            // Turn off throttling, which might only affect one of the operators.
            .apiserver_arg("--max-requests-inflight=0")
            .apiserver_arg("--max-mutating-requests-inflight=0")
            .apiserver_arg("--enable-priority-and-fairness=false")
            .start()
            .await?;
        Ok(Self {
            client: environment.client(),
            environment,
            objects,
            data,
        })
    }

    /// Creates the objects.
    async fn populate(&self) -> Result<()> {
        let started = Instant::now();
        self.install().await?;
        let made = stream::iter(0..self.objects).map(|number| self.create(number));
        made.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        eprintln!(
            "created {} objects in {:.1} s",
            self.objects,
            started.elapsed().as_secs_f64()
        );
        Ok(())
    }

    async fn install(&self) -> Result<()> {
        let folder = std::env::temp_dir().join(format!("bench-crd-{}.json", std::process::id()));
        std::fs::write(&folder, serde_json::to_vec(&Memcached::crd())?)?;
        let installed = self.environment.install_crds(&folder).await;
        std::fs::remove_file(&folder)?;
        installed?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for number in 0..NAMESPACES {
            let mut namespace = Namespace::default();
            namespace.metadata.name = Some(namespace_of(number));
            namespaces
                .create(&PostParams::default(), &namespace)
                .await?;
        }
        Ok(())
    }

    async fn create(&self, number: usize) -> Result<()> {
        let object = object(number);
        let path = format!(
            "/apis/bench.example.com/v1alpha1/namespaces/{}/memcacheds?fieldManager=kubectl-client-side-apply",
            namespace_of(number)
        );
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&object)?)?;
        self.client.request_text(request).await?;
        Ok(())
    }

    /// Sets the time in an annotation of an object.
    pub async fn touch(&self, number: usize) -> Result<()> {
        let objects: Api<Memcached> = Api::namespaced(self.client.clone(), &namespace_of(number));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let annotations = json!({ SENT: now.as_nanos().to_string() });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let params = PatchParams {
            field_manager: Some("kubectl-annotate".to_owned()),
            ..PatchParams::default()
        };
        objects
            .patch_metadata(&name_of(number), &params, &patch)
            .await?;
        Ok(())
    }

    /// Returns the metrics of the API server.
    pub async fn metrics(&self) -> Result<String> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        Ok(self.client.request_text(request).await?)
    }
}

fn namespace_of(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

fn name_of(number: usize) -> String {
    format!("memcached-sample-{number:05}")
}

/// Returns an object as left by `kubectl apply` and a delivery tool: 1.7 kB including
/// `managedFields`.
fn object(number: usize) -> Value {
    let labels = json!({
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": name_of(number),
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/managed-by": "kustomize",
    });
    let mut object = json!({
        "apiVersion": "bench.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {
            "annotations": { "example.com/owner": "team-storage@example.com" },
            "labels": labels,
            "name": name_of(number),
            "namespace": namespace_of(number),
        },
        "spec": {
            "arguments": ["--memory-limit=64", "-o", "modern", "-v"],
            "containerPort": 11211,
            "image": "registry.example.com/cache/memcached:1.6.26-alpine3.19",
            "memoryMegabytes": 64,
            "nodeSelector": { "kubernetes.io/os": "linux" },
            "size": 1 + number % 3,
        },
    });
    let applied = object.to_string();
    object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
        applied.into();
    // The server adds an entry for the client that creates the object.
    object["metadata"]["managedFields"] = json!([{
        "apiVersion": "bench.example.com/v1alpha1",
        "fieldsType": "FieldsV1",
        "fieldsV1": { "f:metadata": {
            "f:annotations": { "f:example.com/owner": {} },
            "f:labels": { "f:app.kubernetes.io/part-of": {} },
        } },
        "manager": "delivery",
        "operation": "Apply",
        "time": "2026-01-01T00:00:00Z",
    }]);
    object
}
