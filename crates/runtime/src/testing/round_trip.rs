//! Tests webhook conversions by round trips of random objects.

use std::fmt::{Display, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube::CustomResourceExt;
use serde::Serialize;
use serde_json::Value;

use super::{Counterexample, RandomObjects};
use crate::object::Object;
use crate::webhook::{AnyConverter, Converter};

/// Default for the number of objects per direction.
const CASES: u32 = 256;
/// Maximum number of differences in a message.
const SHOWN: usize = 10;

/// Asserts that no data is lost by the conversions between a hub and a spoke. Shorthand for
/// [`RoundTrip`] with its defaults.
///
/// ```no_run
/// # use rbuilder::testing::assert_round_trip;
/// # use rbuilder::CrdSchema;
/// # use kube::CustomResource;
/// # use serde::{Deserialize, Serialize};
/// # mod v1 {
/// #     use super::*;
/// #     #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
/// #     #[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
/// #     pub struct GreetingSpec { pub whom: String }
/// # }
/// # mod v2 {
/// #     use super::*;
/// #     #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
/// #     #[kube(group = "example.com", version = "v2", kind = "Greeting", namespaced)]
/// #     pub struct GreetingSpec { pub whom: String }
/// # }
/// # impl From<v1::Greeting> for v2::Greeting {
/// #     fn from(from: v1::Greeting) -> Self {
/// #         Self { metadata: from.metadata, spec: v2::GreetingSpec { whom: from.spec.whom } }
/// #     }
/// # }
/// # impl From<v2::Greeting> for v1::Greeting {
/// #     fn from(from: v2::Greeting) -> Self {
/// #         Self { metadata: from.metadata, spec: v1::GreetingSpec { whom: from.spec.whom } }
/// #     }
/// # }
/// # fn main() {
/// assert_round_trip::<v1::Greeting, v2::Greeting>();
/// # }
/// ```
///
/// # Panics
///
/// See [`RoundTrip::assert`].
#[track_caller]
pub fn assert_round_trip<K, V>()
where
    K: Object + Serialize + CustomResourceExt + TryFrom<V, Error: Display>,
    V: Object + Serialize + CustomResourceExt + TryFrom<K, Error: Display>,
{
    RoundTrip::<K, V>::new().assert();
}

/// Tests the conversions between a hub `K` and a spoke `V`. If a client reads an object in the
/// other version and writes it back unmodified, nothing should change.
///
/// This generates random objects that conform to the schemas. They're converted from the hub to the
/// spoke and back, and vice versa, in the same way as by the [webhook](crate::Webhook::spoke). In
/// between, defaults are set as the API server would when an object is written. The seed is fixed,
/// so failures are reproducible.
///
/// Some conversions have to lose data. Declare this with [`normalize_hub`](Self::normalize_hub) and
/// [`normalize_spoke`](Self::normalize_spoke). If conversions reject objects that a CEL rule or a
/// validator would reject as well, either skip those with [`hub_when`](Self::hub_when) and
/// [`spoke_when`](Self::spoke_when), or specify which values to use.
///
/// ```no_run
/// # use rbuilder::CrdSchema;
/// # use kube::CustomResource;
/// # use rbuilder::testing::RoundTrip;
/// # use serde::{Deserialize, Serialize};
/// # mod v1 {
/// #     use super::*;
/// #     #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
/// #     #[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
/// #     pub struct GreetingSpec { pub schedule: String, pub seconds: Option<u8> }
/// # }
/// # mod v2 {
/// #     use super::*;
/// #     #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
/// #     #[kube(group = "example.com", version = "v2", kind = "Greeting", namespaced)]
/// #     pub struct GreetingSpec { pub schedule: String }
/// # }
/// # impl From<v1::Greeting> for v2::Greeting {
/// #     fn from(from: v1::Greeting) -> Self {
/// #         Self { metadata: from.metadata, spec: v2::GreetingSpec { schedule: from.spec.schedule } }
/// #     }
/// # }
/// # impl From<v2::Greeting> for v1::Greeting {
/// #     fn from(from: v2::Greeting) -> Self {
/// #         Self { metadata: from.metadata, spec: v1::GreetingSpec { schedule: from.spec.schedule, seconds: None } }
/// #     }
/// # }
/// # fn main() {
/// RoundTrip::<v1::Greeting, v2::Greeting>::new()
///     .hub_values("spec.schedule", ["0 5 * * *", "@daily"])
///     .normalize_hub(|greeting| greeting.spec.seconds = None)
///     .assert();
/// # }
/// ```
#[must_use = "nothing is tested before `assert`"]
pub struct RoundTrip<K: Object, V: Object> {
    cases: u32,
    hub: Side<K>,
    spoke: Side<V>,
    converter: Converter<K>,
}

type Normalize<K> = Box<dyn Fn(&mut K)>;
type When<K> = Box<dyn Fn(&K) -> bool>;

/// A version, and how to generate its objects.
struct Side<K> {
    objects: RandomObjects,
    version: String,
    normalize: Option<Normalize<K>>,
    when: Option<When<K>>,
}

impl<K: Object + Serialize + CustomResourceExt> Side<K> {
    #[track_caller]
    fn new() -> Self {
        Self {
            objects: RandomObjects::new(&K::crd(), &K::version(&())),
            version: K::api_version(&()).into_owned(),
            normalize: None,
            when: None,
        }
    }

    fn read(&self, object: &Value) -> Result<K, String> {
        K::deserialize(object).map_err(|error| error.to_string())
    }

    fn normal(&self, object: &Value) -> Result<Value, String> {
        let mut object = self.read(object)?;
        if let Some(normalize) = &self.normalize {
            normalize(&mut object);
        }
        serde_json::to_value(&object).map_err(|error| error.to_string())
    }
}

impl<K, V> Default for RoundTrip<K, V>
where
    K: Object + Serialize + CustomResourceExt + TryFrom<V, Error: Display>,
    V: Object + Serialize + CustomResourceExt + TryFrom<K, Error: Display>,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> RoundTrip<K, V>
where
    K: Object + Serialize + CustomResourceExt + TryFrom<V, Error: Display>,
    V: Object + Serialize + CustomResourceExt + TryFrom<K, Error: Display>,
{
    /// Creates a test with all objects that conform to the schemas. No data may be lost.
    ///
    /// # Panics
    ///
    /// Panics if one of the types does not have a schema, or if they are not versions of the same
    /// kind.
    #[track_caller]
    pub fn new() -> Self {
        let mut converter = Converter::new();
        converter.add::<V>();
        if let Some(error) = converter.errors().first() {
            panic!("{error}");
        }
        Self {
            cases: CASES,
            hub: Side::new(),
            spoke: Side::new(),
            converter,
        }
    }

    /// Sets the number of objects for each direction. Defaults to 256.
    pub fn cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// Sets the seed. Defaults to 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.hub.objects = self.hub.objects.seed(seed);
        self.spoke.objects = self.spoke.objects.seed(seed);
        self
    }

    /// Sets the values to use for a field of the hub. See [`RandomObjects::values`].
    pub fn hub_values<T: Into<Value>>(mut self, path: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.hub.objects = self.hub.objects.values(path, values);
        self
    }

    /// Sets the values to use for a field of the spoke. See [`RandomObjects::values`].
    pub fn spoke_values<T: Into<Value>>(mut self, path: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.spoke.objects = self.spoke.objects.values(path, values);
        self
    }

    /// Skips hubs for which `when` returns `false`. Use this for objects that a validator would
    /// reject.
    pub fn hub_when(mut self, when: impl Fn(&K) -> bool + 'static) -> Self {
        self.hub.when = Some(Box::new(when));
        self
    }

    /// Skips spokes for which `when` returns `false`. Use this for objects that a validator would
    /// reject.
    pub fn spoke_when(mut self, when: impl Fn(&V) -> bool + 'static) -> Self {
        self.spoke.when = Some(Box::new(when));
        self
    }

    /// Sets a function that normalizes hubs before comparing them. It should convert equivalent
    /// values to the same form, and remove what may be lost.
    pub fn normalize_hub(mut self, normalize: impl Fn(&mut K) + 'static) -> Self {
        self.hub.normalize = Some(Box::new(normalize));
        self
    }

    /// Sets a function that normalizes spokes before comparing them. It should convert equivalent
    /// values to the same form, and remove what may be lost.
    pub fn normalize_spoke(mut self, normalize: impl Fn(&mut V) + 'static) -> Self {
        self.spoke.normalize = Some(Box::new(normalize));
        self
    }

    /// Runs the test.
    ///
    /// # Panics
    ///
    /// Panics if an object is modified or rejected by a conversion, or if the schema of its version
    /// rejects the result of a conversion. The message contains the simplest such object and the
    /// differences.
    ///
    /// Also panics if no objects that conform to the schema can be generated.
    #[track_caller]
    pub fn assert(&self) {
        if let Err(report) = self.run() {
            panic!("{report}");
        }
    }

    fn run(&self) -> Result<(), String> {
        self.all(&self.hub, &self.spoke)?;
        self.all(&self.spoke, &self.hub)
    }

    fn all<A, B>(&self, from: &Side<A>, to: &Side<B>) -> Result<(), String>
    where
        A: Object + Serialize + CustomResourceExt,
        B: Object + Serialize + CustomResourceExt,
    {
        let mut tried = 0;
        let found = from.objects.find_counterexample(self.cases, |object| {
            let is_meant = self.trip(object, from, to)?;
            tried += u32::from(is_meant);
            Ok(())
        });
        if let Some(found) = found {
            return Err(report(&found, &from.version, &to.version));
        }
        if tried == 0 && self.cases > 0 {
            let (version, cases) = (&from.version, self.cases);
            return Err(format!(
                "all {cases} objects of {version} were skipped: give values for which `…_when` returns true"
            ));
        }
        Ok(())
    }

    /// Converts an object there and back. Returns `false` if it was skipped.
    fn trip<A, B>(&self, object: &Value, from: &Side<A>, to: &Side<B>) -> Result<bool, Failure>
    where
        A: Object + Serialize + CustomResourceExt,
        B: Object + Serialize + CustomResourceExt,
    {
        let read = from.read(object).map_err(Failure::Unread)?;
        if from.when.as_ref().is_some_and(|when| !when(&read)) {
            return Ok(false);
        }
        let there = self.convert(object, from.version.as_str(), &to.version)?;
        let settled = to.objects.admit(there.clone());
        let settled = settled.map_err(|reason| Failure::Unfit {
            version: to.version.clone(),
            reason,
            object: there.clone(),
        })?;
        let back = self.convert(&settled, &to.version, &from.version)?;
        let admitted = from.objects.admit(back.clone());
        // If the schema rejects the object, the differences are more helpful than its reason.
        let shown = admitted.as_ref().unwrap_or(&back);
        let before = from.normal(object).map_err(Failure::Unread)?;
        let after = from.normal(shown).map_err(Failure::Unread)?;
        let mut differences = Vec::new();
        compare("", &before, &after, &mut differences);
        if !differences.is_empty() {
            return Err(Failure::Differs {
                there: settled,
                differences,
            });
        }
        // Normalization may hide what the API server would reject.
        match admitted {
            Ok(_) => Ok(true),
            Err(reason) => Err(Failure::Unfit {
                version: from.version.clone(),
                reason,
                object: back,
            }),
        }
    }

    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, Failure> {
        let converted = catch_unwind(AssertUnwindSafe(|| self.converter.convert(object, to)));
        let refused = |reason: String| Failure::Refused {
            from: from.to_owned(),
            to: to.to_owned(),
            reason,
        };
        match converted {
            Ok(converted) => converted.map_err(|error| refused(error.to_string())),
            Err(_) => Err(refused("it panicked".to_owned())),
        }
    }
}

