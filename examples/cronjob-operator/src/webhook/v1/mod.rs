// SPDX-License-Identifier: Apache-2.0

//! Webhooks of version v1 of the batch.tutorial.kubebuilder.io API group.

pub mod cron_job;
