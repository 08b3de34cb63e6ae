// SPDX-License-Identifier: Apache-2.0

//! Version v1alpha1 of the mirror.example.com API group.

mod config_mirror;

pub use config_mirror::*;
