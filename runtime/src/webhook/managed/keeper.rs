//! Keeps Secret, server and configurations in step, for as long as the process runs.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::contents::{Contents, Found};
use super::inject::{self, Targets, named, request};
use super::{KeepError, ManagedCertificate, Settings};
use crate::metrics::Metrics;
use crate::tls::Certificates;
use crate::tls::issued::Issued;

/// How often all is looked at even when no watch says that something has changed.
const RESYNC: Duration = Duration::from_secs(60);
/// The shortest and the longest pause after a failure.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Changes often come in groups.
const PAUSE: Duration = Duration::from_millis(50);
/// How often a write is tried again because others have written.
const WRITES: usize = 5;

/// Whether the API server has been told whom to trust.
#[derive(Clone, Debug)]
pub(crate) enum Injection {
    /// Not yet; the last error, if there was one.
    Pending(Option<String>),
    /// It has, at least once.
    Done,
}

/// What keeps the certificate.
pub(crate) struct Keeper {
    settings: Settings,
    client: Client,
    secrets: Api<Secret>,
    targets: Targets,
    metrics: Metrics,
    serving: Arc<Issued>,
    certificates: Arc<Certificates>,
    /// Since when all that points to the service has the bundle of the certificate in the Secret.
    in_place: Option<(Arc<Issued>, Instant)>,
    /// How many objects pointed to the service when they were last counted.
    found: Option<usize>,
    injection: watch::Sender<Injection>,
}

impl Keeper {
    /// Gets hold of a certificate, made now if need be, for as long as `timeout` allows.
    pub(crate) async fn new(
        certificate: ManagedCertificate,
        targets: Targets,
        client: Client,
        metrics: Metrics,
        timeout: Duration,
    ) -> Result<Self, KeepError> {
        let settings = certificate.settle(client.default_namespace());
        let secrets = Api::namespaced(client.clone(), &settings.namespace);
        let deadline = Instant::now() + timeout;
        let mut pause = RETRY.0;
        let contents = loop {
            let agreed = agree(&secrets, &settings, None).await;
            metrics.certificate_read(agreed.is_ok());
            match agreed {
                Ok(contents) => break contents,
                Err(error) if error.is_final() || Instant::now() + pause > deadline => return Err(error),
                Err(error) => tracing::warn!(%error, "failed to obtain the webhook certificate, retrying"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY.1);
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
            in_place: None,
            found: None,
            injection: watch::Sender::new(Injection::Pending(None)),
        })
    }

