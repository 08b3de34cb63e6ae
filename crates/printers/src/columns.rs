//! The columns of built-in kinds, parsed from `columns.txt`, which `cargo xtask tables` generates. Its
//! first lines explain the format.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

const TEXT: &str = include_str!("columns.txt");

/// Group, kind, definitions of the columns.
type Kinds = Vec<(&'static str, &'static str, Vec<Value>)>;

/// Returns the definitions of the columns of a kind.
pub(crate) fn columns_of(group: &str, kind: &str) -> &'static [Value] {
    let find = |group: &str, kind: &str| kinds().iter().find(|known| (known.0, known.1) == (group, kind));
    let known = find(group, kind).filter(|_| crate::kinds::has_cells(group, kind));
    // The entry without a kind is for kinds that have no columns of their own.
    known
        .or_else(|| find("", ""))
        .map_or(&[], |(_, _, columns)| columns)
}

/// Returns the columns of all kinds.
pub(crate) fn kinds() -> &'static Kinds {
    static KINDS: OnceLock<Kinds> = OnceLock::new();
    KINDS.get_or_init(|| parse(TEXT).unwrap_or_default())
}

/// Returns `None` if the text is damaged. A test parses it.
fn parse(text: &'static str) -> Option<Kinds> {
    let mut shared = HashMap::new();
    let mut kinds = Kinds::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&'static str> = line.split('\t').collect();
        match words[..] {
            [name, text] if name.starts_with('@') => {
                shared.insert(name, serde_json::from_str::<String>(text).ok()?);
            }
            [name] => {
                let name = name.strip_prefix('=')?;
                let (kind, group) = name.split_once('.').unwrap_or((name, ""));
                kinds.push((group, kind, Vec::new()));
            }
            [name, ty, format, priority, description] => {
                let description = match shared.get(description) {
                    Some(text) => text.clone(),
                    None => serde_json::from_str(description).ok()?,
                };
                kinds.last_mut()?.2.push(json!({
                    "name": name, "type": ty, "format": format, "description": description,
                    "priority": priority.parse::<i32>().ok()?,
                }));
            }
            _ => return None,
        }
    }
    Some(kinds)
}
