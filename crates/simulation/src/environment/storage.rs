//! Controllers for volumes and load balancers.
//!
//! A class may name a controller that is no part of the cluster. Its objects are left to the
//! operator or to a [`Behavior`] of the test.

use rbuilder_testing::fake::StoredObject;
use serde_json::{Value, json};

use super::{Act, Behavior, World, is_going, status_act};
use crate::history::Pace;

/// Provisioner of classes whose volumes someone makes by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Address of each load balancer of the cluster.
const ADDRESS: &str = "192.0.2.1";

pub(super) struct Volumes;

impl Behavior for Volumes {
    /// Binds claims at their requested size. If the environment is failing, claims without a volume
    /// remain pending.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        let claims = world.of("", "persistentvolumeclaims");
        claims
            .filter(|claim| !is_going(claim))
            .filter_map(|claim| {
                let spec = &claim.value()["spec"];
                let is_bound = claim.value()["status"]["phase"] == "Bound";
                let status = match pace {
                    Pace::Failing if is_bound => return None,
                    Pace::Prompt | Pace::Slow if is_bound || Claim(claim).gets_volume(world) => json!({
                        "phase": "Bound", "accessModes": spec["accessModes"],
                        "capacity": spec["resources"]["requests"],
                    }),
                    _ => json!({ "phase": "Pending" }),
                };
                status_act(claim, status)
            })
            .collect()
    }
}

struct Claim<'w>(&'w StoredObject);

