//! Commands and flags of kubebuilder, controller-gen and operator-sdk that people paste, and their
//! counterparts in rbuilder.
//!
//! The `table` module is also the source of the tables in docs/from-kubebuilder.md, which is
//! checked by a test. The `advice` module replaces clap's tip for a command line that cannot be
//! parsed.

mod advice;
mod search;
mod table;

pub(crate) use advice::{find_command_path, replace_tip};
pub use table::{COMMANDS, FLAGS, PLUGINS};

/// A table of docs/from-kubebuilder.md.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The section heading.
    pub heading: &'static str,
    /// The column headings.
    pub columns: (&'static str, &'static str),
    /// The rows in the page's order.
    pub rows: &'static [Row],
}

/// A peer's command or flag and its counterpart in rbuilder, as Markdown.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// A peer's commands or flags, each a code span.
    pub theirs: &'static str,
    /// The counterpart, or `none, because` and the reason.
    pub ours: &'static str,
}

impl Row {
    const fn new(theirs: &'static str, ours: &'static str) -> Row {
        Row { theirs, ours }
    }
}

impl Table {
    /// Renders the table as Markdown.
    pub fn to_markdown(self) -> String {
        let (theirs, ours) = self.columns;
        let mut text = format!("| {theirs} | {ours} |\n|---|---|\n");
        for row in self.rows {
            text.push_str(&format!("| {} | {} |\n", row.theirs, row.ours));
        }
        text
    }
}
