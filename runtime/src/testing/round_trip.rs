//! Whether conversions lose anything.

use std::fmt::{Display, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube::CustomResourceExt;
use serde::Serialize;
use serde_json::Value;

use super::{Counterexample, RandomObjects};
use crate::object::Object;
use crate::webhook::{AnyConverter, Converter};

/// Objects per direction unless said otherwise.
const CASES: u32 = 256;
/// How many differences are told.
const SHOWN: usize = 10;

/// Panics when a conversion between a hub and a spoke loses anything: [`RoundTrip`] with nothing said.
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
/// See [`RoundTrip::assert`].
#[track_caller]
pub fn assert_round_trip<K, V>()
where
    K: Object + Serialize + CustomResourceExt + TryFrom<V, Error: Display>,
    V: Object + Serialize + CustomResourceExt + TryFrom<K, Error: Display>,
{
    RoundTrip::<K, V>::new().assert();
}

/// A property of conversions between a hub `K` and a spoke `V`: whoever reads an object in the other version and writes
/// it back has changed nothing.
///
/// Objects at random that fit the schemas go from the hub to the spoke and back, and from the spoke to the hub and back,
/// as the [webhook](crate::Webhook::spoke) converts them, with defaults filled in on the way as the API server does for
/// whoever writes an object back. The seed is fixed, so that a failure can be seen again.
///
/// Where a conversion loses something on purpose, say so with [`normalize_hub`](Self::normalize_hub) and
/// [`normalize_spoke`](Self::normalize_spoke); where it refuses what a CEL rule or a validator refuses too, with
/// [`hub_when`](Self::hub_when) and [`spoke_when`](Self::spoke_when), or with values that fit.
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
#[must_use = "nothing is tried before `assert`"]
pub struct RoundTrip<K: Object, V: Object> {
    cases: u32,
    hub: Side<K>,
    spoke: Side<V>,
    converter: Converter<K>,
}

type Normalize<K> = Box<dyn Fn(&mut K)>;
type When<K> = Box<dyn Fn(&K) -> bool>;

/// What is known of one version.
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

    /// The object as far as it matters.
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
    /// All objects that fit the schemas, and nothing may be lost.
    ///
    /// # Panics
    /// When one of the kinds has no schema, or the two are not of one kind.
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

    /// How many objects are tried in each direction; 256 unless said otherwise.
    pub fn cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// Other objects than those of seed 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.hub.objects = self.hub.objects.seed(seed);
        self.spoke.objects = self.spoke.objects.seed(seed);
        self
    }

    /// Puts one of these values, and no others, where `path` leads in the hub; see [`RandomObjects::values`].
    pub fn hub_values<T: Into<Value>>(mut self, path: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.hub.objects = self.hub.objects.values(path, values);
        self
    }

    /// Puts one of these values, and no others, where `path` leads in the spoke; see [`RandomObjects::values`].
    pub fn spoke_values<T: Into<Value>>(mut self, path: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.spoke.objects = self.spoke.objects.values(path, values);
        self
    }

    /// Tries only hubs for which this holds: what rules and validators ask of them.
    pub fn hub_when(mut self, when: impl Fn(&K) -> bool + 'static) -> Self {
        self.hub.when = Some(Box::new(when));
        self
    }

    /// Tries only spokes for which this holds: what rules and validators ask of them.
    pub fn spoke_when(mut self, when: impl Fn(&V) -> bool + 'static) -> Self {
        self.spoke.when = Some(Box::new(when));
        self
    }

    /// Brings hubs that mean the same to one form before they are compared, and takes away what may be lost.
    pub fn normalize_hub(mut self, normalize: impl Fn(&mut K) + 'static) -> Self {
        self.hub.normalize = Some(Box::new(normalize));
        self
    }

    /// Brings spokes that mean the same to one form before they are compared, and takes away what may be lost.
    pub fn normalize_spoke(mut self, normalize: impl Fn(&mut V) + 'static) -> Self {
        self.spoke.normalize = Some(Box::new(normalize));
        self
    }

    /// Tries it.
    ///
    /// # Panics
    /// When an object does not come back as it was, is refused, or becomes one that the other version's schema
    /// refuses: with the simplest such object that was found, and where it differs. Also when no object can be made.
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
                "none of {cases} objects of {version} is one to be tried: give values that are, or a wider `…_when`"
            ));
        }
        Ok(())
    }

    /// One object there and back; whether it is one of those to be tried.
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
        let back = from.objects.admit(back.clone()).unwrap_or(back);
        let before = from.normal(object).map_err(Failure::Unread)?;
        let after = from.normal(&back).map_err(Failure::Unread)?;
        let mut differences = Vec::new();
        compare("", &before, &after, &mut differences);
        if differences.is_empty() {
            return Ok(true);
        }
        Err(Failure::Differs {
            there: settled,
            differences,
        })
    }

    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, Failure> {
        let converted = catch_unwind(AssertUnwindSafe(|| self.converter.convert(object, to)));
        let refused = |reason: String| Failure::Refused {
            from: from.to_owned(),
            to: to.to_owned(),
            reason,
        };
        match converted {
            Ok(converted) => converted.map_err(refused),
            Err(_) => Err(refused("it panicked".to_owned())),
        }
    }
}

fn report(found: &Counterexample<Failure>, from: &str, to: &str) -> String {
    if !found.repeats {
        return "a conversion does not give the same result twice".to_owned();
    }
    let (object, failure) = (&found.object, &found.failure);
    let mut said = format!("an object does not survive the way from {from} to {to} and back: {failure}\n");
    // Writing into a text cannot fail, and neither can printing JSON.
    let _ = write!(said, "the simplest one found:\n{object:#}");
    if let Failure::Differs { there, .. } = failure {
        let _ = write!(said, "\nwhich becomes:\n{there:#}");
    }
    said
}

/// Why an object does not survive.
enum Failure {
    /// Its type does not read what its schema accepts.
    Unread(String),
    /// A conversion fails.
    Refused {
        from: String,
        to: String,
        reason: String,
    },
    /// The schema of the other version does not accept what it becomes.
    Unfit {
        version: String,
        reason: String,
        object: Value,
    },
    /// It does not come back as it was.
    Differs { there: Value, differences: Vec<String> },
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Unread(reason) => write!(f, "its type does not read what its schema accepts: {reason}"),
            Failure::Refused { from, to, reason } => {
                write!(f, "it cannot be converted from {from} to {to}: {reason}")
            }
            Failure::Unfit {
                version,
                reason,
                object,
            } => write!(
                f,
                "the schema of {version} refuses what it becomes: {reason}\n{object:#}"
            ),
            Failure::Differs { differences, .. } => {
                write!(f, "it comes back changed")?;
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

/// The places where two values differ, a line each.
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
                    (Some(before), None) => found.push(format!("{path}: {before} is lost")),
                    (None, after) => {
                        found.push(format!("{path}: {} has come", after.unwrap_or(&Value::Null)))
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
        (before, after) => found.push(format!("{path}: {before} has become {after}")),
    }
}
