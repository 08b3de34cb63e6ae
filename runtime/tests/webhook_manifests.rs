//! Webhook configurations as `rbuilder manifests` writes them: what k8s-openapi's types say of themselves, and
//! whether a real API server takes them.

use k8s_openapi::Resource;
use rbuilder_generator::{Generated, Options, SourceSet, generate};
use serde_json::{Value, json};

const CARGO_TOML: &str = r#"
[package]
name = "hooks"
edition = "2024"

[dependencies]
k8s-openapi = "0.29"
kube = "5"
rbuilder = "0.1"
"#;

fn generated(files: &[(&str, &str)]) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    files.iter().for_each(|(path, text)| sources.insert(*path, *text));
    generate(&sources, &Options::default())
}

/// The configurations that a package makes.
fn configurations(files: &[(&str, &str)]) -> Vec<Value> {
    let Generated { files, diagnostics } = generated(files);
    assert_eq!(diagnostics, []);
    let manifests = files
        .iter()
        .find(|file| file.path == "webhook/manifests.yaml")
        .expect("webhook manifests");
    manifests
        .text
        .split("---\n")
        .filter(|document| !document.is_empty())
        .map(|document| serde_saphyr::from_str(document).expect("YAML"))
        .collect()
}

/// The path in source of each type, with what the type says of itself.
macro_rules! kinds {
    ($($path:path,)*) => {
        [$((
            stringify!($path),
            [
                <$path as Resource>::GROUP,
                <$path as Resource>::VERSION,
                <$path as Resource>::URL_PATH_SEGMENT,
                <$path as Resource>::KIND,
            ],
        )),*]
    };
}

