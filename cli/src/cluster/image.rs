//! The manager's image in rendered manifests.

use rbuilder_templates::objects::MANAGER_LABEL;
use serde_json::Value;

/// Sets the image of the first container of each Deployment whose label `control-plane` has the
/// project's value, like `make deploy`, regardless of the current image. Returns the number of
/// Deployments.
pub(crate) fn set_image(objects: &mut [Value], label: &str, image: &str) -> usize {
    let managers = objects.iter_mut().filter(|object| is_manager(object, label));
    let images = managers.filter_map(|manager| manager.pointer_mut("/spec/template/spec/containers/0/image"));
    let mut count = 0;
    for present in images {
        *present = image.into();
        count += 1;
    }
    count
}

fn is_manager(object: &Value, label: &str) -> bool {
    object["kind"] == "Deployment" && object["metadata"]["labels"][MANAGER_LABEL] == label
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, label: &str, image: &str) -> Value {
        json!({
            "kind": kind,
            "metadata": { "labels": { "control-plane": label } },
            "spec": { "template": { "spec": {
                "initContainers": [{ "image": "controller" }],
                "containers": [{ "image": image }, { "image": "controller:latest" }],
            }}},
        })
    }

    #[test]
    fn sets_only_the_first_container_of_labeled_deployments() {
        let manager = |image| object("Deployment", "controller-manager", image);
        let others = [
            object("Deployment", "other", "controller:latest"),
            object("StatefulSet", "controller-manager", "controller:latest"),
            json!({ "kind": "Deployment" }),
            json!(3),
        ];
        let mut objects = [&[manager("example.com/old:1")], &others[..]].concat();
        assert_eq!(
            set_image(&mut objects, "controller-manager", "example.com/a:1"),
            1
        );
        assert_eq!(objects[0], manager("example.com/a:1"));
        assert_eq!(objects[1..], others);
        assert_eq!(
            set_image(&mut objects[1..], "controller-manager", "example.com/a:2"),
            0
        );
    }
}
