//! Rewrites the paths in a package whose modules move.
//!
//! We read the package's modules the way rustc does (`modules.rs`), and resolve every path in their
//! code as far as it names modules (`resolve.rs`). From the new locations of these modules it
//! follows which segments change (`rewrite.rs`):
//!
//! ```text
//! api::v1 moves to api::cache::v1
//! crate::api::v1::Cup          crate::api::cache::v1::Cup
//! super::super::v2 in api::v1::cup   stays: both versions move
//! super::settings in controller::cup, which moves a level down: super::super::settings
//! ```
//!
//! Only these segments are replaced, and all other bytes in a file stay the same. We rewrite
//! nothing where a path may not be code, e.g. in an attribute, a string in an attribute or macro
//! arguments that are not expressions. The same goes for places where a glob import would bring in
//! a different item. Such a place becomes an [`Obstruction`].

mod declaration;
mod modules;
mod moves;
mod resolve;
mod rewrite;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use self::declaration::replace_declarations;
pub use self::moves::{FileFate, ModuleMoves};

use self::modules::Modules;
use self::scan::scan_modules;

/// A path that we cannot rewrite, with the code to write there by hand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obstruction {
    /// The file.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Why it cannot be rewritten, as a phrase.
    pub reason: String,
    /// What to do about it, as an imperative.
    pub help: String,
}

impl Obstruction {
    /// Creates an obstruction for a byte offset in `text`.
    pub fn at(path: &str, text: &str, byte: usize, reason: String, help: String) -> Obstruction {
        let before = &text[..byte];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        // Editors don't count a byte order mark as a column.
        let head = before[line_start..].trim_start_matches('\u{feff}');
        Obstruction {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: head.chars().count() + 1,
            reason,
            help,
        }
    }
}

/// Rewrites the paths in the Rust files of a package. Returns the new texts of changed files, by
/// their paths before the move.
///
/// `library` is the name by which other crates (e.g. integration tests) import the library.
///
/// # Errors
/// Fails with all places that cannot be rewritten, in source order.
pub fn relocate_paths(
    files: &BTreeMap<String, String>,
    library: &str,
    moves: &ModuleMoves,
) -> Result<BTreeMap<String, String>, Vec<Obstruction>> {
    let modules = Modules::read(files, library, moves)?;
    let mut edits = scan_modules(&modules, moves)?;
    let mut obstructions = Vec::new();
    let mut texts = BTreeMap::new();
    for (path, edits) in &mut edits {
        let text = &files[path];
        match rewrite::apply_edits(path, text, edits) {
            Ok(edited) if edited == *text => {}
            Ok(edited) => {
                texts.insert(path.clone(), edited);
            }
            Err(obstruction) => obstructions.push(obstruction),
        }
    }
    match obstructions.is_empty() {
        true => Ok(texts),
        false => Err(obstructions),
    }
}
