//! Kubernetes' functions for URLs, quantities, IP addresses, named formats and semantic versions.

use rbuilder_kubernetes::quantity::{self, Problem, Quantity};

use std::cmp::Ordering;
use std::rc::Rc;

use super::library::cidr::parse_cidr;
use super::library::format::named_format;
use super::library::ip::parse_ip;
use super::library::semver::{Semver, parse_loose_semver, parse_semver};
use super::library::url::{Url, check_request_uri, parse_url};
use super::value::{Map, Value};
use super::{Outcome, Stop};

pub(super) fn call<'v>(function: &str, args: &[Value<'v>]) -> Option<Outcome<'v>> {
    if let Some(name) = function.strip_prefix("format.")
        && args.is_empty()
    {
        return named_format(name).map(|format| Ok(Value::Format(format)));
    }
    match args {
        [Value::Url(url)] => on_url(function, url),
        [Value::Quantity(quantity), rest @ ..] => on_quantity(function, quantity, rest),
        [Value::Semver(version), rest @ ..] => on_version(function, version, rest),
        [Value::Ip(_) | Value::Cidr(_), ..] => on_address(function, args),
        _ => on_text(function, args),
    }
}

fn on_text<'v>(function: &str, args: &[Value<'v>]) -> Option<Outcome<'v>> {
    let fails = |text: String| Stop::error(text);
    Some(match (function, args) {
        ("url", [Value::String(text)]) => parse_url(text)
            .map(|url| Value::Url(Rc::new(url)))
            .map_err(|error| fails(format!("URL parse error during conversion from string: {error}"))),
        ("isURL", [Value::String(text)]) => Ok(Value::Bool(check_request_uri(text).is_ok())),
        ("quantity", [Value::String(text)]) => match quantity::parse(text) {
            Ok(quantity) => Ok(Value::Quantity(Rc::new(quantity))),
            Err(Problem::Invalid(text)) => Err(fails(text.to_owned())),
            Err(Problem::TooLarge) => Err(TOO_LARGE),
        },
        ("isQuantity", [Value::String(text)]) => Ok(Value::Bool(!matches!(
            quantity::parse(text),
            Err(Problem::Invalid(_))
        ))),
        ("ip", [Value::String(text)]) => parse_ip(text).map(Value::Ip).map_err(fails),
        ("isIP", [Value::String(text)]) => Ok(Value::Bool(parse_ip(text).is_ok())),
        ("ip.isCanonical", [Value::String(text)]) => parse_ip(text)
            .map(|ip| Value::Bool(ip.format() == **text))
            .map_err(fails),
        ("cidr", [Value::String(text)]) => parse_cidr(text).map(Value::Cidr).map_err(fails),
        ("isCIDR", [Value::String(text)]) => Ok(Value::Bool(parse_cidr(text).is_ok())),
        ("semver", [Value::String(text)]) => version(parse_semver(text)),
        ("semver", [Value::String(text), Value::Bool(loose)]) => version(parse_version(text, *loose)),
        ("isSemver", [Value::String(text)]) => Ok(Value::Bool(parse_semver(text).is_ok())),
        ("isSemver", [Value::String(text), Value::Bool(loose)]) => {
            Ok(Value::Bool(parse_version(text, *loose).is_ok()))
        }
        ("format.named", [Value::String(name)]) => Ok(match named_format(name) {
            Some(format) => Value::some(Value::Format(format)),
            None => Value::Optional(None),
        }),
        ("validate", [Value::Format(format), Value::String(text)]) => {
            let errors = format.validate(text);
            Ok(match errors.is_empty() {
                true => Value::Optional(None),
                false => Value::some(Value::strings(errors)),
            })
        }
        _ => return None,
    })
}

const TOO_LARGE: Stop = Stop::Unsupported("a quantity of unusual size");

fn on_url<'v>(function: &str, url: &Url) -> Option<Outcome<'v>> {
    let text = match function {
        "getScheme" => url.scheme.clone(),
        "getHost" => url.host.clone(),
        "getHostname" => url.hostname().to_owned(),
        "getPort" => url.port().to_owned(),
        "getEscapedPath" => url.escaped_path(),
        "getQuery" => {
            let entries: Vec<_> = url
                .query()
                .into_iter()
                .map(|(key, values)| (Value::string(key), Value::strings(values)))
                .collect();
            return Some(Ok(Value::Map(Map::Made(entries.into()))));
        }
        _ => return None,
    };
    Some(Ok(Value::string(text)))
}

