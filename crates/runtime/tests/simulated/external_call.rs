//! External systems that are called over the network: buckets of a cloud provider, and DNS records
//! that other clients edit as well.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use rbuilder::simulation::{External, Outage, Remote, new_id};
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::{Value, json};

use crate::Case;
use crate::children::config_map;
use crate::kinds::{App, Reported, crds, declared, report, report_phase, tag};

const CLASS: &str = "external call";
const FINALIZER: &str = "simulated.example.com/external";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "bucket_created_again_after_a_lost_answer",
        class: CLASS,
        oracle: "end-state",
        broken: created_twice::register::<false>,
        repaired: created_twice::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "bucket_left_by_a_failed_deletion",
        class: CLASS,
        oracle: "deletion",
        broken: left_over::register::<false>,
        repaired: left_over::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "deletion_of_a_bucket_that_is_gone_fails",
        class: CLASS,
        oracle: "deletion",
        broken: gone::register::<false>,
        repaired: gone::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "slow_call_taken_for_a_failure",
        class: CLASS,
        oracle: "end-state",
        broken: slow::register::<false>,
        repaired: slow::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "record_deleted_elsewhere_is_not_noticed",
        class: CLASS,
        oracle: "end-state",
        broken: drift::register::<false>,
        repaired: drift::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
];

/// The buckets of an account. The system assigns the identifiers, and each bucket has a tag.
#[derive(Default)]
struct Buckets(BTreeMap<String, String>);

impl External for Buckets {
    const NAME: &'static str = "buckets";

    fn objects(&self) -> Vec<(String, Value)> {
        self.0.values().map(|tag| (tag.clone(), json!({}))).collect()
    }
}

/// Returns the identifier of a new bucket. Not idempotent.
async fn create_bucket(buckets: &Remote<Buckets>, tag: &str) -> Result<String, Outage> {
    let owned = tag.to_owned();
    let create = move |buckets: &mut Buckets| {
        let id = new_id();
        buckets.0.insert(id.clone(), owned);
        id
    };
    buckets.call(format!("create {tag}"), create).await
}

async fn find_bucket(buckets: &Remote<Buckets>, tag: &str) -> Result<Option<String>, Outage> {
    let owned = tag.to_owned();
    let find = move |buckets: &mut Buckets| {
        let mut all = buckets.0.iter();
        all.find_map(|(id, tag)| (*tag == owned).then(|| id.clone()))
    };
    buckets.call(format!("find {tag}"), find).await
}

/// Deletes all buckets with the given tag, and returns whether there were any.
async fn delete_buckets(buckets: &Remote<Buckets>, tag: &str) -> Result<bool, Outage> {
    let owned = tag.to_owned();
    let delete = move |buckets: &mut Buckets| {
        let count = buckets.0.len();
        buckets.0.retain(|_, tag| *tag != owned);
        buckets.0.len() < count
    };
    buckets.call(format!("delete {tag}"), delete).await
}

/// Creates the bucket of an App if necessary, and publishes its identifier.
async fn ensure_bucket(app: Arc<App>, ctx: Ctx<Remote<Buckets>>) -> Result {
    let tag = tag(&*app);
    let found = find_bucket(&ctx, &tag).await?;
    let id = match found {
        Some(id) => id,
        None => create_bucket(&ctx, &tag).await?,
    };
    publish(&app, &ctx, id).await
}

async fn publish<S>(app: &Arc<App>, ctx: &Ctx<S>, id: String) -> Result {
    report(ctx, &**app, |status| status.id = Some(id.clone())).await?;
    let data = [("bucket", id), ("size", app.spec.size.to_string())];
    ctx.apply_owned(&**app, config_map(app.name_any(), data)).await?;
    Ok(Action::await_change())
}

async fn delete_all(app: Arc<App>, ctx: Ctx<Remote<Buckets>>) -> Result {
    delete_buckets(&ctx, &tag(&*app)).await?;
    Ok(Action::await_change())
}

/// The operator only knows the identifier from the response. After a restart, it creates another
/// bucket: aws-controllers-k8s/community#2062, k-orc/openstack-resource-controller#19.
mod created_twice {
    use super::*;

