//! Faults of the API server and of etcd.

use std::time::Duration;

use rbuilder::envtest::{Environment, Server};
use tokio::time::sleep;

use super::operator::Operator;
use super::scene::Scene;

/// The operator connects without a proxy while `fault` happens to the servers.
async fn survives(env: &Environment, seed: u64, fault: impl AsyncFnOnce()) {
    let scene = Scene::new(env.clone(), seed).await;
    let process = scene.process("the operator");
    let operator = Operator::start(env.config(), &scene.namespace, process, false);
    scene.begin().await;
    let people = scene.busy();
    fault().await;
    sleep(Duration::from_secs(2)).await;
    let changes = people.rest().await;
    scene.converges().await;
    println!("{changes} changes, {} reconciles", scene.watchman.reconciles());
    assert!(!operator.ended.is_finished());
    operator.stop().await.unwrap();
}

/// The scenarios run sequentially, on separate servers.
#[rbuilder::envtest::test]
async fn survives_hanging_and_crashing_servers() {
    let env = Environment::builder().start().await.unwrap();

    // Longer than the renew deadline, and longer than most timeouts of clients.
    survives(&env, 30, async || {
        env.pause(Server::ApiServer).unwrap();
        sleep(Duration::from_secs(15)).await;
        env.resume(Server::ApiServer).unwrap();
    })
    .await;

    // The watch cache is empty after a restart, so the versions of all watches are too old.
    survives(&env, 31, async || {
        env.kill(Server::ApiServer).unwrap();
        sleep(Duration::from_secs(3)).await;
        env.restart(Server::ApiServer).await.unwrap();
    })
    .await;

    survives(&env, 32, async || {
        env.kill(Server::Etcd).unwrap();
        sleep(Duration::from_secs(5)).await;
        env.restart(Server::Etcd).await.unwrap();
    })
    .await;

    env.stop().await.unwrap();
}
