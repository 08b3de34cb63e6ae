//! Writes the API to measure in Go. The layout is the one of kubebuilder, i.e. there is a package
//! for types and a package for controllers.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use super::FIELDS;
use super::cost::run_measured;
use crate::sh::Cmd;

/// Version of the Kubernetes modules. This should be the version that controller-gen depends on.
const KUBERNETES: &str = "v0.36.0";

/// Writes a Go module with the given number of kinds.
pub(super) fn write_kinds(folder: &Path, kinds: usize) -> Result<()> {
    let (api, controllers) = packages(folder, "v1", "bench.example.com")?;
    for kind in 0..kinds {
        fs_err::write(api.join(format!("kind{kind}_types.go")), kind_source(kind)?)?;
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

fn packages(folder: &Path, version: &str, group: &str) -> Result<(std::path::PathBuf, std::path::PathBuf)> {
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

/// The Go equivalent of `rust::SHAPES`. Contains the markers and the type of each field, and
/// whether its JSON tag has `omitempty`.
const SHAPES: &[(&[&str], &str, bool)] = &[
    (
        &[
            "+kubebuilder:validation:MinLength=1",
            "+kubebuilder:validation:MaxLength=253",
        ],
        "string",
        false,
    ),
    (
        &[
            "+kubebuilder:validation:Minimum=0",
            "+kubebuilder:validation:Maximum=100",
        ],
        "int32",
        false,
    ),
    (&["+optional"], "*bool", true),
    (&["+kubebuilder:validation:MaxItems=16"], "[]string", false),
    (&["+optional"], "map[string]string", true),
    (&["+kubebuilder:validation:Pattern=`^[a-z]+$`"], "string", false),
    (&["+required"], "KIND_Mode", false),
    (&["+optional"], "*KIND_Part", true),
    (&["+listType=map", "+listMapKey=name"], "[]KIND_Part", false),
    (&["+optional"], "*int64", true),
];

fn kind_source(kind: usize) -> Result<String> {
    let mut text = format!(
        r#"package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind{kind}Mode is a mode.
// +kubebuilder:validation:Enum=Keep;Delete
type Kind{kind}Mode string

const (
	// Kind{kind}Keep deletes nothing.
	Kind{kind}Keep Kind{kind}Mode = "Keep"
	// Kind{kind}Delete deletes everything.
	Kind{kind}Delete Kind{kind}Mode = "Delete"
)

// Kind{kind}Part is a part of a kind.
type Kind{kind}Part struct {{
	// The part's name.
	Name string `json:"name"`
	// How many of them.
	// +kubebuilder:validation:Minimum=1
	HowMany int32 `json:"howMany"`
}}

// Kind{kind}Spec says what kind {kind} should be.
type Kind{kind}Spec struct {{
"#
    );
    for field in 0..FIELDS {
        let (markers, type_, optional) = SHAPES[field % SHAPES.len()];
        writeln!(
            text,
            "\t// Field {field} says one more thing about the object, in a sentence of usual length."
        )?;
        for marker in markers {
            writeln!(text, "\t// {marker}")?;
        }
        let omit = if optional { ",omitempty" } else { "" };
        let type_ = type_.replace("KIND_", &format!("Kind{kind}"));
        writeln!(
            text,
            "\tFieldNumber{field} {type_} `json:\"fieldNumber{field}{omit}\"`"
        )?;
    }
    writeln!(
        text,
        r#"}}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kind{kind}s,scope=Namespaced

// Kind{kind} is the schema of the API.
type Kind{kind} struct {{
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Kind{kind}Spec `json:"spec"`
}}

// +kubebuilder:object:root=true

// Kind{kind}List contains a list of Kind{kind}.
type Kind{kind}List struct {{
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Kind{kind} `json:"items"`
}}"#
    )?;
    Ok(text)
}

const CRON_JOB: &str = r#"package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronJobSpec defines the desired state of CronJob.
type CronJobSpec struct {
	// The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.
	// +kubebuilder:validation:MinLength=0
	Schedule string `json:"schedule"`
	// Optional deadline in seconds for starting the job if it misses scheduled time for any reason.
	// Missed jobs executions will be counted as failed ones.
	// +kubebuilder:validation:Minimum=0
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// Specifies how to treat concurrent executions of a Job.
	// +kubebuilder:default:=Allow
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// This flag tells the controller to suspend subsequent executions, it does
	// not apply to already started executions. Defaults to false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// Specifies the job that will be created when executing a CronJob.
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	// The number of successful finished jobs to retain.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// The number of failed finished jobs to retain.
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// ConcurrencyPolicy describes how the job will be handled.
// Only one of the following concurrent policies may be specified.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// CronJobStatus defines the observed state of CronJob.
type CronJobStatus struct {
	// A list of pointers to currently running jobs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// When was the last time the job was successfully scheduled.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status

// CronJob is the schema of the API.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CronJobSpec   `json:"spec"`
	Status CronJobStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// CronJobList contains a list of CronJob.
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronJob `json:"items"`
}
"#;
