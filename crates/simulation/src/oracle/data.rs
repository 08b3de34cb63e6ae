//! What holds data is not deleted while its owner lives.

use rbuilder_testing::fake::ApiServer;
use serde_json::Value;

use super::{Oracle, Violation};
use crate::network::Deletion;
use crate::world;

/// Returns the deletions by the operator that lose data.
pub(crate) fn lost_data(server: &ApiServer, deletions: &[Deletion]) -> Vec<Violation> {
    deletions
        .iter()
        .filter_map(|deletion| {
            let name = &deletion.name;
            match name.resource().as_str() {
                "persistentvolumeclaims" if deletion.owner_lives => Some(Violation::new(
                    Oracle::Data,
                    format!("the operator deletes {name} while its owner exists"),
                )),
                "secrets" if deletion.owner_lives => {
                    let again = world::find(server, name)?;
                    let uid = |object: &Value| object["metadata"]["uid"].clone();
                    (uid(&again) != uid(&deletion.object)).then(|| {
                        let message = format!("the operator deletes {name} and makes it again");
                        Violation::new(Oracle::Data, message)
                    })
                }
                _ => None,
            }
        })
        .collect()
}
