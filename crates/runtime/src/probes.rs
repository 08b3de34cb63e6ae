//! Liveness and readiness probes for the kubelet.
//!
//! Paths, parameters and responses are the same as in controller-runtime. `/healthz` and `/readyz`
//! return 200 `ok`, or 500 if any check fails. `?verbose` lists the checks, `?exclude=<name>`
//! excludes one, and `/healthz/<name>` runs a single check.
//!
//! # Adding a check
//!
//! 1. Checks of all managers are added in `manager/run/`, and the check `webhook` is implemented in
//!    `webhook/server/`. Users can add checks with `Manager::healthz_check` and `readyz_check` (in
//!    `manager/components.rs`). Update their docs if you add a built-in check.
//! 2. Test it in `tests/controllers/{reconciling,cache_health}.rs` (caches),
//!    `tests/webhook_certificates/main.rs` and `tests/webhooks/permissions.rs` (webhooks), or
//!    `tests/process.rs` and `tests/guarantees/starting.rs` (startup). If it's a guarantee, add a
//!    row to the header of `tests/guarantees/main.rs`.
//! 3. Document it in docs/operations.md, docs/webhooks.md, docs/controllers.md or
//!    docs/from-kubebuilder.md. The scaffold in
//!    `templates/files/init/config/manager/manager.yaml.tera` is only affected by new paths or
//!    ports.

use std::fmt::Write as _;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, future};
use http::{Method, StatusCode};

use crate::error::BoxError;
use crate::server::{Reply, Server, text_reply};

/// If a check fails, its error is logged.
type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// The checks of `/healthz` (liveness) and `/readyz` (readiness).
#[derive(Clone)]
pub(crate) struct Probes {
    endpoints: [Endpoint; 2],
}

#[derive(Clone)]
struct Endpoint {
    name: &'static str,
    checks: Vec<(String, Check)>,
}

impl Default for Probes {
    fn default() -> Self {
        Self {
            endpoints: ["healthz", "readyz"].map(|name| Endpoint {
                name,
                checks: Vec::new(),
            }),
        }
    }
}

impl Probes {
    /// Adds a check to `/healthz`. It must not depend on the cluster, or an outage would restart
    /// all Pods.
    pub(crate) fn add_healthz<F, E>(
        &mut self,
        name: impl Into<String>,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.endpoints[0].add(name.into(), check);
    }

    pub(crate) fn add_readyz<F, E>(
        &mut self,
        name: impl Into<String>,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.endpoints[1].add(name.into(), check);
    }

    pub(crate) async fn serve(self, server: Server, shutdown: impl Future<Output = ()>) {
        let probes = Arc::new(self);
        let handler = move |request: http::Request<_>| {
            let probes = probes.clone();
            async move {
                let (parts, _) = request.into_parts();
                probes
                    .answer(
                        &parts.method,
                        parts.uri.path(),
                        parts.uri.query().unwrap_or_default(),
                    )
                    .await
            }
        };
        server.serve(None, handler, shutdown).await;
    }

