//! Shows the ranges of a sharded operator, and which replica owns them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::shards::RingStatus;

pub(super) fn to_json(status: &RingStatus) -> Value {
    let owners = status
        .owners
        .iter()
        .map(|(ranges, identity, count)| json!({ "replica": identity, "ranges": ranges, "count": count }));
    json!({
        "replica": status.identity,
        "ranges": status.ranges,
        "generation": status.generation,
        "serving": status.serving,
        "draining": status.draining,
        "unowned": status.unowned,
        "unownedSeconds": status.unowned_for.as_secs_f64(),
        "acquired": status.acquired,
        "released": status.released,
        "conflicts": status.conflicts,
        "failures": status.failures,
        "suspended": status.suspended,
        "replicas": status.replicas,
        "owners": owners.collect::<Value>(),
    })
}

pub(super) fn to_text(status: &RingStatus) -> String {
    let RingStatus {
        identity,
        ranges,
        serving,
        draining,
        unowned,
        ..
    } = status;
    let mut text = format!(
        "{identity}: serving {serving} of {ranges} ranges, draining {draining}, acquired {}, released {}\n",
        status.acquired, status.released
    );
    // Writing to a `String` can't fail.
    if let Some(reason) = &status.suspended {
        let _ = writeln!(text, "stopped all reconciles: {reason}");
    }
    let _ = match unowned {
        0 => writeln!(text, "all ranges have an owner, generation {}", status.generation),
        _ => {
            let seconds = status.unowned_for.as_secs_f64();
            writeln!(
                text,
                "{unowned} ranges have no owner, for up to {seconds:.3} s, generation {}",
                status.generation
            )
        }
    };
    for (arcs, replica, count) in &status.owners {
        let is_live = status.replicas.contains(replica);
        let state = if is_live { "" } else { ", leaving or gone" };
        let _ = writeln!(text, "  {count:>4}  {replica}{state}: {arcs}");
    }
    let idle = status
        .replicas
        .iter()
        .filter(|replica| !status.owners.iter().any(|(_, owner, _)| owner == *replica));
    for replica in idle {
        let _ = writeln!(text, "     0  {replica}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn table_has_every_replica_with_its_ranges() {
        let status = RingStatus {
            identity: "a".to_owned(),
            ranges: 8,
            generation: 5,
            replicas: vec!["a".to_owned(), "c".to_owned()],
            owners: vec![
                ("0-3".to_owned(), "a".to_owned(), 4),
                ("5".to_owned(), "b".to_owned(), 1),
            ],
            serving: 3,
            draining: 1,
            unowned: 3,
            unowned_for: Duration::from_millis(1500),
            acquired: 4,
            suspended: Some("lease is held by the leader b".to_owned()),
            ..RingStatus::default()
        };
        let expected = "\
a: serving 3 of 8 ranges, draining 1, acquired 4, released 0
stopped all reconciles: lease is held by the leader b
3 ranges have no owner, for up to 1.500 s, generation 5
     4  a: 0-3
     1  b, leaving or gone: 5
     0  c
";
        assert_eq!(to_text(&status), expected);
        let json = to_json(&status);
        assert_eq!(
            json["owners"][1],
            json!({ "replica": "b", "ranges": "5", "count": 1 })
        );
        assert_eq!(json["unownedSeconds"], 1.5);
    }
}
