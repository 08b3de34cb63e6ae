//! Validates custom resources like kube-apiserver, without a server.
//!
//! A [`Judge`] handles a single version of a kind. Given the body of a write and, for updates, the
//! stored object, it returns a [`Verdict`]: either the object that the server stores, pruned and
//! defaulted, or the server's rejection. Messages, fields and reasons match the server's word for
//! word, as recorded in `crates/judge/tests/recorded.jsonl`.
//!
//! Steps and modules: decoding (`decode`, `object_meta`, `prune`, `defaults`), the schema
//! (`values`), metadata (`metadata`), embedded objects (`embedded`), lists of type `set` and `map`
//! (`lists`), CEL rules (`rules`, using `rbuilder-cel`) and, for updates, the correlation of new
//! and old values (`correlate`).
//!
//! The server visits fields in random order. This crate visits them in alphabetical order, so that
//! errors are reproducible.

mod builtin;
mod builtin_defaults;
mod builtin_rules;
mod correlate;
mod decode;
mod defaults;
mod definition;
mod embedded;
mod encoding;
mod error;
pub mod go;
mod judge;
mod lists;
mod metadata;
mod object_meta;
mod path;
mod prune;
mod rules;
mod scale;
pub mod services;
mod values;
mod verdict;

pub use builtin::Builtin;
pub use decode::{Body, Decoded, FieldValidation, MOST_BYTES};
pub use defaults::fill_defaults;
pub use definition::{Definition, read_schema};
pub use error::{FieldError, Reason};
pub use judge::Judge;
pub use scale::Scale;
pub use verdict::{Failure, Undecided, Verdict};
