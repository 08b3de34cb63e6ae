// SPDX-License-Identifier: Apache-2.0

//! CronJob in version v2 of batch.tutorial.kubebuilder.io: a schedule whose fields have names.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

// What v2 does not change is v1's.
use crate::api::v1::{ConcurrencyPolicy, CronJobStatus};

/// CronJobSpec defines the desired state of CronJob.
#[allow(
    clippy::duplicated_attributes,
    reason = "two columns of one type are no duplicate"
)]
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
    /// When to run, in UTC: at every minute that all fields allow.
    pub schedule: CronSchedule,

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

/// CronSchedule says when to run, one field for each unit of time.
#[derive(CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronSchedule {
    /// Minutes of the hour, 0 to 59.
    #[kube(default = "*")]
    #[serde(default)]
    pub minute: CronField,

    /// Hours of the day, 0 to 23.
    #[kube(default = "*")]
    #[serde(default)]
    pub hour: CronField,

    /// Days of the month, 1 to 31.
    #[kube(default = "*")]
    #[serde(default)]
    pub day_of_month: CronField,

    /// Months of the year, 1 to 12 or `JAN` to `DEC`.
    #[kube(default = "*")]
    #[serde(default)]
    pub month: CronField,

    /// Days of the week, 0 to 7 or `SUN` to `SAT`; 0 and 7 are Sunday.
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
