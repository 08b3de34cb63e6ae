//! Validates the parameters of requests and the options of deletions, as in
//! `apimachinery/pkg/apis/meta/v1/validation`.

use rbuilder_judge::go;
use serde_json::{Map, Value, json};

use super::failure::{Cause, Failure};
use super::request::{Request, Verb};

const LONGEST_MANAGER: usize = 128;
const NOT_OLDER_THAN: &str = "NotOlderThan";

pub(super) fn check_parameters(request: &Request, applies: bool) -> Result<(), Failure> {
    // Most requests have at most a field manager.
    if request.parameters.is_empty() && !applies {
        return Ok(());
    }
    match request.verb {
        Verb::Create => conclude("CreateOptions", check_write(request)),
        Verb::Update => conclude("UpdateOptions", check_write(request)),
        Verb::Patch => {
            let mut causes = Vec::new();
            if applies && request.parameter("fieldManager").is_empty() {
                causes.push(required("fieldManager", "is required for apply patch"));
            }
            if !applies && request.parameters.contains_key("force") {
                causes.push(forbidden("force", "may not be specified for non-apply patch"));
            }
            causes.extend(check_write(request));
            conclude("PatchOptions", causes)
        }
        Verb::List | Verb::Watch | Verb::DeleteCollection => {
            for name in ["limit", "timeoutSeconds"] {
                check_number(request, name)?;
            }
            let is_watch = request.verb == Verb::Watch;
            let causes = if is_watch {
                check_watch(request)
            } else {
                check_list(request)
            };
            conclude("ListOptions", causes)
        }
        Verb::Get | Verb::Delete => Ok(()),
    }
}

/// The options of a deletion that has no body.
pub(super) fn delete_options(request: &Request) -> Value {
    let mut options = Map::new();
    for (name, value) in &request.parameters {
        let value = match name.as_str() {
            "propagationPolicy" => json!(value),
            "gracePeriodSeconds" => json!(value.parse::<i64>().unwrap_or_default()),
            "orphanDependents" => json!(request.is_set(name)),
            "dryRun" => json!([value]),
            _ => continue,
        };
        options.insert(name.clone(), value);
    }
    options.into()
}

pub(super) fn check_delete_options(options: &Value) -> Result<(), Failure> {
    let mut causes = Vec::new();
    let policy = options["propagationPolicy"].as_str();
    if let (Some(policy), true) = (policy, options["orphanDependents"].is_boolean()) {
        let message = format!(
            "Invalid value: {}: orphanDependents and deletionPropagation cannot be both set",
            go::quote(policy)
        );
        causes.push(Cause::invalid("propagationPolicy", message));
    }
    const POLICIES: [&str; 4] = ["Foreground", "Background", "Orphan", "nil"];
    if let Some(policy) = policy.filter(|policy| !POLICIES[..3].contains(policy)) {
        causes.push(unsupported("propagationPolicy", &go::quote(policy), &POLICIES));
    }
    let dry_run = options["dryRun"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    causes.extend(check_dry_run(dry_run.iter().filter_map(Value::as_str)));
    conclude("DeleteOptions", causes)
}

fn check_write(request: &Request) -> Vec<Cause> {
    let manager = request.parameter("fieldManager");
    let mut causes = Vec::new();
    if manager.len() > LONGEST_MANAGER {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            field: "fieldManager".to_owned(),
            message: format!("Too long: may not be more than {LONGEST_MANAGER} bytes"),
        });
    }
    causes.extend(check_dry_run(
        request.parameters.get("dryRun").into_iter().map(String::as_str),
    ));
    let validation = request.parameter("fieldValidation");
    const VALIDATIONS: [&str; 4] = ["", "Ignore", "Strict", "Warn"];
    if !VALIDATIONS.contains(&validation) {
        causes.push(unsupported(
            "fieldValidation",
            &go::quote(validation),
            &VALIDATIONS,
        ));
    }
    causes
}

fn check_dry_run<'v>(values: impl Iterator<Item = &'v str>) -> Option<Cause> {
    let values: Vec<&str> = values.collect();
    if values.iter().all(|value| *value == "All") {
        return None;
    }
    Some(unsupported("dryRun", &go::json(&json!(values)), &["All"]))
}

fn check_number(request: &Request, name: &str) -> Result<(), Failure> {
    let Some(text) = request.parameters.get(name) else {
        return Ok(());
    };
    match text.parse::<i64>() {
        Ok(_) => Ok(()),
        Err(_) => {
            let message = format!("strconv.ParseInt: parsing {}: invalid syntax", go::quote(text));
            Err(Failure::bad_request(message))
        }
    }
}

fn check_list(request: &Request) -> Vec<Cause> {
    let (version, wanted) = (
        request.parameter("resourceVersion"),
        request.parameter("resourceVersionMatch"),
    );
    let mut causes = Vec::new();
    let mut forbid = |message: &str| causes.push(forbidden("resourceVersionMatch", message));
    if !wanted.is_empty() {
        if version.is_empty() {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !request.parameter("continue").is_empty() {
            forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if wanted == "Exact" && version == "0" {
            forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        if !["Exact", NOT_OLDER_THAN].contains(&wanted) {
            let supported = ["Exact", NOT_OLDER_THAN, ""];
            causes.push(unsupported(
                "resourceVersionMatch",
                &go::quote(wanted),
                &supported,
            ));
        }
    }
    if request.parameters.contains_key("sendInitialEvents") {
        causes.push(forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    causes
}

fn check_watch(request: &Request) -> Vec<Cause> {
    let wanted = request.parameter("resourceVersionMatch");
    let is_initial = request.parameters.contains_key("sendInitialEvents");
    let mut causes = Vec::new();
    if is_initial && wanted != NOT_OLDER_THAN {
        let message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(forbidden("resourceVersionMatch", message));
    }
    if wanted.is_empty() {
        return causes;
    }
    if !is_initial {
        let message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(forbidden("resourceVersionMatch", message));
    }
    if wanted != NOT_OLDER_THAN {
        causes.push(unsupported(
            "resourceVersionMatch",
            &go::quote(wanted),
            &[NOT_OLDER_THAN],
        ));
    }
    causes
}

fn conclude(options: &str, causes: Vec<Cause>) -> Result<(), Failure> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid_options(options, &causes))
}

fn required(field: &str, why: &str) -> Cause {
    Cause {
        reason: "FieldValueRequired",
        field: field.to_owned(),
        message: format!("Required value: {why}"),
    }
}

fn forbidden(field: &str, why: &str) -> Cause {
    Cause {
        reason: "FieldValueForbidden",
        field: field.to_owned(),
        message: format!("Forbidden: {why}"),
    }
}

fn unsupported(field: &str, shown: &str, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|value| go::quote(value)).collect();
    Cause {
        reason: "FieldValueNotSupported",
        field: field.to_owned(),
        message: format!(
            "Unsupported value: {shown}: supported values: {}",
            supported.join(", ")
        ),
    }
}
