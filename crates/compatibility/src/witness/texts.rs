//! Texts that match patterns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rbuilder_re2::Pattern;

use super::make::{common_texts, samples_of};

/// Number of different lists of samples per pattern.
const LISTS: usize = 16;

/// A pattern, and the number of one of its lists of samples.
type Key = (String, usize);

/// The texts that match the patterns of a schema. Samples of a long pattern take more time than all
/// else about an object, so they are made once.
#[derive(Default)]
pub(super) struct Texts {
    known: RefCell<BTreeMap<Key, Rc<[String]>>>,
}

impl Texts {
    /// Returns texts that match a pattern, different ones for some seeds. `None` if the pattern is
    /// not valid.
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
}
