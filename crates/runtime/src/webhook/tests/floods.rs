//! Tests with clients that send too slowly, too much, or too often.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;
use crate::logging::LogBuffer;

const MEBIBYTE: usize = 1024 * 1024;
const SOON: Duration = Duration::from_secs(60);

fn validating() -> Routes {
    let mut routes = Routes::default();
    Webhook::<ConfigMap>::new()
        .validator(validate)
        .add_to(&mut routes);
    routes
}

/// Sends the head of a review and the start of its body.
async fn begin_review(served: &Served, length: usize, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST {VALIDATE} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

async fn assert_answered(served: &Served) {
    let request = json!({ "operation": "CREATE", "object": map(json!({})) });
    assert_eq!(served.ask(VALIDATE, request).await["allowed"], true);
}

/// The paused clock only advances if all tasks are idle, so the elapsed time would show if a review
/// had to wait for a timeout.
#[tokio::test(start_paused = true)]
async fn slow_bodies_do_not_delay_reviews() {
    let served = serve(validating()).await;
    let mut slow = Vec::new();
    for _ in 0..512 {
        slow.push(begin_review(&served, 7_000_000, b"{").await);
    }
    for _ in 0..20 {
        for _ in 0..17 {
            slow.push(begin_review(&served, 7_000_000, b"{").await);
        }
        let started = Instant::now();
        assert_answered(&served).await;
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "{:?}",
            started.elapsed()
        );
        sleep(Duration::from_secs(1)).await;
    }
}

/// The slowest clients are dropped first.
#[tokio::test(start_paused = true)]
async fn incomplete_bodies_do_not_exhaust_review_memory() {
    let served = serve_within(validating(), 24 * MEBIBYTE).await;
    let spaces = vec![b' '; 3 * MEBIBYTE];
    let mut held = Vec::new();
    // Two of these fit.
    for _ in 0..3 {
        held.push(begin_review(&served, 7_000_000, &spaces).await);
        sleep(Duration::from_millis(100)).await;
    }
    let large = map(json!({ "text": "x".repeat(MEBIBYTE) }));
    let started = Instant::now();
    let response = served
        .ask(VALIDATE, json!({ "operation": "CREATE", "object": large }))
        .await;
    assert_eq!(response["allowed"], true);
    assert!(
        started.elapsed() <= Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    let mut rest = Vec::new();
    let _ = held.remove(0).read_to_end(&mut rest).await;
    assert_eq!(String::from_utf8_lossy(&rest), "", "closed without a response");
}

/// The declared length is enough to reject a review, without receiving the body.
#[tokio::test]
async fn too_large_review_is_rejected_with_advice() {
    let served = serve_within(validating(), 6 * MEBIBYTE).await;
    let mut stream = begin_review(&served, 5 * MEBIBYTE, b"{").await;
    let mut answer = String::new();
    tokio::time::timeout(SOON, stream.read_to_string(&mut answer))
        .await
        .expect("an answer")
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let advice = "request body is larger than 2097152 bytes; all reviews together may hold 6 MiB, by default half of the \
                  memory limit of the container: raise that limit, or set `Manager::webhook_memory`";
    assert!(answer.contains(advice), "{answer}");
}

/// Each map is seven bytes long, but takes more than 500 bytes when decoded.
#[tokio::test]
async fn review_that_is_too_large_when_decoded_is_rejected() {
    let served = serve_within(validating(), 24 * MEBIBYTE).await;
    let dense: Vec<Value> = vec![json!({ "a": 0 }); MEBIBYTE / 8];
    let object = json!({ "metadata": { "name": "a" }, "dense": dense });
    let body = review(json!({ "operation": "CREATE", "object": object }));
    let (status, answer) = served.post(VALIDATE, &body).await;
    assert_eq!(status, 413, "{answer}");
    assert!(
        answer.contains("MiB to be decoded; all reviews together may hold 24 MiB"),
        "{answer}"
    );
    assert_answered(&served).await;
}

/// There are far more reviews than fit into memory, so this only works if memory is released.
#[tokio::test]
async fn reviews_wait_for_memory() {
    let served = Arc::new(serve_within(validating(), 12 * MEBIBYTE).await);
    let large = map(json!({ "text": "x".repeat(MEBIBYTE) }));
    let reviews = (0..20).map(|_| {
        let (served, large) = (Arc::clone(&served), large.clone());
        tokio::spawn(async move {
            let body = review(json!({ "operation": "CREATE", "object": large }));
            served.post(VALIDATE, &body).await
        })
    });
    let mut answered = 0;
    for review in reviews.collect::<Vec<_>>() {
        let (status, answer) = review.await.unwrap();
        assert!([200, 503].contains(&status), "{answer}");
        answered += usize::from(status == 200);
    }
    assert!(answered >= 4, "{answered}");
    for _ in 0..10 {
        let body = review(json!({ "operation": "CREATE", "object": large }));
        assert_eq!(served.post(VALIDATE, &body).await.0, 200);
    }
}

/// Otherwise, any client could flood the log.
#[tokio::test(start_paused = true)]
async fn rejected_reviews_are_logged_at_a_limited_rate() {
    let (log, _guard) = LogBuffer::start();
    let served = serve(validating()).await;
    let reject = async || assert_eq!(served.post(VALIDATE, &json!({})).await.0, 400);
    for _ in 0..100 {
        reject().await;
    }
    let logged = || log.text().matches("rejected webhook request").count();
    assert!((10..20).contains(&logged()), "{}", logged());
    sleep(Duration::from_secs(60)).await;
    reject().await;
    let last = log.text().lines().last().unwrap().to_owned();
    assert!(
        last.contains("left_out=") && !last.contains("left_out=0"),
        "{last}"
    );
}
