//! `rbuilder simulate`, run with a fake cargo that writes the reports of simulations.
#![cfg(unix)]
#![allow(clippy::disallowed_methods)] // the tests create the program that the command starts

use std::process::Command;

use crate::support;

use support::Folder;

/// The library has written this report, which has one failure.
const REPORT: &str = include_str!("../../crates/simulation/tests/report.json");
const PAGE: &str = "target/simulation.html";
const KEPT: &str = "simulations/tests-web.a_service_is_made.jsonl";

/// Records how it's called, and writes the reports that are beside it.
const CARGO: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$@" > "$here/calls"
echo "histories $RBUILDER_SIMULATION_HISTORIES, seconds $RBUILDER_SIMULATION_SECONDS, $RBUILDER_SIMULATION" >> "$here/calls"
[ -z "$RBUILDER_SIMULATION_SERVER" ] || echo "server $RBUILDER_SIMULATION_SERVER, $KUBEBUILDER_ASSETS" >> "$here/calls"
for report in "$here"/*.json; do
    [ ! -e "$report" ] || cp "$report" "$RBUILDER_SIMULATION_REPORTS/"
done
[ ! -e "$here/fails" ] || exit 101
"#;

struct Scene {
    project: Folder,
    /// Has the fake cargo, its reports, and what it recorded.
    bin: Folder,
}

impl Scene {
    fn new() -> Scene {
        let (project, bin) = (Folder::new(), Folder::new());
        project.run("init --domain example.com --project-name shop").ok();
        bin.write_program("cargo", CARGO);
        Scene { project, bin }
    }

    /// The text is what the command prints, with its errors.
    fn run(&self, line: &str) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rbuilder"));
        command
            .args(line.split_whitespace())
            .current_dir(self.project.path())
            .env("PATH", format!("{}:/bin:/usr/bin", self.bin.path().display()))
            .env("KUBEBUILDER_ASSETS", "/opt/servers")
            .env("RBUILDER_SIMULATION", "of another run")
            .env("RBUILDER_SIMULATION_HISTORIES", "7");
        let output = command.output().expect("the command runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).expect("text"))
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.bin.path().join("calls")).unwrap_or_default()
    }

    /// The text is empty if there is no such file.
    fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.project.path().join(path)).unwrap_or_default()
    }
}

fn passing() -> String {
    let mut report: serde_json::Value = serde_json::from_str(REPORT).expect("a report");
    report["failures"] = serde_json::json!([]);
    report.to_string()
}

#[test]
fn budget_and_filter_reach_the_tests() {
    let scene = Scene::new();
    scene.bin.write("a.json", &passing());
    for (line, call, budget) in [
        (
            "simulate",
            "test --tests --no-fail-fast",
            "histories 1000, seconds , ",
        ),
        (
            "simulate --histories 50 memcached",
            "test --tests --no-fail-fast memcached",
            "histories 50, seconds , ",
        ),
        (
            "simulate --seconds 5 -- --test cup --release",
            "test --tests --no-fail-fast --test cup --release",
            "histories , seconds 5, ",
        ),
    ] {
        let (code, said) = scene.run(line);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(scene.calls(), format!("{call}\n{budget}\n"));
    }
}

#[test]
fn tests_replay_histories_on_the_installed_servers() {
    let scene = Scene::new();
    let (code, said) = scene.run("simulate --on-server");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no test has run a simulation"), "{said}");
    scene.bin.write("a.json", &passing());
    let (code, said) = scene.run("simulate --on-server -- --test cup");
    assert_eq!(code, Some(0), "{said}");
    let call = "test --tests --no-fail-fast --test cup\nhistories , seconds , \nserver 1, /opt/servers\n";
    assert_eq!(scene.calls(), call);
    assert_eq!(scene.file(PAGE), "");
    scene.bin.write("fails", "");
    let (code, said) = scene.run("simulate --on-server");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("its output above shows the states that differ"),
        "{said}"
    );
}

#[test]
fn failing_histories_are_kept_once_and_shown_on_the_page() {
    let scene = Scene::new();
    scene.bin.write("a.json", REPORT);
    scene.bin.write("fails", "");
    for _ in 0..2 {
        let (code, said) = scene.run("simulate");
        assert_eq!(code, Some(1), "{said}");
        let line = "tests-web.a_service_is_made: 1 failure (end-state) in ";
        assert!(said.contains(line), "{said}");
        let kept = scene.file(KEPT);
        assert!(kept.starts_with(r#"{"seed":0,"steps":[{"apply":0},"#), "{kept}");
        assert_eq!(kept.lines().count(), 1, "{kept}");
        assert!(scene.file(PAGE).contains("<h1>Simulations of shop</h1>"));
    }
    scene.project.write(KEPT, "{\"steps\":[]}");
    scene.run("simulate");
    assert_eq!(scene.file(KEPT).lines().count(), 2, "{}", scene.file(KEPT));
}

#[test]
fn page_is_made_from_reports_of_another_run() {
    let scene = Scene::new();
    scene.project.write("reports/a.json", REPORT);
    let (code, said) = scene.run("simulate --from reports --file docs/simulation.html");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        scene
            .file("docs/simulation.html")
            .contains("services default/a is missing")
    );
    assert_eq!(scene.file(KEPT), "");
    assert_eq!(scene.calls(), "");
}

#[test]
fn runs_without_a_result_are_errors() {
    for (reports, fails, expected) in [
        (&[][..], false, "error: no test has run a simulation"),
        (
            &[],
            true,
            "error: `cargo test` failed, and no simulation has ended",
        ),
        (
            &[passing()],
            true,
            "error: no simulation has failed, but `cargo test` has",
        ),
        (
            &[REPORT.replace("\"version\": 1", "\"version\": 2")],
            false,
            "the library writes reports of format 2, and this rbuilder reads format 1",
        ),
        (
            &[REPORT.replace("simulations/tests-web", "src/tests-web")],
            false,
            "names src/tests-web.a_service_is_made.jsonl as the file of its histories",
        ),
    ] {
        let scene = Scene::new();
        for report in reports {
            scene.bin.write("a.json", report);
        }
        if fails {
            scene.bin.write("fails", "");
        }
        let (code, said) = scene.run("simulate");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn files_of_others_are_not_replaced() {
    let scene = Scene::new();
    scene.bin.write("a.json", REPORT);
    let (code, said) = scene.run("simulate --file README.md");
    assert_eq!(code, Some(1), "{said}");
    let expected = "README.md was not generated by `rbuilder simulate`";
    assert!(said.contains(expected), "{said}");
    assert_eq!(scene.calls(), "");
}
