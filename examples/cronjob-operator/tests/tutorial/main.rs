// SPDX-License-Identifier: Apache-2.0

//! The promises of the CronJob tutorial, each a test against a real API server.
//!
//! | promise | tests |
//! |---|---|
//! | 1. A new object is first `Progressing=Unknown`; its Jobs are found by an index of their controller | `status::a_new_cron_job_first_says_that_nothing_is_known`, `status::only_the_jobs_of_this_very_cron_job_count` |
//! | 2. The status lists the unfinished Jobs and the newest schedule time | `status::the_status_lists_unfinished_jobs_and_the_newest_schedule_time` |
//! | 3. A due run is a Job with the name, annotations, labels and owner that it should have, created once | `runs::a_due_run_becomes_one_job`, `runs::a_run_is_created_once_whatever_the_cache_shows`, `runs::a_run_is_not_repeated_when_its_job_is_deleted` |
//! | 4. Forbid, Replace and Allow | `runs::forbid_waits_for_the_run_that_is_not_finished`, `runs::replace_deletes_the_run_that_is_not_finished`, `runs::allow_runs_both` |
//! | 5. Nothing is started while suspended | `runs::nothing_is_started_while_suspended` |
//! | 6. An invalid schedule is said, and not tried again | `runs::an_invalid_schedule_is_said_and_waits_for_a_change` |
//! | 7. A run past its deadline is skipped; too many missed runs are an error | `runs::a_run_past_its_deadline_is_skipped`, `runs::too_many_missed_runs_are_an_error_until_a_deadline_is_set` |
//! | 8. Of the finished Jobs, the newest are kept | `history::the_newest_finished_jobs_are_kept` |
//! | 9. The conditions | `status::conditions_follow_the_jobs`, `status::a_created_job_is_said`, `status::a_job_that_cannot_be_created_is_said_and_forgotten_when_it_can` |
//! | 10. The next look is at the next run | `runs::the_next_look_is_when_the_next_run_is_due`, `runs::a_run_starts_when_its_minute_comes` |
//! | 11. Defaults | `webhooks::what_is_left_open_is_filled_in` |
//! | 12. Validation | `webhooks::mistakes_are_refused_with_their_fields` |
//! | 13. Two versions, converted | `tests/versions.rs` |
//! | 14. The operator runs in the test's process, without metrics | `status::a_job_with_active_pods_is_listed`, and all others |
//! | On controllers and nodes, Jobs complete and the newest are kept | `cluster::jobs_complete_and_the_newest_are_kept` |
//!
//! The clock of the operator is the test's ([`support::Hands`]); that of the API server is real.

mod cluster;
mod history;
mod rights;
mod runs;
mod status;
mod support;
mod webhooks;
