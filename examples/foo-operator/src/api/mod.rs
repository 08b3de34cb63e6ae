// SPDX-License-Identifier: Apache-2.0

//! The kinds that users of this operator write, by version.

pub mod v1alpha1;
