//! Helm templates as trees of YAML, expressions, control structures and values.
//!
//! A manifest is parsed, parts of the tree are replaced, and the tree is printed. The output thus
//! contains no expressions other than ours. Braces in descriptions, samples and CEL rules survive,
//! because a literal `{{` is printed as an action that renders `{{`.

use rbuilder_generator::yaml;
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Value(Value),
    /// Text with expressions, which must render to a single YAML scalar.
    Text(String),
    Map(Vec<Part>),
    List(Vec<Part>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Field(String, Node),
    Item(Node),
    /// An expression that renders whole lines, e.g. `toYaml .Values.tolerations`.
    Lines(String),
    /// A control structure and its body, e.g. `if .Values.metrics.enabled`.
    Block(String, Vec<Part>),
    /// A control structure with an `else` branch.
    Either(String, Vec<Part>, Vec<Part>),
}

impl Part {
    pub(crate) fn of_values(key: &str, path: &str) -> Part {
        let lines = Node::Map(vec![Part::Lines("toYaml .".into())]);
        Part::Block(format!("with {path}"), vec![Part::Field(key.into(), lines)])
    }

    pub(crate) fn items_of_values(path: &str) -> Part {
        Part::Block(format!("with {path}"), vec![Part::Lines("toYaml .".into())])
    }
}

impl Node {
    /// Converts a tree without control structures and expressions to a plain value.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Node::Value(value) => value,
            Node::Text(text) => Value::String(text),
            Node::Map(parts) => parts.into_iter().filter_map(Part::into_field).collect(),
            Node::List(parts) => parts.into_iter().filter_map(Part::into_item).collect(),
        }
    }
}

impl Part {
    fn into_field(self) -> Option<(String, Value)> {
        match self {
            Part::Field(key, node) => Some((key, node.into_value())),
            _ => None,
        }
    }

    fn into_item(self) -> Option<Value> {
        match self {
            Part::Item(node) => Some(node.into_value()),
            _ => None,
        }
    }
}

pub(crate) fn print_document(parts: &[Part]) -> String {
    let mut out = String::new();
    print_parts(&mut out, parts, 0);
    out
}

