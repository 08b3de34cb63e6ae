//! The built-in kinds of Kubernetes with their subresources. Schemas are in the catalogue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rbuilder_catalogue::{Catalogue, Minor};
use serde_json::{Map, Value, json};

use super::kinds::{Definition, ResourceId, Scale, Source, Version};

/// Columns: group (`-` for the core group), version, kind, plural, traits, short names.
///
/// Contains the stable versions served by the Kubernetes release in `rbuilder_catalogue::versions`.
/// The trait `generation` marks kinds with a `metadata.generation`. `review` marks kinds whose
/// objects get a response but are not stored. `all` marks kinds of `kubectl get all`.
const TABLE: &str = "
- v1 ConfigMap configmaps namespaced cm
- v1 Endpoints endpoints namespaced ep
- v1 Event events namespaced ev
- v1 LimitRange limitranges namespaced limits
- v1 Namespace namespaces status ns
- v1 Node nodes status no
- v1 PersistentVolumeClaim persistentvolumeclaims namespaced,status pvc
- v1 PersistentVolume persistentvolumes status pv
- v1 Pod pods namespaced,status,generation,all po
- v1 PodTemplate podtemplates namespaced,generation -
- v1 ReplicationController replicationcontrollers namespaced,scale,status,generation,all rc
- v1 ResourceQuota resourcequotas namespaced,status quota
- v1 Secret secrets namespaced -
- v1 ServiceAccount serviceaccounts namespaced sa
- v1 Service services namespaced,status,all svc
apiregistration.k8s.io v1 APIService apiservices status -
apps v1 ControllerRevision controllerrevisions namespaced -
apps v1 DaemonSet daemonsets namespaced,status,generation,all ds
apps v1 Deployment deployments namespaced,scale,status,generation,all deploy
apps v1 ReplicaSet replicasets namespaced,scale,status,generation,all rs
apps v1 StatefulSet statefulsets namespaced,scale,status,generation,all sts
events.k8s.io v1 Event events namespaced ev
authentication.k8s.io v1 SelfSubjectReview selfsubjectreviews review -
authentication.k8s.io v1 TokenReview tokenreviews review -
authorization.k8s.io v1 LocalSubjectAccessReview localsubjectaccessreviews namespaced,review -
authorization.k8s.io v1 SelfSubjectAccessReview selfsubjectaccessreviews review -
authorization.k8s.io v1 SubjectAccessReview subjectaccessreviews review -
autoscaling v2 HorizontalPodAutoscaler horizontalpodautoscalers namespaced,status,generation,all hpa
batch v1 CronJob cronjobs namespaced,status,generation,all cj
batch v1 Job jobs namespaced,status,generation,all -
certificates.k8s.io v1 CertificateSigningRequest certificatesigningrequests status csr
networking.k8s.io v1 IngressClass ingressclasses generation -
networking.k8s.io v1 Ingress ingresses namespaced,status,generation ing
networking.k8s.io v1 IPAddress ipaddresses - ip
networking.k8s.io v1 NetworkPolicy networkpolicies namespaced,generation netpol
networking.k8s.io v1 ServiceCIDR servicecidrs status -
policy v1 PodDisruptionBudget poddisruptionbudgets namespaced,status,generation pdb
rbac.authorization.k8s.io v1 ClusterRoleBinding clusterrolebindings - -
rbac.authorization.k8s.io v1 ClusterRole clusterroles - -
rbac.authorization.k8s.io v1 RoleBinding rolebindings namespaced -
rbac.authorization.k8s.io v1 Role roles namespaced -
storage.k8s.io v1 CSIDriver csidrivers - -
storage.k8s.io v1 CSINode csinodes - -
storage.k8s.io v1 CSIStorageCapacity csistoragecapacities namespaced -
storage.k8s.io v1 StorageClass storageclasses - sc
storage.k8s.io v1 VolumeAttachment volumeattachments status -
storage.k8s.io v1 VolumeAttributesClass volumeattributesclasses - vac
admissionregistration.k8s.io v1 MutatingAdmissionPolicy mutatingadmissionpolicies generation -
admissionregistration.k8s.io v1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings generation -
admissionregistration.k8s.io v1 MutatingWebhookConfiguration mutatingwebhookconfigurations generation -
admissionregistration.k8s.io v1 ValidatingAdmissionPolicy validatingadmissionpolicies status,generation -
admissionregistration.k8s.io v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings generation -
admissionregistration.k8s.io v1 ValidatingWebhookConfiguration validatingwebhookconfigurations generation -
apiextensions.k8s.io v1 CustomResourceDefinition customresourcedefinitions status,generation crd,crds
scheduling.k8s.io v1 PriorityClass priorityclasses generation pc
coordination.k8s.io v1 Lease leases namespaced -
node.k8s.io v1 RuntimeClass runtimeclasses - -
discovery.k8s.io v1 EndpointSlice endpointslices namespaced,generation -
resource.k8s.io v1 DeviceClass deviceclasses generation -
resource.k8s.io v1 ResourceClaim resourceclaims namespaced,status -
resource.k8s.io v1 ResourceClaimTemplate resourceclaimtemplates namespaced -
resource.k8s.io v1 ResourceSlice resourceslices generation -
flowcontrol.apiserver.k8s.io v1 FlowSchema flowschemas status,generation -
flowcontrol.apiserver.k8s.io v1 PriorityLevelConfiguration prioritylevelconfigurations status,generation -
";

