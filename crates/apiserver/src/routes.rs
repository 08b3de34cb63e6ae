//! Dispatches requests to handlers.

use std::sync::Arc;

use hyper::body::Bytes;
use rbuilder_kubernetes::patch::merge_json;
use serde_json::{Value, json};

use super::failure::Failure;
use super::kinds::{Definition, ResourceId};
use super::read::version_of_get;
use super::request::{Request, Verb};
use super::store::State;
use super::view::View;
use super::warnings::Warnings;
use super::watch::Watch;
use super::webhooks::Reviews;
use super::write::Writer;
use super::{Shared, parameters, patch, scale};

#[derive(Debug, Default)]
pub(super) struct Headers {
    pub(super) accept: String,
    pub(super) content_type: String,
    pub(super) user_agent: String,
}

#[derive(Debug)]
pub(super) enum Answer {
    Object(u16, Value),
    /// Preserialized JSON.
    Text(u16, Bytes),
    /// 404: the path isn't served.
    NoSuchPath,
    Lines(Box<Watch>),
}

pub(super) fn answer_request(
    shared: &Arc<Shared>,
    state: &mut State,
    request: &Request,
    headers: &Headers,
    warnings: &Warnings,
    reviews: &Reviews,
) -> Result<Answer, Failure> {
    let Some(definition) = state.kind(&request.id()).cloned() else {
        return no_such_path(state, request);
    };
    let one = request.name.is_some() || request.verb == Verb::Create;
    // The namespace may only be omitted in lists and watches of namespaced kinds.
    let one = one || request.verb == Verb::DeleteCollection;
    let misplaced = request.namespace.is_some() != definition.namespaced && (one || !definition.namespaced);
    let Some(version) = definition.version(&request.version).filter(|_| !misplaced) else {
        return no_such_path(state, request);
    };
    check_method(request, &definition)?;
    let applies = headers.content_type.starts_with(patch::APPLY);
    parameters::check_parameters(request, applies)?;
    let view = View::new(definition.clone(), version, &headers.accept);
    // The default field manager is the User-Agent up to the first slash.
    let agent = headers
        .user_agent
        .split('/')
        .next()
        .filter(|name| !name.is_empty());
    let manager = match request.parameter("fieldManager") {
        "" => agent.unwrap_or("unknown"),
        name => name,
    };
    let call = Call {
        state,
        headers,
        view,
        writer: Writer {
            request,
            definition: &definition,
            version,
            manager,
            warnings,
            reviews,
        },
    };
    call.answer(shared)
}

/// Groups of built-in kinds answer unknown paths with a `Status`, all others with a page.
fn no_such_path(state: &State, request: &Request) -> Result<Answer, Failure> {
    let mut kinds = state.kinds().filter(|kind| !kind.custom);
    let is_collection = request.name.is_none() && request.namespace.is_none();
    let is_write = matches!(request.verb, Verb::Create | Verb::DeleteCollection);
    match kinds.find(|kind| kind.id == request.id()) {
        // Collections of all namespaces can only be read.
        Some(kind) if kind.namespaced && is_collection && is_write => Err(Failure::method_not_allowed()),
        Some(_) => Err(Failure::unknown_path()),
        None if state.is_builtin_group(&request.group) => Err(Failure::unknown_path()),
        None => Ok(Answer::NoSuchPath),
    }
}

/// Objects are created in their folder, and changed by name.
fn check_method(request: &Request, definition: &Definition) -> Result<(), Failure> {
    let is_named = request.name.is_some();
    let is_allowed = match request.verb {
        // Custom resources have a single handler for all paths, which ignores the name.
        Verb::Create => !is_named || request.subresource.is_some() || definition.custom,
        Verb::Update | Verb::Patch => is_named,
        _ => true,
    };
    if is_allowed && (!definition.review || request.verb == Verb::Create) {
        return Ok(());
    }
    match definition.custom {
        true => Err(Failure::bad_request("name must be provided")),
        false => Err(Failure::method_not_allowed()),
    }
}

struct Call<'a> {
    state: &'a mut State,
    headers: &'a Headers,
    view: View,
    writer: Writer<'a>,
}

