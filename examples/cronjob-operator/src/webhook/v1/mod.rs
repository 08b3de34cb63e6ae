// SPDX-License-Identifier: Apache-2.0

//! Webhooks about version v1 of batch.tutorial.kubebuilder.io.

pub mod cron_job;
