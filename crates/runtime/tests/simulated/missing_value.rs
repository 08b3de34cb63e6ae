//! A value that was always present is missing. Sieve calls these *indirect* bugs (e.g.
//! K8SPSMDB-434), and Acto calls them misoperations.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::config_map;
use crate::kinds::{App, Note, crds, declared, namespace};

const CLASS: &str = "missing value";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "own_child_is_believed",
        class: CLASS,
        oracle: "panic",
        broken: read_back::register::<false>,
        repaired: read_back::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "optional_field_is_expected",
        class: CLASS,
        oracle: "panic",
        broken: optional::register::<false>,
        repaired: optional::register::<true>,
        crds: crds::<Note>,
        declarations: || vec![declared::<Note>(json!({ "text": "hello", "title": "dear" }))],
        role: None,
    },
];

/// The operator reads its own writes back, assuming that no other client has modified them:
/// K8SPSMDB-434, a nil pointer.
mod read_back {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let wanted = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
        let found = ctx
            .cached::<ConfigMap>()?
            .named(&namespace(&*app), &app.name_any());
        if !REPAIRED && let Some(found) = found {
            let size: i32 = found.data.as_ref().unwrap()["size"]
                .parse()
                .expect("we wrote a number");
            if size == app.spec.size {
                return Ok(Action::await_change());
            }
        }
        ctx.apply_owned(&*app, wanted).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<ConfigMap, _>::owned()))
    }
}

/// The field is optional in the schema, but required by the code: NVIDIA/gpu-operator#2417.
mod optional {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(note: Arc<Note>, ctx: Ctx<()>) -> Result {
        let title = match REPAIRED {
            true => note.spec.title.clone().unwrap_or_default(),
            false => note.spec.title.clone().expect("every note has a title"),
        };
        let data = [("text", note.spec.text.clone()), ("title", title)];
        ctx.apply_owned(&*note, config_map(note.name_any(), data)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}
