//! Fakes for external systems that an operator calls, e.g. a cloud provider's API.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::context;
use crate::network::Connection;

/// A fake for a system outside of the cluster, such as a DNS zone or a cloud's object storage.
///
/// The value holds the system's state. Every run starts with the default value, and the state
/// survives operator crashes. Operators access it through a [`Remote`], whose calls can fail just
/// like requests to the API server: with an error, with a lost response after the work was done,
/// slowly, or because the operator crashes. Oracles compare the result of
/// [`objects`](Self::objects) to find duplicate, missing, differing or leaked objects.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use rbuilder_simulation::{External, Outage, Remote};
/// use serde_json::Value;
///
/// /// A zone: addresses by name.
/// #[derive(Default)]
/// struct Zone(BTreeMap<String, String>);
///
/// impl External for Zone {
///     const NAME: &'static str = "dns";
///
///     fn objects(&self) -> Vec<(String, Value)> {
///         let records = self.0.iter();
///         records.map(|(name, address)| (name.clone(), address.clone().into())).collect()
///     }
/// }
///
/// /// What the operator calls: in production, a client of the provider.
/// async fn set_record(zone: &Remote<Zone>, name: &str, address: &str) -> Result<(), Outage> {
///     let (name, address) = (name.to_owned(), address.to_owned());
///     zone.call(format!("set {name}"), |zone| { zone.0.insert(name, address); }).await
/// }
/// # let zone = Remote::<Zone>::default();
/// # let set = set_record(&zone, "a.example.com", "192.0.2.1");
/// # futures::FutureExt::now_or_never(set).unwrap().unwrap();
/// ```
pub trait External: Default + Send + 'static {
    /// Name of the system in reports and histories, e.g. `dns`.
    const NAME: &'static str;

    /// Everything that the operator created in the system, by name.
    ///
    /// Names and values must not depend on the order of calls. If the system assigns identifiers,
    /// leave them out or create them with [`new_id`]. Names need not be unique.
    fn objects(&self) -> Vec<(String, Value)>;

    /// Deletes an object, simulating another user of the system.
    ///
    /// Only implement this if the operator is supposed to notice, which usually requires periodic
    /// reconciles. The default implementation is a no-op.
    fn remove(&mut self, name: &str) {
        let _ = name;
    }
}

/// Error of a [call](Remote::call) that was disturbed by the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outage {
    /// The call was rejected with this HTTP status code before it had any effect.
    Refused(u16),
    /// The call succeeded, but its response was lost.
    AnswerLost,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "the simulated system answers with {code}"),
            Self::AnswerLost => f.write_str("the simulation lost the answer"),
        }
    }
}

impl std::error::Error for Outage {}

/// An operator's connection to an [`External`] system.
///
/// In a simulation, all `Remote`s of the same type share one system. Create them in the function
/// that registers the controllers: with two replicas, each replica needs its own connection, which
/// is closed when its process dies.
///
/// Outside of a simulation, e.g. in plain unit tests, every new `Remote` has its own system (shared
/// only with its clones), and calls never fail.
pub struct Remote<E> {
    own: Arc<Mutex<E>>,
    /// `None` if created outside of any process. Calls then use the connection of the process being
    /// polled.
    connection: Option<Connection>,
}

impl<E: External> Remote<E> {
    /// Connects to the system.
    #[must_use]
    pub fn new() -> Self {
        Self {
            own: Arc::new(Mutex::new(E::default())),
            connection: context::connection(),
        }
    }

    /// Calls the system. `name` identifies the call in timelines and histories, e.g.
    /// `create a.example.com`.
    ///
    /// # Errors
    ///
    /// Fails only if the current history demands it.
    pub async fn call<T: Send>(
        &self,
        name: impl Into<String> + Send,
        handle: impl FnOnce(&mut E) -> T + Send,
    ) -> Result<T, Outage> {
        let Some(connection) = self.connection.clone().or_else(context::connection) else {
            return Ok(handle(
                &mut self.own.lock().unwrap_or_else(PoisonError::into_inner),
            ));
        };
        let call = format!("{} {}", E::NAME, name.into());
        connection
            .call_external(&call, |systems| systems.handle(handle))
            .await
    }
}

impl<E: External> Default for Remote<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Clone for Remote<E> {
    fn clone(&self) -> Self {
        Self {
            own: Arc::clone(&self.own),
            connection: self.connection.clone(),
        }
    }
}

impl<E: External> fmt::Debug for Remote<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("system", &E::NAME)
            .finish_non_exhaustive()
    }
}

