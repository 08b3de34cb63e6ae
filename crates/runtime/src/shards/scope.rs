//! Determines which objects of a kind a replica holds.
//!
//! | objects | decided by | what the API server can select |
//! |---|---|---|
//! | of a controller's own kind | their UID or namespace | both, with a `shardSelector` |
//! | owned by them | the UID of an owner | nothing: it does not look at owners |
//! | owned by them, with [`ShardBy::Namespace`] | their namespace, which is that of the owner | the namespace, with a `shardSelector` |
//! | owned by them, [labelled](crate::Controller::label_owned) | the UID of an owner | the label, which has the first bits of the hash of that UID |

use kube::core::ObjectMeta;

use super::space::{RangeSet, hash, range_of};

/// Label of owned objects with the shard of their owner.
const OWNER_SHARD: &str = "rbuilder.dev/owner-shard";

/// Number of bits in the label, taken from the start of the hash. If the label contained the range
/// instead, all objects would have to be updated when the number of ranges changes.
const LABEL_BITS: u32 = 8;

/// Determines the replica that reconciles an object, if the operator is sharded. See
/// [`Controller::shard_by`](crate::Controller::shard_by).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShardBy {
    /// Use the object's UID. Each replica has about the same number of objects.
    #[default]
    Uid,
    /// Use the object's namespace. Objects in the same namespace are handled by the same replica.
    ///
    /// In the API server's hash (FNV-1a), the last three characters of a name hardly make a
    /// difference. For example, the namespaces `team-00` to `team-99` are all handled by the same
    /// replica. Names should differ earlier, e.g. `payments` and `search`, or `team-00-prod` and
    /// `team-01-prod`.
    Namespace,
}

impl ShardBy {
    pub(crate) fn hash_of(self, meta: &ObjectMeta) -> u64 {
        let text = match self {
            Self::Uid => &meta.uid,
            Self::Namespace => &meta.namespace,
        };
        hash(text.as_deref().unwrap_or_default())
    }

    fn field(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

/// How the objects of a controller are distributed over the replicas.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Division {
    pub(crate) by: ShardBy,
    /// Whether owned objects get a label with their owner's shard.
    pub(crate) labels_owned: bool,
}

impl Division {
    pub(crate) fn owned_scope(self) -> Scope {
        Scope::Owned(match (self.by, self.labels_owned) {
            (ShardBy::Namespace, _) => OwnedBy::Namespace,
            (ShardBy::Uid, true) => OwnedBy::Label,
            (ShardBy::Uid, false) => OwnedBy::Reference,
        })
    }

    pub(crate) fn label(self, owner: &str, meta: &mut ObjectMeta) {
        if self.owned_scope() == Scope::Owned(OwnedBy::Label) {
            let labels = meta.labels.get_or_insert_default();
            labels.insert(OWNER_SHARD.to_owned(), bucket_name(bucket_of(hash(owner))));
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    #[default]
    Everywhere,
    /// Objects in the ranges of this replica.
    Own(ShardBy),
    /// Objects with an owner in the ranges of this replica.
    Owned(OwnedBy),
}

/// How to find the objects owned by our objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OwnedBy {
    Reference,
    /// By owner reference, among the objects with a label for this replica.
    Label,
    Namespace,
}

impl Scope {
    /// All scopes, starting with the largest.
    pub(crate) const ALL: [Self; 6] = [
        Self::Everywhere,
        Self::Own(ShardBy::Uid),
        Self::Own(ShardBy::Namespace),
        Self::Owned(OwnedBy::Reference),
        Self::Owned(OwnedBy::Label),
        Self::Owned(OwnedBy::Namespace),
    ];

    /// Returns `true` if an object with this metadata is in scope. Ignores labels, which the API
    /// server has already evaluated.
    pub(crate) fn contains(self, ranges: &RangeSet, meta: &ObjectMeta) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Own(by) => ranges.contains_hash(by.hash_of(meta)),
            Self::Owned(OwnedBy::Namespace) => ranges.contains_hash(ShardBy::Namespace.hash_of(meta)),
            Self::Owned(OwnedBy::Reference | OwnedBy::Label) => {
                let mut owners = meta.owner_references.iter().flatten();
                owners.any(|owner| ranges.contains_hash(hash(&owner.uid)))
            }
        }
    }

    /// Returns `true` if the API server sends objects with these labels to this replica.
    pub(crate) fn selects_labels(self, meta: &ObjectMeta) -> bool {
        let mut labels = meta.labels.iter().flatten();
        self != Self::Owned(OwnedBy::Label) || labels.any(|(label, _)| label == OWNER_SHARD)
    }

