//! Requests of a client whose permissions are restricted by roles.

use std::process::Command;

use kube::Client;
use kube::api::Patch;
use kube::client::Body;
use rbuilder::fake::{ApiServer, Verb};
use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, jar, refused};

on_both_servers!(
    requests_outside_of_the_roles_are_forbidden,
    requests_in_the_roles_are_permitted,
    applying_a_new_object_needs_the_verb_create,
    access_reviews_answer_by_the_roles,
);

const ROLES: &str = "tests/api_server/rbac";
const USER: &str = "system:serviceaccount:default:controller-manager";
const JARS: &str = "/apis/apiserver.example.com/v1/namespaces/{ns}/jars";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";

/// Returns a client whose service account has the roles.
async fn operator(place: &Place) -> Client {
    let environment = match &place.server {
        Server::Fake(server) => return server.clone().role_from(ROLES).client(),
        Server::Real(environment) => environment,
    };
    let text = include_str!("rbac/roles.yaml");
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    for document in documents {
        let plural = format!("{}s", document["kind"].as_str().unwrap().to_lowercase());
        let path = match document["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("namespaces/{namespace}/{plural}"),
            None => plural,
        };
        let name = document["metadata"]["name"].as_str().unwrap();
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}/{name}?fieldManager=test&force=true");
        let apply = [("content-type", "application/apply-patch+yaml")];
        let (code, text) = place.raw("PATCH", &path, &apply, &document.to_string()).await;
        assert!(matches!(code, 200 | 201), "{text}");
    }
    let client = environment.user(USER, &[]).unwrap().client();
    // The authorizer watches roles, so it takes a moment to observe them.
    rbuilder::testing::eventually(std::time::Duration::from_secs(20), || async {
        let leases = format!("{LEASES}/default/leases");
        let request = http::Request::get(leases).body(Body::empty()).unwrap();
        client.send(request).await.unwrap().status() == 200
    })
    .await;
    client
}

async fn requests_outside_of_the_roles_are_forbidden(server: Server) {
    let admin = Place::new(server).await;
    let client = operator(&admin).await;
    let namespace = admin.namespace.clone();
    let place = Place { client, ..admin };
    let cannot = |what: &str| format!("User \"{USER}\" cannot {what}");
    for (method, path, expected) in [
        (
            "POST",
            JARS,
            format!(
                "jars.apiserver.example.com is forbidden: {} in the namespace \"{namespace}\"",
                cannot("create resource \"jars\" in API group \"apiserver.example.com\"")
            ),
        ),
        (
            "DELETE",
            &format!("{JARS}/a"),
            format!(
                "jars.apiserver.example.com \"a\" is forbidden: {} in the namespace \"{namespace}\"",
                cannot("delete resource \"jars\" in API group \"apiserver.example.com\"")
            ),
        ),
        (
            "PUT",
            &format!("{JARS}/a/scale"),
            format!(
                "jars.apiserver.example.com \"a\" is forbidden: {} in the namespace \"{namespace}\"",
                cannot("update resource \"jars/scale\" in API group \"apiserver.example.com\"")
            ),
        ),
        (
            "GET",
            "/api/v1/secrets",
            format!(
                "secrets is forbidden: {} at the cluster scope",
                cannot("list resource \"secrets\" in API group \"\"")
            ),
        ),
        (
            "GET",
            "/api/v1/namespaces/{ns}/configmaps/other",
            format!(
                "configmaps \"other\" is forbidden: {} in the namespace \"{namespace}\"",
                cannot("get resource \"configmaps\" in API group \"\"")
            ),
        ),
        (
            "GET",
            "/api/v1/namespaces/{ns}/configmaps?watch=true&fieldSelector=metadata.name%3Dmine",
            format!(
                "configmaps \"mine\" is forbidden: {} in the namespace \"{namespace}\"",
                cannot("watch resource \"configmaps\" in API group \"\"")
            ),
        ),
        (
            "DELETE",
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            format!(
                "leases.coordination.k8s.io is forbidden: {} in the namespace \"{namespace}\"",
                cannot("deletecollection resource \"leases\" in API group \"coordination.k8s.io\"")
            ),
        ),
        (
            "GET",
            "/api/v1/namespaces/kube-system",
            format!(
                "namespaces \"kube-system\" is forbidden: {} in the namespace \"kube-system\"",
                cannot("get resource \"namespaces\" in API group \"\"")
            ),
        ),
        (
            "GET",
            "/apis/none.example.com/v1/pots",
            format!(
                "pots.none.example.com is forbidden: {} at the cluster scope",
                cannot("list resource \"pots\" in API group \"none.example.com\"")
            ),
        ),
    ] {
        let (code, text) = place.raw(method, path, &[], "").await;
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (code, &status["reason"]),
            (403, &json!("Forbidden")),
            "{path}: {text}"
        );
        assert_eq!(status["message"], expected);
    }
}

