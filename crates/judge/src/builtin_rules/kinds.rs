//! Rules for single fields of each kind.

use rbuilder_kubernetes::names;

use super::rows::{PORT_RANGE, POSITIVE, PROTOCOLS, Row, Rule, check_reference};

const GREATER_THAN_0: &str = "must be greater than 0";
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const RBAC: &str = "rbac.authorization.k8s.io";

/// The rows of a kind, relative to the object.
pub(super) fn rows_of(group: &str, kind: &str) -> &'static [Row] {
    match (group, kind) {
        ("", "Service") => SERVICE,
        ("", "ReplicationController") => REPLICATION_CONTROLLER,
        ("", "PersistentVolume") => VOLUME,
        ("apps", "Deployment") => DEPLOYMENT,
        ("apps", "ReplicaSet") => REPLICA_SET,
        ("apps", "DaemonSet") => DAEMON_SET,
        ("apps", "StatefulSet") => STATEFUL_SET,
        ("batch", "CronJob") => CRON_JOB,
        ("autoscaling", "HorizontalPodAutoscaler") => AUTOSCALER,
        ("policy", "PodDisruptionBudget") => BUDGET,
        ("networking.k8s.io", "Ingress") => INGRESS,
        ("networking.k8s.io", "NetworkPolicy") => NETWORK_POLICY,
        ("storage.k8s.io", "StorageClass") => STORAGE_CLASS,
        ("coordination.k8s.io", "Lease") => LEASE,
        ("scheduling.k8s.io", "PriorityClass") => PRIORITY_CLASS,
        ("discovery.k8s.io", "EndpointSlice") => ENDPOINT_SLICE,
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => BINDING,
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => WEBHOOKS,
        _ => &[],
    }
}