    /// A field that the API server accepts in shard selectors, used to restrict what this replica
    /// receives.
    fn field(self) -> Option<&'static str> {
        match self {
            Self::Everywhere | Self::Owned(OwnedBy::Reference | OwnedBy::Label) => None,
            Self::Own(by) => Some(by.field()),
            Self::Owned(OwnedBy::Namespace) => Some(ShardBy::Namespace.field()),
        }
    }

    /// Returns `true` if API servers that support shard selectors only send objects in scope.
    pub(crate) fn has_shard_selector(self) -> bool {
        self.field().is_some()
    }

    pub(crate) fn shard_selector(self, ranges: &RangeSet) -> Option<String> {
        self.field().map(|field| ranges.selector(field))
    }

    /// Returns a label selector that matches all objects in scope, and some others, since the label
    /// only contains the start of a hash.
    pub(crate) fn label_selector(self, ranges: &RangeSet) -> Option<String> {
        if self != Self::Owned(OwnedBy::Label) {
            return None;
        }
        let buckets: Vec<String> = buckets_of(ranges).map(bucket_name).collect();
        Some(match buckets.len() == 1 << LABEL_BITS {
            true => OWNER_SHARD.to_owned(),
            false => format!("{OWNER_SHARD} in ({})", buckets.join(",")),
        })
    }

    pub(crate) fn is_owned(self) -> bool {
        matches!(self, Self::Owned(_))
    }

    /// Returns `true` if an object moves to another range when its owner changes.
    pub(crate) fn can_move(self) -> bool {
        matches!(self, Self::Owned(OwnedBy::Reference | OwnedBy::Label))
    }
}

/// Returns the bucket of a hash, i.e. its first bits.
fn bucket_of(hash: u64) -> u64 {
    hash >> (u64::BITS - LABEL_BITS)
}

fn bucket_name(bucket: u64) -> String {
    format!("{bucket:02x}")
}

fn buckets_of(ranges: &RangeSet) -> impl Iterator<Item = u64> {
    let width = 1 << (u64::BITS - LABEL_BITS);
    (0..1 << LABEL_BITS).filter(move |bucket| {
        let (start, last) = (bucket * width, bucket * width + (width - 1));
        let mut overlapping = range_of(start, ranges.space())..=range_of(last, ranges.space());
        overlapping.any(|range| ranges.contains(range))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn range_with(text: &str) -> RangeSet {
        let own = range_of(hash(text), 1024);
        RangeSet::of(1024, |range| range == own)
    }

    fn child() -> ObjectMeta {
        serde_json::from_value(json!({
            "uid": "child",
            "namespace": "team",
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "A", "name": "a", "uid": "one" },
                { "apiVersion": "v1", "kind": "A", "name": "b", "uid": "two" },
            ],
        }))
        .unwrap()
    }

    #[test]
    fn owned_object_is_in_scope_with_any_of_its_owners() {
        let meta = child();
        for by in [OwnedBy::Reference, OwnedBy::Label] {
            let scope = Scope::Owned(by);
            let contains = |text| scope.contains(&range_with(text), &meta);
            assert!(contains("one") && contains("two") && !contains("child") && !contains("team"));
        }
        assert!(Scope::Own(ShardBy::Uid).contains(&range_with("child"), &meta));
        assert!(Scope::Everywhere.contains(&RangeSet::empty(1024), &meta));
    }

    #[test]
    fn namespace_decides_for_owners_and_owned_objects_alike() {
        let meta = child();
        let scope = Division {
            by: ShardBy::Namespace,
            labels_owned: true,
        }
        .owned_scope();
        for scope in [scope, Scope::Own(ShardBy::Namespace)] {
            assert!(scope.contains(&range_with("team"), &meta));
            assert!(!scope.contains(&range_with("one"), &meta));
            let selector = scope.shard_selector(&range_with("team")).unwrap();
            assert!(
                selector.starts_with("shardRange(object.metadata.namespace, "),
                "{selector}"
            );
            assert_eq!(scope.label_selector(&range_with("team")), None);
        }
    }

    #[test]
    fn label_is_selected_with_the_range_of_its_owner_whatever_the_number_of_ranges() {
        let division = Division {
            labels_owned: true,
            ..Division::default()
        };
        for owner in ["one", "two", "three", ""] {
            let mut meta = child();
            division.label(owner, &mut meta);
            let label = &meta.labels.as_ref().unwrap()[OWNER_SHARD];
            assert!(division.owned_scope().selects_labels(&meta));
            for ranges in [1, 2, 3, 255, 256, 257, 1024] {
                let own = range_of(hash(owner), ranges);
                let own = RangeSet::of(ranges, |range| range == own);
                let selector = division.owned_scope().label_selector(&own).unwrap();
                assert!(
                    ranges == 1 || selector.contains(label),
                    "{owner} of {ranges}: {selector}"
                );
            }
        }
        assert!(!division.owned_scope().selects_labels(&child()));
    }

    #[test]
    fn label_selector_names_few_buckets_more_than_the_ranges_have() {
        let scope = Scope::Owned(OwnedBy::Label);
        let quarter = RangeSet::of(256, |range| range < 3);
        assert_eq!(
            scope.label_selector(&quarter).as_deref(),
            Some("rbuilder.dev/owner-shard in (00,01,02)")
        );
        let third = RangeSet::of(300, |range| range == 1);
        assert_eq!(
            scope.label_selector(&third).as_deref(),
            Some("rbuilder.dev/owner-shard in (00,01)")
        );
        let all = RangeSet::of(256, |_| true);
        assert_eq!(
            scope.label_selector(&all).as_deref(),
            Some("rbuilder.dev/owner-shard")
        );
    }
}
