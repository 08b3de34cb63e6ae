//! One version of a kind to the text of its file.

use std::collections::{BTreeMap, BTreeSet};

use crate::Diagnostic;
use crate::classes::{Body, Class, Classes, Ty};
use crate::definition::{Definition, Version};
use crate::kind::{Root, crd_args, kube_args, rule_args};
use crate::naming::name_classes;
use crate::print::{Meta, TypeText, WIDTH, marker_args, print_attribute, print_typed, string_literal};
use crate::recognize::{ANY_OBJECT, KubernetesTypes};
use crate::structs::{FieldText, Finished, finish, is_camel_case, is_doc_comment};
use crate::words::{VARIANT_RULES, identifier};

/// A version of a kind as Rust: its types, named and finished.
pub(crate) struct Module<'a> {
    definition: &'a Definition,
    version: &'a Version,
    root: Root,
    classes: Classes<'a>,
    finished: BTreeMap<usize, Finished>,
    status: Option<usize>,
    /// Types of k8s-openapi that are imported; others are written with their paths.
    imported: BTreeSet<String>,
}

impl<'a> Module<'a> {
    pub(crate) fn new(
        definition: &'a Definition,
        version: &'a Version,
        kubernetes: &'a KubernetesTypes,
    ) -> Module<'a> {
        let kind = &definition.names.kind;
        let root = Root::new(version);
        let mut classes = Classes::new(kubernetes);
        let end = if root.no_spec { "Fields" } else { "Spec" };
        classes.add_root(&root.spec, format!("{kind}{end}"), vec![kind.clone()]);
        let status = root.status.as_ref().map(|status| {
            let path = vec![kind.clone(), "Status".to_owned()];
            classes.add_root(status, format!("{kind}Status"), path)
        });
        let roots = [kind.clone(), format!("{kind}{end}"), format!("{kind}Status")];
        let imported = imports(&classes, &roots);
        let of_imports = imported.iter().filter_map(|path| path.rsplit("::").next());
        let taken: Vec<String> = of_imports.map(str::to_owned).chain(roots).collect();
        classes.describe();
        name_classes(&mut classes, &taken);
        let finished = finish(&classes);
        Module {
            definition,
            version,
            root,
            classes,
            finished,
            status,
            imported,
        }
    }

    /// Returns a warning for each thing that could not be kept.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Diagnostic> {
        let Definition { group, names, .. } = self.definition;
        let place = format!("{}.{group}, version {}", names.plural, self.version.name);
        self.finished.iter().flat_map(move |(id, finished)| {
            let name = self.classes.list[*id].name.clone();
            let place = place.clone();
            finished.lost.iter().map(move |(field, reason)| {
                let at = match field.as_str() {
                    "" => format!("{place}: {name}"),
                    field => format!("{place}: {name}.{field}"),
                };
                Diagnostic::warning(at, reason.as_str())
            })
        })
    }

    /// The text of the file.
    pub(crate) fn print(&self) -> String {
        let names = &self.definition.names;
        let mut text = format!(
            "//! The {} API in version {} of the {} group.\n\n",
            names.kind, self.version.name, self.definition.group
        );
        text += &self.print_uses();
        for (id, class) in self.classes.list.iter().enumerate() {
            text.push('\n');
            self.print_class(id, class, &mut text);
        }
        text
    }

    fn fields(&self) -> impl Iterator<Item = &FieldText> {
        self.finished.values().flat_map(|finished| &finished.fields)
    }

    fn print_uses(&self) -> String {
        let mut text = String::new();
        let has_map = self.fields().any(|field| field.ty.has_map());
        if has_map || self.finished.values().any(|finished| finished.keeps_unknown) {
            text += "use std::collections::BTreeMap;\n\n";
        }
        let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in &self.imported {
            if let Some((module, name)) = path.rsplit_once("::") {
                modules.entry(module).or_default().push(name);
            }
        }
        for (module, names) in modules {
            text += &print_use(module, &names);
        }
        text + "use kube::CustomResource;\nuse rbuilder::CrdSchema;\nuse serde::{Deserialize, Serialize};\n"
    }

    fn print_class(&self, id: usize, class: &Class, text: &mut String) {
        let Some(finished) = self.finished.get(&id) else {
            return;
        };
        let is_kind = id == 0;
        *text += &print_doc(class.doc.as_deref(), 0);
        let mut derives = Vec::new();
        derives.extend(is_kind.then_some("CustomResource"));
        derives.extend(["CrdSchema", "Clone", "Debug"]);
        derives.extend(matches!(class.body, Body::Enum(_)).then_some("Eq"));
        derives.extend(finished.has_default.then_some("Default"));
        derives.extend(["PartialEq", "Serialize", "Deserialize"]);
        *text += &format!("#[derive({})]\n", derives.join(", "));
        if is_kind {
            let status = self.status.map(|status| self.classes.list[status].name.as_str());
            let args = kube_args(self.definition, self.version, &self.root, status);
            *text += &print_attribute("kube", args, 0);
            for arg in crd_args(self.definition, self.version, &self.root) {
                *text += &print_attribute("crd", vec![arg], 0);
            }
        }
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
            Ty::Class(id) => TypeText::of(&self.classes.list[*id].name, Vec::new()),
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

/// The types of k8s-openapi that can be imported under their own names.
fn imports(classes: &Classes<'_>, taken: &[String]) -> BTreeSet<String> {
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
    let members = classes.list.iter().flat_map(|class| match &class.body {
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

/// `use module::{A, B};`, over as many lines as rustfmt takes.
fn print_use(module: &str, names: &[&str]) -> String {
    if let [name] = names {
        return format!("use {module}::{name};\n");
    }
    let line = format!("use {module}::{{{}}};\n", names.join(", "));
    if line.chars().count() < WIDTH {
        return line;
    }
    let mut text = format!("use {module}::{{\n   ");
    let mut width = 3;
    for (at, name) in names.iter().enumerate() {
        // Of the last name the comma is not counted.
        let is_last = at + 1 == names.len();
        if width + name.len() + 2 >= WIDTH + usize::from(is_last) {
            text += "\n   ";
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
    let mut text = String::new();
    if !args.is_empty() {
        text += &print_attribute("crd", args, indent);
    }
    for rule in rule_args(&markers.cel) {
        text += &print_attribute("crd", vec![rule], indent);
    }
    text
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
