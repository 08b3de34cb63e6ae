//! `cargo xtask grafana`: checks a scaffold's rules and dashboards with promtool and the types
//! published by Grafana, and its chart's alerts in all releases.

mod releases;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::sh::Cmd;
use crate::tools::{PROMTOOL, ensure_tool};
use crate::{assets, repo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only find or build the programs that check
    #[arg(long)]
    build: bool,
}

const COMMANDS: [&str; 4] = [
    "init --domain example.com --project-name shop --library path",
    "create api --group cache --version v1 --kind Cup",
    "grafana",
    "helm",
];

/// A list with a metric of each type and an expression that contains quotes.
const CUSTOM_METRICS: &str = r#"customMetrics:
- {metric: cups_total, type: counter}
- {metric: cup_bytes, type: gauge}
- {metric: cup_seconds, type: histogram, title: "Time \"of\" a cup"}
- {metric: cup_info, type: gauge, expr: "count by (version) (cup_info{job=\"$job\"})"}
"#;

/// Grafana variables in queries, and the values substituted for promtool.
const VARIABLES: &[(&str, &str)] = &[
    ("$__rate_interval", "5m"),
    ("$job", "shop"),
    ("$namespace", "shop-system"),
    ("$instance", ".+"),
];

/// Checks the output of `rbuilder grafana`.
pub(crate) fn check_dashboards(args: &Args) -> Result<()> {
    let promtool = ensure_tool(&PROMTOOL)?;
    let helm = assets::ensure_helm()?;
    let types = ensure_types()?;
    if args.build {
        return Ok(());
    }
    let bin = repo::build_rbuilder()?;
    let folder = tempfile::Builder::new().prefix("rbuilder-grafana-").tempdir()?;
    let project = folder.path().join("project");
    fs_err::create_dir(&project)?;
    for line in COMMANDS {
        repo::rbuilder_command(&bin, &project, line)?.read()?;
    }
    fs_err::write(project.join("grafana/custom-metrics/config.yaml"), CUSTOM_METRICS)?;
    repo::rbuilder_command(&bin, &project, "grafana")?.read()?;
    let again = repo::rbuilder_command(&bin, &project, "grafana")?.read()?;
    ensure!(
        again.starts_with("unchanged"),
        "a second run changes the dashboards:\n{again}"
    );
    check_rules(&promtool, &project, folder.path())?;
    releases::check_releases(
        (&promtool, &helm),
        &project.join("charts/shop"),
        &read_alert_tests()?,
        folder.path(),
    )?;
    let dashboards = read_dashboards(&project)?;
    check_queries(&promtool, &dashboards, folder.path())?;
    check_types(&types, &dashboards)?;
    println!("the rules and dashboards are valid");
    Ok(())
}

/// Checks the rules with promtool and runs the alert tests. First makes sure that promtool reports
/// an invalid rule.
fn check_rules(promtool: &Path, project: &Path, folder: &Path) -> Result<()> {
    let text = fs_err::read_to_string(project.join("config/prometheus/rules.yaml"))?;
    let object: Value = serde_saphyr::from_str(&text)?;
    let rules = object["spec"].to_string();
    let file = folder.join("rules.yaml");
    let check = || {
        Cmd::program(promtool)
            .words("check rules --lint=all --lint-fatal")
            .arg(&file)
    };
    fs_err::write(&file, rules.replacen("sum by", "sum bye", 1))?;
    ensure!(!check().succeeds(), "promtool passes an expression that is wrong");
    // Write JSON, which is valid YAML.
    fs_err::write(&file, rules)?;
    check().run()?;

    let tests = read_alert_tests()?;
    for group in object["spec"]["groups"].as_array().into_iter().flatten() {
        for alert in group["rules"].as_array().into_iter().flatten() {
            if let Some(name) = alert["alert"].as_str() {
                ensure!(
                    tests.contains(&format!("labels: '{{alertname=\"{name}\"}}'")),
                    "the alert {name} fires in no test of testdata/grafana/alerts.yaml"
                );
            }
        }
    }
    let test_file = folder.join("alerts.yaml");
    fs_err::write(&test_file, tests)?;
    Cmd::program(promtool).words("test rules").arg(&test_file).run()
}

