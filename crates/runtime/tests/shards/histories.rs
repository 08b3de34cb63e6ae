//! Random histories. Replicas are started, stopped, killed and cut off, their claims are edited and
//! restored, and the API server may or may not support shard selectors. Meanwhile, objects are
//! created, modified, unselected and deleted.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::DeleteParams;
use proptest::prelude::*;
use proptest::sample::Index;
use rbuilder::{Selection, Unselected};
use serde_json::Value;
use tokio::time::sleep;

use crate::fleet::{Configure, DIVISIONS, Fleet, SELECTED, clean_up, forget};

const FINALIZER: &str = "example.com/clean-up";

#[derive(Clone, Debug)]
enum Event {
    Join,
    Stop(Index),
    Crash(Index),
    CutOff(Index),
    Reconnect(Index),
    Create,
    Write(Index),
    Delete(Index),
    Unselect(Index),
    DeleteChild(Index),
    Shard(bool),
    DropWatches,
    ExpireWatches,
    EditClaims(Index, Index),
    RestoreClaims(Index),
}

fn any_event() -> impl Strategy<Value = Event> {
    let index = any::<Index>;
    prop_oneof![
        4 => Just(Event::Join),
        2 => index().prop_map(Event::Stop),
        1 => index().prop_map(Event::Crash),
        1 => index().prop_map(Event::CutOff),
        2 => index().prop_map(Event::Reconnect),
        6 => Just(Event::Create),
        8 => index().prop_map(Event::Write),
        2 => index().prop_map(Event::Delete),
        1 => index().prop_map(Event::Unselect),
        2 => index().prop_map(Event::DeleteChild),
        1 => any::<bool>().prop_map(Event::Shard),
        1 => Just(Event::DropWatches),
        1 => Just(Event::ExpireWatches),
        1 => (index(), index()).prop_map(|(from, to)| Event::EditClaims(from, to)),
        1 => index().prop_map(Event::RestoreClaims),
    ]
}

struct History {
    fleet: Fleet,
    objects: Vec<String>,
    texts: usize,
    /// All claims so far, i.e. what a backup may contain.
    backups: Vec<String>,
}

impl History {
    async fn happen(&mut self, event: Event) {
        let fleet = &mut self.fleet;
        if let Some(claims) = fleet.claims().await
            && self.backups.last() != Some(&claims)
        {
            self.backups.push(claims);
        }
        let replicas = fleet.replicas.len();
        match event {
            Event::EditClaims(from, to) if !self.backups.is_empty() => {
                let last = self.backups.last().unwrap();
                let mut claims: Value = serde_json::from_str(last).unwrap();
                let arcs = claims["claims"].as_array_mut().unwrap();
                if !arcs.is_empty() {
                    // Keeps the epoch and the generation, like most people.
                    let (from, to) = (from.index(arcs.len()), to.index(arcs.len()));
                    arcs[from]["holder"] = arcs[to]["holder"].clone();
                }
                fleet.write_claims(&claims.to_string()).await;
            }
            Event::RestoreClaims(index) if !self.backups.is_empty() => {
                let backup: &String = index.get(&self.backups);
                fleet.write_claims(backup).await;
            }
            Event::Join if replicas < 4 => fleet.start(),
            Event::Create => {
                self.texts += 1;
                let name = format!("object-{}", self.texts);
                fleet.create(&name).await;
                self.objects.push(name);
            }
            Event::Write(index) if !self.objects.is_empty() => {
                self.texts += 1;
                let name = index.get(&self.objects);
                fleet.write(name, &format!("text {}", self.texts)).await;
            }
            Event::Delete(index) if !self.objects.is_empty() => {
                let name = self.objects.remove(index.index(self.objects.len()));
                fleet.delete(&name).await;
            }
            Event::Unselect(index) if !self.objects.is_empty() => {
                let name = self.objects.remove(index.index(self.objects.len()));
                fleet.unselect(&name).await;
            }
            Event::DeleteChild(index) if !self.objects.is_empty() => {
                // The child may not exist.
                let name = index.get(&self.objects);
                let _ = fleet.secrets(name).delete(name, &DeleteParams::default()).await;
            }
            Event::Shard(enabled) => fleet.server.sharding(enabled),
            Event::DropWatches => fleet.server.drop_watches(),
            Event::ExpireWatches => fleet.server.expire_watches(),
            Event::Stop(index) if replicas > 0 => drop(fleet.stop(index.index(replicas))),
            Event::Crash(index) if replicas > 0 => fleet.crash(index.index(replicas)),
            Event::CutOff(index) if replicas > 0 => fleet.cut_off(index.index(replicas), true),
            Event::Reconnect(index) if replicas > 0 => fleet.cut_off(index.index(replicas), false),
            _ => {}
        }
        // Replicas that were cut off for too long have exited.
        self.fleet
            .replicas
            .retain(|replica| !replica.running.is_finished());
    }

    /// Asserts that everything was reconciled: all objects have a child, and the selected ones have
    /// the finalizer.
    async fn end(mut self) {
        for index in 0..self.fleet.replicas.len() {
            self.fleet.cut_off(index, false);
        }
        self.fleet.start();
        self.fleet.reconciled().await;
        sleep(Duration::from_secs(60)).await;
        self.fleet.check();
        for name in &self.objects {
            assert!(
                self.fleet.secrets(name).get_opt(name).await.unwrap().is_some(),
                "{name} has no child"
            );
        }
        for object in self.fleet.objects().await {
            let name = object.name_any();
            let is_held = object.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
            assert_eq!(is_held, self.objects.contains(&name), "{name}");
            assert_eq!(object.metadata.deletion_timestamp, None, "{name}");
        }
    }
}

fn run(configure: Configure, history: Vec<(u64, Event)>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut run = History {
            fleet: Fleet::configured(1, true, move |controller| {
                configure(controller)
                    .finalizer(FINALIZER, clean_up)
                    .on_deleted(forget)
                    .selecting(Selection::all().labels(SELECTED))
                    .when_unselected(Unselected::CleanUp)
            })
            .await,
            objects: Vec::new(),
            texts: 0,
            backups: Vec::new(),
        };
        for (wait, event) in history {
            sleep(Duration::from_millis(wait)).await;
            run.happen(event).await;
            run.fleet.check();
        }
        run.end().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_loses_an_object_or_gives_it_to_two_replicas(
        division in 0..DIVISIONS.len(),
        history in prop::collection::vec((0_u64..3000, any_event()), 1..60),
    ) {
        run(DIVISIONS[division], history);
    }
}
