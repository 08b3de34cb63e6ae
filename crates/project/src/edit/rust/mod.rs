//! Additions to Rust files. Lines are inserted at the spans of existing items, where rustfmt
//! expects them. Nothing is reprinted, so comments and formatting are preserved.
//!
//! For removals see `removal.rs`; `relocate/` replaces path segments. Whether a call, a module or a
//! marker exists is always decided on the syntax tree, never on the text.
//!
//! Only these edits use `syn`, because they need function bodies, which `rbuilder-reader` skips.
//! That it is slower doesn't matter: the edits run once per command rather than once per file.

mod calls;
mod conversion;
mod handlers;
mod main_file;
mod modules;
mod registration;
pub mod relocate;
mod removal;
mod source;

pub use calls::mentions;
pub use conversion::{add_conversion, defines_kind, has_conversion};
pub use handlers::{Handlers, add_handlers};
pub use main_file::{calls_register, register_webhooks};
pub use modules::{add_module, add_modules, add_reexport, add_reexports, compare_names};
pub use registration::{add_registration, add_registrations};
pub use removal::{
    function_tokens, has_only_lost, is_bare_module, remove_conversion, remove_function, remove_module,
    remove_modules, remove_reexport, remove_registration, remove_spoke, unregister_webhooks, uses_module,
};

use quote::ToTokens as _;
use syn::parse::Parser as _;

/// rustfmt's `chain_width`: longer method chains are broken.
pub const CHAIN_WIDTH: usize = 60;

const MAX_WIDTH: usize = 100;

/// Formats a method chain as rustfmt would at one level of indentation.
pub fn format_chain(root: &str, calls: &[String]) -> String {
    let line = format!("{root}{}", calls.concat());
    let limit = if calls.len() > 1 {
        CHAIN_WIDTH
    } else {
        MAX_WIDTH - 4
    };
    if line.len() <= limit {
        return line;
    }
    format!("{root}\n        {}", calls.join("\n        "))
}

/// Parses a file. Spans are offsets in the original text, including a byte order mark and a `#!`
/// line.
pub(super) fn parse_file(text: &str) -> Result<syn::File, String> {
    source::Source::parse(text).map(|source| source.file)
}

/// Returns the tokens of each `#[rbac(…)]` marker. `None` if the text contains anything else, apart
/// from comments.
pub(super) fn read_permissions(text: &str) -> Option<Vec<String>> {
    let markers = syn::Attribute::parse_outer.parse_str(text).ok()?;
    let is_permission = |marker: &syn::Attribute| marker.path().is_ident("rbac");
    markers
        .iter()
        .map(|marker| is_permission(marker).then(|| marker.to_token_stream().to_string()))
        .collect()
}

/// Checks that an edited file parses as Rust and still contains its previous text in order.
///
/// # Errors
/// Fails with the reason as a phrase.
pub fn verify_rust_edit(before: &str, after: &str) -> Result<(), String> {
    parse_file(after)?;
    let mut left = after.bytes();
    if before.bytes().all(|byte| left.any(|other| other == byte)) {
        Ok(())
    } else {
        Err("a part of the previous text is missing".into())
    }
}

#[cfg(test)]
mod tests;
