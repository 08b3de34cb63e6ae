//! Base64 decoding for strings with the format `byte`.

/// Decodes standard base64 with padding. Ignores line breaks, like Go.
pub(in super::super) fn decode(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text
        .bytes()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    if !letters.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3);
    let groups = letters.len() / 4;
    for (index, group) in letters.chunks_exact(4).enumerate() {
        let padding = group.iter().rev().take_while(|letter| **letter == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 < groups) {
            return None;
        }
        let mut bits = 0_u32;
        for letter in &group[..4 - padding] {
            bits = bits << 6 | u32::from(sextet(*letter)?);
        }
        bits <<= 6 * padding;
        bytes.extend(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

fn sextet(letter: u8) -> Option<u8> {
    Some(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}
