//! Hash maps and sets. Their order is random, except with the feature `simulation`: runs of a
//! simulation must be repeatable.

/// The state of the hashers.
#[cfg(not(feature = "simulation"))]
type State = std::collections::hash_map::RandomState;
/// The state of the hashers.
#[cfg(feature = "simulation")]
type State = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, State>;
pub(crate) type HashSet<K> = std::collections::HashSet<K, State>;