    async fn reconcile(app: Arc<App>, ctx: Ctx<Remote<Buckets>>) -> Result {
        let id = match app.reported().id {
            Some(id) => id,
            None => create_bucket(&ctx, &tag(&*app)).await?,
        };
        publish(&app, &ctx, id).await
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(match REPAIRED {
            true => Controller::new(ensure_bucket, Remote::new())
                .owns::<ConfigMap>()
                .finalizer(FINALIZER, delete_all),
            false => Controller::new(reconcile, Remote::new())
                .owns::<ConfigMap>()
                .finalizer(FINALIZER, delete_all),
        })
    }
}

/// The operator removes the finalizer without having deleted the bucket:
/// pingcap/tidb-operator#6532, where an external store is left behind.
mod left_over {
    use super::*;

    async fn cleanup<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Remote<Buckets>>) -> Result {
        let deleted = delete_buckets(&ctx, &tag(&*app)).await;
        if REPAIRED {
            deleted?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(ensure_bucket, Remote::new()).owns::<ConfigMap>();
        manager.controller(controller.finalizer(FINALIZER, cleanup::<REPAIRED>))
    }
}

/// The response to the deletion is lost. The next attempt fails because the bucket no longer
/// exists: coralogix/coralogix-operator#239, Twingate/kubernetes-operator#403.
mod gone {
    use super::*;

    async fn cleanup<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Remote<Buckets>>) -> Result {
        let was_there = delete_buckets(&ctx, &tag(&*app)).await?;
        if !REPAIRED && !was_there {
            return Err(rbuilder::Error::new("the bucket does not exist"));
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(ensure_bucket, Remote::new()).owns::<ConfigMap>();
        manager.controller(controller.finalizer(FINALIZER, cleanup::<REPAIRED>))
    }
}

/// After some time, the operator reports an error and never recovers:
/// Azure/azure-service-operator#4902, where a temporary problem of the API is treated as a mistake
/// by the user.
mod slow {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Remote<Buckets>>) -> Result {
        if app.reported().phase.as_deref() == Some("Failed") {
            return Ok(Action::await_change());
        }
        let ensured = tokio::time::timeout(Duration::from_secs(30), ensure_bucket(app.clone(), ctx.clone()));
        match ensured.await {
            Ok(result) => result,
            Err(_) if REPAIRED => Ok(Action::requeue(Duration::from_secs(10))),
            Err(_) => {
                report_phase(&ctx, &*app, "Failed").await?;
                Ok(Action::await_change())
            }
        }
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Remote::new()).owns::<ConfigMap>();
        manager.controller(controller.finalizer(FINALIZER, delete_all))
    }
}

/// A record deleted by another client is never restored, since the status says that it was created:
/// k-orc/openstack-resource-controller#759.
mod drift {
    use super::*;

    /// DNS records by name.
    #[derive(Default)]
    struct Zone(BTreeMap<String, String>);

    impl External for Zone {
        const NAME: &'static str = "dns";

        fn objects(&self) -> Vec<(String, Value)> {
            let records = self.0.iter();
            records
                .map(|(name, text)| (name.clone(), text.clone().into()))
                .collect()
        }

        fn remove(&mut self, name: &str) {
            self.0.remove(name);
        }
    }

    async fn set_record(app: &App, zone: &Remote<Zone>) -> Result<(), Outage> {
        let (name, text) = (tag(app), app.spec.size.to_string());
        let set = format!("set {name}");
        zone.call(set, |zone| {
            zone.0.insert(name, text);
        })
        .await
    }

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Remote<Zone>>) -> Result {
        let is_done = app.reported().count == Some(app.spec.size);
        if REPAIRED || !is_done {
            set_record(&app, &ctx).await?;
        }
        let data = [("record", tag(&*app))];
        ctx.apply_owned(&*app, config_map(app.name_any(), data)).await?;
        report(&ctx, &*app, |status| status.count = Some(app.spec.size)).await?;
        match REPAIRED {
            true => Ok(Action::requeue(Duration::from_secs(300))),
            false => Ok(Action::await_change()),
        }
    }

    async fn cleanup(app: Arc<App>, ctx: Ctx<Remote<Zone>>) -> Result {
        let name = tag(&*app);
        let delete = format!("delete {name}");
        ctx.call(delete, |zone| zone.0.remove(&name)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Remote::new()).owns::<ConfigMap>();
        manager.controller(controller.finalizer(FINALIZER, cleanup))
    }
}
