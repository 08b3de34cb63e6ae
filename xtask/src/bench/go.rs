//! Writes the API to measure in Go. The layout is the one of kubebuilder, i.e. there is a package
//! for types and a package for controllers.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::cost::run_measured;
use super::{Shape, shapes};
use crate::sh::Cmd;

/// Version of the Kubernetes modules. This should be the version that controller-gen depends on.
const KUBERNETES: &str = "v0.36.0";

pub(super) fn write_kinds(folder: &Path, kinds: usize) -> Result<()> {
    let (api, controllers) = packages(folder, "v1", "bench.example.com")?;
    for kind in 0..kinds {
        fs_err::write(api.join(format!("kind{kind}_types.go")), kind_source(kind))?;
        let rule = format!("groups=bench.example.com,resources=kind{kind}s,verbs=get;list;watch;patch");
        let source = controller(&format!("Kind{kind}"), &[&rule]);
        fs_err::write(controllers.join(format!("kind{kind}_controller.go")), source)?;
    }
    Ok(())
}

/// Writes a Go module with just one kind, CronJob.
pub(super) fn write_cron_job(folder: &Path) -> Result<()> {
    let (api, controllers) = packages(folder, "v1", "batch.tutorial.kubebuilder.io")?;
    fs_err::write(api.join("cronjob_types.go"), CRON_JOB)?;
    let rules = [
        "groups=batch.tutorial.kubebuilder.io,resources=cronjobs,verbs=get;list;watch;create;update;patch;delete",
        "groups=batch.tutorial.kubebuilder.io,resources=cronjobs/status,verbs=get;update;patch",
        "groups=batch,resources=jobs,verbs=get;list;watch;create;update;patch;delete",
    ];
    fs_err::write(
        controllers.join("cronjob_controller.go"),
        controller("CronJob", &rules),
    )?;
    Ok(())
}

/// Completes `go.mod`, and downloads and compiles the dependencies. This happens in advance because
/// we don't want to measure it.
pub(super) fn load_dependencies(folder: &Path) -> Result<()> {
    run_measured(Cmd::new("go mod tidy").dir(folder))?;
    run_measured(Cmd::new("go build ./...").dir(folder))?;
    Ok(())
}

fn packages(folder: &Path, version: &str, group: &str) -> Result<(PathBuf, PathBuf)> {
    let api = folder.join("api").join(version);
    let controllers = folder.join("internal/controller");
    fs_err::create_dir_all(&api)?;
    fs_err::create_dir_all(&controllers)?;
    fs_err::write(
        folder.join("go.mod"),
        format!(
            "module example.com/bench\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/api {KUBERNETES}\n\tk8s.io/apimachinery {KUBERNETES}\n)\n"
        ),
    )?;
    let about = format!(
        "// Package {version} is measured.\n// +kubebuilder:object:generate=true\n// +groupName={group}\npackage {version}\n"
    );
    fs_err::write(api.join("groupversion_info.go"), about)?;
    Ok((api, controllers))
}

fn controller(name: &str, rules: &[&str]) -> String {
    let rules: String = rules
        .iter()
        .map(|rule| format!("// +kubebuilder:rbac:{rule}\n"))
        .collect();
    format!(
        "package controller\n\n{rules}\n// Reconcile{name} brings the cluster to what the object asks for.\n\
         func Reconcile{name}() error {{ return nil }}\n"
    )
}

fn kind_source(kind: usize) -> String {
    let field = |(number, (_, _, go_type, markers)): (usize, Shape)| {
        let mut text = format!(
            "\t// Field {number} says one more thing about the object, in a sentence of usual length.\n"
        );
        for marker in &markers {
            text += &format!("\t// {marker}\n");
        }
        let is_optional = markers.iter().any(|marker| marker == "+optional");
        let omit = if is_optional { ",omitempty" } else { "" };
        let line = format!("\tFieldNumber{number} {go_type} `json:\"fieldNumber{number}{omit}\"`\n");
        text + &line
    };
    let fields: String = shapes().enumerate().map(field).collect();
    include_str!("kind_types.go.in")
        .replacen("FIELDS", &fields, 1)
        .replace('@', &kind.to_string())
}

const CRON_JOB: &str = include_str!("cronjob_types.go");
