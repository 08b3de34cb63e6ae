//! The entries in a deployment that serve webhooks, disable them, or issue their certificate.

use super::{
    COMPONENTS, TRANSFORMERS, enable, remove_commented, remove_component, remove_transformer, replace,
};
use crate::edit::Obstacle;

/// Component that serves webhooks. `NO_WEBHOOKS` disables them in the manager instead.
pub const WEBHOOKS: &str = "../webhook";
const NO_WEBHOOKS: &str = "../webhook/disabled";
const WEBHOOK_NAMES: &str = "../webhook/names";

/// The component that issues the webhook certificate.
pub const CERTIFICATE: &str = "../certmanager";

/// Replaces the component that disables webhooks with the one that serves them.
///
/// # Errors
/// Fails if a list has an unsupported form.
pub fn enable_webhooks(text: &str) -> Result<String, Obstacle> {
    let text = replace(text, COMPONENTS, NO_WEBHOOKS, WEBHOOKS)
        .map_err(|reason| Obstacle::unlisted(reason, NO_WEBHOOKS))?;
    let text = enable(&text, COMPONENTS, WEBHOOKS)?;
    Ok(enable(&text, TRANSFORMERS, WEBHOOK_NAMES)?)
}

/// Replaces the component that serves webhooks with the one that disables them.
///
/// # Errors
/// Fails if a list has an unsupported form.
pub fn disable_webhooks(text: &str) -> Result<String, Obstacle> {
    let text = replace(text, COMPONENTS, WEBHOOKS, NO_WEBHOOKS)
        .map_err(|reason| Obstacle::unlisted(reason, WEBHOOKS))?;
    // The component may be listed but commented out.
    let text = enable(&text, COMPONENTS, NO_WEBHOOKS)?;
    // Without webhooks there is no Service for this transformer to refer to.
    super::disable(&text, TRANSFORMERS, WEBHOOK_NAMES)
        .map_err(|reason| Obstacle::unlisted(reason, WEBHOOK_NAMES))
}

pub(crate) fn remove_webhooks(text: &str) -> Result<String, Obstacle> {
    let mut text = text.to_owned();
    for entry in [WEBHOOKS, NO_WEBHOOKS, CERTIFICATE] {
        text = remove_component(&text, entry).map_err(|reason| Obstacle::unlisted(reason, entry))?;
        text = remove_commented(&text, COMPONENTS, entry);
    }
    let text = remove_transformer(&text, WEBHOOK_NAMES)
        .map_err(|reason| Obstacle::unlisted(reason, WEBHOOK_NAMES))?;
    Ok(remove_commented(&text, TRANSFORMERS, WEBHOOK_NAMES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "resources:\n- ../crd\n\ncomponents:\n- ../metrics\n# - ../prometheus\n- ../webhook\n\ntransformers:\n- ../webhook/names\n";

    #[test]
    fn removes_webhooks_in_every_state() {
        let expected = "resources:\n- ../crd\n\ncomponents:\n- ../metrics\n# - ../prometheus\n\n";
        let off = disable_webhooks(LISTED).expect("a list");
        assert!(
            off.contains("- ../webhook/disabled\n\ntransformers: []\n# - ../webhook/names\n"),
            "{off}"
        );
        let certified = enable(LISTED, COMPONENTS, CERTIFICATE).expect("a list");
        let commented = LISTED.replace("- ../webhook\n", "# - ../webhook\n");
        for text in [LISTED, &off, &certified, &commented] {
            assert_eq!(remove_webhooks(text).as_deref(), Ok(expected), "{text}");
        }
    }
}
