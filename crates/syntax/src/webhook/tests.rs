use super::*;
use crate::Diagnostic;

fn read_text(text: &str) -> (Option<Webhook>, Vec<String>) {
    let mut session = Session::default();
    let tokens = rbuilder_reader::token::lex(text).expect("tokens");
    let webhook = parse_webhook(tokens.cursor(), &mut session);
    let complaints = session.diagnostics.into_vec();
    (webhook, complaints.iter().map(Diagnostic::text).collect())
}

/// Diagnostics are given as `message | help`.
fn refused(text: &str, expected: &[&str]) {
    let (webhook, complaints) = read_text(text);
    let complaints: Vec<String> = complaints
        .iter()
        .map(|text| text.replace("\nhelp: ", " | "))
        .collect();
    assert_eq!(complaints, expected, "{text}");
    assert_eq!(webhook, None, "{text}");
}

fn accepted(text: &str) -> Webhook {
    let (webhook, complaints) = read_text(text);
    assert_eq!(complaints, [""; 0], "{text}");
    webhook.expect("a webhook")
}

#[test]
fn defaults_match_kubebuilder() {
    let webhook = accepted("mutating");
    let span = webhook.span;
    assert_eq!(webhook, Webhook::at(span));
    assert_eq!(webhook.operations, ["CREATE", "UPDATE"]);
    assert_eq!(accepted("validating").kind, WebhookKind::Validating);
}

#[test]
fn enumerated_values_ignore_case() {
    let webhook = accepted(
        "mutating, operations = \"create;Delete\", failure_policy = \"IGNORE\", match_policy = \"exact\", \
         side_effects = \"noneondryrun\", reinvocation_policy = \"ifneeded\", scope = \"cluster\"",
    );
    assert_eq!(webhook.operations, ["CREATE", "DELETE"]);
    assert_eq!(webhook.failure_policy, "Ignore");
    assert_eq!(webhook.match_policy, Some("Exact"));
    assert_eq!(webhook.side_effects, "NoneOnDryRun");
    assert_eq!(webhook.reinvocation_policy, Some("IfNeeded"));
    assert_eq!(webhook.scope, Some("Cluster"));
}

#[test]
fn accepts_valid_arguments() {
    for text in [
        "validating, groups = \"\", versions = [\"v1\"], resources = \"pods;pods/status\"",
        "validating, groups = \"*\", versions = \"*\", resources = \"*\"",
        "validating, resources = \"*;*/scale\"",
        "validating, resources = \"pods/*;deployments/*\"",
        "validating, timeout_seconds = 1, service_port = 65535",
        "validating, path = \"/\"",
        "validating, path = \"/a/b.c/\"",
        "validating, url = \"https://a.b:1/c\"",
        "validating, name = \"a.b.c\", configuration = \"x.y\"",
        "validating, service_name = \"w\", service_namespace = \"1\"",
        "validating, object_selector(match_labels = { \"a/b\": \"\" })",
        "validating, match_condition(name = \"a\", expression = \"true\")",
    ] {
        accepted(text);
    }
}

#[test]
fn reports_missing_type_and_unknown_arguments() {
    refused(
        "",
        &[
            "missing `mutating` or `validating` | write `#[webhook(mutating)]` for a handler that changes objects, or `#[webhook(validating)]` for one that accepts or rejects them",
        ],
    );
    refused(
        "mutating, validating",
        &[
            "`mutating` and `validating` are mutually exclusive | write two handlers, each with its `#[webhook(…)]`",
        ],
    );
    refused(
        "mutating = true",
        &["`mutating` takes no value | write `mutating`"],
    );
    refused("mutating, mutating", &["duplicate argument `mutating`"]);
    refused(
        "mutatin",
        &["unknown argument `mutatin` of `webhook` | did you mean `mutating`?"],
    );
    refused(
        "mutating, failurePolicy = \"fail\"",
        &["unknown argument `failurePolicy` of `webhook` | did you mean `failure_policy`?"],
    );
    refused(
        "mutating, verbs = \"create\"",
        &["unknown argument `verbs` of `webhook` | write `operations = …`"],
    );
    refused(
        "mutating, webhook_versions = \"v1beta1\"",
        &[
            "unknown argument `webhook_versions` of `webhook` | remove it: webhooks are always written as `admissionregistration.k8s.io/v1`",
        ],
    );
    refused(
        "mutating, patch = \"{}\"",
        &[
            "unknown argument `patch` of `webhook` | write `namespace_selector(…)`, `object_selector(…)` or `match_condition(…)`",
        ],
    );
}

