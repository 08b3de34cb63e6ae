//! URLs, parsed like in Go's `net/url`.

use super::ip::{Ip, parse_address};
use rbuilder_kubernetes::go::quote;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Url {
    pub(in super::super) scheme: String,
    opaque: String,
    /// As written.
    user: Option<String>,
    /// Includes the port.
    pub(in super::super) host: String,
    /// Unescaped.
    path: Vec<u8>,
    /// As written.
    raw_path: String,
    raw_query: String,
    has_empty_query: bool,
    fragment: String,
}

/// Parts of a URL, which differ in the characters they allow.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

/// Parses a URL like CEL's `url`, which requires Go's `ParseRequestURI` to accept it. Errors are
/// Go's.
pub(in super::super) fn parse_url(text: &str) -> Result<Url, String> {
    check_request_uri(text)?;
    let (before, fragment) = match text.split_once('#') {
        Some((before, fragment)) => (before, fragment),
        None => (text, ""),
    };
    let mut url = parse(before, false).map_err(|error| describe(before, &error))?;
    if !fragment.is_empty() {
        unescape(fragment, Part::Fragment).map_err(|error| describe(text, &error))?;
        url.fragment = fragment.to_owned();
    }
    Ok(url)
}

/// Validates a URL like Go's `ParseRequestURI`. Errors are Go's.
pub(in super::super) fn check_request_uri(text: &str) -> Result<(), String> {
    match parse(text, true) {
        Ok(_) => Ok(()),
        Err(error) => Err(describe(text, &error)),
    }
}

fn describe(text: &str, error: &str) -> String {
    format!("parse {}: {error}", quote(text))
}

