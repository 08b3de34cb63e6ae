//! Finds leaf types by the compiler's type names, because `schemars` describes some of them merely
//! as strings.

use std::sync::Arc;

use crate::Schema;
use crate::known::known;
use crate::leaves::leaf_of;

/// Replaces the schemas that `schemars` generated for leaf types with our own. No-op if the name
/// can't be parsed.
pub(crate) fn refine_by_type_name(schema: &mut Schema, name: &str) {
    let name = name.trim_start_matches('&');
    if let Some(inner) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let item = inner.split_once("; ").map_or(inner, |(item, _)| item);
        return refine_part(&mut schema.items, item);
    }
    let (path, args) = match name.split_once('<') {
        Some((path, rest)) => (path, arguments(rest.strip_suffix('>').unwrap_or(rest))),
        None => (name, Vec::new()),
    };
    // The compiler uses the crate that defines a type, which isn't always the crate that users
    // import it from (e.g. `alloc::vec::Vec`).
    let (home, last) = (
        path.split("::").next().unwrap_or(path),
        path.rsplit("::").next().unwrap_or(path),
    );
    let is_of_std = matches!(home, "core" | "std" | "alloc");
    match (last, args.as_slice()) {
        (
            "Option" | "Box" | "Arc" | "Rc" | "Cow" | "RefCell" | "Cell" | "Mutex" | "RwLock" | "Wrapping"
            | "Saturating" | "Reverse",
            [held, ..],
        ) if is_of_std => refine_by_type_name(schema, held),
        ("Vec" | "VecDeque" | "LinkedList" | "BinaryHeap" | "BTreeSet" | "HashSet", [item, ..])
            if is_of_std =>
        {
            refine_part(&mut schema.items, item);
        }
        ("BTreeMap" | "HashMap", [_, value, ..]) if is_of_std => {
            refine_part(&mut schema.additional_properties, value);
        }
        _ => {
            if let Some(known) = leaf_of(home, last).and_then(known) {
                *schema = Schema {
                    description: schema.description.take(),
                    nullable: schema.nullable,
                    ..Schema::clone(&known)
                };
            }
        }
    }
}

fn refine_part(part: &mut Option<Arc<Schema>>, name: &str) {
    if let Some(part) = part {
        refine_by_type_name(Arc::make_mut(part), name);
    }
}

fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0_usize, 0);
    let mut found = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '<' | '[' | '(' => depth += 1,
            '>' | ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(name: &str, schema: serde_json::Value, place: &str) {
        let mut schema: Schema = serde_json::from_value(schema).expect("a schema");
        refine_by_type_name(&mut schema, name);
        let refined = serde_json::to_value(&schema).expect("JSON");
        let leaf = refined.pointer(place).expect("the place");
        let expected = known("std::net::SocketAddr").expect("known").pattern.clone();
        assert_eq!(leaf["pattern"].as_str(), expected.as_deref(), "{name}");
    }

    #[test]
    fn finds_leaf_types_in_containers() {
        let text = || json!({"type": "string"});
        let list = |items| json!({"type": "array", "items": items});
        let map = |values| json!({"type": "object", "additionalProperties": values});
        let leaf = "core::net::socket_addr::SocketAddr";
        check(leaf, text(), "");
        check(
            &format!("core::option::Option<alloc::boxed::Box<{leaf}>>"),
            text(),
            "",
        );
        check(
            &format!("alloc::vec::Vec<core::option::Option<{leaf}>>"),
            list(text()),
            "/items",
        );
        check(&format!("[{leaf}; 3]"), list(text()), "/items");
        let nested = format!(
            "alloc::collections::btree::map::BTreeMap<alloc::string::String, alloc::vec::Vec<{leaf}>>"
        );
        check(&nested, map(list(text())), "/additionalProperties/items");
        let mut other = crate::of_type(crate::SchemaType::String);
        refine_by_type_name(&mut other, "my::SocketAddr");
        assert_eq!(other.pattern, None);
    }
}
