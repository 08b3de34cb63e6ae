//! The catalogue for the Kubernetes minor that the program is compiled for.

use std::sync::LazyLock;

use crate::{Catalogue, Minor};

/// The Kubernetes types of the k8s-openapi in this program.
pub static KUBERNETES: LazyLock<Catalogue<'static>> =
    LazyLock::new(|| Catalogue::new(MINOR.unwrap_or_default()));

// Selects the minor of the enabled k8s-openapi feature, or the closest one in the catalogue. The
// assertion fails if a minor is added to the catalogue but not here, as its neighbor's types would
// be used silently.
const _: () = assert!(Minor::EARLIEST.number() == 33 && Minor::LATEST.number() == 37);
k8s_openapi::k8s_if_le_1_33! { const MINOR: Option<Minor> = Minor::new(33); }
k8s_openapi::k8s_if_1_34! { const MINOR: Option<Minor> = Minor::new(34); }
k8s_openapi::k8s_if_1_35! { const MINOR: Option<Minor> = Minor::new(35); }
k8s_openapi::k8s_if_1_36! { const MINOR: Option<Minor> = Minor::new(36); }
k8s_openapi::k8s_if_ge_1_37! { const MINOR: Option<Minor> = Minor::new(37); }
