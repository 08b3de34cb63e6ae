//! `rbuilder delete webhook`: removes all or some of a kind's webhooks, or versions of its
//! conversion.

use anyhow::{Result, bail};
use rbuilder_templates::{ApiContext, OnExists, Rendered, WebhookContext};

use super::Removal;
use crate::commands::Outcome;
use crate::commands::create_webhook::StorageChange;
use crate::commands::edits::find_types;
use crate::edit::rust;
use crate::project::{Resource, Webhooks, naming_flags};
use crate::render::{ApiPlaces, Parts, webhook_context};
use crate::request::DeleteWebhookRequest;
use crate::tree::Tree;

/// Plans the changes made by `delete webhook`.
///
/// # Errors
/// Fails if PROJECT does not list such a webhook or spoke, if files were edited, or if the spoke to
/// delete is the storage version while other spokes remain.
pub fn plan_delete_webhook(tree: &Tree, requested: &DeleteWebhookRequest) -> Result<Outcome> {
    let mut removal = Removal::new(tree, &requested.kind)?;
    let mut resource = removal.resource.clone();
    let Some(before) = resource.webhooks.take() else {
        bail!("kind `{}` has no webhooks: PROJECT records none", resource.kind);
    };
    check_recorded(&before, requested, &resource.kind)?;
    let after = remaining(&before, requested);
    if after.conversion {
        removal.check_spokes(&before, &after)?;
    }
    resource.webhooks = (!after.is_empty()).then(|| after.clone());
    removal.settle(resource);
    removal.remove_webhooks(&before, &after)?;
    removal.finish()
}

fn check_recorded(before: &Webhooks, requested: &DeleteWebhookRequest, kind: &str) -> Result<()> {
    for (asked, is_there, what) in [
        (requested.defaulting, before.defaulting, "defaulting"),
        (requested.validation, before.validation, "validating"),
        (requested.conversion, before.conversion, "conversion"),
    ] {
        if asked && !is_there {
            bail!("kind `{kind}` has no {what} webhook: PROJECT records none");
        }
    }
    let unknown = requested.spoke.iter().find(|spoke| !before.spoke.contains(spoke));
    if let Some(spoke) = unknown {
        bail!(
            "`{spoke}` is not a spoke of the conversion of `{kind}`: PROJECT records `{}`",
            before.spoke.join("`, `")
        );
    }
    Ok(())
}

fn remaining(before: &Webhooks, requested: &DeleteWebhookRequest) -> Webhooks {
    let all = !(requested.defaulting || requested.validation || requested.conversion);
    let has_spokes_left =
        !requested.spoke.is_empty() && before.spoke.iter().any(|spoke| !requested.spoke.contains(spoke));
    let mut after = before.clone().without(
        all || requested.defaulting,
        all || requested.validation,
        all || (requested.conversion && !has_spokes_left),
    );
    after.spoke.retain(|spoke| !requested.spoke.contains(spoke));
    after
}

fn deleted_spokes<'w>(before: &'w Webhooks, after: &'w Webhooks) -> impl Iterator<Item = &'w String> {
    before.spoke.iter().filter(|spoke| !after.spoke.contains(spoke))
}

