// SPDX-License-Identifier: Apache-2.0

//! Memcached webhooks: defaulting.

use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Webhook, webhook};

use crate::api::v1alpha1::Memcached;

/// Size of a Memcached that does not specify one.
const DEFAULT_SIZE: i32 = 3;

/// Returns the webhooks for the manager.
pub fn webhook() -> Webhook<Memcached> {
    Webhook::new().defaulter(default)
}

/// Sets the default size. Clients written in languages without optional integers send 0.
#[webhook(mutating)]
fn default(memcached: &mut Memcached, _request: &AdmissionRequest) {
    if memcached.spec.size == 0 {
        memcached.spec.size = DEFAULT_SIZE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1alpha1::MemcachedSpec;
    use rbuilder::testing::admission_request;
    use rbuilder::webhook::Operation;

    #[test]
    fn zero_becomes_three_and_nothing_else_changes() {
        for (size, defaulted) in [(0, 3), (1, 1), (5, 5)] {
            let spec = MemcachedSpec {
                size,
                container_port: 11211,
            };
            let mut memcached = Memcached::new("some", spec);
            let mut expected = memcached.clone();
            expected.spec.size = defaulted;
            default(&mut memcached, &admission_request(Operation::Create));
            assert_eq!(memcached.spec, expected.spec);
        }
    }
}
