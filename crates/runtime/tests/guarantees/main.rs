//! Guarantees of the runtime, along with the tests that prove them.
//!
//! Users of controller-runtime rely on each of these. The third column contains a file in this
//! crate, and the name of a test. The table is checked by `every_listed_test_exists`. Tests which
//! need an API server are ignored unless `KUBEBUILDER_ASSETS` is set.
//!
//! | | guarantee | proved by |
//! |---|---|---|
//! | 1 | one worker per key at a time | `src/queue/tests.rs: many_workers_never_share_a_key_and_lose_none`, `tests/controllers/reconciling.rs: object_is_never_reconciled_concurrently` |
//! | 1 | a key being processed is not handed out, and becomes ready once if it was added meanwhile | `src/queue/tests.rs: key_added_while_processing_comes_out_once_after_done`, `src/queue/model.rs: queue_behaves_like_the_model` |
//! | 2 | a key added repeatedly is processed once | `src/queue/tests.rs: key_added_repeatedly_comes_out_once` |
//! | 2 | the earliest of several delays counts, and the highest of several priorities | `src/queue/tests.rs: delayed_key_keeps_its_earliest_time`, `src/queue/tests.rs: higher_priority_first_and_adding_again_keeps_the_highest`, `src/queue/tests.rs: immediate_add_overrides_a_delay_even_while_processing` |
//! | 3 | first in, first out; higher priority first | `src/queue/tests.rs: keys_come_out_in_the_order_they_were_added`, `src/queue/tests.rs: higher_priority_first_and_adding_again_keeps_the_highest` |
//! | 3 | low priority is not starved | `src/queue/tests.rs: waiting_makes_up_for_low_priority`, `src/queue/model.rs: low_priority_key_is_not_starved` |
//! | 4 | workers start when every cache is synced and every handler has received the existing objects | `tests/controllers/reconciling.rs: workers_start_when_all_caches_are_synced` |
//! | 5 | errors back off per object, until it succeeds | `src/queue/tests.rs: failures_back_off_per_key_and_success_resets`, `src/queue/model.rs: queue_behaves_like_the_model` |
//! | 5 | terminal errors wait for a change | `tests/controllers/reconciling.rs: terminal_errors_wait_for_a_change` |
//! | 5 | an error and a requeue are mutually exclusive | by type: `Result<Action, Error>` |
//! | 6 | a panic is an error of its object: it is counted and retried, and other objects are not affected | `tests/guarantees/panics.rs: panic_is_counted_and_others_are_reconciled`, `tests/controllers/reconciling.rs: panic_does_not_affect_other_objects` |
//! | 6 | if configured, a panic stops the manager | `tests/guarantees/panics.rs: panic_stops_the_manager_if_configured` |
//! | 7 | a reconcile that exceeds the timeout is cancelled, counted and retried | `tests/controllers/reconciling.rs: reconcile_that_times_out_is_cancelled_and_retried`, `tests/metrics/main.rs: metrics_are_counted_and_require_permission` |
//! | 8 | a cache that does not sync in time is an error with the last error of the watch | `tests/controllers/reconciling.rs: missing_crd_is_an_error_that_names_the_kind` |
//! | 8 | until then, the manager waits for a missing CRD | `tests/controllers/caches.rs: operator_waits_for_a_missing_crd` |
//! | 8 | a manager can be started only once | `src/manager/start.rs: compile_fail,E0382` |
//! | 9 | the lease is released only after the work it protects has finished | `tests/process.rs: first_signal_lets_reconciles_finish` |
//! | 9 | there is no grace period after the lease is lost | `tests/process.rs: leader_that_loses_its_lease_exits_with_an_error`, `src/leader_election/tests.rs: leader_without_responses_gives_up_before_its_lease_expires` |
//! | 9 | nothing is reconciled and no write is sent without the lease | `src/leader_election/fenced_client.rs: writes_are_sent_only_while_the_lease_is_held`, `src/controller/worker/tests.rs: worker_without_the_lease_returns_its_key_and_takes_no_more`, `tests/process/fencing.rs: leader_suspended_beyond_its_lease_writes_nothing_after_resuming`, `tests/process/fencing.rs: unstoppable_reconcile_writes_nothing_after_a_partition` |
//! | 9 | a process that has lost its lease ends, whatever blocks it | `tests/process/fencing.rs: process_that_cannot_stop_exits_a_second_after_losing_its_lease` |
//! | 9 | reconciles do not delay renewals | `tests/process/fencing.rs: blocked_thread_does_not_lose_the_lease` |
//! | 9 | the wall clock decides nothing | `src/leader_election/tests.rs: wall_clock_jumps_do_not_matter` |
//! | 9 | a manager that is not the leader stops without acquiring the lease | `tests/guarantees/leading.rs: stopped_candidate_does_not_acquire_the_lease` |
//! | 9 | a released lease has no holder, and is taken within a retry period and its jitter | `src/leader_election/tests.rs: released_lease_is_free_at_once`, `tests/guarantees/leading.rs: released_lease_is_acquired_within_a_retry_period_and_jitter`, `tests/controllers/reconciling.rs: standby_takes_over_when_the_leader_stops` |
//! | 10 | nothing can be added to a manager that is running or stopping | `src/manager/start.rs: compile_fail,E0382`, `tests/guarantees/late_watches.rs: invalid_late_watches_are_refused` |
//! | 10 | a component that hangs is cancelled after the grace period, with an error that names it | `src/phase.rs: hanging_task_is_cancelled_and_named_after_the_grace_period`, `tests/controllers/reconciling.rs: hanging_reconcile_is_cancelled_after_the_grace_period` |
//! | 10 | a clean shutdown is not an error | `tests/controllers/reconciling.rs: stopping_lets_reconciles_finish`, `src/phase.rs: tasks_may_exit_within_the_grace_period` |
//! | 11 | no reconcile is left behind | `tests/controllers/reconciling.rs: hanging_reconcile_is_cancelled_after_the_grace_period` |
//! | 11 | no task, file, thread or connection is left behind, however the manager stops | `tests/leaks.rs: stopped_managers_leak_nothing` |
//! | 12 | webhooks are served before caches sync, and caches are synced before the manager is ready | `tests/guarantees/starting.rs: manager_that_converts_its_own_kind_starts`, `tests/webhooks.rs: operator_starts_with_stored_objects_of_the_other_version` |
//! | 13 | metrics exist from the start, with value zero | `src/metrics/tests.rs: names_types_and_labels_match_controller_runtime_and_start_at_zero` |
//! | 13 | a port in use is an error that names the address | `tests/metrics/main.rs: error_about_used_port_names_the_address`, `src/server/tests.rs: bind_error_names_the_address`, `tests/process.rs: startup_error_is_printed_on_one_line` |
//! | 13 | a failing check is a 500 | `src/probes.rs: endpoint_runs_all_its_checks` |
//! | 13 | liveness does not depend on caches | `tests/guarantees/starting.rs: manager_with_unsynced_caches_is_live_but_not_ready`, `tests/controllers/reconciling.rs: manager_is_live_before_it_is_ready` |
//! | 14 | creations and changes of an object, and all changes of objects it owns, reconcile it | `tests/controllers/reconciling.rs: changes_of_owned_objects_are_reverted` |
//! | 14 | the controller receives deletions | `tests/controllers/reconciling.rs: deletions_are_delivered` |
//! | 14 | watches can be added while the controller is running | `tests/guarantees/late_watches.rs: late_watch_delivers_existing_and_new_objects`, `tests/guarantees/late_watches.rs: late_watches_of_dynamic_kinds_reconcile_owners`, `tests/guarantees/late_watches.rs: late_watch_waits_for_its_crd` |
//! | 14 | reading a kind without a cache is an error | `src/ctx/mod.rs: context_without_a_manager_has_no_caches`, `tests/controllers/caches.rs: reading_an_unwatched_kind_is_an_error_with_advice` |
//! | 15 | when the owner of an object changes, the old and the new one are reconciled | `tests/controllers/reconciling.rs: owner_change_reconciles_both_owners` |
//! | 15 | events from outside the cluster can trigger a reconcile | `tests/controllers/triggers.rs: trigger_reconciles_the_named_object` |
//! | 15 | a mapping that returns an object repeatedly reconciles it once | `tests/guarantees/handlers.rs: repeatedly_mapped_object_is_reconciled_once` |
//! | 16 | a defaulter that changes nothing sends no patch | `src/webhook/tests/mod.rs: unchanged_and_deleted_objects_need_no_patch` |
//! | 16 | a validator receives the object to be deleted | `src/webhook/tests/mod.rs: validator_allows_warns_and_denies`, `tests/webhooks.rs: admission_webhooks_run_before_storage` |
//! | 16 | a panic is answered with status 500 | `src/webhook/tests/mod.rs: panic_returns_500_and_is_counted` |
//! | 16 | a new certificate is served without a restart | `src/tls/tests.rs: replaced_secret_is_served_without_a_restart` |

