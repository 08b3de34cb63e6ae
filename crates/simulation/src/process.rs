//! Runs the operator's processes: either a single one, or two replicas with leader election.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rbuilder_testing::fake::WebhookHandler;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::context;
use crate::leases::ProcessId;
use crate::network::{Connection, Network};
use crate::operator::{ProcessSettings, Started};
use crate::run::Setting;
use crate::timeline::Actor;

pub(crate) type Ended = Option<Result<(), String>>;

/// A slot for a process, reused by its successor when it exits.
struct Replica {
    actor: Actor,
    connection: Connection,
    /// `None` while no process is running.
    task: Option<JoinHandle<Result<(), String>>>,
    webhooks: Option<WebhookHandler>,
    /// When to start the next process, if scheduled.
    start_at: Option<Instant>,
}

pub(crate) struct Processes<'r> {
    setting: &'r Setting,
    network: Network,
    replicas: Vec<Replica>,
    /// Number of processes started so far, i.e. the id of the next one.
    started: ProcessId,
    elects_leader: bool,
}

impl<'r> Processes<'r> {
    pub(crate) fn start(setting: &'r Setting, network: &Network, replicated: bool) -> Self {
        let actors: &[Actor] = match replicated {
            true => &[Actor::Operator, Actor::Replica],
            false => &[Actor::Operator],
        };
        let mut processes = Self {
            setting,
            network: network.clone(),
            replicas: Vec::new(),
            started: 0,
            elects_leader: replicated,
        };
        for actor in actors {
            let replica = processes.start_one(*actor);
            processes.replicas.push(replica);
        }
        processes.serve_webhooks();
        processes
    }

    fn start_one(&mut self, actor: Actor) -> Replica {
        let connection = self.network.connect(self.started, actor);
        self.started += 1;
        // Any `Remote` created by the program connects on behalf of this process.
        context::connect(&connection);
        let settings = ProcessSettings {
            namespace: self.setting.namespace.clone(),
            elects_leader: self.elects_leader,
        };
        let Started { running, webhooks } = (self.setting.program)(connection.client(), &settings);
        Replica {
            actor,
            connection,
            task: Some(tokio::spawn(running)),
            webhooks,
            start_at: None,
        }
    }

    /// Routes webhook calls to a running process. If there's none, webhooks are unreachable.
    fn serve_webhooks(&self) {
        if !self.setting.has_webhooks {
            return;
        }
        let mut living = self
            .replicas
            .iter()
            .filter(|replica| !replica.connection.is_dead());
        let handler = living.find_map(|replica| replica.webhooks.clone());
        let handler = handler.unwrap_or_else(unreachable_webhooks);
        self.network.server.serve_webhooks(Some(handler));
    }

    pub(crate) fn replace_dead(&mut self, pause: Duration) {
        for replica in &mut self.replicas {
            if replica.connection.is_dead() && replica.start_at.is_none() {
                replica.stop();
                replica.start_at = Some(Instant::now() + pause);
            }
        }
        self.serve_webhooks();
    }

    pub(crate) fn next_start(&self) -> Option<Instant> {
        self.replicas.iter().filter_map(|replica| replica.start_at).min()
    }

    pub(crate) fn start_due(&mut self) {
        let now = Instant::now();
        for number in 0..self.replicas.len() {
            let replica = &self.replicas[number];
            if replica.start_at.is_some_and(|start| start <= now) {
                let started = "the operator starts again".to_owned();
                let actor = replica.actor;
                self.network.traffic().timeline.note(actor, started);
                self.replicas[number] = self.start_one(actor);
                self.serve_webhooks();
            }
        }
    }

    /// Waits for a process to exit on its own, and marks it as dead.
    pub(crate) async fn ended(&mut self) -> (Actor, Ended) {
        poll_fn(|cx| {
            for replica in &mut self.replicas {
                let Some(task) = &mut replica.task else { continue };
                if let Poll::Ready(ended) = Pin::new(task).poll(cx) {
                    replica.task = None;
                    replica.connection.kill();
                    return Poll::Ready((replica.actor, ended.ok()));
                }
            }
            Poll::Pending
        })
        .await
    }

    pub(crate) fn stop(&mut self) {
        self.replicas.iter_mut().for_each(Replica::stop);
    }
}

impl Replica {
    fn stop(&mut self) {
        self.connection.kill();
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

fn unreachable_webhooks() -> WebhookHandler {
    let refuse = Arc::new(b"connection refused".to_vec());
    WebhookHandler::new(move |_, _| {
        let body = Vec::clone(&refuse);
        async move { (503, body) }
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::Lease;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::api::{DeleteParams, ListParams, PostParams};
    use kube::{Api, Client, ResourceExt};
    use serde_json::json;

    use super::*;
    use crate::{Oracle, Simulation};

    async fn take_lease(client: &Client, holder: &str) -> kube::Result<bool> {
        let leases: Api<Lease> = Api::default_namespaced(client.clone());
        let now = context::now().map(|now| now.to_string());
        let lease = json!({
            "metadata": { "name": "operator" }, "spec": { "holderIdentity": holder, "renewTime": now },
        });
        let mut lease: Lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
        let Some(found) = leases.get_opt("operator").await? else {
            leases.create(&PostParams::default(), &lease).await?;
            return Ok(true);
        };
        let renewed = found.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
        let age = renewed
            .zip(context::now())
            .map(|(renewed, now)| now.duration_since(renewed.0));
        if age.is_none_or(|age| age.as_secs() < 20) {
            return Ok(false);
        }
        lease.metadata.resource_version = found.resource_version();
        leases.replace("operator", &PostParams::default(), &lease).await?;
        Ok(true)
    }

    async fn work(client: &Client) -> kube::Result<()> {
        let secrets: Api<Secret> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        for secret in secrets.list(&ListParams::default()).await?.items {
            let mut map = ConfigMap::default();
            map.metadata.name = secret.metadata.name.clone();
            if maps.get_opt(&secret.name_any()).await?.is_none() {
                maps.create(&PostParams::default(), &map).await?;
            }
        }
        for map in maps.list(&ListParams::default()).await?.items {
            if secrets.get_opt(&map.name_any()).await?.is_none() {
                maps.delete(&map.name_any(), &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    /// Waits to acquire the lease, but never checks that it's still held. That's the bug.
    async fn lead_for_ever(client: Client) {
        let holder = context::random().unwrap_or_default().to_string();
        while !take_lease(&client, &holder).await.unwrap_or_default() {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        loop {
            let _ = work(&client).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }

    #[test]
    fn reports_write_after_losing_the_lease() {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
        let report = |replicas| {
            let simulation = Simulation::of_client(lead_for_ever)
                .declare(&secret)
                .histories(30);
            simulation.without(Oracle::Quiet).replicas(replicas).run()
        };
        let found = |report: crate::Report| {
            report
                .failures
                .iter()
                .any(|failure| failure.oracle == Oracle::Leader)
        };
        assert!(found(report(2)));
        assert!(!found(report(1)), "one process cannot lose its lease");
    }
}
