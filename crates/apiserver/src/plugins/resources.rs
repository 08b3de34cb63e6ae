//! Lists of resources, e.g. the requests of a Pod.

use std::collections::BTreeMap;

use rbuilder_kubernetes::quantity;
use serde_json::Value;

/// Quantities by the name of the resource.
pub(super) type Resources = BTreeMap<String, String>;

pub(super) fn read(value: &Value) -> Resources {
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, quantity)| Some((name.clone(), quantity.as_str()?.to_owned())))
        .collect()
}

pub(super) fn add(to: &mut Resources, more: &Resources) {
    for (name, quantity) in more {
        let sum = match to.get(name) {
            Some(known) => quantity::add(known, quantity, false).unwrap_or_else(|| known.clone()),
            None => quantity.clone(),
        };
        to.insert(name.clone(), sum);
    }
}

fn raise(to: &mut Resources, least: &Resources) {
    for (name, quantity) in least {
        let is_more = to.get(name).is_none_or(|known| is_less(known, quantity));
        if is_more {
            to.insert(name.clone(), quantity.clone());
        }
    }
}

pub(super) fn is_less(one: &str, other: &str) -> bool {
    quantity::compare(one, other).is_some_and(|order| order.is_lt())
}

/// Resources in `used` that exceed those in `hard`.
pub(super) fn exceeded<'r>(used: &'r Resources, hard: &Resources) -> Vec<&'r str> {
    let exceeds = |(name, used): &(&String, &String)| hard.get(*name).is_some_and(|hard| is_less(hard, used));
    used.iter()
        .filter(exceeds)
        .map(|(name, _)| name.as_str())
        .collect()
}

/// The `requests` or `limits` of a whole Pod. Init containers run one after the other, except for
/// sidecars.
pub(super) fn of_pod(pod: &Value, list: &str) -> Resources {
    let containers = |name: &str| pod["spec"][name].as_array().into_iter().flatten();
    let mut all = Resources::new();
    for container in containers("containers") {
        add(&mut all, &read(&container["resources"][list]));
    }
    let (mut sidecars, mut first) = (Resources::new(), Resources::new());
    for container in containers("initContainers") {
        let own = read(&container["resources"][list]);
        let mut meanwhile = own.clone();
        add(&mut meanwhile, &sidecars);
        raise(&mut first, &meanwhile);
        if container["restartPolicy"] == "Always" {
            add(&mut all, &own);
            add(&mut sidecars, &own);
        }
    }
    raise(&mut all, &first);
    for (name, quantity) in read(&pod["spec"]["resources"][list]) {
        all.insert(name, quantity);
    }
    all
}
