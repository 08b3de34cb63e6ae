//! The match conditions of webhooks. Their variables are those of
//! `k8s.io/apiserver/pkg/admission/plugin/cel`.

use std::sync::Arc;

use super::types::{Decl, DeclKind, Type};
use super::{Diagnostic, ResultType, examine_expression};

/// Checks a match condition. Its variables are `object`, `oldObject`, `request` and `authorizer`.
pub fn check_match_condition(expression: &str) -> Vec<Diagnostic> {
    let variables = [
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("request", request().ty()),
        ("authorizer", Type::Opaque("authorizer")),
        ("authorizer.requestResource", Type::Opaque("resourcecheck")),
    ];
    examine_expression(expression, &variables, ResultType::Bool, None).diagnostics
}

fn simple(ty: Type) -> Arc<Decl> {
    declare(DeclKind::Simple(ty))
}

/// Returns a declaration without sizes, since the cost of match conditions is not estimated.
fn declare(kind: DeclKind) -> Arc<Decl> {
    Arc::new(Decl {
        kind,
        max_size: 0,
        min_bytes: 0,
    })
}

fn object(fields: &[(&str, Arc<Decl>)]) -> Arc<Decl> {
    let fields = fields
        .iter()
        .map(|(name, decl)| ((*name).to_owned(), Some(decl.clone())));
    declare(DeclKind::Object(fields.collect()))
}

/// Declares `AdmissionRequest` without its objects.
fn request() -> Arc<Decl> {
    let string = || simple(Type::String);
    let kind = |last| object(&[("group", string()), ("version", string()), (last, string())]);
    let strings = || declare(DeclKind::List(string()));
    let user = object(&[
        ("username", string()),
        ("uid", string()),
        ("groups", strings()),
        ("extra", declare(DeclKind::Map(strings()))),
    ]);
    object(&[
        ("kind", kind("kind")),
        ("resource", kind("resource")),
        ("subResource", string()),
        ("requestKind", kind("kind")),
        ("requestResource", kind("resource")),
        ("requestSubResource", string()),
        ("name", string()),
        ("namespace", string()),
        ("operation", string()),
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
    fn checks_match_conditions() {
        check("request.operation == 'CREATE' && !request.dryRun", &[]);
        check("!('system:nodes' in request.userInfo.groups)", &[]);
        check("object.metadata.name.startsWith('a') && has(oldObject.spec)", &[]);
        check(
            "authorizer.group('apps').resource('deployments').check('get').allowed()",
            &[],
        );
        check("authorizer.requestResource.check('breakglass').allowed()", &[]);
        check("request.namespace != 'kube-system'", &[]);
        check("request.opration == 'CREATE'", &["unknown field `opration`"]);
        check(
            "object.spec.paused",
            &["the expression must evaluate to bool, found dyn"],
        );
        check("self.spec.size > 1", &["unknown variable `self`"]);
        check(
            "request.operation",
            &["the expression must evaluate to bool, found string"],
        );
    }
}
