//! Label and field selectors.
//!
//! Follows `k8s.io/apimachinery/pkg/labels` and `fields`, and `LabelSelectorAsSelector` for
//! selectors as objects.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::go::quote;
use crate::names;

/// Selects objects by their labels. All requirements must be met, so the default selects everything.
///
/// Displays as the text that [`LabelSelector::parse`] reads, in the order of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Sorted by key.
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equals,
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Less,
    Greater,
}

impl LabelSelector {
    /// Parses a selector such as `app=web,tier in (front, back),!old`. The error is the API
    /// server's.
    ///
    /// # Errors
    ///
    /// Fails if the text, or a key or a value in it, is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text };
        let mut requirements = Vec::new();
        let mut expected = "!, identifier, or 'end of string'";
        while !parser.peek().is_empty() || !requirements.is_empty() {
            match parser.peek() {
                "!" => {}
                token if is_word(token) => {}
                other => return Err(unexpected(other, expected)),
            }
            let requirement = parser.requirement();
            requirements.push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match parser.next() {
                "" => break,
                "," => expected = "identifier after ','",
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
        Ok(Self::of(requirements))
    }

    /// Reads an object with `matchLabels` and `matchExpressions`. Returns `None` if the API server
    /// would reject it.
    #[must_use]
    pub fn read(selector: &Value) -> Option<Self> {
        let labels = Self::of_labels(&selector["matchLabels"])?.requirements;
        let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
        let requirements = labels
            .into_iter()
            .map(Some)
            .chain(expressions.map(Requirement::read));
        Some(Self::of(requirements.collect::<Option<_>>()?))
    }

    /// Reads a map of labels, such as the selector of a Service. Returns `None` if one of them is
    /// invalid.
    #[must_use]
    pub fn of_labels(labels: &Value) -> Option<Self> {
        let labels = labels.as_object().into_iter().flatten();
        let requirements = labels.map(|(key, value)| {
            let values = vec![value.as_str()?.to_owned()];
            Requirement::new(key, Operator::Equals, values).ok()
        });
        Some(Self::of(requirements.collect::<Option<_>>()?))
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self { requirements }
    }

    /// Whether the selector has no requirements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether the selector matches labels, given as a function that looks one up by its key.
    pub fn matches<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        let mut requirements = self.requirements.iter();
        requirements.all(|requirement| requirement.holds(label(&requirement.key)))
    }

    /// Whether the selector matches a map of labels.
    #[must_use]
    pub fn matches_map(&self, labels: &Value) -> bool {
        self.matches(|key| labels.get(key).and_then(Value::as_str))
    }
}

/// Whether a selector with `matchLabels` and `matchExpressions` matches a map of labels. An empty
/// selector matches everything, and one that is `null` or invalid matches nothing.
#[must_use]
pub fn selects(selector: &Value, labels: &Value) -> bool {
    let read = || LabelSelector::read(selector);
    !selector.is_null() && read().is_some_and(|selector| selector.matches_map(labels))
}

impl Requirement {
    fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut errors: Vec<String> = check_key(key, "key").err().into_iter().collect();
        for (at, value) in values.iter().enumerate() {
            if matches!(operator, Operator::Less | Operator::Greater) && value.parse::<i64>().is_err() {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(invalid(&format!("values[{at}]"), value, why));
            }
        }
        for (at, value) in values.iter().enumerate() {
            let reasons = names::check_label_value(value);
            if !reasons.is_empty() {
                errors.push(invalid(
                    &format!("values[{at}][{key}]"),
                    value,
                    &reasons.join("; "),
                ));
            }
        }
        match &errors[..] {
            [] => Ok(Self {
                key: key.to_owned(),
                operator,
                values,
            }),
            [error] => Err(error.clone()),
            errors => Err(format!("[{}]", errors.join(", "))),
        }
    }

    /// Reads an item of `matchExpressions`.
    fn read(expression: &Value) -> Option<Self> {
        let (operator, has_values) = match expression["operator"].as_str()? {
            "In" => (Operator::In, true),
            "NotIn" => (Operator::NotIn, true),
            "Exists" => (Operator::Exists, false),
            "DoesNotExist" => (Operator::DoesNotExist, false),
            _ => return None,
        };
        let values = expression["values"].as_array().into_iter().flatten();
        let values: Vec<String> = values
            .map(|value| Some(value.as_str()?.to_owned()))
            .collect::<Option<_>>()?;
        let requirement = Self::new(expression["key"].as_str()?, operator, values).ok()?;
        (requirement.values.is_empty() != has_values).then_some(requirement)
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let is_listed = label.is_some_and(|label| self.values.iter().any(|value| value == label));
        let numbers = || {
            let number = |text: &str| text.parse::<i64>().ok();
            Some((number(label?)?, number(self.values.first()?)?))
        };
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => is_listed,
            Operator::NotEquals | Operator::NotIn => !is_listed,
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Less => numbers().is_some_and(|(label, bound)| label < bound),
            Operator::Greater => numbers().is_some_and(|(label, bound)| label > bound),
        }
    }
}

fn check_key(key: &str, field: &str) -> Result<(), String> {
    let reasons = names::check_qualified_name(key);
    match reasons.is_empty() {
        true => Ok(()),
        false => Err(invalid(field, key, &reasons.join("; "))),
    }
}

