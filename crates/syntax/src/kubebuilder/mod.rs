//! Go markers such as `// +kubebuilder:…` have no effect in Rust. This module finds out what to
//! write instead.

mod schemars;

use rbuilder_reader::Span;
use rbuilder_schema::{Form, Key};

use crate::Diagnostic;

enum Spelling<'a> {
    /// An attribute without a value.
    As(&'a str),
    /// An attribute with the value in place of `{}`: a number or a boolean, without quotes.
    Value(&'a str),
    /// An attribute with the value in place of `{}`, as a string.
    Text(&'a str),
    /// An attribute with a list of strings in place of `{}`.
    List(&'a str),
    /// An attribute with a list of names in place of `{}`.
    Names(&'a str),
    /// An attribute with the arguments in place of `{}`, as `name = "…"`.
    Args(&'a str),
    /// An attribute with the arguments in place of `{}`, as a JSON object.
    Json(&'a str),
    Else(&'a str),
}

use Spelling::{Args, As, Else, Json, List, Names, Text, Value};

/// Help for markers that start with `items:`.
const ITEMS: &str = "write the constraint in `#[crd(items(validation(…)))]`";

/// The markers supported by controller-tools, including Kubernetes' own, and their equivalents in
/// Rust. The constraints in `kubebuilder:validation:…` are missing here, because the table of
/// schema keys has them. On fields and variants, the help says `#[kube(…)]` instead of `#[crd(…)]`.
#[rustfmt::skip] // one row per line
const MARKERS: &[(&str, Spelling<'static>)] = &[
    ("default", Value("#[crd(default = {})]")),
    ("enum", Else("an enum without data has an `enum` in its schema")),
    ("genclient", Else("kube's `Api` is the client of every kind")),
    ("groupName", Text("#[kube(group = {})]")),
    ("k8s:deepcopy-gen", As("#[derive(Clone)]")),
    ("k8s:enum", Else("an enum without data has an `enum` in its schema")),
    ("k8s:immutable", As("#[crd(immutable)]")),
    ("k8s:listMapKey", List("#[crd(list_map_keys = {})]")),
    ("k8s:listType", Text("#[crd(list_type = {})]")),
    ("k8s:maxItems", Value("#[crd(validation(max_items = {}))]")),
    ("k8s:maxLength", Value("#[crd(validation(max_length = {}))]")),
    ("k8s:maximum", Value("#[crd(validation(maximum = {}))]")),
    ("k8s:minItems", Value("#[crd(validation(min_items = {}))]")),
    ("k8s:minLength", Value("#[crd(validation(min_length = {}))]")),
    ("k8s:minimum", Value("#[crd(validation(minimum = {}))]")),
    ("k8s:optional", As("#[crd(optional)]")),
    ("k8s:required", As("#[crd(required)]")),
    ("kubebuilder:ac:generate", Else("delete the comment: kube applies the types themselves")),
    ("kubebuilder:default", Value("#[crd(default = {})]")),
    ("kubebuilder:deprecatedversion", Else("write `deprecated = \"…\"` in `#[kube(…)]` of the kind")),
    ("kubebuilder:example", Value("#[crd(example = {})]")),
    ("kubebuilder:externalDocs", Args("#[crd(external_docs({}))]")),
    ("kubebuilder:metadata", Else("write `annotation(\"key\", \"value\")` and `label(\"key\", \"value\")` in `#[kube(…)]` of the kind")),
    ("kubebuilder:object:generate", As("#[derive(Clone)]")),
    ("kubebuilder:object:root", As("#[derive(CustomResource)]")),
    ("kubebuilder:printcolumn", Else("write `printcolumn(name = \"…\", type_ = \"…\", json_path = \"…\")` in `#[kube(…)]` of the kind")),
    ("kubebuilder:pruning:PreserveUnknownFields", As("#[crd(preserve_unknown_fields)]")),
    ("kubebuilder:rbac", Args("#[rbac({})]")),
    ("kubebuilder:resource", Else("write `plural`, `singular`, `shortname`, `category` and `namespaced` in `#[kube(…)]` of the kind")),
    ("kubebuilder:scaffold", Else("delete the comment: rbuilder finds its insertion points by syntax")),
    ("kubebuilder:selectablefield", Else("write `selectable = \".spec.…\"` in `#[kube(…)]` of the kind")),
    ("kubebuilder:skip", Else("write `skip = [\"…\"]` in `[package.metadata.rbuilder]` of Cargo.toml")),
    ("kubebuilder:skipversion", Else("delete the version's type, or write `served = false` in `#[kube(…)]` of the kind")),
    ("kubebuilder:storageversion", Else("write `storage = true` in `#[kube(…)]` of the kind, and `storage = false` in its other versions")),
    ("kubebuilder:subresource:scale", Else("write `scale(spec_replicas_path = \"…\", status_replicas_path = \"…\")` in `#[kube(…)]` of the kind")),
    ("kubebuilder:subresource:status", Else("write `status = \"…\"` with the type of the status in `#[kube(…)]` of the kind")),
    ("kubebuilder:title", Text("#[crd(title = {})]")),
    ("kubebuilder:unservedversion", Else("write `served = false` in `#[kube(…)]` of the kind")),
    ("kubebuilder:validation:AtLeastOneOf", Names("#[crd(at_least_one_of({}))]")),
    ("kubebuilder:validation:AtMostOneOf", Names("#[crd(at_most_one_of({}))]")),
    ("kubebuilder:validation:EmbeddedResource", As("#[crd(embedded_resource)]")),
    ("kubebuilder:validation:ExactlyOneOf", Names("#[crd(exactly_one_of({}))]")),
    ("kubebuilder:validation:Optional", As("#[crd(optional)]")),
    ("kubebuilder:validation:Required", As("#[crd(required)]")),
    ("kubebuilder:validation:Schemaless", As("#[crd(schemaless)]")),
    ("kubebuilder:validation:UniqueItems", As("#[crd(list_type = \"set\")]")),
    ("kubebuilder:validation:XEmbeddedResource", As("#[crd(embedded_resource)]")),
    ("kubebuilder:validation:XIntOrString", As("#[crd(int_or_string)]")),
    ("kubebuilder:validation:XPreserveUnknownFields", As("#[crd(preserve_unknown_fields)]")),
    ("kubebuilder:validation:XValidation", Args("#[crd(cel({}))]")),
    ("kubebuilder:validation:items", Else(ITEMS)),
    ("kubebuilder:webhook", Else("write `#[webhook(mutating)]` or `#[webhook(validating)]` on the handler: the rest follows from its type")),
    ("kubebuilder:webhookconfiguration", Else("write `configuration = \"…\"` in `#[webhook(…)]` of each handler")),
    ("listMapKey", List("#[crd(list_map_keys = {})]")),
    ("listType", Text("#[crd(list_type = {})]")),
    ("mapType", Text("#[crd(map_type = {})]")),
    ("nullable", As("#[crd(nullable)]")),
    ("operator-sdk:csv:customresourcedefinitions", Else("write `#[csv(display_name = \"…\")]` on the kind or the field, whose type derives `CrdSchema`")),
    ("optional", As("#[crd(optional)]")),
    ("required", As("#[crd(required)]")),
    ("structType", Text("#[crd(struct_type = {})]")),
    ("versionName", Text("#[kube(version = {})]")),
];

/// The library that generates the schema of a type, and thus determines which attributes the type
/// can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaSource {
    /// `derive(CrdSchema)`.
    #[default]
    CrdSchema,
    /// `derive(JsonSchema)` of schemars, or one of kube's derives, which require it.
    Schemars,
}

/// The subject of a comment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commented {
    /// A struct, an enum or any other item.
    #[default]
    Item,
    /// A field or a variant.
    Member,
}

impl Commented {
    /// Determines the subject of a comment. `text` follows the comment, up to the first line that
    /// is neither a comment nor an attribute.
    pub fn by(text: &str) -> Commented {
        const ITEMS: [&str; 12] = [
            "struct", "enum", "union", "type", "fn", "impl", "mod", "use", "const", "static", "trait",
            "async",
        ];
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty() && !line.starts_with("//") && !line.starts_with("#["));
        let mut words = line.unwrap_or_default().split([' ', '<', '(', '{']);
        match words.find(|word| !word.starts_with("pub") && !word.ends_with(')')) {
            Some(word) if !word.is_empty() && !ITEMS.contains(&word) => Commented::Member,
            _ => Commented::Item,
        }
    }
}

/// Returns a warning if a line of a comment is a Go marker. The help only suggests attributes that
/// are valid on the type or its member.
pub fn warn_of_go_marker(
    line: &str,
    span: Span,
    source: SchemaSource,
    commented: Commented,
) -> Option<Diagnostic> {
    let line = line.trim();
    let marker = line.strip_prefix('+')?;
    let value = |name: &str| {
        marker[name.len()..]
            .trim_start_matches(':')
            .trim_start_matches('=')
    };
    let help = match (row(marker), constraint(marker)) {
        (Some((name, spelling)), _) => spelled(spelling_for(source, spelling), value(name)),
        (None, Some((name, key))) => spell_constraint(key, source, value(name)),
        (None, None) if is_kubebuilder(marker) => UNKNOWN.to_owned(),
        (None, None) => return None,
    };
    // Some markers are very long, e.g. with a CEL rule.
    let shown: String = line.chars().take(80).collect();
    let message = format!("`{shown}` is a kubebuilder marker, which has no effect in Rust");
    let help = match commented {
        Commented::Item => help,
        Commented::Member => help.replacen("`#[crd(", "`#[kube(", 1),
    };
    Some(Diagnostic::warning(span, message).help(help))
}

/// Finds the row of a marker. If several names match, the longest wins, e.g.
/// `kubebuilder:subresource:scale`.
fn row(marker: &str) -> Option<(&'static str, &'static Spelling<'static>)> {
    let fits = |name: &str| {
        marker
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '=', ' ']))
    };
    let known = MARKERS.iter().filter(|(name, _)| fits(name));
    let (name, spelling) = known.max_by_key(|(name, _)| name.len())?;
    Some((name, spelling))
}

/// Returns the constraint that a marker sets, and the name of the marker, e.g. `maxItems` for
/// `kubebuilder:validation:MaxItems=9`.
fn constraint(marker: &str) -> Option<(&str, &'static Key)> {
    const START: &str = "kubebuilder:validation:";
    let rest = marker.strip_prefix(START)?;
    let name = &rest[..rest.find([':', '=', ' ']).unwrap_or(rest.len())];
    Some((&marker[..START.len() + name.len()], Key::of_go(name)?))
}

fn is_kubebuilder(marker: &str) -> bool {
    let rest = marker.strip_prefix("kubebuilder:");
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(' '))
}

const UNKNOWN: &str = "see docs/markers.md for the markers of rbuilder";

/// Returns the equivalent of `spelling`, which is for our derive, for a schema source.
fn spelling_for(source: SchemaSource, spelling: &'static Spelling<'static>) -> &'static Spelling<'static> {
    let (As(ours) | Value(ours) | Text(ours) | List(ours) | Names(ours) | Args(ours) | Json(ours)
    | Else(ours)) = spelling;
    let row = schemars::SPELLINGS.iter().find(|(other, _)| other == ours);
    match row {
        Some((_, theirs)) if source == SchemaSource::Schemars => theirs,
        _ => spelling,
    }
}

/// Returns an attribute that sets the constraint. For schemars, this is `extend` if there is no
/// attribute for the key.
fn spell_constraint(key: &Key, source: SchemaSource, value: &str) -> String {
    let ours = spelling_of(key);
    let extended = format!("#[schemars(extend(\"{}\" = {{}}))]", key.name);
    let attribute = match source {
        SchemaSource::CrdSchema => &ours,
        SchemaSource::Schemars => match schemars::SPELLINGS.iter().find(|(other, _)| *other == ours) {
            Some((_, theirs)) => return spelled(theirs, value),
            None => &extended,
        },
    };
    let spelling = match key.form {
        Form::Values(_) => List(attribute),
        Form::Text(_) | Form::Type(_) => Text(attribute),
        _ => Value(attribute),
    };
    spelled(&spelling, value)
}

fn spelling_of(key: &Key) -> String {
    format!("#[crd(validation({} = {{}}))]", key.argument)
}

fn spelled(spelling: &Spelling<'_>, value: &str) -> String {
    let written = match spelling {
        As(attribute) => (*attribute).to_owned(),
        Else(advice) => return (*advice).to_owned(),
        Value(attribute) => attribute.replace("{}", &literal(value)),
        Text(attribute) => attribute.replace("{}", &quoted(value)),
        List(attribute) => {
            let items: Vec<String> = items(value).map(literal).collect();
            attribute.replace("{}", &format!("[{}]", items.join(", ")))
        }
        Names(attribute) => attribute.replace("{}", &items(value).collect::<Vec<_>>().join(", ")),
        Args(attribute) => attribute.replace("{}", &arguments(value)),
        Json(attribute) => attribute.replace("{}", &json_object(value)),
    };
    format!("write `{written}`")
}

fn items(value: &str) -> impl Iterator<Item = &str> {
    let inner = value.trim().trim_start_matches('{').trim_end_matches('}');
    inner
        .split([';', ','])
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

fn literal(value: &str) -> String {
    let value = value.trim();
    let is_plain = matches!(value, "true" | "false") || value.parse::<f64>().is_ok_and(f64::is_finite);
    match value {
        "{}" => "{}".to_owned(),
        _ if is_plain => value.to_owned(),
        // Objects aren't translated; leave them for the user to fill in.
        _ if value.starts_with('{') => "…".to_owned(),
        _ => quoted(value),
    }
}

/// Converts a Go string literal or a bare word to a Rust string literal.
fn quoted(value: &str) -> String {
    let value = value.trim();
    let between = |quote: char| {
        value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    // Double-quoted strings are the same in Rust.
    if between('"').is_some() {
        return value.to_owned();
    }
    let text = between('`').unwrap_or(value);
    if text.contains(['"', '\\']) {
        format!("r#\"{text}\"#")
    } else {
        format!("\"{text}\"")
    }
}

/// Converts `a=b,c="d"` to `a = "b", c = "d"`, with names in snake case.
fn arguments(value: &str) -> String {
    let written = named_values(value).into_iter().map(|(name, value)| {
        let mut spelled = String::new();
        for letter in name.chars() {
            if letter.is_uppercase() {
                spelled.push('_');
            }
            spelled.extend(letter.to_lowercase());
        }
        format!("{spelled} = {value}")
    });
    written.collect::<Vec<_>>().join(", ")
}

/// Converts `a=b,c="d"` to `{ "a": "b", "c": "d" }`.
fn json_object(value: &str) -> String {
    let written = named_values(value).into_iter();
    let written = written.map(|(name, value)| format!("\"{name}\": {value}"));
    format!("{{ {} }}", written.collect::<Vec<_>>().join(", "))
}

/// Returns the names in `a=b,c="d"`, with their values as Rust literals.
fn named_values(value: &str) -> Vec<(&str, String)> {
    let mut list = Vec::new();
    let mut rest = value;
    while let Some((name, behind)) = rest.split_once('=') {
        let end = end_of_value(behind);
        let value = &behind[..end];
        let written = match value.trim() {
            "true" | "false" => value.to_owned(),
            _ => quoted(&items_text(value)),
        };
        list.push((name.trim_matches([',', ' ', ':']), written));
        rest = &behind[end..];
    }
    list
}

/// Converts `{a,b}` to `a;b`, leaving other values as they are.
fn items_text(value: &str) -> String {
    let value = value.trim();
    if value.starts_with('{') {
        items(value).collect::<Vec<_>>().join(";")
    } else {
        value.to_owned()
    }
}

/// Returns the end of the value at the start of `text`: a comma outside of quotes and braces.
fn end_of_value(text: &str) -> usize {
    let mut quote = None;
    let mut depth = 0usize;
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(letter),
            (None, '{') => depth += 1,
            (None, '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<&str>) {
        check_for(SchemaSource::CrdSchema, line, expected);
    }

    fn check_for(source: SchemaSource, line: &str, expected: Option<&str>) {
        let help = |commented| {
            let said = warn_of_go_marker(line, Span::default(), source, commented);
            said.and_then(|said| said.help)
        };
        assert_eq!(help(Commented::Item).as_deref(), expected, "{line}");
        let on_member = expected.map(|help| help.replace("#[crd(", "#[kube("));
        assert_eq!(help(Commented::Member), on_member, "{line}");
    }

    #[test]
    fn a_comment_is_about_what_follows() {
        for (text, expected) in [
            (
                "\n    #[serde(default)]\n    // more\n    pub size: i32,",
                Commented::Member,
            ),
            ("\n    size: i32,", Commented::Member),
            ("\n    pub(crate) r#type: i32,", Commented::Member),
            ("\n    Always,", Commented::Member),
            ("\n    Other(String),", Commented::Member),
            ("\n#[derive(Clone)]\npub struct Cup {", Commented::Item),
            ("\npub(crate) enum Cup {", Commented::Item),
            ("\nasync fn reconcile() {", Commented::Item),
            ("", Commented::Item),
        ] {
            assert_eq!(Commented::by(text), expected, "{text}");
        }
    }

    #[test]
    fn every_marker_has_a_schemars_spelling() {
        for (name, spelling) in MARKERS {
            let value = if name.ends_with("XValidation") {
                "=rule=\"true\""
            } else {
                "=1"
            };
            let said = spelled(spelling_for(SchemaSource::Schemars, spelling), value);
            assert!(!said.contains("#[crd("), "{name}: {said}");
        }
        for (ours, _) in schemars::SPELLINGS {
            let is_used = MARKERS.iter().any(|(_, spelling)| match spelling {
                As(used) | Value(used) | Text(used) | List(used) | Names(used) | Args(used) => used == ours,
                Json(_) | Else(_) => false,
            });
            let is_constraint = Key::arguments().any(|key| spelling_of(key) == *ours);
            assert!(is_used || is_constraint || *ours == ITEMS, "{ours}");
        }
    }

    #[test]
    fn suggests_rust_spelling_of_markers() {
        for (line, expected) in [
            (
                "+kubebuilder:validation:Minimum=1",
                "write `#[crd(validation(minimum = 1))]`",
            ),
            (
                "+kubebuilder:validation:Minimum:=1.5",
                "write `#[crd(validation(minimum = 1.5))]`",
            ),
            (
                "+kubebuilder:validation:Pattern=`^a\\d$`",
                "write `#[crd(validation(pattern = r#\"^a\\d$\"#))]`",
            ),
            (
                "+kubebuilder:validation:Pattern=\"^a$\"",
                "write `#[crd(validation(pattern = \"^a$\"))]`",
            ),
            (
                "+kubebuilder:validation:Enum=a;\"b\";3",
                "write `#[crd(validation(enum = [\"a\", \"b\", 3]))]`",
            ),
            (
                "+kubebuilder:validation:ExactlyOneOf=a;b",
                "write `#[crd(exactly_one_of(a, b))]`",
            ),
            ("+kubebuilder:default=abc", "write `#[crd(default = \"abc\")]`"),
            ("+kubebuilder:default:=true", "write `#[crd(default = true)]`"),
            ("+default={}", "write `#[crd(default = {})]`"),
            ("+optional", "write `#[crd(optional)]`"),
            ("+listType=map", "write `#[crd(list_type = \"map\")]`"),
            ("+listMapKey=name", "write `#[crd(list_map_keys = [\"name\"])]`"),
            ("+k8s:immutable", "write `#[crd(immutable)]`"),
            (
                "+kubebuilder:rbac:groups=apps,resources=deployments;pods,resourceNames=a,verbs=get;list",
                "write `#[rbac(groups = \"apps\", resources = \"deployments;pods\", resource_names = \"a\", verbs = \"get;list\")]`",
            ),
            (
                "+kubebuilder:rbac:groups=\"\",resources=pods,verbs={get,list}",
                "write `#[rbac(groups = \"\", resources = \"pods\", verbs = \"get;list\")]`",
            ),
            (
                "+kubebuilder:validation:XValidation:rule=\"self.a, self.b\",message=\"no\"",
                "write `#[crd(cel(rule = \"self.a, self.b\", message = \"no\"))]`",
            ),
            (
                "+kubebuilder:validation:items:MinLength=1",
                "write the constraint in `#[crd(items(validation(…)))]`",
            ),
            (
                "+kubebuilder:subresource:status",
                "write `status = \"…\"` with the type of the status in `#[kube(…)]` of the kind",
            ),
            (
                "+kubebuilder:nosuch=1",
                "see docs/markers.md for the markers of rbuilder",
            ),
        ] {
            check(line, Some(expected));
        }
        for line in [
            "",
            "+",
            "+ optional",
            "+ an item",
            "+optionally",
            "+1",
            "optional",
            "+kubebuilder: is",
            "+go:build linux",
        ] {
            check(line, None);
        }
        assert!(MARKERS.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