#[test]
fn kubernetes_own_kinds_are_known() {
    let kinds = kinds![
        k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicy,
        k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicyBinding,
        k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration,
        k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy,
        k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding,
        k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration,
        k8s_openapi::api::admissionregistration::v1alpha1::MutatingAdmissionPolicy,
        k8s_openapi::api::admissionregistration::v1alpha1::MutatingAdmissionPolicyBinding,
        k8s_openapi::api::admissionregistration::v1beta1::MutatingAdmissionPolicy,
        k8s_openapi::api::admissionregistration::v1beta1::MutatingAdmissionPolicyBinding,
        k8s_openapi::api::apiserverinternal::v1alpha1::StorageVersion,
        k8s_openapi::api::apps::v1::ControllerRevision,
        k8s_openapi::api::apps::v1::DaemonSet,
        k8s_openapi::api::apps::v1::Deployment,
        k8s_openapi::api::apps::v1::ReplicaSet,
        k8s_openapi::api::apps::v1::StatefulSet,
        k8s_openapi::api::authentication::v1::SelfSubjectReview,
        k8s_openapi::api::authentication::v1::TokenReview,
        k8s_openapi::api::authorization::v1::LocalSubjectAccessReview,
        k8s_openapi::api::authorization::v1::SelfSubjectAccessReview,
        k8s_openapi::api::authorization::v1::SelfSubjectRulesReview,
        k8s_openapi::api::authorization::v1::SubjectAccessReview,
        k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler,
        k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler,
        k8s_openapi::api::batch::v1::CronJob,
        k8s_openapi::api::batch::v1::Job,
        k8s_openapi::api::certificates::v1::CertificateSigningRequest,
        k8s_openapi::api::certificates::v1alpha1::ClusterTrustBundle,
        k8s_openapi::api::certificates::v1beta1::ClusterTrustBundle,
        k8s_openapi::api::certificates::v1beta1::PodCertificateRequest,
        k8s_openapi::api::coordination::v1::Lease,
        k8s_openapi::api::coordination::v1alpha2::LeaseCandidate,
        k8s_openapi::api::coordination::v1beta1::LeaseCandidate,
        k8s_openapi::api::core::v1::Binding,
        k8s_openapi::api::core::v1::ComponentStatus,
        k8s_openapi::api::core::v1::ConfigMap,
        k8s_openapi::api::core::v1::Endpoints,
        k8s_openapi::api::core::v1::Event,
        k8s_openapi::api::core::v1::LimitRange,
        k8s_openapi::api::core::v1::Namespace,
        k8s_openapi::api::core::v1::Node,
        k8s_openapi::api::core::v1::PersistentVolume,
        k8s_openapi::api::core::v1::PersistentVolumeClaim,
        k8s_openapi::api::core::v1::Pod,
        k8s_openapi::api::core::v1::PodTemplate,
        k8s_openapi::api::core::v1::ReplicationController,
        k8s_openapi::api::core::v1::ResourceQuota,
        k8s_openapi::api::core::v1::Secret,
        k8s_openapi::api::core::v1::Service,
        k8s_openapi::api::core::v1::ServiceAccount,
        k8s_openapi::api::discovery::v1::EndpointSlice,
        k8s_openapi::api::events::v1::Event,
        k8s_openapi::api::flowcontrol::v1::FlowSchema,
        k8s_openapi::api::flowcontrol::v1::PriorityLevelConfiguration,
        k8s_openapi::api::networking::v1::IPAddress,
        k8s_openapi::api::networking::v1::Ingress,
        k8s_openapi::api::networking::v1::IngressClass,
        k8s_openapi::api::networking::v1::NetworkPolicy,
        k8s_openapi::api::networking::v1::ServiceCIDR,
        k8s_openapi::api::networking::v1beta1::IPAddress,
        k8s_openapi::api::networking::v1beta1::ServiceCIDR,
        k8s_openapi::api::node::v1::RuntimeClass,
        k8s_openapi::api::policy::v1::PodDisruptionBudget,
        k8s_openapi::api::rbac::v1::ClusterRole,
        k8s_openapi::api::rbac::v1::ClusterRoleBinding,
        k8s_openapi::api::rbac::v1::Role,
        k8s_openapi::api::rbac::v1::RoleBinding,
        k8s_openapi::api::resource::v1::DeviceClass,
        k8s_openapi::api::resource::v1::ResourceClaim,
        k8s_openapi::api::resource::v1::ResourceClaimTemplate,
        k8s_openapi::api::resource::v1::ResourceSlice,
        k8s_openapi::api::resource::v1alpha3::DeviceTaintRule,
        k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest,
        k8s_openapi::api::resource::v1beta1::DeviceClass,
        k8s_openapi::api::resource::v1beta1::ResourceClaim,
        k8s_openapi::api::resource::v1beta1::ResourceClaimTemplate,
        k8s_openapi::api::resource::v1beta1::ResourceSlice,
        k8s_openapi::api::resource::v1beta2::DeviceClass,
        k8s_openapi::api::resource::v1beta2::DeviceTaintRule,
        k8s_openapi::api::resource::v1beta2::ResourceClaim,
        k8s_openapi::api::resource::v1beta2::ResourceClaimTemplate,
        k8s_openapi::api::resource::v1beta2::ResourceSlice,
        k8s_openapi::api::scheduling::v1::PriorityClass,
        k8s_openapi::api::scheduling::v1alpha2::PodGroup,
        k8s_openapi::api::scheduling::v1alpha2::Workload,
        k8s_openapi::api::storage::v1::CSIDriver,
        k8s_openapi::api::storage::v1::CSINode,
        k8s_openapi::api::storage::v1::CSIStorageCapacity,
        k8s_openapi::api::storage::v1::StorageClass,
        k8s_openapi::api::storage::v1::VolumeAttachment,
        k8s_openapi::api::storage::v1::VolumeAttributesClass,
        k8s_openapi::api::storage::v1beta1::VolumeAttributesClass,
        k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration,
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService,
    ];
    let source: String = kinds
        .iter()
        .enumerate()
        .map(|(position, (path, _))| {
            format!("#[webhook(validating, name = \"k{position:03}.a.b\")]\nfn k{position}(object: &{path}) {{}}\n")
        })
        .collect();
    let made = configurations(&[("src/lib.rs", &source)]);
    let webhooks = made[0]["webhooks"].as_array().expect("webhooks");
    assert_eq!(webhooks.len(), kinds.len());
    for ((path, [group, version, plural, kind]), webhook) in kinds.iter().zip(webhooks) {
        let rule = &webhook["rules"][0];
        let rule = [&rule["apiGroups"], &rule["apiVersions"], &rule["resources"]];
        assert_eq!(
            rule,
            [&json!([group]), &json!([version]), &json!([plural])],
            "{path}"
        );
        let group = group.replace('.', "-");
        let expected = format!("/validate-{group}-{version}-{}", kind.to_lowercase());
        assert_eq!(webhook["clientConfig"]["service"]["path"], expected, "{path}");
    }
}

#[cfg(feature = "envtest")]
mod server {
    use http::Request;
    use kube::Client;
    use rbuilder::envtest::Environment;
    use serde_json::Value;

