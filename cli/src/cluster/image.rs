//! The image of the manager in rendered manifests.

use serde_json::Value;

/// Name of the image that scaffolds deploy, in place of which people put their own.
pub(crate) const PLACEHOLDER: &str = "controller";

/// Replaces the image [`PLACEHOLDER`], with any tag, in the containers of all objects. Returns the number of containers.
pub(crate) fn set_image(objects: &mut [Value], image: &str) -> usize {
    let mut found = 0;
    for object in objects {
        visit_images(object, &mut |present| {
            if is_placeholder(present) {
                image.clone_into(present);
                found += 1;
            }
        });
    }
    found
}

/// Returns the image [`PLACEHOLDER`] as it is written in the containers of an object, if it is there.
pub(crate) fn find_placeholder(objects: &mut [Value]) -> Option<String> {
    let mut found = None;
    for object in objects {
        visit_images(object, &mut |present| {
            if is_placeholder(present) {
                found.get_or_insert_with(|| present.clone());
            }
        });
    }
    found
}

fn is_placeholder(image: &str) -> bool {
    image.split([':', '@']).next() == Some(PLACEHOLDER)
}

/// Calls a function with the image of each container in a value, however deep the pod is in it.
fn visit_images(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| visit_images(value, visit)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &mut *value) {
                    ("containers" | "initContainers", Value::Array(containers)) => {
                        let images =
                            containers
                                .iter_mut()
                                .filter_map(|container| match container.get_mut("image") {
                                    Some(Value::String(image)) => Some(image),
                                    _ => None,
                                });
                        images.for_each(&mut *visit);
                    }
                    _ => visit_images(value, visit),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(images: [&str; 3]) -> Value {
        json!({ "kind": "Deployment", "image": "controller", "spec": { "template": { "spec": {
            "initContainers": [{ "image": images[0] }],
            "containers": [{ "image": images[1] }, { "name": "none" }, { "image": images[2] }],
        }}}})
    }

    #[test]
    fn the_placeholder_is_replaced_with_any_tag_and_nothing_else() {
        let mut objects = [
            deployment(["controller@sha256:0", "controller:latest", "controllers:1"]),
            json!(3),
        ];
        assert_eq!(
            find_placeholder(&mut objects).as_deref(),
            Some("controller:latest")
        );
        assert_eq!(set_image(&mut objects, "example.com/a:1"), 2);
        assert_eq!(
            objects[0],
            deployment(["example.com/a:1", "example.com/a:1", "controllers:1"])
        );
        assert_eq!(find_placeholder(&mut objects), None);
        assert_eq!(set_image(&mut objects, "example.com/a:2"), 0);
    }
}
