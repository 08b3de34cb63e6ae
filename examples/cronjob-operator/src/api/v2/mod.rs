// SPDX-License-Identifier: Apache-2.0

//! Version v2 of the batch.tutorial.kubebuilder.io API group.

mod cron_job;
mod cron_job_conversion;

pub use cron_job::*;
