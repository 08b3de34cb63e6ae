//! Namespaces and CRDs, whose deletion also deletes everything in them.
//!
//! The garbage collector and the API server don't ask who created an object in a namespace, or an
//! object of a custom kind. So namespaces and CRDs never get an owner reference, and are only deleted
//! if the set asks for it, nothing in them is wanted, and nothing in them belongs to others.

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::{GroupVersionKind, ObjectMeta};
use kube::discovery::{ApiGroup, Discovery, Scope, verbs};
use kube::{Api, Client};
use rbuilder_kubernetes::crd::Crd;
use rbuilder_kubernetes::gvk;

use super::claim::{SetOwner, is_kept};
use super::prune::Found;
use super::readiness::{CRD, NAMESPACE};
use super::record::Entry;
use crate::causes::describe;
use crate::ctx::Ctx;
use crate::error::Error;
use crate::hash::HashSet;
use crate::object::DynamicKind;

/// Number of objects in each page of a list.
const PAGE: u32 = 500;
/// Resources that don't matter to anybody once the rest of the namespace is gone. Endpoints are
/// deleted with their Service, but don't have an owner reference.
const IGNORED: [&str; 2] = ["events", "endpoints"];
/// Objects that Kubernetes and OpenShift create in every namespace.
const DEFAULTS: [(&str, &str); 3] = [
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "openshift-service-ca.crt"),
];
/// Annotation on Secrets with a token, which are deleted with their ServiceAccount.
const SERVICE_ACCOUNT: &str = "kubernetes.io/service-account.name";

impl Entry {
    pub(super) fn is_container(&self) -> bool {
        [NAMESPACE, CRD].contains(&(&*self.group, &*self.kind))
    }

    /// Returns `true` if the deletion of this object would delete the other one.
    pub(super) fn contains(&self, object: &Self) -> bool {
        match (&*self.group, &*self.kind) {
            NAMESPACE => object.namespace == self.name,
            CRD => self.name == object.crd_name(),
            _ => false,
        }
    }

    /// Returns the name of the CRD, if the kind has one.
    pub(super) fn crd_name(&self) -> String {
        gvk::qualify(&self.plural, &self.group)
    }
}

/// A resource whose objects can be listed and deleted.
pub(super) struct Deletable {
    pub(super) resource: ApiResource,
    pub(super) is_namespaced: bool,
}

/// Discovers all resources whose objects can be listed and deleted.
pub(super) async fn discover(client: Client) -> Result<Vec<Deletable>, Error> {
    // Fall back for API servers without aggregated discovery.
    let discovered = match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovered) => discovered,
        Err(_) => Discovery::new(client).run().await?,
    };
    let groups = discovered.groups_alphabetical();
    Ok(groups.into_iter().flat_map(resources_of).collect())
}

fn resources_of(group: &ApiGroup) -> Vec<Deletable> {
    let resources = group.recommended_resources().into_iter();
    let usable = resources.filter(|(resource, can)| {
        let mut verbs = [verbs::LIST, verbs::DELETE].iter();
        verbs.all(|verb| can.supports_operation(verb)) && !IGNORED.contains(&&*resource.plural)
    });
    usable
        .map(|(resource, can)| Deletable {
            resource,
            is_namespaced: can.scope == Scope::Namespaced,
        })
        .collect()
}

impl<S> Ctx<S> {
    /// Returns a reason not to delete a namespace or a CRD: an object in it that doesn't belong to
    /// the owner, or a kind whose objects can't be listed.
    pub(super) async fn find_foreign_content(
        &self,
        owner: &SetOwner,
        container: &Entry,
        found: &Found,
    ) -> Result<Option<String>, Error> {
        let mut resources = match container.group.is_empty() {
            true => discover(self.client()).await?,
            // Discovery may not know the kind yet.
            false => served_by(&found.api.get(&container.name).await?),
        };
        let namespace = Some(&*container.name).filter(|_| container.group.is_empty());
        resources.retain(|found| found.is_namespaced || namespace.is_none());
        if resources.is_empty() {
            return Ok(Some(
                "its objects cannot be listed, because it is not served".to_owned(),
            ));
        }
        let mut contents = Vec::new();
        for Deletable { resource, .. } in resources {
            match list(self.client(), &resource, namespace, "").await {
                Ok(listed) => contents.extend(listed),
                // The kind was deleted after discovery, with all of its objects.
                Err(kube::Error::Api(status)) if status.code == 404 && namespace.is_some() => {}
                Err(error) if is_unlistable(&error) => {
                    let reason = describe(&error);
                    return Ok(Some(format!("cannot list {}: {reason}", resource.plural)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let uids = contents
            .iter()
            .filter_map(|(_, meta)| meta.uid.as_deref())
            .collect();
        let foreign = contents
            .iter()
            .find(|(entry, meta)| !is_ours(owner, entry, meta, &uids));
        Ok(foreign.map(|(entry, _)| format!("it contains {entry}")))
    }
}

/// Returns the resource of a CRD in one of the served versions.
fn served_by(crd: &DynamicObject) -> Vec<Deletable> {
    let crd = Crd::of(&crd.data);
    let kinds = kinds_of_crd(crd).into_iter().zip(crd.versions());
    let mut served = kinds.filter(|(_, version)| version.is_served);
    served
        .next()
        .map(|(kind, _)| Deletable {
            resource: kind.resource().clone(),
            is_namespaced: kind.is_namespaced(),
        })
        .into_iter()
        .collect()
}

/// Returns the kind that a CRD defines, in each version.
pub(super) fn kinds_of_crd(crd: Crd<'_>) -> Vec<DynamicKind> {
    let kinds = crd.versions().map(|version| {
        let kind = GroupVersionKind::gvk(crd.group(), version.name, crd.kind());
        let resource = ApiResource::from_gvk_with_plural(&kind, crd.plural());
        match crd.is_namespaced() {
            true => DynamicKind::namespaced(resource),
            false => DynamicKind::cluster_wide(resource),
        }
    });
    kinds.collect()
}

/// Lists the metadata of objects with certain labels, in pages.
pub(super) async fn list(
    client: Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    labels: &str,
) -> Result<Vec<(Entry, ObjectMeta)>, kube::Error> {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    };
    let mut params = ListParams::default().labels(labels).limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = api.list_metadata(&params).await?;
        let metas = page.items.into_iter().map(|item| item.metadata);
        found.extend(metas.map(|meta| (Entry::of_resource(resource, &meta), meta)));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// Whether an object may be deleted along with what contains it. An owner among the listed objects
/// is judged by itself.
fn is_ours(owner: &SetOwner, entry: &Entry, meta: &ObjectMeta, listed: &HashSet<&str>) -> bool {
    if is_kept(meta) {
        return false;
    }
    let references = meta.owner_references.as_deref().unwrap_or_default();
    let has_annotation = |name: &str| {
        meta.annotations
            .as_ref()
            .is_some_and(|all| all.contains_key(name))
    };
    owner.owns(meta)
        || owner.reference_index(meta).is_some()
        || references
            .iter()
            .any(|reference| listed.contains(&*reference.uid))
        || meta.deletion_timestamp.is_some()
        || DEFAULTS.contains(&(&*entry.kind, &*entry.name))
        || (entry.kind == "Secret" && has_annotation(SERVICE_ACCOUNT))
}

/// Returns `true` if objects cannot be listed for a reason that a retry is unlikely to fix.
pub(super) fn is_unlistable(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [403, 404, 405, 503].contains(&status.code))
}
