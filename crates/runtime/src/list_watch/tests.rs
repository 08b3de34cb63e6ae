//! Tests with a scripted server and a paused clock.

use std::sync::{Mutex, PoisonError};

use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::json;
use tower::{BoxError, service_fn};

use super::*;

/// A request, as seen by the script.
#[derive(Clone, Debug)]
struct Sent {
    at: Duration,
    /// Number of identical requests before this one.
    nth: usize,
    /// `list`, `page`, `whole` (a list without pages), `stream` (a streaming list), or `watch@`
    /// followed by the version.
    what: String,
}

enum Answer {
    /// Responds with a status and a body.
    Ends(u16, String),
    /// Responds with status 200 and a body that stays open.
    Open(String),
    /// Never responds.
    Lost,
    Late(Duration, Box<Answer>),
}

type Requests = Arc<Mutex<Vec<Sent>>>;
type Script = fn(&Sent) -> Answer;

fn describe(request: &Request<Body>) -> String {
    let query = request.uri().query().unwrap_or_default();
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    if value("sendInitialEvents").is_some() {
        "stream".to_owned()
    } else if value("watch").is_some() {
        format!("watch@{}", value("resourceVersion").unwrap_or_default())
    } else if value("continue").is_some() {
        "page".to_owned()
    } else if value("resourceVersion") == Some("0") {
        "cached list".to_owned()
    } else if value("limit").is_some() {
        "list".to_owned()
    } else {
        "whole".to_owned()
    }
}

fn new_body(text: String, goes_on: bool) -> UnsyncBoxBody<Bytes, BoxError> {
    let first = stream::iter([Ok(Frame::data(Bytes::from(text)))]);
    match goes_on {
        true => StreamBody::new(first.chain(stream::pending())).boxed_unsync(),
        false => StreamBody::new(first).boxed_unsync(),
    }
}

fn new_client(script: impl Fn(&Sent) -> Answer + Clone + Send + 'static) -> (Client, Requests) {
    let requests = Requests::default();
    let sent = Arc::clone(&requests);
    let started = Instant::now();
    let service = service_fn(move |request: Request<Body>| {
        let what = describe(&request);
        let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = sent.iter().filter(|earlier| earlier.what == what).count();
        let request = Sent {
            at: started.elapsed(),
            nth,
            what,
        };
        let mut answer = script(&request);
        sent.push(request);
        async move {
            if let Answer::Late(delay, late) = answer {
                tokio::time::sleep(delay).await;
                answer = *late;
            }
            let (status, body) = match answer {
                Answer::Ends(status, text) => (status, new_body(text, false)),
                Answer::Open(text) => (200, new_body(text, true)),
                Answer::Lost | Answer::Late(..) => return Err(BoxError::from("connection reset")),
            };
            Ok(Response::builder().status(status).body(body).unwrap())
        }
    });
    (Client::new(service, "default"), requests)
}

fn map(name: &str, version: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "resourceVersion": version}})
}

/// A complete list with a single object `a`.
fn list(version: &str) -> Answer {
    let metadata = json!({"resourceVersion": version});
    let list =
        json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": [map("a", "1")]});
    Answer::Ends(200, list.to_string())
}

fn event(kind: &str, object: serde_json::Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

fn news() -> String {
    event("ADDED", map("b", "9"))
}

fn bookmark(version: &str, is_end: bool) -> String {
    let annotations = if is_end {
        json!({INITIAL_EVENTS_END: "true"})
    } else {
        json!({})
    };
    let metadata = json!({"resourceVersion": version, "annotations": annotations});
    event(
        "BOOKMARK",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}),
    )
}

fn status(code: u16, reason: &str, details: serde_json::Value) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": format!("refused with {code}"), "details": details,
    })
}

fn refusal(code: u16, reason: &str) -> Answer {
    Answer::Ends(code, status(code, reason, json!({})).to_string())
}

fn error_event(code: u16, reason: &str) -> String {
    event("ERROR", status(code, reason, json!({})))
}

