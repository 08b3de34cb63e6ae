//! Responses that the author of the operator didn't expect.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch, set_controller_reference};

use crate::children::{config_map, create, deployment, force, is_available};
use crate::kinds::{App, Limit, Site, Store, StoreSpec, Web, namespace, report_phase};
use crate::second_set::exists_already;

/// The owner permits a value that isn't valid for the child: gardener/gardener#14392, where the
/// controller gets stuck because of an immutable field.
pub(super) mod shrink {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let storage = app.spec.size;
        let size = [("size", storage.to_string())];
        ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
        let found = ctx.cached::<Store>()?.named(&namespace(&*app), &app.name_any());
        if let Some(found) = found
            && REPAIRED
            && found.spec.storage > storage
        {
            // The deletion triggers an event, which leads to recreating the child.
            ctx.delete(&*found).await?;
            return Ok(Action::await_change());
        }
        let child = Store::new(&app.name_any(), StoreSpec { storage });
        ctx.apply_owned(&*app, child).await?;
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.owns::<ConfigMap>().watch(Watch::<Store, _>::owned()))
    }
}

/// If an object isn't in the cache yet, the operator reads it from the server, but its role doesn't
/// permit `get`: opendatahub-io/opendatahub-operator#1043.
pub(super) mod forbidden {
    use super::*;

    pub(in super::super) const ROLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager-role
rules:
- apiGroups: [simulated.example.com]
  resources: [sites]
  verbs: [get, list, watch]
- apiGroups: [simulated.example.com]
  resources: [sites/status]
  verbs: [get, patch]
- apiGroups: ['']
  resources: [configmaps]
  verbs: [list, watch, create, patch]
";

    async fn reconcile<const REPAIRED: bool>(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let name = site.name_any();
        let data = [
            ("image", site.spec.image.clone()),
            ("expose", site.spec.expose.to_string()),
        ];
        let mut wanted = config_map(&name, data);
        set_controller_reference(&*site, &mut wanted)?;
        let cached = ctx.cached::<ConfigMap>()?.named(&namespace(&*site), &name);
        let current = match cached {
            Some(cached) => cached,
            None => match create(&ctx, &*site, wanted.clone()).await {
                Ok(created) => Arc::new(created),
                Err(error) if REPAIRED || !exists_already(&error) => return Err(error),
                Err(_) => Arc::new(ctx.api::<ConfigMap>(&*site).get(&name).await?),
            },
        };
        if current.data != wanted.data {
            force(&ctx, &*site, wanted).await?;
        }
        report_phase(&ctx, &*site, "Running").await?;
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<ConfigMap, _>::owned()))
    }
}

/// The operator ignores conflicts, assuming that an event will follow:
/// Azure/azure-service-operator#2719.
pub(super) mod conflict {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<()>) -> Result {
        let wanted = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let applied = ctx.apply_owned(&*web, wanted).await?;
        let state = match is_available(&applied) {
            true => "available",
            false => "starting",
        };
        let wanted = config_map(web.name_any(), [("state", state.to_owned())]);
        let maps: Api<ConfigMap> = ctx.api(&*web);
        let Some(mut found) = maps.get_opt(&web.name_any()).await? else {
            create(&ctx, &*web, wanted).await?;
            return Ok(Action::await_change());
        };
        if found.data != wanted.data {
            found.data = wanted.data;
            match maps
                .replace(&web.name_any(), &PostParams::default(), &found)
                .await
            {
                Err(kube::Error::Api(status)) if !REPAIRED && status.code == 409 => {}
                replaced => drop(replaced?),
            }
        }
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>();
        manager.controller(controller.watch(Watch::<Deployment, _>::owned()))
    }
}

/// The schema permits one more value than the code: mongodb/mongodb-kubernetes-operator#488, where
/// an index is out of range.
pub(super) mod bounds {
    use super::*;

    const CLASSES: [&str; 4] = ["tiny", "small", "medium", "large"];

    fn class_of<const REPAIRED: bool>(size: i32) -> &'static str {
        let index = usize::try_from(size - 1).unwrap_or_default();
        match REPAIRED {
            true => CLASSES.get(index).copied().unwrap_or("huge"),
            false => CLASSES[index],
        }
    }

    async fn reconcile<const REPAIRED: bool>(limit: Arc<Limit>, ctx: Ctx<()>) -> Result {
        let data = [
            ("cpu", class_of::<REPAIRED>(limit.spec.cpu).to_owned()),
            ("memory", limit.spec.memory.to_string()),
        ];
        ctx.apply_owned(&*limit, config_map(limit.name_any(), data))
            .await?;
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.owns::<ConfigMap>())
    }
}
