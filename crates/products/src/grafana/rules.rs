//! The Prometheus rules (recording rules and alerts), one entry per rule.
//!
//! In expressions, `JOB` stands for a matcher of the manager's metrics, since other operators in
//! the cluster have metrics of the same names. Values are summed over all instances, because a
//! standby instance reconciles nothing and its zeros would hide a problem.

use serde_json::{Value, json};

const RECORDS: &[(&str, &str)] = &[
    (
        "namespace_job_controller:controller_runtime_reconcile_errors:ratio_rate5m",
        "sum by (namespace, job, controller) (rate(controller_runtime_reconcile_errors_total{JOB}[5m])) / sum by (namespace, job, controller) (rate(controller_runtime_reconcile_total{JOB}[5m]))",
    ),
    (
        "namespace_job_controller:workqueue_queue_duration_seconds:p99_rate5m",
        "histogram_quantile(0.99, sum by (namespace, job, controller, le) (rate(workqueue_queue_duration_seconds_bucket{JOB}[5m])))",
    ),
    (
        "namespace_job_webhook:controller_runtime_webhook_request_errors:ratio_rate5m",
        "sum by (namespace, job, webhook) (rate(controller_runtime_webhook_requests_total{JOB, code!=\"200\"}[5m])) / sum by (namespace, job, webhook) (rate(controller_runtime_webhook_requests_total{JOB}[5m]))",
    ),
    (
        "namespace_job:rest_client_request_errors:ratio_rate5m",
        "sum by (namespace, job) (rate(rest_client_requests_total{JOB, code=~\"5..|403|429|<error>\"}[5m])) / sum by (namespace, job) (rate(rest_client_requests_total{JOB}[5m]))",
    ),
];

struct Alert {
    name: &'static str,
    severity: Severity,
    expr: &'static str,
    /// How long the condition must hold before the alert fires.
    hold: &'static str,
    summary: &'static str,
    /// Observation, including the value.
    description: &'static str,
}

#[derive(Clone, Copy)]
enum Severity {
    /// Nothing is reconciled, or user requests fail.
    Critical,
    /// Some work isn't done.
    Warning,
    /// Can wait for working hours.
    Info,
}

