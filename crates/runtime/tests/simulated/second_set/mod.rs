//! A second set of operators with bugs, based on the documentation of simulations.
//!
//! The first set was developed along with the simulation. For this one, the author only used
//! `docs/simulation.md` (and knew parts of the source), and no simulation had been run before. So
//! it shows how many bugs are found in operators that the simulation was not designed for. The
//! results are reported separately.

mod environment;
mod process;
mod requests;
mod views;

use serde_json::{Value, json};

use crate::Case;
use crate::kinds::{App, Labelled, Limit, Site, Store, Web, crds, declared, declared_map};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "lock_left_by_a_dead_process",
        class: "crash between two writes",
        oracle: "end-state",
        broken: process::lock::register::<false>,
        repaired: process::lock::register::<true>,
        crds: crds::<App>,
        declarations: app,
        role: None,
    },
    Case {
        name: "role_deleted_on_an_event",
        class: "unobserved",
        oracle: "deletion",
        broken: process::on_event::register::<false>,
        repaired: process::on_event::register::<true>,
        crds: crds::<App>,
        declarations: app,
        role: None,
    },
    Case {
        name: "password_made_again_with_the_settings",
        class: "data loss",
        oracle: "data",
        broken: process::password::register::<false>,
        repaired: process::password::register::<true>,
        crds: crds::<Labelled>,
        declarations: || vec![declared::<Labelled>(json!({ "label": "anna" }))],
        role: None,
    },
    Case {
        name: "two_objects_fight_for_one_child",
        class: "hot loop",
        oracle: "quiet",
        broken: views::shared::register::<false>,
        repaired: views::shared::register::<true>,
        crds: crds::<App>,
        declarations: || two(declared::<App>(json!({ "size": 1 }))),
        role: None,
    },
    Case {
        name: "claims_of_unknown_owners_deleted",
        class: "stale cache",
        oracle: "data",
        broken: views::unknown_owner::register::<false>,
        repaired: views::unknown_owner::register::<true>,
        crds: crds::<Store>,
        declarations: || two(declared::<Store>(json!({ "storage": 1 }))),
        role: None,
    },
    Case {
        name: "missing_reference_is_final",
        class: "order",
        oracle: "end-state",
        broken: views::reference::register::<false>,
        repaired: views::reference::register::<true>,
        crds: crds::<Labelled>,
        declarations: || {
            vec![
                declared_map("settings", "loud"),
                declared::<Labelled>(json!({ "label": "settings" })),
            ]
        },
        role: None,
    },
    Case {
        name: "child_cannot_shrink",
        class: "declaration that is not monotone",
        oracle: "path",
        broken: requests::shrink::register::<false>,
        repaired: requests::shrink::register::<true>,
        crds: || [crds::<App>(), crds::<Store>()].concat(),
        declarations: || vec![declared::<App>(json!({ "size": 2 }))],
        role: None,
    },
    Case {
        name: "get_after_a_conflict_is_not_allowed",
        class: "permission",
        oracle: "role",
        broken: requests::forbidden::register::<false>,
        repaired: requests::forbidden::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: Some(requests::forbidden::ROLE),
    },
    Case {
        name: "conflict_taken_for_success",
        class: "error swallowed",
        oracle: "end-state",
        broken: requests::conflict::register::<false>,
        repaired: requests::conflict::register::<true>,
        crds: crds::<Web>,
        declarations: web,
        role: None,
    },
    Case {
        name: "largest_value_is_out_of_bounds",
        class: "missing value",
        oracle: "panic",
        broken: requests::bounds::register::<false>,
        repaired: requests::bounds::register::<true>,
        crds: crds::<Limit>,
        declarations: || vec![declared::<Limit>(json!({ "cpu": 2, "memory": 2 }))],
        role: None,
    },
    Case {
        name: "finished_counts_as_ready",
        class: "wrong truth",
        oracle: "truth",
        broken: environment::finished::register::<false>,
        repaired: environment::finished::register::<true>,
        crds: crds::<App>,
        declarations: app,
        role: None,
    },
    Case {
        name: "second_region_after_a_timeout",
        class: "external system",
        oracle: "end-state",
        broken: environment::region::register::<false>,
        repaired: environment::region::register::<true>,
        crds: crds::<App>,
        declarations: app,
        role: None,
    },
];

fn app() -> Vec<Value> {
    vec![declared::<App>(json!({ "size": 1 }))]
}

fn web() -> Vec<Value> {
    vec![declared::<Web>(json!({ "image": "nginx", "size": 1 }))]
}

/// Returns two objects that only differ by name.
fn two(object: Value) -> Vec<Value> {
    let mut other = object.clone();
    other["metadata"]["name"] = json!("other");
    vec![object, other]
}

/// Returns `true` if an object couldn't be created because it already exists.
fn exists_already(error: &rbuilder::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 409)
}
