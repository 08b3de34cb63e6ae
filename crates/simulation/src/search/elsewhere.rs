//! Objects of the same names in two namespaces.
//!
//! An operator that is used in a single namespace may name its children badly, or in the wrong
//! namespace, without any consequences. So some histories also declare everything in the namespace
//! `elsewhere`, and delete the copies or their namespace.
//!
//! While there are copies, only the existence of objects is compared: an operator may take all
//! objects into account, e.g. allocate ports or list peers. Once the copies are gone, everything
//! must be as before.
//!
//! The copies have the same spec. What it names, such as a host or another namespace, is the
//! user's choice, so both objects may share it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::coverage;
use crate::external::split_external;
use crate::history::{ELSEWHERE, History, Step};
use crate::run::{Expected, Setting};
use crate::world::{Mask, ObjectName, Snapshot};

use super::{Base, Search};

/// The copies alone, and both ways to remove them.
const HISTORIES: usize = 3;

impl Search<'_> {
    /// Number of histories with copies.
    pub(super) fn count_copies(&self) -> usize {
        match copied(self.setting).is_empty() {
            true => 0,
            false => HISTORIES,
        }
    }

    pub(super) fn elsewhere(&mut self, base: &Base) {
        if self.count_copies() == 0 || self.is_done() {
            return;
        }
        let Some(both) = self.with_copies(base) else {
            return;
        };
        let numbers = copied(self.setting);
        let delete = numbers.iter().rev().map(|number| Step::DeleteElsewhere(*number));
        self.try_elsewhere(base, &both, delete.collect());
        self.try_elsewhere(base, &both, vec![Step::EndElsewhere]);
    }

    /// Declares everything, the copies as well, and takes the given steps before the deletion.
    fn try_elsewhere(&mut self, base: &Base, both: &Snapshot, steps: Vec<Step>) {
        let count = self.setting.declarations.len();
        let copies = copied(self.setting).into_iter().map(Step::ApplyElsewhere);
        let added: Vec<Step> = copies.chain(steps).collect();
        let mut expected = base.expected.clone();
        expected.steps.splice(count..count, vec![None; added.len()]);
        let mut history = base.history.clone();
        history.steps.splice(count..count, added);
        self.expect_elsewhere(&mut expected, base, both, &history.steps);
        self.try_kind(coverage::ELSEWHERE, &history, &expected);
    }

    /// The state with all objects and their copies, as far as they exist. `None` if the operator
    /// does nothing for the copies alone, e.g. because it is restricted to a namespace.
    pub(super) fn with_copies(&mut self, base: &Base) -> Option<Snapshot> {
        let count = self.setting.declarations.len();
        let numbers = copied(self.setting);
        let originals = base.outcome.settled.get(count - 1)?;
        let others = base.history.steps[..count].iter().enumerate();
        let others = others.filter(|(number, _)| !numbers.contains(number));
        let others = others.map(|(_, step)| step.clone());
        let alone = History {
            steps: others
                .chain(numbers.iter().map(|number| Step::ApplyElsewhere(*number)))
                .collect(),
            ..base.history.clone()
        };
        let outcome = self.run(&alone, &Expected::default());
        let works = outcome.made.iter().any(|name| !outcome.before.contains(name));
        if !works || outcome.rejected.is_some() || outcome.settled.len() < alone.steps.len() {
            return None;
        }
        let copies = outcome.settled.last()?;
        let mut both = copies.clone();
        both.extend(originals);
        let chosen = Chosen::of(self.setting);
        let misplaced = copies.objects.iter().filter(|(name, _)| {
            originals.objects.contains_key(*name)
                && !outcome.before.contains(*name)
                && !chosen.names(name)
                && belongs_to_copies(self.setting, name)
        });
        let counterparts = misplaced.filter_map(|(name, value)| {
            let mut name = ObjectName::parse(name)?;
            ELSEWHERE.clone_into(&mut name.namespace);
            Some((name.to_string(), value.clone()))
        });
        both.objects.extend(counterparts);
        Some(both)
    }

    /// Expects the states after the last copy has been declared and after the last one is gone.
    pub(super) fn expect_elsewhere(
        &self,
        expected: &mut Expected,
        base: &Base,
        both: &Snapshot,
        steps: &[Step],
    ) {
        let last = |is_wanted: fn(&Step) -> bool| steps.iter().rposition(is_wanted);
        let declared = last(|step| matches!(step, Step::ApplyElsewhere(_)));
        let gone = last(|step| matches!(step, Step::DeleteElsewhere(_) | Step::EndElsewhere));
        let is_apply = |step: &Step| matches!(step, Step::Apply(_));
        let originals = base.history.steps.iter().rposition(is_apply);
        let originals = originals.and_then(|number| base.outcome.settled.get(number));
        let states = [declared.zip(Some(both)), gone.zip(originals)];
        for (number, state) in states.into_iter().flatten() {
            expected.steps[number] = Some(state.clone());
        }
        let chosen = Chosen::of(self.setting);
        let shared = both.objects.keys().filter(|name| chosen.names(name));
        let masks = shared.flat_map(|name| [name.clone(), format!("{name} ")]);
        expected.mask.extend(masks);
    }
}

