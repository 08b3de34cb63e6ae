//! Webhook match conditions, with the same variables as in
//! `k8s.io/apiserver/pkg/admission/plugin/cel`.

use std::sync::Arc;

use serde_json::Value;

use super::evaluate::{self, Output, Plan, Stop};
use super::parser::parse_expression;
use super::types::{Decl, DeclKind, Type};
use super::{Diagnostic, ResultType, check, examine_expression};

/// Checks a match condition. Available variables: `object`, `oldObject`, `request` and
/// `authorizer`.
pub fn check_match_condition(expression: &str) -> Vec<Diagnostic> {
    examine_expression(expression, &variables(), ResultType::Bool, None).diagnostics
}

fn variables() -> [(&'static str, Type); 5] {
    [
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("request", request().ty()),
        ("authorizer", Type::Opaque("authorizer")),
        ("authorizer.requestResource", Type::Opaque("resourcecheck")),
    ]
}

/// A webhook's compiled match condition.
///
/// ```
/// use rbuilder_cel::MatchCondition;
/// use serde_json::{Value, json};
///
/// let condition = MatchCondition::compile("object.spec.size > 2 || request.dryRun").unwrap();
/// let object = json!({ "spec": { "size": 3 } });
/// let request = json!({ "operation": "CREATE", "dryRun": false });
/// assert_eq!(condition.evaluate(&object, &Value::Null, &request), Ok(true));
/// let failed = condition.evaluate(&json!({}), &Value::Null, &request);
/// assert_eq!(failed.unwrap_err(), "no such key: spec");
/// ```
#[derive(Debug)]
pub struct MatchCondition {
    plan: Plan,
}

impl MatchCondition {
    /// Compiles an expression with the variables of [`check_match_condition`].
    ///
    /// # Errors
    ///
    /// Returns the first error in the expression.
    pub fn compile(expression: &str) -> Result<Self, String> {
        let mut parsed = parse_expression(expression).map_err(|error| error.message)?;
        let checked = check::check_expression(&mut parsed.root, parsed.nodes, &variables());
        if let Some(error) = checked.diagnostics.iter().find(|found| found.is_error()) {
            return Err(error.message.clone());
        }
        if checked.result != ResultType::Bool.as_type() {
            return Err("must evaluate to bool".to_owned());
        }
        let plan = Plan::new(parsed.root, checked).map_err(|error| error.text)?;
        Ok(Self { plan })
    }

    /// Evaluates the condition on an object, its old version, and a request that contains neither.
    /// Pass `null` for absent objects.
    ///
    /// # Errors
    ///
    /// Returns the API server's message if the evaluation fails. Any use of the authorizer fails,
    /// as there is none.
    pub fn evaluate(&self, object: &Value, old: &Value, request: &Value) -> Result<bool, String> {
        let variables = [("object", object), ("oldObject", old), ("request", request)];
        match evaluate::run_with_variables(&self.plan, &variables) {
            Ok(Output::Bool(holds)) => Ok(holds),
            Ok(_) => Err("the result is not a bool".to_owned()),
            Err(Stop::Error(text)) => Err(text),
            Err(Stop::OverLimit) => Err("operation cancelled: actual cost limit exceeded".to_owned()),
            Err(Stop::Unsupported(what)) => Err(format!("{what} is not supported")),
        }
    }
}

fn simple(ty: Type) -> Arc<Decl> {
    declare(DeclKind::Simple(ty))
}

/// Sizes are irrelevant, because match conditions have no cost estimate.
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

/// `AdmissionRequest` without its objects, which are separate variables.
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
    fn evaluates_match_conditions() {
        let object = serde_json::json!({
            "metadata": { "name": "a", "labels": { "app": "web" } },
            "spec": { "size": 3, "ratio": 0.5, "ports": [80, 443], "none": null },
        });
        let request = serde_json::json!({
            "operation": "UPDATE", "dryRun": false, "namespace": "default",
            "userInfo": { "username": "admin", "groups": ["system:masters"] },
        });
        let check = |expression: &str, expected: Result<bool, &str>| {
            let condition = MatchCondition::compile(expression).unwrap();
            let found = condition.evaluate(&object, &Value::Null, &request);
            assert_eq!(found, expected.map_err(str::to_owned), "{expression}");
        };
        check("object.spec.size == 3 && object.spec.ratio < 1.0", Ok(true));
        check("object.spec.ports.exists(port, port == 443)", Ok(true));
        check("object.metadata.?labels.app.orValue('') == 'web'", Ok(true));
        check("oldObject == null && object != null", Ok(true));
        check("has(object.spec.none) && object.spec.none == null", Ok(true));
        check("has(object.spec.other)", Ok(false));
        check("'system:masters' in request.userInfo.groups", Ok(true));
        check("request.operation in ['CREATE', 'DELETE']", Ok(false));
        check("object.spec.other > 1", Err("no such key: other"));
        check("object.spec.size.startsWith('a')", Err("no such overload"));
        check(
            "authorizer.requestResource.check('get').allowed()",
            Err("the authorizer is not supported"),
        );
        let compiled = MatchCondition::compile("request.operation");
        assert_eq!(compiled.unwrap_err(), "must evaluate to bool");
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
