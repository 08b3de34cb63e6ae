#![allow(clippy::disallowed_methods)] // the tests read the guide, which is not part of a project

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;

struct Metric {
    kind: String,
    labels: Vec<String>,
}

/// Labels that Prometheus adds to every series.
const TARGET_LABELS: [&str; 3] = ["job", "namespace", "instance"];

/// Reads the list of metrics. A test in the library compares it with the registered metrics, so
/// completeness isn't checked here.
fn listed_metrics() -> BTreeMap<String, Metric> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md"));
    let page = page.expect("the page");
    let rows = page.lines().skip_while(|line| *line != "## The metrics");
    let rows = rows.filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let mut cell = || cells.next().expect("a cell");
        let (name, kind, labels) = (cell(), cell(), cell());
        let labels = labels
            .split(',')
            .map(|label| label.trim().trim_matches('`').to_owned());
        let metric = Metric {
            kind: kind.to_owned(),
            labels: labels.filter(|label| !label.is_empty()).collect(),
        };
        (name.trim_matches('`').to_owned(), metric)
    })
    .collect()
}

fn names(expr: &str) -> Vec<String> {
    let mut unquoted = String::new();
    for (number, part) in expr.split('"').enumerate() {
        unquoted.push_str(if number % 2 == 0 { part } else { "" });
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_:$".contains(c);
    let mut names = Vec::new();
    let mut rest = unquoted.as_str();
    while let Some(start) = rest.find(is_part) {
        let word = &rest[start..];
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let is_function = after.starts_with('(') || ["by", "sum", "max", "min", "or"].contains(&word);
        if !is_function && word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            names.push(word.to_owned());
        }
        rest = after;
    }
    names
}

#[track_caller]
fn check_expression(expr: &str, metrics: &BTreeMap<String, Metric>, records: &[String]) {
    let mut labels: Vec<&str> = TARGET_LABELS.to_vec();
    let names = names(expr);
    let mut is_read = false;
    let mut others = Vec::new();
    for name in &names {
        let histogram = name.strip_suffix("_bucket");
        if let Some(metric) = histogram.and_then(|name| metrics.get(name)) {
            assert_eq!(metric.kind, "histogram", "{name} in {expr}");
            labels.extend(metric.labels.iter().map(String::as_str).chain(["le"]));
            is_read = true;
        } else if let Some(metric) = metrics.get(name) {
            assert_ne!(metric.kind, "histogram", "{name} in {expr}");
            let is_rate = ["rate(", "increase("]
                .iter()
                .any(|function| expr.contains(&format!("{function}{name}{{")));
            assert_eq!(metric.kind == "counter", is_rate, "{name} in {expr}");
            labels.extend(metric.labels.iter().map(String::as_str));
            is_read = true;
        } else if records.contains(name) || name == "up" {
            is_read = true;
        } else {
            others.push(name.as_str());
        }
    }
    assert!(is_read, "no metric in {expr}");
    for name in others {
        assert!(
            labels.contains(&name),
            "`{name}` is neither a metric nor a label of one in {expr}"
        );
    }
}

fn files() -> BTreeMap<String, String> {
    make_files(
        "shop",
        "shop-controller-manager-metrics-service",
        &CustomMetrics::default(),
    )
}