/// Returns whether the operator made an object in the namespace of the originals for one of the
/// copies. The name of the object tells.
fn belongs_to_copies(setting: &Setting, name: &str) -> bool {
    let Some(object) = ObjectName::parse(name).filter(|_| !name.contains('<')) else {
        return false;
    };
    let copied = copied(setting);
    let mut belongs = false;
    for (number, declaration) in setting.declarations.iter().enumerate() {
        let owner = &declaration.name;
        if !object.name.contains(&owner.name) {
            continue;
        }
        if !copied.contains(&number) {
            return false;
        }
        belongs |= owner.namespace == object.namespace;
    }
    belongs
}

/// Texts in the declared objects, apart from their own names and labels.
struct Chosen(BTreeSet<String>);

/// Shorter texts must be the whole name.
const SHORTEST_PART: usize = 3;

impl Chosen {
    fn of(setting: &Setting) -> Self {
        let declarations = setting.declarations.iter();
        Self::in_objects(declarations.map(|declaration| &declaration.object))
    }

    fn in_objects<'v>(objects: impl Iterator<Item = &'v Value>) -> Self {
        let mut texts = BTreeSet::new();
        for object in objects {
            add_texts(&object["metadata"]["annotations"], &mut texts);
            for (field, value) in object.as_object().into_iter().flatten() {
                if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
                    add_texts(value, &mut texts);
                }
            }
        }
        Self(texts)
    }

    /// Returns whether the user chose the namespace of an object, or a part of its name.
    fn names(&self, object: &str) -> bool {
        if let Some((_, name)) = split_external(object) {
            return self.are_in(name);
        }
        ObjectName::parse(object)
            .is_some_and(|object| self.are_in(&object.name) || self.0.contains(&object.namespace))
    }

    fn are_in(&self, name: &str) -> bool {
        let mut parts = self.0.iter().filter(|text| text.len() >= SHORTEST_PART);
        self.0.contains(name) || parts.any(|text| has_part(name, text))
    }
}

/// Returns whether a name contains a text that is not a part of a longer word.
fn has_part(name: &str, text: &str) -> bool {
    let is_end = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
    let mut found = name.match_indices(text);
    found.any(|(start, _)| {
        is_end(name[..start].chars().next_back()) && is_end(name[start + text.len()..].chars().next())
    })
}

fn add_texts(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if !text.is_empty() => drop(texts.insert(text.clone())),
        Value::Number(number) => drop(texts.insert(number.to_string())),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| add_texts(value, texts)),
        _ => {}
    }
}

/// The mask for children of copies.
pub(super) fn mask_of_copies(setting: &Setting, mask: &Mask) -> Mask {
    let declared = setting.declarations.iter();
    let namespaces: BTreeSet<&str> = declared.map(|declaration| &*declaration.name.namespace).collect();
    let inside = |namespace: &str| format!(" {namespace}/");
    let masks = namespaces.into_iter().filter(|namespace| !namespace.is_empty());
    let copies = masks.flat_map(|namespace| {
        let entries = mask
            .iter()
            .filter(move |entry| entry.contains(&inside(namespace)));
        entries.map(move |entry| entry.replacen(&inside(namespace), &inside(ELSEWHERE), 1))
    });
    copies.collect()
}

/// Indices of the declarations that have copies. Empty if the namespace of copies is used, or if the
/// operator is restricted to another one.
fn copied(setting: &Setting) -> Vec<usize> {
    let names = setting.declarations.iter().map(|declaration| &declaration.name);
    let is_used = names.clone().any(|name| name.namespace == ELSEWHERE);
    if is_used || !setting.has_copies || setting.namespace.is_some() {
        return Vec::new();
    }
    let namespaced = names.enumerate().filter(|(_, name)| !name.namespace.is_empty());
    namespaced.map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_names_and_namespaces_may_be_chosen() {
        let object = json!({
            "kind": "Site",
            "metadata": { "name": "a", "labels": { "app": "web" }, "annotations": { "zone": "example.org" } },
            "spec": { "host": "www.example.com", "targets": [{ "namespace": "backup" }], "class": "", "port": 80 },
        });
        let chosen = Chosen::in_objects(std::iter::once(&object));
        for (name, expected) in [
            ("dns: www.example.com", true),
            ("dns: www.example.com <2>", true),
            ("dns: _acme.www.example.com.", true),
            ("dns: a.example.org", true),
            ("dns: www2.example.com", false),
            ("dns: a", false),
            ("listeners: 80", true),
            ("listeners: a-80", false),
            (
                "clusterroles.rbac.authorization.k8s.io www.example.com-admin",
                true,
            ),
            ("clusterroles.rbac.authorization.k8s.io web", false),
            ("configmaps backup/a", true),
            ("configmaps default/a", false),
        ] {
            assert_eq!(chosen.names(name), expected, "{name}");
        }
    }
}