fn new_list_watch(client: Client, config: Config) -> ListWatch<ConfigMap> {
    ListWatch::new(Api::default_namespaced(client), config, ListLimit::default())
}

fn describe_event(event: Result<Event<ConfigMap>, WatchError>) -> String {
    match event {
        Ok(Event::Init) => "init".to_owned(),
        Ok(Event::InitApply(map)) => format!("listed {}", map.name_any()),
        Ok(Event::InitDone) => "done".to_owned(),
        Ok(Event::Apply(map)) => format!("applied {}", map.name_any()),
        Ok(Event::Delete(map)) => format!("deleted {}", map.name_any()),
        Err(error) => error.to_string(),
    }
}

/// Runs a script for the given time. Returns all requests and events.
async fn follow(config: Config, time: Duration, script: Script) -> (Vec<Sent>, Vec<String>) {
    let (client, requests) = new_client(script);
    let mut events = new_list_watch(client, config).into_stream();
    let mut seen = Vec::new();
    let reading = async {
        while let Some(event) = events.next().await {
            seen.push(describe_event(event));
        }
    };
    timeout(time, reading).await.unwrap_err();
    let requests = requests.lock().unwrap().clone();
    (requests, seen)
}

fn streaming() -> Config {
    Config::default().streaming_lists()
}

fn names(requests: &[Sent]) -> Vec<&str> {
    requests.iter().map(|request| &*request.what).collect()
}

/// Returns the possible numbers of failures in the given time, from maximum jitter to no jitter.
fn possible_failures(time: Duration) -> std::ops::RangeInclusive<usize> {
    let count = |factor: f64| {
        let pauses = (0..).map(|n| (0.8 * 2_f64.powi(n)).min(30.0) * factor);
        let ends = pauses.scan(0.0, |end, pause| {
            *end += pause;
            Some(*end)
        });
        1 + ends.take_while(|end| *end <= time.as_secs_f64()).count()
    };
    count(2.0)..=count(1.0)
}

/// kube omits the version in paged lists.
#[tokio::test(start_paused = true)]
async fn list_that_accepts_any_version_says_so() {
    let (requests, seen) = follow(
        Config::default().any_semantic(),
        Duration::from_secs(5),
        |request| match &*request.what {
            "cached list" => list("5"),
            _ => Answer::Open(String::new()),
        },
    )
    .await;
    assert_eq!(names(&requests), ["cached list", "watch@5"], "{seen:?}");
}

const TEN_MINUTES: Duration = Duration::from_secs(600);

