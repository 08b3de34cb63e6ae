//! `conversion(…)`: the webhook that converts objects between the versions of a kind.

use rbuilder_reader::Span;

use crate::args::{Arg, ArgValue, ReadArg as _};
use crate::client_config::{check_service_path, check_webhook_url};
use crate::table::{ArgDoc, ArgRow, Draft, describe_rows};
use crate::{Conversion, Session, suggest};
use rbuilder_kubernetes::names;

const ARGS: &[ArgRow<Conversion>] = &[
    ArgRow::once(
        "strategy",
        "`Webhook` or `None` [default: `Webhook`].",
        |arg, made, session| {
            let Some(text) = arg.text(session) else { return };
            made.webhook = text != "None";
            if !STRATEGIES.contains(&text.as_str()) {
                let help = suggest::describe_candidates(&text, STRATEGIES.iter().copied());
                session.error_help(
                    arg.value_span(),
                    format!("unknown conversion strategy `{text}`"),
                    help,
                );
            }
        },
    ),
    ArgRow::once(
        "service_name",
        "Name of the Service to call [default: `webhook-service`].",
        |arg, made, session| {
            let mut text = String::new();
            name(arg, &mut text, names::is_dns_1035_label, session);
            made.service_name = Some(text).filter(|text| !text.is_empty());
        },
    ),
    ArgRow::once(
        "service_namespace",
        "Namespace of the Service [default: `system`, which kustomize replaces].",
        |arg, made, session| {
            name(arg, &mut made.service_namespace, names::is_label, session);
        },
    ),
    ArgRow::once(
        "service_port",
        "Port of the Service [default: 443].",
        |arg, made, session| {
            made.service_port = port(arg, session);
        },
    ),
    ArgRow::once(
        "path",
        "URL path of the webhook [default: `/convert`].",
        |arg, made, session| {
            let Some(text) = arg.text(session) else { return };
            check_service_path(&text, arg.value_span(), session);
            made.path = text;
        },
    ),
    ArgRow::once(
        "url",
        "URL to call instead of a Service, `https://…`.",
        |arg, made, session| {
            let Some(text) = arg.text(session) else { return };
            check_webhook_url(&text, arg.value_span(), session);
            made.url = Some(text);
        },
    ),
    ArgRow::once(
        "ca_bundle",
        "CA bundle that verifies the certificate of the server: PEM certificates in base64.",
        |arg, made, session| {
            made.ca_bundle = ca_bundle(arg, session);
        },
    ),
    ArgRow::once(
        "review_versions",
        "Supported versions of ConversionReview, in order of preference [default: `v1`].",
        |arg, made, session| {
            made.review_versions = arg.texts(session).unwrap_or_default();
            check_review_versions(&made.review_versions, arg.value_span(), session);
        },
    ),
];

pub(crate) fn describe_conversion_args() -> Vec<ArgDoc> {
    describe_rows(ARGS)
}

const STRATEGIES: &[&str] = &["Webhook", "None"];

/// Parses `conversion` or `conversion(…)`, with the defaults of kubebuilder's scaffold.
pub(super) fn read_conversion(arg: &Arg, session: &mut Session) -> Option<Conversion> {
    let args = match &arg.value {
        ArgValue::Flag => &[],
        _ => arg.list(session)?,
    };
    let mut draft = Draft::new(Conversion {
        span: arg.span,
        webhook: true,
        service_name: None,
        service_namespace: "system".into(),
        service_port: None,
        path: "/convert".into(),
        url: None,
        ca_bundle: None,
        review_versions: vec!["v1".into()],
    });
    draft.read(arg.name, args, ARGS, &[], session);
    check_together(args, &draft.value, session);
    Some(draft.value)
}

fn port(arg: &Arg, session: &mut Session) -> Option<u16> {
    let count = arg.count(session)?;
    let port = u16::try_from(count).ok().filter(|port| *port > 0);
    if port.is_none() {
        session.error_help(
            arg.value_span(),
            "expected a port number",
            "write a number from 1 to 65535",
        );
    }
    port
}

fn check_review_versions(versions: &[String], at: Span, session: &mut Session) {
    let help = "write `review_versions = [\"v1\"]`";
    for (position, version) in versions.iter().enumerate() {
        if versions[..position].contains(version) {
            session.error_help(
                at,
                format!("duplicate ConversionReview version `{version}`"),
                help,
            );
        } else if !names::is_dns_1035_label(version) {
            session.error_help(at, format!("unknown ConversionReview version `{version}`"), help);
        }
    }
    if !versions
        .iter()
        .any(|version| version == "v1" || version == "v1beta1")
    {
        let message = "the API server supports none of these ConversionReview versions";
        session.error_help(at, message, help);
    }
}

fn name(arg: &Arg, to: &mut String, is_name: fn(&str) -> bool, session: &mut Session) {
    let Some(text) = arg.text(session) else { return };
    if !is_name(&text) {
        let help = "use lower-case letters, digits and `-`";
        session.error_help(
            arg.value_span(),
            format!("invalid `{}`: `{text}`", arg.name),
            help,
        );
    }
    *to = text;
}

fn ca_bundle(arg: &Arg, session: &mut Session) -> Option<String> {
    let text = arg.text(session)?;
    let is_base64 = !text.is_empty()
        && text.len() % 4 == 0
        && text
            .trim_end_matches('=')
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    // `-----BEGIN` in base64.
    if !is_base64 || !text.starts_with("LS0tLS1CRUdJTi") {
        let help = "remove it to let cert-manager inject it, or write a PEM certificate in base64";
        session.error_help(arg.value_span(), "expected a certificate bundle in base64", help);
    }
    Some(text)
}

fn check_together(args: &[Arg], made: &Conversion, session: &mut Session) {
    let at = |name: &str| args.iter().find(|arg| arg.name == name).map(|arg| arg.span);
    if !made.webhook {
        let other = args.iter().find(|arg| arg.name != "strategy");
        if let Some(other) = other {
            let help = "remove it, or write `strategy = \"Webhook\"`";
            session.error_help(
                other.span,
                format!("`{}` has no effect without a webhook", other.name),
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
            "`url` and a service are mutually exclusive",
            "remove one of them",
        );
    }
}
