//! Each row of the table corrects an example, and the result compiles.
//!
//! The corrected examples are in `tests/advice/corrected.rs`, which
//! `crates/runtime/tests/advice.rs` compiles. Run
//! `SNAPSHOTS=overwrite cargo test -p rbuilder-generator --lib replacement` to update it.

use std::collections::BTreeSet;

use super::*;
use crate::codes::ExamplePlace::{self, Field, Items, Keys, KindChange, Types};
use crate::{Code, Options, SourceSet, generate};

/// (where it goes, source with the mistake, source after the replacement)
type Example = (ExamplePlace, &'static str, &'static str);

const RBAC: &[Example] = &[
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get;wacth; lsit\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get;watch; list\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods\", verbs = [\"get\", \"gett\", \"list\"])]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods\", verbs = [\"get\", \"list\"])]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"app\", resources = \"deployments\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"apps/v1\", resources = \"deployments\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"apps\", resources = \"deployment;deployment/status\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"apps\", resources = \"deployments;deployments/status\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"apps;batch\", resources = \"deployment\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"apps;batch\", resources = \"deployments\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"po\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"example.com\", resources = \"widget/status\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"example.com\", resources = \"widgets/status\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods/logs\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods/log\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"secrets;configmaps/status;configmaps\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"secrets;configmaps\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods/log/x\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods/log\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(urls = \"metrics\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(urls = \"/metrics\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"post;create;put\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"create;update\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get, list\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get;list\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods;\", verbs = \"get;;list\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get;list\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"deployments\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"apps\", resources = \"widgets\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"example.com\", resources = \"widgets\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(resources = \"deployments.apps\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"nodes\", verbs = \"get\", namespace = \"shop\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"nodes\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods\", resource_names = \"*\", verbs = \"get\")]\nfn reconcile() {}",
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]\nfn reconcile() {}",
    ),
    (
        Items,
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]\nasync fn run(pods: kube::Api<Pod>) {\n    pods.get(\"a\").await;\n    Widget::remove(pods).await;\n}\n\nimpl Widget {\n    /// Removes a pod.\n    pub(crate) async fn remove(pods: kube::Api<Pod>) {\n        pods.delete(\"a\", &Default::default()).await;\n    }\n}",
        "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]\nasync fn run(pods: kube::Api<Pod>) {\n    pods.get(\"a\").await;\n    Widget::remove(pods).await;\n}\n\nimpl Widget {\n    /// Removes a pod.\n    #[rbac(groups = \"\", resources = \"pods\", verbs = [\"delete\"])]\n    pub(crate) async fn remove(pods: kube::Api<Pod>) {\n        pods.delete(\"a\", &Default::default()).await;\n    }\n}",
    ),
    (
        Items,
        "/// Reconciles.\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list\nfn reconcile() {}",
        "/// Reconciles.\n#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get;list\")]\nfn reconcile() {}",
    ),
];

const WEBHOOKS: &[Example] = &[
    (
        Items,
        "#[webhook(validating, operations = \"*;create\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(validating, operations = \"*\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
    ),
    (
        Items,
        "#[webhook(validating, operations = \"create;update;create\", versions = [\"v1\", \"*\"])]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(validating, operations = \"create;update\", versions = [\"*\"])]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
    ),
    (
        Items,
        "#[webhook(validating, groups = \"example.com;example.com\", resources = \"widgets/*;widgets/status;widgets\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(validating, groups = \"example.com\", resources = \"widgets/*;widgets\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
    ),
    (
        Items,
        "#[webhook(validating, admission_review_versions = \"v2;v1;v1\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(validating, admission_review_versions = \"v1\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
    ),
    (
        Items,
        "#[webhook(validating, path = \"validate\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(validating, path = \"/validate\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
    ),
    (
        Items,
        "#[webhook(validating, groups = \"\", versions = \"v1\", resources = \"pods/exec\", operations = \"create\")]\nfn validate(pod: &Pod) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(validating, groups = \"\", versions = \"v1\", resources = \"pods/exec\", operations = \"connect\")]\nfn validate(pod: &Pod) -> Result<(), String> {\n    Ok(())\n}",
    ),
    (
        Items,
        "#[webhook(\n    validating,\n    reinvocation_policy = \"Never\",\n)]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(\n    validating,\n)]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
    ),
    (
        Items,
        "#[webhook(validating = true)]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(validating)]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
    ),
    (
        Items,
        "#[webhook(validating, webhook_versions = \"v1\")]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
        "#[webhook(validating)]\nfn validate(widget: &Widget) -> Result<(), String> {\n    Ok(())\n}",
    ),
];

