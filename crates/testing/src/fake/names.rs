//! Validation of object names.

use super::failure::Cause;
use super::kinds::Definition;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// Checks the name of an object by the rules of its kind.
pub(super) fn check_name(definition: &Definition, name: &str) -> Result<(), Cause> {
    if name.is_empty() {
        return Err(Cause {
            reason: "FieldValueRequired",
            field: "metadata.name".to_owned(),
            message: "Required value: name or generateName is required".to_owned(),
        });
    }
    let why = match definition.kind.as_str() {
        // Names of roles and bindings only have to be path segments.
        _ if definition.id.group == "rbac.authorization.k8s.io" => {
            if matches!(name, "." | "..") || name.contains(['/', '%']) {
                "may not be '.' or '..', nor contain '/' or '%'".to_owned()
            } else {
                return Ok(());
            }
        }
        "Namespace" | "Service" if !definition.custom => {
            if is_label(name) {
                return Ok(());
            }
            if name.contains('.') {
                let message = format!("Invalid value: \"{name}\": must not contain dots");
                return Err(Cause::invalid("metadata.name", message));
            }
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                 validation is '{LABEL}')"
            )
        }
        _ => {
            if name.len() <= 253 && name.split('.').all(is_part) {
                return Ok(());
            }
            format!(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
                 is '{LABEL}(\\.{LABEL})*')"
            )
        }
    };
    Err(Cause::invalid(
        "metadata.name",
        format!("Invalid value: \"{name}\": {why}"),
    ))
}

fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_part(name)
}

fn is_part(part: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    bytes.iter().all(|byte| alphanumeric(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|first| alphanumeric(*first))
        && bytes.last().is_some_and(|last| alphanumeric(*last))
}
