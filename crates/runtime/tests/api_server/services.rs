//! Allocation of addresses and ports for Services, which is random on kube-apiserver.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::Place;

on_both_servers!(
    services_get_an_address,
    an_update_without_address_keeps_it,
    an_address_cannot_change,
    a_class_cannot_change,
    headless_services_get_no_address,
    node_ports_are_allocated_and_kept,
    fields_of_the_former_type_are_dropped,
    node_ports_without_allocation_are_dropped,
    traffic_policy_is_dropped_with_the_external_addresses,
    changed_fields_of_the_former_type_are_refused,
    fields_of_the_new_type_are_required,
    nobody_manages_allocated_fields,
    two_services_cannot_share_an_address_or_port,
);

const FOLDER: &str = "/api/v1/namespaces/{ns}/services";

fn service(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": spec })
}

async fn send(place: &Place, method: &str, name: &str, service: &Value) -> (u16, Value) {
    let path = match method {
        "POST" => FOLDER.to_owned(),
        _ => format!("{FOLDER}/{name}"),
    };
    let headers = [("content-type", "application/json")];
    let (code, answer) = place.raw(method, &path, &headers, &service.to_string()).await;
    (code, serde_json::from_str(&answer).unwrap())
}

async fn create(place: &Place, name: &str, spec: Value) -> Value {
    let (code, created) = send(place, "POST", name, &service(name, spec)).await;
    assert_eq!(code, 201, "{created}");
    created
}

async fn update(place: &Place, name: &str, spec: Value) -> Value {
    let (code, updated) = send(place, "PUT", name, &service(name, spec)).await;
    assert_eq!(code, 200, "{updated}");
    updated
}

fn web() -> Value {
    json!({ "selector": { "app": "a" }, "ports": [{ "port": 80 }] })
}

fn web_of(kind: &str) -> Value {
    let mut spec = web();
    spec["type"] = kind.into();
    spec
}

/// Removes the address, which is random.
fn take_address(service: &mut Value) -> String {
    let spec = service["spec"].as_object_mut().unwrap();
    let address = spec.remove("clusterIP").unwrap();
    assert_eq!(spec.remove("clusterIPs"), Some(json!([address])));
    let address = address.as_str().unwrap().to_owned();
    assert!(address.parse::<Ipv4Addr>().is_ok(), "{address}");
    address
}

fn take_node_port(service: &mut Value, index: usize) -> u64 {
    let port = service["spec"]["ports"][index].as_object_mut().unwrap();
    let number = port.remove("nodePort").and_then(|port| port.as_u64()).unwrap();
    assert!((30_000..32_768).contains(&number), "{number}");
    number
}

async fn services_get_an_address(server: Server) {
    let place = Place::new(server).await;
    let mut created = create(&place, "a", web()).await;
    take_address(&mut created);
    let expected = json!({
        "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }], "selector": { "app": "a" },
        "sessionAffinity": "None", "type": "ClusterIP",
    });
    assert_eq!(created["spec"], expected);
    assert_eq!(created["status"], json!({ "loadBalancer": {} }));
    let mut other = create(&place, "b", web()).await;
    assert_ne!(
        take_address(&mut other),
        take_address(&mut create(&place, "c", web()).await)
    );
}

async fn an_update_without_address_keeps_it(server: Server) {
    let place = Place::new(server).await;
    let created = create(&place, "a", web()).await;
    let same = update(&place, "a", web()).await;
    assert_eq!(same, created, "writing the same Service again is a no-op");
    let mut changed = web();
    changed["ports"][0]["port"] = 81.into();
    let updated = update(&place, "a", changed).await;
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        assert_eq!(updated["spec"][name], created["spec"][name], "{name}");
    }
    assert_ne!(
        updated["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"]
    );
}

async fn an_address_cannot_change(server: Server) {
    let place = Place::new(server).await;
    let created = create(&place, "a", web()).await;
    let mut changed = web();
    changed["clusterIP"] = "10.0.0.250".into();
    let (code, answer) = send(&place, "PUT", "a", &service("a", changed.clone())).await;
    assert_eq!(code, 422, "{answer}");
    let expected = "Service \"a\" is invalid: spec.clusterIPs[0]: Invalid value: [\"10.0.0.250\"]: may not change once set";
    assert_eq!(answer["message"], expected);
    let patch = json!({ "spec": { "clusterIP": null } });
    let headers = [("content-type", "application/merge-patch+json")];
    let path = format!("{FOLDER}/a");
    let (code, answer) = place.raw("PATCH", &path, &headers, &patch.to_string()).await;
    assert_eq!(code, 200, "{answer}");
    let patched: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(patched["spec"], created["spec"]);
}