pub(super) fn builtin_definitions(minor: Minor) -> Vec<Arc<Definition>> {
    // Cache them, since tests start many servers.
    static KINDS: Mutex<BTreeMap<Minor, Vec<Arc<Definition>>>> = Mutex::new(BTreeMap::new());
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    let kinds = kinds.entry(minor).or_insert_with(|| {
        // Descriptions aren't needed for validating and merging.
        let catalogue = Arc::new(Catalogue::new(minor).without_descriptions());
        let rows = TABLE.lines();
        rows.filter_map(|row| definition(row, &catalogue))
            .map(Arc::new)
            .collect()
    });
    kinds.clone()
}

fn definition(row: &str, catalogue: &Arc<Catalogue<'static>>) -> Option<Definition> {
    let mut columns = row.split(' ');
    let mut next = || columns.next();
    let group = next().filter(|group| !group.is_empty())?;
    let group = if group == "-" { "" } else { group };
    let (version, kind, plural, traits, short_names) = (next()?, next()?, next()?, next()?, next()?);
    let has = |name: &str| traits.split(',').any(|found| found == name);
    Some(Definition {
        id: ResourceId::new(group, plural),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        singular: kind.to_lowercase(),
        short_names: short_names
            .split(',')
            .filter(|name| *name != "-")
            .map(str::to_owned)
            .collect(),
        categories: has("all").then(|| "all".to_owned()).into_iter().collect(),
        namespaced: has("namespaced"),
        custom: false,
        counts_generation: has("generation"),
        review: has("review"),
        storage: version.to_owned(),
        conversion: None,
        versions: vec![Version {
            name: version.to_owned(),
            served: true,
            source: Arc::new(Source::Catalogue {
                catalogue: Arc::clone(catalogue),
                path: path(group, version, kind),
                made: OnceLock::new(),
            }),
            status: has("status"),
            scale: has("scale").then(Scale::builtin),
            selectable: selectable(kind).iter().map(|field| (*field).to_owned()).collect(),
        }],
        since: 0,
    })
}

/// Returns the Rust path of the kind's type, which the catalogue uses as its key.
fn path(group: &str, version: &str, kind: &str) -> String {
    let module = match group {
        "" => "api::core",
        "apiextensions.k8s.io" => "apiextensions_apiserver::pkg::apis::apiextensions",
        "apiregistration.k8s.io" => "kube_aggregator::pkg::apis::apiregistration",
        group => &format!("api::{}", group.split('.').next().unwrap_or(group)),
    };
    format!("k8s_openapi::{module}::{version}::{kind}")
}

