// SPDX-License-Identifier: Apache-2.0

//! CronJob in version v1 of batch.tutorial.kubebuilder.io: the version that is stored, and that every other one is
//! converted to and from.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// CronJobSpec defines the desired state of CronJob.
#[allow(
    clippy::duplicated_attributes,
    reason = "two columns of one type are no duplicate"
)]
#[derive(CustomResource, CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v1",
    kind = "CronJob",
    plural = "cronjobs",
    doc = "CronJob runs Jobs at the times of a schedule.",
    namespaced,
    status = "CronJobStatus",
    derive = "PartialEq",
    printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend"),
    printcolumn(
        name = "Last Schedule",
        type_ = "date",
        json_path = ".status.lastScheduleTime"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[crd(conversion, max_description_length = 0)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When to run, in UTC: minute, hour, day of month, month and day of week, as in a crontab, or a shorthand such as
    /// `@hourly`.
    pub schedule: String,

    /// For how many seconds after its time a run may still be started. Without it, late runs are started however late
    /// it is.
    #[kube(validation(minimum = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<i64>,

    /// What happens when a run is due while an earlier one is not finished.
    #[kube(default = "Allow")]
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,

    /// Whether no runs are started for now. Those that have been started go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,

    /// The Job that each run creates.
    #[kube(embedded_object_meta)]
    pub job_template: JobTemplateSpec,

    /// How many successful runs are kept to look at; all of them when absent.
    #[kube(validation(minimum = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<i32>,

    /// How many failed runs are kept to look at; all of them when absent.
    #[kube(validation(minimum = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<i32>,
}

/// ConcurrencyPolicy says how a run that is due meets one that is not finished.
#[derive(CrdSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    /// Runs go on beside each other.
    #[default]
    Allow,
    /// The new run waits until the other one has finished.
    Forbid,
    /// The new run takes the place of the other one, which is deleted.
    Replace,
}

/// CronJobStatus defines the observed state of CronJob.
#[derive(CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// The Jobs that are not finished; the newest ones, where there are more than the list may hold.
    #[kube(list_type = "atomic", validation(min_items = 1, max_items = 10))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ObjectReference>,

    /// The scheduled time of the newest run that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,

    /// How it is doing: `Available`, `Progressing` and `Degraded`.
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