#[test]
fn panels_use_metrics_of_the_library() {
    let metrics = listed_metrics();
    assert!(metrics.len() > 40, "the table was not read");
    let mut count = 0;
    for (path, text) in files() {
        if !path.ends_with(".json") {
            continue;
        }
        let dashboard: Value = serde_json::from_str(&text).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("panels");
        for target in panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array())
            .flatten()
        {
            check_expression(target["expr"].as_str().expect("a query"), &metrics, &[]);
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn rules_use_metrics_of_the_library() {
    let metrics = listed_metrics();
    let object = rules::make_rules("shop", "shop-controller-manager-metrics-service");
    let groups = object["spec"]["groups"].as_array().expect("groups");
    let rules: Vec<&Value> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array())
        .flatten()
        .collect();
    let records: Vec<String> = rules
        .iter()
        .filter_map(|rule| rule["record"].as_str().map(str::to_owned))
        .collect();
    for rule in &rules {
        check_expression(rule["expr"].as_str().expect("an expression"), &metrics, &records);
    }
    for record in records {
        let used = rules.iter().filter(|rule| rule["alert"].is_string());
        let mut used = used.filter_map(|rule| rule["expr"].as_str());
        assert!(used.any(|expr| expr.contains(&record)), "no alert uses {record}");
    }
}

#[test]
fn guide_explains_every_alert() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md"));
    let page = page.expect("the page");
    let object = rules::make_rules("shop", "shop-controller-manager-metrics-service");
    let alerts = object["spec"]["groups"][1]["rules"].as_array().expect("alerts");
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `Operator"))
        .collect();
    assert_eq!(rows.len(), alerts.len());
    for (alert, row) in alerts.iter().zip(rows) {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let expected = format!(
            "| `{}` | {} | ",
            text(&alert["alert"]),
            text(&alert["labels"]["severity"])
        );
        assert!(row.starts_with(&expected), "expected {expected}, found {row}");
    }
}

#[test]
fn panels_fill_the_grid_without_overlaps() {
    for (path, text) in files() {
        let Ok(dashboard) = serde_json::from_str::<Value>(&text) else {
            continue;
        };
        let mut taken = std::collections::BTreeSet::new();
        for (index, panel) in dashboard["panels"].as_array().expect("panels").iter().enumerate() {
            assert_eq!(panel["id"], index + 1, "{path}");
            let side = |name: &str| panel["gridPos"][name].as_u64().expect("a number");
            for x in side("x")..side("x") + side("w") {
                assert!(x < 24, "{path}: {}", panel["title"]);
                for y in side("y")..side("y") + side("h") {
                    assert!(taken.insert((x, y)), "{path}: {} overlaps", panel["title"]);
                }
            }
        }
        let bottom = taken.iter().map(|(_, y)| y + 1).max().expect("panels");
        assert_eq!(taken.len() as u64, bottom * 24, "{path} has a gap");
    }
}

#[test]
fn checks_the_list_of_custom_metrics() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let result = CustomMetrics::parse(text).map(|list| list.panels().len());
        let found = result.map_or_else(|error| error.to_string(), |count| count.to_string());
        assert!(found.starts_with(expected), "{text}: {found}");
    }
    check("", "0");
    check(EMPTY_CUSTOM_METRICS, "0");
    // How kubebuilder's plugin writes an empty list.
    check("---\ncustomMetrics:\n#  - metric: x\n", "0");
    check(
        "customMetrics: [{metric: a_total, type: counter, expr: null}]",
        "cannot parse",
    );
    check(
        "customMetrics: [{metric: a_total, type: counter}, {metric: b, type: gauge, unit: s}]",
        "2",
    );
    check(
        "customMetrics: [{metric: a_total, type: summary}]",
        "cannot parse grafana/custom-metrics/config.yaml:1:41: ",
    );
    check("customMetrics: [{metric: a_total}]", "cannot parse");
    check(
        "customMetrics: [{metric: a_total, type: counter, uint: s}]",
        "cannot parse",
    );
    check(
        "customMetrics: [{metric: a-b, type: gauge}]",
        "grafana/custom-metrics/config.yaml: expected the name of a metric, such as `backups_total`, found `a-b`",
    );
    check(
        "customMetrics: [{metric: a, type: gauge}, {metric: a, type: gauge}]",
        "grafana/custom-metrics/config.yaml: the metric `a` is listed twice",
    );
}

#[test]
fn queries_of_custom_metrics_depend_on_the_type() {
    let list = CustomMetrics::parse(
        "customMetrics:\n- {metric: a_bytes_total, type: counter}\n- {metric: b_seconds, type: histogram}\n- {metric: c, type: gauge, expr: 'max(c{a=\"b\"})', title: '\"C\"'}\n",
    )
    .expect("a list");
    let text = &make_files("shop", "shop-controller-manager-metrics-service", &list)["grafana/custom-metrics/custom-metrics-dashboard.json"];
    let dashboard: Value = serde_json::from_str(text).expect("JSON");
    let matchers = r#"{job="$job", namespace="$namespace", instance=~"$instance"}[$__rate_interval]"#;
    let panel = |index: usize| {
        let panel = &dashboard["panels"][index];
        (
            &panel["title"],
            &panel["fieldConfig"]["defaults"]["unit"],
            &panel["targets"],
        )
    };
    let (title, unit, targets) = panel(0);
    assert_eq!((title, unit), (&"a_bytes_total".into(), &"Bps".into()));
    assert_eq!(
        targets[0]["expr"],
        format!("sum by (instance) (rate(a_bytes_total{matchers}))")
    );
    let (_, unit, targets) = panel(1);
    assert_eq!(
        (unit, targets.as_array().expect("targets").len()),
        (&"s".into(), 3)
    );
    let (title, _, targets) = panel(2);
    assert_eq!(
        (title, &targets[0]["expr"]),
        (&"\"C\"".into(), &"max(c{a=\"b\"})".into())
    );
}
