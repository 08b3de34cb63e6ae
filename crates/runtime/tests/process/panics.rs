//! Panics in the log of a process.

use super::*;
use crate::operator::{BEFORE, HOOKED, PANIC};

/// Makes a reconcile panic. Returns the log until the object was reconciled successfully.
async fn log_of_panic(panics_in: &str, flag: &str, variables: &[(&'static str, &str)]) -> String {
    let place = Place::new().await;
    let flags = place.flags(&["--health-probe-bind-address=0", flag]);
    let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let program = Program::start_with(place.env.kubeconfig_path(), flags, variables);
    place.create_with("poison", &[(PANIC, panics_in)]).await;
    place.marked_by("poison", ENDED, &program).await;
    program.log()
}

fn find_json_line(log: &str, message: &str) -> Value {
    let lines = log.lines().map(|line| {
        let parsed = serde_json::from_str::<Value>(line);
        parsed.unwrap_or_else(|error| panic!("{error}: {line:?} of\n{log}"))
    });
    let mut found = lines.filter(|line| line["message"] == message);
    let first = found.next();
    assert!(found.next().is_none(), "{message:?} twice in\n{log}");
    first.unwrap_or_else(|| panic!("{message:?} is not in\n{log}"))
}

#[rbuilder::envtest::test]
async fn panic_logs_one_json_line_with_location_and_object() {
    let log = log_of_panic("reconcile", "--log-format=json", &[]).await;
    let line = find_json_line(&log, "panicked");
    assert_eq!(line["level"], "ERROR", "{line}");
    assert_eq!(line["error"], "a page is missing between 3 and 5", "{line}");
    let location = line["location"].as_str().unwrap();
    assert!(
        location.starts_with("crates/runtime/tests/process/operator.rs:"),
        "{line}"
    );
    assert!(line["thread"].is_string(), "{line}");
    assert!(line.get("backtrace").is_none(), "not asked for: {line}");
    assert_eq!(line["spans"][0]["object_name"], "poison", "{line}");
}

#[rbuilder::envtest::test]
async fn panic_in_a_thread_names_the_thread() {
    let log = log_of_panic("thread", "--log-format=json", &[]).await;
    let line = find_json_line(&log, "panicked");
    assert_eq!(line["thread"], "helper", "{line}");
    assert_eq!(line["error"], "a page is missing between 3 and 5", "{line}");
}

#[rbuilder::envtest::test]
async fn panic_logs_one_text_line() {
    let log = log_of_panic("reconcile", "--log-format=text", &[]).await;
    let line = log.lines().find(|line| line.contains(": panicked "));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    for part in [
        " ERROR reconcile{",
        "object_name=\"poison\"",
        "location=crates/runtime/tests/process/operator.rs:",
        "thread=\"",
        "error=a page is missing between 3 and 5",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(
        !log.contains("thread '") && !log.contains("note: run with"),
        "{log}"
    );
}

/// If the filter drops the line, Rust prints the panic itself.
#[rbuilder::envtest::test]
async fn panic_hidden_by_the_log_filter_is_printed_by_rust() {
    let log = log_of_panic("reconcile", "--log-level=off", &[]).await;
    assert!(log.contains("a page is missing\nbetween 3 and 5"), "{log}");
}

#[rbuilder::envtest::test]
async fn panic_output_is_unchanged_with_a_custom_subscriber() {
    let log = log_of_panic("reconcile", "--log-format=json", &[(BEFORE, "subscriber")]).await;
    assert!(log.contains("a page is missing\nbetween 3 and 5"), "{log}");
    assert!(!log.contains(": panicked "), "{log}");
}

/// An operator may have a hook, e.g. to report crashes.
#[rbuilder::envtest::test]
async fn custom_panic_hook_still_runs() {
    let log = log_of_panic("reconcile", "--log-format=text", &[(BEFORE, "hook")]).await;
    assert_eq!(log.matches(HOOKED).count(), 1, "{log}");
    assert_eq!(log.matches(": panicked ").count(), 1, "{log}");
}

#[rbuilder::envtest::test]
async fn panic_line_includes_a_requested_backtrace() {
    let log = log_of_panic("reconcile", "--log-format=json", &[("RUST_BACKTRACE", "1")]).await;
    let line = find_json_line(&log, "panicked");
    assert!(line["backtrace"].as_str().unwrap().contains("panic_in"), "{line}");
}
