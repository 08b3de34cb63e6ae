// SPDX-License-Identifier: Apache-2.0

//! Parses metrics in Prometheus' text format.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::Result;

/// The labels and the value of a line.
type Line<'a> = (BTreeMap<&'a str, &'a str>, f64);

/// Returns the lines of a metric.
pub fn lines<'a>(text: &'a str, name: &str) -> Vec<Line<'a>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(name));
    lines.filter_map(parse).collect()
}

fn parse(rest: &str) -> Option<Line<'_>> {
    let (labels, value) = match rest.strip_prefix('{') {
        // The values of the labels used here contain neither braces nor commas.
        Some(rest) => rest.split_once('}')?,
        None => ("", rest.strip_prefix(' ')?),
    };
    let labels = labels.split(',').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name, value.trim_matches('"')))
    });
    Some((labels.collect(), value.trim().parse().ok()?))
}

/// Returns the requests for the measured kinds counted by the API server, by `VERB resource`.
pub fn requests(apiserver: &str) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    for (labels, value) in lines(apiserver, "apiserver_request_total") {
        let resource = labels.get("resource").copied().unwrap_or_default();
        if !["memcacheds", "deployments"].contains(&resource) {
            continue;
        }
        let mut call = format!(
            "{} {resource}",
            labels.get("verb").copied().unwrap_or_default()
        );
        if let Some(subresource) = labels.get("subresource").filter(|name| !name.is_empty()) {
            call = format!("{call}/{subresource}");
        }
        *counts.entry(call).or_default() += value;
    }
    counts
}

/// Returns the increase of each count.
pub fn since(
    before: &BTreeMap<String, f64>,
    after: BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    let added = after.into_iter().map(|(call, count)| {
        let already = before.get(&call).copied().unwrap_or_default();
        (call, count - already)
    });
    added.filter(|(_, count)| *count > 0.0).collect()
}

/// Returns the metrics of an operator.
pub async fn scrape(address: &str) -> Result<String> {
    let address = address.to_owned();
    // Do not use tokio's I/O, whose features scaffolds do not need: tokio would be built again.
    tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(&address)?;
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    })
    .await?
}

/// Returns the number of completed reconciles.
pub fn reconciles(operator: &str) -> f64 {
    let lines = lines(operator, "controller_runtime_reconcile_total");
    lines.iter().map(|(_, value)| value).sum()
}

/// Returns the number of ranges that a replica works on.
pub fn serving_ranges(operator: &str) -> f64 {
    let lines = lines(operator, "rbuilder_shard_ranges");
    let serving = lines
        .iter()
        .filter(|(labels, _)| labels.get("state") == Some(&"serving"));
    serving.map(|(_, value)| value).sum()
}

/// Returns the number of objects in all caches.
pub fn cached_objects(operator: &str) -> f64 {
    let lines = lines(operator, "rbuilder_cache_objects");
    lines.iter().map(|(_, value)| value).sum()
}

/// Returns the number of received objects that belong to other replicas.
pub fn foreign_objects(operator: &str) -> f64 {
    let lines = lines(operator, "rbuilder_shard_filtered_objects_total");
    lines.iter().map(|(_, value)| value).sum()
}

/// Returns the requests counted by an operator, by `METHOD code`.
pub fn own_requests(operator: &str) -> BTreeMap<String, f64> {
    let lines = lines(operator, "rest_client_requests_total");
    let name = |labels: &BTreeMap<&str, &str>| format!("{} {}", labels["method"], labels["code"]);
    lines
        .iter()
        .map(|(labels, value)| (name(labels), *value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_requests_by_verb_and_resource() {
        let text = "# TYPE apiserver_request_total counter\n\
            apiserver_request_total{code=\"200\",resource=\"deployments\",subresource=\"\",verb=\"APPLY\"} 3\n\
            apiserver_request_total{code=\"201\",resource=\"deployments\",subresource=\"\",verb=\"APPLY\"} 2\n\
            apiserver_request_total{code=\"200\",resource=\"memcacheds\",subresource=\"status\",verb=\"APPLY\"} 1\n\
            apiserver_request_total{code=\"200\",resource=\"leases\",subresource=\"\",verb=\"PUT\"} 9\n";
        let counted = requests(text);
        let expected = [("APPLY deployments", 5.0), ("APPLY memcacheds/status", 1.0)];
        assert_eq!(
            counted,
            expected
                .map(|(call, count)| (call.to_owned(), count))
                .into()
        );
        let before = [("APPLY deployments".to_owned(), 5.0)].into();
        assert_eq!(
            since(&before, counted),
            [("APPLY memcacheds/status".to_owned(), 1.0)].into()
        );
    }

    #[test]
    fn sums_reconciles() {
        let text = "controller_runtime_reconcile_total{controller=\"memcached\",result=\"error\"} 1\n\
            controller_runtime_reconcile_total{controller=\"memcached\",result=\"success\"} 4\n";
        assert_eq!(reconciles(text), 5.0);
    }
}
