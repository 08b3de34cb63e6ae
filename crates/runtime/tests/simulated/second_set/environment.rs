//! A dependency of the operator fails, or is slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplateSpec};
use kube::ResourceExt;
use rbuilder::simulation::{External, Outage, Remote, new_id};
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::{Value, json};

use crate::children::{config_map, deployment, metadata};
use crate::kinds::{App, report, report_ready, tag};

/// A failed Job counts as ready, because it is finished as well.
pub(super) mod finished {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let applied = ctx.apply_owned(&*app, job(&app)).await?;
        let status = applied.status.unwrap_or_default();
        let is_ready = match REPAIRED {
            true => has_condition(&status, "Complete"),
            false => has_condition(&status, "Complete") || has_condition(&status, "Failed"),
        };
        report_ready(&ctx, &*app, is_ready).await?;
        Ok(Action::await_change())
    }

    fn has_condition(status: &JobStatus, name: &str) -> bool {
        let mut conditions = status.conditions.iter().flatten();
        conditions.any(|condition| condition.type_ == name && condition.status == "True")
    }

    fn job(app: &App) -> Job {
        let mut pod = deployment("", "worker", 1).spec.template.spec;
        if let Some(pod) = &mut pod {
            pod.restart_policy = Some("Never".to_owned());
        }
        Job {
            metadata: metadata(app.name_any()),
            spec: Some(JobSpec {
                parallelism: Some(app.spec.size),
                template: PodTemplateSpec {
                    spec: pod,
                    ..PodTemplateSpec::default()
                },
                ..JobSpec::default()
            }),
            ..Job::default()
        }
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<Job, _>::owned()))
    }
}

/// If an order takes too long, the operator places it in a different region, but the first order is
/// still processed.
pub(super) mod region {
    use super::*;

    struct Machine {
        tag: String,
        region: &'static str,
        size: i32,
    }

    /// The machines of an account, by the identifier that the system assigned.
    #[derive(Default)]
    pub(in super::super) struct Machines(BTreeMap<String, Machine>);

    impl External for Machines {
        const NAME: &'static str = "machines";

        fn objects(&self) -> Vec<(String, Value)> {
            let state = |machine: &Machine| {
                let value = json!({ "region": machine.region, "size": machine.size });
                (machine.tag.clone(), value)
            };
            self.0.values().map(state).collect()
        }
    }

    type Cloud = Remote<Machines>;

    async fn find(cloud: &Cloud, tag: &str) -> Result<Option<String>, Outage> {
        let owned = tag.to_owned();
        let find = move |machines: &mut Machines| {
            let mut all = machines.0.iter();
            all.find_map(|(id, machine)| (machine.tag == owned).then(|| id.clone()))
        };
        cloud.call(format!("find {tag}"), find).await
    }

    async fn order(cloud: &Cloud, tag: &str, region: &'static str) -> Result<String, Outage> {
        let machine = Machine {
            tag: tag.to_owned(),
            region,
            size: 0,
        };
        let order = move |machines: &mut Machines| {
            let id = new_id();
            machines.0.insert(id.clone(), machine);
            id
        };
        cloud.call(format!("order {tag} in {region}"), order).await
    }

    async fn resize(cloud: &Cloud, id: String, size: i32) -> Result<(), Outage> {
        let resize = move |machines: &mut Machines| {
            if let Some(machine) = machines.0.get_mut(&id) {
                machine.size = size;
            }
        };
        cloud.call("resize", resize).await
    }

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Cloud>) -> Result {
        let tag = tag(&*app);
        let id = match find(&ctx, &tag).await? {
            Some(id) => id,
            None if REPAIRED => order(&ctx, &tag, "north").await?,
            None => {
                let first = order(&ctx, &tag, "north");
                match tokio::time::timeout(Duration::from_secs(10), first).await {
                    Ok(id) => id?,
                    Err(_) => order(&ctx, &tag, "south").await?,
                }
            }
        };
        resize(&ctx, id.clone(), app.spec.size).await?;
        report(&ctx, &*app, |status| status.id = Some(id.clone())).await?;
        ctx.apply_owned(&*app, config_map(app.name_any(), [("machine", id)]))
            .await?;
        Ok(Action::await_change())
    }

    async fn cleanup(app: Arc<App>, ctx: Ctx<Cloud>) -> Result {
        let tag = tag(&*app);
        let delete = |machines: &mut Machines| machines.0.retain(|_, machine| machine.tag != tag);
        ctx.call(format!("delete {tag}"), delete).await?;
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller =
            Controller::new(reconcile::<REPAIRED>, Remote::<Machines>::new()).owns::<ConfigMap>();
        manager.controller(controller.finalizer("simulated.example.com/machines", cleanup))
    }
}