const SERVICE: &[Row] = &[
    ("spec.ports[].name", Rule::Text(names::check_label)),
    ("spec.ports[].port", Rule::Within(1, 65535, PORT_RANGE)),
    ("spec.ports[].protocol", Rule::Supported(PROTOCOLS)),
    ("spec.ports[].targetPort", Rule::Port),
    (
        "spec.ports[].appProtocol",
        Rule::Text(names::check_qualified_name),
    ),
    ("spec.selector", Rule::Labels),
    ("spec.sessionAffinity", Rule::Supported(&["ClientIP", "None"])),
    (
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        Rule::Within(1, 86400, "must be greater than 0 and less than 86400"),
    ),
    ("spec.ipFamilies[]", Rule::Supported(&["IPv4", "IPv6"])),
    (
        "spec.ipFamilyPolicy",
        Rule::Supported(&["PreferDualStack", "RequireDualStack", "SingleStack"]),
    ),
    (
        "spec.type",
        Rule::Supported(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    ),
    (
        "spec.internalTrafficPolicy",
        Rule::Supported(&["Cluster", "Local"]),
    ),
    (
        "spec.trafficDistribution",
        Rule::Supported(&["PreferClose", "PreferSameZone", "PreferSameNode"]),
    ),
    ("spec.loadBalancerClass", Rule::Text(names::check_qualified_name)),
];

const REPLICATION_CONTROLLER: &[Row] = &[
    ("spec.replicas", Rule::NonNegative),
    ("spec.minReadySeconds", Rule::NonNegative),
    ("spec.selector", Rule::Required("")),
    ("spec.template", Rule::Required("")),
];

const DEPLOYMENT: &[Row] = &[
    ("spec.replicas", Rule::NonNegative),
    ("spec.minReadySeconds", Rule::NonNegative),
    ("spec.revisionHistoryLimit", Rule::NonNegative),
    ("spec.progressDeadlineSeconds", Rule::NonNegative),
    ("spec.selector", Rule::Required("")),
    ("spec.selector", Rule::Selector),
    ("spec.strategy.rollingUpdate.maxUnavailable", Rule::Share),
    ("spec.strategy.rollingUpdate.maxSurge", Rule::Amount),
];

const REPLICA_SET: &[Row] = &[
    ("spec.replicas", Rule::NonNegative),
    ("spec.minReadySeconds", Rule::NonNegative),
    ("spec.selector", Rule::Required("")),
    ("spec.selector", Rule::Selector),
];

const DAEMON_SET: &[Row] = &[
    ("spec.minReadySeconds", Rule::NonNegative),
    ("spec.revisionHistoryLimit", Rule::NonNegative),
    ("spec.selector", Rule::Selector),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", Rule::Share),
    ("spec.updateStrategy.rollingUpdate.maxSurge", Rule::Share),
];

const RETENTION: &[&str] = &["Retain", "Delete"];

const STATEFUL_SET: &[Row] = &[
    ("spec.replicas", Rule::NonNegative),
    ("spec.minReadySeconds", Rule::NonNegative),
    ("spec.ordinals.start", Rule::NonNegative),
    ("spec.serviceName", Rule::Text(names::check_label)),
    ("spec.selector", Rule::Required("")),
    ("spec.selector", Rule::Selector),
    ("spec.updateStrategy.rollingUpdate.partition", Rule::NonNegative),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", Rule::Share),
    (
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
        Rule::Supported(RETENTION),
    ),
    (
        "spec.persistentVolumeClaimRetentionPolicy.whenScaled",
        Rule::Supported(RETENTION),
    ),
];

const CRON_JOB: &[Row] = &[
    ("spec.schedule", Rule::Required("")),
    ("spec.startingDeadlineSeconds", Rule::NonNegative),
    (
        "spec.concurrencyPolicy",
        Rule::Supported(&["Allow", "Forbid", "Replace"]),
    ),
    ("spec.successfulJobsHistoryLimit", Rule::NonNegative),
    ("spec.failedJobsHistoryLimit", Rule::NonNegative),
];

/// Relative to the spec of a Job or of the template of a CronJob.
pub(super) const JOB_SPEC: &[Row] = &[
    ("parallelism", Rule::NonNegative),
    ("completions", Rule::NonNegative),
    ("activeDeadlineSeconds", Rule::NonNegative),
    ("backoffLimit", Rule::NonNegative),
    ("ttlSecondsAfterFinished", Rule::NonNegative),
    ("backoffLimitPerIndex", Rule::NonNegative),
    ("maxFailedIndexes", Rule::NonNegative),
    ("completionMode", Rule::Supported(&["NonIndexed", "Indexed"])),
    (
        "podReplacementPolicy",
        Rule::Supported(&["Failed", "TerminatingOrFailed"]),
    ),
];

const AUTOSCALER: &[Row] = &[
    ("spec.minReplicas", Rule::NonNegative),
    ("spec.scaleTargetRef.kind", Rule::Required("")),
    ("spec.scaleTargetRef.kind", Rule::Text(check_reference)),
    ("spec.scaleTargetRef.name", Rule::Required("")),
    ("spec.scaleTargetRef.name", Rule::Text(check_reference)),
    (
        "spec.metrics[].type",
        Rule::Required("must specify a metric source type"),
    ),
    (
        "spec.metrics[].resource.name",
        Rule::Required("must specify a resource name"),
    ),
    (
        "spec.metrics[].resource.target.averageUtilization",
        Rule::AtLeast(1, GREATER_THAN_0),
    ),
    (
        "spec.metrics[].pods.metric.name",
        Rule::Required("must specify a metric name"),
    ),
    (
        "spec.metrics[].type",
        Rule::Supported(&["ContainerResource", "External", "Object", "Pods", "Resource"]),
    ),
    ("spec.behavior.scaleUp.selectPolicy", SELECT_POLICY),
    ("spec.behavior.scaleDown.selectPolicy", SELECT_POLICY),
    ("spec.behavior.scaleUp.stabilizationWindowSeconds", NOT_NEGATIVE),
    ("spec.behavior.scaleDown.stabilizationWindowSeconds", NOT_NEGATIVE),
    (
        "spec.behavior.scaleUp.stabilizationWindowSeconds",
        AT_MOST_AN_HOUR,
    ),
    (
        "spec.behavior.scaleDown.stabilizationWindowSeconds",
        AT_MOST_AN_HOUR,
    ),
    ("spec.behavior.scaleUp.policies[].type", POLICY_TYPE),
    ("spec.behavior.scaleDown.policies[].type", POLICY_TYPE),
    (
        "spec.behavior.scaleUp.policies[].value",
        Rule::AtLeast(1, POSITIVE),
    ),
    (
        "spec.behavior.scaleDown.policies[].value",
        Rule::AtLeast(1, POSITIVE),
    ),
    (
        "spec.behavior.scaleUp.policies[].periodSeconds",
        Rule::AtLeast(1, POSITIVE),
    ),
    (
        "spec.behavior.scaleDown.policies[].periodSeconds",
        Rule::AtLeast(1, POSITIVE),
    ),
];

const SELECT_POLICY: Rule = Rule::Supported(&["Disabled", "Max", "Min"]);
const POLICY_TYPE: Rule = Rule::Supported(&["Percent", "Pods"]);
const NOT_NEGATIVE: Rule = Rule::AtLeast(0, "must be greater than or equal to zero");
const AT_MOST_AN_HOUR: Rule = Rule::Within(i64::MIN, 3600, "must be less than or equal to 3600");

const BUDGET: &[Row] = &[
    ("spec.minAvailable", Rule::Share),
    ("spec.maxUnavailable", Rule::Share),
    (
        "spec.unhealthyPodEvictionPolicy",
        Rule::Supported(&["AlwaysAllow", "IfHealthyBudget"]),
    ),
    ("spec.selector", Rule::Selector),
];

const INGRESS: &[Row] = &[
    ("spec.rules[].http.paths", Rule::Required("")),
    (
        "spec.rules[].http.paths[].pathType",
        Rule::Required("pathType must be specified"),
    ),
    (
        "spec.rules[].http.paths[].pathType",
        Rule::Supported(&["Exact", "ImplementationSpecific", "Prefix"]),
    ),
    ("spec.tls[].secretName", Rule::Text(names::check_subdomain)),
    ("spec.ingressClassName", Rule::AnyText(names::check_subdomain)),
];

const DIRECTIONS: &[&str] = &["Ingress", "Egress"];
const NETWORK_PROTOCOLS: &[&str] = &["TCP", "UDP", "SCTP"];

const NETWORK_POLICY: &[Row] = &[
    ("spec.podSelector", Rule::Selector),
    ("spec.policyTypes[]", Rule::Supported(DIRECTIONS)),
    ("spec.ingress[].ports[].port", Rule::Port),
    (
        "spec.ingress[].ports[].protocol",
        Rule::Supported(NETWORK_PROTOCOLS),
    ),
    ("spec.ingress[].from[].ipBlock.cidr", Rule::Required("")),
    ("spec.ingress[].from[].podSelector", Rule::Selector),
    ("spec.ingress[].from[].namespaceSelector", Rule::Selector),
    ("spec.egress[].ports[].port", Rule::Port),
    (
        "spec.egress[].ports[].protocol",
        Rule::Supported(NETWORK_PROTOCOLS),
    ),
    ("spec.egress[].to[].ipBlock.cidr", Rule::Required("")),
    ("spec.egress[].to[].podSelector", Rule::Selector),
    ("spec.egress[].to[].namespaceSelector", Rule::Selector),
];

/// Relative to the spec of a claim or of the template of one.
pub(super) const CLAIM_SPEC: &[Row] = &[
    ("selector", Rule::Selector),
    ("storageClassName", Rule::Text(names::check_subdomain)),
    ("volumeMode", Rule::Supported(&["Block", "Filesystem"])),
];

const VOLUME: &[Row] = &[
    ("spec.accessModes", Rule::Required("")),
    (
        "spec.persistentVolumeReclaimPolicy",
        Rule::Supported(&["Delete", "Recycle", "Retain"]),
    ),
    ("spec.volumeMode", Rule::Supported(&["Block", "Filesystem"])),
];

const STORAGE_CLASS: &[Row] = &[
    ("provisioner", Rule::Required("")),
    ("reclaimPolicy", Rule::Supported(&["Delete", "Retain"])),
    (
        "volumeBindingMode",
        Rule::Supported(&["Immediate", "WaitForFirstConsumer"]),
    ),
];

const LEASE: &[Row] = &[
    ("spec.leaseDurationSeconds", Rule::AtLeast(1, GREATER_THAN_0)),
    ("spec.leaseTransitions", Rule::NonNegative),
];

const PRIORITY_CLASS: &[Row] = &[(
    "preemptionPolicy",
    Rule::Supported(&["PreemptLowerPriority", "Never"]),
)];

const ENDPOINT_SLICE: &[Row] = &[
    ("addressType", Rule::Required("")),
    ("addressType", Rule::Supported(&["FQDN", "IPv4", "IPv6"])),
    ("endpoints[].addresses", Rule::Required("")),
    ("ports[].protocol", Rule::Supported(PROTOCOLS)),
];

const BINDING: &[Row] = &[
    ("roleRef.apiGroup", Rule::Supported(&[RBAC])),
    ("roleRef.name", Rule::Text(check_reference)),
    ("subjects[].name", Rule::Required("")),
];

const WEBHOOKS: &[Row] = &[
    (
        "webhooks[].admissionReviewVersions",
        Rule::Required("must specify one of v1, v1beta1"),
    ),
    (
        "webhooks[].sideEffects",
        Rule::Required("must specify one of None, NoneOnDryRun"),
    ),
    (
        "webhooks[].sideEffects",
        Rule::Supported(&["None", "NoneOnDryRun"]),
    ),
    (
        "webhooks[].timeoutSeconds",
        Rule::Within(1, 30, "the timeout value must be between 1 and 30 seconds"),
    ),
    ("webhooks[].failurePolicy", Rule::Supported(&["Fail", "Ignore"])),
    (
        "webhooks[].matchPolicy",
        Rule::Supported(&["Equivalent", "Exact"]),
    ),
    (
        "webhooks[].reinvocationPolicy",
        Rule::Supported(&["IfNeeded", "Never"]),
    ),
    ("webhooks[].clientConfig.service.name", Rule::Required("")),
    ("webhooks[].clientConfig.service.namespace", Rule::Required("")),
    (
        "webhooks[].clientConfig.service.port",
        Rule::Within(
            1,
            65535,
            "port is not valid: must be between 1 and 65535, inclusive",
        ),
    ),
    ("webhooks[].rules[].operations", Rule::Required("")),
    ("webhooks[].rules[].apiGroups", Rule::Required("")),
    ("webhooks[].rules[].apiVersions", Rule::Required("")),
    ("webhooks[].rules[].resources", Rule::Required("")),
    (
        "webhooks[].rules[].operations[]",
        Rule::Supported(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]),
    ),
];

