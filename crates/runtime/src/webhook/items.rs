//! Matches the items of a list before and after a defaulting function modified it.
//!
//! # Example: why matching by position is not enough
//!
//! Suppose that the function modifies `[a, b]` to `[sidecar, a, b]`. Matching by position,
//! `sidecar` would get all fields of `a` that are not part of the type, `a` would get those of `b`,
//! and those of `b` would be lost.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// Fields that can identify an item; the first set that fits a list is used. These are the
/// `x-kubernetes-list-map-keys` of built-in types, and the most common ones of custom resources.
const KEYS: [&[&str]; 11] = [
    &["name"],
    &["type"],
    &["key"],
    &["id"],
    &["containerPort", "protocol"],
    &["containerPort"],
    &["port", "protocol"],
    &["port"],
    &["mountPath"],
    &["devicePath"],
    &["ip"],
];

/// Maximum number of pairs to compare. In longer lists, each item is only matched with the next
/// equal one, without looking for similar items.
const MAX_COMPARISONS: usize = 1_000_000;

/// For each item of `after`, returns the index of the corresponding item in `before`, if any.
///
/// Items with keys are matched by key. Otherwise, we compute the longest common subsequence of
/// equal items, and then look for similar items in the gaps. If both sides of a gap have the same
/// number of items left, they are matched in order.
pub(super) fn match_items(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    if let Some(matched) = KEYS.iter().find_map(|keys| match_by_keys(keys, before, after)) {
        return matched;
    }
    let mut matched = vec![None; after.len()];
    let whole = Gap {
        before: (0, before.len()),
        after: (0, after.len()),
    };
    for gap in match_subsequence(whole, before, after, &mut matched, |old, new| old == new) {
        for rest in match_subsequence(gap, before, after, &mut matched, are_similar) {
            rest.match_in_order(&mut matched);
        }
    }
    matched
}

/// Returns `None` if a key is missing or isn't unique.
fn match_by_keys(keys: &[&str], before: &[Value], after: &[Value]) -> Option<Vec<Option<usize>>> {
    let (before, after) = (identities(keys, before)?, identities(keys, after)?);
    let places: HashMap<&String, usize> = before.iter().zip(0..).collect();
    Some(
        after
            .iter()
            .map(|identity| places.get(identity).copied())
            .collect(),
    )
}

fn identities(keys: &[&str], items: &[Value]) -> Option<Vec<String>> {
    let identity = |item: &Value| {
        let values: Option<Vec<&Value>> = keys.iter().map(|key| item.get(key)).collect();
        let values = values?;
        let are_scalars = values.iter().all(|value| value.is_string() || value.is_number());
        // Compare JSON, so that a number doesn't equal a string, and two values don't equal a
        // single one with a comma.
        are_scalars.then(|| Value::from_iter(values.into_iter().cloned()).to_string())
    };
    let identities: Vec<String> = items.iter().map(identity).collect::<Option<_>>()?;
    let distinct: HashSet<&String> = identities.iter().collect();
    (distinct.len() == identities.len()).then_some(identities)
}

/// Returns `true` if at least half of the larger object's fields are the same.
fn are_similar(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    let equal = old
        .iter()
        .filter(|(key, value)| new.get(*key) == Some(value))
        .count();
    equal > 0 && equal * 2 >= old.len().max(new.len())
}

/// The items of both lists between two matches.
#[derive(Clone, Copy)]
struct Gap {
    before: (usize, usize),
    after: (usize, usize),
}

impl Gap {
    fn match_in_order(self, matched: &mut [Option<usize>]) {
        let (before, after) = (self.before.0..self.before.1, self.after.0..self.after.1);
        if before.len() == after.len() {
            after.zip(before).for_each(|(new, old)| matched[new] = Some(old));
        }
    }
}

