//! Estimates the memory that JSON text takes once decoded.
//!
//! Decoding can multiply the size by a hundred: `{"a":0}` is 7 bytes of text but more than 600
//! bytes as a [`Value`], because a map allocates space for eleven fields at once. Without the
//! estimate, a body of 2 MiB could exhaust the memory of a container.

use serde_json::Value;

/// Size of a map with up to eleven fields, which is one B-tree node.
const MAP: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 16;
/// Size per field of a larger map, assuming half-full nodes.
const FIELD: usize = MAP / 6;
/// Size of a list, which initially allocates space for four items.
const LIST: usize = 4 * size_of::<Value>();
/// Size per item of a longer list, whose capacity may just have doubled.
const ITEM: usize = 2 * size_of::<Value>();
/// Size of a string in addition to its bytes: the overhead and rounding of the allocator.
const STRING: usize = 24;

/// Estimates the size in bytes of the text as a [`Value`], erring on the high side.
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

/// Skips the rest of a string including the closing quote.
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
