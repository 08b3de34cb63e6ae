//! An object was written by an older version of the operator, or declared for it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::{Value, json};

use crate::Case;
use crate::children::config_map;
use crate::kinds::{App, Legacy, crds, declared};

const CLASS: &str = "upgrade";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "annotation_in_the_former_format",
        class: CLASS,
        oracle: "panic",
        broken: annotation::register::<false>,
        repaired: annotation::register::<true>,
        crds: crds::<App>,
        declarations: || {
            let [mut current, mut former] = [1, 1].map(|size| declared::<App>(json!({ "size": size })));
            current["metadata"]["annotations"][annotation::LAYOUT] = r#"{"version":2}"#.into();
            former["metadata"]["annotations"][annotation::LAYOUT] = "v1".into();
            vec![current, former]
        },
        role: None,
    },
    Case {
        name: "field_under_its_former_name",
        class: CLASS,
        oracle: "panic",
        broken: renamed_field::register::<false>,
        repaired: renamed_field::register::<true>,
        crds: crds::<Legacy>,
        declarations: || vec![declared::<Legacy>(json!({ "size": 2 }))],
        role: None,
    },
];

/// The old version wrote a plain string, but the new one expects JSON:
/// infinispan/infinispan-operator#2086, where an old value is no longer known.
mod annotation {
    use super::*;

    pub(super) const LAYOUT: &str = "simulated.example.com/layout";

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let layout = app.annotations().get(LAYOUT).map_or("v1", String::as_str);
        let version = match serde_json::from_str::<Value>(layout) {
            Ok(layout) => layout["version"].as_i64().unwrap_or_default(),
            Err(_) if REPAIRED => 1,
            Err(error) => panic!("cannot read {LAYOUT}: {error}"),
        };
        let data = [
            ("layout", version.to_string()),
            ("size", app.spec.size.to_string()),
        ];
        ctx.apply_owned(&*app, config_map(app.name_any(), data)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// The field had a different name in the first release: alexandrevilain/temporal-operator#560,
/// infinispan/infinispan-operator#2104, OT-CONTAINER-KIT/redis-operator#414.
mod renamed_field {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(legacy: Arc<Legacy>, ctx: Ctx<()>) -> Result {
        let size = match REPAIRED {
            true => legacy.spec.size.or(legacy.spec.replicas).unwrap_or(1),
            false => legacy.spec.size.expect("every object has a size"),
        };
        ctx.apply_owned(
            &*legacy,
            config_map(legacy.name_any(), [("size", size.to_string())]),
        )
        .await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}
