//! An example for each row: the message about the wrong text must propose the right one, which the
//! judge must accept.

use std::collections::BTreeSet;

use rbuilder_generator::{Diagnostic, FileRange};

use super::*;
use crate::commands::judge_by;

const CRD: &str = r"
kind: CustomResourceDefinition
spec:
  group: example.com
  names: { kind: Widget, plural: widgets }
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: { type: integer, maximum: 9 }
              ratio: { type: number }
              isOpen: { type: boolean }
              colour: { type: string, enum: [white, blue, 'on', 'red, green'] }
              version: { type: string }
              labels: { type: object, additionalProperties: { type: string } }
              tags: { type: array, x-kubernetes-list-type: set, items: { type: string } }
              numbers: { type: array, items: { type: integer } }
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: { type: string }
                    port: { type: integer }
                    note: { type: string }
              template: { type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true }
              mode: { type: string, enum: [Strict, strict] }
              sizes: { type: object, properties: { six: { type: integer }, sixe: { type: integer } } }
";

const EXAMPLES: &[(&str, &str)] = &[
    ("spec:\n  sise: 3 # three\n", "spec:\n  size: 3 # three\n"),
    ("spec: { 'is_open': true }\n", "spec: { 'isOpen': true }\n"),
    ("spce:\n  size: 3\n", "spec:\n  size: 3\n"),
    ("  lables: { a: b }\n", "  labels: { a: b }\n"),
    (
        "spec:\n  ports:\n  - name: a\n    prot: 80\n  - {name: b, \"Port\": 81}\n",
        "spec:\n  ports:\n  - name: a\n    port: 80\n  - {name: b, \"port\": 81}\n",
    ),
    (
        "spec:\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      anotations: {}\n",
        "spec:\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      annotations: {}\n",
    ),
    ("spec:\n  colour: White\n", "spec:\n  colour: white\n"),
    ("spec:\n  colour: 'bleu' # é\n", "spec:\n  colour: 'blue' # é\n"),
    ("spec:\n  colour: oN\n", "spec:\n  colour: \"on\"\n"),
    (
        "spec: { colour: \"red, gren\", tags: [] }\n",
        "spec: { colour: \"red, green\", tags: [] }\n",
    ),
    (
        "spec:\n  colour: red, gren\n",
        "spec:\n  colour: \"red, green\"\n",
    ),
    ("spec:\n  size: \"3\"\n", "spec:\n  size: 3\n"),
    ("spec:\n  ratio: '-0.5e3'\n", "spec:\n  ratio: -0.5e3\n"),
    ("spec:\n  isOpen: 'True'\n", "spec:\n  isOpen: true\n"),
    (
        "spec:\n  numbers: [1, \"2\", '3']\n",
        "spec:\n  numbers: [1, 2, 3]\n",
    ),
    ("spec:\n  version: 1.10\n", "spec:\n  version: \"1.10\"\n"),
    ("spec:\n  version: yes\n", "spec:\n  version: \"yes\"\n"),
    ("spec:\n  version: 0x1F\n", "spec:\n  version: \"0x1F\"\n"),
    (
        "spec:\n  labels: {a.b/c: 1, d: x}\n",
        "spec:\n  labels: {a.b/c: \"1\", d: x}\n",
    ),
    (
        "  labels:\n    app.kubernetes.io/version: 1.0\n    a: true\n",
        "  labels:\n    app.kubernetes.io/version: \"1.0\"\n    a: \"true\"\n",
    ),
    (
        "  finalizers:\n  - a.b/c\n  - 7\n",
        "  finalizers:\n  - a.b/c\n  - \"7\"\n",
    ),
    ("spec:\n  tags: [a, b,  a , c]\n", "spec:\n  tags: [a, b , c]\n"),
    ("spec:\n  tags: [a, 'a']\n", "spec:\n  tags: [a]\n"),
    (
        "spec:\n  tags:\n  - a\n  # two\n  - \"a\"\n  - b\n",
        "spec:\n  tags:\n  - a\n  # two\n  - b\n",
    ),
    (
        "spec:\n  tags: # é\n    -   a\n    -   a",
        "spec:\n  tags: # é\n    -   a",
    ),
    (
        "spec:\n  ports:\n  - name: a\n    port: 80\n  - name: a\n    port: 80\n\n  # b\n  - name: b\n  size: 3\n",
        "spec:\n  ports:\n  - name: a\n    port: 80\n\n  # b\n  - name: b\n  size: 3\n",
    ),
    (
        "spec:\n  ports:\n  - name: a\n    note: |\n      x\n\n      y\n  - name: a\n    note: |\n      x\n\n      y\n",
        "spec:\n  ports:\n  - name: a\n    note: |\n      x\n\n      y\n",
    ),
    (
        "spec:\n  size: 3\n  colour: blue\n  size: 3\n",
        "spec:\n  size: 3\n  colour: blue\n",
    ),
    (
        "spec:\n  tags:\n  - a\n  size: 3\n  tags:\n  - a\n  colour: blue\n",
        "spec:\n  tags:\n  - a\n  size: 3\n  colour: blue\n",
    ),
    // Several mistakes, some of which hide others.
    (
        "  name: 12\nspec:\n  sise: '3'\n  colour: Blue\n  tags: [x, x]\n",
        "  name: \"12\"\nspec:\n  size: 3\n  colour: blue\n  tags: [x]\n",
    ),
];

