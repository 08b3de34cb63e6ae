//! Reads of individual objects and lists, with pagination.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine as _};
use rbuilder_judge::go;
use serde_json::{Value, json};

use super::failure::Failure;
use super::request::Request;
use super::selectors::Selector;
use super::store::{Key, State};
use super::view::View;
use super::write::Writer;

pub(super) fn key_of(request: &Request, name: &str) -> Key {
    (request.namespace.clone().unwrap_or_default(), name.to_owned())
}

pub(super) fn version_parameter(text: &str) -> Result<Option<u64>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let invalid = |_| Failure::bad_request(format!("invalid resource version: {}", not_a_version(text)));
    text.parse().map(Some).map_err(invalid)
}

/// Reads the parameter of a read of a single object. kube-apiserver reports its errors as its own.
pub(super) fn version_of_get(text: &str) -> Result<Option<u64>, Failure> {
    version_parameter(text).map_err(|_| Failure::new(500, "", not_a_version(text)))
}

fn not_a_version(text: &str) -> String {
    let text = go::quote(text);
    format!("resourceVersion: Invalid value: {text}: strconv.ParseUint: parsing {text}: invalid syntax")
}

impl State {
    pub(super) fn named(&self, request: &Request) -> Result<Arc<Value>, Failure> {
        let (id, name) = (request.id(), request.name.as_deref().unwrap_or_default());
        let found = self.get(&id, &key_of(request, name));
        found.cloned().ok_or_else(|| Failure::not_found(&id, name))
    }

    pub(super) fn list(&self, writer: Writer<'_>, view: &View) -> Result<Value, Failure> {
        let Writer {
            request,
            definition,
            version,
            ..
        } = writer;
        let selector = Selector::read(request, version, self.sharding)?;
        let page = Page::read(request)?;
        let exact = request.parameter("resourceVersionMatch") == "Exact";
        let asked = version_parameter(request.parameter("resourceVersion"))?;
        // kube-apiserver would wait a few seconds for such a version, but it can't arrive here.
        if let Some(wanted) = asked.filter(|wanted| *wanted > self.version()) {
            return Err(match exact {
                true => Failure::too_large_exact_version(wanted, self.version()),
                false => Failure::too_large_version(wanted, self.version()),
            });
        }
        let at = match &page.after {
            Some((version, _)) => *version,
            None if exact => asked.unwrap_or(self.version()),
            // `resourceVersion` without `Exact` is a lower bound, which a stale cache may satisfy.
            None => {
                let cached = asked.and_then(|from| self.cached_version(&definition.id, from));
                cached.unwrap_or(self.version())
            }
        };
        let objects = self.at(&definition.id, at)?;
        let ahead = objects.iter().filter(|(key, _)| page.is_ahead(key));
        let mut selected = writer.versions().select(ahead, &selector, version)?;
        let found = selected.len();
        selected.truncate(page.limit.unwrap_or(found));
        let shown = selected.len();
        let mut metadata = BTreeMap::from([("resourceVersion", Value::from(at.to_string()))]);
        if shown < found {
            let last = selected.last().map(|(key, _)| key.clone()).unwrap_or_default();
            metadata.insert("continue", token(at, &last).into());
            metadata.insert("remainingItemCount", (found - shown).into());
        }
        if let Some(shard) = selector.shard() {
            metadata.insert("shardInfo", json!({ "selector": shard.to_text() }));
        }
        Ok(view.list(&selected, &json!(metadata)))
    }
}

struct Page {
    limit: Option<usize>,
    /// From the continue token: resource version of the first page, to make all pages consistent,
    /// and the last key of the previous page.
    after: Option<(u64, Key)>,
}

impl Page {
    fn read(request: &Request) -> Result<Self, Failure> {
        let limit = request.parameter("limit").parse().ok().filter(|limit| *limit > 0);
        let after = match request.parameter("continue") {
            "" => None,
            token => Some(read_token(token).map_err(|why| {
                let message = format!("invalid continue token: continue key is not valid: {why}");
                Failure::bad_request(message)
            })?),
        };
        Ok(Self { limit, after })
    }

    fn is_ahead(&self, key: &Key) -> bool {
        self.after.as_ref().is_none_or(|(_, last)| key > last)
    }
}

fn token(version: u64, (namespace, name): &Key) -> String {
    URL_SAFE_NO_PAD.encode(json!([version, namespace, name]).to_string())
}

fn read_token(token: &str) -> Result<(u64, Key), String> {
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| {
        let place = match error {
            DecodeError::InvalidByte(place, _) | DecodeError::InvalidLastSymbol { offset: place, .. } => {
                place
            }
            DecodeError::InvalidLength(length) => length / 4 * 4,
            DecodeError::InvalidPadding => token.len(),
        };
        format!("illegal base64 data at input byte {place}")
    })?;
    let (version, namespace, name) = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    Ok((version, (namespace, name)))
}
