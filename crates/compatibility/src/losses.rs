//! The fields that objects lose between the versions of a CRD.

use rbuilder_kubernetes::crd::is_crd;
use serde_json::Value;

use crate::change::Change;
use crate::conversion::{lossy_pair, search_loss, served_pairs, strategy};
use crate::objects::index;
use crate::path::Path;
use crate::place::{Place, text};
use crate::settled::settle;
use crate::witness::Budget;

/// The fields that objects lose between the versions of CRDs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses {
    /// The lost fields, each as a change from one version to another.
    pub changes: Vec<Change>,
    /// Number of version pairs examined.
    pub pairs: usize,
    /// Names of CRDs that are converted by a webhook. Only the operator can examine those.
    pub converted_by_webhook: Vec<String>,
}

/// Finds fields that objects lose between the served versions of CRDs: objects accepted by one
/// version are stored in the storage version and read back, and stored objects are read in each
/// version and written back.
///
/// # Errors
///
/// Returns a phrase that names the unreadable CRD.
pub fn find_losses(objects: &[Value], budget: &Budget) -> Result<Losses, String> {
    let mut losses = Losses::default();
    for crd in index(objects).into_values() {
        if !is_crd(crd) {
            continue;
        }
        let place = Place::of(crd);
        let pairs = served_pairs(crd);
        if !pairs.is_empty() && strategy(crd) != "None" {
            losses.converted_by_webhook.push(text(&crd["metadata"]["name"]));
            continue;
        }
        for (version, storage) in pairs {
            losses.pairs += 1;
            for journey in [
                Journey::new(&version, &storage, &storage),
                Journey::new(&storage, &version, &storage),
            ] {
                let found = journey.find_losses(crd, &place, budget);
                losses
                    .changes
                    .extend(found.map_err(|reason| format!("{}: {reason}", place.name))?);
            }
        }
    }
    Ok(losses)
}

/// A round trip of objects from one version to another and back.
struct Journey<'j> {
    from: &'j str,
    to: &'j str,
    storage: &'j str,
}

impl<'j> Journey<'j> {
    fn new(from: &'j str, to: &'j str, storage: &'j str) -> Self {
        Self { from, to, storage }
    }

    fn find_losses(&self, crd: &Value, place: &Place, budget: &Budget) -> Result<Vec<Change>, String> {
        let Some((pair, differences)) = lossy_pair(crd, self.from, self.to, budget)? else {
            return Ok(Vec::new());
        };
        let changes = differences.into_iter().map(|difference| {
            let message = self.describe(&difference.path);
            let place = place.version(self.from);
            let mut change = place.change("conversion-loses-field", &difference.path.to_string(), message);
            let outcome = search_loss(&pair, &difference);
            settle(&mut change, outcome);
            change
        });
        Ok(changes.collect())
    }

    fn describe(&self, path: &Path) -> String {
        let Self { from, to, storage } = self;
        match to == storage {
            true => format!("an object written in `{from}` loses `{path}` when it is stored in `{to}`"),
            false => {
                format!("a stored object loses `{path}` when a client of `{to}` reads it and writes it back")
            }
        }
    }
}