/// Mistakes that we can't correct: there is a choice, a guess, a comment that would be lost, or
/// more than one place.
const LEFT: &[&str] = &[
    "spec:\n  color: white\n  colour: white\n",
    "spec:\n  extent: 3\n",
    "spec:\n  mode: STRICT\n",
    "spec:\n  sizes: { sixx: 1 }\n",
    "spec:\n  colour: red\n",
    "spec:\n  size: three\n",
    "spec:\n  size: '03'\n",
    "spec:\n  size: '3.5'\n",
    "spec:\n  isOpen: 'yes'\n",
    "spec:\n  version: [1]\n",
    "spec:\n  version: !!int 1\n",
    "spec:\n  size: !!str 3\n",
    "spec:\n  tags:\n  - a\n  - a # why\n",
    "spec:\n  tags: [a, # why\n    a]\n",
    "spec:\n  ports: [{name: a}, {name: a}]\n",
    "spec:\n  ports:\n  - name: a\n  - name: a\n    port: 80\n",
    "spec:\n  size: 3\n  size: 4\n",
    "spec:\n  size: 3\n  size: 3 # why\n",
    "spec: {size: 3, size: 3}\n",
    "spec:\n  ports:\n  - &a\n    name: a\n    prot: 80\n",
    "spec:\n  version: &v 1\n",
];

const STANZAS: &[(&str, &str)] = &[
    (
        "apiVersion: example.com/v1alpha1\nkind: Wigdet\n",
        "apiVersion: example.com/v1alpha1\nkind: Widget\n",
    ),
    (
        "apiVersion: \"exmaple.com/v1alpha1\"\nkind: Widget\n",
        "apiVersion: \"example.com/v1alpha1\"\nkind: Widget\n",
    ),
    (
        "apiVersion: example.com/v1alpa1\nkind: Widget\n",
        "apiVersion: example.com/v1alpha1\nkind: Widget\n",
    ),
    (
        "apiVersion: v1\nkind: ConfigMpa\n",
        "apiVersion: v1\nkind: ConfigMap\n",
    ),
    (
        "apiVersion: v1\nkind: configmap\n",
        "apiVersion: v1\nkind: ConfigMap\n",
    ),
    (
        "apiVersion: apps/V1\nkind: DaemonSet\n",
        "apiVersion: apps/v1\nkind: DaemonSet\n",
    ),
    // A different version, group or kind rather than a misspelled one.
    ("apiVersion: example.com/v1alpha2\nkind: Widget\n", ""),
    ("apiVersion: example.org/v1\nkind: Widget\n", ""),
    ("apiVersion: example.com/v1alpha1\nkind: Gadget\n", ""),
    ("apiVersion: v1\nkind: Deployment\n", ""),
    ("apiVersion: apps/v1beta1\nkind: Deployment\n", ""),
];

/// Messages of `manifests` with their help, the text at their place, and its replacement.
const MESSAGES: &[(&str, &str, &str, &str)] = &[
    (
        "this sample is of shop.example.com/v1, and no CRD of the project has a `Widegt` there",
        "did you mean `Widget`?",
        "Widegt",
        "Widget",
    ),
    (
        "PROJECT lists version `v1` of `Widget`, but the source has no such version",
        "write `version: v2` in its entry in PROJECT",
        "version: v1",
        "version: v2",
    ),
];

fn object(lines: &str) -> String {
    let stanza = "apiVersion: example.com/v1alpha1\nkind: Widget\nmetadata:\n";
    match lines.starts_with("  name:") {
        true => format!("{stanza}{lines}"),
        false => format!("{stanza}  name: a\n{lines}"),
    }
}

fn messages(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|said| said.text() + "\n").collect()
}

#[test]
fn examples_are_corrected_and_accepted() {
    let mut judge = judge_by(CRD);
    for (wrong, right) in EXAMPLES {
        let (wrong, right) = (object(wrong), object(right));
        for change in [
            |text: &str| text.to_owned(),
            |text: &str| text.replace('\n', "\r\n"),
        ] {
            let (wrong, right) = (change(&wrong), change(&right));
            let said = messages(&judge(&wrong));
            assert_eq!(correct(&wrong, &mut judge).as_deref(), Some(&*right), "{said}");
            let left: Vec<Diagnostic> = judge(&right);
            assert!(
                left.iter().all(|said| !said.is_error()),
                "{right}{}",
                messages(&left)
            );
            assert_eq!(correct(&right, &mut judge), None);
        }
    }
}

