//! The row of a Pod, whose status is a summary of those of its containers.

use rbuilder_kubernetes::time::parse_time;
use serde_json::{Value, json};

use crate::age::print_duration;
use crate::view::{View, items, number, text};
use crate::{Row, row};

const NONE: &str = "<none>";

/// What is known about restarts.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<i128>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += number(container, "/restartCount");
        self.last = self
            .last
            .max(parse_time(text(container, "/lastState/terminated/finishedAt")));
    }
}

struct Summary {
    ready: i64,
    reason: String,
    restarts: Restarts,
}

pub(crate) fn print<'a>(view: &View<'a>) -> Row<'a> {
    let sidecars = view
        .items("/spec/initContainers")
        .iter()
        .filter(|container| is_sidecar(container));
    let total = view.items("/spec/containers").len() + sidecars.count();
    let summary = summarize(view);
    let restarts = match summary.restarts {
        Restarts {
            count: 1..,
            last: Some(last),
        } => format!(
            "{} ({} ago)",
            summary.restarts.count,
            print_duration(view.now - last)
        ),
        Restarts { count, .. } => count.to_string(),
    };
    let or_none = |text: &str| {
        if text.is_empty() {
            NONE.to_owned()
        } else {
            text.to_owned()
        }
    };
    let cells = [
        view.text("/metadata/name").to_owned(),
        format!("{}/{total}", summary.ready),
        summary.reason,
        restarts,
        view.age("/metadata/creationTimestamp"),
        or_none(view.text("/status/podIPs/0/ip")),
        or_none(view.text("/spec/nodeName")),
        or_none(view.text("/status/nominatedNodeName")),
        readiness_gates(view),
    ];
    let (mut row, object) = row(cells.into_iter().map(Value::String).collect(), view.object);
    let message = match view.text("/status/phase") {
        "Succeeded" => Some("The pod has completed successfully."),
        "Failed" => Some("The pod failed."),
        _ => None,
    };
    if let Some(message) = message {
        let reason = view.text("/status/phase");
        row["conditions"] =
            json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }]);
    }
    (row, object)
}

/// Returns whether an init container runs as long as the Pod.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn summarize(view: &View<'_>) -> Summary {
    let reason = match view.text("/status/reason") {
        "" => view.text("/status/phase"),
        reason => reason,
    };
    let mut conditions = view.items("/status/conditions").iter();
    let is_gated = conditions
        .any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated");
    let reason = if is_gated { "SchedulingGated" } else { reason };
    let mut summary = Summary {
        ready: 0,
        reason: reason.to_owned(),
        restarts: Restarts::default(),
    };
    let (is_initializing, of_sidecars) = add_init_containers(view, &mut summary);
    if !is_initializing || view.is_true("Initialized") {
        summary.restarts = of_sidecars;
        add_containers(view, &mut summary);
    }
    if !view.at("/metadata/deletionTimestamp").is_null() {
        if view.text("/status/reason") == "NodeLost" {
            summary.reason = "Unknown".to_owned();
        } else if !matches!(view.text("/status/phase"), "Succeeded" | "Failed") {
            summary.reason = "Terminating".to_owned();
        }
    }
    summary
}

/// Returns whether an init container still runs or has failed, and the restarts of sidecars.
fn add_init_containers(view: &View<'_>, summary: &mut Summary) -> (bool, Restarts) {
    let specs = view.items("/spec/initContainers");
    let mut of_sidecars = Restarts::default();
    for (at, container) in view.items("/status/initContainerStatuses").iter().enumerate() {
        summary.restarts.add(container);
        let mut specs_of = specs.iter().filter(|spec| spec["name"] == container["name"]);
        let is_sidecar = specs_of.next_back().is_some_and(is_sidecar);
        if is_sidecar {
            of_sidecars.add(container);
        }
        let terminated = &container["state"]["terminated"];
        if terminated.is_object() && number(terminated, "/exitCode") == 0 {
            continue;
        }
        if is_sidecar && container["started"] == true {
            summary.ready += i64::from(container["ready"] == true);
            continue;
        }
        let waiting = text(container, "/state/waiting/reason");
        summary.reason = if terminated.is_object() {
            format!("Init:{}", reason_of_end(terminated))
        } else if !matches!(waiting, "" | "PodInitializing") {
            format!("Init:{waiting}")
        } else {
            format!("Init:{at}/{}", specs.len())
        };
        return (true, of_sidecars);
    }
    (false, of_sidecars)
}

fn reason_of_end(terminated: &Value) -> String {
    match (text(terminated, "/reason"), number(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn add_containers(view: &View<'_>, summary: &mut Summary) {
    let (mut is_running, mut error) = (false, None);
    for container in view.items("/status/containerStatuses").iter().rev() {
        summary.restarts.add(container);
        let state = &container["state"];
        let waiting = text(state, "/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if state["terminated"].is_object() {
            summary.reason = reason_of_end(&state["terminated"]);
            if number(state, "/terminated/exitCode") != 0 {
                error = Some(summary.reason.clone());
            }
        } else if container["ready"] == true && state["running"].is_object() {
            is_running = true;
            summary.ready += 1;
        }
    }
    // A Pod is running as long as one of its containers is.
    if summary.reason == "Completed" {
        let mut conditions = view.items("/status/conditions").iter();
        let is_ready =
            conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        summary.reason = match (is_running && is_ready, error) {
            (true, _) => "Running".to_owned(),
            (false, Some(error)) => error,
            (false, None) if is_running => "NotReady".to_owned(),
            (false, None) => return,
        };
    }
}

fn readiness_gates(view: &View<'_>) -> String {
    let gates = items(view.object, "/spec/readinessGates");
    let is_true = |gate: &&Value| view.is_true(text(gate, "/conditionType"));
    match gates.len() {
        0 => NONE.to_owned(),
        count => format!("{}/{count}", gates.iter().filter(is_true).count()),
    }
}
