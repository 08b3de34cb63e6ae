//! Report files for `rbuilder simulate`.
//!
//! The files are reproducible: no timestamps, nothing machine-specific.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::coverage::{Coverage, KINDS};
use crate::identity::Identity;
use crate::report::Report;
use crate::search::Failure;
use crate::settings::Limit;
use crate::timeline::Event;

/// Bump for changes that older readers would misinterpret.
const VERSION: u32 = 1;
/// Number of events to keep at either end of a timeline.
const MOST_EVENTS: usize = 200;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record<'r> {
    version: u32,
    name: &'r str,
    /// E.g. `tests/memcached.rs:40`.
    source: &'r str,
    declarations: Vec<String>,
    /// E.g. `{"histories": 120}`.
    budget: Limit,
    histories: usize,
    requests: Vec<RequestRecord<'r>>,
    /// Includes kinds that were never tried.
    perturbations: Vec<PerturbationRecord<'r>>,
    /// Relative to the package root.
    kept_file: String,
    /// In file order.
    kept: Vec<KeptRecord>,
    failures: Vec<FailureRecord<'r>>,
    unused_fields: &'r [String],
    refused: &'r [String],
    masked: &'r [String],
}

#[derive(Debug, Serialize)]
struct RequestRecord<'r> {
    request: &'r str,
    changes: bool,
    disturbed: &'r BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
struct PerturbationRecord<'r> {
    kind: &'r str,
    description: &'r str,
    histories: usize,
    reached: usize,
}

#[derive(Debug, Serialize)]
struct KeptRecord {
    history: String,
    outcome: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureRecord<'r> {
    oracle: &'static str,
    message: &'r str,
    steps: Vec<String>,
    perturbations: Vec<String>,
    /// The history as a line of JSON, to be passed in `RBUILDER_SIMULATION` or added to the file of
    /// saved histories.
    history: String,
    events: Vec<EventRecord<'r>>,
    /// Number of events omitted from the middle.
    omitted_events: usize,
}

#[derive(Debug, Serialize)]
struct EventRecord<'r> {
    at: u64,
    actor: &'static str,
    text: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    external: bool,
}

impl<'r> Record<'r> {
    pub(crate) fn new(
        identity: &'r Identity,
        declarations: Vec<String>,
        budget: Limit,
        report: &'r Report,
    ) -> Self {
        let kept = report.kept.iter();
        Self {
            version: VERSION,
            name: &identity.name,
            source: &identity.source,
            budget,
            histories: report.histories,
            requests: requests(&report.coverage),
            perturbations: perturbations(&report.coverage),
            kept_file: identity.kept_file().to_string_lossy().replace('\\', "/"),
            kept: kept
                .map(|kept| KeptRecord {
                    history: kept.history.to_string(),
                    outcome: kept.outcome.as_str(),
                })
                .collect(),
            failures: report
                .failures
                .iter()
                .map(|failure| FailureRecord::new(failure, &declarations))
                .collect(),
            unused_fields: &report.unused_fields,
            refused: &report.refused,
            masked: &report.masked,
            declarations,
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("all keys are strings") + "\n"
    }
}

fn requests(coverage: &Coverage) -> Vec<RequestRecord<'_>> {
    let requests = coverage.requests.iter();
    requests
        .map(|request| RequestRecord {
            request: &request.name,
            changes: request.changes,
            disturbed: &request.disturbed,
        })
        .collect()
}

fn perturbations(coverage: &Coverage) -> Vec<PerturbationRecord<'static>> {
    let kinds = KINDS.iter().map(|(kind, description)| {
        let tried = coverage.kinds.get(*kind).copied().unwrap_or_default();
        PerturbationRecord {
            kind,
            description,
            histories: tried.histories,
            reached: tried.reached,
        }
    });
    kinds.collect()
}

impl<'r> FailureRecord<'r> {
    fn new(failure: &'r Failure, declarations: &[String]) -> Self {
        let (events, omitted_events) = shorten(&failure.events);
        let perturbations = failure.history.perturbations.iter();
        Self {
            oracle: failure.oracle.as_str(),
            message: &failure.message,
            steps: failure
                .history
                .steps
                .iter()
                .map(|step| step.describe(declarations))
                .collect(),
            perturbations: perturbations.map(ToString::to_string).collect(),
            history: failure.history.to_string(),
            events: events.into_iter().map(EventRecord::new).collect(),
            omitted_events,
        }
    }
}

