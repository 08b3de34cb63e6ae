//! Other clusters next to the manager's own.

mod credentials;
mod fleet;
mod mirroring;
mod support;
