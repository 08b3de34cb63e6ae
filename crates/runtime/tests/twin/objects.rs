//! Random objects on both sides: serde must decode what the schema accepts, and the schema must
//! accept what serde decodes and encodes again.
//!
//! The seed is fixed, so failures are reproducible. The two sides inherently differ in the fields
//! listed in [`EXCEPTIONS`].

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, Resource};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use rbuilder::testing::RandomObjects;
use rbuilder_schema::Schema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{generated, kinds, oracle};

#[path = "objects/form.rs"]
mod form;
#[path = "objects/values.rs"]
mod values;

use form::form;
use values::Limits;

const CASES: u32 = 100;

/// A kind, with its schema and its Rust type.
pub struct Kind {
    /// The name of its CRD.
    pub name: String,
    /// The `apiVersion` and `kind` of its objects.
    pub identity: Value,
    /// Describes an object without `apiVersion`, `kind` and `metadata`.
    pub schema: Schema,
    /// Generates valid objects, and evaluates possibly invalid ones like the API server does.
    pub objects: RandomObjects,
    /// Like `objects`, but for the schema without the constraints of markers.
    form: RandomObjects,
    /// Deserializes an object and serializes it again.
    pub round: fn(Value) -> Result<Value, String>,
}

/// Fields on which the two sides can't agree.
struct Exception {
    #[allow(dead_code)] // for readers of the table
    reason: &'static str,
    /// The plural of the CRD and the path, with `[]` for items and `{}` for values of a map.
    paths: &'static [&'static str],
    tried: Tried,
}

/// Values that the tests use for such a field.
enum Tried {
    /// One of these JSON values, or none.
    Values(&'static [&'static str]),
    /// May be absent, although the schema requires a value.
    Absence,
    /// Always this JSON value, because the schema allows the field to be absent but serde does not.
    Given(&'static str),
    /// Always present, although the schema doesn't require it.
    Presence,
}

