//! Base64 decoding for strings with the format `byte`.

/// Decodes base64 with padding like Go's `base64.URLEncoding`, which the API server uses here even
/// though it validates the format with the standard alphabet: `+` and `/` are errors. Ignores line
/// breaks.
///
/// # Errors
///
/// Returns the offset that Go reports, that of the first wrong byte.
pub(in super::super) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let text = text.as_bytes();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut at = 0;
    loop {
        let (mut bits, mut letters) = (0_u32, 0);
        while letters < 4 {
            let Some(letter) = text.get(at) else {
                return match letters {
                    0 => Ok(bytes),
                    letters => Err(at - letters),
                };
            };
            at += 1;
            match (sextet(*letter), letter) {
                (Some(sextet), _) => {
                    bits = bits << 6 | sextet;
                    letters += 1;
                }
                (None, b'\r' | b'\n') => {}
                (None, b'=') if letters >= 2 => {
                    at = check_end(text, at, letters)?;
                    bits <<= 6 * (4 - letters);
                    break;
                }
                _ => return Err(at - 1),
            }
        }
        bytes.extend(&bits.to_be_bytes()[1..letters.max(1)]);
    }
}

/// Checks what follows the first `=`, at `at`, after a group of 2 or 3 letters. Returns the end of
/// the text.
fn check_end(text: &[u8], at: usize, letters: usize) -> Result<usize, usize> {
    let skip_breaks = |at: usize| {
        let breaks = text[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        at + breaks.count()
    };
    let mut at = at;
    if letters == 2 {
        at = skip_breaks(at);
        match text.get(at) {
            None => return Err(text.len()),
            Some(b'=') => at += 1,
            Some(_) => return Err(at - 1),
        }
    }
    at = skip_breaks(at);
    (at == text.len()).then_some(at).ok_or(at)
}

fn sextet(letter: u8) -> Option<u32> {
    let sextet = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(sextet.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_the_alphabet_of_urls() {
        let check = |text: &str, expected: Result<&[u8], usize>| {
            assert_eq!(decode(text).as_deref().map_err(|at| *at), expected, "{text}");
        };
        check("", Ok(b""));
        check("aGk=", Ok(b"hi"));
        check("aA==", Ok(b"h"));
        check("aGlo\naGk=\n", Ok(b"hihhi"));
        check("_-8=", Ok(&[0xff, 0xef]));
        check("aGk/", Err(3));
        check("aGk", Err(0));
        check("aGloa", Err(4));
        check("aG=k", Err(2));
        check("aG=", Err(3));
        check("aGk=aGk=", Err(4));
        check("====", Err(0));
    }
}
