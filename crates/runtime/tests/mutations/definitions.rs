//! Checks whether the server accepts a CRD and serves its kind.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::record::Verdict;
use super::server::{Answer, DEFINITIONS, Server};

/// Timeout until a kind is served.
const PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(40);

/// Creates the CRDs, waits until the API server has accepted or rejected each of them, and then
/// deletes them.
pub(crate) async fn judge(server: &Server, definitions: Vec<Value>) -> Option<Verdict> {
    if definitions.is_empty() {
        return None;
    }
    let mut verdict = Verdict::Served;
    let mut taken = Vec::new();
    for definition in &definitions {
        let found = one(server, definition).await;
        if !matches!(found, Verdict::Refused(_)) {
            taken.push(path(definition));
        }
        if verdict == Verdict::Served || matches!(found, Verdict::Refused(_) | Verdict::Idle(_)) {
            verdict = found;
        }
    }
    for path in taken {
        server.delete(&path).await;
    }
    Some(verdict)
}

/// Creates a CRD without deleting it. Returns the problem with it, if any.
pub(crate) async fn install(server: &Server, definition: &Value) -> Option<Verdict> {
    let verdict = one(server, definition).await;
    (verdict != Verdict::Served).then_some(verdict)
}

fn path(definition: &Value) -> String {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    format!("{DEFINITIONS}/{name}")
}

async fn one(server: &Server, definition: &Value) -> Verdict {
    let answer = server.create(DEFINITIONS, definition, false).await;
    if !answer.is_success() {
        return Verdict::Refused(answer.reason());
    }
    let idle = match establish(server, &path(definition)).await {
        Ok(()) => serve(server, definition).await,
        Err(why) => Some(why),
    };
    match (idle, answer.warning()) {
        (Some(why), _) => Verdict::Idle(why),
        (None, Some(warning)) => Verdict::Warned(warning),
        (None, None) => Verdict::Served,
    }
}

/// Waits until the names are accepted and the kind is established, or returns the condition that
/// prevents this.
async fn establish(server: &Server, path: &str) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = server.get(path).await.body;
        let conditions = found["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let condition = |name: &str, status: &str| {
            let mut conditions = conditions.iter();
            conditions
                .find(|condition| condition["type"] == name && condition["status"] == status)
                .cloned()
        };
        for (name, status) in [
            ("NamesAccepted", "False"),
            ("NonStructuralSchema", "True"),
            ("Established", "False"),
        ] {
            if let Some(condition) = condition(name, status)
                // Every new CRD has these conditions for a moment.
                && !["NotAccepted", "Installing"].iter().any(|reason| condition["reason"] == *reason)
            {
                return Err(format!(
                    "{name}: {}",
                    condition["message"].as_str().unwrap_or_default()
                ));
            }
        }
        if condition("Established", "True").is_some() {
            return Ok(());
        }
        assert!(
            Instant::now() < end,
            "{path} is neither served nor refused: {conditions:?}"
        );
        sleep(PAUSE).await;
    }
}

/// Lists all versions as kubectl does. Returns a difference from the CRD, if any.
async fn serve(server: &Server, definition: &Value) -> Option<String> {
    let spec = &definition["spec"];
    let (group, plural) = (spec["group"].as_str()?, spec["names"]["plural"].as_str()?);
    let versions = spec["versions"].as_array()?;
    let mut any = false;
    for version in versions.iter().filter(|version| version["served"] == json!(true)) {
        any = true;
        let path = format!("/apis/{group}/{}/{plural}", version["name"].as_str()?);
        let list = eventually_listed(server, &path).await;
        if !list.is_success() {
            return Some(format!("a list is answered {}: {}", list.code, list.reason()));
        }
        if let Some(column) = missing_column(version, &list.body) {
            return Some(format!("the column `{column}` is not shown"));
        }
    }
    (!any).then(|| "no version is served".to_owned())
}

async fn eventually_listed(server: &Server, path: &str) -> Answer {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = server.table(path).await;
        if answer.code != 404 && answer.code != 503 || Instant::now() >= end {
            return answer;
        }
        sleep(PAUSE).await;
    }
}

/// Returns a printer column that's missing from the table, if any.
fn missing_column(version: &Value, table: &Value) -> Option<String> {
    let names = |columns: &Value| -> Vec<String> {
        let columns = columns.as_array().into_iter().flatten();
        columns
            .filter_map(|column| column["name"].as_str().map(str::to_owned))
            .collect()
    };
    let shown = names(&table["columnDefinitions"]);
    let wanted = names(&version["additionalPrinterColumns"]);
    wanted.into_iter().find(|name| !shown.contains(name))
}
