//! The attributes of a write in an admission request.

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::kinds::{Version, string_at};
use crate::request::Verb;
use crate::roles::{OWN_NAMESPACE, Roles};
use crate::scale;
use crate::write::Writer;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    fn options(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    pub(super) writer: Writer<'a>,
    pub(super) operation: Operation,
    /// `null` for deletions.
    pub(super) object: &'a Value,
    /// `null` for creates.
    pub(super) old: &'a Value,
}

impl<'a> Attributes<'a> {
    pub(super) fn subresource(&self) -> &'a str {
        self.writer.request.subresource.as_deref().unwrap_or_default()
    }

    pub(super) fn is_namespace(&self) -> bool {
        let id = &self.writer.definition.id;
        id.group.is_empty() && id.plural == "namespaces"
    }

    /// The name in the request. Empty for collections, and until the server has generated one.
    pub(super) fn name(&self) -> &'a str {
        match self.operation {
            Operation::Delete if self.writer.request.verb == Verb::DeleteCollection => "",
            Operation::Delete => string_at(self.old, "/metadata/name"),
            Operation::Create => string_at(self.object, "/metadata/name"),
            Operation::Update => self.writer.request.name.as_deref().unwrap_or_default(),
        }
    }

    /// Returns the object's namespace. A Namespace counts as being inside itself.
    pub(super) fn namespace(&self) -> &'a str {
        match self.is_namespace() {
            true => self.name(),
            false => match self.operation {
                Operation::Delete => string_at(self.old, "/metadata/namespace"),
                _ => self.writer.request.namespace.as_deref().unwrap_or_default(),
            },
        }
    }

    pub(super) fn to_request(self, version: &Version, roles: &Roles) -> Result<Value, Failure> {
        let (request, definition) = (self.writer.request, self.writer.definition);
        let is_scale = self.subresource() == "scale";
        let kind = |version: &str| match is_scale {
            true => json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" }),
            false => json!({ "group": definition.id.group, "version": version, "kind": definition.kind }),
        };
        let resource = |version: &str| {
            json!({
                "group": definition.id.group, "version": version, "resource": definition.id.plural,
            })
        };
        let asked = &self.writer.version.name;
        let mut review = json!({
            "kind": kind(&version.name), "resource": resource(&version.name),
            "requestKind": kind(asked), "requestResource": resource(asked),
            "operation": self.operation.as_str(), "userInfo": self.user(roles),
            "object": self.shown(self.object, version)?, "oldObject": self.shown(self.old, version)?,
            "dryRun": self.writer.is_dry_run(), "options": self.options(),
        });
        if let Some(subresource) = &request.subresource {
            review["subResource"] = subresource.clone().into();
            review["requestSubResource"] = subresource.clone().into();
        }
        for (key, value) in [("name", self.name()), ("namespace", self.namespace())] {
            if !value.is_empty() {
                review[key] = value.into();
            }
        }
        Ok(review)
    }

    fn shown(&self, object: &Value, version: &Version) -> Result<Value, Failure> {
        if object.is_null() {
            return Ok(Value::Null);
        }
        match &self.writer.version.scale {
            Some(paths) if self.subresource() == "scale" => Ok(scale::to_scale(object, paths)),
            _ => self.convert(object, version),
        }
    }

    pub(super) fn convert(&self, object: &Value, version: &Version) -> Result<Value, Failure> {
        let reviews = self.writer.reviews;
        let converted = self.writer.versions().convert(object, version);
        converted.map_err(|failure| match reviews.is_pending() {
            true => failure,
            false => Failure::internal(failure.message()),
        })
    }

    fn user(&self, roles: &Roles) -> Value {
        if let Some(user) = &self.writer.request.user {
            return json!({ "username": user.name, "groups": user.groups });
        }
        match roles.user().filter(|_| !self.writer.request.by_admin) {
            Some(user) => json!({
                "username": user,
                "groups": [
                    "system:serviceaccounts", format!("system:serviceaccounts:{OWN_NAMESPACE}"),
                    "system:authenticated",
                ],
            }),
            None => json!({
                "username": "system:admin", "groups": ["system:masters", "system:authenticated"],
            }),
        }
    }

    fn options(&self) -> Value {
        let request = self.writer.request;
        let mut options = Map::new();
        if request.verb == Verb::Delete || request.verb == Verb::DeleteCollection {
            options.extend(request.body.as_object().cloned().unwrap_or_default());
        }
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(value) = request.parameters.get(name).filter(|value| !value.is_empty()) {
                options.insert(name.to_owned(), value.clone().into());
            }
        }
        if self.writer.is_dry_run() {
            options.insert("dryRun".to_owned(), json!(["All"]));
        }
        options.insert("kind".to_owned(), self.operation.options().into());
        options.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
        options.into()
    }
}