async fn requests_in_the_roles_are_permitted(server: Server) {
    let admin = Place::new(server).await;
    admin.jar("a", json!({})).await;
    let client = operator(&admin).await;
    let place = Place { client, ..admin };
    for (path, expected) in [
        (JARS, 200),
        (&format!("{JARS}/a"), 200),
        (&format!("{JARS}/a/status"), 200),
        (&format!("{JARS}/a/scale"), 200),
        ("/apis/apiserver.example.com/v1/jars", 200),
        ("/api/v1/namespaces/{ns}/configmaps/mine", 404),
        (
            "/api/v1/namespaces/{ns}/configmaps?fieldSelector=metadata.name%3Dmine",
            200,
        ),
        (&format!("{LEASES}/default/leases"), 200),
        ("/api/v1/namespaces/default", 200),
    ] {
        let (code, text) = place.raw("GET", path, &[], "").await;
        assert_eq!(code, expected, "{path}: {text}");
    }
}

async fn applying_a_new_object_needs_the_verb_create(server: Server) {
    let admin = Place::new(server).await;
    admin.jar("old", json!({})).await;
    let client = operator(&admin).await;
    let namespace = admin.namespace.clone();
    let place = Place { client, ..admin };
    let apply = async |name: &str| {
        let jar = jar(name, json!({ "size": 2 }));
        let params = kube::api::PatchParams::apply("m").force();
        place.jars().patch(name, &params, &Patch::Apply(&jar)).await
    };
    apply("old").await.unwrap();
    refused(
        apply("new").await,
        403,
        "Forbidden",
        &format!(
            "jars.apiserver.example.com \"new\" is forbidden: User \"{USER}\" cannot create resource \"jars\" in API \
             group \"apiserver.example.com\" in the namespace \"{namespace}\""
        ),
    );
}

async fn access_reviews_answer_by_the_roles(server: Server) {
    let admin = Place::new(server).await;
    let client = operator(&admin).await;
    let place = Place { client, ..admin };
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (attributes, expected) in [
        (
            json!({ "verb": "watch", "group": "apiserver.example.com", "resource": "jars" }),
            true,
        ),
        (json!({ "verb": "watch", "resource": "secrets" }), false),
        (
            json!({ "verb": "update", "group": "coordination.k8s.io", "resource": "leases", "namespace": "default" }),
            true,
        ),
        (
            json!({ "verb": "update", "group": "coordination.k8s.io", "resource": "leases", "namespace": "other" }),
            false,
        ),
    ] {
        let body = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes } });
        let json = [("content-type", "application/json")];
        let (code, text) = place.raw("POST", reviews, &json, &body.to_string()).await;
        assert_eq!(code, 201, "{text}");
        let review: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(review["status"]["allowed"], expected, "{attributes}");
    }
}

#[tokio::test]
async fn used_permissions_are_compared_with_the_roles() {
    let server = ApiServer::new().role_from(ROLES);
    let place = Place::new(Server::Fake(server.clone())).await;
    assert!(
        server.permissions().is_empty(),
        "the test's own requests do not count"
    );
    place.jar("a", json!({})).await;
    let client = server.client();
    let place = Place { client, ..place };
    place.jars().get("a").await.unwrap();
    let patch = Patch::Merge(json!({ "status": { "size": 1 } }));
    place
        .jars()
        .patch_status("a", &Default::default(), &patch)
        .await
        .unwrap();
    let permissions = server.permissions();
    let said: Vec<String> = permissions.iter().map(ToString::to_string).collect();
    let namespace = &place.namespace;
    assert_eq!(
        said,
        [
            format!("get jars.apiserver.example.com {namespace}/a"),
            format!("patch jars.apiserver.example.com/status {namespace}/a"),
        ]
    );
    assert_eq!(permissions[0].verb, Verb::Get);
    let unused = server.assert_role_fits();
    assert!(
        unused.contains(&"ClusterRole fake-manager-role: watch jars in apiserver.example.com".to_owned()),
        "{unused:?}"
    );
    assert!(
        !unused.contains(&"ClusterRole fake-manager-role: get jars in apiserver.example.com".to_owned()),
        "{unused:?}"
    );
}

#[tokio::test]
#[should_panic(
    expected = "the roles lack permissions that the operator used:\n  list secrets\n    \
                #[rbac(groups = \"\", resources = \"secrets\", verbs = [\"list\"])]"
)]
async fn missing_permission_is_reported_with_its_marker() {
    let server = ApiServer::new().role_from(ROLES);
    let request = http::Request::get("/api/v1/secrets").body(Body::empty());
    server.client().send(request.unwrap()).await.unwrap();
    server.assert_role_fits();
}

/// The child process fails while waiting, so it never gets to compare the permissions.
#[tokio::test]
async fn failing_test_prints_missing_permissions_once() {
    const FAILS: &str = "RBUILDER_TEST_LACKS_A_PERMISSION";
    if std::env::var_os(FAILS).is_some() {
        let server = ApiServer::new().role_from(ROLES);
        let request = http::Request::get("/api/v1/secrets").body(Body::empty());
        server.client().send(request.unwrap()).await.unwrap();
        panic!("the object was not reconciled");
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "roles::failing_test_prints_missing_permissions_once"])
        .env(FAILS, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected = "\nthe roles lack permissions that the operator used:\n  list secrets\n    \
                    #[rbac(groups = \"\", resources = \"secrets\", verbs = [\"list\"])]\n";
    assert!(!output.status.success());
    assert_eq!(printed.matches(expected).count(), 1, "{printed}");
}
