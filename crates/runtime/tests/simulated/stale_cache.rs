//! The caches are stale.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::ResourceExt;
use kube::core::Selector;
use kube::runtime::watcher::ListSemantic;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{claim, create, delete_named, labels, requested, secret};
use crate::kinds::{Labelled, Store, crds, declared, namespace, report_phase};
use crate::memory::Names;

const CLASS: &str = "stale cache";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "leftovers_deleted_by_name",
        class: CLASS,
        oracle: "data",
        broken: leftovers::register::<false>,
        repaired: leftovers::register::<true>,
        crds: crds::<Store>,
        declarations: || vec![declared::<Store>(json!({ "storage": 1 }))],
        role: None,
    },
    Case {
        name: "secret_made_again_if_unseen",
        class: CLASS,
        oracle: "data",
        broken: clean_slate::register::<false>,
        repaired: clean_slate::register::<true>,
        crds: crds::<Labelled>,
        declarations: || vec![declared::<Labelled>(json!({ "label": "anna" }))],
        role: None,
    },
    Case {
        name: "secret_made_again_by_the_next_process",
        class: CLASS,
        oracle: "data",
        broken: next_process::register::<false>,
        repaired: next_process::register::<true>,
        crds: crds::<Labelled>,
        declarations: || vec![declared::<Labelled>(json!({ "label": "anna" }))],
        role: None,
    },
];

/// The operator deletes the leftover claim of an old object without a precondition. Meanwhile, the
/// new object has a claim with the same name: k8ssandra/cass-operator#118,
/// Orange-OpenSource/casskop#316.
mod leftovers {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(store: Arc<Store>, ctx: Ctx<()>) -> Result {
        let wanted = claim(store.name_any(), store.spec.storage);
        if REPAIRED {
            ctx.apply_owned(&*store, wanted).await?;
            report_phase(&ctx, &*store, "Running").await?;
            return Ok(Action::await_change());
        }
        let mut owned = wanted.clone();
        owned.metadata.labels = Some(labels(&*store));
        let ours = Selector::from_iter(labels(&*store));
        let claims = ctx.cached::<PersistentVolumeClaim>()?;
        let claims = claims.labelled(&namespace(&*store), &ours);
        let is_ours = |claim: &PersistentVolumeClaim| {
            let owners = claim.owner_references();
            owners
                .iter()
                .any(|owner| Some(&owner.uid) == store.metadata.uid.as_ref())
        };
        for leftover in claims.iter().filter(|claim| !is_ours(claim)) {
            delete_named::<PersistentVolumeClaim, _>(&ctx, &*store, &leftover.name_any()).await?;
        }
        let api = ctx.api::<PersistentVolumeClaim>(&*store);
        match api.get_opt(&store.name_any()).await? {
            None => drop(create(&ctx, &*store, owned).await?),
            Some(found) if requested(&found) != requested(&owned) => {
                ctx.apply_owned(&*store, owned).await?;
            }
            Some(_) => {}
        }
        if claims.iter().any(|claim| is_ours(claim)) {
            report_phase(&ctx, &*store, "Running").await?;
            return Ok(Action::await_change());
        }
        // Wait until the cache contains the claim.
        Ok(Action::requeue(Duration::from_secs(1)))
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<PersistentVolumeClaim, _>::owned()))
    }
}

/// The operator starts from scratch if something isn't in the cache:
/// instaclustr/cassandra-operator#407, where a claim is deleted because of a stale list of Pods.
mod clean_slate {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(login: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let (name, mut wanted) = (login.name_any(), secret(login.name_any(), &login.spec.label));
        let cached = ctx.cached::<Secret>()?.named(&namespace(&*login), &name);
        if !REPAIRED && cached.is_none() {
            delete_named::<Secret, _>(&ctx, &*login, &name).await?;
            let password = ByteString(ctx.random().to_string().into_bytes());
            wanted
                .data
                .get_or_insert_default()
                .insert("password".to_owned(), password);
            create(&ctx, &*login, wanted).await?;
            return Ok(Action::requeue(Duration::from_secs(1)));
        }
        ctx.apply_owned(&*login, wanted).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<Secret, _>::owned()))
    }
}

/// The process remembers what it has created until the cache contains it, so delayed events are
/// harmless. But a restart forgets this, and the cache may be stale. Sieve calls this *stale
/// state*.
mod next_process {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(login: Arc<Labelled>, ctx: Ctx<Names>) -> Result {
        let (name, mut wanted) = (login.name_any(), secret(login.name_any(), &login.spec.label));
        let uid = login.uid().unwrap_or_default();
        let is_made = match REPAIRED {
            true => ctx.api::<Secret>(&*login).get_opt(&name).await?.is_some(),
            false => {
                let cached = ctx.cached::<Secret>()?.named(&namespace(&*login), &name);
                cached.is_some() || ctx.contains(&uid)
            }
        };
        if !is_made {
            delete_named::<Secret, _>(&ctx, &*login, &name).await?;
            let password = ByteString(ctx.random().to_string().into_bytes());
            let data = wanted.data.get_or_insert_default();
            data.insert("password".to_owned(), password);
            create(&ctx, &*login, wanted).await?;
            ctx.insert(&uid);
            return Ok(Action::requeue(Duration::from_secs(1)));
        }
        ctx.apply_owned(&*login, wanted).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Names::default());
        let manager = manager.list_semantic(ListSemantic::Any);
        manager.controller(controller.watch(Watch::<Secret, _>::owned()))
    }
}
