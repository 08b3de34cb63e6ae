//! Misspelled keys in PROJECT, which all commands ignore.

use rbuilder_generator::{Diagnostic, FileRange};
use rbuilder_yaml::parse_nodes;

use crate::project::{FILE, Project};

pub(super) fn find_misspelled_keys(text: &str) -> Vec<Diagnostic> {
    let (Ok(project), Ok(nodes)) = (Project::parse(text), parse_nodes(text)) else {
        return Vec::new();
    };
    let Some(node) = nodes.first() else {
        return Vec::new();
    };
    let keys = project.misspelled_keys().into_iter();
    keys.map(|key| {
        let place = FileRange::new(FILE, node.locate_name(&key.path));
        let message = format!("unknown key `{}` in {FILE}", key.key.escape_debug());
        Diagnostic::warning(place, message).help(format!("did you mean `{}`?", key.meant))
    })
    .collect()
}