fn report(found: &Counterexample<Failure>, from: &str, to: &str) -> String {
    if !found.repeats {
        return "a conversion of the same object had two different results".to_owned();
    }
    let (object, failure) = (&found.object, &found.failure);
    let mut said = format!("an object is not preserved from {from} to {to} and back: {failure}\n");
    // Neither formatting JSON nor writing to a `String` can fail.
    let _ = write!(said, "the simplest such object:\n{object:#}");
    if let Failure::Differs { there, .. } = failure {
        let _ = write!(said, "\nwhich becomes:\n{there:#}");
    }
    said
}

/// Why an object isn't preserved.
enum Failure {
    /// The schema accepts the object, but it can't be deserialized.
    Unread(String),
    /// A conversion returned an error or panicked.
    Refused {
        from: String,
        to: String,
        reason: String,
    },
    /// The schema of the other version rejects the converted object.
    Unfit {
        version: String,
        reason: String,
        object: Value,
    },
    /// The object was modified.
    Differs { there: Value, differences: Vec<String> },
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Unread(reason) => {
                write!(f, "its type cannot deserialize what its schema accepts: {reason}")
            }
            Failure::Refused { from, to, reason } => {
                write!(f, "it cannot be converted from {from} to {to}: {reason}")
            }
            Failure::Unfit {
                version,
                reason,
                object,
            } => write!(
                f,
                "the schema of {version} refuses the converted object: {reason}\n{object:#}"
            ),
            Failure::Differs { differences, .. } => {
                write!(f, "it has changed")?;
                for difference in differences.iter().take(SHOWN) {
                    write!(f, "\n  {difference}")?;
                }
                match differences.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
        }
    }
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                match (left.get(key), right.get(key)) {
                    (Some(before), Some(after)) => compare(&path, before, after, found),
                    (Some(before), None) => found.push(format!("{path}: {before} was lost")),
                    (None, after) => {
                        found.push(format!("{path}: {} was added", after.unwrap_or(&Value::Null)))
                    }
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (before, after)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}[{at}]"), before, after, found);
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push(format!("{path}: {before} became {after}")),
    }
}
