// SPDX-License-Identifier: Apache-2.0

//! Version v1 of batch.tutorial.kubebuilder.io.

mod cron_job;

pub use cron_job::*;
