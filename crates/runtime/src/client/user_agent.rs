//! `User-Agent` of the manager's clients.
//!
//! It tells administrators which operator sent a request in the audit log. The API server uses the
//! part before the first `/` as the field manager of writes that don't specify one.

use std::env;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;

/// Same fallback as client-go, which uses it without a command line or version.
const UNKNOWN: &str = "unknown";

#[derive(Clone)]
pub(crate) struct UserAgent(Arc<RwLock<HeaderValue>>);

impl Default for UserAgent {
    /// Returns `<executable>/unknown rbuilder/<version> (<os>/<arch>)`.
    fn default() -> Self {
        let executable = env::args_os().next();
        let name = executable.as_deref().map(Path::new).and_then(Path::file_name);
        let name = name.map_or(UNKNOWN.into(), |name| name.to_string_lossy());
        Self(Arc::new(RwLock::new(new_header(&format!("{name}/{UNKNOWN}")))))
    }
}

impl UserAgent {
    /// Sets the operator's part of the header, `<name>/<version>`.
    pub(crate) fn set(&self, product: &str) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new_header(product);
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Replaces invalid characters with `_`.
fn new_header(product: &str) -> HeaderValue {
    let is_valid = |c: char| c == ' ' || c.is_ascii_graphic();
    let product: String = product
        .chars()
        .map(|c| if is_valid(c) { c } else { '_' })
        .collect();
    let (version, os, arch) = (
        env!("CARGO_PKG_VERSION"),
        env::consts::OS,
        go_arch(env::consts::ARCH),
    );
    let text = format!("{} rbuilder/{version} ({os}/{arch})", product.trim());
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("rbuilder"))
}

/// Use Go's names, so that one audit log filter works for operators in both languages.
fn go_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(user_agent: &UserAgent) -> String {
        user_agent.header().to_str().unwrap().to_owned()
    }

    #[test]
    fn user_agent_names_the_operator_and_the_library() {
        let user_agent = UserAgent::default();
        let library = format!(
            " rbuilder/{} ({}/{})",
            env!("CARGO_PKG_VERSION"),
            env::consts::OS,
            go_arch(env::consts::ARCH)
        );
        let default = text(&user_agent);
        let name = default.strip_suffix(&library).unwrap();
        let name = name.strip_suffix("/unknown").unwrap();
        assert!(!name.is_empty() && !name.contains('/'), "{default}");
        user_agent.clone().set("memcached-operator/1.2.0");
        assert_eq!(text(&user_agent), format!("memcached-operator/1.2.0{library}"));
    }

    #[test]
    fn any_text_makes_a_valid_header() {
        let user_agent = UserAgent::default();
        for product in ["", "a\r\nb: c", "für/1", "\0"] {
            user_agent.set(product);
            assert!(text(&user_agent).contains("rbuilder/"), "{product:?}");
        }
        user_agent.set("a\r\nb: c/1");
        assert!(text(&user_agent).starts_with("a__b: c/1 rbuilder/"));
    }
}