/// Matches the longest common subsequence within a gap. Returns the remaining gaps.
fn match_subsequence(
    gap: Gap,
    before: &[Value],
    after: &[Value],
    matched: &mut [Option<usize>],
    are_same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Gap> {
    let (old, new) = (
        &before[gap.before.0..gap.before.1],
        &after[gap.after.0..gap.after.1],
    );
    let mut gaps = Vec::new();
    let mut start = (0, 0);
    let end = (old.len(), new.len());
    // Treat the end as a match, so that the last gap precedes it.
    for (at_old, at_new) in common_subsequence(old, new, are_same).into_iter().chain([end]) {
        if start.0 < at_old || start.1 < at_new {
            gaps.push(Gap {
                before: (gap.before.0 + start.0, gap.before.0 + at_old),
                after: (gap.after.0 + start.1, gap.after.0 + at_new),
            });
        }
        if (at_old, at_new) != end {
            matched[gap.after.0 + at_new] = Some(gap.before.0 + at_old);
        }
        start = (at_old + 1, at_new + 1);
    }
    gaps
}

fn common_subsequence(
    old: &[Value],
    new: &[Value],
    are_same: impl Fn(&Value, &Value) -> bool,
) -> Vec<(usize, usize)> {
    // Skip the common prefix and suffix, since a function rarely changes more than a few items.
    let shorter = old.len().min(new.len());
    let prefix = (0..shorter)
        .take_while(|at| are_same(&old[*at], &new[*at]))
        .count();
    let ends = 1..=shorter - prefix;
    let suffix = ends
        .take_while(|back| are_same(&old[old.len() - back], &new[new.len() - back]))
        .count();
    let mut places: Vec<(usize, usize)> = (0..prefix).map(|at| (at, at)).collect();
    let (inner_old, inner_new) = (&old[prefix..old.len() - suffix], &new[prefix..new.len() - suffix]);
    let inner = match inner_old.len() * inner_new.len() <= MAX_COMPARISONS {
        true => longest(inner_old, inner_new, are_same),
        false => next_equal(inner_old, inner_new),
    };
    places.extend(inner.into_iter().map(|(old, new)| (prefix + old, prefix + new)));
    places.extend(
        (1..=suffix)
            .rev()
            .map(|back| (old.len() - back, new.len() - back)),
    );
    places
}

/// The textbook algorithm. `lengths[i][j]` is the length of the longest common subsequence of
/// `old[i..]` and `new[j..]`.
fn longest(old: &[Value], new: &[Value], are_same: impl Fn(&Value, &Value) -> bool) -> Vec<(usize, usize)> {
    let mut lengths = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i][j] = match are_same(&old[i], &new[j]) {
                true => lengths[i + 1][j + 1] + 1,
                false => lengths[i + 1][j].max(lengths[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut places = Vec::new();
    while i < old.len() && j < new.len() {
        if are_same(&old[i], &new[j]) {
            places.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lengths[i + 1][j] >= lengths[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    places
}

/// Matches each new item with the next equal old one. Close to the longest common subsequence,
/// unless there are many duplicates.
fn next_equal(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, item) in old.iter().enumerate() {
        places.entry(item.to_string()).or_default().push(at);
    }
    let (mut start, mut found) = (0, Vec::new());
    for (at_new, item) in new.iter().enumerate() {
        let equal = places.get(&item.to_string()).map_or(&[][..], Vec::as_slice);
        let next = equal.partition_point(|at| *at < start);
        if let Some(at_old) = equal.get(next) {
            found.push((*at_old, at_new));
            start = at_old + 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, expected: &[Option<usize>]) {
        let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
        assert_eq!(match_items(before, after), expected, "{before:?} to {after:?}");
    }

    #[test]
    fn items_are_matched_by_their_keys() {
        let item = |name: &str, image: &str| json!({ "name": name, "image": image });
        check(
            json!([item("a", "1"), item("b", "1")]),
            json!([item("sidecar", "1"), item("b", "2"), item("a", "1")]),
            &[None, Some(1), Some(0)],
        );
        let port = |port: u16, protocol: &str| json!({ "port": port, "protocol": protocol });
        check(
            json!([port(53, "TCP"), port(53, "UDP")]),
            json!([port(53, "UDP")]),
            &[Some(1)],
        );
    }

    #[test]
    fn items_without_keys_are_matched_by_similarity() {
        check(
            json!(["a", "b", "c"]),
            json!(["x", "a", "c"]),
            &[None, Some(0), Some(2)],
        );
        let rule = |host: &str, path: &str| json!({ "host": host, "path": path });
        check(
            json!([rule("a", "/"), rule("b", "/"), rule("b", "/x")]),
            json!([
                rule("new", "/new"),
                rule("a", "/"),
                rule("b", "/y"),
                rule("b", "/x")
            ]),
            &[None, Some(0), Some(1), Some(2)],
        );
        // One of the items was replaced.
        check(
            json!([{ "a": 1 }, { "b": 1 }]),
            json!([{ "a": 1 }, { "c": 1 }]),
            &[Some(0), Some(1)],
        );
    }

    #[test]
    fn items_with_duplicate_keys_are_matched_by_similarity() {
        let item = |name: &str, at: u8| json!({ "name": name, "at": at });
        check(
            json!([item("a", 1), item("a", 2)]),
            json!([item("a", 2)]),
            &[Some(1)],
        );
    }

    #[test]
    fn items_of_a_long_list_are_matched() {
        let before: Vec<Value> = (0..3000).map(|at| json!({ "at": at })).collect();
        let mut after = before.clone();
        after.insert(10, json!({ "at": "new" }));
        after.remove(2000);
        let matched = match_items(&before, &after);
        assert_eq!(
            (matched[9], matched[10], matched[2999]),
            (Some(9), None, Some(2999))
        );
    }

    proptest! {
        #[test]
        fn unchanged_item_matches_an_equal_one(
            before in prop::collection::vec(0..6u8, 0..12),
            after in prop::collection::vec(0..6u8, 0..12),
        ) {
            let items = |values: &[u8]| values.iter().map(|value| json!({ "value": value })).collect::<Vec<_>>();
            let matched = match_items(&items(&before), &items(&after));
            prop_assert_eq!(matched.len(), after.len());
            let origins: Vec<usize> = matched.iter().flatten().copied().collect();
            prop_assert!(origins.is_sorted(), "crossed: {:?}", matched);
            let distinct: HashSet<&usize> = origins.iter().collect();
            prop_assert_eq!(distinct.len(), origins.len());
        }

        #[test]
        fn insertions_and_removals_keep_other_items_matched(
            size in 1..10usize,
            inserted in prop::collection::vec(0..10usize, 0..5),
            removed in prop::collection::vec(0..10usize, 0..5),
        ) {
            let before: Vec<Value> = (0..size).map(|at| json!({ "value": at })).collect();
            let mut after = before.clone();
            after.retain(|item| !removed.iter().any(|at| item["value"] == json!(at)));
            for at in inserted {
                after.insert(at.min(after.len()), json!({ "new": true }));
            }
            for (item, origin) in after.iter().zip(match_items(&before, &after)) {
                if item.get("value").is_some() {
                    prop_assert_eq!(origin.map(|at| &before[at]), Some(item));
                }
            }
        }
    }
}
