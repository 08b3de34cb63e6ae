//! Shard selectors for lists and watches: `shardRange(object.metadata.uid, '0x…', '0x…') || …`.

use serde_json::Value;

use super::failure::Failure;

const SPACE_END: u128 = 1 << 64;
const FIELDS: [&str; 2] = ["object.metadata.uid", "object.metadata.namespace"];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shard {
    field: String,
    /// Start (inclusive) and end (exclusive).
    ranges: Vec<(u128, u128)>,
}

impl Shard {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let parsed = parse(text);
        parsed.map_err(|why| Failure::new(500, "", format!("invalid shard selector: {why}")))
    }

    pub(super) fn contains(&self, object: &Value) -> bool {
        let field = self.field.rsplit('.').next().unwrap_or_default();
        let hash = u128::from(hash(object["metadata"][field].as_str().unwrap_or_default()));
        self.ranges
            .iter()
            .any(|(start, end)| (*start..*end).contains(&hash))
    }

    /// Formats the selector as the server echoes it in lists.
    pub(super) fn to_text(&self) -> String {
        let ranges = self
            .ranges
            .iter()
            .map(|(start, end)| format!("shardRange({}, '0x{start:016x}', '0x{end:016x}')", self.field));
        ranges.collect::<Vec<_>>().join(" || ")
    }
}

/// 64-bit FNV-1a, same as the server.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn parse(text: &str) -> Result<Shard, String> {
    let mut shard: Option<Shard> = None;
    for call in text.split("||").map(str::trim) {
        let (field, range) = parse_call(call)?;
        let shard = shard.get_or_insert_with(|| Shard {
            field: field.to_owned(),
            ranges: Vec::new(),
        });
        if shard.field != field {
            return Err(format!(
                "all shard ranges must use the same field, got \"{}\" and \"{field}\"",
                shard.field
            ));
        }
        shard.ranges.push(range);
    }
    shard.ok_or_else(not_a_call)
}

fn not_a_call() -> String {
    "unexpected expression kind 3; expected shardRange() call or || operator".to_owned()
}

fn parse_call(call: &str) -> Result<(&str, (u128, u128)), String> {
    if call.contains("&&") {
        return Err("unsupported function \"_&&_\"; only shardRange() and || are allowed".to_owned());
    }
    let arguments = call
        .strip_prefix("shardRange(")
        .and_then(|rest| rest.strip_suffix(')'));
    let arguments: Vec<&str> = arguments
        .ok_or_else(not_a_call)?
        .split(',')
        .map(str::trim)
        .collect();
    let [field, start, end] = arguments[..] else {
        return Err(format!(
            "shardRange() requires exactly 3 arguments, got {}",
            arguments.len()
        ));
    };
    if !FIELDS.contains(&field) {
        let supported = FIELDS.join(", ");
        return Err(format!(
            "unsupported field path \"{field}\"; supported: {supported}"
        ));
    }
    let (start_text, end_text) = (start.trim_matches('\''), end.trim_matches('\''));
    let (start, end) = (
        parse_bound("hexStart", start_text)?,
        parse_bound("hexEnd", end_text)?,
    );
    if start >= end {
        return Err(format!(
            "shard range start {start_text} must be less than end {end_text}"
        ));
    }
    Ok((field, (start, end)))
}

fn parse_bound(name: &str, text: &str) -> Result<u128, String> {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    if let Some(wrong) = digits
        .chars()
        .find(|digit| !matches!(digit, '0'..='9' | 'a'..='f'))
    {
        return Err(format!("{name}: invalid hex character \"{wrong}\" in \"{text}\""));
    }
    let value = u128::from_str_radix(digits, 16).unwrap_or(0);
    match digits.len() {
        16 => Ok(value),
        17 if value == SPACE_END => Ok(value),
        17 => Err(format!(
            "{name}: 17-digit hex value must be '0x10000000000000000' (2^64), got \"{text}\""
        )),
        _ => {
            let advice = format!("(did you mean \"0x{value:016x}\"?)");
            Err(format!(
                "{name} must be a 0x-prefixed 16-digit hex value, got \"{text}\" {advice}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rbuilder_catalogue::Minor;
    use serde_json::json;

    use super::super::store::State;
    use super::*;

    /// Messages taken from kube-apiserver 1.37.2.
    #[test]
    fn invalid_selectors_are_refused_like_in_kubernetes() {
        let check = |selector: &str, why: &str| {
            assert_eq!(parse(selector), Err(why.to_owned()), "{selector}");
        };
        let uid = |start: &str, end: &str| format!("shardRange(object.metadata.uid, '{start}', '{end}')");
        let (zero, half) = ("0x0000000000000000", "0x8000000000000000");
        check(
            &uid("0x0", half),
            "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x0\" (did you mean \"0x0000000000000000\"?)",
        );
        check(
            &uid(zero, "0x00000000000000zz"),
            "hexEnd: invalid hex character \"z\" in \"0x00000000000000zz\"",
        );
        check(
            &uid(zero, "0x10000000000000001"),
            "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x10000000000000001\"",
        );
        check(
            &uid(half, "0x1000000000000000"),
            "shard range start 0x8000000000000000 must be less than end 0x1000000000000000",
        );
        check(
            &format!(
                "{} || {}",
                uid(zero, half),
                uid(zero, half).replace("uid", "namespace")
            ),
            "all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\"",
        );
        check(
            &uid(zero, half).replace("uid", "name"),
            "unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace",
        );
        check(
            "shardRange(object.metadata.uid, '0x0000000000000000')",
            "shardRange() requires exactly 3 arguments, got 2",
        );
        check(
            &format!("{} && {}", uid(zero, half), uid(zero, half)),
            "unsupported function \"_&&_\"; only shardRange() and || are allowed",
        );
        check(
            "nonsense",
            "unexpected expression kind 3; expected shardRange() call or || operator",
        );
    }

    #[test]
    fn ranges_select_by_the_hash_of_the_field() {
        let half = "shardRange(object.metadata.uid,'0x8000000000000000','0x10000000000000000')";
        let shard = parse(half).unwrap();
        // The hashes start with 0xaf and 0x08, respectively.
        assert!(shard.contains(&json!({ "metadata": { "uid": "a" } })));
        assert!(!shard.contains(&json!({ "metadata": { "uid": "ab" } })));
        assert_eq!(
            shard.to_text(),
            "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
        );
    }

    #[test]
    fn generated_uids_are_spread_over_the_ranges() {
        let mut state = State::new(Minor::LATEST);
        let sixteenths: BTreeSet<u64> = (0..200).map(|_| hash(&state.uid()) >> 60).collect();
        assert_eq!(sixteenths.len(), 16);
    }
}
