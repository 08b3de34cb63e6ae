//! Tests the round trip test for conversions that operators can use. It must detect lost data,
//! report the field, and show a minimal object.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube::core::ObjectMeta;
use kube::{CustomResource, CustomResourceExt};
use rbuilder::CrdSchema;
use rbuilder::testing::{RandomObjects, RoundTrip, assert_round_trip};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Fields of a version. The other versions represent the same data in a different way.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "trips.example.com",
    version = "v1",
    kind = "Tour",
    namespaced,
    status = "Status"
)]
#[serde(rename_all = "camelCase")]
struct TourSpec {
    /// From and to, separated by a dash.
    #[kube(validation(pattern = "^[a-z]{2,8}-[a-z]{2,8}$"))]
    way: String,
    #[serde(default)]
    seats: Option<i32>,
    #[kube(default = "train")]
    #[serde(default = "train")]
    by: Means,
    #[serde(default)]
    stops: Vec<Stop>,
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

fn train() -> Means {
    Means::Train
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Means {
    Train,
    Ship,
    Foot,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Stop {
    #[kube(validation(min_length = 1, max_length = 5))]
    name: String,
    #[kube(validation(minimum = 0, maximum = 90))]
    minutes: u8,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Status {
    #[serde(default)]
    left: bool,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(
        group = "trips.example.com",
        version = "v2",
        kind = "Tour",
        namespaced,
        status = "Status"
    )]
    #[serde(rename_all = "camelCase")]
    pub(super) struct TourSpec {
        #[kube(validation(pattern = "^[a-z]{2,8}$"))]
        pub(super) from: String,
        #[kube(validation(pattern = "^[a-z]{2,8}$"))]
        pub(super) to: String,
        #[serde(default)]
        pub(super) seats: Option<i32>,
        #[kube(default = "train")]
        #[serde(default = "train")]
        pub(super) by: Means,
        #[serde(default)]
        pub(super) stops: Vec<Stop>,
        #[serde(default)]
        pub(super) notes: BTreeMap<String, String>,
    }
}

impl TryFrom<Tour> for v2::Tour {
    type Error = String;

    fn try_from(tour: Tour) -> Result<Self, String> {
        let Tour {
            metadata,
            spec,
            status,
        } = tour;
        let (from, to) = spec.way.split_once('-').ok_or("spec.way has no dash")?;
        let (from, to) = (from.to_owned(), to.to_owned());
        let TourSpec {
            seats,
            by,
            stops,
            notes,
            ..
        } = spec;
        Ok(Self {
            metadata,
            spec: v2::TourSpec {
                from,
                to,
                seats,
                by,
                stops,
                notes,
            },
            status,
        })
    }
}

impl From<v2::Tour> for Tour {
    fn from(tour: v2::Tour) -> Self {
        let v2::Tour {
            metadata,
            spec,
            status,
        } = tour;
        let v2::TourSpec {
            from,
            to,
            seats,
            by,
            stops,
            notes,
        } = spec;
        let way = format!("{from}-{to}");
        Self {
            metadata,
            spec: TourSpec {
                way,
                seats,
                by,
                stops,
                notes,
            },
            status,
        }
    }
}

#[test]
fn lossless_conversions_pass() {
    assert_round_trip::<Tour, v2::Tour>();
    RoundTrip::<Tour, v2::Tour>::new().cases(50).seed(7).assert();
}

/// A third version, with a bug in each of its conversions.
mod faulty {
    use super::*;

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(group = "trips.example.com", version = "v3", kind = "Tour", namespaced)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct TourSpec {
        pub(super) way: String,
        #[serde(default)]
        pub(super) seats: Option<i32>,
        #[serde(default)]
        #[kube(validation(max_items = 2))]
        pub(super) stops: Vec<Stop>,
    }

    impl From<super::Tour> for Tour {
        fn from(tour: super::Tour) -> Self {
            let super::TourSpec {
                way,
                seats,
                mut stops,
                ..
            } = tour.spec;
            stops.retain(|stop| stop.minutes <= 60);
            Self {
                metadata: tour.metadata,
                spec: TourSpec { way, seats, stops },
            }
        }
    }

    impl TryFrom<Tour> for super::Tour {
        type Error = String;

        fn try_from(tour: Tour) -> Result<Self, String> {
            let TourSpec { way, seats, stops } = tour.spec;
            if seats == Some(13) {
                return Err("spec.seats brings bad luck".to_owned());
            }
            let (by, notes) = (Means::Train, BTreeMap::new());
            let spec = super::TourSpec {
                way,
                seats,
                by,
                stops,
                notes,
            };
            Ok(Self {
                metadata: tour.metadata,
                spec,
                status: None,
            })
        }
    }
}

type Faulty = RoundTrip<Tour, faulty::Tour>;

fn report(trip: Faulty) -> String {
    let caught = catch_unwind(AssertUnwindSafe(|| trip.assert()));
    *caught
        .expect_err("something is lost")
        .downcast::<String>()
        .unwrap()
}

/// Removes the data that this spoke drops on purpose.
fn without_more() -> Faulty {
    RoundTrip::new().normalize_hub(|tour: &mut Tour| {
        tour.spec.by = Means::Train;
        tour.spec.notes.clear();
        tour.status = None;
    })
}

/// A fourth version. Its conversion to the hub invents what the hub's schema rejects.
mod inventive {
    use super::*;

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(group = "trips.example.com", version = "v4", kind = "Tour", namespaced)]
    pub(super) struct TourSpec {
        pub(super) way: String,
    }

    impl From<super::Tour> for Tour {
        fn from(tour: super::Tour) -> Self {
            let way = tour.spec.way;
            Self {
                metadata: tour.metadata,
                spec: TourSpec { way },
            }
        }
    }

    impl From<Tour> for super::Tour {
        fn from(tour: Tour) -> Self {
            let spec = super::TourSpec {
                way: tour.spec.way,
                seats: None,
                by: Means::Train,
                stops: vec![Stop {
                    name: "a".to_owned(),
                    minutes: 91,
                }],
                notes: BTreeMap::new(),
            };
            Self {
                metadata: tour.metadata,
                spec,
                status: None,
            }
        }
    }
}

#[test]
fn normalization_does_not_hide_what_the_schema_rejects() {
    let trip = RoundTrip::<Tour, inventive::Tour>::new().normalize_hub(|tour: &mut Tour| {
        tour.spec = TourSpec {
            way: std::mem::take(&mut tour.spec.way),
            seats: None,
            by: Means::Train,
            stops: Vec::new(),
            notes: BTreeMap::new(),
        };
        tour.status = None;
    });
    let caught = catch_unwind(AssertUnwindSafe(|| trip.assert()));
    let said = caught
        .expect_err("the hub is invalid")
        .downcast::<String>()
        .unwrap();
    let expected = "an object is not preserved from trips.example.com/v1 to trips.example.com/v4 and back: the schema of \
                    trips.example.com/v1 refuses the converted object: ";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn lost_field_is_shown_on_a_minimal_object() {
    let lucky = || without_more().hub_when(|tour| tour.spec.seats != Some(13));
    let said = report(lucky());
    assert!(
        said.starts_with(
            "an object is not preserved from trips.example.com/v1 to trips.example.com/v3 and back: it has changed\n  spec.stops: [{\"minutes\":61,\"name\":\"a\"}] became []\nthe simplest such object:\n"
        ),
        "{said}"
    );
    let object = said
        .split("object:\n")
        .nth(1)
        .unwrap()
        .split("\nwhich becomes")
        .next()
        .unwrap();
    let object: Value = serde_json::from_str(object).unwrap();
    let spec = json!({ "way": "aa-aa", "by": "train", "stops": [{ "name": "a", "minutes": 61 }] });
    assert_eq!(object["spec"], spec);
    assert!(object.get("status").is_none() && object["metadata"].get("labels").is_none());
    assert_eq!(said, report(lucky()), "the same in every run");
}

#[test]
fn object_that_fails_to_convert_is_shown_with_the_reason() {
    let said = report(
        without_more()
            .hub_when(|tour| tour.spec.stops.is_empty())
            .cases(2000),
    );
    assert!(
        said.contains("it cannot be converted from trips.example.com/v3 to trips.example.com/v1: "),
        "{said}"
    );
    assert!(
        said.contains("spec.seats brings bad luck") && said.contains("\"seats\": 13"),
        "{said}"
    );
}

#[test]
fn object_that_the_other_schema_rejects_is_shown() {
    let said = report(without_more().hub_when(|tour| tour.spec.stops.iter().all(|stop| stop.minutes <= 60)).hub_values(
        "spec.stops",
        [json!([{ "name": "a", "minutes": 1 }, { "name": "b", "minutes": 1 }, { "name": "c", "minutes": 1 }])],
    ));
    assert!(
        said.contains("the schema of trips.example.com/v3 refuses the converted object: ")
            && said.contains("stops"),
        "{said}"
    );
}

#[test]
fn intended_losses_can_be_excluded() {
    without_more()
        .hub_when(|tour| tour.spec.seats != Some(13))
        .spoke_when(|tour| tour.spec.seats != Some(13))
        .hub_values("spec.stops[].minutes", [0, 60])
        .hub_values("spec.stops", [json!([]), json!([{ "name": "a", "minutes": 60 }])])
        .spoke_values("spec.way", ["a-b"])
        .spoke_values("spec.stops", [json!([])])
        .assert();
}

#[test]
fn skipping_every_object_is_an_error() {
    let said = report(Faulty::new().hub_when(|_| false));
    assert!(
        said.starts_with("all 256 objects of trips.example.com/v1 were skipped"),
        "{said}"
    );
}

/// The conversions of this version panic.
mod broken {
    use super::*;

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "trips.example.com", version = "v4", kind = "Tour", namespaced)]
    pub(super) struct TourSpec {
        #[allow(dead_code)] // it is never made
        way: String,
    }

    impl From<super::Tour> for Tour {
        fn from(_: super::Tour) -> Self {
            panic!("not today")
        }
    }

    impl From<Tour> for super::Tour {
        fn from(_: Tour) -> Self {
            panic!("not today")
        }
    }
}

#[test]
fn panic_counts_as_a_failed_conversion() {
    let caught = catch_unwind(|| RoundTrip::<Tour, broken::Tour>::new().assert());
    let said = caught.unwrap_err().downcast::<String>().unwrap();
    assert!(said.contains("v1 to trips.example.com/v4: it panicked"), "{said}");
}

/// Random objects must differ from each other, and be the same in every run.
#[test]
fn random_objects_decode_into_their_type() {
    let objects = RandomObjects::new(&Tour::crd(), "v1")
        .always("spec.seats")
        .always("spec.by")
        .values("spec.by", ["foot"]);
    let made: Vec<Value> = objects.iter(100).collect();
    assert_eq!(made, objects.iter(100).collect::<Vec<_>>());
    assert_ne!(made, objects.clone().seed(1).iter(100).collect::<Vec<_>>());
    let mut stops = 0;
    for object in &made {
        let tour: Tour = serde_json::from_value(object.clone()).unwrap();
        assert!(tour.spec.seats.is_some() && tour.spec.by == Means::Foot);
        assert_eq!(tour.metadata.namespace.as_deref(), Some("default"));
        assert!(ObjectMeta::default().uid.is_none() && tour.metadata.uid.is_some());
        let (from, to) = tour.spec.way.split_once('-').unwrap();
        assert!(
            (2..=8).contains(&from.len()) && (2..=8).contains(&to.len()),
            "{}",
            tour.spec.way
        );
        stops += usize::from(!tour.spec.stops.is_empty());
    }
    assert!((10..90).contains(&stops), "{stops} of 100 have stops");
    let full = objects
        .admit(json!({ "spec": { "way": "aa-bb", "more": 1, "notes": null } }))
        .unwrap();
    assert_eq!(full, json!({ "spec": { "way": "aa-bb", "by": "train" } }));
    assert!(objects.admit(json!({ "spec": {} })).is_err());
}

/// kube parses durations as floating point numbers, so nanoseconds can't be preserved in durations
/// of years.
#[test]
fn random_durations_survive_kubes_encoding() {
    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(group = "trips.example.com", version = "v1", kind = "Break", namespaced)]
    struct BreakSpec {
        lasts: kube::core::Duration,
    }

    let mut found = std::collections::BTreeSet::new();
    for object in RandomObjects::new(&Break::crd(), "v1").iter(200) {
        found.insert(object["spec"]["lasts"].to_string());
        let read: Break = serde_json::from_value(object).unwrap();
        let written = serde_json::to_value(&read).unwrap();
        let again: Break = serde_json::from_value(written).unwrap();
        assert_eq!(again.spec, read.spec);
    }
    assert!(found.len() > 3, "{found:?}");
}
