//! go-yaml's key order, which compares runs of digits as numbers and sorts letters last.

/// Sorts keys as go-yaml prints them.
///
/// Go's comparison is not transitive (`v10 < v1a < v2 < v10`), and the standard sort may panic on
/// such an order. A merge sort can handle it, and agrees with Go wherever Go's order is total.
pub(crate) fn sort_keys<K: AsRef<str> + Copy, V: Copy>(keys: &mut Vec<(K, V)>) {
    let alphabetic = |key: &str| key.bytes().all(|b| b.is_ascii_alphabetic());
    if keys.iter().all(|(key, _)| alphabetic(key.as_ref())) {
        // Purely alphabetic keys are sorted by bytes.
        return keys.sort_unstable_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
    }
    let mut merged = Vec::with_capacity(keys.len());
    let mut width = 1;
    while width < keys.len() {
        merged.clear();
        for pair in keys.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut merged);
        }
        std::mem::swap(keys, &mut merged);
        width *= 2;
    }
}

fn merge<K: AsRef<str> + Copy, V: Copy>(mut left: &[(K, V)], mut right: &[(K, V)], merged: &mut Vec<(K, V)>) {
    // Keys are mostly sorted already, so appending one list to the other is often enough.
    let in_order = match (left, right) {
        ([.., last], [first, ..]) => !before(first.0.as_ref(), last.0.as_ref()),
        _ => true,
    };
    while !in_order && let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
        if before(second.0.as_ref(), first.0.as_ref()) {
            merged.push(*second);
            right = right_rest;
        } else {
            merged.push(*first);
            left = left_rest;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
}

fn before(a: &str, b: &str) -> bool {
    let mut start = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    // The common bytes can end in the middle of a character.
    while !(a.is_char_boundary(start) && b.is_char_boundary(start)) {
        start -= 1;
    }
    let (rest_a, rest_b) = (&a[start..], &b[start..]);
    let (Some(first_a), Some(first_b)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        return a.len() < b.len();
    };
    match (first_a.is_alphabetic(), first_b.is_alphabetic()) {
        (true, true) => return first_a < first_b,
        (false, false) => {}
        // Letters sort last.
        (_, b_is_letter) => return b_is_letter,
    }
    // If the strings diverge within a number, as in `v10` and `v12`, a zero there isn't a leading
    // zero.
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
        // Start with 1 so that zeros within a number count.
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
