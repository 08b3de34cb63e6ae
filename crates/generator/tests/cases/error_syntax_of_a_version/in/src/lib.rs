pub mod v1;
pub mod v1alpha1;

use rbuilder::webhook::AdmissionRequest;
use rbuilder::webhook;

use crate::v1alpha1::Cup;

/// The kind of the parameter stands where nothing can be read.
#[webhook(mutating)]
fn default(object: &mut Cup, _request: &AdmissionRequest) {}