    /// Every argument of the marker, as the generator's own tests have them.
    const SOURCES: [(&str, &str); 3] = [
        (
            "src/lib.rs",
            include_str!("../../generator/tests/cases/webhooks/in/src/lib.rs"),
        ),
        (
            "src/api/mod.rs",
            include_str!("../../generator/tests/cases/webhooks/in/src/api/mod.rs"),
        ),
        (
            "src/webhook/mod.rs",
            include_str!("../../generator/tests/cases/webhooks/in/src/webhook/mod.rs"),
        ),
    ];

    /// What the API server says to an object beside "yes".
    async fn post(client: &Client, object: &Value) -> Vec<String> {
        send(client, object, "").await
    }

    /// The same, of an object that is not kept.
    async fn dry_run(client: &Client, object: &Value) -> Vec<String> {
        send(client, object, "&dryRun=All").await
    }

    async fn send(client: &Client, object: &Value, query: &str) -> Vec<String> {
        let kind = object["kind"].as_str().expect("a kind").to_lowercase();
        let request = Request::post(format!(
            "/apis/admissionregistration.k8s.io/v1/{kind}s?fieldValidation=Strict{query}"
        ))
        .header("content-type", "application/json")
        .body(serde_json::to_vec(object).expect("JSON").into())
        .expect("a request");
        let response = client.send(request).await.expect("an answer");
        let status = response.status();
        let mut said: Vec<String> = response
            .headers()
            .get_all("warning")
            .iter()
            .map(|warning| format!("{kind}: {}", warning.to_str().unwrap_or_default()))
            .collect();
        if !status.is_success() {
            let body = response.into_body().collect_bytes().await.expect("a body");
            said.push(format!("{kind}: {status} {}", String::from_utf8_lossy(&body)));
        }
        said
    }

    #[rbuilder::envtest::test]
    async fn the_server_takes_every_configuration_without_a_warning(env: Environment) {
        let configurations = super::configurations(&SOURCES);
        assert_eq!(
            configurations.len(),
            3,
            "mutating, validating, and one of another name"
        );
        let mut said = Vec::new();
        for configuration in &configurations {
            said.extend(post(&env.client(), configuration).await);
        }
        assert!(said.is_empty(), "{}", said.join("\n"));

        // The test can fail: the server does look at what it is given.
        let mut wrong = configurations[0].clone();
        wrong["metadata"]["name"] = "wrong".into();
        wrong["webhooks"][0]["name"] = "short.name".into();
        assert_eq!(post(&env.client(), &wrong).await.len(), 1);
    }

    /// Both accept a match condition, or both refuse it.
    #[rbuilder::envtest::test]
    async fn match_conditions_are_judged_as_by_the_server(env: Environment) {
        let right = super::configurations(&[(
            "src/lib.rs",
            "#[webhook(validating, name = \"a.b.c\", match_condition(name = \"a\", expression = \"true\"))]\n\
             fn pods(pod: &k8s_openapi::api::core::v1::Pod) {}\n",
        )]);
        for (expression, accepted) in [
            ("request.dryRun", true),
            (
                "request.operation == 'CREATE' && 'a' in request.userInfo.groups",
                true,
            ),
            ("request.userInfo.extra['k'][0].startsWith('x')", true),
            ("request.resource.group != request.requestResource.group", true),
            ("object.metadata.name == 'a' || oldObject == null", true),
            ("has(request.options.propagationPolicy)", true),
            (
                "authorizer.group('').resource('pods').check('get').allowed()",
                true,
            ),
            ("request.name", false),
            ("object.spec.paused", false),
            ("request.user == 'a'", false),
            ("request.name == 1", false),
            ("self.x == 1", false),
            ("request.", false),
        ] {
            let mut configuration = right[0].clone();
            configuration["metadata"]["name"] = "asked".into();
            configuration["webhooks"][0]["matchConditions"][0]["expression"] = expression.into();
            let said = dry_run(&env.client(), &configuration).await;
            assert_eq!(
                said.is_empty(),
                accepted,
                "the server says of {expression}: {said:?}"
            );

            let source = format!(
                "#[webhook(validating, match_condition(name = \"a\", expression = {expression:?}))]\n\
                 fn pods(pod: &k8s_openapi::api::core::v1::Pod) {{}}\n"
            );
            let generated = super::generated(&[("src/lib.rs", &source)]);
            assert_eq!(
                !generated.files.is_empty(),
                accepted,
                "the generator says of {expression}: {:?}",
                generated.diagnostics
            );
        }
    }
}
