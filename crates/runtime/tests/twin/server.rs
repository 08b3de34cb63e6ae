//! The manifests on a real API server, which must accept them without warnings and enforce them.

use std::time::Duration;

use http::Request;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::{Client, CustomResourceExt, Resource};
use rbuilder::envtest::{Environment, eventually};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::objects;
use super::recorded::recorded_rules;
use super::{compiled, files, generated, kinds};

/// Number of objects per kind to send to the server.
const SAMPLE: u32 = 16;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns the errors and warnings of the API server for a CRD.
pub(super) async fn post(client: &Client, crd: &Value, query: &str) -> Vec<String> {
    let name = &crd["metadata"]["name"];
    let request = Request::post(format!("{CRDS}{query}"))
        .header("content-type", "application/json")
        .body(serde_json::to_vec(crd).expect("JSON").into())
        .expect("a request");
    let response = client.send(request).await.expect("an answer");
    let status = response.status();
    let warnings: Vec<String> = response
        .headers()
        .get_all("warning")
        .iter()
        .map(|warning| format!("{name}: {}", warning.to_str().unwrap_or_default()))
        .collect();
    if status.is_success() {
        return warnings;
    }
    let body = response.into_body().collect_bytes().await.expect("a body");
    vec![format!("{name}: {status} {}", String::from_utf8_lossy(&body))]
}

/// A kind with a valid object, which is made invalid in one field at a time.
struct Sample {
    objects: Api<DynamicObject>,
    right: Value,
}

impl Sample {
    /// Converts `right` to the Rust type and back, so that the server receives serde's output.
    async fn new<K>(env: &Environment, right: Value) -> Sample
    where
        K: CustomResourceExt + Resource<DynamicType = ()> + DeserializeOwned + Serialize,
    {
        let resource = ApiResource::erase::<K>(&());
        let mut object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "sample"},
        });
        object
            .as_object_mut()
            .expect("a map")
            .extend(right.as_object().expect("a map").clone());
        let typed: K = serde_json::from_value(object).expect("the sample fits the Rust type");
        let right = serde_json::to_value(typed).expect("JSON");
        let objects = match K::crd().spec.scope.as_str() {
            "Namespaced" => Api::namespaced_with(env.client(), "default", &resource),
            _ => Api::all_with(env.client(), &resource),
        };
        let sample = Sample { objects, right };
        eventually(Duration::from_secs(20), || async {
            sample.create(&sample.right).await
        })
        .await;
        sample
    }

    async fn create(&self, object: &Value) -> Result<(), kube::Error> {
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let object = serde_json::from_value(object.clone()).expect("an object");
        self.objects.create(&dry_run, &object).await.map(drop)
    }

    /// Sets or removes one field, and sends the object to the server.
    async fn check(&self, place: &str, value: Option<Value>, accepted: bool) {
        let (parent, name) = place.rsplit_once('/').expect("a JSON pointer");
        let mut object = self.right.clone();
        let fields = object
            .pointer_mut(parent)
            .and_then(Value::as_object_mut)
            .expect("the parent");
        match value.clone() {
            Some(value) => fields.insert(name.to_owned(), value),
            None => fields.remove(name),
        };
        let answer = self.create(&object).await;
        assert_eq!(answer.is_ok(), accepted, "{place} = {value:?}: {answer:?}");
    }
}

#[rbuilder::envtest::test]
async fn server_accepts_every_kind_without_warnings(env: Environment) {
    let mut said = Vec::new();
    for crd in compiled().values() {
        let crd = serde_json::to_value(crd).expect("JSON");
        said.extend(post(&env.client(), &crd, "?dryRun=All").await);
    }
    // Use a dry run, since goldens may share names.
    for (file, manifest) in golden() {
        let crd: Value = serde_saphyr::from_str(&manifest).expect("YAML");
        let answers = post(&env.client(), &crd, "?dryRun=All").await;
        said.extend(answers.into_iter().map(|answer| format!("{file}: {answer}")));
    }
    for manifest in generated().values() {
        let crd: Value = serde_saphyr::from_str(manifest).expect("YAML");
        said.extend(post(&env.client(), &crd, "").await);
    }
    assert!(said.is_empty(), "{}", said.join("\n"));
    objects_are_held_to_the_manifests(&env).await;
    the_server_decides_as_the_schema(&env).await;
}

