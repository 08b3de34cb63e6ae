//! Estimates the memory usage of JSON after decoding.
//!
//! It can be a hundred times the size of the text. For example, `{"a":0}` is 7 bytes long, but
//! takes more than 600 bytes as a [`Value`], since maps are allocated with enough space for eleven
//! fields. Without an estimate, 2 MiB of JSON would be enough to exceed the memory limit of a
//! container.

use serde_json::Value;

/// A map with up to eleven fields, which is a single B-tree node.
const MAP: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 16;
/// Size per field of a larger map, assuming that nodes are half full.
const FIELD: usize = MAP / 6;
/// A short list, which always has capacity for four items.
const LIST: usize = 4 * size_of::<Value>();
/// Size per item of a longer list, whose capacity may just have been doubled.
const ITEM: usize = 2 * size_of::<Value>();
/// Overhead of the allocator included.
const STRING: usize = 24;

/// Estimates the size of a [`Value`] in bytes, given its text. Usually an overestimate.
pub(super) fn estimate_decoded(text: &[u8]) -> usize {
    let (mut maps, mut fields, mut lists, mut commas, mut strings) = (0usize, 0usize, 0, 0, 0);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                strings += 1;
                skip_string(&mut bytes);
            }
            b'{' => maps += 1,
            b':' => fields += 1,
            b'[' => lists += 1,
            b',' => commas += 1,
            _ => {}
        }
    }
    let beyond_first_node = fields.saturating_sub(6 * maps);
    text.len() + maps * MAP + beyond_first_node * FIELD + lists * LIST + commas * ITEM + strings * STRING
}

fn skip_string<'a>(bytes: &mut impl Iterator<Item = &'a u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_json_is_estimated_far_above_its_length() {
        assert!(estimate_decoded(br#"{"a":0}"#) > 500);
        let text = format!("[{}]", vec!["{}"; 1000].join(","));
        assert!(estimate_decoded(text.as_bytes()) > 100 * text.len());
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(10_000));
        assert!(estimate_decoded(text.as_bytes()) < 11_000);
    }

    #[test]
    fn punctuation_in_strings_is_ignored() {
        let text = format!(r#"{{"a":"{}"}}"#, r#"{\"b\": [1, 2, 3]}"#.repeat(100));
        serde_json::from_str::<Value>(&text).unwrap();
        assert!(estimate_decoded(text.as_bytes()) < text.len() + 1000);
        for unterminated in ["\"", "\"\\", "{\"a\\\"", ""] {
            estimate_decoded(unterminated.as_bytes());
        }
    }
}