impl Claim<'_> {
    /// Whether a volume is provisioned for the claim, or exists already.
    fn gets_volume(&self, world: &World) -> bool {
        let class = &self.0.value()["spec"]["storageClassName"];
        let mut classes = world.of("storage.k8s.io", "storageclasses");
        let known = classes.find(|known| class == known.metadata("name"));
        let provisioner = known.map(|class| &class.value()["provisioner"]);
        let mode = known.map(|class| &class.value()["volumeBindingMode"]);
        // The empty class asks for a volume that exists.
        let is_provisioned = *class != "" && provisioner.is_none_or(|name| *name != NO_PROVISIONER);
        let waits = mode.is_some_and(|mode| *mode == "WaitForFirstConsumer");
        (is_provisioned || self.is_offered_volume(world)) && (!waits || self.is_used(world))
    }

    fn is_offered_volume(&self, world: &World) -> bool {
        let spec = &self.0.value()["spec"];
        world.of("", "persistentvolumes").any(|volume| {
            let offer = &volume.value()["spec"];
            let claimed = &offer["claimRef"];
            let is_reserved = claimed["name"] == self.0.metadata("name")
                && claimed["namespace"] == self.0.metadata("namespace");
            let is_of_class = text(&offer["storageClassName"]) == text(&spec["storageClassName"]);
            match spec["volumeName"].as_str() {
                Some(name) => name == volume.metadata("name"),
                None => is_reserved || (claimed.is_null() && is_of_class),
            }
        })
    }

    /// Whether a Pod mounts the claim, or will do so.
    fn is_used(&self, world: &World) -> bool {
        let (namespace, name) = (self.0.metadata("namespace"), self.0.metadata("name"));
        let others = world.objects().iter();
        others
            .filter(|user| user.metadata("namespace") == namespace)
            .any(|user| mounts(user, name) || has_claim(user, name))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a Pod, or the template of a workload, mounts a claim.
fn mounts(user: &StoredObject, claim: &str) -> bool {
    let spec = &user.value()["spec"];
    let pod = match user.resource.as_str() {
        "pods" => spec,
        _ => &spec["template"]["spec"],
    };
    let volumes = pod["volumes"].as_array();
    let mut volumes = volumes.into_iter().flatten();
    volumes.any(|volume| volume["persistentVolumeClaim"]["claimName"] == claim)
}

/// Whether a claim has the name of one that a StatefulSet makes.
fn has_claim(set: &StoredObject, claim: &str) -> bool {
    let templates = set.value()["spec"]["volumeClaimTemplates"].as_array();
    let mut templates = templates.into_iter().flatten();
    templates.any(|template| {
        let start = format!(
            "{}-{}-",
            text(&template["metadata"]["name"]),
            set.metadata("name")
        );
        let number = claim.strip_prefix(&start);
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

pub(super) struct LoadBalancers;

impl Behavior for LoadBalancers {
    /// Assigns addresses to Ingresses and LoadBalancer Services, unless the environment is failing.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        if pace == Pace::Failing {
            return Vec::new();
        }
        let services = world.of("", "services").filter(wants_address);
        let ingresses = world.of("networking.k8s.io", "ingresses");
        let ingresses = ingresses.filter(|ingress| !is_of_other_controller(world, ingress));
        services
            .chain(ingresses)
            .filter(|stored| !is_going(stored))
            .filter_map(|stored| {
                let status = json!({ "loadBalancer": { "ingress": [{ "ip": ADDRESS }] } });
                status_act(stored, status)
            })
            .collect()
    }
}

/// Whether the service controller of Kubernetes makes a load balancer for a Service.
fn wants_address(service: &&StoredObject) -> bool {
    let spec = &service.value()["spec"];
    spec["type"] == "LoadBalancer" && spec["loadBalancerClass"].is_null()
}

/// Whether a class in the cluster names the controller of an Ingress. There is none by itself.
fn is_of_other_controller(world: &World, ingress: &StoredObject) -> bool {
    let class = &ingress.value()["spec"]["ingressClassName"];
    let mut classes = world.of("networking.k8s.io", "ingressclasses");
    classes.any(|known| *class == known.metadata("name"))
}

#[cfg(test)]
mod tests {
    use super::super::cluster::{Cluster, block_on};
    use super::*;

    /// The status of an object named `web` beside others, before and after a patch.
    async fn statuses(plural: &str, object: &Value, others: &[(&str, Value)], patch: &Value) -> [Value; 2] {
        let mut cluster = Cluster::empty(plural, Pace::Prompt);
        for (plural, object) in others {
            cluster.add(plural, object).await;
        }
        cluster.create(object).await;
        let mut states = Vec::new();
        for patch in [&json!({}), patch] {
            cluster.patch(patch).await;
            cluster.settle(|_| ()).await;
            states.push(cluster.objects(plural)[0].value()["status"].clone());
        }
        states.try_into().expect("two states")
    }

    fn service(mut spec: Value) -> Value {
        spec["ports"] = json!([{ "port": 80 }]);
        let metadata = json!({ "name": "web", "namespace": "default" });
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec })
    }

    #[test]
    fn services_with_a_class_get_no_address() {
        let class = json!({ "type": "LoadBalancer", "loadBalancerClass": "example.com/tunnel" });
        let plain = json!({ "type": "ClusterIP", "loadBalancerClass": null });
        let balanced = json!({ "type": "LoadBalancer" });
        for (spec, other, expected) in [
            (&balanced, &plain, [true, false]),
            (&class, &plain, [false, false]),
            (&plain, &balanced, [false, true]),
            (&plain, &class, [false, false]),
        ] {
            block_on(async {
                let patch = json!({ "spec": other });
                let found = statuses("services", &service(spec.clone()), &[], &patch).await;
                let found = found.map(|status| status["loadBalancer"]["ingress"][0]["ip"] == ADDRESS);
                assert_eq!(found, expected, "{spec}, then {other}");
            });
        }
    }

    #[test]
    fn ingresses_of_a_known_class_are_left_to_its_controller() {
        let ingress = |class: &str| {
            let metadata = json!({ "name": "web", "namespace": "default" });
            let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
            json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata,
                "spec": { "ingressClassName": class, "defaultBackend": backend },
            })
        };
        let class = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": { "name": "tunnel" },
            "spec": { "controller": "example.com/tunnel" },
        });
        for (name, has_address) in [("tunnel", false), ("nginx", true)] {
            block_on(async {
                let classes = [("ingressclasses", class.clone())];
                let [status, _] = statuses("ingresses", &ingress(name), &classes, &json!({})).await;
                assert_eq!(
                    !status["loadBalancer"]["ingress"].is_null(),
                    has_address,
                    "{name}"
                );
            });
        }
    }

    #[test]
    fn classes_say_when_claims_are_bound() {
        let class = |name: &str, provisioner: &str, mode: &str| {
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": name },
                "provisioner": provisioner, "volumeBindingMode": mode,
            })
        };
        let claim = |class: &str| {
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": { "name": "web", "namespace": "default" },
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                    "resources": { "requests": { "storage": "1Gi" } },
                },
            })
        };
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "disk" },
            "spec": {
                "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "storageClassName": "manual",
                "hostPath": { "path": "/disk" },
            },
        });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "user", "namespace": "default" },
            "spec": {
                "containers": [{ "name": "main", "image": "web:1" }],
                "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "web" } }],
            },
        });
        let classes = [
            class("manual", NO_PROVISIONER, "Immediate"),
            class("late", "example.com/disks", "WaitForFirstConsumer"),
            class("prompt", "example.com/disks", "Immediate"),
        ];
        let volume = ("persistentvolumes", volume);
        let pod = ("pods", pod);
        for (name, other, phase) in [
            ("prompt", None, "Bound"),
            ("manual", None, "Pending"),
            ("manual", Some(&volume), "Bound"),
            ("", None, "Pending"),
            ("late", Some(&volume), "Pending"),
            ("late", Some(&pod), "Bound"),
        ] {
            block_on(async {
                let classes = classes.iter().map(|class| ("storageclasses", class.clone()));
                let others: Vec<_> = classes.chain(other.cloned()).collect();
                let [status, _] = statuses("persistentvolumeclaims", &claim(name), &others, &json!({})).await;
                assert_eq!(status["phase"], phase, "{name} with {other:?}");
            });
        }
    }

    #[test]
    fn bound_claims_stay_bound() {
        block_on(async {
            let mut cluster = Cluster::empty("persistentvolumeclaims", Pace::Prompt);
            let claim = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": { "name": "web", "namespace": "default" },
                "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
            });
            cluster.create(&claim).await;
            cluster.settle(|_| ()).await;
            cluster.environment.fail();
            cluster.settle(|_| ()).await;
            let claims = cluster.objects("persistentvolumeclaims");
            assert_eq!(claims[0].value()["status"]["phase"], "Bound");
        });
    }
}
