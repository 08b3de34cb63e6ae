use std::time::Duration;

use tokio::time::{Instant, advance};

use super::*;

/// Checks the text of a family. The metrics of the process vary, so they're ignored.
fn check(metrics: &Metrics, family: &str, expected: &str) {
    let about = |line: &&str| {
        let line = line
            .strip_prefix("# HELP ")
            .or(line.strip_prefix("# TYPE "))
            .unwrap_or(line);
        let name = line.split([' ', '{']).next().unwrap();
        let name = name
            .strip_suffix("_bucket")
            .or(name.strip_suffix("_sum"))
            .unwrap_or(name);
        name.strip_suffix("_count").unwrap_or(name) == family
    };
    let text = metrics.text();
    let found: Vec<&str> = text.lines().filter(about).collect();
    assert_eq!(found, expected.lines().map(str::trim).collect::<Vec<_>>());
}

fn lines(metrics: &Metrics, start: &str) -> Vec<String> {
    metrics
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix(start))
        .map(str::to_owned)
        .collect()
}

#[test]
fn text_is_in_prometheus_format() {
    let metrics = Metrics::new();
    let backups = metrics
        .counter("backups_total", "Backups made,\nby \\ result.", ["result"])
        .unwrap();
    backups.with(["success"]).add(2.5);
    backups.with(["a \"bad\" one"]).inc();
    metrics.gauge("queue", "Waiting.", []).unwrap().with([]).set(-1.0);
    let sizes = metrics
        .histogram("size_bytes", "Sizes.", ["kind"], &[1.0, 1e6])
        .unwrap();
    for size in [0.5, 1.0, 2.0, 2e6, f64::NAN] {
        sizes.with(["full"]).observe(size);
    }
    metrics
        .counter("without_series_total", "Left out.", ["a"])
        .unwrap();
    check(
        &metrics,
        "backups_total",
        r#"# HELP backups_total Backups made,\nby \\ result.
           # TYPE backups_total counter
           backups_total{result="a \"bad\" one"} 1
           backups_total{result="success"} 2.5"#,
    );
    check(
        &metrics,
        "queue",
        "# HELP queue Waiting.\n# TYPE queue gauge\nqueue -1",
    );
    check(
        &metrics,
        "size_bytes",
        r#"# HELP size_bytes Sizes.
           # TYPE size_bytes histogram
           size_bytes_bucket{kind="full",le="1"} 2
           size_bytes_bucket{kind="full",le="1e+06"} 3
           size_bytes_bucket{kind="full",le="+Inf"} 4
           size_bytes_sum{kind="full"} 2.0000035e+06
           size_bytes_count{kind="full"} 4"#,
    );
    check(&metrics, "without_series_total", "");
}

#[test]
fn families_are_ordered_by_name() {
    let text = Metrics::new().text();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    assert!(names.is_sorted() && names.len() > 4, "{names:?}");
}

