//! Label and field selectors for lists and watches.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::Value;

use super::failure::Failure;
use super::kinds::Version;
use super::request::Request;
use super::shards::Shard;
use super::store::Key;

#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    namespace: Option<String>,
    name: Option<String>,
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
    shard: Option<Shard>,
}

#[derive(Clone, Debug, PartialEq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    pub(super) fn read(request: &Request, version: &Version, sharding: bool) -> Result<Self, Failure> {
        let fields = parse_field_selector(request.parameter("fieldSelector"))?;
        for (field, ..) in &fields {
            let known = matches!(field.as_str(), "metadata.name" | "metadata.namespace");
            if !known && !version.selectable.contains(field) {
                return Err(Failure::bad_request(format!(
                    "field label not supported: {field}"
                )));
            }
        }
        Ok(Self {
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            labels: parse_label_selector(request.parameter("labelSelector"))?,
            fields,
            shard: match request.parameter("shardSelector") {
                selector if sharding && !selector.is_empty() => Some(Shard::parse(selector)?),
                _ => None,
            },
        })
    }

    pub(super) fn shard(&self) -> Option<&Shard> {
        self.shard.as_ref()
    }

    /// Checks only namespace and name. Callers do this first to avoid converting the object.
    pub(super) fn matches_key(&self, key: &Key) -> bool {
        let (namespace, name) = key;
        self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
            && self.name.as_ref().is_none_or(|wanted| wanted == name)
    }

    pub(super) fn needs_object(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty() || self.shard.is_some()
    }

    /// Returns true if an object in the request's version matches.
    pub(super) fn matches(&self, key: &Key, object: &Value) -> bool {
        self.matches_key(key)
            && self.shard.as_ref().is_none_or(|shard| shard.contains(object))
            && self.labels.iter().all(|requirement| requirement.holds(object))
            && self
                .fields
                .iter()
                .all(|(field, equal, value)| (field_of(object, field) == *value) == *equal)
    }
}

impl Requirement {
    fn holds(&self, object: &Value) -> bool {
        let label = |name: &str| object["metadata"]["labels"].get(name).and_then(Value::as_str);
        let is_among = |name: &str, values: &[String]| {
            label(name).is_some_and(|label| values.iter().any(|value| value == label))
        };
        match self {
            Self::In(name, values) => is_among(name, values),
            Self::NotIn(name, values) => !is_among(name, values),
            Self::Exists(name) => label(name).is_some(),
            Self::Absent(name) => label(name).is_none(),
        }
    }
}

/// A field as the string that selectors compare against. Absent fields are empty.
fn field_of(object: &Value, path: &str) -> String {
    match object.pointer(&format!("/{}", path.replace('.', "/"))) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn parse_field_selector(text: &str) -> Result<Vec<(String, bool, String)>, Failure> {
    let terms = text.split(',').filter(|term| !term.is_empty());
    terms
        .map(|term| {
            let (field, equal, value) = if let Some((field, value)) = term.split_once("!=") {
                (field, false, value)
            } else if let Some((field, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
                (field, true, value)
            } else {
                let message = format!("invalid selector: '{text}'; can't understand '{term}'");
                return Err(Failure::bad_request(message));
            };
            Ok((field.to_owned(), equal, value.to_owned()))
        })
        .collect()
}

fn parse_label_selector(text: &str) -> Result<Vec<Requirement>, Failure> {
    let mut reader = Reader {
        rest: text.chars().peekable(),
    };
    let mut found = Vec::new();
    loop {
        reader.skip_space();
        if reader.rest.peek().is_none() {
            return Ok(found);
        }
        found.push(reader.requirement()?);
        reader.skip_space();
        match reader.rest.next() {
            Some(',') | None => {}
            Some(other) => return Err(parse_error(&other.to_string(), "',' or the end")),
        }
    }
}

fn parse_error(found: &str, expected: &str) -> Failure {
    Failure::bad_request(format!(
        "unable to parse requirement: found '{found}', expected: {expected}"
    ))
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        while self.rest.next_if(|next| next.is_whitespace()).is_some() {}
    }

    fn takes(&mut self, wanted: char) -> bool {
        self.skip_space();
        self.rest.next_if_eq(&wanted).is_some()
    }

    fn word(&mut self) -> String {
        self.skip_space();
        let mut word = String::new();
        while let Some(next) = self.rest.next_if(|next| !" ,()=!".contains(*next)) {
            word.push(next);
        }
        word
    }

    fn requirement(&mut self) -> Result<Requirement, Failure> {
        if self.takes('!') {
            return Ok(Requirement::Absent(self.word()));
        }
        let name = self.word();
        if name.is_empty() {
            return Err(parse_error("", "!, identifier, or 'end of string'"));
        }
        self.skip_space();
        match self.rest.peek() {
            None | Some(',') => Ok(Requirement::Exists(name)),
            Some('=') => {
                while self.takes('=') {}
                Ok(Requirement::In(name, vec![self.word()]))
            }
            Some('!') => {
                self.rest.next();
                if !self.takes('=') {
                    return Err(parse_error("!", "!="));
                }
                Ok(Requirement::NotIn(name, vec![self.word()]))
            }
            Some(_) => match self.word().as_str() {
                "in" => Ok(Requirement::In(name, self.values()?)),
                "notin" => Ok(Requirement::NotIn(name, self.values()?)),
                other => Err(parse_error(other, "in, notin, =, ==, !=, gt, lt")),
            },
        }
    }

    fn values(&mut self) -> Result<Vec<String>, Failure> {
        if !self.takes('(') {
            return Err(parse_error("", "'('"));
        }
        let mut values = vec![self.word()];
        while self.takes(',') {
            values.push(self.word());
        }
        if self.takes(')') {
            Ok(values)
        } else {
            Err(parse_error("", "',' or ')'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors_match_like_kubernetes() {
        let object = json!({ "metadata": { "labels": { "app": "web", "tier/x": "" } } });
        for (selector, expected) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("!none", true),
            ("app=web", true),
            ("app == web", true),
            ("app!=web", false),
            ("none!=web", true),
            ("app in (db, web)", true),
            ("app notin (db,web)", false),
            ("none notin (a)", true),
            ("app=web,tier/x=", true),
            ("app=web, !tier/x", false),
        ] {
            let found = parse_label_selector(selector)
                .unwrap()
                .iter()
                .all(|one| one.holds(&object));
            assert_eq!(found, expected, "{selector}");
        }
        for bad in ["a b c", "a in b", "a in (b", "=a", "a!b"] {
            assert!(parse_label_selector(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn field_selectors_compare_strings() {
        let object = json!({ "spec": { "unschedulable": true }, "type": "Opaque" });
        for (selector, expected) in [
            ("type=Opaque", true),
            ("type==Opaque,spec.unschedulable=true", true),
            ("type!=Opaque", false),
            ("spec.none=", true),
        ] {
            let selector = Selector {
                fields: parse_field_selector(selector).unwrap(),
                ..Selector::default()
            };
            assert_eq!(
                selector.matches(&Key::default(), &object),
                expected,
                "{selector:?}"
            );
        }
        assert!(parse_field_selector("type").is_err());
    }
}
