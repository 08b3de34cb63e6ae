//! The upgrade graph of a channel, i.e. the version that a cluster upgrades to from each version.
//!
//! An entry of a channel may replace one other entry and skip several. The Operator Lifecycle
//! Manager starts at the head, i.e. the entry that no other entry replaces or skips, and follows
//! `replaces` from there. It rejects the whole catalog unless every channel has exactly one head.
//! Since channels contain different versions, the edges of a release are computed separately for
//! each channel.
//!
//! The walk stops at any version that some entry skips. Every version below that point is stranded,
//! unless it is skipped as well:
//!
//! ```text
//! 0.4.0 > 0.3.0 > 0.2.0 > 0.1.0, and 0.4.0 skips 0.2.0: a cluster with 0.1.0 could only go to 0.2.0, which is not installed.
//! 0.4.0 > 0.1.0,                 and 0.4.0 skips 0.2.0 and 0.3.0: each of the three upgrades to 0.4.0.
//! ```
//!
//! This is why no edge may lead to a skipped version. See `Channel.validateReplacesChain` in
//! operator-registry 1.61. Before 1.58, the walk went on below skipped versions. `verdicts.txt`
//! contains operator-registry's verdicts on a few hundred graphs.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use semver::Version;
use serde_json::Value;

#[derive(Clone, Debug)]
struct Entry<'a> {
    name: &'a str,
    replaces: Option<&'a str>,
    skips: Vec<&'a str>,
}

impl<'a> Entry<'a> {
    fn read(value: &'a Value) -> Option<Self> {
        let skips = value["skips"].as_array().into_iter().flatten();
        Some(Entry {
            name: value["name"].as_str()?,
            replaces: value["replaces"].as_str().filter(|name| !name.is_empty()),
            skips: skips.filter_map(Value::as_str).collect(),
        })
    }

    /// The versions from which a cluster can upgrade to this one.
    fn passed(&self) -> impl Iterator<Item = &'a str> {
        self.replaces.into_iter().chain(self.skips.iter().copied())
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Channel<'a> {
    entries: Vec<Entry<'a>>,
}

