// SPDX-License-Identifier: Apache-2.0

//! Fills in what a Memcached leaves out.

use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Webhook, webhook};

use crate::api::v1alpha1::Memcached;

/// How many instances there are where nobody says.
const SIZE: i32 = 3;

/// What is asked about a Memcached, and who answers.
pub fn webhook() -> Webhook<Memcached> {
    Webhook::new().defaulter(default)
}

/// Zero instances is what a client sends that has no word for "absent".
#[webhook(mutating, operations = ["create", "update"])]
pub fn default(memcached: &mut Memcached, _request: &AdmissionRequest) {
    if memcached.spec.size == 0 {
        memcached.spec.size = SIZE;
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
            let request = admission_request(Operation::Create);
            default(&mut memcached, &request);
            assert_eq!(memcached, expected);
        }
    }
}