mod handlers;
mod late_watches;
mod leading;
mod panics;
mod starting;
#[allow(dead_code)] // it has what other tests need, too
#[path = "../controllers/support.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::Path;

fn rows() -> Vec<(u32, &'static str)> {
    let rows = include_str!("main.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "));
    rows.filter_map(|row| {
        let mut columns = row.split(" | ");
        let group = columns.next()?.parse().ok()?;
        Some((group, columns.nth(1)?))
    })
    .collect()
}

/// Checks that a file contains a test with this name, or an example that must fail to compile with
/// this error.
fn is_proved(file: &str, name: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
    if name.starts_with("compile_fail") && text.contains(&format!("/// ```{name}")) {
        return Ok(());
    }
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}(");
    let found = lines
        .iter()
        .position(|line| line.trim_start_matches("async ").starts_with(&head));
    let Some(at) = found else {
        return Err(format!("{file} has no test `{name}`"));
    };
    let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    let is_test = |line: &&str| line.starts_with("#[test]") || line.contains("::test");
    // `on_both_servers!` turns each function in its list into a test.
    let listed = lines
        .iter()
        .skip_while(|line| !line.starts_with("on_both_servers!("));
    let is_listed = listed
        .take_while(|line| !line.starts_with(");"))
        .any(|line| line.trim_end_matches(',') == name);
    match is_listed || attributes.into_iter().any(is_test) {
        true => Ok(()),
        false => Err(format!("`{name}` in {file} is not a test")),
    }
}

/// Tests in the table must not be renamed or removed.
#[test]
fn every_listed_test_exists() {
    let rows = rows();
    let groups: BTreeSet<u32> = rows.iter().map(|(group, _)| *group).collect();
    assert_eq!(groups, (1..=16).collect());
    let mut missing = Vec::new();
    let mut named = 0;
    for (_, proof) in rows {
        let code = proof.split('`').skip(1).step_by(2);
        for (file, name) in code.filter_map(|code| code.split_once(": ")) {
            missing.extend(is_proved(file, name).err());
            named += 1;
        }
    }
    assert!(
        named > 50,
        "the table is not read as it is written: {named} tests"
    );
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(is_proved("src/queue/mod.rs", "no_such_test").is_err());
    assert!(is_proved("src/queue/mod.rs", "backoff").is_err());
}