#[test]
fn reports_invalid_rules() {
    refused(
        "validating, operations = \"create;destroy\"",
        &[
            "unknown value `destroy` of `operations` | use one of: `CREATE`, `UPDATE`, `DELETE`, `CONNECT`, `*`",
        ],
    );
    refused(
        "validating, operations = []",
        &["the webhook has no operations | write `operations = \"create;update\"`"],
    );
    refused(
        "validating, operations = \"*;create\"",
        &["`*` already matches every operation | remove the other operations"],
    );
    refused(
        "validating, operations = \"create;create\"",
        &["duplicate operation `CREATE`"],
    );
    refused(
        "validating, groups = \"apps/v1\"",
        &["invalid API group `apps/v1` | write `groups = \"apps\"` and `versions = \"v1\"`"],
    );
    refused(
        "validating, groups = \"Apps\"",
        &["invalid API group `Apps` | use a lower-case domain, such as `apps` or `batch.example.com`"],
    );
    refused(
        "validating, versions = \"v1;\"",
        &["empty item in `versions` | remove it"],
    );
    refused(
        "validating, groups = \"apps;\"",
        &["empty item in `groups` | write `core` for the core group, or remove the `;`"],
    );
    refused(
        "validating, versions = []",
        &["`versions` must not be empty | write `versions = \"v1\"`, or remove it"],
    );
    refused(
        "validating, versions = \"v1;*\"",
        &["`*` already matches all versions | remove the others"],
    );
    refused(
        "validating, resources = \"\"",
        &["empty item in `resources` | remove it"],
    );
    refused(
        "validating, resources = \"Deployment\"",
        &["invalid resource `Deployment` | use the lower-case plural, as in `deployments`"],
    );
    for (resources, covering, covered) in [
        ("*/*;pods", "*/*", "pods"),
        ("pods/*;pods/log", "pods/*", "pods/log"),
        ("*/status;pods/status", "*/status", "pods/status"),
        ("*;pods", "*", "pods"),
    ] {
        refused(
            &format!("validating, resources = \"{resources}\""),
            &[&format!(
                "`{covering}` already matches `{covered}` | remove `{covered}`"
            )],
        );
    }
    refused(
        "validating, scope = \"Namespace\"",
        &["unknown value `Namespace` of `scope` | did you mean `Namespaced`?"],
    );
}

#[test]
fn reports_invalid_client_config() {
    let both = "use `url` for a server outside of the cluster, `path` for a Service";
    refused(
        "validating, path = \"/a\", url = \"https://a/b\"",
        &[&format!("`path` and `url` are mutually exclusive | {both}")],
    );
    refused(
        "validating, url = \"https://a/b\", service_name = \"a\", service_port = 1",
        &[
            &format!("`service_name` and `url` are mutually exclusive | {both}"),
            &format!("`service_port` and `url` are mutually exclusive | {both}"),
        ],
    );
    refused(
        "validating, path = \"a\"",
        &["expected a path that begins with `/`, found `a` | write `/a`"],
    );
    for path in ["//", "/a//b", "/A", "/a_b", "/a b"] {
        refused(
            &format!("validating, path = \"{path}\""),
            &[&format!(
                "the API server rejects the path `{path}` | use lower-case letters, digits, `-` and `.` between slashes"
            )],
        );
    }
    for (url, problem) in [
        ("http://a/b", "is not an `https://` URL"),
        ("https:///b", "has no host"),
        ("https://u@a/b", "contains a user, which the API server rejects"),
        (
            "https://a/b?c",
            "has a query or a fragment, which the API server rejects",
        ),
        ("https://a/b c", "contains a space"),
    ] {
        refused(
            &format!("validating, url = \"{url}\""),
            &[&format!("`{url}` {problem} | write `https://host:port/path`")],
        );
    }
    refused(
        "validating, service_name = \"DEAD\"",
        &["invalid Service name `DEAD` | use lower-case letters, digits and `-`, beginning with a letter"],
    );
    refused(
        "validating, service_namespace = \"a.b\"",
        &["invalid namespace name `a.b` | use lower-case letters, digits and `-`"],
    );
    for port in ["0", "65536", "-1"] {
        refused(
            &format!("validating, service_port = {port}"),
            &[&format!(
                "expected a port number, found {port} | write a port from 1 to 65535"
            )],
        );
    }
    for name in ["a.b", "a", "A.b.c", "a..c"] {
        refused(
            &format!("validating, name = \"{name}\""),
            &[&format!(
                "invalid webhook name `{name}` | use a domain with at least three parts, such as `mfoo-v1.example.com`"
            )],
        );
    }
    refused(
        "validating, configuration = \"A\"",
        &["invalid configuration name `A` | use lower-case letters, digits, `-` and `.`"],
    );
}

