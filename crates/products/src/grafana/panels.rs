//! The panels of the dashboards and their queries, one entry per panel.
//!
//! Every query is limited to the instances selected by the dashboard's variables. Rates use
//! Grafana's own interval, which suits any resolution and scrape interval.

use super::dashboard::{Panel, Query, Section};

/// Reconciles, queues, leader election, shards, caches and webhooks.
#[rustfmt::skip]
pub(super) const RUNTIME: &[Section] = &[
    Section { title: "Reconciles", panels: &[
        Panel {
            title: "Reconciles by result",
            description: "Reconciles per second of each controller, by result. `requeue_after` is the normal result of a controller that polls.",
            unit: "ops", width: 8,
            queries: &[
                Query("sum by (controller, result) (rate(controller_runtime_reconcile_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{controller}} {{result}}"),
            ],
        },
        Panel {
            title: "Ratio of errors",
            description: "Share of the reconciles that end in an error.",
            unit: "percentunit", width: 8,
            queries: &[
                Query("sum by (controller) (rate(controller_runtime_reconcile_errors_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])) / sum by (controller) (rate(controller_runtime_reconcile_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{controller}}"),
            ],
        },
        Panel {
            title: "Terminal errors, panics and timeouts",
            description: "Reconciles per second that end in a terminal error, which is not retried, in a panic, or at the timeout.",
            unit: "ops", width: 8,
            queries: &[
                Query("sum by (controller) (rate(controller_runtime_terminal_reconcile_errors_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{controller}} terminal"),
                Query("sum by (controller) (rate(controller_runtime_reconcile_panics_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{controller}} panic"),
                Query("sum by (controller) (rate(controller_runtime_reconcile_timeouts_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{controller}} timeout"),
            ],
        },
        Panel {
            title: "Duration of reconciles",
            description: "Quantiles of the time that a reconcile takes.",
            unit: "s", width: 12,
            queries: &[
                Query("histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p50"),
                Query("histogram_quantile(0.9, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p90"),
                Query("histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p99"),
            ],
        },
        Panel {
            title: "Busy workers",
            description: "Reconciles in progress, and the most that a controller runs at once. A controller that is at its limit for long needs more workers.",
            unit: "short", width: 12,
            queries: &[
                Query("sum by (controller) (controller_runtime_active_workers{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{controller}} active"),
                Query("max by (controller) (controller_runtime_max_concurrent_reconciles{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{controller}} maximum"),
            ],
        },
    ] },
    Section { title: "Work queues", panels: &[
        Panel {
            title: "Depth",
            description: "Objects that wait for a worker, by priority. Objects that were requeued with a delay do not wait yet.",
            unit: "short", width: 8,
            queries: &[
                Query("sum by (controller, priority) (workqueue_depth{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{controller}} priority {{priority}}"),
            ],
        },
        Panel {
            title: "Adds and retries",
            description: "Objects added to the queue per second, and those added with a delay, after an error or to be requeued.",
            unit: "ops", width: 8,
            queries: &[
                Query("sum by (controller) (rate(workqueue_adds_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{controller}} adds"),
                Query("sum by (controller) (rate(workqueue_retries_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{controller}} retries"),
            ],
        },
        Panel {
            title: "Time in the queue",
            description: "Quantiles of the time that an object waits for a worker. The buckets are powers of ten, so values between are estimates.",
            unit: "s", width: 8,
            queries: &[
                Query("histogram_quantile(0.5, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p50"),
                Query("histogram_quantile(0.9, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p90"),
                Query("histogram_quantile(0.99, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p99"),
            ],
        },
        Panel {
            title: "Time of processing",
            description: "Quantiles of the time that a worker takes for an object.",
            unit: "s", width: 12,
            queries: &[
                Query("histogram_quantile(0.5, sum by (controller, le) (rate(workqueue_work_duration_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p50"),
                Query("histogram_quantile(0.9, sum by (controller, le) (rate(workqueue_work_duration_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p90"),
                Query("histogram_quantile(0.99, sum by (controller, le) (rate(workqueue_work_duration_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{controller}} p99"),
            ],
        },
        Panel {
            title: "Work in progress",
            description: "Age of the oldest reconcile in progress, and the sum of the ages of all. A line that rises steadily is a reconcile that is stuck.",
            unit: "s", width: 12,
            queries: &[
                Query("max by (controller) (workqueue_longest_running_processor_seconds{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{controller}} longest"),
                Query("sum by (controller) (workqueue_unfinished_work_seconds{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{controller}} unfinished"),
            ],
        },
    ] },
    Section { title: "Leader election and the API server", panels: &[
        Panel {
            title: "Leader",
            description: "1 for the instance that holds the lease. The sum over the instances is 1, or briefly 0 when the lease changes hands.",
            unit: "short", width: 8,
            queries: &[
                Query("max by (instance, name) (leader_election_master_status{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}} {{name}}"),
            ],
        },
        Panel {
            title: "Requests by code",
            description: "Requests to the API server per second, by status code. `<error>` stands for no response.",
            unit: "reqps", width: 8,
            queries: &[
                Query("sum by (code, method) (rate(rest_client_requests_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{method}} {{code}}"),
            ],
        },
        Panel {
            title: "Events that were dropped",
            description: "Kubernetes events per second that were not sent because an object had too many or the queue was full.",
            unit: "ops", width: 8,
            queries: &[
                Query("sum by (controller) (rate(rbuilder_events_dropped_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{controller}}"),
            ],
        },
    ] },
    Section { title: "Shards", panels: &[
        Panel {
            title: "Ranges of each replica",
            description: "Ranges of objects that a replica works on, and those that it is giving up. All replicas have the same number, give or take one.",
            unit: "short", width: 6,
            queries: &[
                Query("sum by (instance, state) (rbuilder_shard_ranges{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}} {{state}}"),
            ],
        },
        Panel {
            title: "Replicas, and ranges without an owner",
            description: "Live replicas that share the objects, and ranges whose objects no replica reconciles. There are such ranges for some seconds when replicas stop, and for 20 when one crashes.",
            unit: "short", width: 6,
            queries: &[
                Query("max by (namespace) (rbuilder_shard_replicas{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "replicas"),
                Query("max by (namespace) (rbuilder_shard_unowned_ranges{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "without an owner"),
            ],
        },
        Panel {
            title: "Moves",
            description: "Ranges that a replica acquires and releases, per second. It is zero unless replicas come and go.",
            unit: "ops", width: 6,
            queries: &[
                Query("sum by (instance, direction) (rate(rbuilder_shard_moves_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{instance}} {{direction}}"),
            ],
        },
        Panel {
            title: "Objects of other replicas",
            description: "Objects per second that a replica received and dropped because another one has them. Zero if the API server selects by shard. Owned objects are not counted.",
            unit: "ops", width: 6,
            queries: &[
                Query("sum by (kind, content, selection, cluster) (rate(rbuilder_shard_filtered_objects_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{kind}} {{content}} {{selection}} {{cluster}}"),
            ],
        },
    ] },
    Section { title: "Caches", panels: &[
        Panel {
            title: "Objects",
            description: "Objects in the caches, by kind. In this section, names include the cluster unless it is the manager's own.",
            unit: "short", width: 8,
            queries: &[
                Query("max by (kind, content, selection, cluster) (rbuilder_cache_objects{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{kind}} {{content}} {{selection}} {{cluster}}"),
            ],
        },
        Panel {
            title: "Size",
            description: "Size of the cached objects as JSON, as received from the API server.",
            unit: "bytes", width: 8,
            queries: &[
                Query("max by (kind, content, selection, cluster) (rbuilder_cache_bytes{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{kind}} {{content}} {{selection}} {{cluster}}"),
            ],
        },
        Panel {
            title: "Time since the last contact",
            description: "Time since the watch of a cache received an event or a bookmark, which comes about every minute.",
            unit: "s", width: 8,
            queries: &[
                Query("max by (kind, content, selection, cluster) (rbuilder_cache_seconds_since_contact{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{kind}} {{content}} {{selection}} {{cluster}}"),
            ],
        },
        Panel {
            title: "Relists and watch errors",
            description: "Lists of all objects again, and lists and watches that failed, per second.",
            unit: "ops", width: 8,
            queries: &[
                Query("sum by (kind, cluster) (rate(rbuilder_cache_relists_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{kind}} {{cluster}} relists"),
                Query("sum by (kind, cluster) (rate(rbuilder_cache_watch_errors_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{kind}} {{cluster}} errors"),
            ],
        },
        Panel {
            title: "Own writes not seen yet",
            description: "Objects that this process wrote and that the watch has not delivered yet.",
            unit: "short", width: 8,
            queries: &[
                Query("sum by (kind, cluster) (rbuilder_cache_own_writes{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{kind}} {{cluster}}"),
            ],
        },
        Panel {
            title: "Objects that cannot be decoded",
            description: "Stored objects that do not fit their Rust type and are left out, by kind.",
            unit: "short", width: 8,
            queries: &[
                Query("max by (kind, cluster) (rbuilder_undecodable_objects{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{kind}} {{cluster}}"),
            ],
        },
        Panel {
            title: "Other clusters",
            description: "1 if another cluster has answered the last request of the instance, 0 if not.",
            unit: "short", width: 24,
            queries: &[
                Query("min by (instance, cluster) (rbuilder_cluster_connected{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}} {{cluster}}"),
            ],
        },
    ] },
    Section { title: "Webhooks and certificates", panels: &[
        Panel {
            title: "Requests by code",
            description: "Webhook requests per second, by path and HTTP status code. A denied request has the code 200.",
            unit: "reqps", width: 8,
            queries: &[
                Query("sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{webhook}} {{code}}"),
            ],
        },
        Panel {
            title: "Latency",
            description: "Quantiles of the time that a webhook takes, during which the API server and its client wait.",
            unit: "s", width: 8,
            queries: &[
                Query("histogram_quantile(0.5, sum by (webhook, le) (rate(controller_runtime_webhook_latency_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{webhook}} p50"),
                Query("histogram_quantile(0.9, sum by (webhook, le) (rate(controller_runtime_webhook_latency_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{webhook}} p90"),
                Query("histogram_quantile(0.99, sum by (webhook, le) (rate(controller_runtime_webhook_latency_seconds_bucket{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval])))", "{{webhook}} p99"),
            ],
        },
        Panel {
            title: "Requests in flight",
            description: "Webhook requests that are being served.",
            unit: "short", width: 8,
            queries: &[
                Query("sum by (webhook) (controller_runtime_webhook_requests_in_flight{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{webhook}}"),
            ],
        },
        Panel {
            title: "Conversion reviews",
            description: "Conversion reviews per second, by result. Their HTTP status is 200 also if an object cannot be converted.",
            unit: "ops", width: 8,
            queries: &[
                Query("sum by (result) (rate(rbuilder_conversion_reviews_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{result}}"),
            ],
        },
        Panel {
            title: "Panics",
            description: "Panics in admission and conversion webhooks, per second.",
            unit: "ops", width: 8,
            queries: &[
                Query("sum by (instance) (rate(controller_runtime_webhook_panics_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{instance}} admission"),
                Query("sum by (instance) (rate(controller_runtime_conversion_webhook_panics_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{instance}} conversion"),
            ],
        },
        Panel {
            title: "Reads of certificates",
            description: "Reads of the certificate per second, from files or from the Secret of the manager, and those that failed, after which the current one is served.",
            unit: "ops", width: 8,
            queries: &[
                Query("sum by (instance) (rate(certwatcher_read_certificate_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{instance}} reads"),
                Query("sum by (instance) (rate(certwatcher_read_certificate_errors_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{instance}} errors"),
            ],
        },
    ] },
];

/// The process and the Tokio runtime.
#[rustfmt::skip]
pub(super) const RESOURCES: &[Section] = &[
    Section { title: "Process", panels: &[
        Panel {
            title: "CPU",
            description: "CPU time per second of each instance: 1 is one core.",
            unit: "short", width: 12,
            queries: &[
                Query("sum by (instance) (rate(process_cpu_seconds_total{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"}[$__rate_interval]))", "{{instance}}"),
            ],
        },
        Panel {
            title: "Memory",
            description: "Resident memory of each instance.",
            unit: "bytes", width: 12,
            queries: &[
                Query("sum by (instance) (process_resident_memory_bytes{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}}"),
            ],
        },
        Panel {
            title: "Virtual memory",
            description: "Virtual memory of each instance.",
            unit: "bytes", width: 8,
            queries: &[
                Query("sum by (instance) (process_virtual_memory_bytes{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}}"),
            ],
        },
        Panel {
            title: "File descriptors",
            description: "Open file descriptors, and the most that the process can open.",
            unit: "short", width: 8,
            queries: &[
                Query("sum by (instance) (process_open_fds{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}} open"),
                Query("sum by (instance) (process_max_fds{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}} maximum"),
            ],
        },
        Panel {
            title: "Uptime",
            description: "Time since the process started. A line that falls to zero is a restart.",
            unit: "s", width: 8,
            queries: &[
                Query("time() - sum by (instance) (process_start_time_seconds{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}}"),
            ],
        },
    ] },
    Section { title: "Tokio runtime", panels: &[
        Panel {
            title: "Threads",
            description: "Threads of the process, and worker threads of the Tokio runtime among them.",
            unit: "short", width: 8,
            queries: &[
                Query("sum by (instance) (process_threads{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}} threads"),
                Query("sum by (instance) (tokio_workers{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}} workers"),
            ],
        },
        Panel {
            title: "Tasks",
            description: "Tasks that are alive. A line that rises steadily is a leak.",
            unit: "short", width: 8,
            queries: &[
                Query("sum by (instance) (tokio_alive_tasks{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}}"),
            ],
        },
        Panel {
            title: "Global queue",
            description: "Tasks that wait in the global queue of the runtime. It is almost always empty, unless tasks block the workers.",
            unit: "short", width: 8,
            queries: &[
                Query("sum by (instance) (tokio_global_queue_depth{job=\"$job\", namespace=\"$namespace\", instance=~\"$instance\"})", "{{instance}}"),
            ],
        },
    ] },
];
