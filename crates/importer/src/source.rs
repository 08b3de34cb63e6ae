//! Prints types.

use std::collections::{BTreeMap, BTreeSet};

use crate::classes::{Body, Class, Classes, Ty};
use crate::kind::rule_args;
use crate::print::{
    Meta, TypeText, WIDTH, csv_args, marker_args, print_attribute, print_typed, string_literal,
};
use crate::recognize::ANY_OBJECT;
use crate::structs::{FieldText, Finished, is_camel_case, is_doc_comment};
use crate::words::{VARIANT_RULES, identifier};

pub(crate) struct Printer<'a> {
    pub(crate) classes: &'a Classes<'a>,
    pub(crate) finished: &'a BTreeMap<usize, Finished>,
    pub(crate) imported: &'a BTreeSet<String>,
    pub(crate) name_of: &'a dyn Fn(usize) -> String,
}

impl Printer<'_> {
    /// Prints a type. `kind` has the attributes for the struct that defines a kind.
    pub(crate) fn print_class(&self, id: usize, kind: Option<&str>, text: &mut String) {
        let class = &self.classes.list[id];
        let Some(finished) = self.finished.get(&id) else {
            return;
        };
        *text += &print_doc(class.doc.as_deref(), 0);
        let mut derives = Vec::new();
        derives.extend(kind.map(|_| "CustomResource"));
        derives.extend(["CrdSchema", "Clone", "Debug"]);
        derives.extend(matches!(class.body, Body::Enum(_)).then_some("Eq"));
        derives.extend(finished.has_default.then_some("Default"));
        derives.extend(["PartialEq", "Serialize", "Deserialize"]);
        *text += &format!("#[derive({})]\n", derives.join(", "));
        *text += kind.unwrap_or_default();
        *text += &print_markers(&finished.markers, None, 0);
        match &class.body {
            Body::Struct(_) => self.print_struct(class, finished, text),
            Body::Enum(variants) => print_enum(&class.name, variants, text),
        }
    }

    fn print_struct(&self, class: &Class, finished: &Finished, text: &mut String) {
        let is_plain = |field: &FieldText| field.ident == *field.wire;
        let is_renamed = finished
            .fields
            .iter()
            .any(|field| !is_plain(field) && is_camel_case(field));
        if is_renamed {
            *text += "#[serde(rename_all = \"camelCase\")]\n";
        } else if finished
            .fields
            .iter()
            .any(|field| is_plain(field) && has_snake_case(&field.ident))
        {
            // Otherwise, the generator would warn about unspecified names.
            *text += "#[serde(rename_all = \"snake_case\")]\n";
        }
        if finished.fields.is_empty() && !finished.keeps_unknown {
            *text += &format!("pub struct {} {{}}\n", class.name);
            return;
        }
        let head = format!("pub struct {}", class.name);
        let brace = if head.len() + 2 > WIDTH { "\n{" } else { " {" };
        *text += &format!("{head}{brace}\n");
        for field in &finished.fields {
            let is_named = if is_renamed {
                is_camel_case(field)
            } else {
                is_plain(field)
            };
            self.print_field(field, !is_named, text);
        }
        if finished.keeps_unknown {
            let mut name = "other".to_owned();
            while finished.fields.iter().any(|field| field.ident == name) {
                name.push('_');
            }
            *text += "    // Fields that the schema does not name.\n    #[serde(flatten)]\n";
            *text += &format!("    pub {name}: BTreeMap<String, serde_json::Value>,\n");
        }
        *text += "}\n";
    }

    fn print_field(&self, field: &FieldText, is_renamed: bool, text: &mut String) {
        *text += &print_doc(field.doc.as_deref(), 4);
        *text += &print_markers(&field.markers, Some(&field.ty), 4);
        if let Some(descriptor) = &field.markers.descriptor {
            *text += &match csv_args(descriptor) {
                args if args.is_empty() => "    #[csv]\n".to_owned(),
                args => print_attribute("csv", args, 4),
            };
        }
        let mut args = Vec::new();
        if is_renamed {
            args.push(Meta::assign("rename", string_literal(&field.wire)));
        }
        if field.is_optional {
            args.push(Meta::word("default"));
            args.push(Meta::assign("skip_serializing_if", "\"Option::is_none\""));
        }
        if !args.is_empty() {
            *text += &print_attribute("serde", args, 4);
        }
        let ty = self.type_text(&field.ty);
        let ty = if field.is_option {
            TypeText::of("Option", vec![ty])
        } else {
            ty
        };
        *text += &print_typed(&format!("pub {}", identifier(&field.ident)), &ty);
    }

    fn type_text(&self, ty: &Ty) -> TypeText {
        let map = |values| TypeText::of("BTreeMap", vec![TypeText::of("String", Vec::new()), values]);
        match ty {
            Ty::Leaf(ANY_OBJECT) => map(TypeText::of("serde_json::Value", Vec::new())),
            Ty::Leaf(path) => TypeText::of(&self.short(path), Vec::new()),
            Ty::Kubernetes(path, _) => TypeText::of(&self.short(path), Vec::new()),
            Ty::Class(id) => TypeText::of(&(self.name_of)(*id), Vec::new()),
            Ty::List(items) => TypeText::of("Vec", vec![self.type_text(items)]),
            Ty::Map(values) => map(self.type_text(values)),
            Ty::Nullable(inner) => TypeText::of("Option", vec![self.type_text(inner)]),
        }
    }

    fn short(&self, path: &str) -> String {
        let is_imported = self.imported.contains(path);
        let name = path.rsplit("::").next().filter(|_| is_imported);
        name.unwrap_or(path).to_owned()
    }
}

