//! Placeholders for the addresses and ports that the server allocates for Services.
//!
//! Addresses differ between runs, so snapshots contain the name of the Service instead. If an
//! operator keeps the address of a deleted Service, it is not replaced, so it shows up as a
//! difference between runs.

use std::collections::BTreeMap;

use serde_json::Value;

/// Prefix of the placeholder for an address.
pub(crate) const ADDRESS: &str = "<address of ";

/// Placeholder for an allocated port.
pub(crate) const NODE_PORT: &str = "<node port>";

/// Placeholders by address.
pub(crate) type Addresses = BTreeMap<String, String>;

/// Returns the addresses of all Services among the objects.
pub(crate) fn list_addresses<'o>(objects: impl Iterator<Item = &'o Value>) -> Addresses {
    let services = objects.filter(|object| object["kind"] == "Service" && object["apiVersion"] == "v1");
    services
        .filter_map(|service| {
            let address = service["spec"]["clusterIP"].as_str()?;
            let metadata = &service["metadata"];
            let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
            let is_address = address.starts_with(|first: char| first.is_ascii_digit());
            is_address.then(|| (address.to_owned(), format!("{ADDRESS}{namespace}/{name}>")))
        })
        .collect()
}

/// Replaces addresses in all strings of an object, and the node ports of a Service.
pub(crate) fn replace_addresses(object: &mut Value, addresses: &Addresses) {
    if addresses.is_empty() {
        return;
    }
    if object["kind"] == "Service" && object["apiVersion"] == "v1" {
        replace_ports(object);
    }
    replace_in(object, addresses);
}

fn replace_ports(service: &mut Value) {
    let spec = &mut service["spec"];
    if spec["healthCheckNodePort"].is_number() {
        spec["healthCheckNodePort"] = NODE_PORT.into();
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        if port["nodePort"].is_number() {
            port["nodePort"] = NODE_PORT.into();
        }
    }
}

fn replace_in(value: &mut Value, addresses: &Addresses) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|value| replace_in(value, addresses)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_in(item, addresses)),
        Value::String(text) => {
            for (address, placeholder) in addresses {
                if let Some(replaced) = replace_whole(text, address, placeholder) {
                    *text = replaced;
                }
            }
        }
        _ => {}
    }
}

/// Replaces an address, but not the start of a longer one.
fn replace_whole(text: &str, address: &str, placeholder: &str) -> Option<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
    let found = text
        .match_indices(address)
        .find(|(at, _)| !text[..*at].ends_with(is_part) && !text[at + address.len()..].starts_with(is_part));
    let (at, _) = found?;
    let rest = &text[at + address.len()..];
    let rest = replace_whole(rest, address, placeholder).unwrap_or_else(|| rest.to_owned());
    Some(format!("{}{placeholder}{rest}", &text[..at]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replaces_addresses_and_ports() {
        let service = |name: &str, address: &str| {
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "x", "name": name },
                "spec": { "clusterIP": address, "clusterIPs": [address], "ports": [{ "port": 80, "nodePort": 30123 }] },
            })
        };
        let services = [
            service("a", "10.0.0.1"),
            service("b", "10.0.0.12"),
            service("c", "None"),
        ];
        let addresses = list_addresses(services.iter());
        let mut map = json!({ "data": {
            "urls": "http://10.0.0.1:80,http://10.0.0.12:80", "old": "10.0.0.13", "port": 30123,
        } });
        replace_addresses(&mut map, &addresses);
        let urls = "http://<address of x/a>:80,http://<address of x/b>:80";
        assert_eq!(
            map,
            json!({ "data": { "urls": urls, "old": "10.0.0.13", "port": 30123 } })
        );
        let mut named = services[0].clone();
        replace_addresses(&mut named, &addresses);
        assert_eq!(named["spec"]["clusterIPs"], json!(["<address of x/a>"]));
        assert_eq!(
            named["spec"]["ports"],
            json!([{ "port": 80, "nodePort": NODE_PORT }])
        );
    }
}