/// Returns what a kind's field selectors accept in addition to name and namespace.
fn selectable(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pod" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "Secret" => &["type"],
        "Namespace" => &["status.phase"],
        "Node" => &["spec.unschedulable"],
        "Service" => &["spec.clusterIP", "spec.type"],
        "Job" => &["status.successful"],
        "ReplicaSet" | "ReplicationController" => &["status.replicas"],
        "CertificateSigningRequest" => &["spec.signerName"],
        "Event" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        _ => &[],
    }
}

/// Returns true if an update may omit the resource version, as is the case for most built-in kinds.
pub(super) fn takes_blind_updates(definition: &Definition) -> bool {
    let careful = matches!(
        definition.kind.as_str(),
        "Lease" | "CustomResourceDefinition" | "APIService"
    );
    !definition.custom && !careful
}

/// Generates the selector of a new Job, and the labels of its Pods, like the server's `generateSelector`.
pub(super) fn generate_selector(job: &mut Value) {
    if job["spec"]["manualSelector"] == true || !job["spec"]["template"].is_object() {
        return;
    }
    let (name, uid) = (job["metadata"]["name"].clone(), job["metadata"]["uid"].clone());
    let template = &mut job["spec"]["template"];
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        template["metadata"]["labels"][label] = value.clone();
    }
    let labels = template["metadata"]["labels"].clone();
    job["spec"]["selector"] = json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    // A Job without labels has those of its template.
    if job["metadata"]["labels"].as_object().is_none_or(Map::is_empty) {
        job["metadata"]["labels"] = labels;
    }
}

/// Whether an update counts as a change of the object's generation. `is_changed` tells whether
/// anything but its metadata and status differs.
pub(super) fn changes_generation(kind: &str, old: &Value, new: &Value, is_changed: bool) -> bool {
    let differs = |field: &str| {
        let is_empty = |value: &Value| value.as_object().is_none_or(Map::is_empty);
        let (old, new) = (&old["metadata"][field], &new["metadata"][field]);
        old != new && !(is_empty(old) && is_empty(new))
    };
    match kind {
        // Its ReplicaSets have the same annotations.
        "Deployment" => is_changed || differs("annotations"),
        "EndpointSlice" => is_changed || differs("labels"),
        "PriorityClass" => false,
        _ => is_changed,
    }
}

