//! Checks across all webhooks of a run.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_cel::check_match_condition;
use rbuilder_syntax::WebhookKind;

use super::{Entry, reach};
use crate::package::Package;
use crate::place::Place;
use crate::report::Report;

/// Drops webhooks that were read twice, because two targets share a module.
pub(super) fn drop_second_readings(entries: &mut Vec<Entry<'_>>) {
    let mut places = BTreeSet::new();
    entries.retain(|entry| places.insert(entry.at(entry.webhook.span)));
}

pub(super) fn check_webhooks(package: &Package, entries: &[Entry<'_>], report: &mut Report) {
    check_names(entries, report);
    check_paths(entries, report);
    check_conditions(entries, report);
    reach::check_reach(package, entries, report);
}

fn check_conditions(entries: &[Entry<'_>], report: &mut Report) {
    for entry in entries {
        for condition in &entry.webhook.match_conditions {
            for diagnostic in check_match_condition(&condition.expression) {
                let at = entry.at(condition.span);
                report.add(diagnostic.at(at));
            }
        }
    }
}

fn check_names(entries: &[Entry<'_>], report: &mut Report) {
    let mut names: BTreeMap<(WebhookKind, &str, &str), ()> = BTreeMap::new();
    for entry in entries {
        let key = (entry.webhook.kind, entry.configuration, entry.name.as_str());
        if names.insert(key, ()).is_some() {
            let message = format!("duplicate webhook name `{}`", entry.name);
            let help = "set another `name = \"…\"` on one of them";
            report.error(entry.at(entry.webhook.name_span), message, help);
        }
    }
}

/// Each path must have a single handler. A function counts as one handler, regardless of its number
/// of markers.
fn check_paths(entries: &[Entry<'_>], report: &mut Report) {
    let mut functions: BTreeMap<(&str, Option<&str>, Option<&str>), Place> = BTreeMap::new();
    for entry in entries {
        let Some(path) = &entry.path else { continue };
        let service = &entry.webhook;
        let key = (
            path.as_str(),
            service.service_name.as_deref(),
            service.service_namespace.as_deref(),
        );
        let function = entry.at(entry.handler.function);
        let first = functions.entry(key).or_insert(function);
        if *first != function {
            let message = format!("duplicate handler path `{path}`");
            let help = "set another `path = \"…\"` on one of them, or put both markers on one function";
            report.error(entry.at(entry.webhook.path_span), message, help);
        }
    }
}
