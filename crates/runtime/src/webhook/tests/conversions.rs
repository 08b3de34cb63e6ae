//! Tests of conversions between versions.

use super::*;
use kube::CustomResource;
use serde::Deserialize;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "batch.example.com",
    version = "v1",
    kind = "Job",
    namespaced,
    schema = "disabled"
)]
struct JobSpec {
    schedule: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<kube::core::Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<kube::core::Duration>,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(
        group = "batch.example.com",
        version = "v2",
        kind = "Job",
        namespaced,
        schema = "disabled"
    )]
    pub(super) struct JobSpec {
        pub(super) fields: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) every: Option<kube::core::Duration>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) limit: Option<String>,
    }
}

impl TryFrom<v2::Job> for Job {
    type Error = String;

    fn try_from(job: v2::Job) -> Result<Self, String> {
        if job.spec.fields.len() != 5 {
            return Err(format!("spec.fields: wanted five, got {}", job.spec.fields.len()));
        }
        let schedule = job.spec.fields.join(" ");
        Ok(Job {
            metadata: job.metadata,
            spec: JobSpec {
                schedule,
                every: job.spec.every,
                limit: job
                    .spec
                    .limit
                    .map(|limit| limit.parse())
                    .transpose()
                    .map_err(|_| "no limit")?,
            },
        })
    }
}

impl From<Job> for v2::Job {
    fn from(job: Job) -> Self {
        assert_ne!(job.spec.schedule, "panic", "as asked");
        let fields = job.spec.schedule.split(' ').map(str::to_owned).collect();
        let spec = v2::JobSpec {
            fields,
            every: job.spec.every,
            limit: job.spec.limit.map(|limit| limit.to_string()),
        };
        let mut made = v2::Job::new("forgotten", spec);
        made.metadata.annotations = Some([("made".to_owned(), "yes".to_owned())].into());
        made
    }
}

async fn served() -> Served {
    webhook(Webhook::<Job>::new().spoke::<v2::Job>()).await
}

fn old(schedule: &str) -> Value {
    json!({
        "apiVersion": "batch.example.com/v1", "kind": "Job",
        "metadata": { "name": "a", "uid": "7", "labels": { "kept": "yes" } },
        "spec": { "schedule": schedule },
    })
}

async fn convert(served: &Served, to: &str, objects: Value) -> Value {
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "1", "desiredAPIVersion": format!("batch.example.com/{to}"), "objects": objects },
    });
    let (status, answer) = served.post("/convert", &body).await;
    assert_eq!(status, 200, "{answer}");
    let mut answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["response"]["uid"], "1");
    answer["response"].take()
}

#[tokio::test]
async fn objects_are_converted_in_both_directions_and_keep_their_metadata() {
    let served = served().await;
    let there = convert(&served, "v2", json!([old("1 2 3 4 5"), old("a b c d e")])).await;
    assert_eq!(there["result"]["status"], "Success");
    let converted = &there["convertedObjects"];
    assert_eq!(
        converted[0],
        json!({
            "apiVersion": "batch.example.com/v2", "kind": "Job",
            "metadata": {
                "name": "a", "uid": "7", "labels": { "kept": "yes" }, "annotations": { "made": "yes" },
            },
            "spec": { "fields": ["1", "2", "3", "4", "5"] },
        })
    );
    assert_eq!(converted[1]["spec"]["fields"][4], "e");
    let back = convert(&served, "v1", converted.clone()).await;
    assert_eq!(
        back["convertedObjects"][0]["spec"],
        json!({ "schedule": "1 2 3 4 5" })
    );
    assert_eq!(back["convertedObjects"][0]["metadata"], converted[0]["metadata"]);
    let same = convert(&served, "v1", json!([old("x")])).await;
    assert_eq!(same["convertedObjects"][0], old("x"));
}

#[tokio::test]
async fn unconverted_value_keeps_its_notation() {
    let served = served().await;
    let mut object = old("1 2 3 4 5");
    object["spec"]["every"] = "24h".into();
    // This is a string in the other version, so its notation must not change.
    object["spec"]["limit"] = "1h".into();
    let there = convert(&served, "v2", json!([object])).await;
    let converted = &there["convertedObjects"];
    assert_eq!(converted[0]["spec"]["every"], "24h", "{there}");
    assert_eq!(converted[0]["spec"]["limit"], "3600s");
    let back = convert(&served, "v1", converted.clone()).await;
    assert_eq!(back["convertedObjects"][0]["spec"]["every"], "24h");
}

