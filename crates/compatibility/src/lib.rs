//! Classifies the changes between two sets of manifests by what they break.
//!
//! [`compare`] takes the objects before and after a change and returns a [`Change`] for each
//! difference that matters: to stored objects, to clients that write or read them, to the operator,
//! or to the user who installs the manifests. Its [`Level`] is *compatible*, *risky* or *breaking*.
//!
//! Where possible, levels are proven with an object instead of being guessed. We generate objects
//! that the old schema accepts, and validate them against the new schema with `rbuilder-judge`. An
//! object that is now rejected or read differently is the [`Witness`] of the change.
//!
//! | subject | module |
//! |---|---|
//! | all rules, with their levels and reasons | `rules` |
//! | CRDs: names, scope, versions | `definition` |
//! | conversion between the versions of a CRD | `conversion`, `losses` |
//! | subresources, selectable fields and columns of versions | `version_parts` |
//! | schemas, node by node | `schema` |
//! | the search for objects | `witness` |
//! | narrower schemas, without a search | `narrowing` |
//! | roles | `roles` |
//! | webhook configurations | `webhooks` |
//!
//! [`find_losses`] only needs a single state: it finds fields that objects lose between the
//! versions of a CRD.
//!
//! The crate does no I/O and is deterministic: the search uses a fixed seed, and its [`Budget`]
//! counts steps rather than time.

mod change;
mod conversion;
mod crd;
mod definition;
mod level;
mod losses;
mod narrowing;
mod objects;
mod path;
mod place;
mod roles;
mod rules;
mod schema;
mod settled;
mod version_parts;
mod webhooks;
mod witness;

pub use change::{Change, Effect, Witness};
pub use level::{Level, Party};
pub use losses::{Losses, find_losses};
pub use narrowing::{Narrowing, find_narrowings};
pub use objects::{compare, compare_within, is_compared};
pub use rules::{RULES, Rule};
pub use witness::{Budget, StoredJudge, StoredVerdict};
