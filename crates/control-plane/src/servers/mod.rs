//! Starts the servers on free ports with their own certificates, waits for them to become ready,
//! and stops them in order.

mod address;
mod assets;
mod cancel;
mod certificates;
mod control_plane;
mod controllers;
mod port;
mod probe;
mod process;
mod settings;

pub use address::WebhookAddress;
pub use assets::Assets;
pub use cancel::Cancel;
pub use certificates::{ServingCertificate, issue_serving_certificate};
pub use control_plane::{ControlPlane, Server};
pub use port::ReservedPort;
pub use settings::Settings;
