//! Character classes.

use super::tables::{TABLES, Table};

pub(crate) const MAX_RUNE: u32 = 0x0010_FFFF;
/// U+017F, matches `s` when ignoring case.
const LONG_S: u32 = 0x017F;
/// U+212A, matches `k` when ignoring case.
const KELVIN: u32 = 0x212A;

#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    /// Whether the class matches everything except its items.
    pub(crate) negated: bool,
    pub(crate) fold: bool,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// Inclusive on both ends.
    Range(u32, u32),
    /// ASCII ranges, e.g. `\d` or `[:alpha:]`.
    Group {
        ranges: &'static [(u8, u8)],
        negated: bool,
    },
    /// A Unicode general category or script.
    Table { table: &'static Table, negated: bool },
}

impl Class {
    pub(crate) fn literal(rune: u32, fold: bool) -> Self {
        Class {
            negated: false,
            fold,
            items: vec![Item::Range(rune, rune)],
        }
    }

    /// Returns the class of `.`. Only matches a line feed if `all` is set.
    pub(crate) fn dot(all: bool) -> Self {
        let newline = Item::Range(u32::from('\n'), u32::from('\n'));
        Class {
            negated: true,
            fold: false,
            items: if all { Vec::new() } else { vec![newline] },
        }
    }

    /// Returns `None` if the result depends on the Unicode tables.
    pub(crate) fn contains(&self, rune: char) -> Option<bool> {
        let mut is_undecided = false;
        for item in &self.items {
            match item.contains(rune, self.fold) {
                Some(true) => return Some(!self.negated),
                Some(false) => {}
                None => is_undecided = true,
            }
        }
        (!is_undecided).then_some(self.negated)
    }
}

impl Item {
    fn contains(&self, rune: char, fold: bool) -> Option<bool> {
        match self {
            Item::Range(low, high) => range_contains(*low, *high, rune, fold),
            Item::Group { ranges, negated } => {
                let mut is_in = false;
                for (low, high) in *ranges {
                    // Never `None`, because the ranges are ASCII.
                    is_in |= range_contains(u32::from(*low), u32::from(*high), rune, fold)?;
                }
                Some(is_in != *negated)
            }
            Item::Table { table, negated } => {
                let ascii = u8::try_from(rune).ok().filter(u8::is_ascii)?;
                Some(table.contains_ascii(ascii, fold) != *negated)
            }
        }
    }
}

fn range_contains(low: u32, high: u32, rune: char, fold: bool) -> Option<bool> {
    let is_in = |rune: u32| (low..=high).contains(&rune);
    let code = u32::from(rune);
    if is_in(code) || !fold {
        return Some(is_in(code));
    }
    match rune.to_ascii_lowercase() {
        // The only ASCII letters with a case variant outside of ASCII.
        'k' => Some(is_in(u32::from('k')) || is_in(u32::from('K')) || is_in(KELVIN)),
        's' => Some(is_in(u32::from('s')) || is_in(u32::from('S')) || is_in(LONG_S)),
        letter if letter.is_ascii() => {
            Some(is_in(u32::from(letter)) || is_in(u32::from(letter.to_ascii_uppercase())))
        }
        _ if code == KELVIN => Some(is_in(u32::from('k')) || is_in(u32::from('K'))),
        _ if code == LONG_S => Some(is_in(u32::from('s')) || is_in(u32::from('S'))),
        // No other letter has a case variant in ASCII. Variants outside of ASCII would require the
        // Unicode tables.
        _ => (high < 0x80 || !rune.is_alphabetic()).then_some(false),
    }
}

impl Table {
    fn contains_ascii(&self, byte: u8, fold: bool) -> bool {
        let is_in = |byte: u8| self.ascii >> byte & 1 == 1;
        is_in(byte)
            || fold
                && self.folds
                && byte.is_ascii_alphabetic()
                && (is_in(byte.to_ascii_lowercase()) || is_in(byte.to_ascii_uppercase()))
    }
}

/// Looks up a table by name, ignoring case, spaces, `-` and `_`.
pub(crate) fn find_table(name: &str) -> Option<&'static Table> {
    let name: String = name
        .chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' '))
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let position = TABLES.binary_search_by(|table| table.name.cmp(&name)).ok()?;
    TABLES.get(position)
}

const DIGIT: &[(u8, u8)] = &[(b'0', b'9')];
const SPACE: &[(u8, u8)] = &[(b'\t', b'\n'), (b'\x0c', b'\r'), (b' ', b' ')];
const WORD: &[(u8, u8)] = &[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];

/// The class of e.g. `\d` (`letter` is `d`), or its negation `\D`.
pub(crate) fn perl_class(letter: char) -> Option<Item> {
    let ranges = match letter.to_ascii_lowercase() {
        'd' => DIGIT,
        's' => SPACE,
        'w' => WORD,
        _ => return None,
    };
    let negated = letter.is_ascii_uppercase();
    Some(Item::Group { ranges, negated })
}

pub(crate) const POSIX: &[(&str, &[(u8, u8)])] = &[
    ("alnum", &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')]),
    ("alpha", &[(b'A', b'Z'), (b'a', b'z')]),
    ("ascii", &[(0, 0x7F)]),
    ("blank", &[(b'\t', b'\t'), (b' ', b' ')]),
    ("cntrl", &[(0, 0x1F), (0x7F, 0x7F)]),
    ("digit", DIGIT),
    ("graph", &[(b'!', b'~')]),
    ("lower", &[(b'a', b'z')]),
    ("print", &[(b' ', b'~')]),
    ("punct", &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')]),
    ("space", &[(b'\t', b'\r'), (b' ', b' ')]),
    ("upper", &[(b'A', b'Z')]),
    ("word", WORD),
    ("xdigit", &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')]),
];

/// The class with a name as found between `[:` and `:]`, e.g. `alpha` or `^alpha`.
pub(crate) fn posix_class(name: &str) -> Option<Item> {
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let (_, ranges) = POSIX.iter().find(|(known, _)| *known == name)?;
    Some(Item::Group { ranges, negated })
}