/// There must be a delay with backoff after each cycle of requests.
async fn check_paced(name: &str, config: Config, cycle: &[&str], script: Script) {
    let (requests, _) = follow(config, TEN_MINUTES, script).await;
    for (request, expected) in requests.iter().zip(cycle.iter().cycle()) {
        assert_eq!(request.what, *expected, "{name}: {:?}", names(&requests));
    }
    let cycles = requests.len().div_ceil(cycle.len());
    let possible = possible_failures(TEN_MINUTES);
    assert!(
        possible.contains(&cycles),
        "{name}: {cycles} cycles, expected {possible:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_failures_are_paced() {
    let pages = Config::default;
    check_paced(
        "watches end at once",
        pages(),
        &["list", "watch@1"],
        |sent| match sent.what.starts_with("watch") {
            true => Answer::Ends(200, String::new()),
            false => list("1"),
        },
    )
    .await;
    check_paced(
        "everything ends at once",
        streaming(),
        &["stream", "list", "watch@1"],
        |sent| match &*sent.what {
            "list" => list("1"),
            _ => Answer::Ends(200, String::new()),
        },
    )
    .await;
    check_paced("version too large", pages(), &["list", "watch@1"], |sent| {
        match sent.what.starts_with("watch") {
            true => {
                let causes = json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]});
                Answer::Ends(504, status(504, "Timeout", causes).to_string())
            }
            false => list("1"),
        }
    })
    .await;
    check_paced(
        "expired at once",
        pages(),
        &["list", "watch@1"],
        |sent| match sent.what.starts_with("watch") {
            true => refusal(410, "Expired"),
            false => list("1"),
        },
    )
    .await;
    check_paced(
        "expired in an event",
        pages(),
        &["list", "watch@1"],
        |sent| match sent.what.starts_with("watch") {
            true => Answer::Open(error_event(410, "Expired")),
            false => list("1"),
        },
    )
    .await;
    check_paced(
        "an error first thing",
        pages(),
        &["list", "watch@1"],
        |sent| match sent.what.starts_with("watch") {
            true => Answer::Ends(200, error_event(500, "InternalError")),
            false => list("1"),
        },
    )
    .await;
    check_paced(
        "malformed events",
        pages(),
        &["list", "watch@1"],
        |sent| match sent.what.starts_with("watch") {
            true => Answer::Open("<html>\n".to_owned()),
            false => list("1"),
        },
    )
    .await;
    check_paced(
        "events without a version",
        pages(),
        &["list", "watch@1"],
        |sent| match sent.what.starts_with("watch") {
            true => Answer::Open(event("ADDED", map("b", ""))),
            false => list("1"),
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn initial_list_is_retried_at_least_every_ten_seconds() {
    let (requests, seen) = follow(Config::default(), TEN_MINUTES, |_| refusal(403, "Forbidden")).await;
    // 60 delays of ten seconds each, plus a few shorter ones at the start.
    assert!((60..=66).contains(&requests.len()), "{}", requests.len());
    assert!(
        seen.iter().any(|event| event.contains("refused with 403")),
        "{seen:?}"
    );
    let (requests, _) = follow(Config::default(), TEN_MINUTES, |sent| match &*sent.what {
        // The first page of a list that never ends.
        "list" => Answer::Ends(
            200,
            json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"continue": "more"}, "items": []}).to_string(),
        ),
        _ => refusal(500, "InternalError"),
    })
    .await;
    assert!((120..=132).contains(&requests.len()), "{}", requests.len());
}

#[tokio::test(start_paused = true)]
async fn watch_that_ends_after_an_event_restarts_once_a_second() {
    let (requests, _) = follow(Config::default(), Duration::from_secs(60), |sent| {
        match sent.what.starts_with("watch") {
            true => Answer::Ends(200, news()),
            false => list("1"),
        }
    })
    .await;
    assert!((60..=62).contains(&requests.len()), "{:?}", names(&requests));
}

/// Checks what follows after a watch ends in the given way, if the next one works.
async fn check_recovery(name: &str, script: Script, expected: &[&str], most_seconds: u64) {
    let (requests, seen) = follow(Config::default(), Duration::from_secs(most_seconds + 60), script).await;
    assert_eq!(names(&requests), expected, "{name}");
    assert_eq!(
        seen.last().map(String::as_str),
        Some("applied b"),
        "{name}: {seen:?}"
    );
    let last = requests.last().unwrap().at;
    assert!(last <= Duration::from_secs(most_seconds), "{name}: {last:?}");
}