pub(crate) fn find_imports<'c>(
    classes: impl Iterator<Item = &'c Class>,
    taken: &[String],
) -> BTreeSet<String> {
    const OF_STD: &[&str] = &[
        "Option",
        "String",
        "Vec",
        "BTreeMap",
        "CrdSchema",
        "CustomResource",
    ];
    let mut names = BTreeSet::new();
    let mut paths = BTreeSet::new();
    let members = classes.flat_map(|class| match &class.body {
        Body::Struct(members) => members.as_slice(),
        Body::Enum(_) => &[],
    });
    for path in members.filter_map(|member| member.ty.foreign_path()) {
        let name = path.rsplit("::").next().unwrap_or_default();
        let is_free = !taken.iter().any(|other| other == name) && !OF_STD.contains(&name);
        if is_free && (paths.contains(path) || names.insert(name.to_owned())) {
            paths.insert(path.to_owned());
        }
    }
    paths
}

/// Prints the imports from std and other crates. `has_kind` is set for a file that defines a kind.
pub(crate) fn print_uses(has_map: bool, imported: &BTreeSet<String>, has_kind: bool) -> String {
    let mut text = String::new();
    if has_map {
        text += "use std::collections::BTreeMap;\n\n";
    }
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (module, name) in imported.iter().filter_map(|path| path.rsplit_once("::")) {
        modules.entry(module).or_default().push(name);
    }
    for (module, names) in modules {
        text += &print_use("", module, &names);
    }
    if has_kind {
        text += "use kube::CustomResource;\n";
    }
    text + "use rbuilder::CrdSchema;\nuse serde::{Deserialize, Serialize};\n"
}

/// Prints the imports from modules `shared` as a separate block. `names` contains pairs of module
/// and name.
pub(crate) fn print_shared_uses<'n>(
    visibility: &str,
    names: impl Iterator<Item = (&'n str, &'n str)>,
) -> String {
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (module, name) in names {
        modules.entry(module).or_default().push(name);
    }
    let mut text = String::new();
    // In reverse, because rustfmt puts `super::super` before `super::shared`.
    for (module, mut names) in modules.into_iter().rev() {
        names.sort_by_key(|name| order(name));
        text += if text.is_empty() { "\n" } else { "" };
        text += &print_use(visibility, module, &names);
    }
    text
}

pub(crate) fn has_map(finished: &Finished) -> bool {
    finished.keeps_unknown || finished.fields.iter().any(|field| field.ty.has_map())
}

/// rustfmt's sort key for names: numbers are compared by value.
fn order(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let (mut word, mut number) = (String::new(), None);
    for letter in name.chars() {
        match (letter.to_digit(10), number) {
            (Some(digit), _) => {
                let value: u64 = number.unwrap_or(0);
                number = Some(value.saturating_mul(10).saturating_add(digit.into()));
            }
            (None, Some(value)) => {
                parts.push((std::mem::take(&mut word), value));
                number = None;
                word.push(letter);
            }
            (None, None) => word.push(letter),
        }
    }
    parts.push((word, number.unwrap_or(0)));
    parts
}

/// Prints `use module::{A, B};`, broken into lines as by rustfmt.
fn print_use(visibility: &str, module: &str, names: &[&str]) -> String {
    if let [name] = names {
        return format!("{visibility}use {module}::{name};\n");
    }
    let line = format!("{visibility}use {module}::{{{}}};\n", names.join(", "));
    if line.chars().count() < WIDTH {
        return line;
    }
    let mut text = format!("{visibility}use {module}::{{\n   ");
    let (mut width, mut is_first_line) = (3, true);
    for (at, name) in names.iter().enumerate() {
        // rustfmt ignores the comma after the last name on a single line.
        let is_only_line = is_first_line && at + 1 == names.len();
        if width + name.len() + 2 >= WIDTH + usize::from(is_only_line) {
            text += "\n   ";
            is_first_line = false;
            width = 3;
        }
        text += &format!(" {name},");
        width += name.len() + 2;
    }
    text + "\n};\n"
}

fn print_doc(text: Option<&str>, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let lines = text
        .filter(|text| is_doc_comment(text))
        .into_iter()
        .flat_map(|text| text.split('\n'));
    lines
        .map(|line| match line {
            "" => format!("{margin}///\n"),
            line => format!("{margin}/// {line}\n"),
        })
        .collect()
}

fn print_markers(markers: &rbuilder_schema::Markers, ty: Option<&Ty>, indent: usize) -> String {
    let args = marker_args(markers, ty);
    // On a kind, `#[kube(…)]` only takes kube's own keys.
    let name = if indent > 0 { "kube" } else { "crd" };
    let mut text = String::new();
    if !args.is_empty() {
        text += &print_attribute(name, args, indent);
    }
    for rule in rule_args(&markers.cel) {
        text += &print_attribute(name, vec![rule], indent);
    }
    text
}

fn has_snake_case(name: &str) -> bool {
    name.trim_matches('_').contains('_')
}

fn print_enum(name: &str, variants: &[(String, String)], text: &mut String) {
    let is_plain = variants.iter().all(|(ident, wire)| ident == wire);
    let rule = VARIANT_RULES
        .iter()
        .find(|(_, rule)| !is_plain && variants.iter().all(|(ident, wire)| rule(ident) == *wire));
    if let Some((rule, _)) = rule {
        *text += &format!("#[serde(rename_all = \"{rule}\")]\n");
    }
    *text += &format!("pub enum {name} {{\n");
    for (ident, wire) in variants {
        if rule.is_none() && ident != wire {
            *text += &print_attribute("serde", vec![Meta::assign("rename", string_literal(wire))], 4);
        }
        *text += &format!("    {ident},\n");
    }
    *text += "}\n";
}
