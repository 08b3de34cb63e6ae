// SPDX-License-Identifier: Apache-2.0

//! API types, by version.

pub mod v1alpha1;
