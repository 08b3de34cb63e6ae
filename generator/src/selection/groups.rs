//! API groups of projects that install their own CRDs, and whose kinds other programs declare to talk to them.

/// A group, the project it belongs to, and the repository that holds its CRDs.
type Row = (&'static str, &'static str, &'static str);

/// Ends of groups, of projects that have a group for each service.
const FAMILIES: [(&str, &str); 2] = [
    (".cnrm.cloud.google.com", "Config Connector"),
    (".services.k8s.aws", "AWS Controllers for Kubernetes"),
];

/// Sorted by group. A group is listed when its CRDs are published by a project that is not written in Rust, so that a
/// Rust type of it can be nothing but a binding; a project that owns a listed group all the same says so in PROJECT or
/// in `[package.metadata.rbuilder]`.
const GROUPS: &[Row] = &[
    ("acid.zalan.do", "Postgres Operator", "zalando/postgres-operator"),
    (
        "acme.cert-manager.io",
        "cert-manager",
        "cert-manager/cert-manager",
    ),
    (
        "addons.cluster.x-k8s.io",
        "Cluster API",
        "kubernetes-sigs/cluster-api",
    ),
    ("agones.dev", "Agones", "googleforgames/agones"),
    (
        "apiextensions.crossplane.io",
        "Crossplane",
        "crossplane/crossplane",
    ),
    ("argoproj.io", "Argo", "argoproj/argo-cd"),
    ("autoscaling.agones.dev", "Agones", "googleforgames/agones"),
    (
        "autoscaling.k8s.io",
        "Vertical Pod Autoscaler",
        "kubernetes/autoscaler",
    ),
    ("batch.volcano.sh", "Volcano", "volcano-sh/volcano"),
    ("bitnami.com", "Sealed Secrets", "bitnami-labs/sealed-secrets"),
    (
        "bootstrap.cluster.x-k8s.io",
        "Cluster API",
        "kubernetes-sigs/cluster-api",
    ),
    (
        "cdi.kubevirt.io",
        "KubeVirt",
        "kubevirt/containerized-data-importer",
    ),
    ("ceph.rook.io", "Rook", "rook/rook"),
    ("cert-manager.io", "cert-manager", "cert-manager/cert-manager"),
    ("cilium.io", "Cilium", "cilium/cilium"),
    ("cluster.x-k8s.io", "Cluster API", "kubernetes-sigs/cluster-api"),
    (
        "configuration.konghq.com",
        "Kong",
        "Kong/kubernetes-ingress-controller",
    ),
    (
        "controlplane.cluster.x-k8s.io",
        "Cluster API",
        "kubernetes-sigs/cluster-api",
    ),
    ("crd.projectcalico.org", "Calico", "projectcalico/calico"),
    ("custom.metrics.k8s.io", "the metrics API", "kubernetes/metrics"),
    (
        "elasticsearch.k8s.elastic.co",
        "Elastic Cloud on Kubernetes",
        "elastic/cloud-on-k8s",
    ),
    ("eventing.keda.sh", "KEDA", "kedacore/keda"),
    ("eventing.knative.dev", "Knative", "knative/eventing"),
    ("extensions.istio.io", "Istio", "istio/istio"),
    (
        "external-secrets.io",
        "External Secrets",
        "external-secrets/external-secrets",
    ),
    ("external.metrics.k8s.io", "the metrics API", "kubernetes/metrics"),
    (
        "externaldns.k8s.io",
        "ExternalDNS",
        "kubernetes-sigs/external-dns",
    ),
    ("flagger.app", "Flagger", "fluxcd/flagger"),
    ("fleet.cattle.io", "Fleet", "rancher/fleet"),
    (
        "gateway.networking.k8s.io",
        "Gateway API",
        "kubernetes-sigs/gateway-api",
    ),
    (
        "gateway.networking.x-k8s.io",
        "Gateway API",
        "kubernetes-sigs/gateway-api",
    ),
    (
        "generators.external-secrets.io",
        "External Secrets",
        "external-secrets/external-secrets",
    ),
    ("getambassador.io", "Emissary", "emissary-ingress/emissary"),
    (
        "helm.cattle.io",
        "helm-controller of K3s",
        "k3s-io/helm-controller",
    ),
    ("helm.toolkit.fluxcd.io", "Flux", "fluxcd/helm-controller"),
    (
        "image.toolkit.fluxcd.io",
        "Flux",
        "fluxcd/image-automation-controller",
    ),
    (
        "ipam.cluster.x-k8s.io",
        "Cluster API",
        "kubernetes-sigs/cluster-api",
    ),
    ("jaegertracing.io", "Jaeger", "jaegertracing/jaeger-operator"),
    ("k8s.cni.cncf.io", "Multus", "k8snetworkplumbingwg/multus-cni"),
    (
        "k8s.nginx.org",
        "NGINX Ingress Controller",
        "nginx/kubernetes-ingress",
    ),
    ("kafka.strimzi.io", "Strimzi", "strimzi/strimzi-kafka-operator"),
    ("karpenter.k8s.aws", "Karpenter", "aws/karpenter-provider-aws"),
    ("karpenter.sh", "Karpenter", "kubernetes-sigs/karpenter"),
    ("keda.sh", "KEDA", "kedacore/keda"),
    (
        "kibana.k8s.elastic.co",
        "Elastic Cloud on Kubernetes",
        "elastic/cloud-on-k8s",
    ),
    ("kubevirt.io", "KubeVirt", "kubevirt/kubevirt"),
    (
        "kustomize.toolkit.fluxcd.io",
        "Flux",
        "fluxcd/kustomize-controller",
    ),
    ("kyverno.io", "Kyverno", "kyverno/kyverno"),
    ("longhorn.io", "Longhorn", "longhorn/longhorn"),
    ("management.cattle.io", "Rancher", "rancher/rancher"),
    ("messaging.knative.dev", "Knative", "knative/eventing"),
    ("metallb.io", "MetalLB", "metallb/metallb"),
    ("metrics.k8s.io", "the metrics API", "kubernetes/metrics"),
    (
        "monitoring.coreos.com",
        "Prometheus Operator",
        "prometheus-operator/prometheus-operator",
    ),
    ("networking.istio.io", "Istio", "istio/istio"),
    (
        "nfd.k8s-sigs.io",
        "Node Feature Discovery",
        "kubernetes-sigs/node-feature-discovery",
    ),
    (
        "notification.toolkit.fluxcd.io",
        "Flux",
        "fluxcd/notification-controller",
    ),
    ("objectbucket.io", "Rook", "rook/rook"),
    (
        "opentelemetry.io",
        "OpenTelemetry Operator",
        "open-telemetry/opentelemetry-operator",
    ),
    (
        "operator.victoriametrics.com",
        "VictoriaMetrics Operator",
        "VictoriaMetrics/operator",
    ),
    (
        "operators.coreos.com",
        "Operator Lifecycle Manager",
        "operator-framework/api",
    ),
    ("pkg.crossplane.io", "Crossplane", "crossplane/crossplane"),
    ("policies.kyverno.io", "Kyverno", "kyverno/kyverno"),
    (
        "policy.networking.k8s.io",
        "Network Policy API",
        "kubernetes-sigs/network-policy-api",
    ),
    (
        "postgresql.cnpg.io",
        "CloudNativePG",
        "cloudnative-pg/cloudnative-pg",
    ),
    ("projectcontour.io", "Contour", "projectcontour/contour"),
    ("provisioning.cattle.io", "Rancher", "rancher/rancher"),
    ("rabbitmq.com", "RabbitMQ Operators", "rabbitmq/cluster-operator"),
    ("ray.io", "KubeRay", "ray-project/kuberay"),
    ("scheduling.volcano.sh", "Volcano", "volcano-sh/volcano"),
    (
        "secrets-store.csi.x-k8s.io",
        "Secrets Store CSI driver",
        "kubernetes-sigs/secrets-store-csi-driver",
    ),
    ("security.istio.io", "Istio", "istio/istio"),
    ("serving.knative.dev", "Knative", "knative/serving"),
    (
        "snapshot.storage.k8s.io",
        "CSI snapshots",
        "kubernetes-csi/external-snapshotter",
    ),
    ("source.toolkit.fluxcd.io", "Flux", "fluxcd/source-controller"),
    ("sources.knative.dev", "Knative", "knative/eventing"),
    ("tekton.dev", "Tekton", "tektoncd/pipeline"),
    ("telemetry.istio.io", "Istio", "istio/istio"),
    ("traefik.containo.us", "Traefik", "traefik/traefik"),
    ("traefik.io", "Traefik", "traefik/traefik"),
    ("triggers.tekton.dev", "Tekton", "tektoncd/triggers"),
    (
        "trust.cert-manager.io",
        "cert-manager",
        "cert-manager/trust-manager",
    ),
    (
        "upgrade.cattle.io",
        "System Upgrade Controller",
        "rancher/system-upgrade-controller",
    ),
    ("velero.io", "Velero", "vmware-tanzu/velero"),
    (
        "vpcresources.k8s.aws",
        "Amazon VPC Resource Controller",
        "aws/amazon-vpc-resource-controller-k8s",
    ),
    (
        "wgpolicyk8s.io",
        "Policy Report API",
        "kubernetes-sigs/wg-policy-prototypes",
    ),
];

/// The project that a group belongs to, where it is known.
pub(super) fn owner_of(group: &str) -> Option<&'static str> {
    if let Ok(row) = GROUPS.binary_search_by(|(known, ..)| (*known).cmp(group)) {
        return Some(GROUPS[row].1);
    }
    let family = FAMILIES.iter().find(|(suffix, ..)| group.ends_with(suffix));
    family.map(|(_, owner)| *owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_sorted_and_known_once() {
        assert!(GROUPS.is_sorted_by(|(a, ..), (b, ..)| a < b));
        assert!(
            GROUPS
                .iter()
                .all(|(.., repository)| repository.split('/').count() == 2)
        );
        assert_eq!(owner_of("monitoring.coreos.com"), Some("Prometheus Operator"));
        assert_eq!(owner_of("coreos.com"), None);
        assert_eq!(owner_of("iam.cnrm.cloud.google.com"), Some("Config Connector"));
        assert_eq!(
            owner_of("eks.services.k8s.aws"),
            Some("AWS Controllers for Kubernetes")
        );
        assert_eq!(owner_of("services.k8s.aws"), None);
    }
}
