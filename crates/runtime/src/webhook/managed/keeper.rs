//! Keeps the Secret, the served certificate, and the CA bundles consistent.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::contents::{Contents, StoredContents};
use super::inject::{Targets, only_named, send_request, watch_changes};
use super::{KeeperError, ManagedCertificate, Settings, post_params};
use crate::deadline::deadline_after;
use crate::metrics::Metrics;
use crate::tls::Certificates;
use crate::tls::issued::Issued;

/// Interval between full checks, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(60);
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Delay after a change, because changes often come in bursts.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Maximum number of attempts after conflicts.
const WRITE_ATTEMPTS: usize = 5;

#[derive(Clone, Debug)]
pub(crate) enum Injection {
    /// Contains the most recent error, if any.
    Pending(Option<String>),
    /// The bundle was injected, but the API server doesn't call some of the webhooks, because an
    /// object is missing or doesn't refer to the service.
    Unreferenced(String),
    /// The bundle was injected. This is final, even if a configuration is deleted later: an unready
    /// process couldn't serve conversions either.
    Done,
}

pub(crate) struct Keeper {
    settings: Settings,
    client: Client,
    secrets: Api<Secret>,
    targets: Targets,
    metrics: Metrics,
    serving: Arc<Issued>,
    certificates: Arc<Certificates>,
    /// The certificate whose CA was injected everywhere, and when.
    injected: Option<(Arc<Issued>, Instant)>,
    /// Number of objects found by the last check, and why some webhooks aren't called.
    found: Option<(usize, Vec<String>)>,
    injection: watch::Sender<Injection>,
}

impl Keeper {
    /// Reads the certificate from the Secret, or issues one if necessary. Retries errors until
    /// `timeout`.
    pub(crate) async fn new(
        certificate: ManagedCertificate,
        targets: Targets,
        client: Client,
        metrics: Metrics,
        timeout: Duration,
    ) -> Result<Self, KeeperError> {
        let settings = certificate.into_settings(client.default_namespace());
        let secrets = Api::namespaced(client.clone(), &settings.namespace);
        let deadline = deadline_after(Instant::now(), timeout);
        let mut backoff = BACKOFF.0;
        let contents = loop {
            let reconciled = reconcile_secret(&secrets, &settings, None).await;
            metrics.certificate_read(reconciled.is_ok());
            match reconciled {
                Ok(contents) => break contents,
                Err(error) if error.is_terminal() || Instant::now() + backoff > deadline => {
                    return Err(error);
                }
                Err(error) if error.is_unreachable() => {
                    tracing::debug!(%error, "failed to obtain the webhook certificate, retrying");
                }
                Err(error) => tracing::warn!(%error, "failed to obtain the webhook certificate, retrying"),
            }
            sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF.1);
        };
        let serving = contents.issued;
        Ok(Self {
            certificates: Certificates::new(Arc::clone(&serving.pair)),
            settings,
            client,
            secrets,
            targets,
            metrics,
            serving,
            injected: None,
            found: None,
            injection: watch::Sender::new(Injection::Pending(None)),
        })
    }

    /// A rotation replaces the certificate in here.
    pub(crate) fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.certificates)
    }

    pub(crate) fn injection(&self) -> watch::Receiver<Injection> {
        self.injection.subscribe()
    }

    /// Watches the Secret, rotates the certificate, and injects its CA bundle. Never returns.
    pub(crate) async fn run(mut self) {
        let mut changes = self.targets.watch_changes(&self.client, &self.settings);
        let secrets = Api::namespaced(self.client.clone(), &self.settings.namespace);
        changes.push(watch_changes::<Secret>(
            secrets,
            only_named(&self.settings.secret),
        ));
        let mut backoff = BACKOFF.0;
        loop {
            let reconciled = self.reconcile().await;
            self.metrics.certificate_read(reconciled.is_ok());
            let idle = match reconciled {
                Ok(idle) => {
                    backoff = BACKOFF.0;
                    idle
                }
                Err(error) => {
                    if error.is_unreachable() {
                        tracing::debug!(%error, "failed to maintain the webhook certificate, retrying");
                    } else {
                        tracing::error!(%error, "failed to maintain the webhook certificate, retrying");
                    }
                    self.injection.send_if_modified(|injection| match injection {
                        Injection::Pending(last) => {
                            *last = Some(error.to_string());
                            true
                        }
                        Injection::Unreferenced(_) | Injection::Done => false,
                    });
                    // Don't return early when something changes, since the same error would just
                    // occur again.
                    sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                    continue;
                }
            };
            let deadline = deadline_after(Instant::now(), idle);
            if let Ok(Some(())) = timeout_at(deadline, changes.next()).await {
                sleep(DEBOUNCE).await;
            }
        }
    }

    /// Checks everything and makes the necessary changes. Returns the delay until the next check.
    async fn reconcile(&mut self) -> Result<Duration, KeeperError> {
        let contents = reconcile_secret(&self.secrets, &self.settings, Some(&self.serving)).await?;
        let injected = self
            .targets
            .inject(&self.client, &self.settings, &contents.bundle())
            .await;
        let now = Timestamp::now();
        if injected.is_err() && now >= self.serving.valid.1 {
            // The old certificate has expired, so serving the new one can only help.
            self.serve(&contents.issued);
        }
        let injected = injected?;
        let unreferenced = injected.unreferenced.join("; ");
        self.log_found(injected.found, injected.unreferenced);
        let propagation = self.remaining_propagation(&contents.issued, injected.changed > 0);
        if propagation.is_zero() {
            self.serve(&contents.issued);
        }
        // A replica started during a rotation serves the new certificate immediately. Delay its
        // readiness, so that the API servers have time to pick up the new CA.
        let aging = contents.time_until_age(self.settings.propagation_delay(), now);
        if aging.is_zero() {
            self.set_injected(unreferenced);
        }
        let waits = [propagation, aging].into_iter().filter(|wait| !wait.is_zero());
        let next = Duration::try_from(contents.next_change().duration_since(now)).unwrap_or_default();
        Ok(waits.fold(RESYNC.min(next), Duration::min).max(DEBOUNCE))
    }

    fn set_injected(&self, unreferenced: String) {
        self.injection.send_if_modified(|injection| {
            if matches!(injection, Injection::Done) {
                return false;
            }
            *injection = match unreferenced.is_empty() {
                true => Injection::Done,
                false => Injection::Unreferenced(unreferenced),
            };
            true
        });
    }

    /// Returns the delay until all API servers have picked up the CA of this certificate.
    fn remaining_propagation(&mut self, issued: &Arc<Issued>, changed: bool) -> Duration {
        let since = match &self.injected {
            Some((of, since)) if !changed && of.is(issued) => *since,
            _ => {
                let now = Instant::now();
                self.injected = Some((Arc::clone(issued), now));
                now
            }
        };
        if issued.is(&self.serving) {
            return Duration::ZERO;
        }
        self.settings.propagation_delay().saturating_sub(since.elapsed())
    }

    fn serve(&mut self, issued: &Arc<Issued>) {
        if !issued.is(&self.serving) {
            tracing::info!(expires = %issued.valid.1, "serving webhooks with a new certificate");
            self.certificates.replace(Arc::clone(&issued.pair));
            self.serving = Arc::clone(issued);
        }
    }

    /// Logs the number of objects that refer to the service, and what's missing, whenever this
    /// changes.
    fn log_found(&mut self, found: usize, unreferenced: Vec<String>) {
        let seen = (found, unreferenced);
        if self.found.as_ref() == Some(&seen) {
            return;
        }
        let service = self.settings.place();
        for reason in &seen.1 {
            tracing::warn!(service, reason, "some webhooks are not called by the API server");
        }
        if found > 0 {
            tracing::info!(
                service,
                objects = found,
                "CA bundle is injected in all webhook configurations and CRDs"
            );
        }
        self.found = Some(seen);
    }
}

