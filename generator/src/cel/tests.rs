//! Our verdicts and prices against those of kube-apiserver's own code, recorded for some 250 rules.

use rbuilder_schema::Schema;
use serde::Deserialize;

use super::rules::examine_all;

/// One rule as kube-apiserver's code judges it.
#[derive(Deserialize)]
struct Recorded {
    schema: usize,
    path: String,
    rule: String,
    error: Option<String>,
    cost: Option<u64>,
    times: Option<u64>,
}

#[test]
fn verdicts_and_costs_are_those_of_the_api_server() {
    let schemas: Vec<Schema> = include_str!("../../tests/cel/schemas.json")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a schema"))
        .collect();
    let recorded: Vec<Recorded> = include_str!("../../tests/cel/recorded.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    let ours: Vec<_> = schemas.iter().map(examine_all).collect();
    let mut differences = Vec::new();
    for record in &recorded {
        let Some((_, _, examined, times)) = ours[record.schema]
            .iter()
            .find(|(path, rule, ..)| *path == record.path && *rule == record.rule)
        else {
            differences.push(format!("{} {}: not examined", record.path, record.rule));
            continue;
        };
        let refused = examined.findings.iter().find(|finding| finding.certain);
        let agree = match (&record.error, refused) {
            (None, None) => {
                examined.cost.is_none() || (examined.cost == record.cost && Some(*times) == record.times)
            }
            (Some(_), found) => found.is_some() || !examined.findings.is_empty(),
            (None, Some(_)) => false,
        };
        if !agree {
            differences.push(format!(
                "{} {}\n    server: {:?} {:?} times {:?}\n    ours:   {:?} {:?} times {times}",
                record.path, record.rule, record.error, record.cost, record.times, refused, examined.cost,
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences\n{}",
        differences.len(),
        differences.join("\n")
    );
}
