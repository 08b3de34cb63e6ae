//! What an operator knows about other objects.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Error, Manager, ObjectRef, Result, Watch, set_owner_reference};

use crate::children::{OWNER, claim, config_map, labels};
use crate::kinds::{App, Labelled, Store, namespace};

/// Two objects write the same child: thanos-community/thanos-operator#118.
pub(super) mod shared {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let size = [("size", app.spec.size.to_string())];
        if REPAIRED {
            ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
            return Ok(Action::await_change());
        }
        let mut shared = config_map("shared", size);
        for owner in everybody(&ctx)? {
            set_owner_reference(&*owner, &mut shared)?;
        }
        ctx.apply(shared).await?;
        Ok(Action::await_change())
    }

    fn everybody(ctx: &Ctx<()>) -> Result<Vec<Arc<App>>> {
        let mut apps = ctx.cached::<App>()?.list();
        apps.retain(|app| app.metadata.deletion_timestamp.is_none());
        apps.sort_by_key(|app| app.name_any());
        Ok(apps)
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        let of_shared = |_: &ConfigMap, ctx: &Ctx<()>| {
            let apps = everybody(ctx).unwrap_or_default();
            apps.iter().map(|app| ObjectRef::from_obj(&**app)).collect()
        };
        manager.controller(match REPAIRED {
            true => controller.owns::<ConfigMap>(),
            false => controller.watches(of_shared),
        })
    }
}

/// When an object is reconciled, the operator cleans up everything without an owner. But some
/// owners are merely not visible: druid-io/druid-operator#305, where claims that look like orphans
/// are deleted.
pub(super) mod unknown_owner {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(store: Arc<Store>, ctx: Ctx<()>) -> Result {
        let mut wanted = claim(store.name_any(), store.spec.storage);
        wanted.metadata.labels = Some(labels(&*store));
        ctx.apply_owned(&*store, wanted).await?;
        let stores = ctx.cached::<Store>()?;
        for claim in ctx.cached::<PersistentVolumeClaim>()?.list() {
            let Some(owner) = claim.labels().get(OWNER) else {
                continue;
            };
            let is_gone = stores.named(&namespace(&*claim), owner).is_none();
            if is_gone && !(REPAIRED && ctx.api::<Store>(&*claim).get_opt(owner).await?.is_some()) {
                ctx.delete(&*claim).await?;
            }
        }
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<PersistentVolumeClaim, _>::owned()))
    }
}

/// The operator treats something that doesn't exist yet as the user's mistake:
/// aws-controllers-k8s/community#1228.
pub(super) mod reference {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(reader: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let maps = ctx.api::<ConfigMap>(&*reader);
        let found = maps.get_opt(&reader.spec.label).await?;
        let text = found.and_then(|map| map.data?.remove("text"));
        if !REPAIRED && text.is_none() {
            return Err(Error::terminal(format!(
                "ConfigMap {} does not exist",
                reader.spec.label
            )));
        }
        let copy = [("text", text.unwrap_or_default())];
        ctx.apply_owned(&*reader, config_map(reader.name_any(), copy))
            .await?;
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>();
        let readers = |map: &ConfigMap, ctx: &Ctx<()>| {
            let readers = ctx.cached::<Labelled>().map(|readers| readers.list());
            let mut readers = readers.unwrap_or_default();
            readers.retain(|reader| reader.spec.label == map.name_any());
            readers
                .iter()
                .map(|reader| ObjectRef::from_obj(&**reader))
                .collect()
        };
        manager.controller(match REPAIRED {
            true => controller.watches(readers),
            false => controller,
        })
    }
}
