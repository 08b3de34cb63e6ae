//! Additions to Rust files, placed by the spans of what is there: nothing is printed anew, so comments and spacing
//! stay, and what is added stands where rustfmt would put it.

mod calls;
mod conversion;
mod handlers;
mod main_file;
mod modules;
mod registration;
mod source;

pub use conversion::{add_conversion, defines_kind, has_conversion};
pub use handlers::{Handlers, add_handlers};
pub use main_file::register_webhooks;
pub use modules::{add_module, add_reexport, compare};
pub use registration::add_registration;

/// Longest chain of calls that rustfmt leaves on one line.
pub const CHAIN_WIDTH: usize = 60;

/// Parses a file. Spans are places in the text as it is, with a byte order mark and a `#!` line.
///
/// # Errors
/// Says what does not parse, and the line.
pub(super) fn parse(text: &str) -> Result<syn::File, String> {
    source::Source::parse(text).map(|source| source.file)
}

/// Checks that an edited file is Rust and still has everything that it had, in its order.
///
/// # Errors
/// Says what is wrong with the edit.
pub fn verify(before: &str, after: &str) -> Result<(), String> {
    parse(after)?;
    let mut left = after.bytes();
    if before.bytes().all(|byte| left.any(|other| other == byte)) {
        Ok(())
    } else {
        Err("something that was there is missing".into())
    }
}

#[cfg(test)]
mod tests;