impl Removal<'_> {
    /// Checks that no object still needs a conversion from a deleted spoke, and suggests which
    /// versions to delete next.
    fn check_spokes(&mut self, before: &Webhooks, after: &Webhooks) -> Result<()> {
        let mut next = String::new();
        for version in deleted_spokes(before, after) {
            let spoke = Resource {
                version: version.clone(),
                ..self.resource.clone()
            };
            self.check_not_stored(&spoke, "delete its conversion")?;
            let flags = naming_flags(&spoke.group, version, &spoke.kind);
            next.push_str(&format!("  rbuilder delete api {flags}\n"));
        }
        if !next.is_empty() {
            self.next = Some(format!(
                "Next: delete each version that has no conversion now, before you deploy:\n{next}"
            ));
        }
        Ok(())
    }

    fn remove_webhooks(&mut self, before: &Webhooks, after: &Webhooks) -> Result<()> {
        let resource = self.resource.clone();
        let api = ApiPlaces::of(&self.before, &resource).context();
        let types = find_types(&self.plan, self.tree, &api)?;
        let parts = |webhooks| Parts::of_webhooks(&self.before, &resource, webhooks, &types);
        let (mut gone, kept) = (parts(before)?, parts(after)?);
        let context = |webhooks| webhook_context(&self.before, &resource, webhooks, &api);
        let (old, new) = (context(before), context(after));
        let spokes = DeletedSpokes::new(&api, &old, &new);
        let keeps_handlers = before.defaulting == after.defaulting && before.validation == after.validation;
        gone.lines.retain(|line| !kept.lines.contains(line));
        for file in std::mem::take(&mut gone.files) {
            match kept.find(&file.path) {
                None => gone.files.push(file),
                Some(kept) if kept.text == file.text || file.on_exists != OnExists::Owned => {}
                Some(_) if keeps_handlers && self.has_changes(&file.path)? => {
                    self.cut_spokes(&file, &spokes)?;
                }
                Some(kept) => self.rewrite(kept)?,
            }
        }
        self.remove(&gone)?;
        if !old.spokes.is_empty() && new.spokes.is_empty() {
            self.restore_storage(&api)?;
        }
        Ok(())
    }

    /// Removes spokes from a file that keeps other content, i.e. the kind's handlers or its webhook
    /// tests. Other edits by the user are kept.
    fn cut_spokes(&mut self, file: &Rendered, spokes: &DeletedSpokes<'_>) -> Result<()> {
        for (path, test) in &spokes.types {
            if file.path == spokes.handlers {
                self.cut(&file.path, |text| rust::remove_spoke(text, path, &spokes.module))?;
            } else {
                self.cut_test(file, test)?;
            }
        }
        Ok(())
    }

    fn cut_test(&mut self, file: &Rendered, test: &str) -> Result<()> {
        let text = self.plan.read(self.tree, &file.path)?.unwrap_or_default();
        let own = rust::function_tokens(&text, test);
        if own.is_none() || self.force || own == rust::function_tokens(&file.text, test) {
            return self.cut(&file.path, |text| rust::remove_function(text, test));
        }
        self.changed.push(format!("{}: `{test}`", file.path));
        Ok(())
    }

    fn restore_storage(&mut self, api: &ApiContext) -> Result<()> {
        // `create webhook` makes the hub the storage version. If it no longer is, that was a manual
        // change; leave it alone.
        if self.is_stored(api)? == Some(false) {
            return Ok(());
        }
        let versions = self.project.known.resources.iter();
        let mut versions = versions.filter(|other| other.same_kind(&self.resource) && other.api.is_some());
        if let Some(first) = versions.next().cloned() {
            let change = StorageChange::to(&mut self.plan, self.tree, &self.project, &first)?;
            let first = ApiPlaces::of(&self.project, &first).context();
            change.warn_of_first(&first, &mut self.outcome);
        }
        Ok(())
    }
}

struct DeletedSpokes<'c> {
    handlers: String,
    module: Vec<&'c str>,
    /// Type of each spoke, and name of its test.
    types: Vec<(String, String)>,
}

impl<'c> DeletedSpokes<'c> {
    fn new(api: &ApiContext, old: &'c WebhookContext, new: &WebhookContext) -> Self {
        let is_deleted = |version: &str| !new.spokes.iter().any(|kept| kept.version == version);
        let deleted = || old.spokes.iter().filter(|spoke| is_deleted(&spoke.version));
        DeletedSpokes {
            handlers: format!("src/{}/{}.rs", old.folder, api.module),
            module: old.path.split("::").collect(),
            types: deleted()
                .map(|spoke| {
                    let path = format!("crate::{}::{}", spoke.api_path, api.kind);
                    (path, round_trip_test(&spoke.version))
                })
                .collect(),
        }
    }
}

/// Name of the template's test for the conversion to a version.
fn round_trip_test(version: &str) -> String {
    format!("the_round_trip_through_{version}_is_lossless")
}
