//! FNV-1a: short names out of long ones, and whether a text is the one that was seen before. Not for secrets.

/// 32 bits as eight hexadecimal digits.
pub(crate) fn fnv1a_32(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

/// 64 bits as sixteen hexadecimal digits.
pub(crate) fn fnv1a_64(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_published_ones() {
        assert_eq!(fnv1a_32(b""), "811c9dc5");
        assert_eq!(fnv1a_32(b"foobar"), "bf9cf968");
        assert_eq!(fnv1a_64(b""), "cbf29ce484222325");
        assert_eq!(fnv1a_64(b"foobar"), "85944171f73967e8");
    }
}
