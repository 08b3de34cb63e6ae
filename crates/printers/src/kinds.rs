//! The cells of built-in kinds. Columns are in `columns.txt`, in the same order.

use serde_json::Value;

use crate::cell::Cell::{
    AgeOr, Compute, Count, Flag, Fraction, Images, Join, Labels, Names, NonEmptyOr, Number, NumberOr, Print,
    Selector, Text, TextOr,
};
use crate::cell::{AGE, Cell, NAME};
use crate::view::{View, text};
use crate::{Row, pod, row, text as print};

const CONTAINERS: &str = "/spec/template/spec/containers";
const JOB_CONTAINERS: &str = "/spec/jobTemplate/spec/template/spec/containers";

/// Matches each group: the kind is the same in all groups that have it.
const ANY: &str = "*";

/// Group, kind, cells. Pods are in `pod.rs`.
#[rustfmt::skip]
const KINDS: &[(&str, &str, &[Cell])] = &[
    ("", "ComponentStatus", &[NAME, Print(print::component_status), Print(print::component_message), Print(print::component_error)]),
    ("", "ConfigMap", &[NAME, Compute(print::config_map_data), AGE]),
    ("", "Endpoints", &[NAME, Print(print::endpoints), AGE]),
    ("", "Namespace", &[NAME, Text("/status/phase"), AGE]),
    ("", "Node", &[NAME, Print(print::node_status), Print(print::node_roles), AGE, Text("/status/nodeInfo/kubeletVersion"),
        Print(print::internal_ip), Print(print::external_ip), NonEmptyOr("/status/nodeInfo/osImage", "<unknown>"),
        Print(print::kernel_version), NonEmptyOr("/status/nodeInfo/containerRuntimeVersion", "<unknown>")]),
    ("", "PersistentVolume", &[NAME, TextOr("/spec/capacity/storage", "0"), Print(print::volume_modes),
        Text("/spec/persistentVolumeReclaimPolicy"), Print(print::volume_phase), Print(print::volume_claim),
        Print(print::storage_class), TextOr("/spec/volumeAttributesClassName", "<unset>"), Text("/status/reason"), AGE,
        TextOr("/spec/volumeMode", "<unset>")]),
    ("", "PersistentVolumeClaim", &[NAME, Print(print::volume_phase), Text("/spec/volumeName"), Print(print::claim_capacity),
        Print(print::claim_modes), Print(print::storage_class), TextOr("/spec/volumeAttributesClassName", "<unset>"), AGE,
        TextOr("/spec/volumeMode", "<unset>")]),
    ("", "PodTemplate", &[NAME, Names("/template/spec/containers"), Images("/template/spec/containers"),
        Labels("/template/metadata/labels")]),
    ("", "ReplicationController", &[NAME, Number("/spec/replicas"), Number("/status/replicas"),
        Number("/status/readyReplicas"), AGE, Names(CONTAINERS), Images(CONTAINERS), Labels("/spec/selector")]),
    ("", "ResourceQuota", &[NAME, Print(print::quota_requests), Print(print::quota_limits), AGE]),
    ("", "Secret", &[NAME, Text("/type"), Count("/data"), AGE]),
    ("", "Service", &[NAME, Text("/spec/type"), TextOr("/spec/clusterIPs/0", "<none>"), Print(print::external_ips),
        Print(print::service_ports), AGE, Labels("/spec/selector")]),
    ("", "ServiceAccount", &[NAME, AGE]),
    ("", "Status", &[Text("/status"), Text("/reason"), Text("/message")]),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy", &[NAME, Count("/spec/mutations"), Print(print::param_kind), AGE]),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", &[NAME, Text("/spec/policyName"), Print(print::param_ref), AGE]),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", &[NAME, Count("/webhooks"), AGE]),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", &[NAME, Count("/spec/validations"), Print(print::param_kind), AGE]),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", &[NAME, Text("/spec/policyName"), Print(print::param_ref), AGE]),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", &[NAME, Count("/webhooks"), AGE]),
    ("apiextensions.k8s.io", "CustomResourceDefinition", &[NAME, Text("/spec/scope"), Print(print::served_versions),
        Print(print::created_at), Text("/spec/group"), Text("/spec/names/kind"), Join("/spec/names/shortNames"), Compute(print::is_established)]),
    ("apiregistration.k8s.io", "APIService", &[NAME, Print(print::api_service), Print(print::api_status), AGE]),
    ("apps", "ControllerRevision", &[NAME, Print(print::controller), Number("/revision"), AGE]),
    ("apps", "DaemonSet", &[NAME, Number("/status/desiredNumberScheduled"), Number("/status/currentNumberScheduled"),
        Number("/status/numberReady"), Number("/status/updatedNumberScheduled"), Number("/status/numberAvailable"),
        Labels("/spec/template/spec/nodeSelector"), AGE, Names(CONTAINERS), Images(CONTAINERS), Selector("/spec/selector")]),
    ("apps", "Deployment", &[NAME, Fraction("/status/readyReplicas", "/spec/replicas"), Number("/status/updatedReplicas"),
        Number("/status/availableReplicas"), AGE, Names(CONTAINERS), Images(CONTAINERS), Print(print::deployment_selector)]),
    ("apps", "ReplicaSet", &[NAME, Number("/spec/replicas"), Number("/status/replicas"), Number("/status/readyReplicas"), AGE,
        Names(CONTAINERS), Images(CONTAINERS), Selector("/spec/selector")]),
    ("apps", "StatefulSet", &[NAME, Fraction("/status/readyReplicas", "/spec/replicas"), AGE, Names(CONTAINERS), Images(CONTAINERS)]),
    ("autoscaling", "HorizontalPodAutoscaler", &[NAME, Print(print::scale_target), Print(print::metrics),
        TextOr("/spec/minReplicas", "<unset>"), Number("/spec/maxReplicas"), Number("/status/currentReplicas"), AGE]),
    ("batch", "CronJob", &[NAME, Text("/spec/schedule"), TextOr("/spec/timeZone", "<none>"), Print(print::is_suspended),
        Count("/status/active"), AgeOr("/status/lastScheduleTime", "<none>"), AGE, Names(JOB_CONTAINERS), Images(JOB_CONTAINERS),
        Selector("/spec/jobTemplate/spec/selector")]),
    ("batch", "Job", &[NAME, Print(print::job_status), Print(print::job_completions), Print(print::job_duration), AGE,
        Names(CONTAINERS), Images(CONTAINERS), Selector("/spec/selector")]),
    ("certificates.k8s.io", "CertificateSigningRequest", &[NAME, AGE, NonEmptyOr("/spec/signerName", "<none>"),
        Text("/spec/username"), Print(print::requested_duration), Print(print::request_status)]),
    ("certificates.k8s.io", "ClusterTrustBundle", &[NAME, NonEmptyOr("/spec/signerName", "<none>")]),
    ("certificates.k8s.io", "PodCertificateRequest", &[NAME, Text("/spec/podName"), Text("/spec/serviceAccountName"),
        Text("/spec/nodeName"), Text("/spec/signerName"), Print(print::pod_certificate_state), Labels("/spec/unverifiedUserAnnotations")]),
    ("coordination.k8s.io", "Lease", &[NAME, Text("/spec/holderIdentity"), AGE]),
    ("coordination.k8s.io", "LeaseCandidate", &[NAME, Text("/spec/leaseName"), Text("/spec/binaryVersion"),
        Text("/spec/emulationVersion"), AGE]),
    ("discovery.k8s.io", "EndpointSlice", &[NAME, Text("/addressType"), Print(print::slice_ports), Print(print::slice_endpoints), AGE]),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", &[NAME, Text("/spec/priorityLevelConfiguration/name"),
        Number("/spec/matchingPrecedence"), TextOr("/spec/distinguisherMethod/type", "<none>"), AGE, Print(print::is_dangling)]),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", &[NAME, Text("/spec/type"),
        NumberOr("/spec/limited/nominalConcurrencyShares", "<none>"), NumberOr("/spec/limited/limitResponse/queuing/queues", "<none>"),
        NumberOr("/spec/limited/limitResponse/queuing/handSize", "<none>"),
        NumberOr("/spec/limited/limitResponse/queuing/queueLengthLimit", "<none>"), AGE]),
    ("internal.apiserver.k8s.io", "StorageVersion", &[NAME, TextOr("/status/commonEncodingVersion", "<unset>"),
        Print(print::storage_versions), AGE]),
    ("networking.k8s.io", "IPAddress", &[NAME, Print(print::parent_ref), AGE]),
    ("networking.k8s.io", "Ingress", &[NAME, TextOr("/spec/ingressClassName", "<none>"), Print(print::hosts),
        Print(print::load_balancer), Print(print::ingress_ports), AGE]),
    ("networking.k8s.io", "IngressClass", &[Print(print::ingress_class), Text("/spec/controller"), Print(print::class_parameters), AGE]),
    ("networking.k8s.io", "NetworkPolicy", &[NAME, Selector("/spec/podSelector"), AGE]),
    ("networking.k8s.io", "ServiceCIDR", &[NAME, Join("/spec/cidrs"), AGE]),
    ("node.k8s.io", "RuntimeClass", &[NAME, Text("/handler"), AGE]),
    ("policy", "PodDisruptionBudget", &[NAME, TextOr("/spec/minAvailable", "N/A"), TextOr("/spec/maxUnavailable", "N/A"),
        Number("/status/disruptionsAllowed"), AGE]),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", &[NAME, Print(print::role_ref), AGE, Print(print::users),
        Print(print::groups), Print(print::service_accounts)]),
    ("rbac.authorization.k8s.io", "RoleBinding", &[NAME, Print(print::role_ref), AGE, Print(print::users),
        Print(print::groups), Print(print::service_accounts)]),
    ("resource.k8s.io", "DeviceClass", &[NAME, AGE]),
    ("resource.k8s.io", "DeviceTaintRule", &[NAME, Text("/spec/taint/key"), Text("/spec/taint/value"), Text("/spec/taint/effect"),
        AgeOr("/spec/taint/timeAdded", ""), AGE]),
    ("resource.k8s.io", "ResourceClaim", &[NAME, Print(print::claim_state), AGE]),
    ("resource.k8s.io", "ResourceClaimTemplate", &[NAME, AGE]),
    ("resource.k8s.io", "ResourceSlice", &[NAME, Text("/spec/nodeName"), Text("/spec/driver"), Text("/spec/pool/name"), AGE]),
    ("scheduling.k8s.io", "CompositePodGroup", &[NAME, Print(print::group_policy), TextOr("/spec/workloadRef/workloadName", "<none>"), AGE]),
    ("scheduling.k8s.io", "PodGroup", &[NAME, Print(print::group_policy), TextOr("/spec/workloadRef/workloadName", "<none>"),
        Print(print::group_status), AGE]),
    ("scheduling.k8s.io", "PriorityClass", &[NAME, Number("/value"), Flag("/globalDefault", false), AGE, Text("/preemptionPolicy")]),
    ("scheduling.k8s.io", "Workload", &[NAME, AGE]),
    ("storage.k8s.io", "CSIDriver", &[NAME, Flag("/spec/attachRequired", true), Flag("/spec/podInfoOnMount", false),
        Flag("/spec/storageCapacity", false), Print(print::token_requests), Flag("/spec/requiresRepublish", false),
        Print(print::lifecycle_modes), AGE]),
    ("storage.k8s.io", "CSINode", &[NAME, Count("/spec/drivers"), AGE]),
    ("storage.k8s.io", "StorageClass", &[NAME, Text("/provisioner"), TextOr("/reclaimPolicy", "Delete"),
        TextOr("/volumeBindingMode", "Immediate"), Flag("/allowVolumeExpansion", false), AGE]),
    ("storage.k8s.io", "VolumeAttachment", &[NAME, Text("/spec/attacher"), Text("/spec/source/persistentVolumeName"),
        Text("/spec/nodeName"), Flag("/status/attached", false), AGE]),
    ("storage.k8s.io", "VolumeAttributesClass", &[NAME, Text("/driverName"), AGE]),
    ("storagemigration.k8s.io", "StorageVersionMigration", &[NAME, Print(print::migrated_resource), Print(print::migration_status)]),
    (ANY, "Event", &[Print(print::last_seen), Text("/type"), Text("/reason"), Print(print::event_target), Print(print::event_field),
        Print(print::event_source), Print(print::event_message), Print(print::first_seen), Compute(print::event_count), NAME]),
    (ANY, "Scale", &[NAME, Number("/spec/replicas"), Number("/status/replicas"), AGE]),
];

