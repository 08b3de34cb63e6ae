//! Delta compression of strings that are similar to a base.
//!
//! Responses to applies of the same kind only differ in names, identifiers and versions, i.e. in
//! about 200 out of 2000 bytes. The first response is stored as is. For each later one, we only
//! store the bytes that differ from the first response, and the ranges that both have in common:
//!
//! | text | stored with `{"name":"web-1","replicas":3}` as the base |
//! |---|---|
//! | `{"name":"web-1","replicas":3}` | copy 29 bytes from 0 |
//! | `{"name":"web-27","replicas":3}` | copy 13 from 0, write `27`, copy 15 from 14 |
//!
//! A general-purpose compressor would find repetitions within a response, but doesn't know the
//! previous one.

use std::cell::OnceCell;
use std::collections::HashMap;

/// Minimum length of a common range, in bytes.
const WINDOW: usize = 8;
/// Only every fourth position of the base is indexed, because indexing more takes memory and hardly
/// finds anything else.
const STRIDE: usize = 4;

pub(super) struct Base {
    text: Box<[u8]>,
    /// Position of the first occurrence of each indexed range. Computed lazily, since texts that
    /// only differ in values don't need it.
    places: OnceCell<HashMap<u64, usize>>,
}

impl Base {
    pub(super) fn new(text: &[u8]) -> Self {
        Self {
            text: text.into(),
            places: OnceCell::new(),
        }
    }

    fn places(&self) -> &HashMap<u64, usize> {
        self.places.get_or_init(|| {
            let mut places = HashMap::with_capacity(self.text.len() / STRIDE);
            for (index, window) in self.text.windows(WINDOW).enumerate().step_by(STRIDE) {
                if let Some(window) = window.first_chunk() {
                    places.entry(u64::from_le_bytes(*window)).or_insert(index);
                }
            }
            places
        })
    }

    pub(super) fn encode(&self, text: &[u8]) -> Box<[u8]> {
        let mut encoded = Vec::with_capacity(text.len() / 4 + 2 * WINDOW);
        // `written` is the number of bytes of `text` encoded so far. `expected` is the
        // corresponding position in the base, assuming that only values differ.
        let (mut written, mut expected) = (0, 0);
        let mut at = 0;
        while at < text.len() {
            // If a value was replaced by another one of the same length, both texts match again
            // here.
            let beside = expected + (at - written);
            let Some((from, length)) = self.find(&text[at..], beside) else {
                at += 1;
                continue;
            };
            let before = common_suffix(&text[written..at], &self.text[..from]);
            write_new(&mut encoded, &text[written..at - before]);
            write_number(&mut encoded, from - before);
            write_number(&mut encoded, before + length);
            at += length;
            (written, expected) = (at, from + length);
        }
        if written < text.len() {
            write_new(&mut encoded, &text[written..]);
        }
        encoded.into_boxed_slice()
    }

    /// Finds a prefix of `text` in the base, trying the most likely position `beside` first.
    /// Returns its position and length.
    fn find(&self, text: &[u8], beside: usize) -> Option<(usize, usize)> {
        let window = text.first_chunk::<WINDOW>()?;
        let is_beside = self
            .text
            .get(beside..)
            .is_some_and(|rest| rest.starts_with(window));
        let from = match is_beside {
            true => beside,
            false => *self.places().get(&u64::from_le_bytes(*window))?,
        };
        Some((from, common_prefix(text, &self.text[from..])))
    }

    /// Returns `None` if the delta is malformed.
    pub(super) fn decode(&self, mut encoded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::with_capacity(self.text.len());
        while !encoded.is_empty() {
            let count = read_number(&mut encoded)?;
            let (new, rest) = encoded.split_at_checked(count)?;
            text.extend_from_slice(new);
            encoded = rest;
            if !encoded.is_empty() {
                let (from, length) = (read_number(&mut encoded)?, read_number(&mut encoded)?);
                text.extend_from_slice(self.text.get(from..from.checked_add(length)?)?);
            }
        }
        Some(text)
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Compare whole blocks first: comparing slices is much faster than comparing single bytes.
    const BLOCK: usize = 64;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    same + a[same..]
        .iter()
        .zip(&b[same..])
        .take_while(|(a, b)| a == b)
        .count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    a.iter()
        .rev()
        .zip(b.iter().rev())
        .take_while(|(a, b)| a == b)
        .count()
}

fn write_new(encoded: &mut Vec<u8>, new: &[u8]) {
    write_number(encoded, new.len());
    encoded.extend_from_slice(new);
}

fn write_number(encoded: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        encoded.push(number as u8 | 0x80);
        number >>= 7;
    }
    encoded.push(number as u8);
}

fn read_number(encoded: &mut &[u8]) -> Option<usize> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = encoded.split_first()?;
        *encoded = rest;
        number |= usize::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if *byte < 0x80 {
            return Some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn similar_texts_only_take_memory_for_their_differences() {
        let first = r#"{"name":"web-1","replicas":3,"image":"registry.example.com/web:1.2.3"}"#;
        let base = Base::new(first.as_bytes());
        let check = |text: &str, most: usize| {
            let encoded = base.encode(text.as_bytes());
            assert!(encoded.len() <= most, "{text}: {encoded:?}");
            assert_eq!(base.decode(&encoded).unwrap(), text.as_bytes());
        };
        check(first, 3);
        check("", 0);
        check(&first.replace("web-1", "web-27"), 3 + 2 + 3);
        check(&first.replace("web-1", "web-2"), 3 + 2 + 2);
        check("unlike", 7);
    }

    proptest! {
        #[test]
        fn any_text_round_trips(
            base in "[a-c]{0,60}",
            text in "[a-d]{0,60}",
            cut in 0..60_usize,
        ) {
            for text in [format!("{text}{base}"), format!("{base}{text}{base}"), text] {
                let base = Base::new(base.as_bytes());
                let encoded = base.encode(text.as_bytes());
                prop_assert_eq!(base.decode(&encoded).unwrap(), text.as_bytes());
                // Malformed input must not panic.
                base.decode(&encoded[cut.min(encoded.len())..]);
            }
        }

        #[test]
        fn decoding_arbitrary_bytes_does_not_panic(base in "[a-c]{0,60}", encoded in prop::collection::vec(any::<u8>(), 0..40)) {
            Base::new(base.as_bytes()).decode(&encoded);
        }
    }
}