/// Returns the alert tests.
fn read_alert_tests() -> Result<String> {
    Ok(fs_err::read_to_string(
        repo::root().join("testdata/grafana/alerts.yaml"),
    )?)
}

/// Returns a project's dashboards by path.
fn read_dashboards(project: &Path) -> Result<BTreeMap<PathBuf, Value>> {
    let mut dashboards = BTreeMap::new();
    for entry in walkdir::WalkDir::new(project.join("grafana")) {
        let path = entry?.into_path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs_err::read_to_string(&path)?;
            dashboards.insert(path, serde_json::from_str(&text)?);
        }
    }
    ensure!(
        dashboards.len() == 3,
        "expected 3 dashboards, found {}",
        dashboards.len()
    );
    Ok(dashboards)
}

/// Writes the queries as recording rules, and parses these with promtool.
fn check_queries(promtool: &Path, dashboards: &BTreeMap<PathBuf, Value>, folder: &Path) -> Result<()> {
    let panels = dashboards
        .values()
        .flat_map(|dashboard| dashboard["panels"].as_array());
    let queries = panels
        .flatten()
        .flat_map(|panel| panel["targets"].as_array())
        .flatten();
    let mut rules = Vec::new();
    for query in queries {
        let mut expr = query["expr"]
            .as_str()
            .context("a query has no expression")?
            .to_owned();
        for (variable, value) in VARIABLES {
            expr = expr.replace(variable, value);
        }
        if expr.contains('$') {
            bail!("unknown variable in `{expr}`");
        }
        rules.push(json!({ "record": format!("query:{}", rules.len()), "expr": expr }));
    }
    let file = folder.join("queries.yaml");
    fs_err::write(
        &file,
        json!({ "groups": [{ "name": "queries", "rules": rules }] }).to_string(),
    )?;
    Cmd::program(promtool).words("check rules").arg(&file).run()
}

/// Type-checks the dashboards as literals for tools/grafana/dashboard.ts with the TypeScript
/// compiler. Also makes sure that it reports an unknown field.
fn check_types(types: &Path, dashboards: &BTreeMap<PathBuf, Value>) -> Result<()> {
    let file = types.join("dashboards.ts");
    let mut literals = "import type { Dashboard } from \"./dashboard\";\n".to_owned();
    for (number, dashboard) in dashboards.values().enumerate() {
        literals.push_str(&format!(
            "export const dashboard{number}: Dashboard = {dashboard:#};\n"
        ));
    }
    let check = || {
        Cmd::program(types.join("node_modules/.bin/tsc"))
            .words(
                "--noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler dashboards.ts",
            )
            .dir(types)
    };
    fs_err::write(&file, literals.replacen("\"fillOpacity\"", "\"fillOpacty\"", 1))?;
    ensure!(!check().succeeds(), "the types pass a field that does not exist");
    fs_err::write(&file, literals)?;
    check().run()
}

/// Returns the folder with Grafana's types and the compiler, after installing the versions in
/// tools/grafana/package-lock.json if necessary.
fn ensure_types() -> Result<PathBuf> {
    let source = repo::root().join("tools/grafana");
    let folder = assets::cache_folder()?.join("rbuilder/grafana-types");
    fs_err::create_dir_all(&folder)?;
    let lock = fs_err::read(source.join("package-lock.json"))?;
    let installed = folder.join("installed.json");
    if fs_err::read(&installed).ok().as_ref() != Some(&lock) {
        eprintln!("installing the types of Grafana's dashboards, once");
        for name in ["package.json", "package-lock.json"] {
            fs_err::copy(source.join(name), folder.join(name))?;
        }
        Cmd::new("npm ci --ignore-scripts --no-audit --no-fund --silent")
            .dir(&folder)
            .run()
            .context("the types come from npm's registry: install Node.js 20 or newer")?;
        fs_err::write(&installed, &lock)?;
    }
    fs_err::copy(source.join("dashboard.ts"), folder.join("dashboard.ts"))?;
    Ok(folder)
}