/// The cells of kinds without columns of their own.
const DEFAULT: &[Cell] = &[NAME, Print(print::created_at)];

fn cells_of(group: &str, kind: &str) -> Option<&'static [Cell]> {
    let mut kinds = KINDS.iter();
    let is_kind = |(of, name, _): &&(&str, &str, _)| *name == kind && (*of == group || *of == ANY);
    kinds.find(is_kind).map(|(_, _, cells)| *cells)
}

fn is_pod(group: &str, kind: &str) -> bool {
    (group, kind) == ("", "Pod")
}

/// Returns whether a kind has cells of its own.
pub(crate) fn has_cells(group: &str, kind: &str) -> bool {
    is_pod(group, kind) || cells_of(group, kind).is_some()
}

/// Returns whether the table of an empty list has an empty list of rows. It is null otherwise.
pub(crate) fn has_empty_list(group: &str, kind: &str) -> bool {
    has_cells(group, kind) && kind != "CustomResourceDefinition"
}

/// Prints objects of a built-in kind.
pub(crate) fn print_rows<'a>(
    group: &str,
    kind: &str,
    objects: &'a [Value],
    is_list: bool,
    now: i128,
) -> Vec<Row<'a>> {
    let view = |object: &'a Value| View { object, now };
    if is_pod(group, kind) {
        return objects.iter().map(|object| pod::print(&view(object))).collect();
    }
    let mut objects: Vec<&Value> = objects.iter().collect();
    if kind == "FlowSchema" {
        objects.sort_by_key(|object| {
            let name = text(object, "/metadata/name").to_owned();
            (view(object).number("/spec/matchingPrecedence"), name)
        });
    }
    let default_class = match kind {
        "StorageClass" if is_list => default_storage_class(&objects),
        _ => None,
    };
    let cells = cells_of(group, kind).unwrap_or(DEFAULT);
    let print_row = |object: &'a Value| {
        let mut printed: Vec<Value> = cells.iter().map(|cell| cell.print(&view(object))).collect();
        if default_class == Some(text(object, "/metadata/name")) {
            printed[0] = format!("{} (default)", text(object, "/metadata/name")).into();
        }
        row(printed, object)
    };
    objects.into_iter().map(print_row).collect()
}

/// Returns the storage class of claims without one: the newest that is marked.
fn default_storage_class<'a>(classes: &[&'a Value]) -> Option<&'a str> {
    let is_marked = |class: &&&Value| {
        let annotations = &class["metadata"]["annotations"];
        ["", "beta."]
            .iter()
            .any(|infix| annotations[format!("storageclass.{infix}kubernetes.io/is-default-class")] == "true")
    };
    let age = |class: &Value| std::cmp::Reverse(text(class, "/metadata/creationTimestamp").to_owned());
    let marked = classes.iter().filter(is_marked);
    let newest = marked.min_by_key(|class| (age(class), text(class, "/metadata/name").to_owned()));
    newest.map(|class| text(class, "/metadata/name"))
}
