//! What only all webhooks together show.

use std::collections::BTreeMap;
use std::ops::Range;

use rbuilder_cel::check_match_condition;
use rbuilder_syntax::{Span, WebhookKind};

use super::{Entry, reach};
use crate::package::Package;
use crate::report::Report;

/// A place that stays the same when a file is read for a second target.
type Seen<'a> = (&'a str, Range<usize>);

fn seen<'a>(package: &'a Package, entry: &Entry<'_>, span: Span) -> Seen<'a> {
    let file = &package.files[entry.handler.file.0];
    (&file.path, span.range())
}

/// A module that two targets share is read twice; its webhooks are one.
pub(super) fn drop_second_readings(package: &Package, entries: &mut Vec<Entry<'_>>) {
    let mut places = Vec::new();
    entries.retain(|entry| {
        let place = seen(package, entry, entry.webhook.span);
        let is_new = !places.contains(&place);
        if is_new {
            places.push(place);
        }
        is_new
    });
}

pub(super) fn check(package: &Package, entries: &[Entry<'_>], report: &mut Report) {
    check_names(package, entries, report);
    check_paths(package, entries, report);
    check_conditions(package, entries, report);
    reach::check_reach(package, entries, report);
}

/// The API server refuses a configuration with an expression that it cannot compile.
fn check_conditions(package: &Package, entries: &[Entry<'_>], report: &mut Report) {
    for entry in entries {
        for condition in &entry.webhook.match_conditions {
            for diagnostic in check_match_condition(&condition.expression) {
                let at = entry.at(condition.span);
                report.say(
                    package,
                    at,
                    diagnostic.severity,
                    diagnostic.message,
                    diagnostic.help,
                );
            }
        }
    }
}

/// The API server refuses a configuration with two webhooks of one name.
fn check_names(package: &Package, entries: &[Entry<'_>], report: &mut Report) {
    let mut names: BTreeMap<(WebhookKind, &str, &str), ()> = BTreeMap::new();
    for entry in entries {
        let key = (entry.webhook.kind, entry.configuration, entry.name.as_str());
        if names.insert(key, ()).is_some() {
            let message = format!("two webhooks are called `{}`", entry.name);
            let help = "give one of them another `name = \"…\"`: the API server refuses both";
            report.error(package, entry.at(entry.webhook.name_span), message, help);
        }
    }
}

/// One handler is served at a path; a function with several markers is one handler.
fn check_paths(package: &Package, entries: &[Entry<'_>], report: &mut Report) {
    let mut functions: BTreeMap<(&str, Option<&str>, Option<&str>), Seen<'_>> = BTreeMap::new();
    for entry in entries {
        let Some(path) = &entry.path else { continue };
        let service = &entry.webhook;
        let key = (
            path.as_str(),
            service.service_name.as_deref(),
            service.service_namespace.as_deref(),
        );
        let function = seen(package, entry, entry.handler.function);
        let first = functions.entry(key).or_insert_with(|| function.clone());
        if *first != function {
            let message = format!("two handlers are served at `{path}`");
            let help = "give one of them another `path = \"…\"`, or put both markers on one function";
            report.error(package, entry.at(entry.webhook.path_span), message, help);
        }
    }
}