const KINDS: &[Example] = &[
    (Keys, "shortnam = \"wi\"", "shortname = \"wi\""),
    (
        Keys,
        "printcolumn(name = \"Size\", type_ = \"date\", json_path = \".metadata.name\")",
        "printcolumn(name = \"Size\", type_ = \"string\", json_path = \".metadata.name\")",
    ),
    (
        Keys,
        "printcolumn(name = \"Size\", type_ = \"integer\", json_path = \"spec.size\")",
        "printcolumn(name = \"Size\", type_ = \"integer\", json_path = \".spec.size\")",
    ),
    (
        Keys,
        "printcolumn(name = \"Size\", type_ = \"integer\", json_path = \".spec.sise\")",
        "printcolumn(name = \"Size\", type_ = \"integer\", json_path = \".spec.size\")",
    ),
    (Keys, "struct = \"Widget\"", "root = \"Widget\""),
    (
        Keys,
        "selectable = \".metadata.name\",\n    shortname = \"wi\"",
        "shortname = \"wi\"",
    ),
    (
        KindChange,
        "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\", preserve_unknown_fields)]",
        "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]\n#[crd(preserve_unknown_fields)]",
    ),
    (
        KindChange,
        "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]\n#[crd(shortname = \"wi\")]",
        "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]\n#[kube(shortname = \"wi\")]",
    ),
];

const FIELDS: &[Example] = &[
    (
        Field,
        "#[kube(validation(minimun = 1))]\npub size: i32,",
        "#[kube(validation(minimum = 1))]\npub size: i32,",
    ),
    (
        Field,
        "#[kube(minimum = 1)]\npub size: i32,",
        "#[kube(validation(minimum = 1))]\npub size: i32,",
    ),
    (
        Field,
        "#[kube(minimun = 1)]\npub size: i32,",
        "#[kube(validation(minimum = 1))]\npub size: i32,",
    ),
    (
        Field,
        "#[kube(validation(max_length = \"9\"))]\npub name: String,",
        "#[kube(validation(max_length = 9))]\npub name: String,",
    ),
    (
        Field,
        "#[kube(validation(minimum = 1))]\npub name: String,",
        "#[kube(validation(min_length = 1))]\npub name: String,",
    ),
    (
        Field,
        "/// The number of instances.\n/// +kubebuilder:validation:Minimum=1\npub size: i32,",
        "/// The number of instances.\n#[kube(validation(minimum = 1))]\npub size: i32,",
    ),
    (
        Field,
        "#[kube(validation(format = \"phone\"))]\npub number: String,",
        "pub number: String,",
    ),
    (
        Field,
        "#[kube(allow(RB0306, RB0309, reason = \"why\"), nullable)]\npub number: Option<String>,",
        "#[kube(nullable)]\npub number: Option<String>,",
    ),
    (
        Field,
        "#[kube(allow(RB0306))]\n#[serde(default)]\npub number: Option<String>,",
        "#[serde(default)]\npub number: Option<String>,",
    ),
    (
        Field,
        "#[kube(list_map_keys = [\"name\"])]\npub items: Vec<ObjectMeta>,",
        "#[kube(list_map_keys = [\"name\"], list_type = \"map\")]\npub items: Vec<ObjectMeta>,",
    ),
    (
        Field,
        "#[kube(schema = { \"type\": \"object\" }, embedded_resource)]\npub object: serde_json::Value,",
        "#[kube(schema = { \"type\": \"object\" }, embedded_resource, preserve_unknown_fields)]\npub object: serde_json::Value,",
    ),
    (
        Field,
        "#[kube(preserve_unknown_fields, validation(minimum = 1))]\npub size: i32,",
        "#[kube(validation(minimum = 1))]\npub size: i32,",
    ),
    (
        Field,
        "#[serde(skip_serializing_if = \"Vec::is_empty\")]\npub names: Vec<String>,",
        "#[serde(skip_serializing_if = \"Vec::is_empty\", default)]\npub names: Vec<String>,",
    ),
    (Field, "pub number: Strng,", "pub number: String,"),
    (
        Field,
        "#[kube(list_type = \"map\", list_map_keys = [\"name\", \"name\"])]\npub items: Vec<ObjectMeta>,",
        "#[kube(list_type = \"map\", list_map_keys = [\"name\"])]\npub items: Vec<ObjectMeta>,",
    ),
];