/// Escapes literal text for a template. Only `{{` opens an action, so `{{{` becomes an action
/// followed by the third brace.
pub(crate) fn escape(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

fn print_parts(out: &mut String, parts: &[Part], indent: usize) {
    for part in parts {
        match part {
            Part::Field(key, node) => print_field(out, key, node, indent),
            Part::Item(node) => print_item(out, node, indent),
            Part::Lines(expression) => {
                push_line(
                    out,
                    indent,
                    &format!("{{{{- {expression} | nindent {indent} }}}}"),
                );
            }
            Part::Block(control, parts) => {
                push_line(out, indent, &format!("{{{{- {control} }}}}"));
                print_parts(out, parts, indent);
                push_line(out, indent, "{{- end }}");
            }
            Part::Either(control, parts, others) => {
                push_line(out, indent, &format!("{{{{- {control} }}}}"));
                print_parts(out, parts, indent);
                push_line(out, indent, "{{- else }}");
                print_parts(out, others, indent);
                push_line(out, indent, "{{- end }}");
            }
        }
    }
}

fn print_field(out: &mut String, key: &str, node: &Node, indent: usize) {
    match node {
        Node::Value(value) => match split(value) {
            Some(parts) => print_field(out, key, &parts, indent),
            None => push_literal(out, indent, &json!({ key: value })),
        },
        Node::Text(text) => push_line(out, indent, &format!("{}: {text}", print_key(key))),
        Node::Map(parts) => {
            push_line(out, indent, &format!("{}:", print_key(key)));
            print_parts(out, parts, indent + 2);
        }
        Node::List(parts) => {
            push_line(out, indent, &format!("{}:", print_key(key)));
            print_parts(out, parts, indent);
        }
    }
}

/// Prints a list item. A map must start with a field, which goes on the line of the dash.
fn print_item(out: &mut String, node: &Node, indent: usize) {
    match node {
        Node::Value(value) => match split(value) {
            Some(parts) => print_item(out, &parts, indent),
            None => push_literal(out, indent, &json!([value])),
        },
        Node::Text(text) => push_line(out, indent, &format!("- {text}")),
        Node::Map(parts) | Node::List(parts) => {
            let start = out.len();
            print_parts(out, parts, indent + 2);
            if out.len() > start + indent {
                // Put the dash in the indentation of the first line.
                out.replace_range(start + indent..=start + indent, "-");
            }
        }
    }
}

/// Splits a literal that contains a string with trailing empty lines. A block scalar would lose
/// these, because the following action trims line breaks.
fn split(value: &Value) -> Option<Node> {
    if !ends_openly(value) {
        return None;
    }
    Some(match value {
        Value::Object(map) => Node::Map(
            map.iter()
                .map(|(key, value)| Part::Field(key.clone(), Node::Value(value.clone())))
                .collect(),
        ),
        Value::Array(list) => Node::List(list.iter().cloned().map(Node::Value).map(Part::Item).collect()),
        value => Node::Text(escape(&value.to_string())),
    })
}

/// Whether a string in the value ends with an empty line, which YAML only keeps in a `+` block
/// scalar.
fn ends_openly(value: &Value) -> bool {
    match value {
        Value::String(text) => text.ends_with("\n\n") || text == "\n",
        Value::Array(list) => list.iter().any(ends_openly),
        Value::Object(map) => map.values().any(ends_openly),
        _ => false,
    }
}

fn print_key(key: &str) -> String {
    let printed = yaml::to_string(&json!({ key: 0 }));
    let key = printed.strip_suffix(": 0\n").unwrap_or(key);
    escape(key)
}

fn push_literal(out: &mut String, indent: usize, value: &Value) {
    for line in yaml::to_string(value).lines() {
        if line.is_empty() {
            out.push('\n');
        } else {
            push_line(out, indent, &escape(line));
        }
    }
}

fn push_line(out: &mut String, indent: usize, line: &str) {
    out.extend(std::iter::repeat_n(' ', indent));
    out.push_str(line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parts: &[Part], expected: &str) {
        assert_eq!(print_document(parts), expected);
    }

    fn field(key: &str, value: Value) -> Part {
        Part::Field(key.into(), Node::Value(value))
    }

    #[test]
    fn parts_are_printed_at_their_indentation() {
        let item = Node::Map(vec![
            field("name", json!("manager")),
            Part::of_values("resources", ".Values.resources"),
            Part::Field(
                "env".into(),
                Node::List(vec![Part::items_of_values(".Values.env")]),
            ),
        ]);
        let spec = Node::Map(vec![
            Part::Field("replicas".into(), Node::Text("{{ .Values.replicas }}".into())),
            Part::Field("containers".into(), Node::List(vec![Part::Item(item)])),
            Part::Either(
                "if .Values.a".into(),
                vec![field("b", json!([1]))],
                vec![field("c", json!({}))],
            ),
        ]);
        check(
            &[Part::Field("spec".into(), spec)],
            "spec:\n  replicas: {{ .Values.replicas }}\n  containers:\n  - name: manager\n    {{- with .Values.resources }}\n    \
             resources:\n      {{- toYaml . | nindent 6 }}\n    {{- end }}\n    env:\n    {{- with .Values.env }}\n    {{- toYaml \
             . | nindent 4 }}\n    {{- end }}\n  {{- if .Values.a }}\n  b:\n  - 1\n  {{- else }}\n  c: {}\n  {{- end }}\n",
        );
    }

    #[test]
    fn braces_of_literals_are_escaped() {
        check(&[field("a", json!("x {{ .y }}"))], "a: x {{ \"{{\" }} .y }}\n");
        check(&[field("{{", json!("{{{"))], "'{{ \"{{\" }}': '{{ \"{{\" }}{'\n");
        check(
            &[field("a", json!("x {{\n\ny\n"))],
            "a: |\n  x {{ \"{{\" }}\n\n  y\n",
        );
    }

    #[test]
    fn text_that_ends_in_empty_lines_is_quoted() {
        check(
            &[field("a", json!({ "b": "x\n\n", "c": ["\n"] }))],
            "a:\n  b: \"x\\n\\n\"\n  c:\n  - \"\\n\"\n",
        );
    }

    /// Renders a template whose only actions are escaped braces.
    fn render(template: &str) -> String {
        let mut parts = template.split("{{");
        let mut out = parts.next().unwrap_or_default().to_owned();
        while let Some(begun) = parts.next() {
            assert_eq!(begun, " \"", "another action");
            let rest = parts.next().and_then(|part| part.strip_prefix("\" }}"));
            out.push_str("{{");
            out.push_str(rest.expect("the end of the action"));
        }
        out
    }

    proptest::proptest! {
        #[test]
        fn literals_survive_rendering(
            text in "[a{}\" .\n:-]{0,12}",
            key in "[a-z{]{1,6}",
        ) {
            let value = json!({ "list": [{ "name": text }], key: { "inner": text } });
            let parts = [Part::Field("root".into(), Node::Value(value.clone()))];
            let rendered = render(&print_document(&parts));
            let parsed: Value = serde_saphyr::from_str(&rendered).expect("YAML");
            proptest::prop_assert_eq!(&parsed["root"], &value, "{}", rendered);
        }
    }
}
