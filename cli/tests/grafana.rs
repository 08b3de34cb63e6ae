//! `rbuilder grafana` writes, lists and merges dashboards and rules. `cargo xtask grafana`
//! validates them with promtool and Grafana's types.

use std::sync::LazyLock;

use crate::support::{self, Folder, Saved};

const RULES: &str = "config/prometheus/rules.yaml";
const KUSTOMIZATION: &str = "config/prometheus/kustomization.yaml";
const DASHBOARD: &str = "grafana/controller-runtime-metrics.json";
const CUSTOM: &str = "grafana/custom-metrics/config.yaml";
const CUSTOM_DASHBOARD: &str = "grafana/custom-metrics/custom-metrics-dashboard.json";

fn project() -> Folder {
    static PROJECT: LazyLock<Saved> = LazyLock::new(|| {
        let folder = Folder::with_cup();
        folder.run("grafana").ok();
        folder.save()
    });
    PROJECT.copy()
}

#[test]
fn writes_dashboards_and_rules() {
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
fn keeps_user_changes() {
    let folder = project();
    folder.replace(RULES, "for: 15m", "for: 30m");
    folder.replace(DASHBOARD, "\"refresh\": \"30s\"", "\"refresh\": \"5m\"");
    // Users who don't want to deploy the rules remove them from the list, or delete them.
    folder.replace(KUSTOMIZATION, "- rules.yaml\n", "");
    folder.check_unchanged("grafana");
    folder.remove(RULES);
    let tree = folder.tree();
    folder.check_unchanged("grafana");
    assert_eq!(folder.tree(), tree);
}

#[test]
fn custom_metrics_get_a_dashboard() {
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
fn keeps_foreign_files() {
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
fn chart_and_bundle_contain_the_rules() {
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
fn reports_a_missing_kustomization_for_rules() {
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
