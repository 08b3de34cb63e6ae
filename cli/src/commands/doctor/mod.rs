//! `rbuilder doctor`: checks the tools on this machine and the state of the project. For a project
//! with shards, also checks the cluster's support for them. Read-only.
//!
//! A check is a function in one of the modules that returns [`Finding`]s.

mod config;
mod files;
mod shards;
mod state;
mod toolchain;
mod tools;

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::decide;
use crate::flags::{DoctorFlags, Output};
use crate::shell::Shell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Good,
    /// Something is outdated, or some commands lack a requirement.
    Warning,
    /// The project does not work.
    Error,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Good => "ok",
            Status::Warning => "warning",
            Status::Error => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    check: &'static str,
    status: Status,
    message: String,
    /// What the user should do; empty for nothing.
    help: String,
    /// Message code, for `rbuilder explain`.
    code: Option<&'static str>,
}

impl Finding {
    fn good(check: &'static str, message: impl Into<String>) -> Finding {
        Finding {
            check,
            status: Status::Good,
            message: message.into(),
            help: String::new(),
            code: None,
        }
    }

    fn warning(check: &'static str, message: impl Into<String>, help: impl Into<String>) -> Finding {
        Finding {
            status: Status::Warning,
            help: help.into(),
            ..Finding::good(check, message)
        }
    }

    fn error(check: &'static str, message: impl Into<String>, help: impl Into<String>) -> Finding {
        Finding {
            status: Status::Error,
            help: help.into(),
            ..Finding::good(check, message)
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "check": self.check,
            "status": self.status.name(),
            "code": self.code,
            "message": self.message,
            "help": (!self.help.is_empty()).then_some(&self.help),
        })
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = match self.code {
            Some(code) => format!("{}[{code}]", self.status.name()),
            None => self.status.name().to_owned(),
        };
        writeln!(f, "{status:>7} {}: {}", self.check, self.message)?;
        if !self.help.is_empty() {
            writeln!(f, "        = help: {}", self.help)?;
        }
        Ok(())
    }
}

/// Runs the command. The exit code is 1 if a finding is an error.
pub(super) fn run(dir: &Path, flags: &DoctorFlags, shell: &mut Shell) -> Result<u8> {
    let (_, (needs, found)) = decide(dir, shell, &mut |tree| Ok(state::examine_project(tree)))?;
    let mut findings = tools::examine_tools(dir, &needs);
    findings.extend(found);
    // Only connect to the cluster for projects with shards.
    if findings.iter().any(|finding| finding.check == shards::CHECK) {
        findings.push(shards::examine_cluster(dir));
    }
    if flags.output == Output::Json {
        let list: Vec<Value> = findings.iter().map(Finding::to_json).collect();
        let answer = json!({ "command": "doctor", "applied": false, "changes": [], "findings": list });
        shell.out(&format!("{answer:#}\n"));
    } else {
        let lines: String = findings.iter().map(Finding::to_string).collect();
        shell.report(&lines);
    }
    let is_error = findings.iter().any(|finding| finding.status == Status::Error);
    Ok(u8::from(is_error))
}