/// Reason for which the lifecycle manager would reject a channel, with the names of versions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChannelFault<'a> {
    Empty,
    Twice(&'a str),
    /// Every version is replaced or skipped by another one.
    Headless,
    /// Each version replaces the next, and the last one the first.
    Cycle(Vec<&'a str>),
    /// Several versions are neither replaced nor skipped. Highest first.
    Heads(Vec<&'a str>),
    /// Versions that are neither reachable from the head nor skipped.
    Stranded(Vec<&'a str>),
}

impl<'a> Channel<'a> {
    pub(super) fn read(document: &'a Value) -> Self {
        let entries = document["entries"].as_array().into_iter().flatten();
        Channel {
            entries: entries.filter_map(Entry::read).collect(),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().map(|entry| entry.name)
    }

    pub(super) fn with_release(
        mut self,
        release: &'a str,
        replaces: Option<&'a str>,
        skips: &'a [String],
    ) -> Self {
        self.entries.retain(|entry| entry.name != release);
        self.entries.push(Entry {
            name: release,
            replaces,
            skips: skips.iter().map(String::as_str).collect(),
        });
        self
    }

    pub(super) fn find_replaced(&self, release: &str, skips: &[String]) -> Option<&'a str> {
        let mut skipped = self.skipped();
        skipped.extend(skips.iter().map(String::as_str));
        let own = self.entries.iter().find(|entry| entry.name == release);
        match own {
            // An existing release keeps the version that it replaces, unless that version is now
            // skipped.
            Some(own) if own.replaces.is_none_or(|name| !skipped.contains(name)) => return own.replaces,
            _ => {}
        }
        let others = || self.entries.iter().filter(|entry| entry.name != release);
        // Pass over skipped versions: if `0.2.1` skips `0.2.0`, it replaces what `0.2.0` replaced.
        let is_left = |entry: &&Entry<'_>| !skipped.contains(entry.name);
        let replaced: BTreeSet<&str> = others()
            .filter(is_left)
            .filter_map(|entry| entry.replaces)
            .collect();
        // A release that is already replaced or skipped by some entry won't be the head, so it
        // replaces the highest version below it.
        let is_inserted = replaced.contains(release) || skipped.contains(release);
        others()
            .filter(is_left)
            .map(|entry| entry.name)
            // A new release replaces the head; otherwise, the channel would have two.
            .filter(|name| is_inserted || !replaced.contains(name))
            // `0.1.1` after `0.2.0` would be a downgrade.
            .filter(|name| compare(name, release) == Ordering::Less)
            .max_by(|a, b| compare(a, b))
    }

    /// Checks a channel against the lifecycle manager's rules, and returns the first fault.
    pub(super) fn check(&self) -> Result<(), ChannelFault<'a>> {
        let mut names = BTreeSet::new();
        if let Some(name) = self.names().find(|name| !names.insert(*name)) {
            return Err(ChannelFault::Twice(name));
        }
        let heads = self.heads();
        match *heads {
            [] if self.entries.is_empty() => Err(ChannelFault::Empty),
            [] => Err(self.find_cycle().unwrap_or(ChannelFault::Headless)),
            [head] => self.check_reached(head),
            _ => Err(ChannelFault::Heads(heads)),
        }
    }

    fn heads(&self) -> Vec<&'a str> {
        let passed: BTreeSet<&str> = self.entries.iter().flat_map(Entry::passed).collect();
        let mut heads: Vec<&str> = self.names().filter(|name| !passed.contains(name)).collect();
        heads.sort_by(|a, b| compare(b, a));
        heads
    }

    fn skipped(&self) -> BTreeSet<&str> {
        self.entries
            .iter()
            .flat_map(|entry| &entry.skips)
            .copied()
            .collect()
    }

    /// Checks that every version is reachable from the head or skipped.
    fn check_reached(&self, head: &'a str) -> Result<(), ChannelFault<'a>> {
        let skipped = self.skipped();
        let mut edges = self.edges();
        edges.retain(|_, replaced| !skipped.contains(replaced));
        let reached = self.walk(head, &edges)?;
        let is_stranded = |name: &&str| !reached.contains(name) && !skipped.contains(name);
        let stranded: Vec<&str> = self.names().filter(is_stranded).collect();
        match stranded.is_empty() {
            true => Ok(()),
            // If there is a cycle, it is what strands the versions.
            false => Err(self.find_cycle().unwrap_or(ChannelFault::Stranded(stranded))),
        }
    }

    fn find_cycle(&self) -> Option<ChannelFault<'a>> {
        let edges = self.edges();
        self.names().find_map(|name| self.walk(name, &edges).err())
    }

    fn edges(&self) -> BTreeMap<&'a str, &'a str> {
        let edges = self
            .entries
            .iter()
            .map(|entry| Some((entry.name, entry.replaces?)));
        edges.flatten().collect()
    }

    /// Follows `replaces` from `head` and returns all names on the way, including those without an
    /// entry in the channel.
    fn walk(&self, head: &'a str, edges: &BTreeMap<&str, &'a str>) -> Result<Vec<&'a str>, ChannelFault<'a>> {
        let mut seen = BTreeSet::from([head]);
        let mut reached = vec![head];
        let mut at = head;
        while let Some(next) = edges.get(at).copied() {
            if !seen.insert(next) {
                let start = reached.iter().position(|name| *name == next);
                return Err(ChannelFault::Cycle(reached.split_off(start.unwrap_or_default())));
            }
            reached.push(next);
            at = next;
        }
        Ok(reached)
    }
}

/// Compares the versions in two names, e.g. `shop.v0.1.0`. Names without a version aren't ours and
/// sort first.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    version_in(a).cmp(&version_in(b))
}