/// Generates an identifier for an object of an [`External`] system.
///
/// Comparisons treat all identifiers as equal, even where cluster objects refer to them.
#[must_use]
pub fn new_id() -> String {
    let number = context::random().unwrap_or_else(|| rbuilder_testing::Random::new(1).next());
    format!(
        "00000000-0000{}{:012x}",
        crate::world::UID,
        number & 0xffff_ffff_ffff
    )
}

/// Object-safe version of [`External`], whose associated constant rules out trait objects.
trait System: Send {
    fn objects(&self) -> Vec<(String, Value)>;
    fn remove(&mut self, name: &str);
    fn as_any(&mut self) -> &mut dyn Any;
}

impl<E: External> System for E {
    fn objects(&self) -> Vec<(String, Value)> {
        External::objects(self)
    }

    fn remove(&mut self, name: &str) {
        External::remove(self, name);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[derive(Default)]
pub(crate) struct Systems {
    by_name: BTreeMap<&'static str, Box<dyn System>>,
    version: u64,
}

impl fmt::Debug for Systems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Systems")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Systems {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    fn handle<E: External, T>(&mut self, handle: impl FnOnce(&mut E) -> T) -> T {
        // Any call may modify the state, so compare the listed objects.
        let before = self.objects();
        let system = self
            .by_name
            .entry(E::NAME)
            .or_insert_with(|| Box::new(E::default()));
        let Some(system) = system.as_any().downcast_mut::<E>() else {
            panic!("two external systems have the name {}", E::NAME);
        };
        let result = handle(system);
        self.version += u64::from(self.objects() != before);
        result
    }

    /// Objects of all systems, under names such as `dns: a.example.com`. Duplicate names get a
    /// number appended.
    pub(crate) fn objects(&self) -> BTreeMap<String, Value> {
        let mut objects = BTreeMap::new();
        for (system, state) in &self.by_name {
            let mut listed = state.objects();
            listed.sort_by_key(|(name, value)| (name.clone(), value.to_string()));
            // Object names needn't be unique, but keys must be.
            for (name, value) in listed {
                let first = format!("{system}{SEPARATOR}{name}");
                let mut names = std::iter::once(first.clone()).chain((2..).map(|n| format!("{first} <{n}>")));
                let free = names.find(|name| !objects.contains_key(name));
                objects.insert(free.unwrap_or(first), value);
            }
        }
        objects
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.objects();
        if let Some((system, name)) = split_external(name)
            && let Some(system) = self.by_name.get_mut(system)
        {
            system.remove(name);
        }
        let changed = self.objects() != before;
        self.version += u64::from(changed);
        changed
    }
}

/// Contains a space, so it can't occur in names of cluster objects.
const SEPARATOR: &str = ": ";

pub(crate) fn is_external(name: &str) -> bool {
    name.contains(SEPARATOR)
}

/// Splits the name of an object in an external system, such as `dns: a.example.com`.
pub(crate) fn split_external(name: &str) -> Option<(&str, &str)> {
    name.split_once(SEPARATOR)
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SharedSystems(Arc<Mutex<Systems>>);

impl SharedSystems {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Systems> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Buckets(Vec<u64>);

    impl External for Buckets {
        const NAME: &'static str = "buckets";

        fn objects(&self) -> Vec<(String, Value)> {
            self.0
                .iter()
                .map(|size| ("a".to_owned(), (*size).into()))
                .collect()
        }

        fn remove(&mut self, _name: &str) {
            self.0.pop();
        }
    }

    #[test]
    fn objects_with_the_same_name_are_numbered_in_the_order_of_their_values() {
        let mut systems = Systems::default();
        systems.handle(|buckets: &mut Buckets| buckets.0 = vec![2, 1]);
        let expected = [("buckets: a", 1), ("buckets: a <2>", 2)];
        let expected = expected.map(|(name, value)| (name.to_owned(), Value::from(value)));
        assert_eq!(systems.objects(), BTreeMap::from(expected));
        assert_eq!(systems.version(), 1);
        assert!(systems.remove("buckets: a") && !systems.remove("zone: a"));
        assert_eq!(systems.version(), 2);
    }

    #[test]
    fn clones_share_their_system_outside_of_a_simulation() {
        let one = Remote::<Buckets>::new();
        let other = one.clone();
        let count = async {
            one.call("create", |buckets| buckets.0.push(1)).await?;
            other.call("count", |buckets| buckets.0.len()).await
        };
        assert_eq!(futures::FutureExt::now_or_never(count), Some(Ok(1)));
    }
}
