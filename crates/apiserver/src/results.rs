//! Results of earlier writes, shared by all copies of a server.
//!
//! The runs of a simulation repeat most of their writes. Unless webhooks are involved, the result
//! of a write depends only on the request, the stored object, the time and the next generated name.
//! We can therefore look it up instead of merging and validating the object again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use serde_json::Value;

use super::failure::Failure;
use super::http_messages::parse_body;
use super::kinds::{Definition, ResourceId, string_at};
use super::read::key_of;
use super::request::Verb;
use super::roles::Permission;
use super::services;
use super::store::State;
use super::write::Writer;

/// Cache limit for results and texts; all entries are evicted once it's exceeded.
const MOST: usize = 2000;

/// Results of writes, and the texts of objects. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Results(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    writes: HashMap<Write, Vec<WriteResult>>,
    count: usize,
    /// JSON of objects, keyed by address. Each value keeps its object alive, so that its address
    /// can't be reused. The flag selects metadata-only JSON.
    texts: HashMap<(usize, bool), (Arc<Value>, Bytes)>,
    /// Keyed by text and by whether it may be YAML.
    bodies: HashMap<(Bytes, bool), ParsedBody>,
}

pub(super) type ParsedBody = (Value, Vec<String>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Write {
    target: String,
    body: Bytes,
}

#[derive(Clone, Debug)]
struct WriteResult {
    definition: Arc<Definition>,
    now: String,
    /// `State::names` before and after the write.
    names: (u64, u64),
    before: Option<Arc<Value>>,
    after: Arc<Value>,
    /// Whether the object was created by an apply.
    is_created: bool,
}

impl Results {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self, object: &Arc<Value>, metadata_only: bool, write: impl FnOnce() -> Bytes) -> Bytes {
        let key = (Arc::as_ptr(object).addr(), metadata_only);
        let mut known = self.known();
        if let Some((_, text)) = known.texts.get(&key) {
            return text.clone();
        }
        let text = write();
        if known.texts.len() >= MOST {
            known.texts.clear();
        }
        known.texts.insert(key, (Arc::clone(object), text.clone()));
        text
    }

    pub(super) fn parse(&self, text: &Bytes, content_type: &str) -> ParsedBody {
        let key = (text.clone(), content_type.contains("yaml"));
        if let Some(body) = self.known().bodies.get(&key) {
            return body.clone();
        }
        let body = parse_body(text, content_type);
        let mut known = self.known();
        if known.bodies.len() >= MOST {
            known.bodies.clear();
        }
        known.bodies.insert(key, body.clone());
        body
    }

    fn add(&self, write: Write, result: WriteResult) {
        let mut known = self.known();
        if known.count >= MOST {
            known.writes.clear();
            known.count = 0;
        }
        known.count += 1;
        known.writes.entry(write).or_default().push(result);
    }
}

impl WriteResult {
    fn is_change(&self) -> bool {
        self.before
            .as_ref()
            .is_none_or(|before| !Arc::ptr_eq(before, &self.after))
    }
}

// Compare versions first: they usually differ for different objects, and comparing whole objects is
// slow.
fn is_same(one: &Arc<Value>, other: &Arc<Value>) -> bool {
    const VERSION: &str = "/metadata/resourceVersion";
    Arc::ptr_eq(one, other) || string_at(one, VERSION) == string_at(other, VERSION) && one == other
}

impl State {
    /// Returns the JSON of a stored object or its metadata, calling `write` on a cache miss.
    pub(super) fn text_of(
        &self,
        object: &Arc<Value>,
        metadata_only: bool,
        write: impl FnOnce() -> Bytes,
    ) -> Bytes {
        match &self.results {
            Some(results) => results.text(object, metadata_only, write),
            None => write(),
        }
    }

    /// Creates or changes an object, or replays the result of an identical write. Also returns
    /// whether the object was created by a patch.
    pub(super) fn write(
        &mut self,
        writer: Writer<'_>,
        content_type: &str,
    ) -> Result<(Arc<Value>, bool), Failure> {
        let Some(write) = self.repeatable(writer, content_type) else {
            return self.execute(writer, content_type);
        };
        let request = writer.request;
        let key = request.name.as_ref().map(|name| key_of(request, name));
        let before = key.and_then(|key| self.get(writer.id(), &key).cloned());
        if let Some(result) = self.find_result(writer, &write, before.as_ref()) {
            return Ok(self.repeat(writer, result, before));
        }
        let used = self.names;
        let (after, is_created) = self.execute(writer, content_type)?;
        let key = key_of(request, string_at(&after, "/metadata/name"));
        let is_stored = self
            .get(writer.id(), &key)
            .is_some_and(|stored| Arc::ptr_eq(stored, &after));
        // Results don't include warnings, and dry runs store nothing, so skip both.
        let kept = (self.results.clone(), self.kind(writer.id()).cloned());
        if let (Some(results), Some(definition)) = kept
            && is_stored
            && writer.warnings.is_empty()
        {
            let result = WriteResult {
                definition,
                now: self.now(),
                names: (used, self.names),
                before,
                after: Arc::clone(&after),
                is_created,
            };
            results.add(write, result);
        }
        Ok((after, is_created))
    }

    fn execute(&mut self, writer: Writer<'_>, content_type: &str) -> Result<(Arc<Value>, bool), Failure> {
        match writer.request.verb {
            Verb::Create => Ok((self.create(writer)?, false)),
            Verb::Update => Ok((self.update(writer)?, false)),
            _ => self.patch(writer, content_type),
        }
    }

