//! Random choices that can be replayed and shrunk.
//!
//! Generators draw numbers, with zero producing the simplest result. The numbers drawn for a value
//! are its recipe: replaying a recipe generates the same value, and smaller or fewer numbers
//! generate a simpler one. Shrinking operates on recipes rather than values, so shrunk values
//! always satisfy the generator's constraints.
//!
//! For example, a list generator draws a 1 before each item and a 0 to stop. `[7, 900]` has the
//! recipe `1 7 1 900 0` with the parts `1 7` and `1 900`. If the check fails for items above 500,
//! removing the first part yields `1 900 0`, and reducing numbers yields `1 501 0`, i.e. `[501]`.

use crate::random::Random;

// Shrinking is best effort; give up eventually if the check keeps finding simpler values.
const TRIES: usize = 4000;

/// A source of numbers for a generator: either random or read from a recipe.
pub(super) struct Choices {
    source: Source,
    made: Vec<u64>,
    /// Ranges of `made` that generated an optional part and can be cut out as a whole.
    parts: Vec<(usize, usize)>,
}

enum Source {
    Random(Random),
    Recipe(std::vec::IntoIter<u64>),
}

#[derive(Clone, Debug)]
pub(super) struct Recipe {
    numbers: Vec<u64>,
    parts: Vec<(usize, usize)>,
}

impl Choices {
    pub(super) fn random(seed: u64) -> Self {
        Self::from_source(Source::Random(Random::new(seed)))
    }

    fn repeat(numbers: Vec<u64>) -> Self {
        Self::from_source(Source::Recipe(numbers.into_iter()))
    }

    fn from_source(source: Source) -> Self {
        let (made, parts) = (Vec::new(), Vec::new());
        Self { source, made, parts }
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        let number = match &mut self.source {
            Source::Random(random) => random.next() % limit,
            // The recipe may have been shortened or taken from another branch of the generator, so
            // it may be too short or out of range.
            Source::Recipe(numbers) => numbers.next().unwrap_or(0).min(limit - 1),
        };
        self.made.push(number);
        number
    }

    /// Like [`below`](Self::below), but favors small numbers, and picks the maximum in a quarter of
    /// all cases.
    pub(super) fn mostly_small(&mut self, limit: u64) -> u64 {
        const SMALL: u64 = 100;
        let number = match &mut self.source {
            Source::Random(random) => match random.next() % 8 {
                0..=4 => random.next() % limit.min(SMALL),
                5 | 6 => limit - 1,
                _ => random.next() % limit,
            },
            Source::Recipe(numbers) => numbers.next().unwrap_or(0).min(limit - 1),
        };
        self.made.push(number);
        number
    }

    /// Picks an item; the first one is considered the simplest. Panics if `from` is empty.
    pub(super) fn one_of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Generates an optional part with a probability of `in_ten` / 10.
    pub(super) fn maybe<T>(&mut self, in_ten: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let from = self.made.len();
        // Zero must mean "absent", so that shrinking the number removes the part.
        let left_out = 10 - in_ten;
        let made = (self.below(10) >= left_out).then(|| make(self));
        self.parts.push((from, self.made.len()));
        made
    }

    pub(super) fn into_recipe(self) -> Recipe {
        let (numbers, parts) = (self.made, self.parts);
        Recipe { numbers, parts }
    }
}

impl Recipe {
    /// Shrinks the recipe while `holds` returns true, as it must for the initial recipe.
    pub(super) fn simplest(self, mut holds: impl FnMut(&mut Choices) -> bool) -> Self {
        let mut best = self;
        let mut tries = 0;
        let mut simpler = |best: &mut Recipe, numbers: Vec<u64>| {
            tries += 1;
            let mut choices = Choices::repeat(numbers);
            if tries > TRIES || !holds(&mut choices) {
                return false;
            }
            let found = choices.into_recipe();
            // Require progress, or the loop below could alternate between equal recipes.
            let is_simpler = (found.numbers.len(), &found.numbers) < (best.numbers.len(), &best.numbers);
            if is_simpler {
                *best = found;
            }
            is_simpler
        };
        while best.without_a_part(&mut simpler) || best.with_a_smaller_number(&mut simpler) {}
        best
    }

    fn without_a_part(&mut self, simpler: &mut impl FnMut(&mut Recipe, Vec<u64>) -> bool) -> bool {
        let mut parts = self.parts.clone();
        // Largest parts first: removing one also removes the parts nested in it.
        parts.sort_by_key(|(from, to)| std::cmp::Reverse(to - from));
        parts.into_iter().any(|(from, to)| {
            // An absent field still needs a zero in its place, but a removed list item doesn't.
            [&[0][..], &[]].into_iter().any(|instead| {
                let numbers = [&self.numbers[..from], instead, &self.numbers[to..]].concat();
                simpler(self, numbers)
            })
        })
    }

    fn with_a_smaller_number(&mut self, simpler: &mut impl FnMut(&mut Recipe, Vec<u64>) -> bool) -> bool {
        (0..self.numbers.len()).any(|at| {
            let number = self.numbers[at];
            let mut tried = vec![0, number / 2, number.saturating_sub(1)];
            tried.dedup();
            tried
                .into_iter()
                .filter(|smaller| *smaller < number)
                .any(|smaller| {
                    let mut numbers = self.numbers.clone();
                    numbers[at] = smaller;
                    simpler(self, numbers)
                })
        })
    }

    pub(super) fn choices(&self) -> Choices {
        Choices::repeat(self.numbers.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(choices: &mut Choices) -> Vec<u64> {
        std::iter::from_fn(|| choices.maybe(8, |choices| choices.below(1000)))
            .take(10)
            .collect()
    }

    fn first(seeds: std::ops::Range<u64>, holds: impl Fn(&[u64]) -> bool) -> Recipe {
        let mut found = seeds.filter_map(|seed| {
            let mut choices = Choices::random(seed);
            holds(&list(&mut choices)).then(|| choices.into_recipe())
        });
        found.next().expect("one of the seeds leads there")
    }

    #[test]
    fn recipe_replays_the_same_value() {
        for seed in 0..50 {
            let mut choices = Choices::random(seed);
            let made = list(&mut choices);
            let recipe = choices.into_recipe();
            assert_eq!(list(&mut recipe.choices()), made);
            assert_eq!(list(&mut Choices::random(seed)), made);
        }
    }

    #[test]
    fn shrinking_finds_minimal_counterexample() {
        let check = |holds: fn(&[u64]) -> bool, expected: &[u64]| {
            let simplest = first(0..1000, holds).simplest(|choices| holds(&list(choices)));
            assert_eq!(list(&mut simplest.choices()), expected);
        };
        check(|list| list.iter().any(|number| *number > 500), &[501]);
        check(|list| list.len() > 4, &[0, 0, 0, 0, 0]);
        check(|list| list.windows(2).any(|pair| pair[0] > pair[1]), &[1, 0]);
    }
}
