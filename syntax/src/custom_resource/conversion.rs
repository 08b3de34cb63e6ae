//! `conversion(…)`: who converts objects between the versions of a kind.

use rbuilder_reader::Span;

use super::named;
use crate::args::{Arg, ArgValue, ReadArg as _};
use crate::client_config::{check_service_path, check_webhook_url};
use crate::{Conversion, Session, object_name, suggest};

const ARGS: &[&str] = &[
    "strategy",
    "service_name",
    "service_namespace",
    "service_port",
    "path",
    "url",
    "ca_bundle",
    "review_versions",
];

const STRATEGIES: &[&str] = &["Webhook", "None"];

/// `conversion`, or `conversion(…)`. What is not written is as kubebuilder scaffolds it.
pub(super) fn conversion(arg: &Arg, session: &mut Session) -> Option<Conversion> {
    let args = match &arg.value {
        ArgValue::Flag => &[],
        _ => named(arg, ARGS, session)?,
    };
    let mut made = Conversion {
        span: arg.span,
        webhook: true,
        service_name: "webhook-service".into(),
        service_namespace: "system".into(),
        service_port: None,
        path: "/convert".into(),
        url: None,
        ca_bundle: None,
        review_versions: vec!["v1".into()],
    };
    for arg in args {
        read(arg, &mut made, session);
    }
    check_together(args, &made, session);
    Some(made)
}

fn read(arg: &Arg, made: &mut Conversion, session: &mut Session) {
    let at = arg.value_span();
    match arg.name {
        "strategy" => {
            let Some(text) = arg.text(session) else { return };
            made.webhook = text != "None";
            if !STRATEGIES.contains(&text.as_str()) {
                let help = suggest::help(&text, STRATEGIES.iter().copied());
                session.error_help(at, format!("`{text}` is no strategy of conversion"), help);
            }
        }
        "service_name" => name(arg, &mut made.service_name, object_name::is_service_name, session),
        "service_namespace" => name(arg, &mut made.service_namespace, object_name::is_label, session),
        "service_port" => {
            let port = arg.count(session);
            made.service_port = port
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port > 0);
            if port.is_some() && made.service_port.is_none() {
                session.error_help(
                    at,
                    "this is not the number of a port",
                    "write one between 1 and 65535",
                );
            }
        }
        "path" => {
            let Some(text) = arg.text(session) else { return };
            check_service_path(&text, at, session);
            made.path = text;
        }
        "url" => {
            let Some(text) = arg.text(session) else { return };
            check_webhook_url(&text, at, session);
            made.url = Some(text);
        }
        "ca_bundle" => made.ca_bundle = ca_bundle(arg, session),
        "review_versions" => {
            made.review_versions = arg.texts(session).unwrap_or_default();
            check_review_versions(&made.review_versions, at, session);
        }
        _ => {}
    }
}

fn check_review_versions(versions: &[String], at: Span, session: &mut Session) {
    let help = "write `review_versions = [\"v1\"]`";
    for (position, version) in versions.iter().enumerate() {
        if versions[..position].contains(version) {
            session.error_help(
                at,
                format!("the version `{version}` of ConversionReview is written twice"),
                help,
            );
        } else if !object_name::is_service_name(version) {
            session.error_help(
                at,
                format!("`{version}` is not a version of ConversionReview"),
                help,
            );
        }
    }
    if !versions
        .iter()
        .any(|version| version == "v1" || version == "v1beta1")
    {
        let message = "the API server speaks none of these versions of ConversionReview";
        session.error_help(at, message, help);
    }
}

fn name(arg: &Arg, to: &mut String, is_name: fn(&str) -> bool, session: &mut Session) {
    let Some(text) = arg.text(session) else { return };
    if !is_name(&text) {
        let help = "write lower-case letters, digits and `-`";
        session.error_help(
            arg.value_span(),
            format!("`{text}` cannot be the {}", arg.name),
            help,
        );
    }
    *to = text;
}

/// Certificates as PEM, which the manifest holds in base64; a text without PEM's frame is base64 already.
fn ca_bundle(arg: &Arg, session: &mut Session) -> Option<String> {
    let text = arg.text(session)?;
    let is_base64 = !text.is_empty()
        && text.len() % 4 == 0
        && text
            .trim_end_matches('=')
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    // `LS0tLS1CRUdJTi` is `-----BEGIN` in base64.
    if !is_base64 || !text.starts_with("LS0tLS1CRUdJTi") {
        let help = "leave it out: cert-manager fills it in; or write the base64 of a PEM certificate";
        session.error_help(arg.value_span(), "this is not a bundle of certificates", help);
    }
    Some(text)
}

/// What does not go together.
fn check_together(args: &[Arg], made: &Conversion, session: &mut Session) {
    let at = |name: &str| args.iter().find(|arg| arg.name == name).map(|arg| arg.span);
    if !made.webhook {
        let other = args.iter().find(|arg| arg.name != "strategy");
        if let Some(other) = other {
            let help = "remove it, or write `strategy = \"Webhook\"`";
            session.error_help(
                other.span,
                format!("without a webhook `{}` has no effect", other.name),
                help,
            );
        }
        return;
    }
    let of_service: Option<Span> = ["service_name", "service_namespace", "service_port", "path"]
        .into_iter()
        .find_map(at);
    if let (Some(_), Some(span)) = (at("url"), of_service) {
        session.error_help(
            span,
            "a webhook is called by `url` or as a service, not both",
            "remove one of them",
        );
    }
}