fn shorten(events: &[Event]) -> (Vec<&Event>, usize) {
    let omitted = events.len().saturating_sub(2 * MOST_EVENTS);
    let (first, rest) = events.split_at(events.len().min(MOST_EVENTS));
    (first.iter().chain(&rest[omitted..]).collect(), omitted)
}

impl<'r> EventRecord<'r> {
    fn new(event: &'r Event) -> Self {
        Self {
            at: u64::try_from(event.at.as_millis()).unwrap_or(u64::MAX),
            actor: event.actor.as_str(),
            text: &event.text,
            code: (event.code != 0).then_some(event.code),
            changed: event.changed,
            external: event.is_external,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use k8s_openapi::api::core::v1::{ConfigMap, Service};
    use kube::api::{DeleteParams, ListParams, PostParams};
    use kube::{Api, Client, ResourceExt};
    use serde_json::json;

    use super::*;
    use crate::Simulation;
    use crate::settings::Settings;

    /// Also used to test the page generated by `rbuilder simulate`.
    const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report.json");

    /// Creates a Service for each ConfigMap labeled `web`. The bug: once a ConfigMap is marked as
    /// done, it's never looked at again.
    async fn operate(client: Client) {
        loop {
            let _ = look(&client).await;
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        }
    }

    async fn look(client: &Client) -> kube::Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let services: Api<Service> = Api::default_namespaced(client.clone());
        let wanted = maps.list(&ListParams::default().labels("web")).await?;
        for mut map in wanted.items {
            if map.annotations().contains_key("done") {
                continue;
            }
            map.annotations_mut().insert("done".to_owned(), "yes".to_owned());
            let name = map.name_any();
            maps.replace(&name, &PostParams::default(), &map).await?;
            let service = json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } });
            let service: Service = serde_json::from_value(service).map_err(kube::Error::SerdeError)?;
            services.create(&PostParams::default(), &service).await?;
        }
        for service in services.list(&ListParams::default()).await?.items {
            let name = service.name_any();
            if name != "kubernetes" && maps.get_opt(&name).await?.is_none() {
                services.delete(&name, &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    fn identity() -> Identity {
        Identity {
            name: "tests-web.a_service_is_made".to_owned(),
            source: "tests/web.rs:12".to_owned(),
        }
    }

    fn simulate(histories: usize, settings: Settings) -> Report {
        let labels = json!({ "name": "a", "labels": { "web": "" } });
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": labels });
        Simulation::of_client(operate)
            .declare(&map)
            .histories(histories)
            .run_as(&identity(), settings)
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rbuilder-{name}-{}", std::process::id()));
            std::fs::create_dir_all(path.join("simulations")).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn report_file_is_the_same_each_time() {
        let folder = Folder::new("report");
        let settings = Settings {
            reports: Some(folder.0.clone()),
            ..Settings::default()
        };
        let report = simulate(60, settings);
        let text = std::fs::read_to_string(folder.0.join("tests-web.a_service_is_made.json")).unwrap();
        assert!(!report.failures.is_empty(), "{report}");
        if std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite") {
            std::fs::write(GOLDEN, &text).unwrap();
        }
        let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
        assert!(
            text == golden,
            "{GOLDEN} is not up to date: run `SNAPSHOTS=overwrite cargo test -p rbuilder-simulation record::`\n{text}"
        );
    }

    #[test]
    fn kept_histories_are_tried_first() {
        let crash = |at: &str| {
            format!(
                r#"{{"steps":[{{"apply":0}},{{"delete":0}}],"perturbations":[{{"at":"{at} #1","do":"crash-after"}}]}}"#
            )
        };
        let (fails, unreached) = (
            crash("update configmaps default/a"),
            crash("update configmaps default/b"),
        );
        let folder = Folder::new("kept-histories");
        let kept = format!("{fails}\n{unreached}\n");
        std::fs::write(folder.0.join(identity().kept_file()), kept).unwrap();
        let settings = Settings {
            package: folder.0.clone(),
            ..Settings::default()
        };
        let report = simulate(1, settings);
        let outcomes: Vec<_> = report.kept.iter().map(|kept| kept.outcome.as_str()).collect();
        assert_eq!(outcomes, ["fails", "not-reached"], "{report}");
        assert_eq!(report.failures[0].history, fails.parse().unwrap());
        let note =
            "note: simulations/tests-web.a_service_is_made.jsonl:2: the operator makes no request any more";
        assert!(report.to_string().contains(note), "{report}");
    }
}
