//! Hash maps and sets. With the feature `simulation`, their order is deterministic, because runs
//! must be reproducible.

#[cfg(not(feature = "simulation"))]
type State = std::collections::hash_map::RandomState;
#[cfg(feature = "simulation")]
type State = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, State>;
pub(crate) type HashSet<K> = std::collections::HashSet<K, State>;