#[test]
fn reports_invalid_policies() {
    refused(
        "validating, failure_policy = \"abort\"",
        &["unknown value `abort` of `failure_policy` | use one of: `Fail`, `Ignore`"],
    );
    refused(
        "validating, match_policy = \"foo\"",
        &["unknown value `foo` of `match_policy` | use one of: `Exact`, `Equivalent`"],
    );
    for word in ["Some", "unknown"] {
        refused(
            &format!("validating, side_effects = \"{word}\""),
            &[&format!(
                "the API server rejects a webhook with `side_effects = \"{word}\"` | write `NoneOnDryRun`, and skip side effects in the handler when `dry_run` is set"
            )],
        );
    }
    refused(
        "validating, side_effects = \"Non\"",
        &["unknown value `Non` of `side_effects` | did you mean `None`?"],
    );
    for seconds in ["0", "31", "40", "-1", "1.5"] {
        refused(
            &format!("validating, timeout_seconds = {seconds}"),
            &[&format!(
                "expected a timeout from 1 to 30 seconds, found {seconds} | write a number from 1 to 30"
            )],
        );
    }
    refused(
        "validating, reinvocation_policy = \"Never\"",
        &["`reinvocation_policy` applies to mutating webhooks | remove `reinvocation_policy`"],
    );
    refused(
        "mutating, reinvocation_policy = \"Always\"",
        &["unknown value `Always` of `reinvocation_policy` | use one of: `Never`, `IfNeeded`"],
    );
    let first = "the handler supports AdmissionReview v1 only | put `v1` first: the API server sends the first version that it supports";
    refused("validating, admission_review_versions = []", &[first]);
    refused("validating, admission_review_versions = \"v1beta1;v1\"", &[first]);
    refused(
        "validating, admission_review_versions = \"v1;v2\"",
        &["unknown AdmissionReview version `v2` | write `v1`"],
    );
    refused(
        "validating, admission_review_versions = \"v1;v1\"",
        &["duplicate version `v1`"],
    );
}

#[test]
fn reports_invalid_conditions_and_selectors() {
    refused(
        "validating, match_condition(expression = \"true\")",
        &["missing argument `name` of `match_condition` | add `name = \"…\"`"],
    );
    refused(
        "validating, match_condition(name = \"a\", expression = \" \")",
        &["the expression is empty | write a CEL expression about `object`, `oldObject` or `request`"],
    );
    refused(
        "validating, match_condition(name = \"a b\", expression = \"true\")",
        &[
            "invalid match condition name `a b` | use letters and digits with `-`, `_` or `.` between them, as in `exclude-leases`",
        ],
    );
    refused(
        "validating, match_condition(name = \"a\", expression = \"true\"), match_condition(name = \"a\", expression = \"false\")",
        &["duplicate match condition name `a` | rename one of them"],
    );
    refused(
        "validating, match_condition = \"true\"",
        &["expected arguments in parentheses for `match_condition` | write `match_condition(…)`"],
    );
    refused(
        "validating, object_selector()",
        &[
            "`object_selector` matches everything | add `match_labels = { \"key\": \"value\" }` or `match_expression(…)`, or remove the selector",
        ],
    );
    refused(
        "validating, object_selector(match_lables = {})",
        &["unknown argument `match_lables` of `object_selector` | did you mean `match_labels`?"],
    );
    refused(
        "validating, object_selector(match_labels = { \"a\": 1 })",
        &["expected a map of strings for `match_labels` | write `match_labels = { \"key\": \"value\" }`"],
    );
    refused(
        "validating, object_selector(match_labels = { \"a b\": \"c d\" })",
        &[
            "invalid label key `a b` | use a name of at most 63 letters, digits, `-`, `_` and `.`, or `domain/name`",
            "invalid label value `c d` | use at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit",
        ],
    );
    for (requirement, expected) in [
        (
            "key = \"a\", operator = \"In\"",
            "`In` requires values | add `values = [\"…\"]`",
        ),
        (
            "key = \"a\", operator = \"Exists\", values = [\"b\"]",
            "`Exists` takes no values | remove `values`, or write `operator = \"In\"`",
        ),
        (
            "key = \"a\", operator = \"Has\"",
            "unknown value `Has` of `operator` | use one of: `In`, `NotIn`, `Exists`, `DoesNotExist`",
        ),
        (
            "operator = \"Exists\"",
            "missing argument `key` of `match_expression` | add `key = \"…\"`",
        ),
        (
            "key = \"a\", key = \"b\", operator = \"Exists\"",
            "duplicate argument `key`",
        ),
    ] {
        refused(
            &format!("validating, namespace_selector(match_expression({requirement}))"),
            &[expected],
        );
    }
}

#[test]
fn reports_names_that_match_nothing() {
    refused(
        "validating, resources = \"pods/\"",
        &["invalid resource `pods/` | write `pods`"],
    );
    refused(
        "validating, operations = \"create,update\"",
        &[
            "`create,update` is read as a single word | separate words by `;`: `operations = \"create;update\"`",
        ],
    );
    for (text, expected) in [
        (
            "validating, groups = \"app\"",
            "Kubernetes has no API group `app`\nhelp: did you mean `apps`?",
        ),
        (
            "validating, groups = \"\", resources = \"pods/exce\"",
            "`pods` has no subresource `exce`\nhelp: did you mean `exec`?",
        ),
        (
            "validating, groups = \"apps\", resources = \"deployment\"",
            "the group `apps` has no resource `deployment`\nhelp: did you mean `deployments`?",
        ),
    ] {
        let (webhook, complaints) = read_text(text);
        assert!(webhook.is_some(), "{text}");
        assert_eq!(complaints, [expected], "{text}");
    }
    for text in [
        "validating, groups = \"\", resources = \"pods/*\"",
        "validating, groups = \"*\", resources = \"*/scale\"",
        "validating, groups = \"apps\", resources = \"*/*\"",
        "validating, groups = \"example.com\", resources = \"cups/lid\"",
        "validating, groups = \"apps\", resources = \"deployments/scale\"",
    ] {
        accepted(text);
    }
}
