// SPDX-License-Identifier: Apache-2.0

//! The CronJob API in version v2 of the batch.tutorial.kubebuilder.io group: a schedule with named fields.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

// Types that v2 does not change are those of v1.
use crate::api::v1::{ConcurrencyPolicy, CronJobStatus};

/// CronJobSpec defines the desired state of CronJob.
#[derive(CustomResource, CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v2",
    kind = "CronJob",
    plural = "cronjobs",
    doc = "CronJob runs Jobs at the times of a schedule.",
    namespaced,
    storage = false,
    status = "CronJobStatus",
    derive = "PartialEq",
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
#[crd(max_description_length = 0)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// schedule is the time of runs in UTC: every minute that matches all fields.
    pub schedule: CronSchedule,

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

/// CronSchedule is a schedule with a field for each unit of time.
#[derive(CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronSchedule {
    /// minute of the hour, 0 to 59.
    #[kube(default = "*")]
    #[serde(default)]
    pub minute: CronField,

    /// hour of the day, 0 to 23.
    #[kube(default = "*")]
    #[serde(default)]
    pub hour: CronField,

    /// dayOfMonth, 1 to 31.
    #[kube(default = "*")]
    #[serde(default)]
    pub day_of_month: CronField,

    /// month of the year, 1 to 12 or JAN to DEC.
    #[kube(default = "*")]
    #[serde(default)]
    pub month: CronField,

    /// dayOfWeek, 0 to 7 or SUN to SAT; 0 and 7 are Sunday.
    #[kube(default = "*")]
    #[serde(default)]
    pub day_of_week: CronField,
}

/// CronField is one field of a crontab line: `*` for all, a value, a range `1-5`, a step `*/15`, or a list of these with
/// commas.
#[derive(CrdSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[crd(validation(pattern = r"^[^\s@]+$"))]
pub struct CronField(pub String);

impl Default for CronField {
    fn default() -> Self {
        Self("*".to_owned())
    }
}
