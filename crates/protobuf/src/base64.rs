//! The standard alphabet of base64 with padding, in which JSON has bytes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn print_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .enumerate()
            .fold(0, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let sign = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at > chunk.len() { '=' } else { char::from(sign) });
        }
    }
    text
}

/// Returns `None` if the text has another alphabet, or is incomplete. Line breaks are skipped, like in
/// Go.
pub(crate) fn parse_base64(text: &str) -> Option<Vec<u8>> {
    let signs: Vec<u8> = text
        .bytes()
        .filter(|sign| !matches!(sign, b'\r' | b'\n'))
        .collect();
    let padding = signs.iter().rev().take_while(|sign| **sign == b'=').count();
    if !signs.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(signs.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for sign in &signs[..signs.len() - padding] {
        bits = bits << 6 | value_of(*sign)?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

fn value_of(sign: u8) -> Option<u32> {
    Some(match sign {
        b'A'..=b'Z' => u32::from(sign - b'A'),
        b'a'..=b'z' => u32::from(sign - b'a') + 26,
        b'0'..=b'9' => u32::from(sign - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}