fn invalid(field: &str, value: &str, why: &str) -> String {
    format!("{field}: Invalid value: {}: {why}", quote(value))
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(formatter, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.operator {
            Operator::Equals => write!(formatter, "{key}={values}"),
            Operator::DoubleEquals => write!(formatter, "{key}=={values}"),
            Operator::NotEquals => write!(formatter, "{key}!={values}"),
            Operator::In => write!(formatter, "{key} in ({values})"),
            Operator::NotIn => write!(formatter, "{key} notin ({values})"),
            Operator::Exists => formatter.write_str(key),
            Operator::DoesNotExist => write!(formatter, "!{key}"),
            Operator::Less => write!(formatter, "{key}<{values}"),
            Operator::Greater => write!(formatter, "{key}>{values}"),
        }
    }
}

/// In the order in which prefixes are tried: the longest symbol wins.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", "<", ">"];

/// Parses the text of a label selector. A token is a symbol or a word, and empty at the end.
struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &'t str {
        next_token(self.rest).0
    }

    fn next(&mut self) -> &'t str {
        let (token, rest) = next_token(self.rest);
        self.rest = rest;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let is_negated = self.peek() == "!";
        if is_negated {
            self.next();
        }
        let key = self.next();
        if !is_word(key) {
            return Err(unexpected(key, "identifier"));
        }
        // The parser has no path to the key, which Go prints like this.
        check_key(key, "<nil>")?;
        if is_negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), "" | ",") {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = match self.next() {
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            "=" => Operator::Equals,
            "==" => Operator::DoubleEquals,
            "!=" => Operator::NotEquals,
            "<" => Operator::Less,
            ">" => Operator::Greater,
            other => return Err(unexpected(other, "in, notin, =, ==, !=, gt, lt")),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        Requirement::new(key, operator, values)
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), "" | ",") {
            return Ok(String::new());
        }
        match self.next() {
            word if is_word(word) => Ok(word.to_owned()),
            other => Err(unexpected(other, "identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            "(" => {}
            other => return Err(format!("found '{other}' expected: '('")),
        }
        match self.peek() {
            ")" | "," => {}
            first if is_word(first) => {}
            other => return Err(unexpected(other, "',', ')' or identifier")),
        }
        let mut values = BTreeSet::new();
        if self.peek() == ")" {
            values.insert("");
        }
        while self.peek() != ")" {
            match self.next() {
                "," => {
                    if values.is_empty() || matches!(self.peek(), "," | ")") {
                        values.insert("");
                    }
                }
                word if is_word(word) => {
                    values.insert(word);
                    match self.peek() {
                        "," | ")" => {}
                        other => return Err(unexpected(other, "',' or ')'")),
                    }
                }
                other => return Err(unexpected(other, "',', or identifier")),
            }
        }
        self.next();
        Ok(values.into_iter().map(str::to_owned).collect())
    }
}

fn next_token(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(is_space);
    let end = match SYMBOLS.into_iter().find(|symbol| text.starts_with(symbol)) {
        Some(symbol) => symbol.len(),
        None => text
            .find(|next| is_space(next) || is_symbol(next))
            .unwrap_or(text.len()),
    };
    text.split_at(end)
}

fn is_word(token: &str) -> bool {
    !token.is_empty() && !token.starts_with(is_symbol)
}

fn is_symbol(letter: char) -> bool {
    "=!,()<>".contains(letter)
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

fn unexpected(found: &str, expected: &str) -> String {
    format!("found '{found}', expected: {expected}")
}

/// Selects objects by their fields. All requirements must be met, so the default selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The requirements in the order in which the API server checks them.
    pub requirements: Vec<FieldRequirement>,
}

/// A field and the text it must be or must not be equal to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The path of the field, e.g. `metadata.name`. Which fields exist depends on the kind.
    pub field: String,
    is_equal: bool,
    value: String,
}

impl FieldSelector {
    /// Parses a selector such as `metadata.name=web,status.phase!=Running`. The error is the API
    /// server's.
    ///
    /// # Errors
    ///
    /// Fails if a requirement has no operator, or a value isn't escaped correctly.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, operator, value)) = split_term(term) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            let value = unescape(value)?;
            // The server drops `=`.
            if !field.is_empty() || !value.is_empty() {
                requirements.push(FieldRequirement {
                    field: field.to_owned(),
                    is_equal: operator != "!=",
                    value,
                });
            }
        }
        Ok(Self { requirements })
    }

    /// Whether the selector matches fields, given as a function that looks one up by its path. A
    /// field that doesn't exist is empty.
    pub fn matches<T: AsRef<str>>(&self, field: impl Fn(&str) -> T) -> bool {
        let mut requirements = self.requirements.iter();
        requirements.all(|requirement| requirement.holds(field(&requirement.field).as_ref()))
    }

    /// The value that the field must have.
    #[must_use]
    pub fn required(&self, field: &str) -> Option<&str> {
        let mut requirements = self.requirements.iter();
        let found = requirements.find(|requirement| requirement.field == field && requirement.is_equal);
        found.map(|requirement| requirement.value.as_str())
    }
}

impl FieldRequirement {
    /// Whether the field may have this value.
    #[must_use]
    pub fn holds(&self, value: &str) -> bool {
        (self.value == value) == self.is_equal
    }
}

/// Splits at commas that aren't escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    let is_end = |letter: char| {
        let is_end = letter == ',' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    };
    text.split(is_end).collect()
}

fn split_term(term: &str) -> Option<(&str, &str, &str)> {
    let at = term.find("!=").into_iter().chain(term.find('=')).min()?;
    let (field, rest) = term.split_at(at);
    let operator = ["!=", "==", "="]
        .into_iter()
        .find(|operator| rest.starts_with(operator))?;
    Some((field, operator, &rest[operator.len()..]))
}

fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    ));
                }
            },
            '=' => return Err("invalid field selector: unescaped character in value: 61".to_owned()),
            letter => plain.push(letter),
        }
    }
    Ok(plain)
}