const USER_ID: Rule = Rule::Within(0, i32::MAX as i64, "must be between 0 and 2147483647, inclusive");
const SECCOMP: Rule = Rule::Supported(&["Localhost", "RuntimeDefault", "Unconfined"]);
const FILE_MODE: Rule = Rule::Within(
    0,
    0o777,
    "must be a number between 0 and 0777 (octal), both inclusive",
);

/// Relative to the spec of a Pod.
pub(super) const POD_SPEC: &[Row] = &[
    ("volumes[].name", Rule::Required("")),
    ("volumes[].name", Rule::Text(names::check_label)),
    ("volumes[].hostPath.path", Rule::Required("")),
    (
        "volumes[].hostPath.type",
        Rule::Supported(&[
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ]),
    ),
    ("volumes[].secret.secretName", Rule::Required("")),
    ("volumes[].secret.defaultMode", FILE_MODE),
    ("volumes[].secret.items[].key", Rule::Required("")),
    ("volumes[].secret.items[].path", Rule::Required("")),
    ("volumes[].secret.items[].mode", FILE_MODE),
    ("volumes[].configMap.name", Rule::Required("")),
    ("volumes[].configMap.defaultMode", FILE_MODE),
    ("volumes[].configMap.items[].key", Rule::Required("")),
    ("volumes[].configMap.items[].path", Rule::Required("")),
    ("volumes[].configMap.items[].mode", FILE_MODE),
    ("volumes[].persistentVolumeClaim.claimName", Rule::Required("")),
    ("volumes[].nfs.server", Rule::Required("")),
    ("volumes[].csi.driver", Rule::Required("")),
    (
        "dnsPolicy",
        Rule::Supported(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
    ),
    ("nodeSelector", Rule::Labels),
    (
        "activeDeadlineSeconds",
        Rule::Within(1, i32::MAX as i64, "must be between 1 and 2147483647, inclusive"),
    ),
    ("serviceAccountName", Rule::Text(names::check_subdomain)),
    ("nodeName", Rule::Text(names::check_subdomain)),
    ("hostname", Rule::Text(names::check_label)),
    ("subdomain", Rule::Text(names::check_label)),
    ("hostAliases[].hostnames[]", Rule::Text(names::check_subdomain)),
    (
        "readinessGates[].conditionType",
        Rule::Text(names::check_qualified_name),
    ),
    ("tolerations[].key", Rule::Text(names::check_qualified_name)),
    (
        "tolerations[].effect",
        Rule::Supported(&["NoSchedule", "PreferNoSchedule", "NoExecute"]),
    ),
    ("topologySpreadConstraints[].maxSkew", Rule::AtLeast(1, POSITIVE)),
    (
        "topologySpreadConstraints[].topologyKey",
        Rule::Required("can not be empty"),
    ),
    (
        "topologySpreadConstraints[].whenUnsatisfiable",
        Rule::Supported(&["DoNotSchedule", "ScheduleAnyway"]),
    ),
    (
        "topologySpreadConstraints[].minDomains",
        Rule::AtLeast(1, POSITIVE),
    ),
    (
        "topologySpreadConstraints[].nodeAffinityPolicy",
        Rule::Supported(&["Honor", "Ignore"]),
    ),
    (
        "topologySpreadConstraints[].nodeTaintsPolicy",
        Rule::Supported(&["Honor", "Ignore"]),
    ),
    ("topologySpreadConstraints[].labelSelector", Rule::Selector),
    (
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        Rule::Required("must have at least one node selector term"),
    ),
    (
        "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight",
        WEIGHT,
    ),
    (
        "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight",
        WEIGHT,
    ),
    (
        "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight",
        WEIGHT,
    ),
    ("securityContext.runAsUser", USER_ID),
    ("securityContext.runAsGroup", USER_ID),
    ("securityContext.fsGroup", USER_ID),
    ("securityContext.supplementalGroups[]", USER_ID),
    (
        "securityContext.fsGroupChangePolicy",
        Rule::Supported(&["Always", "OnRootMismatch"]),
    ),
    ("securityContext.seccompProfile.type", SECCOMP),
];

const WEIGHT: Rule = Rule::Within(1, 100, "must be in the range 1-100");

/// Relative to a container.
pub(super) const CONTAINER: &[Row] = &[
    ("name", Rule::Required("")),
    ("name", Rule::Text(names::check_label)),
    ("image", Rule::Required("")),
    (
        "terminationMessagePolicy",
        Rule::Supported(&["File", "FallbackToLogsOnError"]),
    ),
    ("imagePullPolicy", Rule::Supported(PULL_POLICIES)),
    ("ports[].name", Rule::Text(super::rows::check_port_name)),
    ("ports[].hostPort", Rule::Within(0, 65535, PORT_RANGE)),
    ("ports[].protocol", Rule::Supported(PROTOCOLS)),
    ("env[].name", Rule::Required("")),
    ("env[].name", Rule::Text(super::rows::check_variable_name)),
    ("env[].valueFrom.secretKeyRef.key", Rule::Required("")),
    (
        "env[].valueFrom.secretKeyRef.key",
        Rule::Text(super::rows::check_config_key),
    ),
    ("env[].valueFrom.configMapKeyRef.key", Rule::Required("")),
    (
        "env[].valueFrom.configMapKeyRef.key",
        Rule::Text(super::rows::check_config_key),
    ),
    ("env[].valueFrom.fieldRef.fieldPath", Rule::Required("")),
    ("envFrom[].configMapRef.name", Rule::Required("")),
    ("envFrom[].configMapRef.name", Rule::Text(names::check_subdomain)),
    ("envFrom[].secretRef.name", Rule::Required("")),
    ("envFrom[].secretRef.name", Rule::Text(names::check_subdomain)),
    ("volumeMounts[].name", Rule::Required("")),
    ("volumeMounts[].mountPath", Rule::Required("")),
    ("securityContext.runAsUser", USER_ID),
    ("securityContext.runAsGroup", USER_ID),
    (
        "securityContext.procMount",
        Rule::Supported(&["Default", "Unmasked"]),
    ),
    ("securityContext.seccompProfile.type", SECCOMP),
];

/// Relative to a probe.
pub(super) const PROBE: &[Row] = &[
    ("httpGet.port", Rule::Port),
    ("httpGet.scheme", Rule::Supported(&["HTTP", "HTTPS"])),
    ("tcpSocket.port", Rule::Port),
    ("grpc.port", Rule::Port),
    ("exec.command", Rule::Required("")),
    ("initialDelaySeconds", Rule::NonNegative),
    ("timeoutSeconds", Rule::NonNegative),
    ("periodSeconds", Rule::NonNegative),
    ("successThreshold", Rule::NonNegative),
    ("failureThreshold", Rule::NonNegative),
    ("terminationGracePeriodSeconds", Rule::AtLeast(1, GREATER_THAN_0)),
];
