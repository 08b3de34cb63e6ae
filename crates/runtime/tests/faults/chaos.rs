//! Random faults of all kinds.

use std::time::Duration;

use http::StatusCode;
use rbuilder::envtest::Environment;
use tokio::time::{Instant, sleep};

use super::lot::Lot;
use super::proxy::{Fault, Proxy};
use super::scene::Scene;

/// Duration of the test in seconds. Defaults to 30.
const SECONDS: &str = "RBUILDER_CHAOS_SECONDS";
/// Repeats a run. By default, every run has a new seed.
const SEED: &str = "RBUILDER_CHAOS_SEED";

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is `{text}`: write a number")),
    )
}

fn new_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) % 1_000_000
}

/// Injects random faults sequentially. Each of them lasts from 0.1 to 3 seconds.
async fn chaos(proxy: &Proxy, lot: &mut Lot, until: Instant) {
    let statuses = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ];
    while Instant::now() < until {
        let share = (lot.below(9) + 1) as f64 / 10.0;
        let refusal = Fault::Refuse(*lot.pick(&statuses).unwrap());
        let delay = Fault::Delay(Duration::from_millis(lot.below(2000)));
        match lot.below(11) {
            0 => proxy.reset_some(share),
            1 => proxy.reset_all(),
            2 => proxy.expire_watches(),
            3 => proxy.fall_silent(),
            4 => proxy.inject([(share, refusal)]),
            5 => proxy.inject([(share, Fault::Reset)]),
            6 => proxy.inject([(share, Fault::LoseAnswer)]),
            7 => proxy.inject([(share, Fault::CutAnswer)]),
            8 => proxy.inject([(share, delay), (0.2, Fault::EndWatch)]),
            9 => proxy.inject([(share, Fault::ExpireWatch)]),
            _ => {}
        }
        sleep(Duration::from_millis(100 + lot.below(2900))).await;
        // Either delivers the delayed data, or resets the connections.
        if lot.falls(0.5) {
            proxy.restore();
        } else {
            proxy.heal();
            proxy.reset_all();
        }
    }
    proxy.restore();
}

#[rbuilder::envtest::test]
async fn operator_survives_chaos(env: Environment) {
    let seed = variable(SEED).unwrap_or_else(new_seed);
    let time = Duration::from_secs(variable(SECONDS).unwrap_or(30));
    println!("{SEED}={seed} {SECONDS}={}", time.as_secs());
    let scene = Scene::new(env, seed).await;
    let proxy = scene.proxy().await;
    let operator = scene.operator(&proxy);
    scene.begin().await;

    let people = scene.busy();
    chaos(&proxy, &mut Lot::new(seed), Instant::now() + time).await;
    let changes = people.rest().await;

    let over = Instant::now();
    // Give pending requests time to finish.
    sleep(Duration::from_secs(5)).await;
    let garbage = scene.converges().await;
    println!(
        "{changes} changes, {} faults, {} requests, {} reconciles, {garbage} late copies; converged after {:?}",
        proxy.injected(),
        proxy.requests(),
        scene.watchman.reconciles(),
        over.elapsed()
    );
    assert!(!operator.ended.is_finished());
    operator.stop().await.unwrap();
}