#[rustfmt::skip] // paths are lists
const EXCEPTIONS: &[Exception] = &[
    Exception {
        reason: "a marker requires what the type lets be absent",
        paths: &[
            "presences.spec.explicitlyRequiredKubebuilder", "presences.spec.explicitlyRequiredKubernetes",
            "presences.spec.explicitlyRequiredK8s", "presences.spec.canBeNull", "markeds.spec.presence.mustBePresent",
            "absences.spec.optional.requiredElsewhere", "absences.spec.plain.requiredHere",
        ],
        tried: Tried::Absence,
    },
    Exception {
        reason: "serde leaves out what it cannot do without, which is a warning",
        paths: &["absences.spec.plain.skippedIf"],
        tried: Tried::Absence,
    },
    Exception {
        reason: "serde reads a variant that it cannot write, which is a warning",
        paths: &["absences.spec.variants"],
        tried: Tried::Values(&[r#""Both""#]),
    },
    Exception {
        reason: "variants with different contents share one schema, which takes them all",
        paths: &["shapes.spec.adjacent", "shapes.spec.maybeAdjacent", "shapes.spec.nested[]{}[]"],
        tried: Tried::Values(&[
            r#"{"t": "Flag", "c": true}"#, r#"{"t": "Struct", "c": {"name": "a"}}"#,
            r#"{"t": "Fields", "c": {"size": 1}}"#, r#"{"t": "Nothing"}"#,
        ]),
    },
    Exception {
        reason: "variants with different contents share one schema, which takes them all",
        paths: &["shapes.spec.boxedVariants"],
        tried: Tried::Values(&[
            r#"{"type": "Boxed", "value": {"name": "a"}}"#, r#"{"type": "Maybe", "value": null}"#,
            r#"{"type": "Map", "value": {"a": {}}}"#, r#"{"type": "Other"}"#,
            r#"{"type": "with-fields", "value": {"name": "a", "three-four": [2]}}"#,
        ]),
    },
    Exception {
        reason: "the default of a variant's field is filled in for every variant, and one that is an enum wants no other",
        paths: &["shapes.spec.internalAlternatives"],
        tried: Tried::Values(&[
            r#"{"sort": "Choice", "left": "a"}"#, r#"{"sort": "Choice", "right": "a"}"#,
            r#"{"sort": "Bounded", "fixed": "a"}"#, r#"{"sort": "Bounded", "fixed": "a", "weight": 9}"#,
        ]),
    },
    Exception {
        reason: "a marker bounds a value inside an alternative, which is part of the form",
        paths: &["shapes.spec.eitherNumber"],
        tried: Tried::Values(&["5", "50"]),
    },
    Exception {
        reason: "names and objects in one place have no schema but the names",
        paths: &["shapes.spec.mixed", "shapes.spec.maybeMixed"],
        tried: Tried::Values(&[r#""Nothing""#, r#""Neither""#, r#"{"Something": {"name": "a"}}"#, r#"{"Other": {"size": 1}}"#]),
    },
    Exception {
        reason: "a marker takes the schema away, and the form of the value with it",
        paths: &["opens.spec.schemaless", "opens.spec.schemalessObject"],
        tried: Tried::Values(&[r#"{"foo": "a", "bar": true}"#]),
    },
    Exception {
        reason: "a marker takes the schema away, and the form of the value with it",
        paths: &["markeds.spec.overrides.pod", "markeds.spec.overrides.maybePod"],
        tried: Tried::Values(&[r#"{"containers": []}"#]),
    },
    Exception {
        reason: "a marker takes the schema away, and the form of the value with it",
        paths: &["markeds.spec.overrides.tree"],
        tried: Tried::Values(&["[]", r#"[{"children": []}]"#]),
    },
    Exception {
        reason: "a marker puts another type in the place of a Value, which reads anything",
        paths: &["markeds.spec.overrides.looksLike"],
        tried: Tried::Given(r#"{"colour": "red", "beside": {"size": 1}}"#),
    },
    Exception {
        reason: "the API server has no format for times without an offset, or with the name of a zone",
        paths: &["leaves.spec.times.zoned"],
        tried: Tried::Values(&[r#""2024-02-29T23:59:59+01:00[+01:00]""#]),
    },
    Exception {
        reason: "the API server has no format for times without an offset, or with the name of a zone",
        paths: &["leaves.spec.times.date_time[]"],
        tried: Tried::Values(&[r#""2024-02-29T23:59:59""#]),
    },
    Exception {
        reason: "the API server has no format for times without an offset, or with the name of a zone",
        paths: &["leaves.spec.times.time"],
        tried: Tried::Values(&[r#""23:59:59""#]),
    },
    Exception {
        reason: "a RawExtension reads and writes any JSON; the API server keeps objects only",
        paths: &[
            "items.spec.resources[]", "opens.spec.embeddedResource", "opens.spec.xEmbeddedResource",
            "opens.spec.unprunedEmbeddedResource", "markeds.spec.overrides.object",
        ],
        tried: Tried::Values(&[r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}"#]),
    },
    Exception {
        reason: "a RawExtension reads and writes any JSON; the API server keeps objects only",
        paths: &["opens.spec.raw", "opens.spec.maybeRaw", "leaves.spec.kubernetes.raw"],
        tried: Tried::Values(&["{}", r#"{"a": {"b": [1]}}"#]),
    },
    Exception {
        reason: "the schema language has no word about the keys of a map",
        paths: &["leaves.spec.maps.numbers", "leaves.spec.maps.letters"],
        tried: Tried::Values(&["{}", r#"{"1": "a", "2": "b"}"#]),
    },
    Exception {
        reason: "a marker puts another type in the place of a Value, which reads anything",
        paths: &["markeds.spec.bounds.retyped", "markeds.spec.briefly.retyped"],
        tried: Tried::Given(r#""five""#),
    },
    Exception {
        reason: "a marker puts another type in the place of a Value, which reads anything",
        paths: &["markeds.spec.overrides.newtype"],
        tried: Tried::Values(&["[]", r#"["a", "b"]"#]),
    },
    Exception {
        reason: "two patterns at once, which the generator of values does not look for",
        paths: &["bounds.spec.twoPatterns"],
        tried: Tried::Values(&[r#""z""#, r#""abz""#]),
    },
    Exception {
        reason: "two factors at once, which the generator of values does not look for",
        paths: &["bounds.spec.twoFactors"],
        tried: Tried::Values(&["0", "6", "-12"]),
    },
];

impl Limits for Kind {
    fn is_limited(&self, path: &str) -> bool {
        matches!(
            exception(&self.name, path),
            Some(Tried::Values(_) | Tried::Given(_))
        )
    }

    fn is_present(&self, path: &str) -> bool {
        matches!(
            exception(&self.name, path),
            Some(Tried::Presence | Tried::Given(_))
        )
    }
}

fn exception(name: &str, path: &str) -> Option<&'static Tried> {
    let plural = name.split('.').next().unwrap_or_default();
    let is_it = |known: &&str| known.strip_prefix(plural) == Some(path);
    let mut exceptions = EXCEPTIONS.iter();
    let exception = exceptions.find(|exception| exception.paths.iter().any(is_it))?;
    Some(&exception.tried)
}

/// Generates objects that respect the exceptions.
fn limited(mut objects: RandomObjects, name: &str) -> RandomObjects {
    let plural = name.split('.').next().unwrap_or_default();
    for Exception { paths, tried, .. } in EXCEPTIONS {
        let paths = paths
            .iter()
            .filter_map(|path| path.strip_prefix(plural)?.strip_prefix('.'));
        for path in paths {
            let values = match tried {
                Tried::Values(values) => values,
                Tried::Given(value) => std::slice::from_ref(value),
                Tried::Presence | Tried::Absence => &[],
            };
            let read = |json: &&str| -> Value {
                serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
            };
            if !values.is_empty() {
                objects = objects.values(path, values.iter().map(read));
            }
            if matches!(tried, Tried::Presence | Tried::Given(_)) {
                objects = objects.always(path);
            }
        }
    }
    objects
}

fn kind<K>() -> Kind
where
    K: CustomResourceExt + Resource<DynamicType = ()> + DeserializeOwned + Serialize,
{
    static MANIFESTS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    let manifests = MANIFESTS.get_or_init(generated);
    let name = K::crd_name().to_owned();
    let mut crd: CustomResourceDefinition = serde_saphyr::from_str(&manifests[&name]).expect("YAML");
    let version = K::version(&());
    let objects = limited(RandomObjects::new(&crd, &version), &name);
    let versions = crd.spec.versions.iter_mut();
    let written = versions
        .filter(|written| written.name == *version)
        .find_map(|written| written.schema.as_mut()?.open_api_v3_schema.as_mut())
        .expect("the version");
    let mut schema: Schema = serde_json::to_value(&*written)
        .and_then(serde_json::from_value)
        .expect("a schema");
    for stanza in ["apiVersion", "kind", "metadata"] {
        schema.properties.remove(stanza);
    }
    let may_be_absent = |path: &str| matches!(exception(&name, path), Some(Tried::Absence));
    *written = serde_json::to_value(form(&schema, "", &may_be_absent))
        .and_then(serde_json::from_value)
        .expect("a schema");
    let form = RandomObjects::new(&crd, &version);
    Kind {
        name,
        identity: json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": "sample"},
        }),
        schema,
        objects,
        form,
        round: |object| {
            let object: K = serde_json::from_value(object).map_err(|error| error.to_string())?;
            serde_json::to_value(object).map_err(|error| error.to_string())
        },
    }
}

/// Returns the kinds of both corpora.
pub fn all() -> Vec<Kind> {
    use oracle::apis::{self, versions};
    vec![
        kind::<kinds::KeyedObject>(),
        kind::<kinds::Flat>(),
        kind::<kinds::Policy>(),
        kind::<kinds::docs::Documented>(),
        kind::<kinds::leaves::Leaf>(),
        kind::<kinds::markers::Marked>(),
        kind::<kinds::names::Naming>(),
        kind::<kinds::presence::Absence>(),
        kind::<kinds::shapes::Shape>(),
        kind::<kinds::shapes::roots::Sum>(),
        kind::<kinds::shapes::roots::Thin>(),
        kind::<kinds::shapes::roots::Open>(),
        kind::<apis::bounds::Bound>(),
        kind::<apis::collections::Collection>(),
        kind::<apis::docs::Doc>(),
        kind::<apis::enums::Enum>(),
        kind::<apis::items::Item>(),
        kind::<apis::kubernetes::Kubernetes>(),
        kind::<apis::named::Bare>(),
        kind::<apis::named::Full>(),
        kind::<apis::open::Open>(),
        kind::<apis::presence::Presence>(),
        kind::<apis::rules::Rule>(),
        kind::<apis::scalars::Scalar>(),
        kind::<apis::structs::Structure>(),
        kind::<apis::topology::Topology>(),
        kind::<apis::values::Value>(),
        kind::<versions::v1::VersionedResource>(),
    ]
}

/// Returns objects of a kind without type and metadata. Some of them are invalid. Every run returns
/// the same ones.
pub fn objects(kind: &Kind, count: u32) -> Vec<Value> {
    let strategy = values::spoils();
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    kind.objects
        .iter(count)
        .map(|object| {
            let mut object = without_identity(object);
            let spoils = strategy.new_tree(&mut runner).expect("places").current();
            values::spoil(&mut object, &kind.schema, "", &spoils, kind);
            object
        })
        .collect()
}

/// Adds type and metadata to an object.
pub fn whole(kind: &Kind, object: &Value) -> Value {
    let mut whole = kind.identity.clone();
    if let (Some(fields), Some(object)) = (whole.as_object_mut(), object.as_object()) {
        fields.extend(object.clone());
    }
    whole
}

fn without_identity(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    }
    object
}

#[test]
fn schema_and_serde_accept_the_same_objects() {
    // The first object for each reason.
    let mut wrong = BTreeMap::new();
    for kind in all() {
        let name = &kind.name;
        let mut good = None;
        let (mut accepted, mut read) = (0, 0);
        for object in objects(&kind, CASES) {
            let kept = kind.objects.admit(object.clone());
            if let Ok(kept) = kept {
                accepted += 1;
                match (kind.round)(whole(&kind, &kept)) {
                    Ok(_) => drop(good.get_or_insert(kept)),
                    Err(error) => {
                        let blamed = blamed(&kind, good.as_ref(), &kept);
                        wrong
                            .entry(format!("{name}: serde refuses: {error}"))
                            .or_insert(blamed);
                    }
                }
            }
            if let Ok(written) = (kind.round)(whole(&kind, &object)) {
                read += 1;
                let written = without_identity(written);
                if let Err(error) = kind.form.admit(written.clone()) {
                    wrong
                        .entry(format!("{name}: the schema refuses: {error}"))
                        .or_insert(written);
                }
            }
        }
        // The test only proves something if there are both valid and invalid objects.
        for (count, what) in [(accepted, "accepted"), (read, "read")] {
            if !(CASES / 8..CASES * 9 / 10).contains(&count) {
                wrong.insert(format!("{name}: {count} of {CASES} are {what}"), Value::Null);
            }
        }
    }
    let wrong: Vec<_> = wrong
        .iter()
        .map(|(reason, object)| format!("{reason}\n    {object}"))
        .collect();
    assert!(wrong.is_empty(), "{} reasons:\n{}", wrong.len(), wrong.join("\n"));
}

/// Tries the fields in a valid object one at a time to find the one that serde rejects. Falls back
/// to the whole object.
fn blamed(kind: &Kind, good: Option<&Value>, bad: &Value) -> Value {
    let fields = bad["spec"].as_object().into_iter().flatten();
    for (name, value) in fields {
        let Some(mut object) = good.cloned() else { break };
        object["spec"][name] = value.clone();
        if (kind.round)(whole(kind, &object)).is_err() {
            return json!({ name: value });
        }
    }
    bad.clone()
}
