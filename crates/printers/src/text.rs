//! Cells that need more than one field, each as the function of kube-apiserver prints it.

use rbuilder_kubernetes::crd::Crd;
use rbuilder_kubernetes::time::{parse_time, print_time};
use serde_json::Value;

use crate::age::print_duration;
use crate::cell::{count, join};
use crate::selector::{or_none, pairs, print_go_selector, print_selector};
use crate::view::{View, at, items, number, scalar, text};

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";
const UNSET: &str = "<unset>";

/// Joins the first texts, and counts the others.
fn shortened(texts: Vec<String>, limit: usize, separator: &str) -> String {
    let count = texts.len();
    let first = texts.into_iter().take(limit).collect::<Vec<_>>().join(separator);
    match count.checked_sub(limit) {
        None | Some(0) => first,
        Some(more) => format!("{first} + {more} more..."),
    }
}

fn or_unset(text: String) -> String {
    match text.is_empty() {
        true => UNSET.to_owned(),
        false => text,
    }
}

pub(crate) fn created_at(view: &View<'_>) -> String {
    let time = parse_time(view.text("/metadata/creationTimestamp"));
    let time = time.unwrap_or(rbuilder_kubernetes::time::ZERO);
    print_time(time).unwrap_or_default()
}

pub(crate) fn config_map_data(view: &View<'_>) -> Value {
    (count(view.at("/data")) + count(view.at("/binaryData"))).into()
}

pub(crate) fn is_established(view: &View<'_>) -> Value {
    view.is_true("Established").into()
}

fn component<'a>(view: &View<'a>) -> Option<&'a Value> {
    view.items("/conditions")
        .iter()
        .find(|condition| condition["type"] == "Healthy")
}

pub(crate) fn component_status(view: &View<'_>) -> String {
    match component(view) {
        Some(condition) if condition["status"] == "True" => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    }
    .to_owned()
}

pub(crate) fn component_message(view: &View<'_>) -> String {
    component(view)
        .map_or("", |condition| text(condition, "/message"))
        .to_owned()
}

pub(crate) fn component_error(view: &View<'_>) -> String {
    component(view)
        .map_or("", |condition| text(condition, "/error"))
        .to_owned()
}

pub(crate) fn endpoints(view: &View<'_>) -> String {
    let subsets = view.items("/subsets");
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut texts = Vec::new();
    for subset in subsets {
        let addresses = || {
            items(subset, "/addresses")
                .iter()
                .map(|address| text(address, "/ip"))
        };
        let ports = items(subset, "/ports");
        if ports.is_empty() {
            texts.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            texts.extend(addresses().map(|ip| host_port(ip, number(port, "/port"))));
        }
    }
    shortened(texts, 3, ",")
}

fn host_port(host: &str, port: i64) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

pub(crate) fn slice_ports(view: &View<'_>) -> String {
    let print = |port: &Value| match (&port["port"], &port["name"]) {
        (Value::Null, Value::Null) => "*".to_owned(),
        (Value::Null, name) => scalar(name),
        (port, _) => scalar(port),
    };
    or_unset(shortened(
        view.items("/ports").iter().map(print).collect(),
        3,
        ",",
    ))
}

pub(crate) fn slice_endpoints(view: &View<'_>) -> String {
    let addresses = view
        .items("/endpoints")
        .iter()
        .flat_map(|endpoint| items(endpoint, "/addresses"));
    or_unset(shortened(addresses.map(scalar).collect(), 3, ","))
}

pub(crate) fn node_status(view: &View<'_>) -> String {
    let ready = view
        .items("/status/conditions")
        .iter()
        .rfind(|condition| condition["type"] == "Ready");
    let status = match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match view.at("/spec/unschedulable") == true {
        true => format!("{status},SchedulingDisabled"),
        false => status.to_owned(),
    }
}