    /// Returns the key of a write if its result depends only on the state.
    fn repeatable(&self, writer: Writer<'_>, content_type: &str) -> Option<Write> {
        let request = writer.request;
        let is_plain = self.results.is_some() && self.webhooks.is_none() && !request.text.is_empty();
        // CRDs change which kinds are served, webhook responses may vary, and allocations for a
        // Service depend on all other Services, as admission does on quotas and other limits.
        let id = writer.id();
        if !is_plain
            || *id == ResourceId::crds()
            || services::allocates(writer.definition)
            || self.depends_on_others(writer)
        {
            return None;
        }
        let target = format!(
            "{request} {} {:?} {} {content_type}",
            writer.version.name, request.parameters, writer.manager
        );
        Some(Write {
            target,
            body: request.text.clone(),
        })
    }

    fn find_result(
        &mut self,
        writer: Writer<'_>,
        write: &Write,
        before: Option<&Arc<Value>>,
    ) -> Option<WriteResult> {
        let now = self.now();
        let results = self.results.clone()?;
        let known = results.known();
        let mut found = known.writes.get(write)?.iter();
        let result = found.find(|result| {
            let is_same_before = match (&result.before, before) {
                (None, None) => true,
                (Some(one), Some(other)) => is_same(one, other),
                _ => false,
            };
            // The result contains the time, and possibly a generated name and uid. Only reuse it if
            // the same ones would be generated now.
            result.now == now
                && (result.names.0 == result.names.1 || result.names.0 == self.names)
                && std::ptr::eq(&*result.definition, writer.definition)
                && is_same_before
        })?;
        let may_write = result.before.is_some() || self.may_create(writer, &result.after);
        may_write.then(|| result.clone())
    }

    fn may_create(&mut self, writer: Writer<'_>, object: &Value) -> bool {
        let request = writer.request;
        let name = string_at(object, "/metadata/name");
        let permission = Permission {
            verb: Verb::Create,
            ..Permission::of(request)
        };
        self.get(writer.id(), &key_of(request, name)).is_none()
            && self.check_namespace(writer, name).is_ok()
            // An apply that creates an object also requires the permission to create it.
            && (request.by_admin || request.verb == Verb::Create || self.roles.check(permission).is_ok())
    }

    fn repeat(
        &mut self,
        writer: Writer<'_>,
        result: WriteResult,
        before: Option<Arc<Value>>,
    ) -> (Arc<Value>, bool) {
        if let Some(before) = before.filter(|_| !result.is_change()) {
            return (before, false);
        }
        if result.names.0 != result.names.1 {
            self.names = result.names.1;
        }
        let key = key_of(writer.request, string_at(&result.after, "/metadata/name"));
        // The stored object embeds its resource version, so share it only if that's the next one.
        let next = (self.version() + 1).to_string();
        let stored = match string_at(&result.after, "/metadata/resourceVersion") == next {
            true => self.put_shared(writer.id(), key, result.after),
            false => self.put(writer.id(), key, Value::clone(&result.after)),
        };
        (stored, result.is_created)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use http_body_util::{BodyExt, Full};
    use hyper::body::Bytes;
    use jiff::Timestamp;

    use crate::ApiServer;

    const MAPS: &str = "/api/v1/namespaces/default/configmaps";

    fn send(server: &ApiServer, verb: &str, path: &str, content_type: &str, body: &str) -> String {
        let request = http::Request::builder().method(verb).uri(path);
        let request = request.header("content-type", content_type);
        let request = request.body(Full::<Bytes>::from(body.to_owned())).unwrap();
        let response = server.call(request, true).now_or_never().unwrap().unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().now_or_never().unwrap().unwrap();
        format!("{code} {}", String::from_utf8_lossy(&body.to_bytes()))
    }

    fn write_all(server: &ApiServer, second: i64, is_changed: bool) -> Vec<String> {
        let server = server.copy();
        server.start_at(Timestamp::from_second(second).unwrap());
        let apply = |data: &str| {
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{"k":"{data}"}}}}"#
            );
            let path = format!("{MAPS}/a?fieldManager=test");
            send(&server, "PATCH", &path, "application/apply-patch+yaml", &body)
        };
        let merge = |patch: &str| {
            send(
                &server,
                "PATCH",
                &format!("{MAPS}/a"),
                "application/merge-patch+json",
                patch,
            )
        };
        let create = || {
            let body = r#"{"metadata":{"generateName":"b-"}}"#;
            send(&server, "POST", MAPS, "application/json", body)
        };
        let mut answers = vec![create(), apply("1")];
        if is_changed {
            answers.push(merge(r#"{"data":{"other":"x"}}"#));
        }
        answers.extend([
            apply("1"),
            apply("2"),
            merge(r#"{"metadata":{"labels":{"l":"v"}}}"#),
            create(),
            send(&server, "DELETE", &format!("{MAPS}/a"), "application/json", "{}"),
            apply("1"),
        ]);
        answers
    }

    #[test]
    fn repeated_results_are_those_of_the_write() {
        let (plain, repeating) = (ApiServer::new(), ApiServer::new());
        repeating.repeat_results();
        for (second, is_changed) in [
            (0, false),
            (0, false),
            (0, true),
            (3600, false),
            (0, false),
            (0, true),
        ] {
            assert_eq!(
                write_all(&repeating, second, is_changed),
                write_all(&plain, second, is_changed),
                "at {second}, changed: {is_changed}"
            );
        }
        let state = repeating.shared().state();
        let count = state.results.as_ref().unwrap().known().count;
        assert!(count < 24, "{count} results of 44 writes: too few are repeated");
    }
}
