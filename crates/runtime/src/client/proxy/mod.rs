//! Selects a proxy for connections to the API server.
//!
//! Like kubectl and client-go, we use the `proxy-url` of the kubeconfig, and otherwise the
//! environment variables `HTTPS_PROXY`, `HTTP_PROXY` (only if the API server does not use TLS) and
//! `NO_PROXY`, or their lower-case equivalents.
//!
//! kube only reads one of these variables and ignores `NO_PROXY`. Worse, it fails to create a
//! client if a proxy is set and its features `http-proxy` and `socks5` are disabled. Hence our own
//! [`Connector`].

mod connector;
mod no_proxy;
mod socks;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use kube::Config;
use kube::config::Kubeconfig;

pub(super) use connector::Connector;
use no_proxy::{NoProxy, port_of};

use crate::error::ManagerError;

/// Placeholder for `proxy-url`, set by [`ignore_environment`].
const NONE: &str = "none://none";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Proxy {
    protocol: Protocol,
    address: Authority,
    user: Option<(String, String)>,
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Protocol {
    Http,
    Https,
    Socks5,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Kubeconfig,
    Variable(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubeconfig => f.write_str("`proxy-url` of the kubeconfig"),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("invalid value `{value}` of {source_name}: {reason}")]
pub(crate) struct InvalidProxy {
    source_name: Source,
    /// The URL without credentials, which must not be logged.
    value: String,
    reason: String,
}

impl From<InvalidProxy> for ManagerError {
    fn from(error: InvalidProxy) -> Self {
        match error.source_name {
            Source::Variable(variable) => Self::Environment {
                variable,
                value: error.value,
                reason: error.reason,
            },
            Source::Kubeconfig => Self::Flag {
                flag: "kubeconfig",
                value: error.value,
                reason: format!("`proxy-url`: {}", error.reason),
            },
        }
    }
}

/// Finds the proxy for the API server, if any. Fails if its URL is invalid.
pub(crate) fn find_proxy(config: &Config) -> Result<Option<Proxy>, InvalidProxy> {
    find_proxy_in(config, |name| std::env::var(name).ok())
}

fn find_proxy_in(
    config: &Config,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, InvalidProxy> {
    let first_of = |names: [&'static str; 2]| {
        let values = names.map(|name| variable(name).map(|value| (name, value)));
        values.into_iter().flatten().find(|(_, value)| !value.is_empty())
    };
    let names = match config.cluster_url.scheme() == Some(&Scheme::HTTP) {
        true => ["HTTP_PROXY", "http_proxy"],
        false => ["HTTPS_PROXY", "https_proxy"],
    };
    let set = first_of(names);
    if let Some(url) = &config.proxy_url {
        // kube may have taken the URL from an environment variable, in which case `NO_PROXY`
        // applies.
        let of_kube = first_of(["HTTPS_PROXY", "https_proxy"]);
        let is_of_variable =
            of_kube.is_some_and(|(_, value)| value.parse::<Uri>().is_ok_and(|uri| uri == *url));
        if !is_of_variable {
            return Proxy::parse(&url.to_string(), Source::Kubeconfig).map(Some);
        }
    }
    let Some((name, url)) = set else {
        return Ok(None);
    };
    let excluded = first_of(["NO_PROXY", "no_proxy"]).map(|(_, list)| NoProxy::parse(&list));
    if excluded.unwrap_or_default().excludes(&config.cluster_url) {
        return Ok(None);
    }
    Proxy::parse(&url, Source::Variable(name)).map(Some)
}

impl Proxy {
    /// The scheme is optional, and defaults to HTTP as in Go.
    fn parse(url: &str, source: Source) -> Result<Self, InvalidProxy> {
        let invalid = |found: String| InvalidProxy {
            source_name: source,
            // Strip the credentials, which must not be logged.
            value: url.rsplit('@').next().unwrap_or_default().to_owned(),
            reason: format!(
                "expected the URL of a proxy, such as `http://proxy.example.com:3128`, with the scheme `http`, `https`, \
                 `socks5` or `socks5h`; found {found}"
            ),
        };
        let text = match url.contains("://") {
            true => url.to_owned(),
            false => format!("http://{url}"),
        };
        let uri: Uri = text
            .parse()
            .map_err(|error: http::uri::InvalidUri| invalid(error.to_string()))?;
        let (protocol, default_port) = match uri.scheme_str() {
            Some("http") => (Protocol::Http, 80),
            Some("https") => (Protocol::Https, 443),
            Some("socks5" | "socks5h") => (Protocol::Socks5, 1080),
            other => return Err(invalid(format!("the scheme `{}`", other.unwrap_or_default()))),
        };
        let host = uri.host().unwrap_or_default();
        let address = format!("{host}:{}", uri.port_u16().unwrap_or(default_port));
        let address = match host {
            "" => return Err(invalid("no host".to_owned())),
            _ => address
                .parse()
                .map_err(|_| invalid("an invalid host".to_owned()))?,
        };
        let authority = uri.authority().map_or("", Authority::as_str);
        let user = authority.rsplit_once('@').map(|(user, _)| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            (decode(name), decode(password))
        });
        Ok(Self {
            protocol,
            address,
            user,
            source,
        })
    }

    fn authorization(&self) -> Option<HeaderValue> {
        let (name, password) = self.user.as_ref()?;
        let text = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
        let mut value = HeaderValue::try_from(text).ok()?;
        // Keeps the password out of `Debug` output.
        value.set_sensitive(true);
        Some(value)
    }

    fn advice(&self) -> &'static str {
        match self.source {
            Source::Kubeconfig => "correct `proxy-url` in the kubeconfig",
            Source::Variable(_) => {
                "correct the variable, or list the API server in NO_PROXY to reach it without a proxy"
            }
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            Protocol::Http => "http",
            Protocol::Https => "https",
            Protocol::Socks5 => "socks5",
        };
        write!(f, "proxy {scheme}://{} (from {})", self.address, self.source)
    }
}

/// Percent-decodes a user name or password. Keeps invalid escapes as they are.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let digits = escape.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(value.unwrap_or(bytes[at]));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Keeps kube from looking for a proxy in the environment while it loads the configuration, which
/// would fail if one of the variables contains a URL that kube doesn't support.
///
/// Call [`remove_marker`] on the result.
pub(crate) fn ignore_environment(kubeconfig: &mut Kubeconfig) {
    let clusters = kubeconfig.clusters.iter_mut();
    for cluster in clusters.filter_map(|named| named.cluster.as_mut()) {
        if cluster.proxy_url.as_deref().is_none_or(str::is_empty) {
            cluster.proxy_url = Some(NONE.to_owned());
        }
    }
}

/// Undoes [`ignore_environment`].
pub(crate) fn remove_marker(config: &mut Config) {
    if config
        .proxy_url
        .as_ref()
        .is_some_and(|url| *url == Uri::from_static(NONE))
    {
        config.proxy_url = None;
    }
    // kube also passes the URL to exec plugins, as part of the cluster info.
    if let Some(exec) = &mut config.auth_info.exec
        && let Some(cluster) = &mut exec.cluster
        && cluster.proxy_url.as_deref() == Some(NONE)
    {
        cluster.proxy_url = None;
    }
}

#[cfg(test)]
mod tests;
