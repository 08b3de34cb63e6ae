//! Discovery.

use kube::core::GroupVersionKind;
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Client, discovery};
use rbuilder::DynamicKind;

use crate::servers::{Server, on_both_servers};
use crate::support::Place;

on_both_servers!(
    version_endpoint_responds,
    discovery_reports_scopes_and_verbs,
    aggregated_discovery_matches,
    groups_and_versions_are_listed,
);

async fn version_endpoint_responds(server: Server) {
    let place = Place::new(server).await;
    let version = place.client.apiserver_version().await.unwrap();
    assert_eq!(version.major, "1");
    assert!(version.minor.parse::<u8>().unwrap() >= 33);
    assert_eq!(place.raw("GET", "/readyz", &[], "").await, (200, "ok".to_owned()));
}

fn check(found: &Discovery) {
    let pod = GroupVersionKind::gvk("", "v1", "Pod");
    let (resource, capabilities) = found.resolve_gvk(&pod).unwrap();
    assert_eq!(
        (resource.plural.as_str(), &capabilities.scope),
        ("pods", &Scope::Namespaced)
    );
    let jar = GroupVersionKind::gvk("apiserver.example.com", "v1", "Jar");
    let (resource, capabilities) = found.resolve_gvk(&jar).unwrap();
    assert_eq!(resource.plural, "jars");
    assert!(capabilities.supports_operation(verbs::WATCH));
    let mut subresources: Vec<_> = capabilities
        .subresources
        .iter()
        .map(|(one, _)| one.plural.as_str())
        .collect();
    subresources.sort_unstable();
    assert_eq!(subresources, ["scale", "status"]);
    let shelf = GroupVersionKind::gvk("apiserver.example.com", "v1", "Shelf");
    assert_eq!(found.resolve_gvk(&shelf).unwrap().1.scope, Scope::Cluster);
    let group = found.get("apiserver.example.com").unwrap();
    assert_eq!(group.preferred_version_or_latest(), "v2");
    assert!(
        found
            .resolve_gvk(&GroupVersionKind::gvk("apiserver.example.com", "v1", "Pot"))
            .is_none()
    );
}

async fn discovery_reports_scopes_and_verbs(server: Server) {
    let place = Place::new(server).await;
    check(&only(&place.client).run().await.unwrap());
    let kind = GroupVersionKind::gvk("apiserver.example.com", "v2", "Jar");
    let found = DynamicKind::discover(&place.client, &kind).await.unwrap();
    assert_eq!(
        (
            found.resource().plural.as_str(),
            found.resource().version.as_str()
        ),
        ("jars", "v2")
    );
    let group = discovery::group(&place.client, "apps").await.unwrap();
    assert!(group.recommended_kind("Deployment").is_some());
}

async fn aggregated_discovery_matches(server: Server) {
    let place = Place::new(server).await;
    check(&only(&place.client).run_aggregated().await.unwrap());
}

fn only(client: &Client) -> Discovery {
    Discovery::new(client.clone()).filter(&["", "apps", "apiserver.example.com"])
}

async fn groups_and_versions_are_listed(server: Server) {
    let place = Place::new(server).await;
    let groups = place.client.list_api_groups().await.unwrap().groups;
    let names: Vec<_> = groups.iter().map(|group| group.name.as_str()).collect();
    for name in [
        "apps",
        "batch",
        "coordination.k8s.io",
        "rbac.authorization.k8s.io",
        "apiserver.example.com",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert_eq!(
        place.client.list_core_api_versions().await.unwrap().versions,
        ["v1"]
    );
    let core = place.client.list_core_api_resources("v1").await.unwrap();
    let pods = core.resources.iter().find(|one| one.name == "pods").unwrap();
    assert_eq!(
        (pods.kind.as_str(), pods.short_names.as_deref()),
        ("Pod", Some(&["po".to_owned()][..]))
    );
    assert_eq!(place.raw("GET", "/apis/none.example.com", &[], "").await.0, 404);
}