const TYPES: &[Example] = &[
    (
        Types,
        "pub struct WidgetSpec {\n    #[kube(list_type = \"map\", list_map_keys = [\"nmae\"])]\n    pub parts: Vec<Part>,\n}\n\n\
         #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\npub struct Part {\n    pub name: String,\n}",
        "pub struct WidgetSpec {\n    #[kube(list_type = \"map\", list_map_keys = [\"name\"])]\n    pub parts: Vec<Part>,\n}\n\n\
         #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\npub struct Part {\n    pub name: String,\n}",
    ),
    (
        Types,
        "#[crd(validation = \"size > 1 && self.`other` > 2 && slef.size < 9\")]\npub struct WidgetSpec {\n    pub size: i32,\n    pub other: i32,\n}",
        "#[crd(validation = \"self.size > 1 && self.other > 2 && self.size < 9\")]\npub struct WidgetSpec {\n    pub size: i32,\n    pub other: i32,\n}",
    ),
    (
        Types,
        "#[crd(validation = \"self.a__b > 1\")]\npub struct WidgetSpec {\n    #[serde(rename = \"a__b\")]\n    pub size: i32,\n}",
        "#[crd(validation = \"self.a__underscores__b > 1\")]\npub struct WidgetSpec {\n    #[serde(rename = \"a__b\")]\n    pub size: i32,\n}",
    ),
    (
        Types,
        "#[crd(validation = \"self.namespace == 'a' && self.__namspace__ == 'a'\")]\npub struct WidgetSpec {\n    pub namespace: String,\n}",
        "#[crd(validation = \"self.__namespace__ == 'a' && self.__namespace__ == 'a'\")]\npub struct WidgetSpec {\n    pub namespace: String,\n}",
    ),
    (
        Types,
        "pub struct WidgetSpec {\n    #[kube(cel(rule = \"self.size > 1\", message = \"no\", field_path = \"size\"))]\n    pub part: Part,\n    \
         #[kube(cel(rule = \"self.size > 1\", message = \"no\", field_path = \".spec.other.size\"))]\n    pub other: Part,\n}\n\n\
         #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\npub struct Part {\n    pub size: i32,\n}",
        "pub struct WidgetSpec {\n    #[kube(cel(rule = \"self.size > 1\", message = \"no\", field_path = \".size\"))]\n    pub part: Part,\n    \
         #[kube(cel(rule = \"self.size > 1\", message = \"no\", field_path = \".size\"))]\n    pub other: Part,\n}\n\n\
         #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\npub struct Part {\n    pub size: i32,\n}",
    ),
    (
        Types,
        "pub struct WidgetSpec {\n    pub part: Part,\n}\n\n// +kubebuilder:validation:MinProperties=1\n\
         #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\npub struct Part {\n    pub size: i32,\n}",
        "pub struct WidgetSpec {\n    pub part: Part,\n}\n\n\
         #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\n#[crd(validation(min_properties = 1))]\npub struct Part {\n    pub size: i32,\n}",
    ),
];