/// Counts in the status of a kind. Go always encodes the required ones, and drops the others if
/// they are zero. Counts that are pointers in Go are in neither list.
struct Counts {
    kind: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const COUNTS: &[Counts] = &[
    Counts {
        kind: "Deployment",
        required: &[],
        optional: &[
            "availableReplicas",
            "observedGeneration",
            "readyReplicas",
            "replicas",
            "unavailableReplicas",
            "updatedReplicas",
        ],
    },
    Counts {
        kind: "StatefulSet",
        required: &["availableReplicas", "replicas"],
        optional: &[
            "currentReplicas",
            "observedGeneration",
            "readyReplicas",
            "updatedReplicas",
        ],
    },
    Counts {
        kind: "DaemonSet",
        required: &[
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberMisscheduled",
            "numberReady",
        ],
        optional: &[
            "numberAvailable",
            "numberUnavailable",
            "observedGeneration",
            "updatedNumberScheduled",
        ],
    },
    Counts {
        kind: "ReplicaSet",
        required: &["replicas"],
        optional: &[
            "availableReplicas",
            "fullyLabeledReplicas",
            "observedGeneration",
            "readyReplicas",
        ],
    },
    Counts {
        kind: "ReplicationController",
        required: &["replicas"],
        optional: &[
            "availableReplicas",
            "fullyLabeledReplicas",
            "observedGeneration",
            "readyReplicas",
        ],
    },
    Counts {
        kind: "Job",
        required: &[],
        optional: &["active", "failed", "succeeded"],
    },
    Counts {
        kind: "PodDisruptionBudget",
        required: &[
            "currentHealthy",
            "desiredHealthy",
            "disruptionsAllowed",
            "expectedPods",
        ],
        optional: &["observedGeneration"],
    },
    Counts {
        kind: "HorizontalPodAutoscaler",
        required: &["desiredReplicas"],
        optional: &["currentReplicas"],
    },
];

/// Encodes the status of a built-in kind as Go does. It's never absent, because its type is a
/// struct.
pub(super) fn encode_status(kind: &str, object: &mut Value) {
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(counts) = COUNTS.iter().find(|counts| counts.kind == kind) {
        for name in counts.required {
            status.entry(*name).or_insert_with(|| 0.into());
        }
        status.retain(|name, value| *value != 0 || !counts.optional.contains(&name.as_str()));
    }
    match kind {
        "HorizontalPodAutoscaler" => {
            status.entry("currentMetrics").or_insert(Value::Null);
        }
        "Ingress" | "Service" => {
            status.entry("loadBalancer").or_insert_with(|| json!({}));
        }
        "Deployment" => complete_conditions(status, &["lastTransitionTime", "lastUpdateTime"]),
        "Job" | "Pod" => complete_conditions(status, &["lastProbeTime", "lastTransitionTime"]),
        "Node" => {
            let empty = |name: &&str| ((*name).to_owned(), "".into());
            let info: Map<String, Value> = NODE_INFO.iter().map(empty).collect();
            status.entry("nodeInfo").or_insert_with(|| info.into());
            let endpoints = json!({ "kubeletEndpoint": { "Port": 0 } });
            status.entry("daemonEndpoints").or_insert(endpoints);
        }
        "VolumeAttachment" => {
            status.entry("attached").or_insert_with(|| false.into());
        }
        _ => {}
    }
}

const NODE_INFO: &[&str] = &[
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

/// Times that aren't pointers in Go are never absent.
fn complete_conditions(status: &mut Map<String, Value>, times: &[&str]) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        for time in times {
            condition.entry(*time).or_insert(Value::Null);
        }
    }
}

/// The quality of service, by which the kubelet evicts Pods.
fn quality_of_service(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let lists = ["containers", "initContainers"].map(|list| spec[list].as_array());
    let all: Vec<&Value> = lists
        .into_iter()
        .flatten()
        .flatten()
        .map(|container| &container["resources"])
        .collect();
    let is_zero = |quantity: &Value| quantity.as_str().is_none_or(|text| text == "0");
    let counts = |resources: &Value, list: &str| {
        let named = ["cpu", "memory"].map(|name| is_zero(&resources[list][name]));
        named.into_iter().filter(|is_zero| !is_zero).count()
    };
    if all
        .iter()
        .all(|resources| counts(resources, "requests") + counts(resources, "limits") == 0)
    {
        return "BestEffort";
    }
    let is_guaranteed = |resources: &&Value| {
        counts(resources, "limits") == 2
            && ["cpu", "memory"]
                .iter()
                .all(|name| resources["requests"][name] == resources["limits"][name])
    };
    if all.iter().all(is_guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Sets what the server adds to a new object of a built-in kind, as far as operators commonly use
/// it.
pub(super) fn complete_object(kind: &str, object: &mut Value, has_status: bool, now: &str) {
    match kind {
        "Namespace" => {
            let name = object["metadata"]["name"].clone();
            if !object["metadata"]["labels"].is_object() {
                object["metadata"]["labels"] = json!({});
            }
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["status"] = json!({ "phase": "Active" });
        }
        "PersistentVolume" => {
            object["status"] = json!({ "phase": "Pending", "lastPhaseTransitionTime": now });
        }
        "PersistentVolumeClaim" => object["status"] = json!({ "phase": "Pending" }),
        "Pod" => object["status"] = json!({ "phase": "Pending", "qosClass": quality_of_service(object) }),
        _ if has_status => encode_status(kind, object),
        _ => {}
    }
}
