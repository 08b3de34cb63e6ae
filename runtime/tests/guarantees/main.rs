//! The runtime's guarantees, and the tests that prove them.
//!
//! Each sentence below is one that controller-runtime's users rely on. Beside it stands where it is proved: a file of
//! this crate, and the test in it. `every_test_of_the_index_exists` holds the table to the files. Those with an API
//! server are ignored, by name, where `KUBEBUILDER_ASSETS` does not say where the servers are.
//!
//! | | guarantee | proved by |
//! |---|---|---|
//! | 1 | one worker per key at a time | `src/queue/mod.rs: many_workers_never_share_a_key_and_lose_none`, `tests/controllers/reconciling.rs: one_object_is_never_reconciled_twice_at_a_time` |
//! | 1 | what is in work is not handed out, and comes back once when it was added meanwhile | `src/queue/mod.rs: a_key_in_work_is_not_handed_out_and_comes_back_once_when_added_meanwhile`, `src/queue/model.rs: whatever_is_done_with_a_queue_it_gives_what_the_model_gives` |
//! | 2 | a key added often comes once | `src/queue/mod.rs: a_key_added_often_comes_out_once` |
//! | 2 | of delays the earliest counts, of priorities the highest | `src/queue/mod.rs: a_delayed_key_keeps_its_earliest_time`, `src/queue/mod.rs: higher_priority_first_and_adding_again_keeps_the_highest`, `src/queue/mod.rs: an_immediate_add_overtakes_a_delay_also_while_in_work` |
//! | 3 | first in, first out; higher priority before | `src/queue/mod.rs: keys_come_out_in_the_order_they_were_added`, `src/queue/mod.rs: higher_priority_first_and_adding_again_keeps_the_highest` |
//! | 3 | low priority is not starved | `src/queue/mod.rs: waiting_makes_up_for_low_priority`, `src/queue/model.rs: no_stream_of_urgent_keys_starves_one` |
//! | 4 | workers start when every cache is filled and every handler has heard of what is there | `tests/controllers/reconciling.rs: workers_start_when_all_caches_are_filled` |
//! | 5 | errors back off per object, until one succeeds | `src/queue/mod.rs: failures_back_off_per_key_and_success_resets`, `src/queue/model.rs: whatever_is_done_with_a_queue_it_gives_what_the_model_gives` |
//! | 5 | terminal errors wait for a change | `tests/controllers/reconciling.rs: terminal_errors_wait_for_a_change` |
//! | 5 | an error and a requeue exclude each other | by type: `Result<Action, Error>` |
//! | 6 | a panic is an error of its object: counted, tried again, and the others go on | `tests/guarantees/panics.rs: a_panic_is_counted_and_the_other_objects_are_reconciled`, `tests/controllers/reconciling.rs: a_panic_in_one_reconcile_leaves_the_others_alone` |
//! | 6 | where asked for, it ends the process | `tests/guarantees/panics.rs: a_panic_ends_the_manager_where_that_is_asked_for` |
//! | 7 | an overlong reconcile is abandoned, counted and tried again | `tests/controllers/reconciling.rs: an_overlong_reconcile_is_abandoned_and_retried`, `tests/metrics.rs: metrics_are_counted_and_shown_to_those_the_cluster_lets_read` |
//! | 8 | a cache that does not fill in time ends the start, with what the watch ran into | `tests/controllers/reconciling.rs: a_missing_crd_is_an_error_that_names_it` |
//! | 8 | until then, a missing CRD is waited for | `tests/controllers/caches.rs: a_crd_may_come_after_the_operator` |
//! | 8 | a manager starts once | `src/manager/mod.rs: compile_fail,E0382` |
//! | 9 | the lease is given up only when what it covers has ended | `tests/process.rs: a_signal_lets_reconciles_end` |
//! | 9 | whoever lost the lease has no grace | `tests/process.rs: a_leader_whose_lease_is_taken_ends_with_an_error`, `src/leader_election/tests.rs: a_leader_that_hears_nothing_gives_up_before_its_lease_ends` |
//! | 9 | a manager that does not lead stops without electing | `tests/guarantees/leading.rs: a_manager_that_does_not_lead_stops_without_electing` |
//! | 9 | a released lease has no holder, and is taken within a retry period and its jitter | `src/leader_election/tests.rs: a_released_lease_is_free_at_once`, `tests/guarantees/leading.rs: a_released_lease_is_taken_within_a_retry_period_and_its_jitter`, `tests/controllers/reconciling.rs: a_standby_takes_over_when_the_leader_stops` |
//! | 10 | nothing is added to a manager that runs or stops | `src/manager/mod.rs: compile_fail,E0382`, `tests/guarantees/late_watches.rs: late_watches_that_cannot_work_are_refused` |
//! | 10 | what hangs is an error after the grace period, and named | `src/phase.rs: a_hanging_part_is_ended_after_the_grace_period_and_named`, `tests/controllers/reconciling.rs: a_hanging_reconcile_is_abandoned_after_the_grace_period` |
//! | 10 | a clean stop is no error | `tests/controllers/reconciling.rs: stopping_lets_reconciles_end`, `src/phase.rs: parts_that_end_in_time_end_well` |
//! | 11 | no reconcile is left behind | `tests/controllers/reconciling.rs: a_hanging_reconcile_is_abandoned_after_the_grace_period` |
//! | 11 | no task, file, thread or connection is left behind, however the manager ends | `tests/leaks.rs: nothing_is_left_of_managers_that_have_ended` |
//! | 12 | webhooks are served before caches fill, caches are filled before the manager is ready | `tests/guarantees/starting.rs: objects_of_two_versions_that_only_the_manager_converts_do_not_keep_it_from_starting`, `tests/webhooks.rs: versions_are_converted_and_the_operator_starts_with_what_is_stored` |
//! | 13 | metrics are there from the start, at zero | `src/metrics/tests.rs: names_types_and_labels_are_controller_runtimes_and_begin_at_zero` |
//! | 13 | a port in use is an error that names the address | `tests/metrics.rs: a_port_in_use_ends_the_start_with_the_address`, `src/server/tests.rs: an_address_that_cannot_be_had_is_named`, `tests/process.rs: a_manager_that_cannot_start_says_why` |
//! | 13 | a failing check is a 500 | `src/probes.rs: an_endpoint_answers_for_all_its_checks` |
//! | 13 | being alive does not depend on caches | `tests/guarantees/starting.rs: a_manager_whose_caches_do_not_fill_is_alive_and_not_ready`, `tests/controllers/reconciling.rs: probes_tell_alive_from_ready` |
//! | 14 | creations and changes of the object, and all changes of what it owns, reconcile it | `tests/controllers/reconciling.rs: an_operator_keeps_what_it_owns_as_it_should_be` |
//! | 14 | its deletion reaches the controller | `tests/controllers/reconciling.rs: deletions_are_delivered` |
//! | 14 | watches can be added while the controller runs | `tests/guarantees/late_watches.rs: a_watch_added_by_a_reconcile_hears_what_is_there_and_what_comes`, `tests/guarantees/late_watches.rs: late_watches_of_dynamic_kinds_reconcile_owners`, `tests/guarantees/late_watches.rs: a_late_watch_waits_for_its_crd` |
//! | 14 | nothing is read from a cache that is not there | `src/ctx/mod.rs: a_context_without_a_manager_reads_nothing`, `tests/controllers/caches.rs: reading_what_nobody_watches_is_an_error_that_says_what_to_add` |
//! | 15 | when an owner changes, the old and the new one are reconciled | `tests/controllers/reconciling.rs: an_owner_change_reconciles_both_owners` |
//! | 15 | what happens outside the cluster can reconcile | `tests/controllers/triggers.rs: triggers_reconcile_what_they_name` |
//! | 15 | a mapping that names an object often reconciles it once | `tests/guarantees/handlers.rs: a_mapping_that_names_an_object_often_reconciles_it_once` |
//! | 16 | a default that changes nothing is no patch | `src/webhook/tests.rs: an_unchanged_object_and_a_deleted_one_need_no_patch` |
//! | 16 | a deletion is asked about with what is to be deleted | `src/webhook/tests.rs: a_validator_allows_warns_and_refuses`, `tests/webhooks.rs: the_api_server_asks_before_it_stores` |
//! | 16 | a panic is a 500 | `src/webhook/tests.rs: a_panic_is_500_and_counted_and_the_next_request_is_answered` |
//! | 16 | a new certificate is served without a restart | `src/tls/tests.rs: a_replaced_secret_is_served_without_a_restart` |

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

/// The rows of the table above: the group, and the third column.
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

/// Whether the file has a test of this name, or a sample that must not compile for this reason.
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
    // `on_both_servers!` makes tests of the functions that it lists.
    let listed = lines
        .iter()
        .skip_while(|line| !line.starts_with("on_both_servers!("));
    let is_listed = listed
        .take_while(|line| !line.starts_with(");"))
        .any(|line| line.trim_end_matches(',') == name);
    match is_listed || attributes.into_iter().any(is_test) {
        true => Ok(()),
        false => Err(format!("`{name}` in {file} is no test")),
    }
}

/// A test that was renamed or taken away must not leave a guarantee that nobody proves.
#[test]
fn every_test_of_the_index_exists() {
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