pub(crate) fn node_roles(view: &View<'_>) -> String {
    let role = |(key, value): (&str, &str)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None => (key == "kubernetes.io/role").then(|| value.to_owned()),
    };
    let mut roles: Vec<String> = pairs(view.at("/metadata/labels")).filter_map(role).collect();
    roles.retain(|role| !role.is_empty());
    roles.sort_unstable();
    roles.dedup();
    or_none(roles.join(","))
}

fn address(view: &View<'_>, ty: &str) -> String {
    let mut addresses = view.items("/status/addresses").iter();
    let found = addresses.find(|address| address["type"] == ty);
    found.map_or(NONE, |address| text(address, "/address")).to_owned()
}

pub(crate) fn internal_ip(view: &View<'_>) -> String {
    address(view, "InternalIP")
}

pub(crate) fn external_ip(view: &View<'_>) -> String {
    address(view, "ExternalIP")
}

pub(crate) fn kernel_version(view: &View<'_>) -> String {
    let version = match view.text("/status/nodeInfo/kernelVersion") {
        "" => UNKNOWN,
        version => version,
    };
    match view.text("/status/nodeInfo/architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

fn access_modes(modes: &[Value]) -> String {
    const MODES: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let present = MODES
        .iter()
        .filter(|(mode, _)| modes.iter().any(|found| found == mode));
    present.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

pub(crate) fn volume_modes(view: &View<'_>) -> String {
    access_modes(view.items("/spec/accessModes"))
}

pub(crate) fn volume_phase(view: &View<'_>) -> String {
    match view.at("/metadata/deletionTimestamp") {
        Value::Null => view.text("/status/phase"),
        _ => "Terminating",
    }
    .to_owned()
}

pub(crate) fn volume_claim(view: &View<'_>) -> String {
    match view.at("/spec/claimRef") {
        Value::Null => String::new(),
        claim => format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")),
    }
}

pub(crate) fn storage_class(view: &View<'_>) -> String {
    let annotation = view.entry("/metadata/annotations", "volume.beta.kubernetes.io/storage-class");
    annotation
        .unwrap_or_else(|| view.text("/spec/storageClassName"))
        .to_owned()
}

fn is_bound(view: &View<'_>) -> bool {
    !view.text("/spec/volumeName").is_empty()
}

pub(crate) fn claim_capacity(view: &View<'_>) -> String {
    match view.at("/status/capacity/storage") {
        _ if !is_bound(view) => String::new(),
        Value::Null => "0".to_owned(),
        capacity => scalar(capacity),
    }
}

pub(crate) fn claim_modes(view: &View<'_>) -> String {
    match is_bound(view) {
        true => access_modes(view.items("/status/accessModes")),
        false => String::new(),
    }
}

fn quota(view: &View<'_>, is_limit: bool) -> String {
    let used = view.at("/status/used");
    let hard = pairs(view.at("/status/hard")).filter(|(name, _)| name.starts_with("limits.") == is_limit);
    let texts = hard.map(|(name, hard)| {
        let used = used.get(name).map_or("0".to_owned(), scalar);
        format!("{name}: {used}/{hard}")
    });
    texts.collect::<Vec<_>>().join(", ")
}

pub(crate) fn quota_requests(view: &View<'_>) -> String {
    quota(view, false)
}

pub(crate) fn quota_limits(view: &View<'_>) -> String {
    quota(view, true)
}

/// Returns the addresses of a load balancer, of a Service or an Ingress.
pub(crate) fn load_balancer(view: &View<'_>) -> String {
    let address = |ingress: &'_ Value| match text(ingress, "/ip") {
        "" => text(ingress, "/hostname").to_owned(),
        ip => ip.to_owned(),
    };
    let mut addresses: Vec<String> = view
        .items("/status/loadBalancer/ingress")
        .iter()
        .map(address)
        .collect();
    addresses.retain(|address| !address.is_empty());
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

pub(crate) fn external_ips(view: &View<'_>) -> String {
    let external = join(view.items("/spec/externalIPs"), ",");
    match view.text("/spec/type") {
        "ClusterIP" | "NodePort" => or_none(external),
        "LoadBalancer" => match (load_balancer(view), external) {
            (balancer, external) if balancer.is_empty() && external.is_empty() => "<pending>".to_owned(),
            (balancer, external) if balancer.is_empty() || external.is_empty() => balancer + &external,
            (balancer, external) => format!("{balancer},{external}"),
        },
        "ExternalName" => view.text("/spec/externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

pub(crate) fn service_ports(view: &View<'_>) -> String {
    let print = |port: &Value| {
        let (number_of, protocol) = (number(port, "/port"), text(port, "/protocol"));
        match number(port, "/nodePort") {
            node if node > 0 => format!("{number_of}:{node}/{protocol}"),
            _ => format!("{number_of}/{protocol}"),
        }
    };
    or_none(
        view.items("/spec/ports")
            .iter()
            .map(print)
            .collect::<Vec<_>>()
            .join(","),
    )
}

pub(crate) fn param_kind(view: &View<'_>) -> String {
    match view.at("/spec/paramKind") {
        Value::Null => UNSET.to_owned(),
        kind => format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")),
    }
}

pub(crate) fn param_ref(view: &View<'_>) -> String {
    let found = view.at("/spec/paramRef");
    match (text(found, "/name"), text(found, "/namespace")) {
        ("", _) if found["selector"].is_object() => print_go_selector(&found["selector"]),
        ("", _) => UNSET.to_owned(),
        // The server does not know here whether the parameter has a namespace.
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}

pub(crate) fn served_versions(view: &View<'_>) -> String {
    let served = Crd::of(view.object).served();
    let mut versions: Vec<String> = served
        .map(|version| match version.is_storage {
            true => format!("{}(storage)", version.name),
            false => version.name.to_owned(),
        })
        .collect();
    versions.sort_unstable();
    versions.join(",")
}

pub(crate) fn api_service(view: &View<'_>) -> String {
    match view.at("/spec/service") {
        Value::Null => "Local".to_owned(),
        service => format!("{}/{}", text(service, "/namespace"), text(service, "/name")),
    }
}

pub(crate) fn api_status(view: &View<'_>) -> String {
    let Some(condition) = view.condition("Available") else {
        return "Unknown".to_owned();
    };
    match (text(condition, "/status"), text(condition, "/reason")) {
        (status, reason) if status != "True" && !reason.is_empty() => format!("{status} ({reason})"),
        (status, _) => status.to_owned(),
    }
}

pub(crate) fn controller(view: &View<'_>) -> String {
    let mut owners = view.items("/metadata/ownerReferences").iter();
    let Some(owner) = owners.find(|owner| owner["controller"] == true) else {
        return NONE.to_owned();
    };
    let group = text(owner, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    let kind = match group {
        "" => text(owner, "/kind").to_owned(),
        group => format!("{}.{group}", text(owner, "/kind")),
    };
    format!("{}/{}", kind.to_lowercase(), text(owner, "/name"))
}

pub(crate) fn deployment_selector(view: &View<'_>) -> String {
    print_selector(view.at("/spec/selector")).unwrap_or("<invalid>".to_owned())
}

pub(crate) fn scale_target(view: &View<'_>) -> String {
    let target = view.at("/spec/scaleTargetRef");
    format!("{}/{}", text(target, "/kind"), text(target, "/name"))
}

/// Prints the metrics of an autoscaler. Version 1 has only the utilization of the CPU.
pub(crate) fn metrics(view: &View<'_>) -> String {
    if let Some(target) = view.at("/spec/targetCPUUtilizationPercentage").as_i64() {
        let current = view.at("/status/currentCPUUtilizationPercentage").as_i64();
        let current = current.map_or(UNKNOWN.to_owned(), |current| format!("{current}%"));
        return format!("cpu: {current}/{target}%");
    }
    let current = view.items("/status/currentMetrics");
    let print = |(at, spec): (usize, &Value)| metric(spec, current.get(at).unwrap_or(&Value::Null));
    let texts: Vec<String> = view
        .items("/spec/metrics")
        .iter()
        .enumerate()
        .map(print)
        .collect();
    or_none(shortened(texts, 2, ", "))
}

fn metric(spec: &Value, status: &Value) -> String {
    let key = match text(spec, "/type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let (target, current) = (&spec[key]["target"], &status[key]["current"]);
    let has_status = status[key].is_object();
    let is_average = !target["averageValue"].is_null();
    let quantity = |name: &str| match &current[name] {
        // Go prints an absent pointer to a quantity so.
        Value::Null if has_status => "<nil>".to_owned(),
        Value::Null => UNKNOWN.to_owned(),
        value => scalar(value),
    };
    match key {
        "pods" => format!("{}/{}", quantity("averageValue"), scalar(&target["averageValue"])),
        "external" | "object" if is_average => {
            let current = match &current["averageValue"] {
                Value::Null => UNKNOWN.to_owned(),
                value => scalar(value),
            };
            format!("{current}/{} (avg)", scalar(&target["averageValue"]))
        }
        "external" | "object" => format!("{}/{}", quantity("value"), scalar(&target["value"])),
        _ => {
            let name = text(&spec[key], "/name");
            if is_average {
                return format!(
                    "{name}: {}/{}",
                    quantity("averageValue"),
                    scalar(&target["averageValue"])
                );
            }
            let percent = |value: &Value, otherwise: &str| match value.as_i64() {
                Some(value) => format!("{value}%"),
                None => otherwise.to_owned(),
            };
            let current = percent(&current["averageUtilization"], UNKNOWN);
            format!(
                "{name}: {current}/{}",
                percent(&target["averageUtilization"], "<auto>")
            )
        }
    }
}

pub(crate) fn is_suspended(view: &View<'_>) -> String {
    match view.at("/spec/suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    }
    .to_owned()
}

pub(crate) fn job_status(view: &View<'_>) -> String {
    const AFTERWARDS: [(&str, &str); 3] = [
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    let first = |all: &[(&str, &'static str)]| {
        all.iter()
            .find(|(ty, _)| view.is_true(ty))
            .map(|(_, status)| *status)
    };
    let ended = first(&[("Complete", "Complete"), ("Failed", "Failed")]);
    let is_deleted = !view.at("/metadata/deletionTimestamp").is_null();
    let ended = ended.or(is_deleted.then_some("Terminating"));
    ended
        .or_else(|| first(&AFTERWARDS))
        .unwrap_or("Running")
        .to_owned()
}

pub(crate) fn job_completions(view: &View<'_>) -> String {
    let succeeded = view.number("/status/succeeded");
    match (
        view.at("/spec/completions").as_i64(),
        view.number("/spec/parallelism"),
    ) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

pub(crate) fn job_duration(view: &View<'_>) -> String {
    let Some(start) = parse_time(view.text("/status/startTime")) else {
        return String::new();
    };
    let end = parse_time(view.text("/status/completionTime")).unwrap_or(view.now);
    print_duration(end - start)
}

pub(crate) fn requested_duration(view: &View<'_>) -> String {
    match view.at("/spec/expirationSeconds").as_i64() {
        Some(seconds) => print_duration(i128::from(seconds) * 1_000_000_000),
        None => NONE.to_owned(),
    }
}

pub(crate) fn request_status(view: &View<'_>) -> String {
    let has = |condition: &str| view.condition(condition).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !view.text("/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}

pub(crate) fn pod_certificate_state(view: &View<'_>) -> String {
    let mut types = view
        .items("/status/conditions")
        .iter()
        .map(|condition| text(condition, "/type"));
    let last = types.rfind(|ty| matches!(*ty, "Issued" | "Denied" | "Failed"));
    last.unwrap_or("Pending").to_owned()
}

pub(crate) fn storage_versions(view: &View<'_>) -> String {
    let print = |version: &Value| {
        format!(
            "{}={}",
            text(version, "/apiServerID"),
            text(version, "/encodingVersion")
        )
    };
    or_unset(shortened(
        view.items("/status/storageVersions").iter().map(print).collect(),
        3,
        ",",
    ))
}

pub(crate) fn group_policy(view: &View<'_>) -> String {
    match view.at("/spec/schedulingPolicy/gang") {
        Value::Null => "Basic",
        _ => "Gang",
    }
    .to_owned()
}

pub(crate) fn group_status(view: &View<'_>) -> String {
    match (
        view.condition("DisruptionTarget"),
        view.condition("PodGroupInitiallyScheduled"),
    ) {
        (Some(condition), _) => text(condition, "/reason"),
        (None, Some(condition)) if condition["status"] == "True" => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    }
    .to_owned()
}

pub(crate) fn migrated_resource(view: &View<'_>) -> String {
    match (
        view.text("/spec/resource/resource"),
        view.text("/spec/resource/group"),
    ) {
        (resource, "") => resource.to_owned(),
        (resource, group) => format!("{resource}.{group}"),
    }
}

pub(crate) fn migration_status(view: &View<'_>) -> String {
    let is_true = view
        .items("/status/conditions")
        .iter()
        .filter(|condition| condition["status"] == "True");
    let mut types = is_true.map(|condition| text(condition, "/type"));
    let last = types.rfind(|ty| matches!(*ty, "Running" | "Failed" | "Succeeded"));
    last.unwrap_or("Unknown").to_owned()
}

pub(crate) fn is_dangling(view: &View<'_>) -> String {
    view.condition("Dangling")
        .map_or("?", |condition| text(condition, "/status"))
        .to_owned()
}

pub(crate) fn parent_ref(view: &View<'_>) -> String {
    let parent = view.at("/spec/parentRef");
    if parent.is_null() {
        return NONE.to_owned();
    }
    let resource = match text(parent, "/group") {
        "" => text(parent, "/resource").to_owned(),
        group => format!("{}.{group}", text(parent, "/resource")),
    };
    let namespace = match text(parent, "/namespace") {
        "" => String::new(),
        namespace => format!("/{namespace}"),
    };
    format!("{}{namespace}/{}", resource.to_lowercase(), text(parent, "/name"))
}

pub(crate) fn hosts(view: &View<'_>) -> String {
    let rules = view.items("/spec/rules");
    let mut hosts = Vec::new();
    // Rules after the third host are counted, whether or not they have a host.
    let mut has_more = false;
    for rule in rules {
        has_more |= hosts.len() == 3;
        let host = text(rule, "/host");
        if !has_more && !host.is_empty() {
            hosts.push(host);
        }
    }
    match (hosts.is_empty(), has_more) {
        (true, _) => "*".to_owned(),
        (false, true) => format!("{} + {} more...", hosts.join(","), rules.len() - 3),
        (false, false) => hosts.join(","),
    }
}

pub(crate) fn ingress_ports(view: &View<'_>) -> String {
    match view.items("/spec/tls").is_empty() {
        true => "80",
        false => "80, 443",
    }
    .to_owned()
}

pub(crate) fn ingress_class(view: &View<'_>) -> String {
    let name = view.text("/metadata/name");
    match view.entry(
        "/metadata/annotations",
        "ingressclass.kubernetes.io/is-default-class",
    ) {
        Some("true") => format!("{name} (default)"),
        _ => name.to_owned(),
    }
}

pub(crate) fn class_parameters(view: &View<'_>) -> String {
    let parameters = view.at("/spec/parameters");
    if parameters.is_null() {
        return NONE.to_owned();
    }
    let (kind, name) = (text(parameters, "/kind"), text(parameters, "/name"));
    match at(parameters, "/apiGroup").as_str() {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

pub(crate) fn role_ref(view: &View<'_>) -> String {
    format!("{}/{}", view.text("/roleRef/kind"), view.text("/roleRef/name"))
}

fn subjects(view: &View<'_>, kind: &str, print: fn(&Value) -> String) -> String {
    let subjects = view
        .items("/subjects")
        .iter()
        .filter(|subject| subject["kind"] == kind);
    subjects.map(print).collect::<Vec<_>>().join(", ")
}

pub(crate) fn users(view: &View<'_>) -> String {
    subjects(view, "User", |subject| text(subject, "/name").to_owned())
}

pub(crate) fn groups(view: &View<'_>) -> String {
    subjects(view, "Group", |subject| text(subject, "/name").to_owned())
}

pub(crate) fn service_accounts(view: &View<'_>) -> String {
    subjects(view, "ServiceAccount", |subject| {
        format!("{}/{}", text(subject, "/namespace"), text(subject, "/name"))
    })
}

pub(crate) fn claim_state(view: &View<'_>) -> String {
    let is_deleted = !view.at("/metadata/deletionTimestamp").is_null();
    let is_allocated = !view.at("/status/allocation").is_null();
    let is_reserved = is_allocated && !view.items("/status/reservedFor").is_empty();
    let states = [
        (is_deleted, "deleted"),
        (!is_deleted && !is_allocated, "pending"),
        (is_allocated, "allocated"),
        (is_reserved, "reserved"),
    ];
    let states: Vec<&str> = states
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, state)| *state)
        .collect();
    states.join(",")
}

pub(crate) fn token_requests(view: &View<'_>) -> String {
    let Some(requests) = view.at("/spec/tokenRequests").as_array() else {
        return UNSET.to_owned();
    };
    requests
        .iter()
        .map(|request| text(request, "/audience"))
        .collect::<Vec<_>>()
        .join(",")
}

pub(crate) fn lifecycle_modes(view: &View<'_>) -> String {
    or_none(join(view.items("/spec/volumeLifecycleModes"), ","))
}

/// Returns the value of a field of an event, whose name in `events.k8s.io` may be another one.
fn of_event<'a>(view: &View<'a>, core: &str, other: &str) -> &'a Value {
    match view.at(core) {
        Value::Null => view.at(other),
        value => value,
    }
}

pub(crate) fn first_seen(view: &View<'_>) -> String {
    match of_event(view, "/firstTimestamp", "/deprecatedFirstTimestamp") {
        Value::Null => view.age("/eventTime"),
        time => view.since(time),
    }
}

pub(crate) fn last_seen(view: &View<'_>) -> String {
    if view.at("/series").is_object() {
        return view.age("/series/lastObservedTime");
    }
    match of_event(view, "/lastTimestamp", "/deprecatedLastTimestamp") {
        Value::Null => first_seen(view),
        time => view.since(time),
    }
}

pub(crate) fn event_count(view: &View<'_>) -> Value {
    if view.at("/series").is_object() {
        return view.number("/series/count").into();
    }
    match of_event(view, "/count", "/deprecatedCount").as_i64() {
        // Single events of the new API have no count.
        None | Some(0) => 1,
        Some(count) => count,
    }
    .into()
}

pub(crate) fn event_target(view: &View<'_>) -> String {
    let target = of_event(view, "/involvedObject", "/regarding");
    let kind = text(target, "/kind").to_lowercase();
    match text(target, "/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

pub(crate) fn event_field(view: &View<'_>) -> String {
    text(of_event(view, "/involvedObject", "/regarding"), "/fieldPath").to_owned()
}

pub(crate) fn event_source(view: &View<'_>) -> String {
    let source = of_event(view, "/source", "/deprecatedSource");
    let first = |texts: [&'_ str; 3]| {
        texts
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    let component = first([
        text(source, "/component"),
        view.text("/reportingComponent"),
        view.text("/reportingController"),
    ]);
    match first([text(source, "/host"), view.text("/reportingInstance"), ""]) {
        host if host.is_empty() => component,
        host => format!("{component}, {host}"),
    }
}

pub(crate) fn event_message(view: &View<'_>) -> String {
    scalar(of_event(view, "/message", "/note")).trim().to_owned()
}
