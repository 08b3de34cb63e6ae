//! `annotation("key", "value")` and `label("key", "value")`.

use crate::Session;
use crate::args::{Arg, ArgValue, ReadArg as _};
use rbuilder_kubernetes::names;

pub(super) fn add_pair(arg: &Arg, pairs: &mut Vec<(String, String)>, session: &mut Session) {
    let Some((key, value)) = pair(arg, session) else {
        return;
    };
    if pairs.iter().any(|(earlier, _)| *earlier == key) {
        let message = format!("duplicate {} `{key}`", arg.name);
        session.error_help(arg.span, message, "remove one of them");
    }
    pairs.push((key, value));
}

fn pair(arg: &Arg, session: &mut Session) -> Option<(String, String)> {
    if let ArgValue::List(items) = &arg.value
        && let [key, value] = items.as_slice()
        && key.name.is_empty()
        && value.name.is_empty()
    {
        let (name, text) = (key.text(session)?, value.text(session)?);
        check_pair(arg, (key, &name), (value, &text), session);
        return Some((name, text));
    }
    let message = format!("expected a key and a value for `{}`", arg.name);
    session.error_help(
        arg.span,
        message,
        format!("write `{}(\"key\", \"value\")`", arg.name),
    );
    None
}

/// Annotations and labels share a key format, but only the values of labels are restricted.
fn check_pair(arg: &Arg, (key, name): (&Arg, &str), (value, text): (&Arg, &str), session: &mut Session) {
    // The API server also accepts upper case in the domain of an annotation key, but nobody uses
    // that.
    if !names::is_qualified_name(name) {
        let help = "use a name such as `tier`, or a domain and a name such as `example.com/tier`";
        let message = format!("`{name}` is not a valid key of {}", with_article(arg.name));
        session.error_help(key.value_span(), message, help);
    }
    if arg.name == "label" && !names::is_label_value(text) {
        let help = "use at most 63 letters, digits, `-`, `_` and `.`, or use an annotation";
        session.error_help(value.value_span(), format!("invalid label value `{text}`"), help);
    }
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with('a') { "an" } else { "a" };
    format!("{article} {noun}")
}
