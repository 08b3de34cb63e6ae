//! The catalogue of the Kubernetes minor that the program is compiled for.

use std::sync::LazyLock;

use crate::{Catalogue, Minor};

/// Kubernetes' own types, as the k8s-openapi in this program has them.
pub static KUBERNETES: LazyLock<Catalogue<'static>> =
    LazyLock::new(|| Catalogue::new(MINOR.unwrap_or_default()));

// The minor whose feature of k8s-openapi is on; for one that the catalogue does not have, the next to it. A minor of the
// catalogue without a line here would get its neighbour's types and nobody would hear of it.
const _: () = assert!(Minor::EARLIEST.number() == 33 && Minor::LATEST.number() == 37);
k8s_openapi::k8s_if_le_1_33! { const MINOR: Option<Minor> = Minor::new(33); }
k8s_openapi::k8s_if_1_34! { const MINOR: Option<Minor> = Minor::new(34); }
k8s_openapi::k8s_if_1_35! { const MINOR: Option<Minor> = Minor::new(35); }
k8s_openapi::k8s_if_1_36! { const MINOR: Option<Minor> = Minor::new(36); }
k8s_openapi::k8s_if_ge_1_37! { const MINOR: Option<Minor> = Minor::new(37); }