fn version_in(name: &str) -> Option<Version> {
    name.match_indices(".v")
        .find_map(|(at, mark)| Version::parse(&name[at + mark.len()..]).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Parses entries such as `0.2.0 > 0.1.0 ~ 0.1.1,0.1.2`: a version, what it replaces, and what
    /// it skips.
    fn channel(entries: &[&str]) -> Value {
        let name = |version: &str| format!("shop.v{version}");
        let entry = |text: &&str| {
            let (text, skips) = text.split_once(" ~ ").unwrap_or((text, ""));
            let (version, replaces) = text.split_once(" > ").unwrap_or((text, ""));
            let skips = skips.split(',').filter(|version| !version.is_empty());
            json!({
                "name": name(version),
                "replaces": if replaces.is_empty() { String::new() } else { name(replaces) },
                "skips": skips.map(name).collect::<Vec<_>>(),
            })
        };
        json!({ "entries": entries.iter().map(entry).collect::<Vec<_>>() })
    }

    #[test]
    fn a_release_replaces_the_highest_version_below_it() {
        let line: &[&str] = &["0.2.0 > 0.1.0", "0.1.0"];
        let three: &[&str] = &["0.3.0 > 0.2.0", "0.2.0 > 0.1.0", "0.1.0"];
        for (entries, release, skips, expected) in [
            (&[] as &[&str], "0.1.0", "", None),
            (line, "0.3.0", "", Some("shop.v0.2.0")),
            (line, "0.10.0", "", Some("shop.v0.2.0")),
            (line, "0.3.0", "0.2.0", Some("shop.v0.1.0")),
            (line, "0.3.0-rc.1", "", Some("shop.v0.2.0")),
            // Lower than the head, so replacing the head would be a downgrade.
            (line, "0.1.1", "", None),
            (line, "0.2.0-rc.1", "", None),
            // An existing release.
            (line, "0.2.0", "", Some("shop.v0.1.0")),
            (line, "0.1.0", "", None),
            // An existing release that now skips the version it replaced.
            (three, "0.3.0", "0.2.0", Some("shop.v0.1.0")),
            (three, "0.2.0", "0.1.0", None),
            // Skips a version that itself skips another.
            (
                &["0.2.1 > 0.1.0 ~ 0.2.0", "0.2.0 > 0.1.0", "0.1.0"],
                "0.2.2",
                "0.2.1",
                Some("shop.v0.1.0"),
            ),
            // Already skipped by the head.
            (
                &["0.2.0 > 0.1.0 ~ 0.1.1", "0.1.0"],
                "0.1.1",
                "",
                Some("shop.v0.1.0"),
            ),
            // Several heads, which `check` reports.
            (&["0.2.0", "0.1.1"], "0.3.0", "", Some("shop.v0.2.0")),
            (&["0.2.0", "0.1.1"], "0.3.0", "0.2.0", Some("shop.v0.1.1")),
            (&["beta"], "0.3.0", "", Some("shop.vbeta")),
        ] {
            let document = channel(entries);
            let skips: Vec<String> = skips
                .split(',')
                .map(|version| format!("shop.v{version}"))
                .collect();
            let found = Channel::read(&document).find_replaced(&format!("shop.v{release}"), &skips);
            assert_eq!(found, expected, "{release} after {entries:?}");
        }
    }

    #[test]
    fn a_channel_has_one_head() {
        use ChannelFault::*;
        for (entries, expected) in [
            (&["0.1.0"] as &[&str], Ok(())),
            (&["0.2.0 > 0.1.0", "0.1.0"], Ok(())),
            // The replaced version may be in another channel only.
            (&["0.2.0 > 0.1.0"], Ok(())),
            (&["0.3.0 > 0.1.0 ~ 0.2.0", "0.2.0 > 0.1.0", "0.1.0"], Ok(())),
            (&["0.2.0 > 0.1.0 ~ 0.1.1", "0.1.1 > 0.1.0", "0.1.0"], Ok(())),
            (&[], Err(Empty)),
            (&["0.1.0", "0.1.0"], Err(Twice("shop.v0.1.0"))),
            (
                &["0.2.0", "0.1.0", "0.10.0"],
                Err(Heads(vec!["shop.v0.10.0", "shop.v0.2.0", "shop.v0.1.0"])),
            ),
            (&["0.1.0 > 0.1.0"], Err(Cycle(vec!["shop.v0.1.0"]))),
            (
                &["0.2.0 > 0.1.0", "0.1.0 > 0.2.0"],
                Err(Cycle(vec!["shop.v0.2.0", "shop.v0.1.0"])),
            ),
            (
                &["0.3.0 > 0.2.0", "0.2.0 > 0.1.0", "0.1.0 > 0.2.0"],
                Err(Cycle(vec!["shop.v0.2.0", "shop.v0.1.0"])),
            ),
            (&["0.2.0 ~ 0.1.0", "0.1.0 ~ 0.2.0"], Err(Headless)),
            // The walk from the head stops at a skipped version.
            (
                &["0.3.0 ~ 0.2.0", "0.2.0 > 0.1.0", "0.1.0"],
                Err(Stranded(vec!["shop.v0.1.0"])),
            ),
            // It doesn't take an edge to a skipped version either.
            (
                &["0.4.0 > 0.3.0 ~ 0.2.0", "0.3.0 > 0.2.0", "0.2.0 > 0.1.0", "0.1.0"],
                Err(Stranded(vec!["shop.v0.1.0"])),
            ),
            (
                &[
                    "0.4.0 > 0.3.0 ~ 0.2.0,0.1.0",
                    "0.3.0 > 0.2.0",
                    "0.2.0 > 0.1.0",
                    "0.1.0",
                ],
                Ok(()),
            ),
        ] {
            assert_eq!(Channel::read(&channel(entries)).check(), expected, "{entries:?}");
        }
    }

    #[test]
    fn agrees_with_operator_registry_on_channels() {
        let mut accepted = 0;
        for line in include_str!("verdicts.txt").lines() {
            let (verdict, entries) = line.split_once(": ").expect("a verdict and a channel");
            let document = channel(&entries.split(" | ").collect::<Vec<_>>());
            let found = Channel::read(&document).check();
            assert_eq!(found.is_ok(), verdict == "ok", "{line}: {found:?}");
            accepted += usize::from(found.is_ok());
        }
        assert!(accepted > 50, "{accepted} channels are accepted");
    }
}