fn order<'v>(function: &str, order: Ordering) -> Option<Outcome<'v>> {
    Some(Ok(match function {
        "isGreaterThan" => Value::Bool(order.is_gt()),
        "isLessThan" => Value::Bool(order.is_lt()),
        "compareTo" => Value::Int(order as i64),
        _ => return None,
    }))
}

fn on_quantity<'v>(function: &str, quantity: &Quantity, rest: &[Value<'v>]) -> Option<Outcome<'v>> {
    let is_minus = function == "sub";
    let sum = |other: &Quantity| {
        let sum = quantity.plus(other, is_minus).ok_or(TOO_LARGE)?;
        Ok(Value::Quantity(Rc::new(sum)))
    };
    Some(match (function, rest) {
        ("sign", []) => Ok(Value::Int(quantity.sign())),
        ("isInteger", []) => Ok(Value::Bool(quantity.as_integer().is_some())),
        ("asInteger", []) => quantity
            .as_integer()
            .map(Value::Int)
            .ok_or_else(|| Stop::error("cannot convert value to integer")),
        ("asApproximateFloat", []) => Ok(Value::Double(quantity.as_float())),
        ("add" | "sub", [Value::Quantity(other)]) => sum(other),
        ("add" | "sub", [Value::Int(other)]) => sum(&Quantity::of_int(*other)),
        (_, [Value::Quantity(other)]) => order(function, quantity.compare(other))?,
        _ => return None,
    })
}

fn parse_version(text: &str, loose: bool) -> Result<Semver, String> {
    match loose {
        true => parse_loose_semver(text),
        false => parse_semver(text),
    }
}

fn version<'v>(parsed: Result<Semver, String>) -> Outcome<'v> {
    match parsed {
        Ok(version) => Ok(Value::Semver(Rc::new(version))),
        Err(text) => Err(Stop::error(text)),
    }
}

fn on_version<'v>(function: &str, version: &Semver, rest: &[Value<'v>]) -> Option<Outcome<'v>> {
    // Wraps around, like Go's conversion to a signed integer.
    #[allow(clippy::cast_possible_wrap)]
    let int = |number: u64| Ok(Value::Int(number as i64));
    Some(match (function, rest) {
        ("major", []) => int(version.major),
        ("minor", []) => int(version.minor),
        ("patch", []) => int(version.patch),
        (_, [Value::Semver(other)]) => order(function, version.cmp(other))?,
        _ => return None,
    })
}

fn on_address<'v>(function: &str, args: &[Value<'v>]) -> Option<Outcome<'v>> {
    Some(Ok(match (function, args) {
        ("family", [Value::Ip(ip)]) => Value::Int(ip.family()),
        ("isUnspecified", [Value::Ip(ip)]) => Value::Bool(ip.is_unspecified()),
        ("isLoopback", [Value::Ip(ip)]) => Value::Bool(ip.is_loopback()),
        ("isLinkLocalMulticast", [Value::Ip(ip)]) => Value::Bool(ip.is_link_local_multicast()),
        ("isLinkLocalUnicast", [Value::Ip(ip)]) => Value::Bool(ip.is_link_local_unicast()),
        ("isGlobalUnicast", [Value::Ip(ip)]) => Value::Bool(ip.is_global_unicast()),
        ("ip", [Value::Cidr(cidr)]) => Value::Ip(cidr.ip),
        ("prefixLength", [Value::Cidr(cidr)]) => Value::Int(i64::from(cidr.bits)),
        ("masked", [Value::Cidr(cidr)]) => Value::Cidr(cidr.masked()),
        ("containsIP", [Value::Cidr(cidr), Value::Ip(ip)]) => Value::Bool(cidr.contains_ip(*ip)),
        ("containsCIDR", [Value::Cidr(cidr), Value::Cidr(other)]) => Value::Bool(cidr.contains(*other)),
        // If the string isn't an address, the API server reports a wrong argument type.
        ("containsIP", [Value::Cidr(cidr), Value::String(text)]) => match parse_ip(text) {
            Ok(ip) => Value::Bool(cidr.contains_ip(ip)),
            Err(_) => return Some(Err(Stop::no_overload())),
        },
        ("containsCIDR", [Value::Cidr(cidr), Value::String(text)]) => match parse_cidr(text) {
            Ok(other) => Value::Bool(cidr.contains(other)),
            Err(error) => return Some(Err(Stop::error(error))),
        },
        _ => return None,
    }))
}
