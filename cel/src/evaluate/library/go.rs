//! Text as Go writes it.

/// Quotes a text as Go's `%q` does.
pub(in super::super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            letter if (letter as u32) < 0x20 || letter == '\x7f' => {
                quoted.push_str(&format!("\\x{:02x}", letter as u32));
            }
            letter if is_printable(letter) => quoted.push(letter),
            letter if (letter as u32) < 0x10000 => quoted.push_str(&format!("\\u{:04x}", letter as u32)),
            letter => quoted.push_str(&format!("\\U{:08x}", letter as u32)),
        }
    }
    quoted.push('"');
    quoted
}

/// Approximates Go's `strconv.IsPrint` without tables: controls, spaces other than ASCII's, and
/// characters without a meaning of their own are not printable.
fn is_printable(letter: char) -> bool {
    !(letter.is_control()
        || (letter.is_whitespace() && letter != ' ')
        || matches!(letter as u32, 0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe000..=0xf8ff | 0xfff0..=0xfffb | 0xe0000..))
}

/// Formats a float as Go's `%g`: the shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub(in super::super) fn general(number: f64) -> String {
    with_exponent(number, 6)
}

/// Formats a float as Go's `%v`: like [`general`], with an exponent from 1e21 on.
pub(in super::super) fn shortest(number: f64) -> String {
    with_exponent(number, 21)
}

/// Formats a float with an exponent if it is below -4, or at least `limit`.
fn with_exponent(number: f64, limit: i32) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..limit).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// Formats a float with an exponent of at least two digits, as Go's `%e`.
pub(in super::super) fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None => text,
    }
}
