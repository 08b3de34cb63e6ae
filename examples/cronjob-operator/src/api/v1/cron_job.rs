// SPDX-License-Identifier: Apache-2.0

//! The CronJob API in version v1 of the batch.tutorial.kubebuilder.io group: the storage version and the hub of
//! conversions.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// CronJobSpec defines the desired state of CronJob.
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
    /// schedule is the time of runs in UTC, in cron format (minute, hour, day of month, month, day of week) or as a
    /// shorthand such as `@hourly`.
    pub schedule: String,

    /// startingDeadlineSeconds is the number of seconds after its time until which a run may be started. No limit when
    /// absent.
    #[kube(validation(minimum = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<i64>,

    /// concurrencyPolicy describes how to treat a run that is due while another has not finished. Defaults to Allow.
    #[kube(default = "Allow")]
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,

    /// suspend stops new runs; runs that have started continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,

    /// jobTemplate is the template of the Job of each run.
    #[kube(embedded_object_meta)]
    pub job_template: JobTemplateSpec,

    /// successfulJobsHistoryLimit is the number of successful Jobs to keep. All of them when absent.
    #[kube(validation(minimum = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<i32>,

    /// failedJobsHistoryLimit is the number of failed Jobs to keep. All of them when absent.
    #[kube(validation(minimum = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<i32>,
}

/// ConcurrencyPolicy describes how a run that is due treats a run that has not finished.
#[derive(CrdSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    /// Runs may overlap.
    #[default]
    Allow,
    /// The new run waits until the active one has finished.
    Forbid,
    /// The new run replaces the active one, which is deleted.
    Replace,
}

/// CronJobStatus defines the observed state of CronJob.
#[derive(CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// active are the Jobs that have not finished, at most the newest 10.
    #[kube(list_type = "atomic", validation(min_items = 1, max_items = 10))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ObjectReference>,

    /// lastScheduleTime is the scheduled time of the newest run that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,

    /// conditions represent the current state of the CronJob resource: Available, Progressing and Degraded.
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
