//! Sharding in the manager's Deployment. The component in `config/` sets fields for which the chart
//! has values, and turns off leader election by changing the argument at any position.

use serde_json::{Map, Value, json};

use super::config::{Config, Object, SHARDING};
use super::references::References;
use super::template::{Node, Part};
use super::values::{self, Setting};

const REPLICAS: &str = "sharding.replicas";
const STRATEGY: &str = "sharding.strategy";
pub(super) const SPREAD: &str = "topologySpreadConstraints";

const LEADER_ELECT: [&str; 3] = ["--leader-elect", "--leader-elect=true", "--leader-elect=false"];
/// What the component replaces the argument with.
const NO_LEADER: &str = "--leader-elect=false";
/// Field path by which the component selects the argument in kustomize.
const SELECTED: &str = "spec.template.spec.containers.[name=manager].args.[=^--leader-elect(=true|=false)?$]";

/// Whether a kustomize replacement turns off leader election the way the component does.
pub(super) fn turns_off_leader(replacement: &Value) -> bool {
    let targets = replacement["targets"].as_array().map_or(&[][..], Vec::as_slice);
    let [target] = targets else { return false };
    let source = replacement["source"]["fieldPath"].as_str().unwrap_or_default();
    target["fieldPaths"] == json!([SELECTED])
        && target["options"] == json!({ "delimiter": "=", "index": 1 })
        && source.ends_with(".env.[name=LEADER_ELECT].value")
}

pub(crate) fn turn_off_leader(container: &mut Value) {
    for argument in container["args"].as_array_mut().into_iter().flatten() {
        if LEADER_ELECT.iter().any(|known| argument == known) {
            *argument = json!(NO_LEADER);
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sharding {
    /// Null if left to an autoscaler.
    replicas: Value,
    strategy: Value,
    spread: Value,
    /// Whether the component turns off the leader election argument.
    turns_off_leader: bool,
}

impl Sharding {
    /// Takes the fields out of the component's patch, so that there are no warnings about them.
    /// `None` if the project doesn't have the component.
    pub(super) fn take(config: &Config, manager: &mut Object) -> Option<Sharding> {
        if !config.has(SHARDING) {
            return None;
        }
        let mut sharding = Sharding {
            turns_off_leader: config.turns_off_leader,
            ..Sharding::default()
        };
        let is_ours = |patch: &&mut (Vec<_>, Value)| patch.0 == [super::config::on(SHARDING)];
        for (_, patch) in manager.patches.iter_mut().filter(is_ours) {
            let Some(spec) = patch["spec"].as_object_mut() else {
                continue;
            };
            sharding.replicas = spec.remove("replicas").unwrap_or_default();
            sharding.strategy = spec.remove("strategy").map_or(json!({}), without_nulls);
            if let Some(pod) = spec
                .get_mut("template")
                .and_then(|template| template["spec"].as_object_mut())
            {
                sharding.spread = pod.remove(SPREAD).unwrap_or_default();
            }
        }
        Some(sharding)
    }

    pub(super) fn settings(&self, config: &Config) -> [Setting; 3] {
        [
            Setting::new(
                SHARDING,
                json!(config.enabled.contains(SHARDING)),
                values::flag(),
                "Let all replicas work, each on its own part of the objects, instead of a leader. Before you set it back to false, scale the Deployment to zero.",
            ),
            Setting::new(
                REPLICAS,
                self.replicas.clone(),
                values::optional_count(),
                "Number of replicas with shards, instead of `replicas`; left to an autoscaler if null.",
            ),
            Setting::new(
                STRATEGY,
                self.strategy.clone(),
                values::object(),
                "Update strategy with shards, instead of `strategy`. With `Recreate`, no replica with a leader runs beside one with shards; `RollingUpdate` is safe once all have shards.",
            ),
        ]
    }

    pub(super) fn replicas(references: &References, single: Part) -> Part {
        let replicas = references.value(REPLICAS);
        let number = Node::Text(format!("{{{{ {replicas} | int }}}}"));
        Part::Either(
            format!("if {}", references.value(SHARDING)),
            vec![Part::Block(
                format!("if not (kindIs \"invalid\" {replicas})"),
                vec![Part::Field("replicas".into(), number)],
            )],
            vec![single],
        )
    }

    /// The update strategy. Without shards, `others` applies.
    pub(super) fn strategy(references: &References, others: Vec<Part>) -> Part {
        Part::Either(
            format!("if {}", references.value(SHARDING)),
            vec![Part::of_values("strategy", &references.value(STRATEGY))],
            others,
        )
    }

    /// The component's constraints if there are shards and the chart's users have set none;
    /// otherwise `others`.
    pub(super) fn spread(&self, references: &References, others: Vec<Part>) -> Vec<Part> {
        if self.spread.is_null() {
            return others;
        }
        let (sharding, given) = (references.value(SHARDING), references.value(SPREAD));
        let own = references.replace_field("Deployment", SPREAD, &self.spread);
        vec![Part::Either(
            format!("if and {sharding} (not {given})"),
            vec![Part::Field(SPREAD.into(), own)],
            others,
        )]
    }

    pub(super) fn arguments(&self) -> Part {
        let lines = Part::Lines("toYaml .".into());
        if !self.turns_off_leader {
            return lines;
        }
        let replaced =
            format!("regexReplaceAll \"(?m)^- --leader-elect(=true)?$\" (toYaml .) \"- {NO_LEADER}\"");
        // `.` is the list of arguments here, so refer to the root as `$`.
        Part::Either(
            format!("if $.Values.{SHARDING}"),
            vec![Part::Lines(replaced)],
            vec![lines],
        )
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.collect::<Map<_, _>>())
        }
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leader_election_is_turned_off_wherever_the_argument_is() {
        let mut container =
            json!({ "args": ["--leader-election-namespace=a", "--leader-elect=true", "--b"] });
        turn_off_leader(&mut container);
        let expected = json!(["--leader-election-namespace=a", "--leader-elect=false", "--b"]);
        assert_eq!(container["args"], expected);
        let mut none = json!({ "name": "manager" });
        turn_off_leader(&mut none);
        assert_eq!(none["name"], "manager");
    }

    #[test]
    fn only_the_scaffolded_replacement_is_supported() {
        let scaffolded = json!({
            "source": { "fieldPath": "spec.template.spec.containers.[name=manager].env.[name=LEADER_ELECT].value" },
            "targets": [{ "fieldPaths": [SELECTED], "options": { "delimiter": "=", "index": 1 } }],
        });
        assert!(turns_off_leader(&scaffolded));
        let mut other = scaffolded.clone();
        other["targets"][0]["fieldPaths"] = json!(["spec.template.spec.containers.0.args.0"]);
        assert!(!turns_off_leader(&other) && !turns_off_leader(&json!({})));
    }
}
