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
        "actions.github.com",
        "Actions Runner Controller",
        "actions/actions-runner-controller",
    ),
    (
        "actions.summerwind.dev",
        "Actions Runner Controller",
        "actions/actions-runner-controller",
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
    ("apps.kruise.io", "OpenKruise", "openkruise/kruise"),
    ("apps.openshift.io", "OpenShift", "openshift/api"),
    (
        "aquasecurity.github.io",
        "Trivy Operator",
        "aquasecurity/trivy-operator",
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
    ("chaos-mesh.org", "Chaos Mesh", "chaos-mesh/chaos-mesh"),
    ("cilium.io", "Cilium", "cilium/cilium"),
    (
        "clickhouse.altinity.com",
        "Altinity's ClickHouse Operator",
        "Altinity/clickhouse-operator",
    ),
    ("cluster.x-k8s.io", "Cluster API", "kubernetes-sigs/cluster-api"),
    (
        "config.gatekeeper.sh",
        "Gatekeeper",
        "open-policy-agent/gatekeeper",
    ),
    ("config.openshift.io", "OpenShift", "openshift/api"),
    (
        "configuration.konghq.com",
        "Kong",
        "Kong/kubernetes-ingress-controller",
    ),
    ("console.openshift.io", "OpenShift", "openshift/api"),
    (
        "constraints.gatekeeper.sh",
        "Gatekeeper",
        "open-policy-agent/gatekeeper",
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
    (
        "elbv2.k8s.aws",
        "AWS Load Balancer Controller",
        "kubernetes-sigs/aws-load-balancer-controller",
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
    ("gateway.envoyproxy.io", "Envoy Gateway", "envoyproxy/gateway"),
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
        "grafana.integreatly.org",
        "Grafana Operator",
        "grafana/grafana-operator",
    ),
    (
        "groupsnapshot.storage.k8s.io",
        "CSI snapshots",
        "kubernetes-csi/external-snapshotter",
    ),
    (
        "helm.cattle.io",
        "helm-controller of K3s",
        "k3s-io/helm-controller",
    ),
    ("helm.toolkit.fluxcd.io", "Flux", "fluxcd/helm-controller"),
    ("image.openshift.io", "OpenShift", "openshift/api"),
    (
        "image.toolkit.fluxcd.io",
        "Flux",
        "fluxcd/image-automation-controller",
    ),
    (
        "inference.networking.k8s.io",
        "Gateway API Inference Extension",
        "kubernetes-sigs/gateway-api-inference-extension",
    ),
    (
        "inference.networking.x-k8s.io",
        "Gateway API Inference Extension",
        "kubernetes-sigs/gateway-api-inference-extension",
    ),
    ("install.istio.io", "Istio", "istio/istio"),
    (
        "ipam.cluster.x-k8s.io",
        "Cluster API",
        "kubernetes-sigs/cluster-api",
    ),
    ("jaegertracing.io", "Jaeger", "jaegertracing/jaeger-operator"),
    ("jobset.x-k8s.io", "JobSet", "kubernetes-sigs/jobset"),
    ("k8s.cni.cncf.io", "Multus", "k8snetworkplumbingwg/multus-cni"),
    (
        "k8s.mariadb.com",
        "MariaDB Operator",
        "mariadb-operator/mariadb-operator",
    ),
    (
        "k8s.nginx.org",
        "NGINX Ingress Controller",
        "nginx/kubernetes-ingress",
    ),
    ("k8s.ovn.org", "OVN-Kubernetes", "ovn-kubernetes/ovn-kubernetes"),
    ("kafka.strimzi.io", "Strimzi", "strimzi/strimzi-kafka-operator"),
    ("karpenter.k8s.aws", "Karpenter", "aws/karpenter-provider-aws"),
    ("karpenter.sh", "Karpenter", "kubernetes-sigs/karpenter"),
    ("keda.sh", "KEDA", "kedacore/keda"),
    (
        "kibana.k8s.elastic.co",
        "Elastic Cloud on Kubernetes",
        "elastic/cloud-on-k8s",
    ),
    ("kubeflow.org", "Kubeflow", "kubeflow/trainer"),
    ("kubevirt.io", "KubeVirt", "kubevirt/kubevirt"),
    ("kueue.x-k8s.io", "Kueue", "kubernetes-sigs/kueue"),
    (
        "kustomize.toolkit.fluxcd.io",
        "Flux",
        "fluxcd/kustomize-controller",
    ),
    ("kyverno.io", "Kyverno", "kyverno/kyverno"),
    (
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "kubernetes-sigs/lws",
    ),
    ("longhorn.io", "Longhorn", "longhorn/longhorn"),
    ("machine.openshift.io", "OpenShift", "openshift/api"),
    ("machineconfiguration.openshift.io", "OpenShift", "openshift/api"),
    ("management.cattle.io", "Rancher", "rancher/rancher"),
    (
        "mellanox.com",
        "NVIDIA Network Operator",
        "Mellanox/network-operator",
    ),
    ("messaging.knative.dev", "Knative", "knative/eventing"),
    ("metallb.io", "MetalLB", "metallb/metallb"),
    ("metrics.k8s.io", "the metrics API", "kubernetes/metrics"),
    ("minio.min.io", "MinIO Operator", "minio/operator"),
    (
        "monitoring.coreos.com",
        "Prometheus Operator",
        "prometheus-operator/prometheus-operator",
    ),
    (
        "multicluster.x-k8s.io",
        "Multi-Cluster Services API",
        "kubernetes-sigs/mcs-api",
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
        "objectstorage.k8s.io",
        "Container Object Storage Interface",
        "kubernetes-sigs/container-object-storage-interface",
    ),
    (
        "opentelemetry.io",
        "OpenTelemetry Operator",
        "open-telemetry/opentelemetry-operator",
    ),
    ("operator.openshift.io", "OpenShift", "openshift/api"),
    ("operator.tigera.io", "Calico", "tigera/operator"),
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
    (
        "pgv2.percona.com",
        "Percona Operators",
        "percona/percona-postgresql-operator",
    ),
    ("pkg.crossplane.io", "Crossplane", "crossplane/crossplane"),
    ("policies.kyverno.io", "Kyverno", "kyverno/kyverno"),
    (
        "policy.networking.k8s.io",
        "Network Policy API",
        "kubernetes-sigs/network-policy-api",
    ),
    (
        "postgres-operator.crunchydata.com",
        "Crunchy Postgres for Kubernetes",
        "CrunchyData/postgres-operator",
    ),
    (
        "postgresql.cnpg.io",
        "CloudNativePG",
        "cloudnative-pg/cloudnative-pg",
    ),
    ("project.openshift.io", "OpenShift", "openshift/api"),
    ("projectcalico.org", "Calico", "projectcalico/calico"),
    ("projectcontour.io", "Contour", "projectcontour/contour"),
    ("provisioning.cattle.io", "Rancher", "rancher/rancher"),
    (
        "psmdb.percona.com",
        "Percona Operators",
        "percona/percona-server-mongodb-operator",
    ),
    (
        "pxc.percona.com",
        "Percona Operators",
        "percona/percona-xtradb-cluster-operator",
    ),
    ("rabbitmq.com", "RabbitMQ Operators", "rabbitmq/cluster-operator"),
    ("ray.io", "KubeRay", "ray-project/kuberay"),
    ("route.openshift.io", "OpenShift", "openshift/api"),
    ("scheduling.volcano.sh", "Volcano", "volcano-sh/volcano"),
    (
        "secrets-store.csi.x-k8s.io",
        "Secrets Store CSI driver",
        "kubernetes-sigs/secrets-store-csi-driver",
    ),
    (
        "secrets.hashicorp.com",
        "Vault Secrets Operator",
        "hashicorp/vault-secrets-operator",
    ),
    ("security.istio.io", "Istio", "istio/istio"),
    ("security.openshift.io", "OpenShift", "openshift/api"),
    ("serving.knative.dev", "Knative", "knative/serving"),
    ("serving.kserve.io", "KServe", "kserve/kserve"),
    (
        "snapshot.storage.k8s.io",
        "CSI snapshots",
        "kubernetes-csi/external-snapshotter",
    ),
    ("source.toolkit.fluxcd.io", "Flux", "fluxcd/source-controller"),
    ("sources.knative.dev", "Knative", "knative/eventing"),
    (
        "sparkoperator.k8s.io",
        "Spark Operator",
        "kubeflow/spark-operator",
    ),
    (
        "sriovnetwork.openshift.io",
        "SR-IOV Network Operator",
        "k8snetworkplumbingwg/sriov-network-operator",
    ),
    ("tekton.dev", "Tekton", "tektoncd/pipeline"),
    ("telemetry.istio.io", "Istio", "istio/istio"),
    (
        "templates.gatekeeper.sh",
        "Gatekeeper",
        "open-policy-agent/gatekeeper",
    ),
    (
        "topology.node.k8s.io",
        "Node Resource Topology",
        "k8stopologyawareschedwg/noderesourcetopology-api",
    ),
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

/// Returns the project that an API group belongs to: one of those that publish their CRDs and are not written in Rust, such as
/// `cert-manager` for `cert-manager.io`.
pub fn find_group_owner(group: &str) -> Option<&'static str> {
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
        assert_eq!(
            find_group_owner("monitoring.coreos.com"),
            Some("Prometheus Operator")
        );
        assert_eq!(
            find_group_owner("sriovnetwork.openshift.io"),
            Some("SR-IOV Network Operator")
        );
        assert_eq!(find_group_owner("coreos.com"), None);
        assert_eq!(
            find_group_owner("iam.cnrm.cloud.google.com"),
            Some("Config Connector")
        );
        assert_eq!(
            find_group_owner("eks.services.k8s.aws"),
            Some("AWS Controllers for Kubernetes")
        );
        assert_eq!(find_group_owner("services.k8s.aws"), None);
    }
}