fn parse(text: &str, via_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && via_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    if rest.ends_with('?') && rest.matches('?').count() == 1 {
        // Go preserves a lone trailing `?` when formatting.
        url.has_empty_query = true;
        rest = &rest[..rest.len() - 1];
    } else if let Some((before, query)) = rest.split_once('?') {
        url.raw_query = query.to_owned();
        rest = before;
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if via_request {
            return Err("invalid URI for request".to_owned());
        }
        // The segment could otherwise be mistaken for a scheme (RFC 3986, section 3.3).
        if rest
            .split('/')
            .next()
            .is_some_and(|segment| segment.contains(':'))
        {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let may_have_authority = !url.scheme.is_empty() || (!via_request && !rest.starts_with("///"));
    if let Some(after) = rest.strip_prefix("//").filter(|_| may_have_authority) {
        let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        (url.user, url.host) = parse_authority(&url.scheme, authority)?;
        rest = path;
    }
    url.path = unescape(rest, Part::Path)?;
    url.raw_path = rest.to_owned();
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(scheme: &str, authority: &str) -> Result<(Option<String>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, parse_host(scheme, authority)?));
    };
    let host = parse_host(scheme, host)?;
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(letter);
    if !user.chars().all(is_valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    unescape(name, Part::User)?;
    unescape(password, Part::User)?;
    Ok((Some(user.to_owned()), host))
}

fn check_port(colon_port: &str) -> Result<(), String> {
    if colon_port.is_empty() {
        return Ok(());
    }
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match colon_port.strip_prefix(':').is_some_and(is_port) {
        true => Ok(()),
        false => Err(format!("invalid port {} after host", quote(colon_port))),
    }
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return parse_bracketed(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let Some(first) = host.find(':') {
        let last = host.rfind(':').unwrap_or(first);
        let is_strict = matches!(scheme, "http" | "https");
        check_port(&host[if is_strict { first } else { last }..])?;
    }
    Ok(lossy(unescape(host, Part::Host)?))
}

/// Parses e.g. `[fe80::1%25en0]:80`.
fn parse_bracketed(host: &str) -> Result<String, String> {
    let close = host.rfind(']').ok_or("missing ']' in host")?;
    let port = &host[close + 1..];
    check_port(port)?;
    let name = &host[1..close];
    let name = match name.find("%25") {
        Some(zone) => {
            let mut bytes = unescape(&name[..zone], Part::Host)?;
            bytes.extend(unescape(&name[zone..], Part::Zone)?);
            lossy(bytes)
        }
        None => lossy(unescape(name, Part::Host)?),
    };
    match parse_address(&name).map_err(|error| format!("invalid host: {error}"))? {
        (Ip::V4(_), _) => Err("invalid IP-literal".to_owned()),
        (Ip::V6(_), _) => Ok(format!("[{name}]{port}")),
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn is_plain(byte: u8, part: Part) -> bool {
    let others: &[u8] = match part {
        Part::Path => b"$&+,-./:;=@_~",
        Part::Host | Part::Zone => b"!\"$&'()*+,-.:;<=>[]_~",
        Part::User => b"$&+,-.;=_~",
        Part::Query => b"-._~",
        Part::Fragment => b"!$&()*+,-./:;=?@_~",
    };
    byte.is_ascii_alphanumeric() || others.contains(&byte)
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut unescaped = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = bytes.get(at + 1..at + 3).and_then(hex);
                let end = (at + 3).min(bytes.len());
                let shown = lossy(bytes[at..end].to_vec());
                let is_percent = shown == "%25";
                // In hosts, only non-ASCII bytes may be escaped (RFC 3986), plus `%` for zones (RFC
                // 6874).
                let is_allowed = |value: u8| match part {
                    Part::Host => value >= 0x80 || is_percent,
                    Part::Zone => is_percent || value == b' ' || is_plain(value, Part::Host),
                    _ => true,
                };
                match digits.filter(|value| is_allowed(*value)) {
                    Some(value) => unescaped.push(value),
                    None => return Err(format!("invalid URL escape {}", quote(&shown))),
                }
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => unescaped.push(b' '),
            byte => {
                let is_host = matches!(part, Part::Host | Part::Zone);
                if is_host && byte < 0x80 && !is_plain(byte, part) {
                    let shown = quote(&char::from(byte).to_string());
                    return Err(format!("invalid character {shown} in host name"));
                }
                unescaped.push(byte);
            }
        }
        at += 1;
    }
    Ok(unescaped)
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let value = match digits {
        [high, low] => digit(*high)? * 16 + digit(*low)?,
        _ => return None,
    };
    u8::try_from(value).ok()
}

fn escape(bytes: &[u8], part: Part) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for &byte in bytes {
        match is_plain(byte, part) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

impl Url {
    fn host_port(&self) -> (&str, &str) {
        let (mut host, mut port) = (self.host.as_str(), "");
        if let Some((before, after)) = host.rsplit_once(':')
            && after.bytes().all(|byte| byte.is_ascii_digit())
        {
            (host, port) = (before, after);
        }
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }

    pub(in super::super) fn hostname(&self) -> &str {
        self.host_port().0
    }

    pub(in super::super) fn port(&self) -> &str {
        self.host_port().1
    }

    /// Returns the path as written if it's a valid encoding, or else re-encodes it.
    pub(in super::super) fn escaped_path(&self) -> String {
        if self.path == b"*" {
            return "*".to_owned();
        }
        let is_valid = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || is_plain(byte, Part::Path);
        match self.raw_path.bytes().all(is_valid) {
            true => self.raw_path.clone(),
            false => escape(&self.path, Part::Path),
        }
    }

    pub(in super::super) fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self.raw_query.split('&') {
            // Go ignores pairs that contain a semicolon.
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query)) else {
                continue;
            };
            let (key, value) = (lossy(key), lossy(value));
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => found.push((key, vec![value])),
            }
        }
        found
    }

    /// URLs are equal if Go would format them identically.
    pub(in super::super) fn normal_form(&self) -> impl PartialEq + '_ {
        let user = self.user.as_deref().map(|user| unescape(user, Part::User).ok());
        let fragment = unescape(&self.fragment, Part::Fragment).ok();
        (
            (&self.scheme, &self.opaque, user, &self.host),
            (
                self.escaped_path(),
                &self.raw_query,
                self.has_empty_query,
                fragment,
            ),
        )
    }
}
