//! Values and functions of CEL's and Kubernetes' libraries, independent of the evaluator.

pub(super) mod base64;
pub(super) mod cidr;
pub(super) mod duration;
pub(super) mod format;
pub(super) mod ip;
pub(super) mod semver;
pub(super) mod time;
pub(super) mod url;
