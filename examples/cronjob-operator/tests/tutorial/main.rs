// SPDX-License-Identifier: Apache-2.0

//! What the CronJob tutorial promises, each promise with tests on a real API server.
//!
//! | promise | tests |
//! |---|---|
//! | 1. A new object is `Progressing=Unknown` first; its Jobs are found through an index of their controller | `status::new_cron_job_is_unknown_first`, `status::only_jobs_of_the_same_cron_job_count` |
//! | 2. The status lists the unfinished Jobs and the newest schedule time | `status::status_lists_unfinished_jobs_and_the_newest_schedule_time` |
//! | 3. A due run becomes one Job with the expected name, annotations, labels and owner | `runs::due_run_becomes_one_job`, `runs::run_is_created_once_with_a_lagging_cache`, `runs::run_is_not_repeated_when_its_job_is_deleted` |
//! | 4. Forbid, Replace and Allow | `runs::forbid_waits_for_the_unfinished_run`, `runs::replace_deletes_the_unfinished_run`, `runs::allow_runs_both` |
//! | 5. Nothing starts while suspended | `runs::nothing_starts_while_suspended` |
//! | 6. An invalid schedule is reported and not retried | `runs::invalid_schedule_is_reported_and_waits_for_a_change` |
//! | 7. A run after its deadline is skipped; too many missed runs are an error | `runs::run_after_its_deadline_is_skipped`, `runs::too_many_missed_runs_are_an_error_until_a_deadline_is_set` |
//! | 8. The newest finished Jobs are kept | `history::newest_finished_jobs_are_kept` |
//! | 9. The conditions | `status::conditions_follow_the_jobs`, `status::created_job_is_reported`, `status::rejected_job_is_reported_until_it_is_created` |
//! | 10. The next reconcile is at the next run | `runs::requeue_is_at_the_next_run`, `runs::run_starts_at_its_minute` |
//! | 11. Defaults | `webhooks::omitted_fields_are_defaulted` |
//! | 12. Validation | `webhooks::invalid_fields_are_named` |
//! | 13. Two versions, converted | `tests/versions.rs` |
//! | 14. The operator runs in the process of the test, without metrics | `status::job_with_active_pods_is_listed`, and all others |
//! | On controllers and nodes, Jobs complete and the newest are kept | `cluster::jobs_complete_and_the_newest_are_kept` |
//!
//! Tests control the clock of the operator ([`support::Hands`]). The API server uses the real one.

mod cluster;
mod history;
mod rights;
mod runs;
mod status;
mod support;
mod webhooks;