/// Updates the Secret and returns its contents. All replicas read it, so they get the same
/// certificate.
async fn reconcile_secret(
    secrets: &Api<Secret>,
    settings: &Settings,
    serving: Option<&Arc<Issued>>,
) -> Result<Contents, KeeperError> {
    let name = &settings.secret;
    let full_name = || format!("{}/{name}", settings.namespace);
    let what = || format!("Secret {}", full_name());
    for _ in 0..WRITE_ATTEMPTS {
        let secret = send_request("get", what, secrets.get_opt(name)).await?;
        let stored = match &secret {
            Some(secret) => {
                let stored = StoredContents::read(secret, &settings.service);
                Some(stored.ok_or_else(|| KeeperError::ForeignData(full_name()))?)
            }
            None => None,
        };
        let desired = Contents::desired(stored.as_ref(), serving, settings, Timestamp::now());
        let desired = desired.map_err(KeeperError::Issue)?;
        let Err(reason) = desired.matches(stored.as_ref()) else {
            return Ok(desired);
        };
        tracing::info!(secret = full_name(), reason, "writing the webhook certificate");
        let is_written = match secret {
            Some(mut secret) => {
                desired.write(&mut secret, &settings.service);
                let replaced = async { secrets.replace(name, &post_params(), &secret).await };
                send_request("update", what, tolerate_status(&[404, 409], replaced)).await?
            }
            None => {
                let mut secret = Secret {
                    metadata: ObjectMeta {
                        name: Some(name.clone()),
                        ..ObjectMeta::default()
                    },
                    type_: Some("kubernetes.io/tls".to_owned()),
                    ..Secret::default()
                };
                desired.write(&mut secret, &settings.service);
                let created = async { secrets.create(&post_params(), &secret).await };
                send_request("create", what, tolerate_status(&[409], created)).await?
            }
        };
        // Otherwise another replica was faster, so read what it has written.
        if is_written {
            return Ok(desired);
        }
    }
    Err(KeeperError::RepeatedConflicts(full_name()))
}

/// Returns `false` if a write failed with one of the given status codes, i.e. if another replica
/// has created, modified or deleted the object.
async fn tolerate_status<T>(
    codes: &[u16],
    write: impl Future<Output = kube::Result<T>>,
) -> kube::Result<bool> {
    match write.await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if codes.contains(&status.code) => Ok(false),
        Err(error) => Err(error),
    }
}
