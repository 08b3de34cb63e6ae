//! Value parser for `--webhook-port`.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::parser::ValueSource;
use clap::{Arg, Command, value_parser};

use super::WEBHOOK_PORT;

/// Falls back to the default if the environment variable contains the address of a Service.
///
/// In a Pod with service links, Kubernetes sets `WEBHOOK_PORT=tcp://10.0.0.1:443` for a Service
/// named `webhook`, which must not be mistaken for the value of our flag.
#[derive(Clone)]
pub(super) struct PortParser;

impl TypedValueParser for PortParser {
    type Value = u16;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<u16, clap::Error> {
        value_parser!(u16).parse_ref(cmd, arg, value)
    }

    fn parse_ref_(
        &self,
        cmd: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<u16, clap::Error> {
        let is_link = |value: &str| {
            ["tcp://", "udp://", "sctp://"]
                .iter()
                .any(|start| value.starts_with(start))
        };
        if source == ValueSource::EnvVariable && value.to_str().is_some_and(is_link) {
            return Ok(WEBHOOK_PORT);
        }
        self.parse_ref(cmd, arg, value)
    }
}