impl Call<'_> {
    fn answer(mut self, shared: &Arc<Shared>) -> Result<Answer, Failure> {
        let Writer { request, version, .. } = self.writer;
        match request.subresource.as_deref() {
            None => {}
            Some("status") if version.status && !matches!(request.verb, Verb::Create | Verb::Delete) => {}
            Some("scale") if version.scale.is_some() => return self.scale(),
            Some("eviction") if self.is_create_of("Pod") => {
                return Ok(Answer::Object(201, self.state.evict(self.writer)?));
            }
            Some("binding") if self.is_create_of("Pod") => {
                return Ok(Answer::Object(201, self.state.bind(self.writer)?));
            }
            Some("token") if self.is_create_of("ServiceAccount") => {
                return Ok(Answer::Object(201, self.state.request_token(self.writer)?));
            }
            Some("finalize") if self.writer.id() == &ResourceId::namespaces() => {
                return Ok(Answer::Object(200, self.state.finalize(self.writer)?));
            }
            Some(_) => return Err(self.unknown_subresource()),
        }
        self.whole(shared)
    }

    fn whole(&mut self, shared: &Arc<Shared>) -> Result<Answer, Failure> {
        let writer = self.writer;
        let Writer {
            request, definition, ..
        } = writer;
        if definition.review {
            return Ok(Answer::Object(201, self.state.review(writer)?));
        }
        let (code, object) = match request.verb {
            Verb::Get => {
                let wanted = version_of_get(request.parameter("resourceVersion"))?;
                if let Some(wanted) = wanted.filter(|wanted| *wanted > self.state.version()) {
                    return Err(Failure::too_large_version(wanted, self.state.version()));
                }
                let stored = self.state.named(request)?;
                let read = writer.versions().get(&stored, writer.version)?;
                return Ok(Answer::Object(200, self.view.show(&read)));
            }
            Verb::List => {
                let list = self.state.list(writer, &self.view)?;
                return Ok(Answer::Object(200, list));
            }
            Verb::Watch => {
                let watch = Watch::open(shared, self.state, writer, self.view.clone())?;
                return Ok(Answer::Lines(Box::new(watch)));
            }
            Verb::Create | Verb::Update | Verb::Patch => {
                let (object, made) = self.state.write(writer, &self.headers.content_type)?;
                let is_created = made || request.verb == Verb::Create;
                (if is_created { 201 } else { 200 }, object)
            }
            Verb::Delete => {
                let answer = self.state.delete(writer)?;
                let is_status = answer["kind"] == "Status";
                let shown = if is_status {
                    answer
                } else {
                    self.view.object(&answer, writer.reviews)?
                };
                return Ok(Answer::Object(200, shown));
            }
            Verb::DeleteCollection => {
                let deleted = self.state.delete_collection(writer)?;
                let metadata = json!({ "resourceVersion": self.state.version().to_string() });
                let list = self.view.list(&deleted, &metadata);
                return Ok(Answer::Object(200, list));
            }
        };
        Ok(Answer::Text(
            code,
            self.view.text(self.state, &object, writer.reviews)?,
        ))
    }

    fn scale(self) -> Result<Answer, Failure> {
        let Writer { request, version, .. } = self.writer;
        let Some(paths) = &version.scale else {
            return Err(self.unknown_subresource());
        };
        let stored = self.state.named(request)?;
        let object = self.writer.versions().get(&stored, version)?;
        let shown = scale::to_scale(&object, paths);
        let wanted = match request.verb {
            Verb::Get => return Ok(Answer::Object(200, shown)),
            Verb::Update => request.body.clone(),
            Verb::Patch
                if self
                    .headers
                    .content_type
                    .starts_with("application/merge-patch+json") =>
            {
                let mut wanted = shown;
                merge_json(&mut wanted, &request.body);
                wanted
            }
            Verb::Patch => return Err(Failure::unsupported_patch(&["application/merge-patch+json"])),
            _ => return Err(Failure::method_not_allowed()),
        };
        let new = scale::set_replicas(&object, &wanted, paths, self.writer.definition.custom)?;
        drop(object);
        let saved = self.state.save(self.writer, Some(stored), new, None)?;
        let saved = self.writer.versions().read(&saved, version)?;
        Ok(Answer::Object(200, scale::to_scale(&saved, paths)))
    }

    fn is_create_of(&self, kind: &str) -> bool {
        let Writer {
            request, definition, ..
        } = self.writer;
        definition.kind == kind && !definition.custom && request.verb == Verb::Create
    }

    fn unknown_subresource(&self) -> Failure {
        let Writer {
            request, definition, ..
        } = self.writer;
        match (definition.custom, request.subresource.as_deref()) {
            (true, Some("status")) if self.writer.version.status => {
                Failure::unsupported_verb(&definition.id, request.verb.as_str())
            }
            (true, _) => Failure::not_found(&definition.id, request.name.as_deref().unwrap_or_default()),
            (false, Some("status")) if self.writer.version.status => Failure::method_not_allowed(),
            (false, _) => Failure::unknown_path(),
        }
    }
}