/// Compares the name, type and labels of all metrics with controller-runtime, for a manager with a
/// single controller.
#[test]
fn names_types_and_labels_match_controller_runtime_and_start_at_zero() {
    let metrics = Metrics::new();
    let _controller = metrics.controller("cup", 4);
    let _queue = metrics.queue("cup");
    let _webhook = metrics.webhook("/mutate-cup");
    metrics.leader("id.example.com").set(0.0);
    let text = metrics.text();
    let ours = |name: &str| !name.starts_with("process_") && !name.starts_with("tokio_");
    let types = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter(|name| ours(name));
    let counts = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("le=") && ours(line));
    let found = types.chain(counts).collect::<Vec<_>>().join("\n");
    assert_eq!(
        found,
        r#"certwatcher_read_certificate_errors_total counter
certwatcher_read_certificate_total counter
controller_runtime_active_workers gauge
controller_runtime_conversion_webhook_panics_total counter
controller_runtime_max_concurrent_reconciles gauge
controller_runtime_reconcile_errors_total counter
controller_runtime_reconcile_panics_total counter
controller_runtime_reconcile_time_seconds histogram
controller_runtime_reconcile_timeouts_total counter
controller_runtime_reconcile_total counter
controller_runtime_terminal_reconcile_errors_total counter
controller_runtime_webhook_latency_seconds histogram
controller_runtime_webhook_panics_total counter
controller_runtime_webhook_requests_in_flight gauge
controller_runtime_webhook_requests_total counter
leader_election_master_status gauge
workqueue_adds_total counter
workqueue_depth gauge
workqueue_longest_running_processor_seconds gauge
workqueue_queue_duration_seconds histogram
workqueue_retries_total counter
workqueue_unfinished_work_seconds gauge
workqueue_work_duration_seconds histogram
certwatcher_read_certificate_errors_total 0
certwatcher_read_certificate_total 0
controller_runtime_active_workers{controller="cup"} 0
controller_runtime_conversion_webhook_panics_total 0
controller_runtime_max_concurrent_reconciles{controller="cup"} 4
controller_runtime_reconcile_errors_total{controller="cup"} 0
controller_runtime_reconcile_panics_total{controller="cup"} 0
controller_runtime_reconcile_time_seconds_sum{controller="cup"} 0
controller_runtime_reconcile_time_seconds_count{controller="cup"} 0
controller_runtime_reconcile_timeouts_total{controller="cup"} 0
controller_runtime_reconcile_total{controller="cup",result="error"} 0
controller_runtime_reconcile_total{controller="cup",result="requeue"} 0
controller_runtime_reconcile_total{controller="cup",result="requeue_after"} 0
controller_runtime_reconcile_total{controller="cup",result="success"} 0
controller_runtime_terminal_reconcile_errors_total{controller="cup"} 0
controller_runtime_webhook_latency_seconds_sum{webhook="/mutate-cup"} 0
controller_runtime_webhook_latency_seconds_count{webhook="/mutate-cup"} 0
controller_runtime_webhook_panics_total 0
controller_runtime_webhook_requests_in_flight{webhook="/mutate-cup"} 0
controller_runtime_webhook_requests_total{code="200",webhook="/mutate-cup"} 0
controller_runtime_webhook_requests_total{code="500",webhook="/mutate-cup"} 0
leader_election_master_status{name="id.example.com"} 0
workqueue_adds_total{controller="cup",name="cup"} 0
workqueue_depth{controller="cup",name="cup",priority="0"} 0
workqueue_longest_running_processor_seconds{controller="cup",name="cup"} 0
workqueue_queue_duration_seconds_sum{controller="cup",name="cup"} 0
workqueue_queue_duration_seconds_count{controller="cup",name="cup"} 0
workqueue_retries_total{controller="cup",name="cup"} 0
workqueue_unfinished_work_seconds{controller="cup",name="cup"} 0
workqueue_work_duration_seconds_sum{controller="cup",name="cup"} 0
workqueue_work_duration_seconds_count{controller="cup",name="cup"} 0"#
    );
}