async fn a_class_cannot_change(server: Server) {
    let place = Place::new(server).await;
    let balanced = |class: Value| {
        let mut spec = web_of("LoadBalancer");
        spec["loadBalancerClass"] = class;
        spec
    };
    create(&place, "a", balanced("example.com/one".into())).await;
    for (class, shown) in [
        (json!("example.com/two"), "\"example.com/two\""),
        (Value::Null, "null"),
    ] {
        let (code, answer) = send(&place, "PUT", "a", &service("a", balanced(class))).await;
        assert_eq!(code, 422, "{answer}");
        let expected = format!(
            "Service \"a\" is invalid: spec.loadBalancerClass: Invalid value: {shown}: may not change once set"
        );
        assert_eq!(answer["message"], expected);
    }
    update(&place, "a", web()).await;
    update(&place, "a", balanced("example.com/two".into())).await;
}

async fn headless_services_get_no_address(server: Server) {
    let place = Place::new(server).await;
    let mut spec = web();
    spec["clusterIP"] = "None".into();
    let created = create(&place, "a", spec.clone()).await;
    assert_eq!(created["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(created["spec"]["ipFamilyPolicy"], "SingleStack");
    spec.as_object_mut().unwrap().remove("selector");
    let open = create(&place, "b", spec).await;
    assert_eq!(open["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(open["spec"]["ipFamilyPolicy"], "RequireDualStack");
}

async fn node_ports_are_allocated_and_kept(server: Server) {
    let place = Place::new(server).await;
    let ports = json!([
        { "name": "a", "port": 80 }, { "name": "b", "port": 53, "protocol": "UDP" }, { "name": "c", "port": 53 },
    ]);
    let mut spec = web_of("NodePort");
    spec["ports"] = ports;
    let created = create(&place, "a", spec.clone()).await;
    let mut taken = created.clone();
    let numbers: Vec<u64> = (0..3).map(|index| take_node_port(&mut taken, index)).collect();
    assert_ne!(numbers[0], numbers[1]);
    assert_eq!(
        numbers[1], numbers[2],
        "TCP and UDP on one port share a node port"
    );
    assert_eq!(taken["spec"]["externalTrafficPolicy"], "Cluster");
    assert_eq!(update(&place, "a", spec.clone()).await, created);

    let mut balanced = web_of("LoadBalancer");
    balanced["externalTrafficPolicy"] = "Local".into();
    let created = create(&place, "b", balanced.clone()).await;
    take_node_port(&mut created.clone(), 0);
    assert!(created["spec"]["healthCheckNodePort"].is_u64(), "{created}");
    assert_eq!(created["spec"]["allocateLoadBalancerNodePorts"], true);
    assert_eq!(update(&place, "b", balanced).await, created);

    let mut bare = web_of("LoadBalancer");
    bare["allocateLoadBalancerNodePorts"] = false.into();
    let created = create(&place, "c", bare).await;
    assert_eq!(created["spec"]["ports"][0]["nodePort"], Value::Null);
}

async fn fields_of_the_former_type_are_dropped(server: Server) {
    let place = Place::new(server).await;
    let mut created = create(&place, "a", web_of("LoadBalancer")).await;
    let address = created["spec"]["clusterIP"].clone();
    created["spec"]["type"] = "ClusterIP".into();
    let updated = update(&place, "a", created["spec"].clone()).await;
    let expected = json!({
        "clusterIP": address, "clusterIPs": [address], "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack", "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }],
        "selector": { "app": "a" }, "sessionAffinity": "None", "type": "ClusterIP",
    });
    assert_eq!(updated["spec"], expected);

    let mut external = updated["spec"].clone();
    external["type"] = "ExternalName".into();
    external["externalName"] = "example.com".into();
    let updated = update(&place, "a", external).await;
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        assert_eq!(updated["spec"][name], Value::Null, "{name}");
    }
    let back = update(&place, "a", web()).await;
    take_address(&mut back.clone());
}

async fn node_ports_without_allocation_are_dropped(server: Server) {
    let place = Place::new(server).await;
    let mut spec = web_of("LoadBalancer");
    spec["allocateLoadBalancerNodePorts"] = false.into();
    spec["ports"] = json!([{ "name": "a", "port": 80, "nodePort": 30_010 }, { "name": "b", "port": 81, "nodePort": 30_011 }]);
    let mut created = create(&place, "a", spec).await;
    assert_eq!(created["spec"]["ports"][1]["nodePort"], 30_011);
    created["spec"]["type"] = "ClusterIP".into();
    created["spec"]["ports"].as_array_mut().unwrap().pop();
    let updated = update(&place, "a", created["spec"].clone()).await;
    let ports = json!([{ "name": "a", "port": 80, "protocol": "TCP", "targetPort": 80 }]);
    assert_eq!(updated["spec"]["ports"], ports);
}

async fn traffic_policy_is_dropped_with_the_external_addresses(server: Server) {
    let place = Place::new(server).await;
    let mut spec = web();
    spec["externalIPs"] = json!(["192.0.2.1"]);
    spec["externalTrafficPolicy"] = "Local".into();
    let mut created = create(&place, "a", spec).await;
    assert_eq!(created["spec"]["externalTrafficPolicy"], "Local");
    created["spec"]["externalIPs"] = json!([]);
    let updated = update(&place, "a", created["spec"].clone()).await;
    assert_eq!(updated["spec"]["externalTrafficPolicy"], Value::Null);
}

async fn changed_fields_of_the_former_type_are_refused(server: Server) {
    let place = Place::new(server).await;
    let mut created = create(&place, "a", web_of("NodePort")).await;
    created["spec"]["type"] = "ClusterIP".into();
    created["spec"]["ports"][0]["nodePort"] = 30_012.into();
    let (code, answer) = send(&place, "PUT", "a", &service("a", created["spec"].clone())).await;
    assert_eq!(code, 422, "{answer}");
    let expected = "Service \"a\" is invalid: spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'";
    assert_eq!(answer["message"], expected);
}

async fn fields_of_the_new_type_are_required(server: Server) {
    let place = Place::new(server).await;
    let mut created = create(&place, "a", web_of("LoadBalancer")).await;
    created["spec"]["type"] = "ExternalName".into();
    let (code, answer) = send(&place, "PUT", "a", &service("a", created["spec"].clone())).await;
    assert_eq!(code, 422, "{answer}");
    let expected = "Service \"a\" is invalid: spec.externalName: Required value";
    assert_eq!(answer["message"], expected);
}

async fn nobody_manages_allocated_fields(server: Server) {
    let place = Place::new(server).await;
    let created = create(&place, "a", web_of("NodePort")).await;
    let managers = created["metadata"]["managedFields"].to_string();
    for name in ["clusterIP", "ipFamilies", "ipFamilyPolicy", "nodePort"] {
        assert!(!managers.contains(name), "{name}: {managers}");
    }
    let applied = service("a", json!({ "ports": [{ "port": 80 }] }));
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{FOLDER}/a?fieldManager=other");
    let (code, answer) = place.raw("PATCH", &path, &headers, &applied.to_string()).await;
    assert_eq!(code, 200, "{answer}");
    let found: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(found["spec"], created["spec"]);
}

async fn two_services_cannot_share_an_address_or_port(server: Server) {
    let place = Place::new(server).await;
    let first = create(&place, "a", web_of("NodePort")).await;
    let mut second = web();
    second["clusterIP"] = first["spec"]["clusterIP"].clone();
    let (code, answer) = send(&place, "POST", "b", &service("b", second)).await;
    assert_eq!(code, 422, "{answer}");
    let address = first["spec"]["clusterIP"].as_str().unwrap();
    let expected = format!(
        "Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: \
         provided IP is already allocated"
    );
    assert_eq!(answer["message"], expected);

    let mut second = web_of("NodePort");
    let number = first["spec"]["ports"][0]["nodePort"].clone();
    second["ports"][0]["nodePort"] = number.clone();
    let (code, answer) = send(&place, "POST", "b", &service("b", second)).await;
    assert_eq!(code, 422, "{answer}");
    let expected = format!(
        "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: {number}: provided port is already allocated"
    );
    assert_eq!(answer["message"], expected);
}
