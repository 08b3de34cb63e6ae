//! Prints a version of a kind as a source file.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_schema::{CsvKind, CsvMarkers};

use crate::Diagnostic;
use crate::classes::Classes;
use crate::definition::{Definition, Version};
use crate::descriptors::place_descriptors;
use crate::kind::{Root, crd_args, kube_args};
use crate::lints::allow_doc_lints;
use crate::naming::name_classes;
use crate::print::{kind_csv_args, print_attribute};
use crate::recognize::KubernetesTypes;
use crate::source::{Printer, find_imports, has_map, print_shared_uses, print_uses};
use crate::structs::{Finished, finish};
use crate::words::{object_name, type_stem};

/// The Rust source of a version of a kind.
///
/// [`Module::new`] names the types. Then types that other files also contain can be shared, and
/// finally all types are finished.
pub(crate) struct Module<'a> {
    definition: &'a Definition,
    version: &'a Version,
    root: Root,
    pub(crate) classes: Classes<'a>,
    /// By type index.
    pub(crate) finished: BTreeMap<usize, Finished>,
    status: Option<usize>,
    /// Types defined in another file, by index, with their module path.
    shared: BTreeMap<usize, String>,
    /// `#[csv(…)]` on the kind.
    csv: CsvKind,
}

impl<'a> Module<'a> {
    pub(crate) fn new(
        definition: &'a Definition,
        version: &'a Version,
        kubernetes: &'a KubernetesTypes,
    ) -> Module<'a> {
        let kind = &type_stem(&definition.names.kind);
        let root = Root::new(version);
        let mut classes = Classes::new(kubernetes);
        let end = if root.no_spec { "Fields" } else { "Spec" };
        classes.add_root(&root.spec, format!("{kind}{end}"), vec![kind.clone()]);
        let status = root.status.as_ref().map(|status| {
            let path = vec![kind.clone(), "Status".to_owned()];
            classes.add_root(status, format!("{kind}Status"), path)
        });
        classes.forget_shapes();
        let mut module = Module {
            definition,
            version,
            root,
            classes,
            finished: BTreeMap::new(),
            status,
            shared: BTreeMap::new(),
            csv: CsvKind::default(),
        };
        let roots = module.own_names();
        let imported = find_imports(module.classes.list.iter(), &roots);
        let of_imports = imported.iter().filter_map(|path| path.rsplit("::").next());
        let taken: Vec<String> = of_imports.map(str::to_owned).chain(roots).collect();
        name_classes(&mut module.classes, &taken);
        module
    }

    fn own_names(&self) -> Vec<String> {
        let kind = &type_stem(&self.definition.names.kind);
        let roots = self.classes.list.iter().filter(|class| class.is_root);
        let names = roots.map(|class| class.name.clone());
        names
            .chain([object_name(kind), format!("{kind}Status")])
            .collect()
    }

    pub(crate) fn share(&mut self, id: usize, path: &str) {
        self.shared.insert(id, path.to_owned());
    }

    pub(crate) fn finish(&mut self) {
        self.classes.describe();
        self.finished = finish(&self.classes);
    }

    /// Adds `#[csv(…)]` to the kind and its fields. Returns descriptors without a field, as `spec`
    /// or `status` and the path.
    pub(crate) fn describe(&mut self, csv: &CsvMarkers) -> BTreeSet<(&'static str, String)> {
        self.csv = csv.of_kind.clone();
        // Without a `Spec` struct, `spec` may be a field in the struct of the kind.
        let prefix = if self.root.no_spec { "spec." } else { "" };
        let parts = ((Some(0), prefix), (self.status, ""));
        place_descriptors(csv, parts, &self.classes, &mut self.finished)
    }

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

    pub(crate) fn print(&self) -> String {
        let names = &self.definition.names;
        let head = format!(
            "//! The {} API in version {} of the {} group.\n\n",
            names.kind, self.version.name, self.definition.group
        );
        let own = || (0..self.classes.list.len()).filter(|id| !self.shared.contains_key(id));
        let has_map = own().filter_map(|id| self.finished.get(&id)).any(has_map);
        let imported = find_imports(own().map(|id| &self.classes.list[id]), &self.own_names());
        let mut text = print_uses(has_map, &imported, true);
        // Re-export shared types, so that the path of a type doesn't depend on whether it is
        // shared.
        let shared = self.shared.iter();
        let shared = shared.map(|(id, path)| (path.as_str(), self.classes.list[*id].name.as_str()));
        text += &print_shared_uses("pub ", shared);
        let printer = Printer {
            classes: &self.classes,
            finished: &self.finished,
            imported: &imported,
            name_of: &|id| self.classes.list[id].name.clone(),
        };
        let attributes = self.kind_attributes();
        for id in own() {
            text.push('\n');
            printer.print_class(id, (id == 0).then_some(&attributes), &mut text);
        }
        head + &allow_doc_lints(&text) + &text
    }

    fn kind_attributes(&self) -> String {
        let status = self.status.map(|status| self.classes.list[status].name.as_str());
        let args = kube_args(self.definition, self.version, &self.root, status);
        let mut text = print_attribute("kube", args, 0);
        for arg in crd_args(self.definition, self.version, &self.root) {
            text += &print_attribute("crd", vec![arg], 0);
        }
        for args in kind_csv_args(&self.csv) {
            text += &print_attribute("csv", args, 0);
        }
        text
    }
}