#[test]
fn buckets_match_controller_runtime() {
    let metrics = Metrics::new();
    let _controller = metrics.controller("cup", 1);
    let _queue = metrics.queue("cup");
    let bounds = |start: &str| {
        let bounds = lines(&metrics, start).into_iter();
        bounds
            .map(|bound| bound.trim_end_matches("\"} 0").to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        bounds("controller_runtime_reconcile_time_seconds_bucket{controller=\"cup\",le=\""),
        "0.005 0.01 0.025 0.05 0.1 0.15 0.2 0.25 0.3 0.35 0.4 0.45 0.5 0.6 0.7 0.8 0.9 1 1.25 1.5 1.75 2 2.5 3 3.5 4 4.5 5 6 \
         7 8 9 10 15 20 25 30 40 50 60 +Inf"
    );
    for family in ["queue", "work"] {
        assert_eq!(
            bounds(&format!(
                "workqueue_{family}_duration_seconds_bucket{{controller=\"cup\",name=\"cup\",le=\""
            )),
            "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 100 1000 +Inf"
        );
    }
}

#[test]
fn each_result_of_a_reconcile_is_counted() {
    let metrics = Metrics::new();
    let controller = metrics.controller("cup", 1);
    let counts = || {
        let mut counts = Vec::new();
        for family in [
            "total",
            "errors_total",
            "panics_total",
            "timeouts_total",
            "time_seconds_count",
        ] {
            counts.extend(lines(
                &metrics,
                &format!("controller_runtime_reconcile_{family}{{controller=\"cup\""),
            ));
        }
        counts.extend(lines(
            &metrics,
            "controller_runtime_terminal_reconcile_errors_total{controller=\"cup\"",
        ));
        let numbers = counts
            .iter()
            .map(|line| line.rsplit(' ').next().unwrap().to_owned());
        numbers.collect::<Vec<_>>().join(" ")
    };
    // From left to right: error, requeue, requeue_after, success; errors, panics, timeouts; times;
    // terminal errors.
    assert_eq!(counts(), "0 0 0 0 0 0 0 0 0");
    for (how, expected) in [
        (ReconcileResult::Success, "0 0 0 1 0 0 0 1 0"),
        (ReconcileResult::RequeueAfter, "0 0 1 1 0 0 0 2 0"),
        (ReconcileResult::Error, "1 0 1 1 1 0 0 3 0"),
        (ReconcileResult::TerminalError, "2 0 1 1 2 0 0 4 1"),
        (ReconcileResult::Panic, "3 0 1 1 3 1 0 5 1"),
        (ReconcileResult::Timeout, "4 0 1 1 4 1 1 6 1"),
    ] {
        controller.reconciled(how, Duration::from_millis(30));
        assert_eq!(counts(), expected, "{how:?}");
    }
    assert_eq!(
        lines(
            &metrics,
            "controller_runtime_reconcile_time_seconds_sum{controller=\"cup\"} "
        ),
        ["0.18"]
    );
}

#[test]
fn active_worker_is_counted_until_its_guard_is_dropped() {
    let metrics = Metrics::new();
    let controller = metrics.controller("cup", 2);
    let active = || lines(&metrics, "controller_runtime_active_workers{controller=\"cup\"} ").concat();
    let (first, second) = (controller.active(), controller.active());
    assert_eq!(active(), "2");
    drop(first);
    assert_eq!(active(), "1");
    drop(second);
    assert_eq!(active(), "0");
}

#[tokio::test(start_paused = true)]
async fn queue_counts_keys_and_measures_their_times() {
    let metrics = Metrics::new();
    let queue = metrics.queue("cup");
    let value = |name: &str| {
        lines(
            &metrics,
            &format!("workqueue_{name}{{controller=\"cup\",name=\"cup\""),
        )
        .concat()
    };
    let added = Instant::now();
    queue.added(0);
    queue.added(-100);
    queue.moved(-100, 0);
    queue.added(7);
    assert_eq!(
        value("depth"),
        r#",priority="-100"} 0,priority="0"} 2,priority="7"} 1"#
    );
    assert_eq!(value("adds_total"), "} 3");

    advance(Duration::from_secs(2)).await;
    let taken = Instant::now();
    queue.taken(0, added, taken);
    queue.taken(0, added, taken);
    assert_eq!(
        value("depth"),
        r#",priority="-100"} 0,priority="0"} 0,priority="7"} 1"#
    );
    assert_eq!(value("queue_duration_seconds_sum"), "} 4");

    advance(Duration::from_secs(3)).await;
    queue.taken(7, added, Instant::now());
    advance(Duration::from_secs(1)).await;
    assert_eq!(value("unfinished_work_seconds"), "} 9");
    assert_eq!(value("longest_running_processor_seconds"), "} 4");
    queue.done(taken);
    queue.done(taken);
    assert_eq!(value("work_duration_seconds_sum"), "} 8");
    assert_eq!(value("unfinished_work_seconds"), "} 1");
    assert_eq!(value("longest_running_processor_seconds"), "} 1");
    queue.retried();
    assert_eq!(value("retries_total"), "} 1");
}

#[test]
fn priorities_beyond_the_limit_share_a_series() {
    let metrics = Metrics::new();
    let queue = metrics.queue("cup");
    for priority in 0..40 {
        queue.added(priority);
    }
    let depths = lines(
        &metrics,
        "workqueue_depth{controller=\"cup\",name=\"cup\",priority=\"",
    );
    assert_eq!(depths.len(), 26);
    assert!(
        depths.contains(&"24\"} 1".to_owned())
            && depths.contains(&"exceeded_cardinality_limit\"} 15".to_owned())
    );
}

#[test]
fn names_and_bounds_invalid_in_prometheus_are_errors() {
    let metrics = Metrics::new();
    let check = |found: Result<(), MetricError>, expected: &str| {
        let error = found.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check(
        metrics.counter("no-dash", "", []).map(drop),
        "invalid metric name `no-dash`: expected letters",
    );
    check(
        metrics.gauge("a", "", ["le"]).map(drop),
        "invalid label `le` of metric `a`: ",
    );
    check(
        metrics.gauge("a", "", ["b", "b"]).map(drop),
        "invalid label `b` of metric `a`: expected letters",
    );
    for bounds in [&[1.0, 1.0][..], &[2.0, 1.0], &[f64::NAN], &[1.0, f64::INFINITY]] {
        check(
            metrics.histogram("h", "", [], bounds).map(drop),
            "invalid bounds of histogram `h`: expected finite numbers",
        );
    }
}

#[test]
fn registering_a_family_again_returns_the_same() {
    let metrics = Metrics::new();
    metrics.counter("a_total", "A.", ["x"]).unwrap().with(["1"]).inc();
    let again = metrics.counter("a_total", "A.", ["x"]).unwrap();
    assert_eq!(again.with(["1"]).get(), 1.0);
    let taken = Err(MetricError::Taken("a_total".to_owned()));
    assert_eq!(metrics.gauge("a_total", "A.", ["x"]).map(drop), taken);
    assert_eq!(metrics.counter("a_total", "A.", ["y"]).map(drop), taken);
    assert_eq!(metrics.counter("a_total", "A.", ["x", "y"]).map(drop), taken);
    assert_eq!(metrics.counter("a_total", "B.", ["x"]).map(drop), taken);
    assert!(
        metrics.counter("workqueue_depth", "", []).is_err(),
        "the runtime's own names are taken"
    );

    again.remove(["1"]);
    assert_eq!(again.with(["1"]).get(), 0.0);
}

#[test]
fn gauges_can_be_set_before_a_scrape() {
    let metrics = Metrics::new();
    let size = metrics.gauge("pool_size", "", []).unwrap().with([]);
    let looks = std::sync::atomic::AtomicU32::new(0);
    metrics.before_scrape(move || {
        size.set(f64::from(
            looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        ))
    });
    let seen: Vec<_> = (0..3).flat_map(|_| lines(&metrics, "pool_size ")).collect();
    assert_eq!(seen, ["0", "1", "2"]);
}

#[test]
fn concurrent_increments_are_not_lost() {
    let metrics = Metrics::new();
    let counter = metrics.counter("a_total", "", []).unwrap().with([]);
    let times = metrics.histogram("a_seconds", "", [], &[0.5]).unwrap().with([]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10_000).for_each(|_| (counter.inc(), times.observe(0.25)).1));
        }
    });
    assert_eq!((counter.get(), times.count()), (40_000.0, 40_000));
    assert_eq!(lines(&metrics, "a_seconds_sum "), ["10000"]);
}

