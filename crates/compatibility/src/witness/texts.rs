//! Strings to try: ones that patterns often distinguish, and ones that match a pattern. Also caches
//! what rules demand.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rbuilder_cel::{Demand, demanded_constants};
use rbuilder_re2::{Choice, Pattern};

use super::random::Random;

/// Number of distinct sample lists per pattern.
const LISTS: usize = 16;

/// Samples per list, not all of which match.
const SAMPLES: usize = 24;

/// Base of generated names, and prefix of generated strings.
pub(super) const EXAMPLE: &str = "example";

/// Pattern and list number.
type Key = (String, usize);

/// Caches strings that match the patterns of a schema, and constants that its rules demand. For long
/// patterns, sampling takes longer than generating the rest of the object.
#[derive(Default)]
pub(super) struct Texts {
    known: RefCell<BTreeMap<Key, Rc<[String]>>>,
    demands: RefCell<BTreeMap<String, Rc<[Demand]>>>,
}

impl Texts {
    /// Strings that match a pattern, varying by seed. `None` if the pattern is invalid.
    pub(super) fn of_pattern(&self, pattern: &str, seed: usize) -> Option<Rc<[String]>> {
        let key = (pattern.to_owned(), seed % LISTS);
        if let Some(texts) = self.known.borrow().get(&key) {
            return Some(Rc::clone(texts));
        }
        let parsed = Pattern::parse(pattern).ok()?;
        let mut texts: Vec<String> = common_texts()
            .map(str::to_owned)
            .chain(samples_of(&parsed, key.1 as u64))
            .collect();
        texts.retain(|text| parsed.is_match(text) != Some(false));
        let texts: Rc<[String]> = texts.into();
        self.known.borrow_mut().insert(key, Rc::clone(&texts));
        Some(texts)
    }

    /// The constants that a CEL rule demands.
    pub(super) fn demands(&self, rule: &str) -> Rc<[Demand]> {
        if let Some(demands) = self.demands.borrow().get(rule) {
            return Rc::clone(demands);
        }
        let demands: Rc<[Demand]> = demanded_constants(rule).into();
        self.demands
            .borrow_mut()
            .insert(rule.to_owned(), Rc::clone(&demands));
        demands
    }
}

pub(super) fn common_texts() -> impl Iterator<Item = &'static str> {
    [
        EXAMPLE,
        "a",
        "",
        "1",
        "A",
        "a-b",
        "a.b",
        "a b",
        "a_b",
        "example.com",
        "https://example.com",
        "/a",
        "-a",
        "a1",
        "1h",
        "10Gi",
        "é",
    ]
    .into_iter()
}

pub(super) fn samples_of(pattern: &Pattern, seed: u64) -> Vec<String> {
    let mut found = BTreeSet::new();
    for at in 0..SAMPLES {
        let mut random = Random::new(seed.wrapping_mul(31).wrapping_add(at as u64));
        // The first samples take the shortest path through the pattern; later ones make more
        // choices.
        let mut rest = at / 2;
        let sample = pattern.sample(|choice| match choice {
            Choice::Way if rest > 0 => {
                rest -= 1;
                random.below(2)
            }
            Choice::Way => 0,
            Choice::Letter(letters) if at == 0 => usize::from(letters.is_empty()),
            Choice::Letter(letters) => random.below(letters.len()),
        });
        found.extend(sample.filter(|text| pattern.is_match(text) == Some(true)));
    }
    found.into_iter().collect()
}
