//! Hashes for short names and for change detection. Not cryptographic.

/// Returns the 32-bit FNV-1a hash as eight hexadecimal digits.
pub(crate) fn fnv1a_32(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

/// Returns the 64-bit FNV-1a hash as sixteen hexadecimal digits.
pub(crate) fn fnv1a_64(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Returns a fast 64-bit hash that processes eight bytes at a time. Only valid within this process.
pub(crate) fn mixed_64(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    words.fold(bytes.len() as u64, |hash, word| {
        let mixed = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_changes_the_hash() {
        let text: Vec<u8> = (0..100).collect();
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] ^= 1;
            assert_ne!(mixed_64(&text), mixed_64(&other), "{at}");
            assert_ne!(mixed_64(&text), mixed_64(&text[..at]), "{at}");
        }
        assert_ne!(mixed_64(b""), mixed_64(b"\0"));
    }

    #[test]
    fn hashes_match_published_values() {
        assert_eq!(fnv1a_32(b""), "811c9dc5");
        assert_eq!(fnv1a_32(b"foobar"), "bf9cf968");
        assert_eq!(fnv1a_64(b""), "cbf29ce484222325");
        assert_eq!(fnv1a_64(b"foobar"), "85944171f73967e8");
    }
}