#[test]
fn metrics_of_other_libraries_follow_unless_their_name_is_taken() {
    let metrics = Metrics::new();
    let _sizes = metrics.histogram("size_bytes", "Sizes.", [], &[1.0]).unwrap();
    metrics.collect_with(|| {
        "# TYPE jobs_total counter\njobs_total 1\n\
         # TYPE tokio_workers gauge\ntokio_workers 99\n\
         size_bytes_count 99\n"
            .to_owned()
    });
    let text = metrics.text();
    assert!(
        text.ends_with("\n# TYPE jobs_total counter\njobs_total 1\n"),
        "{text}"
    );
    for taken in ["tokio_workers 99", "size_bytes_count 99"] {
        assert!(!text.contains(taken), "{text}");
    }
}

/// Tests of the CLI compare dashboards and rules with the same page.
#[cfg(target_os = "linux")] // where the process has its metrics
#[test]
fn guide_lists_every_metric() {
    let metrics = Metrics::new();
    metrics.measure_requests();
    metrics.measure_shards(crate::shards::RingStatus::default);
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md")).unwrap();
    let rows = page.lines().skip_while(|line| *line != "## The metrics");
    let rows = rows.filter(|line| line.starts_with("| `"));
    let listed: Vec<&str> = rows
        .filter_map(|row| row.rsplit_once(" | "))
        .map(|(row, _)| row)
        .collect();
    assert_eq!(listed, metrics.0.registry.rows());
}
