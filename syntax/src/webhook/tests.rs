use super::*;
use crate::Diagnostic;

fn read_text(text: &str) -> (Option<Webhook>, Vec<String>) {
    let mut session = Session::default();
    let tokens = rbuilder_reader::token::lex(text).expect("tokens");
    let webhook = parse_webhook(tokens.cursor(), &mut session);
    let complaints = session.diagnostics.into_vec();
    (webhook, complaints.iter().map(Diagnostic::text).collect())
}

/// The diagnostics, as `message | help`.
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
fn what_is_not_written_is_kubebuilders() {
    let webhook = accepted("mutating");
    let span = webhook.span;
    assert_eq!(webhook, Webhook::at(span));
    assert_eq!(webhook.operations, ["CREATE", "UPDATE"]);
    assert_eq!(accepted("validating").kind, WebhookKind::Validating);
}

#[test]
fn words_are_read_as_the_api_spells_them() {
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
fn correct_arguments_pass() {
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
fn the_marker_as_a_whole() {
    refused(
        "",
        &[
            "the webhook is neither `mutating` nor `validating` | write `#[webhook(mutating)]` for a handler that changes objects, `#[webhook(validating)]` for one that accepts or refuses them",
        ],
    );
    refused(
        "mutating, validating",
        &[
            "a webhook is either `mutating` or `validating` | write two handlers, each with its `#[webhook(…)]`",
        ],
    );
    refused(
        "mutating = true",
        &["`mutating` takes no value | write `mutating`"],
    );
    refused("mutating, mutating", &["`mutating` is written twice"]);
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
            "unknown argument `webhook_versions` of `webhook` | remove it: webhooks are written as `admissionregistration.k8s.io/v1`",
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
fn what_is_asked_about() {
    refused(
        "validating, operations = \"create;destroy\"",
        &["`operations` cannot be `destroy` | known here: `CREATE`, `UPDATE`, `DELETE`, `CONNECT`, `*`"],
    );
    refused(
        "validating, operations = []",
        &["the webhook is asked about no operation | write `operations = \"create;update\"`"],
    );
    refused(
        "validating, operations = \"*;create\"",
        &["`*` stands for every operation | remove the other operations"],
    );
    refused(
        "validating, operations = \"create;create\"",
        &["`CREATE` is written twice in `operations`"],
    );
    refused(
        "validating, groups = \"apps/v1\"",
        &["`apps/v1` is not an API group | write `groups = \"apps\"` and `versions = \"v1\"`"],
    );
    refused(
        "validating, groups = \"Apps\"",
        &[
            "`Apps` is not an API group | a group is a domain in lower case, such as `apps` or `batch.example.com`",
        ],
    );
    refused(
        "validating, versions = \"v1;\"",
        &["`versions` holds an empty word | remove it"],
    );
    refused(
        "validating, groups = \"apps;\"",
        &["`groups` holds an empty word | write `core` for the core group, or remove the `;`"],
    );
    refused(
        "validating, versions = []",
        &["the webhook is asked about no versions | write `versions = \"v1\"`, or remove it"],
    );
    refused(
        "validating, versions = \"v1;*\"",
        &["`*` stands for all versions | remove the others"],
    );
    refused(
        "validating, resources = \"\"",
        &["`resources` holds an empty word | remove it"],
    );
    refused(
        "validating, resources = \"Deployment\"",
        &[
            "`Deployment` is not the name of a resource | resources are named by their plural in lower case, as in `deployments`",
        ],
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
                "`{covering}` stands for `{covered}` too | remove `{covered}`"
            )],
        );
    }
    refused(
        "validating, scope = \"Namespace\"",
        &["`scope` cannot be `Namespace` | did you mean `Namespaced`?"],
    );
}

#[test]
fn who_is_asked() {
    let both = "keep `url` for a server outside of the cluster, `path` for a Service";
    refused(
        "validating, path = \"/a\", url = \"https://a/b\"",
        &[&format!("`path` and `url` exclude each other | {both}")],
    );
    refused(
        "validating, url = \"https://a/b\", service_name = \"a\", service_port = 1",
        &[
            &format!("`service_name` and `url` exclude each other | {both}"),
            &format!("`service_port` and `url` exclude each other | {both}"),
        ],
    );
    refused(
        "validating, path = \"a\"",
        &["the path `a` does not begin with `/` | write `/a`"],
    );
    for path in ["//", "/a//b", "/A", "/a_b", "/a b"] {
        refused(
            &format!("validating, path = \"{path}\""),
            &[&format!(
                "the API server refuses the path `{path}` | between the slashes stand lower-case letters, digits, `-` and `.`"
            )],
        );
    }
    for (url, problem) in [
        ("http://a/b", "is no `https://` URL"),
        ("https:///b", "has no host"),
        ("https://u@a/b", "holds a user, which the API server refuses"),
        (
            "https://a/b?c",
            "has a query or a fragment, which the API server refuses",
        ),
        ("https://a/b c", "holds a space"),
    ] {
        refused(
            &format!("validating, url = \"{url}\""),
            &[&format!("`{url}` {problem} | write `https://host:port/path`")],
        );
    }
    refused(
        "validating, service_name = \"DEAD\"",
        &[
            "`DEAD` cannot be the name of a Service | write lower-case letters, digits and `-`, beginning with a letter",
        ],
    );
    refused(
        "validating, service_namespace = \"a.b\"",
        &["`a.b` cannot be the name of a namespace | write lower-case letters, digits and `-`"],
    );
    for port in ["0", "65536", "-1"] {
        refused(
            &format!("validating, service_port = {port}"),
            &[&format!("{port} is not a port | write a port from 1 to 65535")],
        );
    }
    for name in ["a.b", "a", "A.b.c", "a..c"] {
        refused(
            &format!("validating, name = \"{name}\""),
            &[&format!(
                "`{name}` cannot be the name of a webhook | write a domain of three parts or more, such as `mfoo-v1.example.com`"
            )],
        );
    }
    refused(
        "validating, configuration = \"A\"",
        &["`A` cannot be the name of a configuration | write lower-case letters, digits, `-` and `.`"],
    );
}

