//! An estimate of the memory that a JSON text needs when it is decoded.
//!
//! A text can need a hundred times its length: `{"a":0}` has 7 bytes, and as a [`Value`] more than
//! 600, because a map has room for eleven fields from the start. Without the estimate, a body of 2
//! MiB could use up the memory of a container.

use serde_json::Value;

/// Memory of a map with up to eleven fields: a node of a B-tree.
const MAP: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 16;
/// Memory of each field of a larger map, whose nodes are half full.
const FIELD: usize = MAP / 6;
/// Memory of a list, which has room for four items from the start.
const LIST: usize = 4 * size_of::<Value>();
/// Memory of each item of a longer list, whose room has doubled.
const ITEM: usize = 2 * size_of::<Value>();
/// Memory of a string besides its bytes, which is what an allocator adds to it and rounds it up by.
const STRING: usize = 24;

/// Returns about as many bytes as the text needs as a [`Value`], rather more than less.
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

/// Skips the rest of a string and its closing quote.
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
    fn dense_texts_are_estimated_far_above_their_length() {
        assert!(estimate_decoded(br#"{"a":0}"#) > 500);
        let text = format!("[{}]", vec!["{}"; 1000].join(","));
        assert!(estimate_decoded(text.as_bytes()) > 100 * text.len());
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(10_000));
        assert!(estimate_decoded(text.as_bytes()) < 11_000);
    }

    #[test]
    fn punctuation_in_strings_does_not_count() {
        let text = format!(r#"{{"a":"{}"}}"#, r#"{\"b\": [1, 2, 3]}"#.repeat(100));
        serde_json::from_str::<Value>(&text).unwrap();
        assert!(estimate_decoded(text.as_bytes()) < text.len() + 1000);
        for unterminated in ["\"", "\"\\", "{\"a\\\"", ""] {
            estimate_decoded(unterminated.as_bytes());
        }
    }
}