#[tokio::test(start_paused = true)]
async fn next_request_depends_on_how_the_watch_ended() {
    const RELIST: &[&str] = &["list", "watch@1", "list", "watch@2"];
    const RESUME: &[&str] = &["list", "watch@1", "watch@1"];
    /// The first watch gets `first`, and all others get an event.
    fn first_watch(sent: &Sent, first: Answer) -> Answer {
        match &*sent.what {
            "list" => list(&(sent.nth + 1).to_string()),
            "watch@1" if sent.nth == 0 => first,
            _ => Answer::Open(news()),
        }
    }
    check_recovery(
        "410",
        |sent| first_watch(sent, refusal(410, "Expired")),
        RELIST,
        2,
    )
    .await;
    check_recovery(
        "504",
        |sent| first_watch(sent, refusal(504, "Timeout")),
        RELIST,
        2,
    )
    .await;
    check_recovery(
        "400",
        |sent| first_watch(sent, refusal(400, "BadRequest")),
        RELIST,
        2,
    )
    .await;
    check_recovery(
        "end",
        |sent| first_watch(sent, Answer::Ends(200, String::new())),
        RELIST,
        2,
    )
    .await;
    check_recovery(
        "410 in an event",
        |sent| first_watch(sent, Answer::Open(error_event(410, "Expired"))),
        RELIST,
        2,
    )
    .await;
    check_recovery(
        "malformed event",
        |sent| first_watch(sent, Answer::Open("lost\n".to_owned())),
        RELIST,
        2,
    )
    .await;
    check_recovery(
        "503",
        |sent| first_watch(sent, refusal(503, "ServiceUnavailable")),
        RESUME,
        2,
    )
    .await;
    check_recovery("lost", |sent| first_watch(sent, Answer::Lost), RESUME, 2).await;
    check_recovery(
        "429 in an event",
        |sent| first_watch(sent, Answer::Open(error_event(429, "TooManyRequests"))),
        RESUME,
        2,
    )
    .await;
    check_recovery(
        "ended by its bookmark",
        |sent| first_watch(sent, Answer::Ends(200, bookmark("5", false))),
        &["list", "watch@1", "watch@5"],
        2,
    )
    .await;
    // The server hangs, so the client must close the watch. Otherwise the server would close it.
    check_recovery(
        "hangs",
        |sent| first_watch(sent, Answer::Open(String::new())),
        RESUME,
        296,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honored() {
    let (requests, _) = follow(Config::default(), TEN_MINUTES, |sent| match &*sent.what {
        "list" => list("1"),
        _ if sent.nth == 0 => {
            let details = json!({"retryAfterSeconds": 20});
            Answer::Ends(429, status(429, "TooManyRequests", details).to_string())
        }
        _ => Answer::Open(news()),
    })
    .await;
    assert_eq!(names(&requests)[..3], ["list", "watch@1", "watch@1"]);
    assert_eq!((requests[2].at - requests[1].at).as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn objects_arrive_within_a_minute_after_a_long_failure() {
    let (requests, seen) = follow(Config::default(), TEN_MINUTES, |sent| match &*sent.what {
        "list" => list("1"),
        _ if sent.at < TEN_MINUTES / 2 => Answer::Ends(200, String::new()),
        _ => Answer::Open(news()),
    })
    .await;
    assert!(seen.contains(&"applied b".to_owned()), "{seen:?}");
    let recovered = requests.iter().find(|sent| sent.at >= TEN_MINUTES / 2).unwrap();
    assert!(
        recovered.at <= TEN_MINUTES / 2 + Duration::from_secs(60),
        "{recovered:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn expired_continue_token_is_followed_by_a_list_without_pages() {
    let (requests, seen) = follow(Config::default(), Duration::from_secs(60), |sent| {
        match &*sent.what {
            "list" => {
                let list = json!({
                    "apiVersion": "v1", "kind": "ConfigMapList", "items": [map("old", "1")],
                    "metadata": {"resourceVersion": "1", "continue": "more"},
                });
                Answer::Ends(200, list.to_string())
            }
            "page" => refusal(410, "Expired"),
            "whole" => list("2"),
            _ => Answer::Open(news()),
        }
    })
    .await;
    assert_eq!(names(&requests), ["list", "page", "whole", "watch@2"]);
    assert_eq!(requests[3].at, Duration::ZERO);
    assert_eq!(
        seen,
        ["init", "listed old", "init", "listed a", "done", "applied b"]
    );
}

/// A streaming list with this outcome must be followed by a paged list after `seconds`, and the
/// error must contain the message.
async fn check_fallback(script: Script, seconds: u64, message: &str) {
    let (requests, seen) = follow(streaming(), Duration::from_secs(60), script).await;
    assert_eq!(names(&requests), ["stream", "list", "watch@1"], "{message}");
    assert_eq!(requests[1].at.as_secs(), seconds, "{message}");
    let rest: Vec<&String> = seen
        .iter()
        .skip_while(|event| !event.contains("streaming"))
        .collect();
    assert_eq!(rest[0], message);
    assert_eq!(rest[1..], ["init", "listed a", "done", "applied b"]);
}

#[tokio::test(start_paused = true)]
async fn rejected_or_incomplete_streaming_list_falls_back_to_pages() {
    fn other(sent: &Sent, answer: Answer) -> Answer {
        match &*sent.what {
            "stream" => answer,
            "list" => list("1"),
            _ => Answer::Open(news()),
        }
    }
    let incomplete = "streaming list ended, or stopped, before its last object; listing in pages instead";
    check_fallback(
        |sent| other(sent, Answer::Ends(200, String::new())),
        0,
        incomplete,
    )
    .await;
    check_fallback(|sent| other(sent, Answer::Ends(200, news())), 0, incomplete).await;
    check_fallback(|sent| other(sent, Answer::Open(news())), 30, incomplete).await;
    // A server that doesn't know the parameter sends ordinary bookmarks.
    check_fallback(
        |sent| other(sent, Answer::Open(news() + &bookmark("5", false))),
        30,
        incomplete,
    )
    .await;
    let refused = "streaming list failed, listing in pages instead: refused with 422";
    let (_, seen) = follow(streaming(), Duration::from_secs(1), |sent| {
        other(sent, refusal(422, "Invalid"))
    })
    .await;
    assert!(seen[1].starts_with(refused), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn streaming_list_is_retried_if_the_server_fails() {
    let (requests, seen) = follow(streaming(), Duration::from_secs(60), |sent| match sent.nth {
        0 => refusal(503, "ServiceUnavailable"),
        1 => Answer::Open(error_event(429, "TooManyRequests")),
        _ => Answer::Open(news() + &bookmark("12", true) + &event("DELETED", map("b", "13"))),
    })
    .await;
    assert_eq!(names(&requests), ["stream"; 3]);
    assert_eq!(seen[seen.len() - 4..], ["init", "listed b", "done", "deleted b"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_lists_are_limited_but_paused_ones_do_not_count() {
    let second = Duration::from_secs(1);
    // Half of the lists fail after a second, and succeed when retried. Streaming lists hang.
    let (client, requests) = new_client(move |sent| match &*sent.what {
        "stream" => Answer::Open(String::new()),
        "list" if sent.nth % 2 == 0 => Answer::Late(second, Box::new(refusal(500, "InternalError"))),
        "list" => Answer::Late(second, Box::new(list("1"))),
        _ => Answer::Open(String::new()),
    });
    let limit = ListLimit::new(3);
    let mut followers = Vec::new();
    for n in 0..30 {
        let config = if n % 10 == 0 {
            streaming()
        } else {
            Config::default()
        };
        let list_watch =
            ListWatch::<ConfigMap>::new(Api::default_namespaced(client.clone()), config, limit.clone());
        followers.push(tokio::spawn(async move {
            let mut events = list_watch.into_stream();
            while !matches!(events.next().await, Some(Ok(Event::InitDone))) {}
            // The watch resumes without a relist.
            events.next().await
        }));
    }
    tokio::time::sleep(TEN_MINUTES / 3).await;
    let requests = requests.lock().unwrap().clone();
    let lists: Vec<Duration> = requests
        .iter()
        .filter(|sent| !sent.what.starts_with("watch"))
        .map(|sent| sent.at)
        .collect();
    for start in &lists {
        let together = lists.iter().filter(|at| (*start..*start + second).contains(*at));
        assert!(together.count() <= 3, "{lists:?}");
    }
    let watches = requests
        .iter()
        .filter(|sent| sent.what.starts_with("watch"))
        .count();
    assert_eq!(watches, 30, "{:?}", names(&requests));
    followers.iter().for_each(tokio::task::JoinHandle::abort);
}