/// Texts with one slip at this position: two letters transposed, a letter in the other case, or a
/// value that gained or lost its quotes.
fn slips(text: &str, at: usize) -> Vec<String> {
    let mut slips = Vec::new();
    let letters: Vec<(usize, char)> = text[at..].char_indices().take(2).collect();
    if let [(_, one), (next, two)] = letters[..]
        && one.is_alphanumeric()
        && two.is_alphanumeric()
        && one != two
    {
        let after = at + next + two.len_utf8();
        slips.push(format!("{}{two}{one}{}", &text[..at], &text[after..]));
    }
    if let Some((_, letter)) = letters.first().filter(|(_, letter)| letter.is_ascii_alphabetic()) {
        let other = match letter.is_ascii_lowercase() {
            true => letter.to_ascii_uppercase(),
            false => letter.to_ascii_lowercase(),
        };
        slips.push(format!("{}{other}{}", &text[..at], &text[at + 1..]));
    }
    let is_start = text[..at].ends_with([' ', '[']);
    let length = text[at..]
        .find([' ', ',', '\n', ']', ':', '}'])
        .unwrap_or(text.len() - at);
    let word = &text[at..at + length];
    let plain = word.trim_matches(['"', '\'']);
    if is_start && !plain.is_empty() {
        let other = if plain == word {
            format!("\"{word}\"")
        } else {
            plain.to_owned()
        };
        slips.push(format!("{}{other}{}", &text[..at], &text[at + length..]));
    }
    slips
}

/// A slip anywhere in a correct object must be corrected to the same bytes, or left alone. Slips in
/// values that the schema doesn't limit can't be corrected.
#[test]
fn slips_are_corrected_or_left() {
    let mut judge = judge_by(CRD);
    let mut corrected = 0;
    for (_, lines) in EXAMPLES {
        let right = object(lines);
        for (at, _) in right.char_indices() {
            for wrong in slips(&right, at) {
                if rbuilder_yaml::parse_values(&wrong).is_err() {
                    continue;
                }
                if let Some(text) = correct(&wrong, &mut judge) {
                    corrected += 1;
                    assert_eq!(text, right, "{wrong}");
                }
            }
        }
    }
    assert!(corrected > 500, "{corrected}");
}

#[test]
fn choices_and_guesses_are_left() {
    let mut judge = judge_by(CRD);
    for lines in LEFT {
        let text = object(lines);
        let said = judge(&text);
        assert!(!said.is_empty(), "{text}");
        assert_eq!(correct(&text, &mut judge), None, "{}", messages(&said));
    }
}

#[test]
fn stanzas_are_corrected() {
    let mut judge = judge_by(CRD);
    for (wrong, right) in STANZAS {
        let rest = "metadata: { name: a }\n";
        let (wrong, expected) = (format!("{wrong}{rest}"), format!("{right}{rest}"));
        let expected = (!right.is_empty()).then_some(expected);
        let said = messages(&judge(&wrong));
        assert_eq!(correct(&wrong, &mut judge), expected, "{wrong}{said}");
        if let Some(right) = expected {
            let left = messages(&judge(&right));
            assert!(!left.contains("no matches for kind"), "{left}");
        }
    }
}

#[test]
fn each_row_has_an_example() {
    let mut judge = judge_by(CRD);
    let mut unused: BTreeSet<usize> = (0..ROWS.len()).collect();
    let mut note = |said: &Diagnostic, text: &str| {
        unused.retain(|row| ROWS[*row].apply(said, text).is_none());
    };
    let objects = EXAMPLES.iter().map(|(wrong, _)| object(wrong));
    let stanzas = STANZAS.iter().map(|(wrong, _)| (*wrong).to_owned());
    for text in objects.chain(stanzas) {
        judge(&text).iter().for_each(|said| note(said, &text));
    }
    for (message, help, old, new) in MESSAGES {
        let text = format!("a: 1\n- {old}\n");
        let said = Diagnostic::warning(FileRange::new("a", 7..7 + old.len()), *message).help(*help);
        note(&said, &text);
        let (corrected, count) = replace_all(&text, find_replacement(&said, &text).into_iter().collect());
        assert_eq!((corrected, count), (format!("a: 1\n- {new}\n"), 1));
    }
    let unused: Vec<_> = unused
        .into_iter()
        .map(|row| (ROWS[row].message, ROWS[row].help))
        .collect();
    assert!(unused.is_empty(), "add examples for {unused:#?}");
}
