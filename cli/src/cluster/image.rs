//! The manager's image in rendered manifests.

use serde_json::Value;

/// Label that selects the Deployments whose image is set, also in the project's Makefile.
pub(crate) const MANAGER_LABEL: (&str, &str) = ("control-plane", "controller-manager");

/// Sets the image of the first container of each Deployment labeled
/// `control-plane=controller-manager`, like `make deploy`, regardless of the current image. Returns
/// the number of Deployments.
pub(crate) fn set_image(objects: &mut [Value], image: &str) -> usize {
    let managers = objects.iter_mut().filter(|object| is_manager(object));
    let images = managers.filter_map(|manager| manager.pointer_mut("/spec/template/spec/containers/0/image"));
    let mut count = 0;
    for present in images {
        *present = image.into();
        count += 1;
    }
    count
}

fn is_manager(object: &Value) -> bool {
    let (label, value) = MANAGER_LABEL;
    object["kind"] == "Deployment" && object["metadata"]["labels"][label] == value
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
        assert_eq!(set_image(&mut objects, "example.com/a:1"), 1);
        assert_eq!(objects[0], manager("example.com/a:1"));
        assert_eq!(objects[1..], others);
        assert_eq!(set_image(&mut objects[1..], "example.com/a:2"), 0);
    }
}
