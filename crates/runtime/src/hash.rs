//! Hash maps and sets. With the feature `simulation`, their order is not random, because runs must
//! be reproducible.

/// State used by the hashers.
#[cfg(not(feature = "simulation"))]
type State = std::collections::hash_map::RandomState;
/// State used by the hashers.
#[cfg(feature = "simulation")]
type State = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, State>;
pub(crate) type HashSet<K> = std::collections::HashSet<K, State>;
