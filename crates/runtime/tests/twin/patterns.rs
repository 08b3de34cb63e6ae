//! Compares the patterns in the schemas of types with the parsers of these types, on random
//! strings.

use std::str::FromStr;

use rbuilder_re2::Pattern;
use rbuilder_schema::known;

const TEXTS: usize = 8_000;

/// Xorshift64 with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

/// Compares the pattern of a type with its parser. Enough valid and invalid strings must occur.
fn check<T: FromStr>(path: &str, mut text: impl FnMut(&mut Random) -> String) {
    let pattern = known(path)
        .and_then(|schema| schema.pattern.clone())
        .expect("a pattern");
    let pattern = Pattern::parse(&pattern).expect("an expression");
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut counts = [0; 2];
    for _ in 0..TEXTS {
        let text = text(&mut random);
        // kube panics if a number is too large.
        let is_read = std::panic::catch_unwind(|| text.parse::<T>().is_ok()).unwrap_or(false);
        counts[usize::from(is_read)] += 1;
        assert_eq!(pattern.is_match(&text), Some(is_read), "{text:?} as {path}");
    }
    assert!(
        counts[0] > TEXTS / 20 && counts[1] > TEXTS / 20,
        "{path}: {counts:?}"
    );
}

/// Units from the largest to the smallest, and words that aren't units.
const UNITS: &[&str] = &[
    "y",
    "yrs",
    "year",
    "mo",
    "mos",
    "months",
    "w",
    "wks",
    "week",
    "d",
    "day",
    "days",
    "h",
    "hr",
    "hours",
    "m",
    "min",
    "mins",
    "minutes",
    "s",
    "sec",
    "secs",
    "seconds",
    "ms",
    "millis",
    "milliseconds",
    "us",
    "µs",
    "μs",
    "micro",
    "usecs",
    "ns",
    "nano",
    "nsec",
    "nanoseconds",
    "x",
    "H",
    "",
];

/// Returns a string close to jiff's friendly format. The units are mostly in order.
fn friendly(random: &mut Random) -> String {
    let mut text = random.pick(&["", "", "", "+", "-", " "]).to_owned();
    let mut at = random.below(UNITS.len());
    for part in 0..=random.below(3) {
        if part > 0 {
            text += random.pick(&["", " ", ", ", " ", ",", "  ", " , "]);
        }
        if random.below(12) == 0 {
            text += random.pick(&["01:02:03", "1:2:3", "1:2:3.5", "1:2"]);
            continue;
        }
        text += random.pick(&["1", "20", "0", "007", "", "-1"]);
        text += random.pick(&["", "", "", "", ".5", ",25", "."]);
        text += random.pick(&["", "", " ", "  "]);
        text += UNITS[at];
        at = (at + 1 + random.below(6)).min(UNITS.len() - 1);
        at = if random.below(9) == 0 {
            random.below(UNITS.len())
        } else {
            at
        };
    }
    text + random.pick(&["", "", "", "", " ", ","])
}

/// Returns a string close to an ISO 8601 duration.
fn iso(random: &mut Random) -> String {
    let mut text = random.pick(&["P", "P", "p", "+P", "-P", ""]).to_owned();
    for unit in ["Y", "M", "W", "D"] {
        if random.below(4) == 0 {
            text += random.pick(&["1", "20", "0", ""]);
            text += unit;
        }
    }
    text += random.pick(&["T", "T", "t", ""]);
    for unit in ["H", "m", "S"] {
        if random.below(2) == 0 {
            text += random.pick(&["1", "20", "0", "1.5", "2,25", ""]);
            text += unit;
        }
    }
    text
}

#[test]
fn jiff_patterns_match_jiffs_parsers() {
    check::<jiff::SignedDuration>("jiff::SignedDuration", friendly);
    check::<jiff::SignedDuration>("jiff::SignedDuration", iso);
    check::<jiff::Span>("jiff::Span", friendly);
    check::<jiff::Span>("jiff::Span", iso);
}

/// kube also accepts several signs, an empty string and a trailing `0`. The test skips them,
/// because Go programs never write them.
#[test]
fn duration_pattern_matches_kubes_parser() {
    check::<kube::core::Duration>("kube::core::Duration", |random| {
        let mut text = random.pick(&["", "", "", "-", "+"]).to_owned();
        for _ in 0..=random.below(3) {
            text += random.pick(&[
                "1",
                "20",
                "0",
                "1.5",
                ".5",
                "2.",
                "10000000000000",
                "00000000000000000001",
                "",
                ".",
            ]);
            text += random.pick(&["ns", "us", "µs", "μs", "ms", "ms", "ns", "d", "x"]);
        }
        // kube ignores a trailing `0`.
        match text.trim_start_matches(['+', '-']) {
            "" => "1h30m".to_owned(),
            number if number.len() > 1 && number.ends_with('0') => text + "s",
            _ => text,
        }
    });
    let long = known("kube::core::Duration")
        .and_then(|schema| schema.pattern.clone())
        .expect("a pattern");
    let long = Pattern::parse(&long).expect("an expression");
    for (text, expected) in [
        ("99999999999999h", true),
        ("1000000000000ns", true),
        ("999999999999999h", false),
    ] {
        assert_eq!(long.is_match(text), Some(expected), "{text}");
    }
}
