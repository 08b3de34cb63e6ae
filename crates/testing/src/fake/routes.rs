//! Dispatches requests to handlers.

use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::{Value, json};

use super::failure::Failure;
use super::request::{Request, Verb};
use super::roles::Roles;
use super::store::State;
use super::view::View;
use super::warnings::Warnings;
use super::watch::Watch;
use super::webhooks::Reviews;
use super::write::Writer;
use super::{Shared, scale};

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
        return Ok(Answer::NoSuchPath);
    };
    let one = request.name.is_some() || request.verb == Verb::Create;
    // The namespace may only be omitted in lists and watches of namespaced kinds.
    let misplaced = request.namespace.is_some() != definition.namespaced && (one || !definition.namespaced);
    let Some(version) = definition.version(&request.version).filter(|_| !misplaced) else {
        return Ok(Answer::NoSuchPath);
    };
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
            Some("scale") => return self.scale(),
            Some("eviction") => return self.evict(),
            Some(_) => return Ok(Answer::NoSuchPath),
        }
        self.whole(shared)
    }

    fn whole(&mut self, shared: &Arc<Shared>) -> Result<Answer, Failure> {
        let writer = self.writer;
        let Writer {
            request, definition, ..
        } = writer;
        if definition.review {
            return review(writer, &self.state.roles);
        }
        let (code, object) = match request.verb {
            Verb::Get => {
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
            return Ok(Answer::NoSuchPath);
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
                json_patch::merge(&mut wanted, &request.body);
                wanted
            }
            Verb::Patch => return Err(Failure::unsupported_patch(&["application/merge-patch+json"])),
            _ => return Ok(Answer::NoSuchPath),
        };
        let new = scale::set_replicas(&object, &wanted, paths, self.writer.definition.custom)?;
        drop(object);
        let saved = self.state.save(self.writer, Some(stored), new, None)?;
        let saved = self.writer.versions().read(&saved, version)?;
        Ok(Answer::Object(200, scale::to_scale(&saved, paths)))
    }

    // There are no disruption budgets, so evictions always delete the Pod.
    fn evict(self) -> Result<Answer, Failure> {
        let Writer {
            request, definition, ..
        } = self.writer;
        if definition.kind != "Pod" || definition.custom || request.verb != Verb::Create {
            return Ok(Answer::NoSuchPath);
        }
        self.state.delete(self.writer)?;
        let done =
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
        Ok(Answer::Object(201, done))
    }
}

// Every client is authenticated, and all but the operator's are unrestricted.
fn review(writer: Writer<'_>, roles: &Roles) -> Result<Answer, Failure> {
    if writer.request.verb != Verb::Create {
        return Ok(Answer::NoSuchPath);
    }
    let mut object = writer.sent()?;
    let operator = roles.user().filter(|_| !writer.request.by_admin);
    object["status"] = match (writer.definition.kind.as_str(), operator) {
        ("SelfSubjectAccessReview", Some(_)) => roles.review(&object["spec"]),
        ("SubjectAccessReview" | "LocalSubjectAccessReview", _)
            if roles.user().is_some_and(|user| object["spec"]["user"] == user) =>
        {
            roles.review(&object["spec"])
        }
        ("SelfSubjectReview", Some(user)) => json!({
            "userInfo": { "username": user, "groups": ["system:serviceaccounts", "system:authenticated"] },
        }),
        ("TokenReview", _) => json!({
            "authenticated": true, "user": { "username": "system:admin", "groups": ["system:masters"] },
        }),
        ("SelfSubjectReview", None) => json!({
            "userInfo": { "username": "system:admin", "groups": ["system:masters", "system:authenticated"] },
        }),
        _ => json!({ "allowed": true }),
    };
    Ok(Answer::Object(201, object))
}