impl Severity {
    fn label(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

#[rustfmt::skip]
const ALERTS: &[Alert] = &[
    Alert {
        name: "OperatorDown", severity: Severity::Critical, hold: "5m",
        expr: "absent(up{JOB} == 1)",
        summary: "No instance of the operator can be scraped.",
        description: "Prometheus reaches no instance of the operator. Its Pods are not running or not ready, or the metrics endpoint refuses Prometheus.",
    },
    Alert {
        name: "OperatorNoLeader", severity: Severity::Critical, hold: "5m",
        expr: "sum by (namespace, job, name) (leader_election_master_status{JOB}) == 0",
        summary: "No instance of the operator holds its lease.",
        description: "No instance holds the lease {{ $labels.name }} in {{ $labels.namespace }}, so nothing is reconciled.",
    },
    Alert {
        name: "OperatorShardsUnowned", severity: Severity::Critical, hold: "1m",
        // A replica that has failed, or that can't read the claims, doesn't know about ranges without
        // an owner, so count what the replicas work on as well. With the maximum of a minute, a range
        // that moves between two scrapes is counted twice rather than never.
        expr: "max by (namespace, job) (rbuilder_shard_unowned_seconds{JOB}) > 60 or sum by (namespace, job) (max_over_time(rbuilder_shard_ranges{JOB}[1m])) < max by (namespace, job) (rbuilder_shard_all_ranges{JOB})",
        summary: "Objects of the operator have no replica.",
        description: "For more than a minute, no replica of the operator has worked on some range of objects in {{ $labels.namespace }}. Nothing reconciles these objects.",
    },
    Alert {
        name: "OperatorShardWritesFail", severity: Severity::Warning, hold: "15m",
        // Replicas that start or stop at the same time have some conflicts, but only for a minute.
        expr: "sum by (namespace, job) (increase(rbuilder_shard_failed_writes_total{JOB}[5m])) > 5",
        summary: "Replicas of the operator fail to move ranges of objects.",
        description: "{{ $value | humanize }} writes of the claims in {{ $labels.namespace }} failed in 5 minutes. Ranges do not move to replicas that start, or from replicas that stop. Something else keeps changing the Lease, or a permission is missing. The log of the operator has the error.",
    },
    Alert {
        name: "OperatorShardsMoving", severity: Severity::Warning, hold: "30m",
        expr: "sum by (namespace, job) (rate(rbuilder_shard_moves_total{JOB}[10m])) > 0",
        summary: "Ranges of objects keep moving between the replicas.",
        description: "For half an hour, ranges of objects in {{ $labels.namespace }} have moved from one replica of the operator to another, {{ $value | humanize }} a second. Each replica that gets a range lists its objects again. Replicas restart, or an autoscaler adds and removes them.",
    },
    Alert {
        name: "OperatorReconcileErrors", severity: Severity::Warning, hold: "15m",
        expr: "namespace_job_controller:controller_runtime_reconcile_errors:ratio_rate5m{JOB} > 0.1",
        summary: "Many reconciles of a controller fail.",
        description: "{{ $value | humanizePercentage }} of the reconciles of the controller {{ $labels.controller }} in {{ $labels.namespace }} fail.",
    },
    Alert {
        name: "OperatorTerminalErrors", severity: Severity::Info, hold: "1m",
        expr: "sum by (namespace, job, controller) (increase(controller_runtime_terminal_reconcile_errors_total{JOB}[15m])) > 0",
        summary: "A controller has given up on an object until it changes.",
        description: "Reconciles of the controller {{ $labels.controller }} in {{ $labels.namespace }} ended in terminal errors, which are not retried. Its log names the objects.",
    },
    Alert {
        name: "OperatorReconcilePanics", severity: Severity::Warning, hold: "1m",
        expr: "sum by (namespace, job, controller) (increase(controller_runtime_reconcile_panics_total{JOB}[15m])) > 0",
        summary: "Reconciles of a controller panic.",
        description: "Reconciles of the controller {{ $labels.controller }} in {{ $labels.namespace }} panic: a defect of the operator. Its log has the message and the object.",
    },
    Alert {
        name: "OperatorReconcileTimeouts", severity: Severity::Warning, hold: "1m",
        expr: "sum by (namespace, job, controller) (increase(controller_runtime_reconcile_timeouts_total{JOB}[15m])) > 0",
        summary: "Reconciles of a controller reach their timeout.",
        description: "Reconciles of the controller {{ $labels.controller }} in {{ $labels.namespace }} are stopped by their timeout.",
    },
    Alert {
        name: "OperatorReconcileStuck", severity: Severity::Warning, hold: "5m",
        expr: "max by (namespace, job, controller) (workqueue_longest_running_processor_seconds{JOB}) > 600",
        summary: "A reconcile has been running for more than ten minutes.",
        description: "A reconcile of the controller {{ $labels.controller }} in {{ $labels.namespace }} has been running for {{ $value | humanizeDuration }}.",
    },
    Alert {
        name: "OperatorQueueDelayed", severity: Severity::Warning, hold: "15m",
        // Must be a bucket bound, i.e. a power of ten.
        expr: "namespace_job_controller:workqueue_queue_duration_seconds:p99_rate5m{JOB} > 100",
        summary: "Objects wait long for a worker of a controller.",
        description: "One in a hundred objects waits for more than 100 seconds for a worker of the controller {{ $labels.controller }} in {{ $labels.namespace }}. It needs more workers, or shorter reconciles.",
    },
    Alert {
        name: "OperatorCacheStale", severity: Severity::Warning, hold: "5m",
        expr: "max by (namespace, job, kind, cluster) (rbuilder_cache_seconds_since_contact{JOB}) > 300",
        summary: "A cache of the operator receives nothing from the API server.",
        description: "The cache of {{ $labels.kind }}{{ if $labels.cluster }} of the cluster {{ $labels.cluster }}{{ end }} in {{ $labels.namespace }} has received neither an event nor a bookmark for {{ $value | humanizeDuration }}, so the operator may act on old objects.",
    },
    Alert {
        name: "OperatorWatchErrors", severity: Severity::Warning, hold: "15m",
        expr: "sum by (namespace, job, kind, cluster) (increase(rbuilder_cache_watch_errors_total{JOB}[15m])) > 5",
        summary: "Lists and watches of the operator fail.",
        description: "{{ $value | humanize }} lists and watches of {{ $labels.kind }}{{ if $labels.cluster }} of the cluster {{ $labels.cluster }}{{ end }} in {{ $labels.namespace }} failed in 15 minutes. The log of the operator has the reason; often a permission is missing.",
    },
    Alert {
        name: "OperatorUndecodableObjects", severity: Severity::Warning, hold: "15m",
        expr: "max by (namespace, job, kind, cluster) (rbuilder_undecodable_objects{JOB}) > 0",
        summary: "Stored objects do not fit their Rust type.",
        description: "{{ $value | humanize }} objects of the kind {{ $labels.kind }}{{ if $labels.cluster }} of the cluster {{ $labels.cluster }}{{ end }} cannot be decoded and are left out. The log of the operator in {{ $labels.namespace }} names them and the field.",
    },
    Alert {
        name: "OperatorClusterLost", severity: Severity::Warning, hold: "10m",
        // Every instance has its own connection, and the disconnected one may be the leader.
        expr: "min by (namespace, job, cluster) (rbuilder_cluster_connected{JOB}) == 0",
        summary: "Another cluster does not answer the operator.",
        description: "An instance of the operator in {{ $labels.namespace }} has not been connected to the cluster {{ $labels.cluster }} for ten minutes, so the objects there may be out of date. The log of the operator has the reason.",
    },
    Alert {
        name: "OperatorApiErrors", severity: Severity::Warning, hold: "15m",
        expr: "namespace_job:rest_client_request_errors:ratio_rate5m{JOB} > 0.1",
        summary: "Many requests of the operator to the API server fail.",
        description: "{{ $value | humanizePercentage }} of the requests of the operator in {{ $labels.namespace }} have no response, are forbidden or throttled, or fail in the API server.",
    },
    Alert {
        name: "OperatorWebhookErrors", severity: Severity::Critical, hold: "10m",
        expr: "namespace_job_webhook:controller_runtime_webhook_request_errors:ratio_rate5m{JOB} > 0.05",
        summary: "Requests of a webhook fail, and with them requests of users.",
        description: "{{ $value | humanizePercentage }} of the requests of the webhook {{ $labels.webhook }} in {{ $labels.namespace }} fail. With the failure policy Fail, so do the requests of users.",
    },
    Alert {
        // Don't fire for a single failed write. A failed list is retried, so it does fire.
        name: "OperatorConversionFailures", severity: Severity::Critical, hold: "10m",
        expr: "sum by (namespace, job) (increase(rbuilder_conversion_reviews_total{JOB, result=\"failure\"}[5m])) > 0",
        summary: "Objects cannot be converted between the versions of their kind.",
        description: "The operator in {{ $labels.namespace }} keeps failing to convert objects. Lists and watches of their kind fail in the other version, for everybody. Its log names the object and the field.",
    },
    Alert {
        name: "OperatorWebhookPanics", severity: Severity::Warning, hold: "1m",
        expr: "sum by (namespace, job) (increase(controller_runtime_webhook_panics_total{JOB}[15m]) + increase(controller_runtime_conversion_webhook_panics_total{JOB}[15m])) > 0",
        summary: "Webhooks of the operator panic.",
        description: "Webhooks of the operator in {{ $labels.namespace }} panic: a defect of the operator. Its log has the message.",
    },
    Alert {
        name: "OperatorCertificateErrors", severity: Severity::Warning, hold: "15m",
        expr: "sum by (namespace, job) (increase(certwatcher_read_certificate_errors_total{JOB}[15m])) > 0",
        summary: "The operator cannot renew or reload its certificate.",
        description: "The operator in {{ $labels.namespace }} fails to read its certificate files, or to maintain the certificate that it issues, and serves the current one until it expires. Its log has the reason.",
    },
];

pub(super) fn make_rules(project: &str, job: &str) -> Value {
    // In a chart, the release name may precede the project name.
    let job = format!("job=~\"(.+-)?{job}\"");
    let expr = |expr: &str| expr.replace("JOB", &job);
    let records = RECORDS
        .iter()
        .map(|(name, rule)| json!({ "record": name, "expr": expr(rule) }));
    let alerts = ALERTS.iter().map(|alert| {
        json!({
            "alert": alert.name,
            "expr": expr(alert.expr),
            "for": alert.hold,
            "labels": { "severity": alert.severity.label(), "operator": project },
            "annotations": { "summary": alert.summary, "description": alert.description },
        })
    });
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "labels": {
                "control-plane": "controller-manager",
                "app.kubernetes.io/name": project,
                "app.kubernetes.io/managed-by": "kustomize",
            },
            "name": "controller-manager-rules",
            "namespace": "system",
        },
        "spec": {
            "groups": [
                { "name": format!("{project}.records"), "rules": records.collect::<Vec<_>>() },
                { "name": format!("{project}.alerts"), "rules": alerts.collect::<Vec<_>>() },
            ],
        },
    })
}
