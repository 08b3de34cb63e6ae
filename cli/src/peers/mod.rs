//! Commands and flags of kubebuilder, controller-gen and operator-sdk that users may paste, and
//! their counterparts in rbuilder.
//!
//! `table` has the data, and a test checks that docs/from-kubebuilder.md contains the same tables.
//! `advice` replaces clap's tip for a command line that can't be parsed.

mod advice;
mod search;
mod table;

pub(crate) use advice::{find_command_path, replace_tip};
pub use table::{COMMANDS, FLAGS, PLUGINS};

/// One of the tables in docs/from-kubebuilder.md.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Heading of its section.
    pub heading: &'static str,
    /// Headings of the columns.
    pub columns: (&'static str, &'static str),
    /// Rows in page order.
    pub rows: &'static [Row],
}

/// A command or flag of another tool and our counterpart, as Markdown.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Their commands or flags, each as a code span.
    pub theirs: &'static str,
    /// Our counterpart, or `none, because` followed by the reason.
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
