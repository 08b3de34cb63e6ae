// SPDX-License-Identifier: Apache-2.0

//! Version v2 of batch.tutorial.kubebuilder.io.

mod conversion;
mod cron_job;

pub use cron_job::*;
