//! Handles recursive types, which cannot be described by structural schemas.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_catalogue::write::{Node, Types};
use rbuilder_schema::{Schema, any_object};

/// Whenever a type refers to itself (possibly through other types), the reference is replaced with
/// open content. The API server does not prune or validate the content of such fields.
pub(crate) fn cut_cycles(types: &mut Types) -> Vec<String> {
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, node) in types.iter() {
        visit(node, &mut |mentioned| {
            edges
                .entry(path.clone())
                .or_default()
                .insert(mentioned.to_owned());
        });
    }
    let mut notes = Vec::new();
    for (path, node) in types {
        change(node, &mut |node| {
            if let Some(mentioned) = node
                .reference
                .take_if(|mentioned| reaches(&edges, mentioned, path))
            {
                notes.push(format!(
                    "`{path}` contains itself: its `{mentioned}` is open content"
                ));
                node.own = Schema {
                    description: node.own.description.take(),
                    ..any_object()
                };
            }
        });
    }
    notes
}

fn reaches(edges: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(path) = open.pop() {
        if path == to {
            return true;
        }
        let next = edges.get(path).into_iter().flatten().map(String::as_str);
        open.extend(next.filter(|next| seen.insert(next)));
    }
    false
}

fn visit(node: &Node, seen: &mut dyn FnMut(&str)) {
    if let Some(path) = &node.reference {
        seen(path);
    }
    let inner = node.items.as_deref().into_iter().chain(node.values.as_deref());
    inner
        .chain(node.properties.values())
        .for_each(|node| visit(node, seen));
}

fn change(node: &mut Node, edit: &mut dyn FnMut(&mut Node)) {
    edit(node);
    let inner = node
        .items
        .as_deref_mut()
        .into_iter()
        .chain(node.values.as_deref_mut());
    inner
        .chain(node.properties.values_mut())
        .for_each(|node| change(node, edit));
}