fn examples() -> impl Iterator<Item = &'static Example> {
    [RBAC, WEBHOOKS, KINDS, FIELDS, TYPES].into_iter().flatten()
}

fn package(place: ExamplePlace, example: &str) -> [(&'static str, String); 2] {
    let code = Code::all().next().expect("a code");
    Code { place, ..*code }.package(example)
}

fn diagnostics(files: &[(&'static str, String); 2]) -> Vec<Diagnostic> {
    let mut sources = SourceSet::default();
    for (path, text) in files {
        sources.insert(*path, text.as_str());
    }
    generate(&sources, &Options::default()).diagnostics
}

/// Like the command, applies replacements until there are none left. Returns the messages for which
/// there was a replacement.
fn fix(files: &mut [(&'static str, String); 2]) -> BTreeSet<String> {
    let mut messages = BTreeSet::new();
    for _ in 0..9 {
        let source = files[1].1.clone();
        let found = diagnostics(files).into_iter().find_map(|said| {
            let replacement = find_replacement(&said, &source)?;
            Some((said.message, replacement))
        });
        let Some((message, Replacement { range, text })) = found else {
            return messages;
        };
        files[1].1.replace_range(range, &text);
        messages.insert(message);
    }
    panic!("replacements without an end: {messages:?}\n{}", files[1].1);
}

#[test]
fn examples_are_corrected() {
    let mut unexpected = Vec::new();
    for (place, wrong, right) in examples() {
        let mut files = package(*place, wrong);
        let messages = fix(&mut files);
        let left = diagnostics(&files);
        let is_left = left.iter().any(|said| messages.contains(&said.message));
        if files != package(*place, right) || is_left || messages.is_empty() {
            let words: Vec<String> = left.iter().map(Diagnostic::text).collect();
            let shown = &files[1].1[files[1].1.find("Spec {").unwrap_or_default()..];
            unexpected.push(format!("{wrong}\nbecomes\n{shown}\n{messages:#?}\n{words:#?}"));
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n\n"));
}

fn corrected_modules() -> String {
    let mut text = CORRECTED_START.to_owned();
    for (index, (place, wrong, _)) in examples().enumerate() {
        let mut files = package(*place, wrong);
        fix(&mut files);
        let lines = files[1].1.lines().map(|line| match line.is_empty() {
            true => "\n".to_owned(),
            false => format!("    {line}\n"),
        });
        let lines: String = lines.collect();
        let place = format!("{place:?}").to_lowercase();
        text.push_str(&format!(
            "\npub mod {place}_{} {{\n{}\n}}\n",
            index + 1,
            lines.trim_end()
        ));
    }
    text
}

const CORRECTED_START: &str = "\
//! Examples of mistakes that `rbuilder manifests --fix` has corrected: see
//! `crates/generator/src/replacement/tests.rs`, which writes this file.

#![allow(dead_code, missing_docs, unreachable_pub, unused)]
";

#[test]
#[allow(clippy::disallowed_methods)] // the record is a file
fn corrected_examples_are_recorded() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/advice/corrected.rs");
    let modules = corrected_modules();
    if std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite") {
        std::fs::write(path, &modules).expect("the record can be written");
    }
    let recorded = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        recorded == modules,
        "{path} differs; SNAPSHOTS=overwrite updates it"
    );
}

#[test]
fn each_row_has_an_example() {
    let mut unused: BTreeSet<usize> = (0..ROWS.len()).collect();
    for (place, wrong, _) in examples() {
        let files = package(*place, wrong);
        for said in diagnostics(&files) {
            let row = ROWS
                .iter()
                .position(|row| row.apply(&said, &files[1].1).is_some());
            unused.retain(|unused| Some(*unused) != row);
        }
    }
    let unused: Vec<_> = unused
        .into_iter()
        .map(|row| (ROWS[row].message, ROWS[row].help))
        .collect();
    assert!(unused.is_empty(), "add examples for {unused:#?}");
}
