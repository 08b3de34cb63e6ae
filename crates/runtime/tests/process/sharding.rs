//! Replicas that share the objects of a namespace. Each is a process with its ring on a thread of its
//! own, which no test on the fake API server has.

use super::*;

/// How long objects of a suspended replica may wait: 20 s, and some slack.
const TAKEN_OVER: Duration = Duration::from_secs(40);
/// How long a replica may live after it has found its claims gone.
const GONE: Duration = Duration::from_secs(5);
const OBJECTS: usize = 24;

const FLAGS: [&str; 2] = ["--shards=auto", "--health-probe-bind-address=0"];

/// Creates objects and returns how many of them each replica has reconciled.
async fn shares(place: &Place, batch: &str, replicas: &[&Program]) -> Vec<usize> {
    let names: Vec<String> = (0..OBJECTS).map(|number| format!("{batch}-{number}")).collect();
    for name in &names {
        place.create(name, &[]).await;
    }
    let mut shares = vec![0; replicas.len()];
    for name in &names {
        eventually(TAKEN_OVER, || async {
            let logs = || replicas.iter().map(|replica| replica.log()).collect::<String>();
            place.mark(name, ENDED).await.map(drop).ok_or_else(logs)
        })
        .await;
        let (started, ended) = (place.mark(name, STARTED).await, place.mark(name, ENDED).await);
        assert_eq!(started, ended, "{name} has one replica");
        let replica = replicas.iter().position(|replica| Some(replica.id()) == ended);
        shares[replica.unwrap_or_else(|| panic!("{name} was reconciled by {ended:?}"))] += 1;
    }
    shares
}

#[rbuilder::envtest::test]
async fn replicas_share_objects_and_take_over_from_each_other() {
    let place = Place::new().await;
    let mut first = place.start(&FLAGS);
    first.logs("shards of this replica").await;
    let second = place.start(&FLAGS);
    second.logs("shards of this replica").await;
    // The first replica gives its ranges in one write, so both shares are final.
    let both = shares(&place, "both", &[&first, &second]).await;
    assert!(both.iter().all(|share| *share > 3), "{both:?}");

    first.signal("TERM");
    assert_eq!(first.ended(SOON).await, Ended::with(0), "{}", first.log());
    assert_eq!(shares(&place, "second", &[&second]).await, [OBJECTS]);

    let mut third = place.start(&FLAGS);
    third.logs("shards of this replica").await;
    third.signal("STOP");
    assert_eq!(shares(&place, "stopped", &[&second]).await, [OBJECTS]);
    third.signal("CONT");
    assert_eq!(third.ended(GONE).await, Ended::with(1), "{}", third.log());
    third.logs("shards lost").await;
}