/// Unlike an AdmissionReview with one or two objects, a ConversionReview contains an entire list.
#[tokio::test]
async fn conversion_reviews_may_exceed_the_admission_limit() {
    let served = served().await;
    let mut large = old("1 2 3 4 5");
    large["metadata"]["annotations"] = json!({ "note": "x".repeat(1024 * 1024) });
    let converted = convert(&served, "v2", vec![large; 9].into()).await;
    assert_eq!(converted["convertedObjects"].as_array().unwrap().len(), 9);
}

#[tokio::test]
async fn conversion_reviews_have_their_own_size_limit() {
    const MEBIBYTE: usize = 1024 * 1024;
    let served = served().await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head =
        "POST /convert HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let length = 256 * MEBIBYTE + 1;
    let head = format!("{head}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn results_are_counted() {
    let served = served().await;
    let count = |result: &str, count: u32| {
        let line = format!("rbuilder_conversion_reviews_total{{result=\"{result}\"}} {count}");
        assert!(served.count(&line), "{}", served.metrics.text());
    };
    count("success", 0);
    count("failure", 0);
    convert(&served, "v2", json!([old("1 2 3 4 5")])).await;
    convert(&served, "v3", json!([old("1 2 3 4 5")])).await;
    convert(&served, "v3", json!([old("1 2 3 4 5")])).await;
    count("success", 1);
    count("failure", 2);
    let requests = "controller_runtime_webhook_requests_total{code=\"200\",webhook=\"/convert\"} 3";
    assert!(served.count(requests), "{}", served.metrics.text());
}

/// White space or a different order of fields must not lose objects.
#[tokio::test]
async fn field_order_and_white_space_do_not_matter() {
    let served = served().await;
    let objects = [old("1 2 3 4 5"), old("a b c d e")].map(|object| format!("{object:#}"));
    let objects = objects.join("\n , ");
    let body = format!(
        "{{\"request\":{{\"objects\":[\n{objects}\n],\"desiredAPIVersion\":\"batch.example.com/v2\",\"uid\":\"1\"}},\
         \"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\"}}"
    );
    let head = "POST /convert HTTP/1.1\r\nContent-Type: application/json";
    let (status, answer) = served.send(head, body.as_bytes()).await;
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let converted = &answer["response"]["convertedObjects"];
    assert_eq!(converted.as_array().unwrap().len(), 2);
    assert_eq!(converted[1]["spec"]["fields"][0], "a");
}

#[tokio::test]
async fn requests_that_are_not_conversion_reviews_are_rejected() {
    let served = served().await;
    let check = async |body: Value, expected: &str| {
        let (status, answer) = served.post("/convert", &body).await;
        assert_eq!((status, answer.trim_end()), (400, expected));
    };
    let review = |request: Value| json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request });
    check(
        json!({ "kind": "Pod", "apiVersion": "v1" }),
        "expected a ConversionReview of apiextensions.k8s.io/v1, found \"Pod\" of \"v1\"",
    )
    .await;
    let invalid = "invalid `request` in the ConversionReview: ";
    let missing = format!("{invalid}missing field `uid` at line 1 column 2");
    check(review(json!({})), &missing).await;
    let request = json!({ "uid": "1", "desiredAPIVersion": "batch.example.com/v2", "objects": {} });
    check(review(request), &format!("{invalid}`objects` is not a list")).await;
}

async fn convert_typo(metadata: Value) -> Value {
    let object = json!({
        "apiVersion": "batch.example.com/v1", "kind": "Job", "metadata": metadata, "spec": { "schedule": 5 },
    });
    convert(&served().await, "v2", json!([object])).await
}

/// Objects have a UID but no resource version when they're read from or written to storage.
#[tokio::test]
async fn undecodable_stored_object_fails_the_review_and_names_the_field() {
    let answer = convert_typo(json!({ "name": "a", "namespace": "b", "uid": "1" })).await;
    let message = "failed to convert Job b/a from batch.example.com/v1 to batch.example.com/v2: .spec.schedule: invalid \
                   type: integer `5`, expected a string";
    assert_eq!(
        answer["result"],
        json!({ "status": "Failure", "message": message })
    );
}

