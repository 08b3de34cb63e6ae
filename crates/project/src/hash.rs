//! Hashes for short names and for change detection. They aren't cryptographic.
//!
//! Change detection uses crc32fast, which has hardware acceleration; this crate isn't optimized in
//! release builds. Hashes that end up in names and records must never change.

/// Returns the 32-bit FNV-1a hash as eight hexadecimal digits.
pub fn fnv1a_32(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

pub(crate) fn fnv1a_64(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Checksum for detecting changed content. A change of any single byte changes the checksum.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_changes_the_checksum() {
        let text: Vec<u8> = (0..100).collect();
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] ^= 1;
            assert_ne!(checksum(&text), checksum(&other), "{at}");
            assert_ne!(checksum(&text), checksum(&text[..at]), "{at}");
        }
        assert_ne!(checksum(b""), checksum(b"\0"));
    }

    #[test]
    fn hashes_match_published_values() {
        assert_eq!(fnv1a_32(b""), "811c9dc5");
        assert_eq!(fnv1a_32(b"foobar"), "bf9cf968");
        assert_eq!(fnv1a_64(b""), "cbf29ce484222325");
        assert_eq!(fnv1a_64(b"foobar"), "85944171f73967e8");
    }
}