#[test]
fn how_the_answer_is_taken() {
    refused(
        "validating, failure_policy = \"abort\"",
        &["`failure_policy` cannot be `abort` | known here: `Fail`, `Ignore`"],
    );
    refused(
        "validating, match_policy = \"foo\"",
        &["`match_policy` cannot be `foo` | known here: `Exact`, `Equivalent`"],
    );
    for word in ["Some", "unknown"] {
        refused(
            &format!("validating, side_effects = \"{word}\""),
            &[&format!(
                "the API server refuses a webhook with `side_effects = \"{word}\"` | write `NoneOnDryRun` and have the handler change nothing elsewhere when `dry_run` is set"
            )],
        );
    }
    refused(
        "validating, side_effects = \"Non\"",
        &["`side_effects` cannot be `Non` | did you mean `None`?"],
    );
    for seconds in ["0", "31", "40", "-1", "1.5"] {
        refused(
            &format!("validating, timeout_seconds = {seconds}"),
            &[&format!(
                "the API server waits for a webhook 1 to 30 seconds, not {seconds} | write a number from 1 to 30"
            )],
        );
    }
    refused(
        "validating, reinvocation_policy = \"Never\"",
        &["only a mutating webhook is asked again | remove `reinvocation_policy`"],
    );
    refused(
        "mutating, reinvocation_policy = \"Always\"",
        &["`reinvocation_policy` cannot be `Always` | known here: `Never`, `IfNeeded`"],
    );
    let first = "the handler is sent AdmissionReviews of the version v1 | begin the list with `v1`: the API server sends the first version that it knows";
    refused("validating, admission_review_versions = []", &[first]);
    refused("validating, admission_review_versions = \"v1beta1;v1\"", &[first]);
    refused(
        "validating, admission_review_versions = \"v1;v2\"",
        &["there is no AdmissionReview of the version `v2` | write `v1`"],
    );
    refused(
        "validating, admission_review_versions = \"v1;v1\"",
        &["the version `v1` is written twice"],
    );
}

#[test]
fn conditions_and_selectors() {
    refused(
        "validating, match_condition(expression = \"true\")",
        &["`match_condition` needs `name` | add `name = \"…\"`"],
    );
    refused(
        "validating, match_condition(name = \"a\", expression = \" \")",
        &["the expression is empty | write a CEL expression about `object`, `oldObject` or `request`"],
    );
    refused(
        "validating, match_condition(name = \"a b\", expression = \"true\")",
        &[
            "`a b` cannot be the name of a match condition | write letters, digits and `-`, `_` or `.` between them, such as `exclude-leases`",
        ],
    );
    refused(
        "validating, match_condition(name = \"a\", expression = \"true\"), match_condition(name = \"a\", expression = \"false\")",
        &["two match conditions are called `a` | give them different names"],
    );
    refused(
        "validating, match_condition = \"true\"",
        &["`match_condition` takes arguments in parentheses | write `match_condition(…)`"],
    );
    refused(
        "validating, object_selector()",
        &[
            "`object_selector` selects everything | add `match_labels = { \"key\": \"value\" }` or `match_expression(…)`, or remove it",
        ],
    );
    refused(
        "validating, object_selector(match_lables = {})",
        &["unknown argument `match_lables` of `object_selector` | did you mean `match_labels`?"],
    );
    refused(
        "validating, object_selector(match_labels = { \"a\": 1 })",
        &["`match_labels` wants a map of texts | write `match_labels = { \"key\": \"value\" }`"],
    );
    refused(
        "validating, object_selector(match_labels = { \"a b\": \"c d\" })",
        &[
            "`a b` is not the key of a label | a key is a name of up to 63 letters, digits, `-`, `_` and `.`, or `domain/name`",
            "`c d` is not the value of a label | a value has up to 63 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit",
        ],
    );
    for (requirement, expected) in [
        (
            "key = \"a\", operator = \"In\"",
            "`In` needs values to compare with | add `values = [\"…\"]`",
        ),
        (
            "key = \"a\", operator = \"Exists\", values = [\"b\"]",
            "`Exists` compares with no values | remove `values`, or write `operator = \"In\"`",
        ),
        (
            "key = \"a\", operator = \"Has\"",
            "`operator` cannot be `Has` | known here: `In`, `NotIn`, `Exists`, `DoesNotExist`",
        ),
        (
            "operator = \"Exists\"",
            "`match_expression` needs `key` | add `key = \"…\"`",
        ),
        (
            "key = \"a\", key = \"b\", operator = \"Exists\"",
            "`key` is written twice",
        ),
    ] {
        refused(
            &format!("validating, namespace_selector(match_expression({requirement}))"),
            &[expected],
        );
    }
}

#[test]
fn names_that_match_nothing() {
    refused(
        "validating, resources = \"pods/\"",
        &["`pods/` is not the name of a resource | write `pods`"],
    );
    refused(
        "validating, operations = \"create,update\"",
        &["`create,update` is taken for one word | separate words by `;`: `operations = \"create;update\"`"],
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
