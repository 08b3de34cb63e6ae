//! `rbuilder grafana`: dashboards and rules are written, listed and merged. `cargo xtask grafana` asks promtool and Grafana's types.

use std::sync::LazyLock;

use crate::support::{self, Folder, Saved};

const RULES: &str = "config/prometheus/rules.yaml";
const KUSTOMIZATION: &str = "config/prometheus/kustomization.yaml";
const DASHBOARD: &str = "grafana/controller-runtime-metrics.json";
const CUSTOM: &str = "grafana/custom-metrics/config.yaml";
const CUSTOM_DASHBOARD: &str = "grafana/custom-metrics/custom-metrics-dashboard.json";

fn project() -> Folder {
    static PROJECT: LazyLock<Saved> = LazyLock::new(|| {
        let folder = Folder::new();
        folder.run("init --domain example.com --project-name shop").ok();
        folder
            .run("create api --group cache --version v1 --kind Cup")
            .ok();
        folder.run("grafana").ok();
        folder.save()
    });
    PROJECT.copy()
}

#[test]
fn dashboards_and_rules_are_these_files() {
    let folder = project();
    let tree = folder.tree();
    for path in [
        DASHBOARD,
        "grafana/controller-resources-metrics.json",
        CUSTOM,
        RULES,
    ] {
        let name = path.rsplit('/').next().expect("a name");
        support::golden(&format!("grafana/{name}"), &tree[path]);
    }
    assert!(tree[KUSTOMIZATION].ends_with("- monitor.yaml\n- rules.yaml\n"));
    folder.check_unchanged("grafana");
}

#[test]
fn changes_of_people_stay() {
    let folder = project();
    folder.replace(RULES, "for: 15m", "for: 30m");
    folder.replace(DASHBOARD, "\"refresh\": \"30s\"", "\"refresh\": \"5m\"");
    // Who does not want the rules to be deployed takes them out of the list, or deletes them.
    folder.replace(KUSTOMIZATION, "- rules.yaml\n", "");
    folder.check_unchanged("grafana");
    folder.remove(RULES);
    let tree = folder.tree();
    folder.check_unchanged("grafana");
    assert_eq!(folder.tree(), tree);
}

#[test]
fn listed_metrics_have_a_dashboard() {
    let folder = project();
    folder.write(CUSTOM, "customMetrics:\n- metric: cups_total\n  type: counter\n");
    assert_eq!(folder.run("grafana --check").code, 1);
    folder.run("grafana").ok();
    assert!(folder.tree()[CUSTOM_DASHBOARD].contains("rate(cups_total{"));
    folder.check_unchanged("grafana");

    folder.write(CUSTOM, "customMetrics:\n- metric: cups\n  type: amount\n");
    let before = folder.tree();
    let ran = folder.run("grafana");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("cannot parse grafana/custom-metrics/config.yaml"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains(
            ":3:9: unknown variant `amount`, expected one of counter, gauge, histogram\n  |   type: amount\n"
        ),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree(), before);

    folder.remove(CUSTOM);
    folder.run("grafana").ok();
    assert!(!folder.tree().contains_key(CUSTOM_DASHBOARD));
    folder.check_unchanged("grafana");
}

#[test]
fn files_of_others_are_kept() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    folder.write(RULES, "ours: 1\n");
    let before = folder.tree();
    let ran = folder.run("grafana");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains(RULES), "{}", ran.err);
    assert_eq!(folder.tree(), before);
    folder.run("grafana --force").ok();
    assert!(folder.tree()[RULES].contains("kind: PrometheusRule"));
}

#[test]
fn the_chart_and_the_bundle_have_the_rules() {
    let folder = project();
    folder.run("edit --enable prometheus").ok();
    folder.run("helm").ok();
    let tree = folder.tree();
    let rules = &tree["charts/shop/templates/prometheus/rules.yaml"];
    assert!(
        rules.contains("{{ \"{{\" }} $labels.controller }}"),
        "the expressions of Prometheus are literals of Helm: {rules}"
    );
    folder.run("bundle --image example.com/shop:v1").ok();
    let path = "bundle/manifests/shop-controller-manager-rules_monitoring.coreos.com_v1_prometheusrule.yaml";
    assert!(folder.tree().contains_key(path));
}

#[test]
fn a_project_without_a_kustomization_of_rules_is_told() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    folder.remove(KUSTOMIZATION);
    let ran = folder.run("grafana").ok();
    assert!(
        ran.err.contains("config/prometheus/rules.yaml is not deployed"),
        "{}",
        ran.err
    );
}
