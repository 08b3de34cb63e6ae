//! What the match conditions of a webhook see: the variables of `k8s.io/apiserver/pkg/admission/plugin/cel`.

use std::sync::Arc;

use super::types::{Decl, DeclKind, Type};
use super::{Diagnostic, Wanted, examine};

/// Checks a match condition, which sees `object`, `oldObject`, `request` and `authorizer`.
pub fn check_match_condition(expression: &str) -> Vec<Diagnostic> {
    let variables = [
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("request", request().ty()),
        ("authorizer", Type::Opaque("authorizer")),
        ("authorizer.requestResource", Type::Opaque("resourcecheck")),
    ];
    examine(expression, &variables, Wanted::Bool, None).diagnostics
}

fn simple(ty: Type) -> Arc<Decl> {
    of(DeclKind::Simple(ty))
}

/// Sizes count in rules of CRDs only.
fn of(kind: DeclKind) -> Arc<Decl> {
    Arc::new(Decl {
        kind,
        most: 0,
        least_bytes: 0,
    })
}

fn object(fields: &[(&str, Arc<Decl>)]) -> Arc<Decl> {
    let fields = fields
        .iter()
        .map(|(name, decl)| ((*name).to_owned(), Some(decl.clone())));
    of(DeclKind::Object(fields.collect()))
}

/// `AdmissionRequest` without the objects in it.
fn request() -> Arc<Decl> {
    let text = || simple(Type::String);
    let kind = |last| object(&[("group", text()), ("version", text()), (last, text())]);
    let texts = || of(DeclKind::List(text()));
    let user = object(&[
        ("username", text()),
        ("uid", text()),
        ("groups", texts()),
        ("extra", of(DeclKind::Map(texts()))),
    ]);
    object(&[
        ("kind", kind("kind")),
        ("resource", kind("resource")),
        ("subResource", text()),
        ("requestKind", kind("kind")),
        ("requestResource", kind("resource")),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", user),
        ("dryRun", simple(Type::Bool)),
        ("options", simple(Type::Dyn)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: &[&str]) {
        let diagnostics = check_match_condition(expression);
        let messages: Vec<_> = diagnostics.iter().map(|found| found.message.as_str()).collect();
        assert_eq!(messages, expected, "{expression}");
    }

    #[test]
    fn conditions() {
        check("request.operation == 'CREATE' && !request.dryRun", &[]);
        check("!('system:nodes' in request.userInfo.groups)", &[]);
        check("object.metadata.name.startsWith('a') && has(oldObject.spec)", &[]);
        check(
            "authorizer.group('apps').resource('deployments').check('get').allowed()",
            &[],
        );
        check("authorizer.requestResource.check('breakglass').allowed()", &[]);
        check("request.namespace != 'kube-system'", &[]);
        check("request.opration == 'CREATE'", &["there is no field `opration`"]);
        check(
            "object.spec.paused",
            &["the expression must give true or false, and it gives dyn"],
        );
        check("self.spec.size > 1", &["there is no variable `self`"]);
        check(
            "request.operation",
            &["the expression must give true or false, and it gives string"],
        );
    }
}