#[tokio::test]
async fn undecodable_admitted_object_is_returned_as_written() {
    let served = served().await;
    for metadata in [
        json!({ "name": "a" }),
        json!({ "name": "a", "uid": "1", "resourceVersion": "7", "annotations": { "b": "c" } }),
    ] {
        let answer = convert_typo(metadata.clone()).await;
        assert_eq!(answer["result"]["status"], "Success");
        let marked = &answer["convertedObjects"][0];
        let mark = "batch.example.com/v1 .spec.schedule: invalid type: integer `5`, expected a string";
        assert_eq!(marked["apiVersion"], "batch.example.com/v2");
        assert_eq!(marked["metadata"]["annotations"]["rbuilder/unconverted"], mark);
        assert_eq!(marked["spec"], json!({ "schedule": 5 }));

        // The API server converts the object back if another webhook adds a label.
        let mut patched = marked.clone();
        patched["metadata"]["labels"] = json!({ "patched": "yes" });
        let back = convert(&served, "v1", json!([patched])).await;
        let mut expected = metadata;
        expected["labels"] = json!({ "patched": "yes" });
        let restored = &back["convertedObjects"][0];
        assert_eq!(restored["metadata"], expected);
        assert_eq!(
            (&restored["apiVersion"], &restored["spec"]),
            (&json!("batch.example.com/v1"), &json!({ "schedule": 5 }))
        );
    }
}

/// Otherwise, clients could use the annotation to store an object of a different version.
#[tokio::test]
async fn clients_cannot_skip_conversion_with_the_annotation() {
    let served = served().await;
    let mut object = old("1 2 3 4 5");
    object["metadata"]["annotations"] = json!({ "rbuilder/unconverted": "batch.example.com/v2 .spec: so" });
    let stored = convert(&served, "v2", json!([object])).await;
    assert_eq!(stored["convertedObjects"][0]["spec"]["fields"][4], "5");
    object["metadata"].as_object_mut().unwrap().remove("uid");
    let refused = convert(&served, "v2", json!([object])).await;
    let message = refused["result"]["message"].as_str().unwrap();
    assert!(
        message.contains("the annotation rbuilder/unconverted is set"),
        "{message}"
    );
}

#[tokio::test]
async fn unconvertible_object_fails_the_review_and_is_named() {
    let served = served().await;
    let check = async |to: &str, object: Value, message: &str| {
        let answer = convert(&served, to, json!([object])).await;
        assert_eq!(
            answer["result"],
            json!({ "status": "Failure", "message": message })
        );
        assert_eq!(answer["convertedObjects"], Value::Null);
    };
    let mut short = old("");
    short["apiVersion"] = "batch.example.com/v2".into();
    short["spec"] = json!({ "fields": ["1"] });
    check(
        "v1",
        short,
        "failed to convert Job a from batch.example.com/v2 to batch.example.com/v1: \
         spec.fields: wanted five, got 1",
    )
    .await;
    check(
        "v3",
        old(""),
        "failed to convert Job a from batch.example.com/v1 to batch.example.com/v3: unknown version \
         `batch.example.com/v3`, expected one of batch.example.com/v1, batch.example.com/v2",
    )
    .await;
    let mut other = old("");
    other["kind"] = "Task".into();
    check(
        "v2",
        other,
        "no conversion registered for `Task` of `batch.example.com/v1`",
    )
    .await;
}

#[tokio::test]
async fn panic_is_counted_as_a_conversion_panic() {
    let served = served().await;
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "1", "desiredAPIVersion": "batch.example.com/v2", "objects": [old("panic")] },
    });
    assert_eq!(served.post("/convert", &body).await.0, 500);
    assert!(served.count("controller_runtime_conversion_webhook_panics_total 1"));
}

impl TryFrom<Secret> for Job {
    type Error = String;
    fn try_from(_: Secret) -> Result<Self, String> {
        Err("no".to_owned())
    }
}
impl TryFrom<Job> for Secret {
    type Error = String;
    fn try_from(_: Job) -> Result<Self, String> {
        Err("no".to_owned())
    }
}

#[test]
fn spoke_must_be_of_the_same_kind() {
    let mut routes = Routes::default();
    Webhook::<Job>::new().spoke::<Secret>().add_to(&mut routes);
    assert_eq!(
        routes.first_error(),
        Some("`Secret` of `v1` is not a version of `Job` of `batch.example.com/v1`")
    );
}