    /// What is to be served.
    pub(crate) fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.certificates)
    }

    pub(crate) fn injection(&self) -> watch::Receiver<Injection> {
        self.injection.subscribe()
    }

    /// Follows the Secret, renews what is in it and puts its authority where it belongs; for ever.
    pub(crate) async fn run(mut self) {
        let mut changes = self.targets.changes(&self.client);
        let secrets = Api::namespaced(self.client.clone(), &self.settings.namespace);
        changes.push(inject::changes::<Secret>(secrets, named(&self.settings.secret)));
        let mut retry = RETRY.0;
        loop {
            let kept = self.keep().await;
            self.metrics.certificate_read(kept.is_ok());
            let pause = match kept {
                Ok(next) => {
                    retry = RETRY.0;
                    next
                }
                Err(error) => {
                    tracing::error!(%error, "failed to maintain the webhook certificate, retrying");
                    self.injection.send_if_modified(|injection| match injection {
                        Injection::Pending(last) => {
                            *last = Some(error.to_string());
                            true
                        }
                        Injection::Done => false,
                    });
                    let pause = retry;
                    retry = (retry * 2).min(RETRY.1);
                    // What fails is tried again at its time, not whenever something changes.
                    sleep(pause).await;
                    continue;
                }
            };
            let deadline = Instant::now() + pause;
            if let Ok(Some(())) = timeout_at(deadline, changes.next()).await {
                sleep(PAUSE).await;
            }
        }
    }

    /// Looks at everything once, and puts right what is not; how long there will be nothing to do.
    async fn keep(&mut self) -> Result<Duration, KeepError> {
        let contents = agree(&self.secrets, &self.settings, Some(&self.serving)).await?;
        let injected = self
            .targets
            .inject(&self.client, &self.settings, &contents.bundle())
            .await;
        let now = Timestamp::now();
        if injected.is_err() && now >= self.serving.valid.1 {
            // Nobody believes the old one any more.
            self.serve(&contents.issued);
        }
        let injected = injected?;
        self.report(injected.found);
        let spread = self.spread(&contents.issued, injected.changed > 0);
        if spread.is_zero() {
            self.serve(&contents.issued);
        }
        // Who starts in the middle of a renewal serves the new certificate before others do.
        let young = contents.young(self.settings.spread(), now);
        if young.is_zero() {
            self.injection.send_if_modified(|injection| {
                !matches!(std::mem::replace(injection, Injection::Done), Injection::Done)
            });
        }
        let waits = [spread, young].into_iter().filter(|wait| !wait.is_zero());
        let next = Duration::try_from(contents.next_change().duration_since(now)).unwrap_or_default();
        Ok(waits.fold(RESYNC.min(next), Duration::min).max(PAUSE))
    }

    /// How long the authority of this certificate has yet to be in place before all API servers know it.
    fn spread(&mut self, issued: &Arc<Issued>, changed: bool) -> Duration {
        let since = match &self.in_place {
            Some((of, since)) if !changed && of.is(issued) => *since,
            _ => {
                let now = Instant::now();
                self.in_place = Some((Arc::clone(issued), now));
                now
            }
        };
        if issued.is(&self.serving) {
            return Duration::ZERO;
        }
        self.settings.spread().saturating_sub(since.elapsed())
    }

    fn serve(&mut self, issued: &Arc<Issued>) {
        if !issued.is(&self.serving) {
            tracing::info!(expires = %issued.valid.1, "serving webhooks with a new certificate");
            self.certificates.replace(Arc::clone(&issued.pair));
            self.serving = Arc::clone(issued);
        }
    }

    /// Says how many objects point to the service, whenever that changes.
    fn report(&mut self, found: usize) {
        if self.found.replace(found) == Some(found) {
            return;
        }
        let Settings {
            service, namespace, ..
        } = &self.settings;
        let service = format_args!("{namespace}/{service}");
        if found == 0 {
            tracing::warn!(%service, "no webhook configuration or CRD refers to the service, webhooks will not be called");
        } else {
            tracing::info!(%service, objects = found, "webhook configurations and CRDs trust the certificate of the service");
        }
    }
}

/// What the Secret holds, after it has been put right; all replicas find the same.
async fn agree(
    secrets: &Api<Secret>,
    settings: &Settings,
    serving: Option<&Arc<Issued>>,
) -> Result<Contents, KeepError> {
    let name = &settings.secret;
    let full_name = || format!("{}/{name}", settings.namespace);
    let what = || format!("Secret {}", full_name());
    for _ in 0..WRITES {
        let secret = request("get", what, secrets.get_opt(name)).await?;
        let found = match &secret {
            Some(secret) => {
                let found = Found::read(secret, &settings.service);
                Some(found.ok_or_else(|| KeepError::Foreign(full_name()))?)
            }
            None => None,
        };
        let wanted = Contents::wanted(found.as_ref(), serving, settings, Timestamp::now());
        let wanted = wanted.map_err(KeepError::Make)?;
        let Err(reason) = wanted.is(found.as_ref()) else {
            return Ok(wanted);
        };
        tracing::info!(secret = full_name(), reason, "writing the webhook certificate");
        let written = match secret {
            Some(mut secret) => {
                wanted.write(&mut secret, &settings.service);
                let replaced = async { secrets.replace(name, &PostParams::default(), &secret).await };
                request("update", what, unless(&[404, 409], replaced)).await?
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
                wanted.write(&mut secret, &settings.service);
                let created = async { secrets.create(&PostParams::default(), &secret).await };
                request("create", what, unless(&[409], created)).await?
            }
        };
        if written {
            return Ok(wanted);
        }
    }
    Err(KeepError::RepeatedConflicts(full_name()))
}

/// Whether a write was done; it was not when the answer has one of these codes: somebody else has made, changed or
/// deleted the object meanwhile.
async fn unless<T>(codes: &[u16], write: impl Future<Output = kube::Result<T>>) -> kube::Result<bool> {
    match write.await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if codes.contains(&status.code) => Ok(false),
        Err(error) => Err(error),
    }
}
