// SPDX-License-Identifier: Apache-2.0

//! Version v1alpha1 of the samplecontroller.k8s.io API group.

mod foo;

pub use foo::*;
