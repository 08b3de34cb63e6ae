// SPDX-License-Identifier: Apache-2.0

//! Version v1 of the batch.tutorial.kubebuilder.io API group.

mod cron_job;

pub use cron_job::*;
