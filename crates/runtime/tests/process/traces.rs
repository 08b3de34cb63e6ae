//! Trace IDs in the log of a process with a tracer provider.

use super::*;
use crate::operator::BEFORE;

/// Returns the line that is logged for a failed reconcile.
async fn log_failure(format: &str, before: &str) -> String {
    let place = Place::new().await;
    let flags = place.flags(&["--health-probe-bind-address=0", format]);
    let variables = [(BEFORE, before.to_owned())];
    let program = Program::start_with(place.env.kubeconfig_path(), flags, variables);
    place.create("broken", &[FAIL]).await;
    program.logs("reconcile failed").await;
    let log = program.log();
    let line = log.lines().find(|line| line.contains("reconcile failed"));
    line.unwrap().to_owned()
}

fn is_trace_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[rbuilder::envtest::test]
async fn json_log_lines_have_a_trace_id() {
    let line = log_failure("--log-format=json", "traces").await;
    let parsed: Value = serde_json::from_str(&line).unwrap();
    let id = parsed["spans"][0]["trace_id"].as_str().unwrap_or_default();
    assert!(is_trace_id(id), "{line}");
}

#[rbuilder::envtest::test]
async fn text_log_lines_have_a_trace_id() {
    let line = log_failure("--log-format=text", "traces").await;
    let (_, after) = line.split_once("trace_id=\"").unwrap_or_else(|| panic!("{line}"));
    assert!(is_trace_id(after.split('"').next().unwrap()), "{line}");
}

#[rbuilder::envtest::test]
async fn no_trace_id_without_a_tracer_provider() {
    let line = log_failure("--log-format=text", "").await;
    assert!(!line.contains("trace_id"), "{line}");
}
