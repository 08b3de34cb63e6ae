//! stackable-versioned's `#[versioned(crd(…))]`, which its macro replaces with `#[kube(…)]`.

use rbuilder_reader::Attribute;
use rbuilder_reader::token::Ident;

use super::{KUBE_KEYS, Parts, report_unknown_key};
use crate::Session;
use crate::args::{self, Arg, ReadArg as _};
use crate::marker::Owner;
use crate::table::{Draft, find_row, read_args};

/// Keys about conversions, which kube does not have.
const OTHER_KEYS: [&str; 2] = ["skip", "options"];

/// Parses the keys of a kind in `crd(…)`, or in `k8s(…)` of earlier releases. The version comes from
/// the module. `kind` defaults to the name of the struct without `Spec`.
pub(super) fn read_versioned(
    attr: &Attribute<'_>,
    ident: Ident<'_>,
    owner: Owner,
    draft: &mut Draft<Parts>,
    session: &mut Session,
) {
    let args = args::of_attribute(attr, session);
    for arg in args.iter().filter(|arg| matches!(arg.name, "crd" | "k8s")) {
        let Some(keys) = arg.list(session) else { continue };
        let report_unknown = |arg: &Arg<'_>, draft: &mut Draft<Parts>, session: &mut Session| {
            report_unknown_key(arg, owner, session);
            draft.has_unknown = true;
        };
        for key in keys.iter().filter(|key| !OTHER_KEYS.contains(&key.name)) {
            let key = std::slice::from_ref(key);
            read_args(key, draft, find_row(KUBE_KEYS), report_unknown, session);
        }
        let Parts { version, kind, .. } = &mut draft.value;
        *version = session
            .module_version
            .as_ref()
            .map(|version| version.name().to_owned());
        kind.get_or_insert_with(|| ident.text.strip_suffix("Spec").unwrap_or(ident.text).to_owned());
    }
}
