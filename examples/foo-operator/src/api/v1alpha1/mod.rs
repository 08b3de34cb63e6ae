// SPDX-License-Identifier: Apache-2.0

//! Version v1alpha1 of samplecontroller.k8s.io.

mod foo;

pub use foo::*;
