//! CPU profiles, decoded in the same way as by `go tool pprof`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rbuilder::envtest::{ReservedPort, eventually};
use rbuilder::fake::ApiServer;
use rbuilder::{Manager, ManagerArgs};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::SOON;

static STOP: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn burn_for_the_profile() -> u64 {
    let mut state = 1_u64;
    while !STOP.load(Ordering::Relaxed) {
        for _ in 0..1000 {
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
    state
}

/// Returns the status and the body.
async fn ask(address: &str, path: &str) -> Result<(u16, Vec<u8>), String> {
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(answer)
    };
    let answer = answer.await.map_err(|error: std::io::Error| error.to_string())?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.ok_or("no head")? + 4);
    let status = std::str::from_utf8(&head[9..12]).map_err(|error| error.to_string())?;
    Ok((status.parse().map_err(|_| "no status")?, body.to_vec()))
}

/// A profile contains the functions and threads that used CPU time. Only one can be recorded at a
/// time. It ends when the client disconnects or the manager stops.
#[tokio::test(flavor = "multi_thread")]
async fn profile_shows_cpu_time_by_thread_and_function() {
    let reserved = ReservedPort::reserve().unwrap();
    let address = format!("127.0.0.1:{}", reserved.number());
    let args = ManagerArgs {
        metrics_bind_address: address.clone(),
        metrics_secure: false,
        enable_debug_endpoints: true,
        ..ManagerArgs::for_tests()
    };
    let manager = Manager::with_client("profile.example.com", ApiServer::new().client(), args);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.start_until(async {
        let _ = stopped.await;
    }));
    let burner = std::thread::Builder::new().name("burner".to_owned());
    let burner = burner.spawn(burn_for_the_profile).unwrap();

    let index = eventually(SOON, || ask(&address, "/debug")).await;
    assert!(
        String::from_utf8(index.1)
            .unwrap()
            .contains("/debug/pprof/profile ")
    );
    let left = tokio::time::timeout(Duration::from_millis(200), ask(&address, "/debug/pprof/profile"));
    left.await.expect_err("the client leaves");
    let recorded = eventually(SOON, || async {
        let (status, body) = ask(&address, "/debug/pprof/profile?seconds=1").await?;
        match status {
            200 => Ok(body),
            _ => Err(String::from_utf8_lossy(&body).into_owned()),
        }
    });
    let recorded = recorded.await;
    let profile = Profile::decode(&recorded);
    assert_eq!(profile.sample_types, ["samples/count", "cpu/nanoseconds"]);
    let burnt = profile.cpu("burner", "burn_for_the_profile");
    assert!(burnt > 0, "{profile:#?}");
    assert!(profile.duration >= 1_000_000_000, "{}", profile.duration);

    let address_of_first = address.clone();
    let first = tokio::spawn(async move {
        // The other request may have been faster.
        eventually(SOON, || async {
            match ask(&address_of_first, "/debug/pprof/profile?seconds=120").await? {
                (409, _) => Err("another is recorded".to_owned()),
                answer => Ok(answer),
            }
        })
        .await
    });
    eventually(SOON, || async {
        let (status, body) = ask(&address, "/debug/pprof/profile?seconds=1").await?;
        let found = (status, String::from_utf8_lossy(&body).into_owned());
        match found == (409, "another profile is being recorded\n".to_owned()) {
            true => Ok(()),
            false => Err(format!("{found:?}")),
        }
    })
    .await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    let (status, body) = first.await.unwrap();
    assert_eq!(status, 200, "the profile ends with the manager");
    assert!(Profile::decode(&body).duration < 60_000_000_000);
    STOP.store(true, Ordering::Relaxed);
    burner.join().unwrap();
}

/// The parts of a `perftools.profiles.Profile` that the test needs.
#[derive(Debug)]
struct Profile {
    sample_types: Vec<String>,
    /// Thread, functions (starting with the leaf), and nanoseconds.
    samples: Vec<(String, Vec<String>, u64)>,
    duration: u64,
}

impl Profile {
    /// Returns the CPU time of a function on a thread in nanoseconds, including its callees.
    fn cpu(&self, thread: &str, function: &str) -> u64 {
        let samples = self.samples.iter().filter(|(on, functions, _)| {
            on == thread && functions.iter().any(|name| name.contains(function))
        });
        samples.map(|(_, _, nanoseconds)| nanoseconds).sum()
    }

    fn decode(bytes: &[u8]) -> Self {
        let profile = Message::decode(bytes);
        let strings: Vec<_> = profile
            .messages(6)
            .map(|text| String::from_utf8(text.to_vec()).unwrap())
            .collect();
        assert_eq!(strings[0], "");
        let string = |number: u64| strings[usize::try_from(number).unwrap()].clone();
        let by_id = |field| {
            let parts = profile.messages(field).map(Message::decode);
            parts
                .map(|part| (part.integer(1), part))
                .collect::<BTreeMap<_, _>>()
        };
        let (locations, functions) = (by_id(4), by_id(5));
        let name = |location: &u64| {
            let lines = locations[location].messages(4).map(Message::decode);
            lines
                .map(|line| string(functions[&line.integer(1)].integer(2)))
                .collect::<Vec<_>>()
        };
        let samples = profile.messages(2).map(Message::decode).map(|sample| {
            let names = sample.packed(1).iter().flat_map(name).collect();
            let label = Message::decode(sample.messages(3).next().unwrap());
            assert_eq!(string(label.integer(1)), "thread");
            (string(label.integer(2)), names, sample.packed(2)[1])
        });
        let types = profile.messages(1).map(Message::decode);
        let types = types.map(|kind| format!("{}/{}", string(kind.integer(1)), string(kind.integer(2))));
        Self {
            sample_types: types.collect(),
            samples: samples.collect(),
            duration: profile.integer(10),
        }
    }
}

/// The fields of a protocol buffer message in their original order.
struct Message<'a>(Vec<(u64, Field<'a>)>);

enum Field<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    fn decode(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Integer(value),
                2 => {
                    let (inner, rest) = bytes.split_at(usize::try_from(value).unwrap());
                    bytes = rest;
                    Field::Bytes(inner)
                }
                kind => panic!("wire type {kind}"),
            };
            fields.push((tag >> 3, field));
        }
        Self(fields)
    }

    fn messages(&self, wanted: u64) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter_map(move |(field, value)| match value {
            Field::Bytes(bytes) if *field == wanted => Some(*bytes),
            _ => None,
        })
    }

    fn integer(&self, wanted: u64) -> u64 {
        let found = self.0.iter().find_map(|(field, value)| match value {
            Field::Integer(value) if *field == wanted => Some(*value),
            _ => None,
        });
        found.unwrap_or_default()
    }

    fn packed(&self, wanted: u64) -> Vec<u64> {
        let mut bytes = self.messages(wanted).next().unwrap_or_default();
        let mut values = Vec::new();
        while !bytes.is_empty() {
            values.push(varint(&mut bytes));
        }
        values
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}
