//! Claims, i.e. which replica owns which range. Stored in a `Lease`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::space::{RANGES, RangeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) holder: String,
    /// Generation of the claims in which this owner acquired the range. Always increases, so no two
    /// owners of a range have the same epoch.
    pub(crate) epoch: u64,
    /// Fields that a newer version of this library has added.
    pub(crate) unknown: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Incremented by each modification.
    pub(crate) generation: u64,
    /// Set if the claims were just created or restored, so that no replica may acquire anything
    /// yet. Identifies the creation.
    pub(crate) fresh: Option<String>,
    /// `None` if the range has no owner.
    pub(crate) ranges: Vec<Option<Claim>>,
    /// Fields that a newer version of this library has added.
    pub(crate) unknown: Map<String, Value>,
}

/// JSON representation of claims, which merges adjacent ranges with the same claim.
///
/// During an update, replicas of two versions share the claims. Unknown fields are therefore kept,
/// and new fields must be optional.
#[derive(Serialize, Deserialize)]
struct Text {
    ranges: u32,
    generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fresh: Option<String>,
    claims: Vec<Arc>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct Arc {
    first: u32,
    last: u32,
    holder: String,
    epoch: u64,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// Far beyond any generation that replicas can reach. A larger one was edited, and would overflow.
const MAX_GENERATION: u64 = u64::MAX / 2;

impl Claim {
    pub(crate) fn new(holder: impl Into<String>, epoch: u64) -> Self {
        Self {
            holder: holder.into(),
            epoch,
            unknown: Map::new(),
        }
    }
}

impl Claims {
    pub(crate) fn none(ranges: u32) -> Self {
        Self {
            generation: 0,
            fresh: None,
            ranges: vec![None; ranges as usize],
            unknown: Map::new(),
        }
    }

    pub(crate) fn space(&self) -> u32 {
        // Can't truncate, because parsed claims have at most 1024 ranges.
        self.ranges.len() as u32
    }

    pub(crate) fn holder(&self, range: u32) -> Option<&str> {
        Some(self.get(range)?.holder.as_str())
    }

    pub(crate) fn get(&self, range: u32) -> Option<&Claim> {
        self.ranges.get(range as usize)?.as_ref()
    }

    pub(crate) fn held_by(&self, holder: &str) -> RangeSet {
        RangeSet::of(self.space(), |range| self.holder(range) == Some(holder))
    }

    /// Returns the sorted identities of all owners.
    pub(crate) fn holders(&self) -> Vec<String> {
        let holders = self.ranges.iter().flatten().map(|claim| claim.holder.clone());
        let holders: std::collections::BTreeSet<String> = holders.collect();
        holders.into_iter().collect()
    }

    pub(crate) fn free(&self) -> RangeSet {
        RangeSet::of(self.space(), |range| self.holder(range).is_none())
    }

    pub(crate) fn are_free(&self) -> bool {
        self.ranges.iter().all(Option::is_none)
    }

    pub(crate) fn to_text(&self) -> String {
        let mut claims: Vec<Arc> = Vec::new();
        for (range, claim) in (0..).zip(&self.ranges) {
            let Some(Claim {
                holder,
                epoch,
                unknown,
            }) = claim
            else {
                continue;
            };
            match claims.last_mut() {
                Some(arc)
                    if arc.last + 1 == range
                        && arc.holder == *holder
                        && arc.epoch == *epoch
                        && arc.unknown == *unknown =>
                {
                    arc.last = range;
                }
                _ => claims.push(Arc {
                    first: range,
                    last: range,
                    holder: holder.clone(),
                    epoch: *epoch,
                    unknown: unknown.clone(),
                }),
            }
        }
        let text = Text {
            ranges: self.space(),
            generation: self.generation,
            fresh: self.fresh.clone(),
            claims,
            unknown: self.unknown.clone(),
        };
        // Serialization could only fail for maps and floats.
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// Parses the stored representation. Only fails if it was edited by another client.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text: Text = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !RANGES.contains(&text.ranges) {
            let (least, most) = RANGES.into_inner();
            return Err(format!(
                "expected {least} to {most} ranges, found {}",
                text.ranges
            ));
        }
        if text.generation > MAX_GENERATION {
            return Err(format!(
                "expected a generation of at most {MAX_GENERATION}, found {}",
                text.generation
            ));
        }
        let mut claims = Self::none(text.ranges);
        claims.generation = text.generation;
        claims.fresh = text.fresh;
        claims.unknown = text.unknown;
        for Arc {
            first,
            last,
            holder,
            epoch,
            unknown,
        } in text.claims
        {
            if first > last || last >= text.ranges {
                return Err(format!(
                    "expected ranges below {}, found {first} to {last}",
                    text.ranges
                ));
            }
            for range in first..=last {
                let claim = Claim {
                    holder: holder.clone(),
                    epoch,
                    unknown: unknown.clone(),
                };
                if claims.ranges[range as usize].replace(claim).is_some() {
                    return Err(format!("range {range} has two owners"));
                }
            }
        }
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(holder: &str, epoch: u64) -> Option<Claim> {
        Some(Claim::new(holder, epoch))
    }

    #[test]
    fn text_has_one_entry_for_each_arc() {
        let claims = Claims {
            generation: 7,
            fresh: None,
            ranges: vec![
                claim("a", 1),
                claim("a", 1),
                None,
                claim("a", 1),
                claim("a", 2),
                claim("b", 2),
            ],
            unknown: Map::new(),
        };
        let text = claims.to_text();
        assert_eq!(
            text,
            r#"{"ranges":6,"generation":7,"claims":[{"first":0,"last":1,"holder":"a","epoch":1},{"first":3,"last":3,"holder":"a","epoch":1},{"first":4,"last":4,"holder":"a","epoch":2},{"first":5,"last":5,"holder":"b","epoch":2}]}"#
        );
        assert_eq!(Claims::parse(&text), Ok(claims));
    }

    #[test]
    fn edited_text_is_rejected_with_the_reason() {
        let check = |claims: &str, expected: &str| {
            let text = format!(r#"{{"ranges":4,"generation":1,"claims":[{claims}]}}"#);
            assert_eq!(Claims::parse(&text), Err(expected.to_owned()));
        };
        let arc =
            |first: u32, last: u32| format!(r#"{{"first":{first},"last":{last},"holder":"a","epoch":1}}"#);
        check(&arc(2, 4), "expected ranges below 4, found 2 to 4");
        check(&arc(3, 2), "expected ranges below 4, found 3 to 2");
        check(&format!("{},{}", arc(0, 2), arc(2, 3)), "range 2 has two owners");
        let none = Claims::parse(r#"{"ranges":0,"generation":1,"claims":[]}"#);
        assert_eq!(none, Err("expected 1 to 1024 ranges, found 0".to_owned()));
        assert!(Claims::parse("").is_err());
        let text = format!(r#"{{"ranges":4,"generation":{},"claims":[]}}"#, u64::MAX);
        assert!(
            Claims::parse(&text)
                .unwrap_err()
                .starts_with("expected a generation")
        );
    }

    /// An older replica must not remove what a newer one has added.
    #[test]
    fn unknown_fields_are_kept() {
        let text = r#"{"ranges":4,"generation":7,"claims":[{"first":0,"last":1,"holder":"a","epoch":1,"zone":"x"},{"first":2,"last":2,"holder":"a","epoch":1}],"layout":{"of":[1]}}"#;
        let mut claims = Claims::parse(text).unwrap();
        assert_eq!(claims.to_text(), text);
        claims.ranges[3] = claim("b", 8);
        let text = claims.to_text();
        assert!(
            text.contains(r#""zone":"x""#) && text.contains(r#""layout":{"of":[1]}"#),
            "{text}"
        );
    }

    /// Version 0.1 rejects unknown fields, and deletes the claims if it finds any.
    #[test]
    fn claims_are_exchanged_with_the_version_before() {
        #[derive(Deserialize, PartialEq, Debug)]
        #[serde(deny_unknown_fields)]
        struct Before {
            ranges: u32,
            generation: u64,
            #[serde(default)]
            fresh: Option<String>,
            claims: Vec<ArcBefore>,
        }
        #[derive(Deserialize, PartialEq, Debug)]
        #[serde(deny_unknown_fields)]
        struct ArcBefore {
            first: u32,
            last: u32,
            holder: String,
            epoch: u64,
        }
        let written = r#"{"ranges":4,"generation":9,"fresh":"a/1","claims":[{"first":1,"last":3,"holder":"a","epoch":8}]}"#;
        let claims = Claims::parse(written).unwrap();
        assert_eq!(
            (
                claims.generation,
                claims.fresh.as_deref(),
                claims.get(0),
                claims.holder(3)
            ),
            (9, Some("a/1"), None, Some("a"))
        );
        let read: Before = serde_json::from_str(&claims.to_text()).unwrap();
        assert_eq!(read, serde_json::from_str(written).unwrap());
    }

    /// The text is stored in an annotation; all annotations of an object are limited to 256 KiB.
    #[test]
    fn largest_text_fits_into_an_annotation() {
        let holder = "x".repeat(63 + 33);
        let claims = Claims {
            generation: u64::MAX,
            fresh: Some(format!("{holder}/1")),
            ranges: (0..1024)
                .map(|_| claim(&holder, u64::MAX))
                .enumerate()
                .map(|(range, claim)| {
                    claim.map(|claim| Claim {
                        epoch: u64::MAX - range as u64,
                        ..claim
                    })
                })
                .collect(),
            unknown: Map::new(),
        };
        assert!(claims.to_text().len() < 200 << 10);
    }
}
