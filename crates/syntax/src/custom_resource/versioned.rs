//! stackable-versioned's `#[versioned(crd(…))]`, which its macro replaces with `#[kube(…)]`.

use rbuilder_reader::token::Ident;
use rbuilder_reader::{Attribute, TypeKind, TypeRef};

use super::{KUBE_KEYS, Parts, report_unknown_key};
use crate::Session;
use crate::args::{self, Arg, ReadArg as _};
use crate::marker::Owner;
use crate::model::TrackedStatus;
use crate::table::{Draft, find_row, read_args};

/// Keys about conversion, which kube does not have.
const OTHER_KEYS: [&str; 2] = ["skip", "options"];

/// Parses the keys of a kind in `crd(…)`, or in `k8s(…)` in earlier releases. The version comes
/// from the module, and `kind` defaults to the name of the struct without `Spec`.
pub(super) fn read_versioned(
    attr: &Attribute<'_>,
    ident: Ident<'_>,
    owner: Owner,
    draft: &mut Draft<Parts>,
    session: &mut Session,
) {
    let args = args::check_args(attr, session);
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
        kind.get_or_insert_with(|| kind_of(ident).to_owned());
        track_status(args, ident, draft, session);
    }
}

fn kind_of<'a>(ident: Ident<'a>) -> &'a str {
    ident.text.strip_suffix("Spec").unwrap_or(ident.text)
}

fn track_status(args: &[Arg<'_>], ident: Ident<'_>, draft: &mut Draft<Parts>, session: &Session) {
    let conversions = session.module_version.as_ref().map(|version| version.conversions);
    let Some(conversions) = conversions.filter(|conversions| conversions.are_tracked) else {
        return;
    };
    let mut skipped = conversions.skipped;
    args.iter()
        .filter(|arg| arg.name == "skip")
        .for_each(|arg| skipped.add(arg));
    if skipped.merged_crd && skipped.try_convert {
        return;
    }
    let name = format!("{}StatusWithChangedValues", kind_of(ident));
    let made = &mut draft.value.made;
    let span = made.status.as_ref().map_or(ident.span, |status| status.span);
    // The macro wraps the status in a struct, which becomes the actual status type.
    let generated = TypeRef {
        kind: TypeKind::Path(vec![name.clone()], Vec::new()),
        span,
    };
    let original = made.status.replace(generated);
    made.tracked_status = (!skipped.try_convert).then_some(TrackedStatus { name, original, span });
}
