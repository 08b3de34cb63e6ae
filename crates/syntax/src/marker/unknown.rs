//! Help for unknown names, which may be misspelled or misplaced.

use rbuilder_diagnostic::suggest::{find_keyword, list_names};
use rbuilder_schema::Key;

use super::{Place, is_marker, markers};
use crate::custom_resource::{CRD_KEYS, KUBE_KEYS};

/// The location of an unknown name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// `#[kube(…)]` on a kind, with kube's own keys.
    KindKeys {
        /// True if the kind may also have `#[crd(…)]`, which schemars' derive rejects.
        takes_markers: bool,
    },
    /// `#[crd(…)]` on a kind, with markers and the keys that kube lacks.
    KindMarkers,
    /// Either attribute on any other item.
    Elsewhere(Place),
}

impl Owner {
    fn names(self) -> Vec<&'static str> {
        match self {
            Owner::KindKeys { .. } => KUBE_KEYS.iter().map(|key| key.name).collect(),
            Owner::KindMarkers => {
                let keys = CRD_KEYS.iter().map(|key| key.name);
                markers_at(Place::Type).chain(keys).collect()
            }
            Owner::Elsewhere(place) => markers_at(place).collect(),
        }
    }
}

fn markers_at(place: Place) -> impl Iterator<Item = &'static str> {
    markers()
        .filter(move |marker| marker.places.contains(&place))
        .map(|marker| marker.name)
}

pub(crate) fn describe_unknown(name: &str, owner: Owner) -> String {
    if let Some(help) = find_elsewhere(name, owner) {
        return help;
    }
    let forms = near_forms(owner);
    let near = find_keyword(name, forms.iter().map(|(name, _)| *name));
    match forms.into_iter().find(|(name, _)| Some(*name) == near) {
        Some((_, form)) => format!("did you mean `{form}`?"),
        None => format!("use one of: {}", list_names(owner.names())),
    }
}

fn find_elsewhere(name: &str, owner: Owner) -> Option<String> {
    let is_key = |keys: &[crate::ContainerKey]| keys.iter().any(|key| key.name == name);
    match owner {
        // The name of this key before kube 1.0.
        Owner::KindKeys { .. } if name == "struct" => return Some("use `root = \"…\"`".to_owned()),
        // The name in kubebuilder's marker.
        Owner::KindKeys { .. } if name == "scope" => {
            return Some("write `namespaced`, or leave it out for a cluster-scoped kind".to_owned());
        }
        // The attribute would not compile, so don't suggest a similar marker or key.
        Owner::KindKeys { takes_markers: false } => {
            let is_ours = is_marker(name) || is_key(CRD_KEYS);
            return is_ours.then(|| format!("use one of: {}", list_names(owner.names())));
        }
        Owner::KindKeys { .. } if is_marker(name) => {
            return Some(format!(
                "write `#[crd({name}…)]`: `#[kube(…)]` on a kind accepts no markers"
            ));
        }
        Owner::KindKeys { .. } if is_key(CRD_KEYS) => {
            return Some(format!("write `#[crd({name}…)]`: kube does not know this key"));
        }
        _ => {}
    }
    // Users of other tools tend to forget `validation(…)` around constraints.
    if Key::of_argument(name).is_some() {
        return Some(format!("write `{}`", constraint_form(name, owner)));
    }
    match owner {
        Owner::KindMarkers if is_key(KUBE_KEYS) => {
            Some(format!("write `#[kube({name}…)]`: it is one of kube's own keys"))
        }
        Owner::Elsewhere(_) if is_key(CRD_KEYS) => Some(on_kind("crd", name)),
        Owner::Elsewhere(_) if is_key(KUBE_KEYS) => Some(on_kind("kube", name)),
        _ => None,
    }
}

fn on_kind(attribute: &str, name: &str) -> String {
    format!("write `#[{attribute}({name}…)]` on the type that derives `CustomResource`")
}

/// Returns all names that could be meant, and how to write them. Names that are valid here come
/// first.
fn near_forms(owner: Owner) -> Vec<(&'static str, String)> {
    let here = owner.names().into_iter().map(|name| (name, name.to_owned()));
    if owner == (Owner::KindKeys { takes_markers: false }) {
        return here.collect();
    }
    let constraints = Key::arguments().map(|key| key.argument);
    let wrapped = constraints.map(|name| (name, constraint_form(name, owner)));
    let (attribute, others) = match owner {
        Owner::KindKeys { .. } => ("crd", Owner::KindMarkers.names()),
        Owner::KindMarkers => ("kube", KUBE_KEYS.iter().map(|key| key.name).collect()),
        Owner::Elsewhere(_) => ("", Vec::new()),
    };
    let others = others
        .into_iter()
        .map(|name| (name, format!("#[{attribute}({name}…)]")));
    // Only the derive reads `crate`, so don't list it, but do correct a misspelling.
    let is_type = matches!(owner, Owner::KindMarkers | Owner::Elsewhere(Place::Type));
    let derive_key = is_type.then(|| ("crate", "crate".to_owned()));
    here.chain(wrapped).chain(derive_key).chain(others).collect()
}

fn constraint_form(name: &str, owner: Owner) -> String {
    match owner {
        Owner::KindKeys { .. } => format!("#[crd(validation({name} = …))]"),
        Owner::KindMarkers | Owner::Elsewhere(_) => format!("validation({name} = …)"),
    }
}
