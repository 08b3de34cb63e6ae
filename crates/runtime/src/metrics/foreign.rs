//! Metrics of other libraries, provided in Prometheus' text format.
//!
//! Prometheus rejects an entire scrape because of a single line that it can't parse, or a series
//! that occurs twice. Therefore, we split the text into families and drop conflicting ones. For
//! example, `a_count` is also a series of our histogram `a`, so this gauge must be dropped even
//! though we have no metric named `a_count`:
//!
//! ```text
//! # TYPE a_count gauge
//! a_count 1
//! ```

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::exposition::is_metric_name;

/// Suffixes of the series of histograms and summaries.
pub(super) const SERIES_SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

type Collect = Arc<dyn Fn() -> String + Send + Sync>;

#[derive(Default)]
pub(super) struct ForeignMetrics {
    collectors: Mutex<Vec<Collect>>,
    /// Metrics that were dropped with a warning, which isn't repeated.
    warned: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct ForeignFamily<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
    series: HashSet<&'a str>,
    invalid_line: Option<&'a str>,
}

impl ForeignMetrics {
    pub(super) fn add(&self, collect: impl Fn() -> String + Send + Sync + 'static) {
        let mut collectors = self.collectors.lock().unwrap_or_else(PoisonError::into_inner);
        collectors.push(Arc::new(collect));
    }

    /// Appends all families that don't conflict with the names in `taken`.
    pub(super) fn write(&self, mut taken: HashSet<String>, text: &mut String) {
        // Release the lock before calling functions of the operator.
        let collectors = self
            .collectors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for collect in collectors {
            // A panic in user code must not fail the whole scrape.
            let Ok(collected) = catch_unwind(AssertUnwindSafe(|| collect())) else {
                self.warn_once("", None, "a collector panicked, skipping its metrics");
                continue;
            };
            for family in split_families(&collected) {
                let names = || family.series.iter().chain([&family.name]);
                if let Some(line) = family.invalid_line {
                    self.warn_once(family.name, Some(line), "skipping invalid metric");
                } else if names().any(|name| taken.contains(*name)) {
                    self.warn_once(family.name, None, "skipping metric, its name is already in use");
                } else {
                    taken.extend(names().map(|name| (*name).to_owned()));
                    family.lines.iter().for_each(|line| text.extend([line, "\n"]));
                }
            }
        }
    }

    fn warn_once(&self, metric: &str, line: Option<&str>, message: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(metric.to_owned()) {
            tracing::warn!(metric, line, "{message}");
        }
    }
}

/// Splits a text into families. Drops all comments except for `HELP` and `TYPE`.
fn split_families(text: &str) -> Vec<ForeignFamily<'_>> {
    let mut families: Vec<ForeignFamily<'_>> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, is_sample) = match line.strip_prefix('#').map(described_metric) {
            Some(Some(name)) => (name, false),
            Some(None) => continue,
            None => (sample_name(line), true),
        };
        // A sample of a histogram or summary has a suffix that its description lacks.
        let is_same = |family: &ForeignFamily<'_>| {
            let rest = name.strip_prefix(family.name);
            rest.is_some_and(|rest| rest.is_empty() || (is_sample && SERIES_SUFFIXES.contains(&rest)))
        };
        // A family starts at the first line whose name doesn't belong to the previous family.
        if !families.last().is_some_and(is_same) {
            families.push(ForeignFamily {
                name,
                ..ForeignFamily::default()
            });
        }
        let Some(family) = families.last_mut() else {
            continue;
        };
        family.lines.push(line);
        if is_sample {
            family.series.insert(name);
        }
        if !is_metric_name(name) || (is_sample && !is_sample_end(&line[name.len()..])) {
            family.invalid_line = family.invalid_line.or(Some(line));
        }
    }
    families
}

fn described_metric(comment: &str) -> Option<&str> {
    let mut words = comment.split_whitespace();
    let is_description = matches!(words.next(), Some("HELP" | "TYPE"));
    is_description.then(|| words.next().unwrap_or_default())
}

fn sample_name(line: &str) -> &str {
    let end = line.find(|c: char| c == '{' || c.is_whitespace());
    &line[..end.unwrap_or(line.len())]
}

/// Matches labels (which are optional), a value, and an optional timestamp in milliseconds.
fn is_sample_end(rest: &str) -> bool {
    let Some(values) = skip_labels(rest.trim_start()) else {
        return false;
    };
    let mut words = values.split_whitespace();
    let has_value = words.next().is_some_and(|value| value.parse::<f64>().is_ok());
    has_value && words.next().is_none_or(|time| time.parse::<i64>().is_ok()) && words.next().is_none()
}

/// Returns what follows the labels, or `None` if they're not terminated.
fn skip_labels(text: &str) -> Option<&str> {
    let Some(labels) = text.strip_prefix('{') else {
        return Some(text);
    };
    // Label values may contain `}` and escaped quotes.
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in labels.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return Some(&labels[at + 1..]),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::LogBuffer;

    /// Returns the text of two scrapes, and the number of warnings.
    fn collect(texts: &[&str]) -> (String, usize) {
        let foreign = ForeignMetrics::default();
        for text in texts {
            let text = (*text).to_owned();
            foreign.add(move || text.clone());
        }
        let log = LogBuffer::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.writers()).finish();
        let scrape = || {
            let mut text = String::new();
            foreign.write(["own", "own_count"].map(str::to_owned).into(), &mut text);
            text
        };
        let scrapes = tracing::subscriber::with_default(subscriber, || [scrape(), scrape()]);
        assert_eq!(scrapes[0], scrapes[1]);
        (scrapes[0].clone(), log.text().matches("WARN").count())
    }

    #[test]
    fn valid_families_are_appended() {
        for text in [
            "# HELP a Help.\n# TYPE a counter\na{b=\"} \\\" 1\",c=\"\"} 1 1700000000000\na{b=\"\"} +Inf\n",
            "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 2.5\nh_count 1\n",
            "untyped 1e-9\nother NaN\n",
        ] {
            assert_eq!(collect(&[text]), (text.to_owned(), 0));
        }
        assert_eq!(collect(&["\n# EOF\n# a comment\n  a 1"]), ("a 1\n".to_owned(), 0));
    }

    #[test]
    fn families_that_would_break_a_scrape_are_dropped_with_one_warning() {
        for text in [
            "# TYPE own gauge\nown 1\n",
            "own_count 1\n",
            "# TYPE own histogram\nown_bucket{le=\"+Inf\"} 1\nown_sum 1\nown_count 1\n",
            "bad-name 1\n",
            "{\"a.b\"} 1\n",
            "a{b=\"c} 1\n",
            "a one\n",
            "a\n",
            "a 1 2 3\n",
            "a 1 # {trace=\"x\"} 1\n",
            "# TYPE\n",
        ] {
            let around = format!("before 1\n{text}after 1\n");
            assert_eq!(
                collect(&[&around]),
                ("before 1\nafter 1\n".to_owned(), 1),
                "{text}"
            );
        }
    }

    #[test]
    fn first_collector_keeps_a_duplicate_name() {
        let (text, warnings) = collect(&["a 1\n", "a 2\nb 2\n"]);
        assert_eq!((&*text, warnings), ("a 1\nb 2\n", 1));
    }

    #[test]
    fn panic_only_drops_the_metrics_of_its_collector() {
        let foreign = ForeignMetrics::default();
        foreign.add(|| panic!("no metrics today"));
        foreign.add(|| "a 1\n".to_owned());
        let mut text = String::new();
        foreign.write(HashSet::new(), &mut text);
        assert_eq!(text, "a 1\n");
    }
}
