//! Lists the objects of a CRD.

use anyhow::{Result, bail};
use serde::Deserialize;

use super::definition::Definition;
use super::requests::{Requests, is_unavailable};
use crate::cluster::{Body, Refusal, encode};

const PAGE: usize = 500;
/// `Accept` header for metadata only.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Maximum number of attempts to list. A continue token expires after about five minutes.
const ATTEMPTS: usize = 3;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) keys: Vec<Key>,
    pub(super) done: usize,
    pub(super) resource_version: String,
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    token: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata {
    namespace: Option<String>,
    name: String,
    resource_version: String,
}

/// Lists all objects. `since` is the resource version after which all objects were written in the
/// storage version, if known.
pub(super) fn list(requests: &Requests<'_>, definition: &Definition, since: Option<&str>) -> Result<Listing> {
    let mut first = None;
    for version in definition.served_versions() {
        match list_in(requests, &definition.collection(version), since)? {
            Ok(listing) => return Ok(listing),
            // A single object that can't be converted fails the entire list. Try the other
            // versions: objects stored in the listed version need no conversion.
            Err(refusal) if is_unavailable(&refusal) => {
                first.get_or_insert(refusal);
            }
            Err(refusal) => bail!("cannot list the objects: {}", refusal.message),
        }
    }
    let reason = first.map(|refusal| refusal.message).unwrap_or_default();
    bail!("cannot list the objects: {reason}")
}

/// Lists all objects in the given version. Starts over if the continue token has expired.
fn list_in(
    requests: &Requests<'_>,
    collection: &str,
    since: Option<&str>,
) -> Result<std::result::Result<Listing, Refusal>> {
    for _ in 1..ATTEMPTS {
        match list_once(requests, collection, since)? {
            Err(Refusal { status: 410, .. }) => {}
            result => return Ok(result),
        }
    }
    list_once(requests, collection, since)
}

fn list_once(
    requests: &Requests<'_>,
    collection: &str,
    since: Option<&str>,
) -> Result<std::result::Result<Listing, Refusal>> {
    let mut listing = Listing::default();
    let mut token = String::new();
    loop {
        let mut path = format!("{collection}?limit={PAGE}");
        if !token.is_empty() {
            path.push_str(&format!("&continue={}", encode(&token)));
        }
        let answer = requests.send("GET", &path, METADATA, Body::None)?;
        let page: Page = match answer.read() {
            Ok(page) => page,
            Err(refusal) => return Ok(Err(refusal)),
        };
        for Item { metadata } in page.items {
            if since.is_some_and(|since| is_later(&metadata.resource_version, since)) {
                listing.done += 1;
                continue;
            }
            listing.keys.push(Key {
                namespace: metadata.namespace,
                name: metadata.name,
            });
        }
        listing.resource_version = page.metadata.resource_version;
        if page.metadata.token.is_empty() {
            return Ok(Ok(listing));
        }
        token = page.metadata.token;
    }
}

fn is_later(resource_version: &str, since: &str) -> bool {
    let number = |text: &str| text.parse::<u128>().ok();
    // If one of them isn't a number, the object is written once more than necessary at worst.
    match (number(resource_version), number(since)) {
        (Some(resource_version), Some(since)) => resource_version > since,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_later;

    #[test]
    fn resource_versions_are_compared_as_numbers() {
        for (resource_version, since, expected) in [
            ("100", "99", true),
            ("99", "100", false),
            ("99", "99", false),
            ("18446744073709551617", "18446744073709551616", true),
            ("b", "a", false),
            ("9", "", false),
        ] {
            assert_eq!(
                is_later(resource_version, since),
                expected,
                "{resource_version} {since}"
            );
        }
    }
}