    async fn answer(&self, method: &Method, path: &str, query: &str) -> Reply {
        let path = path.trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let Some(endpoint) = self.endpoints.iter().find(|endpoint| endpoint.name == first) else {
            return text_reply(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        if !matches!(*method, Method::GET | Method::HEAD) {
            return text_reply(StatusCode::METHOD_NOT_ALLOWED, "expected method GET\n");
        }
        if rest.is_empty() {
            endpoint.run_all(query).await
        } else {
            endpoint.run_one(rest).await
        }
    }
}

impl Endpoint {
    fn add<F, E>(&mut self, name: String, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let check = move || check().map(|outcome| outcome.map_err(Into::into)).boxed();
        self.checks.push((name, Arc::new(check)));
    }

    /// Falls back to a check named `ping` that never fails.
    fn checks(&self) -> Vec<(String, Check)> {
        if self.checks.is_empty() {
            let ping: Check = Arc::new(|| future::ready(Ok(())).boxed());
            return vec![("ping".to_owned(), ping)];
        }
        self.checks.clone()
    }

    async fn run_all(&self, query: &str) -> Reply {
        let mut excluded: Vec<&str> = query_values(query, "exclude").collect();
        let checks = self.checks();
        let running = checks.iter().map(|(name, check)| {
            let skip = excluded.contains(&name.as_str());
            async move { if skip { None } else { Some(check().await) } }
        });
        let outcomes = future::join_all(running).await;
        let mut report = String::new();
        let mut failed = false;
        for ((name, _), outcome) in checks.iter().zip(outcomes) {
            let line = match outcome {
                None => format!("[+]{name} excluded: ok"),
                Some(Ok(())) => format!("[+]{name} ok"),
                Some(Err(reason)) => {
                    failed = true;
                    tracing::info!(
                        check = name,
                        endpoint = self.name,
                        %reason,
                    "health check failed"
                    );
                    format!("[-]{name} failed: reason withheld")
                }
            };
            // Writing to a `String` can't fail.
            let _ = writeln!(report, "{line}");
        }
        excluded.retain(|name| checks.iter().all(|(known, _)| known != name));
        if !excluded.is_empty() {
            let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
            let _ = writeln!(
                report,
                "warn: some health checks cannot be excluded: no matches for {}",
                names.join(",")
            );
        }
        self.reply(report, failed, query_values(query, "verbose").next().is_some())
    }

    fn reply(&self, report: String, failed: bool, verbose: bool) -> Reply {
        let name = self.name;
        match (failed, verbose) {
            (true, _) => text_reply(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("{report}{name} check failed\n"),
            ),
            (false, true) => text_reply(StatusCode::OK, format!("{report}{name} check passed\n")),
            (false, false) => text_reply(StatusCode::OK, "ok"),
        }
    }

    async fn run_one(&self, name: &str) -> Reply {
        let checks = self.checks();
        let Some((_, check)) = checks.iter().find(|(known, _)| known == name) else {
            return text_reply(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        match check().await {
            Ok(()) => text_reply(StatusCode::OK, "ok"),
            Err(reason) => {
                tracing::info!(
                    check = name,
                    endpoint = self.name,
                    %reason,
                "health check failed"
                );
                text_reply(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    format!("internal server error: {reason}\n"),
                )
            }
        }
    }
}

/// There's no need to decode the values, because the names of checks don't contain any characters
/// that need encoding.
fn query_values<'q>(query: &'q str, name: &'static str) -> impl Iterator<Item = &'q str> {
    query.split('&').filter_map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::server;

    /// `/healthz` has no checks. `/readyz` has two of them: `caches` succeeds, and `webhook` fails.
    fn probes() -> Probes {
        let mut probes = Probes::default();
        probes.add_readyz("caches", || async { Ok::<_, String>(()) });
        probes.add_readyz("webhook", || async { Err("no certificate") });
        probes
    }

    async fn check(method: Method, target: &str, status: u16, body: &str) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let reply = probes().answer(&method, path, query).await;
        assert_eq!(reply.status(), status, "{target}");
        let found = reply.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(String::from_utf8_lossy(&found), body, "{target}");
    }

    #[tokio::test]
    async fn endpoint_runs_all_its_checks() {
        check(Method::GET, "/healthz", 200, "ok").await;
        check(Method::HEAD, "/healthz/", 200, "ok").await;
        check(
            Method::GET,
            "/healthz?verbose",
            200,
            "[+]ping ok\nhealthz check passed\n",
        )
        .await;
        let failed = "[+]caches ok\n[-]webhook failed: reason withheld\nreadyz check failed\n";
        check(Method::GET, "/readyz", 500, failed).await;
        check(Method::GET, "/readyz?verbose=true", 500, failed).await;
    }

    #[tokio::test]
    async fn check_can_be_excluded() {
        check(Method::GET, "/readyz?exclude=webhook", 200, "ok").await;
        let report = "[+]caches ok\n[+]webhook excluded: ok\nreadyz check passed\n";
        check(Method::GET, "/readyz?verbose&exclude=webhook", 200, report).await;
        let report = "[+]ping ok\nwarn: some health checks cannot be excluded: no matches for \"no\",\"such\"\n\
                      healthz check passed\n";
        check(
            Method::GET,
            "/healthz?exclude=no&exclude=such&verbose",
            200,
            report,
        )
        .await;
    }

    #[tokio::test]
    async fn check_can_be_run_alone() {
        check(Method::GET, "/readyz/caches", 200, "ok").await;
        check(
            Method::GET,
            "/readyz/webhook",
            500,
            "internal server error: no certificate\n",
        )
        .await;
        check(Method::GET, "/healthz/ping", 200, "ok").await;
        check(Method::GET, "/readyz/ping", 404, "404 page not found\n").await;
    }

    #[tokio::test]
    async fn other_requests_are_rejected() {
        check(Method::GET, "/", 404, "404 page not found\n").await;
        check(Method::GET, "/livez", 404, "404 page not found\n").await;
        check(Method::POST, "/healthz", 405, "expected method GET\n").await;
    }

    #[tokio::test]
    async fn probes_are_served_over_http() {
        let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        let serving = tokio::spawn(probes().serve(server, future::pending()));
        let answer = server::tests::http_get(address, "/healthz").await;
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"),
            "{answer}"
        );
        assert!(
            server::tests::http_get(address, "/readyz")
                .await
                .starts_with("HTTP/1.1 500 ")
        );
        serving.abort();
    }
}
