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
    nobody_grants_rights_that_they_lack,
);

const ROLES: &str = "tests/api_server/rbac";
const USER: &str = "system:serviceaccount:default:controller-manager";
const JARS: &str = "/apis/apiserver.example.com/v1/namespaces/{ns}/jars";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";

/// Returns a client whose service account has the roles.
async fn operator(place: &Place) -> Client {
    if let Server::Fake(server) = &place.server {
        return server.clone().role_from(ROLES).client();
    }
    let leases = format!("{LEASES}/default/leases");
    real_operator(place, include_str!("rbac/roles.yaml"), USER, (&leases, 200)).await
}

/// Creates roles and bindings on a real server. The authorizer watches roles, so `probe` is a path
/// and its status code once it has observed them.
async fn real_operator(place: &Place, roles: &str, user: &str, probe: (&str, u16)) -> Client {
    let documents: Vec<Value> = serde_saphyr::from_multiple(roles).unwrap();
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
    let client = place.server.real().user(user, &[]).unwrap().client();
    rbuilder::testing::eventually(std::time::Duration::from_secs(20), || async {
        let request = http::Request::get(probe.0).body(Body::empty()).unwrap();
        client.send(request).await.unwrap().status() == probe.1
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

/// The roles that a client needs to write roles. Other tests must not get them.
const WRITES_ROLES: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: fake-writer-role}
rules:
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [create, patch]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [fake-bound-role], verbs: [bind]}
- {apiGroups: [''], resources: [configmaps], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: fake-writer-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fake-writer-role}
subjects:
- {kind: ServiceAccount, name: writer, namespace: default}
";

async fn role_writer(server: Server) -> Place {
    let admin = Place::new(server).await;
    let apply = [("content-type", "application/apply-patch+yaml")];
    for name in ["fake-bound-role", "fake-other-role"] {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name },
            "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"] }],
        });
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}?fieldManager=test");
        let (code, text) = admin.raw("PATCH", &path, &apply, &role.to_string()).await;
        assert!(matches!(code, 200 | 201), "{text}");
    }
    let client = match &admin.server {
        Server::Fake(server) => {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("role.yaml"), WRITES_ROLES).unwrap();
            server.clone().role_from(folder.path()).client()
        }
        Server::Real(_) => {
            let (user, map) = (
                "system:serviceaccount:default:writer",
                "/api/v1/namespaces/default/configmaps/a",
            );
            real_operator(&admin, WRITES_ROLES, user, (map, 404)).await
        }
    };
    Place { client, ..admin }
}

async fn nobody_grants_rights_that_they_lack(server: Server) {
    let place = role_writer(server).await;
    let json = [("content-type", "application/json")];
    let folder = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}";
    let role = |name: &str, rules: Value| json!({ "metadata": { "name": name }, "rules": rules });
    let binding = |name: &str, role: &str| {
        json!({
            "metadata": { "name": name }, "subjects": [{ "kind": "User", "name": "x" }],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        })
    };
    let lacks = "user \"system:serviceaccount:default:writer\" (groups=[\"system:serviceaccounts\" \
                 \"system:serviceaccounts:default\" \"system:authenticated\"]) is attempting to grant RBAC \
                 permissions not currently held:";
    let wide = json!([
        { "apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "list"] },
        { "apiGroups": ["*"], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["*"] },
    ]);
    for (plural, object, expected) in [
        (
            "roles",
            role(
                "own",
                json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }]),
            ),
            Ok(()),
        ),
        (
            "roles",
            role("wide", wide),
            Err((
                403,
                format!(
                    "roles.rbac.authorization.k8s.io \"wide\" is forbidden: {lacks}\n\
                     {{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"list\"]}}\n\
                     {{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}}\n\
                     {{APIGroups:[\"*\"], Resources:[\"pods\"], ResourceNames:[\"a\"], Verbs:[\"*\"]}}"
                ),
            )),
        ),
        ("rolebindings", binding("bound", "fake-bound-role"), Ok(())),
        (
            "rolebindings",
            binding("other", "fake-other-role"),
            Err((
                403,
                format!(
                    "rolebindings.rbac.authorization.k8s.io \"other\" is forbidden: {lacks}\n\
                     {{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}}"
                ),
            )),
        ),
        (
            "rolebindings",
            binding("none", "fake-none-role"),
            Err((
                404,
                "rolebindings.rbac.authorization.k8s.io \"fake-none-role\" not found".to_owned(),
            )),
        ),
    ] {
        let path = format!("{folder}/{plural}");
        let (code, text) = place.raw("POST", &path, &json, &object.to_string()).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        match expected {
            Ok(()) => assert_eq!(code, 201, "{text}"),
            Err((expected, words)) => {
                assert_eq!((code, status["message"].as_str()), (expected, Some(&*words)))
            }
        }
    }
    // An update that grants more is refused as well, but not one of the finalizers.
    let merge = [("content-type", "application/merge-patch+json")];
    let path = format!("{folder}/roles/own");
    let more = json!({ "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }] });
    let (code, text) = place.raw("PATCH", &path, &merge, &more.to_string()).await;
    assert_eq!(code, 403, "{text}");
    let held = json!({ "metadata": { "ownerReferences": [] } });
    let (code, text) = place.raw("PATCH", &path, &merge, &held.to_string()).await;
    assert_eq!(code, 200, "{text}");
    if let Server::Fake(server) = &place.server {
        let report = std::panic::catch_unwind(|| server.assert_role_fits()).unwrap_err();
        let report = report.downcast_ref::<String>().unwrap();
        let expected = "grants rights that the operator itself lacks:\n    {APIGroups:[\"\"], \
                        Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}\n    #[rbac(groups = \
                        \"rbac.authorization.k8s.io\", resources = \"clusterroles\", verbs = [\"bind\"])]";
        assert!(report.contains(expected), "{report}");
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
