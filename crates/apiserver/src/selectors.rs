//! Label and field selectors for lists and watches.

use rbuilder_judge::go;
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
    Less(String, i64),
    Greater(String, i64),
}

impl Selector {
    pub(super) fn read(request: &Request, version: &Version, sharding: bool) -> Result<Self, Failure> {
        let fields = parse_field_selector(request.parameter("fieldSelector"))?;
        for (field, ..) in &fields {
            let known = matches!(field.as_str(), "metadata.name" | "metadata.namespace");
            if !known && !version.selectable.contains(field) {
                let has_own_fields = version.is_custom() || !version.selectable.is_empty();
                return Err(Failure::bad_request(match has_own_fields {
                    true => format!("field label not supported: {field}"),
                    false => format!(
                        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                        go::quote(field)
                    ),
                }));
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
        let number = |name: &str| label(name)?.parse::<i64>().ok();
        let is_among = |name: &str, values: &[String]| {
            label(name).is_some_and(|label| values.iter().any(|value| value == label))
        };
        match self {
            Self::In(name, values) => is_among(name, values),
            Self::NotIn(name, values) => !is_among(name, values),
            Self::Exists(name) => label(name).is_some(),
            Self::Absent(name) => label(name).is_none(),
            Self::Less(name, bound) => number(name).is_some_and(|number| number < *bound),
            Self::Greater(name, bound) => number(name).is_some_and(|number| number > *bound),
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
            Ok((field.to_owned(), equal, unescape(value)?))
        })
        .collect()
}

/// Values of field selectors escape backslashes, commas and equals signs.
fn unescape(value: &str) -> Result<String, Failure> {
    let mut plain = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '=' => {
                let message = "invalid field selector: unescaped character in value: 61";
                return Err(Failure::bad_request(message));
            }
            '\\' => plain.extend(letters.next()),
            letter => plain.push(letter),
        }
    }
    Ok(plain)
}

fn parse_label_selector(text: &str) -> Result<Vec<Requirement>, Failure> {
    LabelParser::new(text).selector().map_err(Failure::bad_request)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    End,
    Word(String),
    In,
    NotIn,
    /// `=`, `==`, `!=`, `!`, `,`, `(`, `)`, `<` or `>`.
    Symbol(&'static str),
}

/// In Go's map order doesn't matter: the longest symbol wins.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", "<", ">"];
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::End => "",
            Self::Word(word) => word,
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Symbol(symbol) => symbol,
        }
    }
}

/// A port of the parser in `k8s.io/apimachinery/pkg/labels`, with its messages.
struct LabelParser {
    tokens: Vec<Token>,
    position: usize,
}

impl LabelParser {
    fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start_matches(is_space);
        while !rest.is_empty() {
            let token = match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
                Some(symbol) => Token::Symbol(symbol),
                None => {
                    let end = rest.find(|next| is_space(next) || "=!,()<>".contains(next));
                    match &rest[..end.unwrap_or(rest.len())] {
                        "in" => Token::In,
                        "notin" => Token::NotIn,
                        word => Token::Word(word.to_owned()),
                    }
                }
            };
            rest = rest[token.text().len()..].trim_start_matches(is_space);
            tokens.push(token);
        }
        Self { tokens, position: 0 }
    }

    fn peek(&self) -> Token {
        self.tokens.get(self.position).cloned().unwrap_or(Token::End)
    }

    /// Like `peek`, but `in` and `notin` are words.
    fn peek_word(&self) -> Token {
        match self.peek() {
            token @ (Token::In | Token::NotIn) => Token::Word(token.text().to_owned()),
            token => token,
        }
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn next_word(&mut self) -> Token {
        let token = self.peek_word();
        self.position += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut found = Vec::new();
        loop {
            match self.peek_word() {
                Token::End => return Ok(found),
                Token::Word(_) | Token::Symbol("!") => {}
                other => {
                    let expected = "!, identifier, or 'end of string'";
                    return Err(unexpected(&other, expected));
                }
            }
            let requirement = self.requirement();
            found.push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match self.next_word() {
                Token::End => return Ok(found),
                Token::Symbol(",") => match self.peek_word() {
                    Token::Word(_) | Token::Symbol("!") => {}
                    other => return Err(unexpected(&other, "identifier after ','")),
                },
                other => return Err(unexpected(&other, "',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let is_negated = self.peek_word() == Token::Symbol("!");
        if is_negated {
            self.position += 1;
        }
        let name = match self.next_word() {
            Token::Word(name) => name,
            other => return Err(unexpected(&other, "identifier")),
        };
        if is_negated {
            return Ok(Requirement::Absent(name));
        }
        if matches!(self.peek_word(), Token::End | Token::Symbol(",")) {
            return Ok(Requirement::Exists(name));
        }
        match self.next() {
            Token::In => Ok(Requirement::In(name, self.values()?)),
            Token::NotIn => Ok(Requirement::NotIn(name, self.values()?)),
            Token::Symbol("=" | "==") => Ok(Requirement::In(name, vec![self.value()?])),
            Token::Symbol("!=") => Ok(Requirement::NotIn(name, vec![self.value()?])),
            Token::Symbol("<") => Ok(Requirement::Less(name, self.number()?)),
            Token::Symbol(">") => Ok(Requirement::Greater(name, self.number()?)),
            other => Err(unexpected(&other, OPERATORS)),
        }
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek_word(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        match self.next_word() {
            Token::Word(value) => Ok(value),
            other => Err(unexpected(&other, "identifier")),
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.value()?;
        let why = "for 'Gt', 'Lt' operators, the value must be an integer";
        value
            .parse()
            .map_err(|_| format!("values[0]: Invalid value: {}: {why}", go::quote(&value)))
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next_word() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let first = self.peek_word();
        match &first {
            Token::Symbol(")") => {
                self.position += 1;
                return Ok(vec![String::new()]);
            }
            Token::Word(_) | Token::Symbol(",") => {}
            other => return Err(unexpected(other, "',', ')' or identifier")),
        }
        let mut values = Vec::new();
        loop {
            match self.next_word() {
                Token::Word(value) => {
                    values.push(value);
                    match self.peek_word() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => break,
                        other => return Err(unexpected(&other, "',' or ')'")),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() || self.peek_word() == Token::Symbol(",") {
                        values.push(String::new());
                    }
                    if self.peek_word() == Token::Symbol(")") {
                        values.push(String::new());
                        break;
                    }
                }
                other => return Err(unexpected(&other, "',', or identifier")),
            }
        }
        self.position += 1;
        Ok(values)
    }
}

fn unexpected(found: &Token, expected: &str) -> String {
    format!("found '{}', expected: {expected}", found.text())
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
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
            ("app in (,web)", true),
            ("app notin ()", true),
            ("size > 1", false),
        ] {
            let found = parse_label_selector(selector)
                .unwrap()
                .iter()
                .all(|one| one.holds(&object));
            assert_eq!(found, expected, "{selector}");
        }
        for (bad, expected) in [
            (
                "a b c",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            (
                "a in (b",
                "unable to parse requirement: found '', expected: ',' or ')'",
            ),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            (
                "a!b",
                "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
            ),
            (
                "a===1",
                "unable to parse requirement: found '=', expected: identifier",
            ),
            ("a,", "found '', expected: identifier after ','"),
        ] {
            let failure = parse_label_selector(bad).expect_err(bad);
            assert_eq!(failure.message(), expected);
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
