//! Texts of errors for logs, events, conditions and debug endpoints.
//!
//! Some messages can't be used as they are:
//!
//! - kube writes a response of the API server twice, the second time as a dump of all fields.
//! - Parsers quote their input, which contains credentials if it's a kubeconfig, a private key or
//!   the output of a credential plugin.
//!
//! Such a message is replaced, even where it's only part of the message of another error. An error
//! type of this library that embeds an error of kube must use [`describe`] for it.

use std::error::Error as StdError;

use kube::client::AuthError;
use kube::config::KubeconfigError;
use kube::core::Status;
use tokio_rustls::rustls::pki_types::pem;

use crate::text::join_lines;

/// kube's reason for a response that isn't a `Status`, e.g. the page of a load balancer.
const NOT_A_STATUS: &str = "Failed to parse error data";
/// Maximum length in bytes of a quoted response that isn't a `Status`.
const MAX_FOREIGN: usize = 120;

/// Yields the error itself, followed by all of its sources.
pub(crate) fn causes_of<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |cause: &&'a (dyn StdError + 'static)| {
        (*cause).source()
    })
}

/// Returns `true` if the API server rejected a request as malformed or invalid (400 or 422).
pub(crate) fn is_refused(error: &(dyn StdError + 'static)) -> bool {
    causes_of(error).any(
        |cause| matches!(cause.downcast_ref(), Some(kube::Error::Api(status)) if [400, 422].contains(&status.code)),
    )
}

/// Joins the messages of an error and its sources. Skips a message if the previous one already
/// contains it, and the sources of an error whose message can't be shown: theirs can't, either.
pub(crate) fn describe_causes(error: &(dyn StdError + 'static)) -> String {
    let mut said = Vec::<String>::new();
    for cause in causes_of(error) {
        let message = describe(cause);
        if said.last().is_none_or(|last| !last.contains(&message)) {
            said.push(message);
        }
        if replacement_of(cause).is_some() {
            break;
        }
    }
    said.join(": ")
}

/// Returns the message of an error, without dumps of responses and without quoted credentials.
pub(crate) fn describe(error: &(dyn StdError + 'static)) -> String {
    if let Some(message) = replacement_of(error) {
        return message;
    }
    let message = error.to_string();
    for cause in causes_of(error).skip(1) {
        if let Some(replacement) = replacement_of(cause) {
            let quoted = cause.to_string();
            // It contains the messages of its own sources. An empty `Status` is `: `, which occurs in
            // other messages.
            if quoted.len() > 2 && message.contains(&quoted) {
                return message.replace(&quoted, &replacement);
            }
        }
    }
    message
}

/// Returns the text for an error whose message can't be shown.
fn replacement_of(error: &(dyn StdError + 'static)) -> Option<String> {
    find_status(error)
        .map(describe_status)
        .or_else(|| describe_kubeconfig(error.downcast_ref()?))
        .or_else(|| describe_credentials(error.downcast_ref()?))
        .or_else(|| describe_pem(error.downcast_ref()?))
}

fn find_status<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Status> {
    match error.downcast_ref() {
        Some(kube::Error::Api(status)) => Some(status),
        _ => {
            // kube's source is the box, which is a type of its own.
            let boxed = || error.downcast_ref::<Box<Status>>().map(|status| &**status);
            error.downcast_ref().or_else(boxed)
        }
    }
}

/// The message alone, if there is one: it names the object and the problem.
fn describe_status(status: &Status) -> String {
    let Status {
        message,
        reason,
        code,
        ..
    } = status;
    match (message.is_empty(), reason.is_empty()) {
        _ if reason == NOT_A_STATUS => describe_foreign(*code, message),
        (false, _) => message.clone(),
        (true, false) => format!("{reason} ({code})"),
        (true, true) => format!("response {code} without a message"),
    }
}

fn describe_foreign(code: u16, text: &str) -> String {
    let text = join_lines(text);
    if code == 404 && text == "404 page not found" {
        return "the API server does not serve this path (404); is the CRD installed?".to_owned();
    }
    let is_page = text.starts_with('<') || text.len() > MAX_FOREIGN;
    match is_page || text.is_empty() {
        true => format!("response {code} that is not from a Kubernetes API"),
        false => format!("response {code} that is not from a Kubernetes API: `{text}`"),
    }
}

fn describe_kubeconfig(error: &KubeconfigError) -> Option<String> {
    let KubeconfigError::Parse(error) = error else {
        return None;
    };
    let place = error.location();
    let place = place.map(|place| format!(" (line {}, column {})", place.line(), place.column()));
    let place = place.unwrap_or_default();
    Some(format!("it is not the YAML of a kubeconfig{place}"))
}

fn describe_credentials(error: &AuthError) -> Option<String> {
    match error {
        // The command line has the arguments and variables of the kubeconfig.
        AuthError::AuthExecRun { out, .. } => {
            let status = out.status;
            Some(format!(
                "the command that the kubeconfig names for credentials failed ({status})"
            ))
        }
        AuthError::AuthExecParse(_) => Some(
            "the output of the command that the kubeconfig names for credentials is not an ExecCredential"
                .to_owned(),
        ),
        AuthError::InvalidBearerToken(_) => Some(
            "the token has a line break or another character that no HTTP header may have: write it on one line"
                .to_owned(),
        ),
        AuthError::MalformedTokenExpirationDate(_) => {
            Some("the expiry of the credentials is not a timestamp".to_owned())
        }
        _ => None,
    }
}

fn describe_pem(error: &pem::Error) -> Option<String> {
    match error {
        // Without its line breaks, the entire key is on that line.
        pem::Error::IllegalSectionStart { .. } => {
            Some("a line begins with `-----BEGIN` but does not end with `-----`".to_owned())
        }
        pem::Error::MissingSectionEnd { .. } => Some("a line `-----END …-----` is missing".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    use kube::config::Kubeconfig;
    use serde_json::json;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::Error;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot scale: {0}")]
    struct Wrapped(#[source] kube::Error);

    fn answer(code: u16, reason: &str, message: &str) -> kube::Error {
        kube::Error::Api(Status::failure(message, reason).with_code(code).boxed())
    }

    #[test]
    fn response_is_its_message() {
        let forbidden = r#"deployments.apps is forbidden: User "me" cannot list resource "deployments""#;
        let foreign = |text: &str| answer(503, NOT_A_STATUS, text);
        let check = |error: kube::Error, expected: &str| {
            assert_eq!(describe(&error), expected);
            assert_eq!(describe_causes(&error), expected);
            let text = format!("cannot scale: {expected}");
            assert_eq!(describe_causes(&Wrapped(error)), text);
        };
        check(answer(403, "Forbidden", forbidden), forbidden);
        check(answer(500, "InternalError", ""), "InternalError (500)");
        check(answer(500, "", ""), "response 500 without a message");
        check(
            foreign("no healthy\nupstream"),
            "response 503 that is not from a Kubernetes API: `no healthy upstream`",
        );
        for page in ["<html>", "", &"a".repeat(MAX_FOREIGN + 1)] {
            check(foreign(page), "response 503 that is not from a Kubernetes API");
        }
        check(
            answer(404, NOT_A_STATUS, "404 page not found"),
            "the API server does not serve this path (404); is the CRD installed?",
        );
    }

    #[test]
    fn error_in_a_condition_has_no_dump_of_the_response() {
        let status: Status = serde_json::from_value(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid",
            "message": "Deployment.apps \"web\" is invalid: spec.replicas: Invalid value: -1",
            "details": { "name": "web", "group": "apps", "kind": "Deployment", "causes": [{
                "reason": "FieldValueInvalid", "message": "Invalid value: -1", "field": "spec.replicas",
            }] },
        }))
        .unwrap();
        let message = status.message.clone();
        let error = Error::from(kube::Error::Api(status.boxed()));
        assert_eq!(format!("{error}"), message);
        assert_eq!(format!("{error:#}"), message);
        assert_eq!(format!("{error:?}"), message);
    }

    /// None of the texts of an error contains the secret, wherever the error is in the chain.
    fn check_secret(error: impl StdError + Send + Sync + 'static, expected: &str) {
        assert!(
            error.to_string().contains("s3cr3t"),
            "the case proves nothing: {error}"
        );
        let error = Error::from(error);
        for text in [format!("{error}"), format!("{error:#}"), format!("{error:?}")] {
            assert!(text.contains(expected) && !text.contains("s3cr3t"), "{text}");
        }
    }

    #[test]
    fn broken_kubeconfig_is_not_quoted() {
        let broken = || Kubeconfig::from_yaml("users:\n- name: me\n\t  token: s3cr3t\n").unwrap_err();
        let expected = "it is not the YAML of a kubeconfig (line 2, column ";
        check_secret(broken(), expected);
        check_secret(kube::Error::from(broken()), expected);
        check_secret(Wrapped(kube::Error::from(broken())), expected);
    }

    #[test]
    fn credential_plugin_is_not_quoted() {
        let failed = AuthError::AuthExecRun {
            cmd: "TOKEN=\"s3cr3t\" \"login\"".to_owned(),
            out: Box::new(Output {
                status: ExitStatus::from_raw(256),
                stdout: b"s3cr3t".to_vec(),
                stderr: Vec::new(),
            }),
        };
        let expected = "the command that the kubeconfig names for credentials failed (exit status: 1)";
        check_secret(kube::Error::Auth(failed), expected);
        let Err(KubeconfigError::Parse(output)) = Kubeconfig::from_yaml("s3cr3t") else {
            panic!("it is no kubeconfig");
        };
        let expected =
            "the output of the command that the kubeconfig names for credentials is not an ExecCredential";
        check_secret(kube::Error::Auth(AuthError::AuthExecParse(output)), expected);
    }

    #[test]
    fn private_key_is_not_quoted() {
        // `s3cr3t` as the bytes that the parser's message has.
        let line = "-----BEGIN PRIVATE KEY----- s3cr3t";
        let error = PrivateKeyDer::from_pem_slice(line.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("115, 51, 99, 114, 51, 116"), "{error}");
        let text = format!("{:#}", Error::from(error));
        assert_eq!(
            text,
            "a line begins with `-----BEGIN` but does not end with `-----`"
        );
    }
}
