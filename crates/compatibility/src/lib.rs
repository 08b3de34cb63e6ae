//! Classifies the changes between two sets of manifests by what they break.
//!
//! [`compare`] takes the objects before and after a change, and returns a [`Change`] for each
//! difference that matters to someone: to stored objects, to clients that write or read them, to
//! the operator, or to the person who installs the manifests. Its [`Level`] is *compatible*,
//! *risky* or *breaking*.
//!
//! A level is not guessed if an object can show it. The crate generates objects that the old schema
//! accepts, and `rbuilder-judge` validates them against the new schema. An object that was accepted
//! and is rejected, or is read differently, is the [`Witness`] of a change.
//!
//! | subject | module |
//! |---|---|
//! | all rules, with their levels and reasons | `rules` |
//! | CRDs: names, scope, versions | `definition` |
//! | conversion between the versions of a CRD | `conversion`, `losses` |
//! | subresources, selectable fields and columns of versions | `version_parts` |
//! | schemas, node by node | `schema` |
//! | the search for objects | `witness` |
//! | roles | `roles` |
//! | webhook configurations | `webhooks` |
//!
//! [`find_losses`] only needs a single state: it finds the fields that objects lose between the
//! versions of a CRD.
//!
//! The crate does no I/O, and the same input results in the same output: the search draws its
//! numbers from a fixed seed, and its [`Budget`] counts steps.

mod change;
mod conversion;
mod crd;
mod definition;
mod level;
mod losses;
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
pub use objects::{compare, compare_within, is_compared};
pub use rules::{RULES, Rule};
pub use witness::{Budget, StoredJudge, StoredVerdict};