/// The API server and the schema crate must accept and reject the same random objects.
async fn the_server_decides_as_the_schema(env: &Environment) {
    let manifests = generated();
    let mut wrong = Vec::new();
    for kind in objects::all() {
        let collection = collection(env, &kind, &manifests[&kind.name]).await;
        // Only the server evaluates CEL rules and checks the replicas of a scale.
        let manifest = &manifests[&kind.name];
        let has_more = ["x-kubernetes-validations", "specReplicasPath"]
            .iter()
            .any(|word| manifest.contains(word));
        for mut object in objects::objects(&kind, SAMPLE) {
            // The server drops the status, even if it's invalid.
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
            let expected = kind.objects.admit(object.clone());
            let answer = create(&env.client(), &collection, &objects::whole(&kind, &object)).await;
            if expected.is_ok() != answer.is_ok() && !(has_more && expected.is_ok()) {
                wrong.push(format!(
                    "{}: {object}\n    schema: {expected:?}\n    server: {answer:?}",
                    kind.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} times:\n{}", wrong.len(), wrong.join("\n"));
}

/// Waits until the server serves a kind, and returns the URL of its objects.
async fn collection(env: &Environment, kind: &objects::Kind, manifest: &str) -> String {
    let (plural, _) = kind.name.split_once('.').expect("plural and group");
    let version = kind.identity["apiVersion"].as_str().expect("a version");
    let crd: Value = serde_saphyr::from_str(manifest).expect("YAML");
    let namespace = match crd["spec"]["scope"].as_str() {
        Some("Namespaced") => "namespaces/default/",
        _ => "",
    };
    let url = format!("/apis/{version}/{namespace}{plural}");
    eventually(Duration::from_secs(20), || async {
        let request = Request::get(&url).body(Vec::new()).expect("a request");
        env.client().request::<Value>(request).await.map(drop)
    })
    .await;
    url
}

/// Tries to create an object. If the server rejects it, returns the reason.
pub(super) async fn create(client: &Client, url: &str, object: &Value) -> Result<(), String> {
    let request = Request::post(format!("{url}?dryRun=All"))
        .header("content-type", "application/json")
        .body(serde_json::to_vec(object).expect("JSON"))
        .expect("a request");
    match client.request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(refusal)) if [400, 422].contains(&refusal.code) => Err(refusal.message.clone()),
        Err(error) => panic!("{url}: {error}"),
    }
}

/// Compares the recorded verdicts on CEL rules with this server.
#[rbuilder::envtest::test]
async fn recorded_rule_verdicts_match_the_server(env: Environment) {
    let mut wrong = Vec::new();
    let mut counts = [0; 2];
    for (rule, schema) in recorded_rules() {
        let cost = rule
            .cost
            .unwrap_or_default()
            .saturating_mul(rule.times.unwrap_or(1));
        let accepted = rule.error.is_none() && cost <= 10_000_000;
        let said = post(&env.client(), &ruled(schema), "?dryRun=All").await;
        counts[usize::from(accepted)] += 1;
        if said.is_empty() != accepted {
            wrong.push(format!("{} {}: {said:?}", rule.path, rule.rule));
        }
    }
    assert!(
        counts.iter().all(|count| *count > 30),
        "the rules are missing: {counts:?}"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn ruled(schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ruleds.cel.example.com"},
        "spec": {
            "group": "cel.example.com", "scope": "Namespaced",
            "names": {"kind": "Ruled", "plural": "ruleds"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Returns the committed manifests of the generator's cases and of an example.
fn golden() -> impl Iterator<Item = (String, String)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let below = |folder: &str| files::below(&format!("{root}/{folder}"), &["yaml"]);
    let cases = below("crates/generator/tests/cases").into_iter();
    let cases = cases.filter(|(path, _)| path.contains("/out/crd/"));
    let projects = below("examples/memcached-operator/config/crd/bases");
    let golden: Vec<_> = cases.chain(projects).collect();
    assert!(golden.len() > 10, "the goldens are missing");
    golden.into_iter()
}

async fn objects_are_held_to_the_manifests(env: &Environment) {
    marked(env).await;
    shaped(env).await;
    formed(env).await;
    rooted(env).await;
}

async fn marked(env: &Environment) {
    let sample = Sample::new::<kinds::markers::Marked>(
        env,
        json!({"spec": {
            "bounds": {
                "exclusive": 4, "fours": 8, "fraction": 0.75, "word": "ab1", "chosen": "x", "counted": 2,
                "few": [1], "some": {"a": "b"}, "retyped": "five", "deep": [["a"], ["b", "c"]], "keyed": {"a": 10},
            },
            "rules": {"low": 1, "high": 2, "firstChoice": "a", "rising": 1, "notX": "a", "notZ": "a", "positive": [1]},
            "lists": {
                "ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}], "tags": ["a"], "whole": [],
                "labels": {}, "annotations": {}, "part": {"a": 1}, "whole_part": {"a": 1},
            },
            "presence": {"mayBeAbsent": 1, "mustBePresent": 1, "fixed": "a", "holes": [1, null]},
            "values": {
                "negative": 1, "fraction": 1.0, "boolean": false, "text": "a", "list": [], "map": {},
                "object": {"name": "a", "port": 1}, "with_default": {"a": 1},
            },
            "overrides": {
                "keptMetadata": {"labels": {"a": "b"}}, "briefly": {"a": 1},
                "droppedMetadata": {}, "droppedWithin": {"metadata": {}},
                "keptWithin": {"metadata": {"labels": {"a": "b"}}},
                "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}},
                "loose": {"a": 1}, "numberOrText": "a", "pod": {"containers": []},
                "looksLike": {"colour": "red", "beside": {"size": 1}}, "asNumber": 1, "newtype": ["a"], "tree": [],
                "parts": [{"a": 1}], "shade": ["#00ff00"],
            },
            "small": 2, "letter": "b",
            "template": {"metadata": {"labels": {"a": "b"}}, "meta": {}},
            "briefly": {
                "exclusive": 4, "fours": 8, "fraction": 0.75, "word": "ab1", "chosen": "x", "counted": 2,
                "few": [1], "some": {"a": "b"}, "retyped": "five", "deep": [["a"], ["b", "c"]], "keyed": {"a": 10},
            },
            "nested": {
                "matrix": [["a", "b"]], "tree": {"k": {"a": ["x"]}}, "hosts": ["ab"], "aliased": ["x"], "bounded": 6,
                "list": [],
            },
            "choice": {"firstOne": "a", "namespace": "n"},
        }}),
    )
    .await;
    for (place, value, accepted) in [
        ("/spec/bounds/exclusive", Some(json!(5)), false),
        ("/spec/bounds/exclusive", Some(json!(-4)), true),
        ("/spec/bounds/fours", Some(json!(6)), false),
        ("/spec/bounds/word", Some(json!("ab12")), false),
        ("/spec/bounds/chosen", Some(json!("z")), false),
        ("/spec/bounds/deep", Some(json!([["a", "b", "c"]])), false),
        ("/spec/bounds/deep", Some(json!([[""]])), false),
        ("/spec/bounds/keyed", Some(json!({"c": 1})), false),
        ("/spec/bounds/keyed", Some(json!({"b": 11})), false),
        ("/spec/overrides/shade", Some(json!(["#green"])), false),
        ("/spec/overrides/ports", Some(json!([0])), false),
        ("/spec/overrides/parts", Some(json!([])), false),
        ("/spec/nested/matrix", Some(json!([["a", "a"]])), false),
        ("/spec/nested/tree", Some(json!({"k": {"letters": ["x"]}})), false),
        ("/spec/nested/tree", Some(json!({"k": {"x": ["x"]}})), false),
        ("/spec/nested/hosts", Some(json!(["letters"])), false),
        ("/spec/nested/hosts", Some(json!(["a"])), false),
        ("/spec/nested/bounded", Some(json!(4)), false),
        ("/spec/choice/second", Some(json!("b")), false),
        ("/spec/choice/if", Some(json!("b")), false),
        ("/spec/rules/low", Some(json!(3)), false),
        ("/spec/rules/secondChoice", Some(json!("b")), false),
        ("/spec/rules/in", Some(json!(true)), false),
        ("/spec/rules/firstChoice", None, false),
        ("/spec/rules/notX", Some(json!("y")), false),
        ("/spec/rules/notZ", Some(json!("z")), false),
        ("/spec/rules/positive", Some(json!([0])), false),
        ("/spec/rules/rising", Some(json!(-1)), false),
        (
            "/spec/lists/ports",
            Some(json!([{"name": "a"}, {"name": "a", "port": 80}])),
            false,
        ),
        ("/spec/lists/tags", Some(json!(["a", "a"])), false),
        ("/spec/presence/mayBeAbsent", None, true),
        ("/spec/presence/mustBePresent", None, false),
        ("/spec/presence/mayBeNull", Some(json!(null)), true),
        ("/spec/values", Some(json!({"with_default": {"a": 1}})), true),
        ("/spec/overrides/object/kind", None, false),
        ("/spec/overrides/numberOrText", Some(json!(7)), true),
        ("/spec/overrides/numberOrText", Some(json!(true)), false),
        ("/spec/small", Some(json!(1)), false),
        ("/spec/small", Some(json!(251)), false),
        ("/spec/letter", Some(json!("a")), false),
    ] {
        sample.check(place, value, accepted).await;
    }
}

async fn shaped(env: &Environment) {
    let carried = json!({"name": "a"});
    let sample = Sample::new::<kinds::shapes::Shape>(
        env,
        json!({"spec": {
            "plain": "On", "single": "Only", "external": {"Fields": {"x": true}}, "onlyOne": {"Struct": carried},
            "mixed": "Nothing", "internal": {"kind": "git", "url": "u"}, "internalUnits": {"mode": "Fast"},
            "internalAlternatives": {"sort": "Choice", "left": "l"}, "adjacent": {"t": "Flag", "c": true},
            "adjacentUnits": {"t": "First"}, "untagged": {"width": 1}, "either": 1, "eitherNumber": 1,
            "eitherText": "x-a", "open": true, "lists": [{"Number": 3}], "maps": {"a": {"kind": "nothing"}},
            "byPlain": {"On": carried}, "nested": [{"a": [{"t": "Nothing"}]}], "generic": {"Many": ["On"]},
            "empty": {}, "boxedVariants": {"type": "with-fields", "value": {"name": "a", "three-four": [2]}},
            "listsOrMaps": [1], "counters": 1.5, "deepNewtype": ["On"], "newtypeOfOption": 1,
            "hoist": "Up", "crane": "c", "rope": 1, "byMotor": {"volts": 1.5},
        }}),
    )
    .await;
    for (place, value, accepted) in [
        ("/spec/plain", Some(json!("Maybe")), false),
        ("/spec/external", Some(json!({"Number": 7})), true),
        ("/spec/external", Some(json!({"Number": 8})), false),
        ("/spec/external", Some(json!({"Number": 3, "List": []})), false),
        ("/spec/onlyOne", Some(json!({})), false),
        ("/spec/mixed", Some(json!({"Other": {"size": 1}})), true),
        ("/spec/mixed", Some(json!("Other")), false),
        (
            "/spec/internal",
            Some(json!({"kind": "struct", "name": "a"})),
            true,
        ),
        (
            "/spec/internal",
            Some(json!({"kind": "struct", "url": "u"})),
            false,
        ),
        (
            "/spec/internalAlternatives",
            Some(json!({"sort": "Choice", "left": "l", "right": "r"})),
            false,
        ),
        (
            "/spec/internalAlternatives",
            Some(json!({"sort": "External", "Alpha": {"alpha": 1}})),
            true,
        ),
        (
            "/spec/internalAlternatives",
            Some(json!({"sort": "External"})),
            false,
        ),
        (
            "/spec/adjacent",
            Some(json!({"t": "Fields", "c": {"size": 1}})),
            true,
        ),
        ("/spec/adjacent", Some(json!({"t": "None"})), false),
        ("/spec/untagged", Some(json!({"note": "a"})), false),
        ("/spec/eitherNumber", Some(json!(20)), false),
        ("/spec/eitherText", Some(json!("Off")), true),
        ("/spec/eitherText", Some(json!("other")), false),
        ("/spec/byPlain", Some(json!({"On": {}})), false),
        ("/spec/hoist", Some(json!("Sideways")), false),
        ("/spec/crane", None, false),
        ("/spec/rope", None, false),
        ("/spec/byMotor", None, false),
        ("/spec/byHand", Some(carried), false),
    ] {
        sample.check(place, value, accepted).await;
    }
}

async fn formed(env: &Environment) {
    let ruled = |low: i32| json!({"low": low, "high": 5});
    let sample = Sample::new::<kinds::forms::Form>(
        env,
        json!({"spec": {
            "adjacentObjects": {"t": "Second", "c": ruled(1)}, "adjacentTexts": {"t": "Short", "c": "abc"},
            "openTag": {"kind": "Known", "low": 1, "high": 5}, "openNames": "Known", "openMixed": {"Known": {"size": 1}},
            "partlyTagged": "low", "fixedOrAuto": "Auto", "oneOrNamed": {"Left": {"x": 1}}, "taggedStruct": {"size": 1},
            "held": null, "nestedNulls": [{"a": null}, null], "nullSet": [null, "a"], "byColour": {"Red": true},
            "byBoolean": {"true": 1}, "notZero": 1, "stated": "12", "byHand": "3", "byHandAs": ["4"], "computed": 1,
            "joined": true,
        }}),
    )
    .await;
    for (place, value, accepted) in [
        (
            "/spec/adjacentObjects",
            Some(json!({"t": "Second", "c": ruled(9)})),
            false,
        ),
        (
            "/spec/adjacentObjects",
            Some(json!({"t": "Second", "c": {"low": 1}})),
            false,
        ),
        (
            "/spec/adjacentObjects",
            Some(json!({"t": "Maybe", "c": ruled(9)})),
            false,
        ),
        ("/spec/adjacentObjects", Some(json!({"t": "Maybe"})), true),
        (
            "/spec/adjacentObjects",
            Some(json!({"t": "First", "c": {"x": true, "shared": 1}})),
            true,
        ),
        ("/spec/adjacentObjects", Some(json!({"t": "First"})), false),
        (
            "/spec/adjacentTexts",
            Some(json!({"t": "Short", "c": "abcd"})),
            false,
        ),
        (
            "/spec/adjacentTexts",
            Some(json!({"t": "Marked", "c": "xabcd"})),
            true,
        ),
        ("/spec/openTag", Some(json!({"kind": "Later"})), true),
        ("/spec/openTag", Some(json!({"kind": "Known"})), false),
        (
            "/spec/openTag",
            Some(json!({"kind": "Known", "low": 9, "high": 5})),
            false,
        ),
        ("/spec/openNames", Some(json!("Later")), true),
        ("/spec/openMixed", Some(json!("Later")), true),
        ("/spec/openMixed", Some(json!(true)), false),
        ("/spec/partlyTagged", Some(json!("x-own")), true),
        ("/spec/partlyTagged", Some(json!("own")), false),
        ("/spec/fixedOrAuto", Some(json!(65535)), true),
        ("/spec/fixedOrAuto", Some(json!(65536)), false),
        ("/spec/fixedOrAuto", Some(json!("Never")), false),
        ("/spec/oneOrNamed", Some(json!({"one": 1})), true),
        (
            "/spec/oneOrNamed",
            Some(json!({"Left": {"x": 1}, "Right": {"y": 1}})),
            false,
        ),
        (
            "/spec/taggedStruct",
            Some(json!({"size": 1, "type": "Large"})),
            false,
        ),
        ("/spec/held", None, false),
        ("/spec/stated", Some(json!(1)), false),
        ("/spec/byHand", Some(json!({"inner": "a"})), false),
        ("/spec/computed", Some(json!(-17)), false),
    ] {
        sample.check(place, value, accepted).await;
    }
}

async fn rooted(env: &Environment) {
    let sample = Sample::new::<kinds::shapes::roots::Open>(
        env,
        json!({"spare": "a", "choice": {"left": "l"}, "external": {"List": []}}),
    )
    .await;
    for (place, value, accepted) in [
        ("/spare", Some(json!("none")), false),
        ("/other", Some(json!("On")), false),
        ("/choice", None, false),
    ] {
        sample.check(place, value, accepted).await;
    }
    let sample =
        Sample::new::<kinds::shapes::roots::Sum>(env, json!({"spec": {"firstCase": {"size": 1}}})).await;
    for (value, accepted) in [
        (json!({"secondCase": {"name": "a"}}), true),
        (json!({}), false),
        (
            json!({"firstCase": {"size": 1}, "secondCase": {"name": "a"}}),
            false,
        ),
    ] {
        sample.check("/spec", Some(value), accepted).await;
    }
}
