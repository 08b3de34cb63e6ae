//! The order of keys: go-yaml's, which reads runs of digits as numbers and puts letters last.

use serde_json::{Map, Value};

/// The keys of a map in the order in which they are printed.
///
/// Go's comparison is not transitive (`v10 < v1a < v2 < v10`), so no library sort may be fed with it. An
/// insertion sort is indifferent to that, gives Go's order wherever Go's order is one, and is quick because
/// keys arrive almost sorted.
pub(super) fn sorted_keys(map: &Map<String, Value>) -> Vec<&str> {
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    keys.sort_unstable();
    for end in 1..keys.len() {
        let mut at = end;
        while at > 0 && before(keys[at], keys[at - 1]) {
            keys.swap(at, at - 1);
            at -= 1;
        }
    }
    keys
}

/// Whether go-yaml puts `a` before `b`.
fn before(a: &str, b: &str) -> bool {
    let common = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let start = (0..=common)
        .rev()
        .find(|&at| a.is_char_boundary(at) && b.is_char_boundary(at))
        .unwrap_or(0);
    let (rest_a, rest_b) = (&a[start..], &b[start..]);
    let (Some(first_a), Some(first_b)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        return a.len() < b.len();
    };
    match (first_a.is_alphabetic(), first_b.is_alphabetic()) {
        (true, true) => return first_a < first_b,
        (false, false) => {}
        (_, b_is_letter) => return b_is_letter,
    }
    // `10` after `1`: where the strings part inside a number, a zero is a digit of it and no leading zero.
    let inside_number = (first_a == '0' || first_b == '0') && ends_in_number(&a[..start]);
    let (number_a, number_b) = (
        leading_number(rest_a, inside_number),
        leading_number(rest_b, inside_number),
    );
    if number_a != number_b {
        return number_a.value < number_b.value
            || number_a.value == number_b.value && number_a.digits < number_b.digits;
    }
    first_a < first_b
}

fn ends_in_number(text: &str) -> bool {
    text.chars()
        .rev()
        .take_while(char::is_ascii_digit)
        .any(|digit| digit != '0')
}

#[derive(PartialEq)]
struct LeadingNumber {
    value: u64,
    digits: usize,
}

fn leading_number(text: &str, inside_number: bool) -> LeadingNumber {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    let start = LeadingNumber {
        value: u64::from(inside_number),
        digits: 0,
    };
    digits.fold(start, |number, digit| LeadingNumber {
        value: number
            .value
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0')),
        digits: number.digits + 1,
    })
}
