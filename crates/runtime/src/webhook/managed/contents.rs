//! Current and desired contents of the Secret with the certificate.
//!
//! # Example: a rotation
//!
//! The lifetime is 90 days. Replicas A and B serve the certificate `c1` of the CA `ca1`.
//!
//! | day | event | Secret: certificate; bundle | served |
//! |---|---|---|---|
//! | 60 | `c1` is due. A issues `c2` with the new CA `ca2`, and injects the bundle | `c2`; `ca2`, `ca1` | `c1` |
//! | 60 + 1 min | all API servers have picked up the bundle; A and B switch | `c2`; `ca2`, `ca1` | `c2` |
//! | 90 | `ca1` has expired and is removed from the bundle | `c2`; `ca2` | `c2` |
//!
//! We cannot serve `c2` immediately, because API servers that haven't picked up the new bundle yet
//! would reject it. Nor can we drop `ca1` from the bundle on day 60, since replica B may still be
//! serving `c1`.
//!
//! If the Secret is deleted on day 30, this still takes no new certificate: the first replica to
//! observe the deletion restores `c1`, which it is serving. Only a replica that was just started
//! and isn't serving anything would issue a new certificate. In that case, the other replicas add
//! their CA to the bundle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::Settings;
use crate::tls::issued::{Authority, Issued};

/// Service for which the certificate was issued. A non-empty Secret without this annotation belongs
/// to another application.
pub(super) const ANNOTATION: &str = "rbuilder/webhook-service";

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const BUNDLE: &str = "ca.crt";

#[derive(Clone, Debug)]
pub(super) struct Contents {
    pub(super) issued: Arc<Issued>,
    /// The CA of this certificate comes first. Others are for previous certificates that other
    /// replicas may still be serving.
    bundle: Vec<Authority>,
}

#[derive(Debug)]
pub(super) struct StoredContents {
    /// The error says why the certificate can't be used.
    issued: Result<Arc<Issued>, String>,
    bundle: Vec<Authority>,
}

impl StoredContents {
    /// Returns `None` if the Secret contains unrelated data.
    pub(super) fn read(secret: &Secret, service: &str) -> Option<Self> {
        let text = |key: &str| {
            let value = secret.data.as_ref().and_then(|data| data.get(key));
            value
                .map(|value| String::from_utf8_lossy(&value.0).into_owned())
                .unwrap_or_default()
        };
        let issued_for = secret
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(ANNOTATION));
        let is_empty = secret.data.iter().flatten().all(|(_, value)| value.0.is_empty());
        if !is_empty && issued_for.is_none_or(|issued_for| issued_for != service) {
            return None;
        }
        let bundle = Authority::read_all(&text(BUNDLE));
        let issued = match bundle.first() {
            _ if is_empty => Err("the Secret is empty".to_owned()),
            None => Err(format!("`{BUNDLE}` contains no certificate")),
            Some(authority) => Issued::read(&text(CERTIFICATE), &text(KEY), authority.clone()).map(Arc::new),
        };
        Some(Self { issued, bundle })
    }
}

impl Contents {
    /// Returns the desired contents of the Secret, given its current contents and the certificate
    /// that this process is serving.
    pub(super) fn desired(
        stored: Option<&StoredContents>,
        serving: Option<&Arc<Issued>>,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Self, String> {
        let host = settings.host();
        let is_usable = |issued: &&Arc<Issued>| now < issued.due() && issued.verify(&host, now).is_ok();
        let current = stored.and_then(|stored| stored.issued.as_ref().ok());
        // Prefer what all replicas can see. If the certificate in the Secret is missing or due for
        // renewal, restore the one being served, so that a deleted Secret doesn't lead to a new CA.
        let issued = match current.filter(is_usable).or(serving.filter(is_usable)) {
            Some(usable) => Arc::clone(usable),
            None => Arc::new(Issued::new(&settings.hosts(), settings.lifetime, now)?),
        };
        let trusted = stored.into_iter().flat_map(|stored| &stored.bundle);
        let trusted = trusted.chain(serving.map(|serving| &serving.authority));
        let mut bundle = vec![issued.authority.clone()];
        // Keep CAs until they expire, since some replicas may still be serving a previous
        // certificate.
        for authority in trusted.filter(|authority| now < authority.expires) {
            if !bundle.contains(authority) {
                bundle.push(authority.clone());
            }
        }
        Ok(Self { issued, bundle })
    }

    /// Checks whether the Secret already has these contents. If not, the error says why it needs an
    /// update.
    pub(super) fn matches(&self, stored: Option<&StoredContents>) -> Result<(), String> {
        let Some(stored) = stored else {
            return Err("the Secret does not exist".to_owned());
        };
        match &stored.issued {
            Err(reason) => Err(reason.clone()),
            Ok(issued) if !issued.is(&self.issued) => {
                Err("the certificate is due for renewal, or for another service".to_owned())
            }
            Ok(_) if stored.bundle != self.bundle => Err("the CA bundle is out of date".to_owned()),
            Ok(_) => Ok(()),
        }
    }

    pub(super) fn bundle(&self) -> String {
        self.bundle.iter().map(Authority::pem).collect()
    }

    /// When to check again, because the certificate is due for renewal or a CA expires.
    pub(super) fn next_change(&self) -> Timestamp {
        let expiries = self.bundle.iter().map(|authority| authority.expires);
        expiries.fold(self.issued.due(), Timestamp::min)
    }

    /// Time until the certificate reaches the given age. Zero for the first certificate, whose age
    /// doesn't matter because it doesn't replace another one.
    pub(super) fn time_until_age(&self, age: Duration, now: Timestamp) -> Duration {
        if self.bundle.len() < 2 {
            return Duration::ZERO;
        }
        let since = Duration::try_from(now.duration_since(self.issued.made())).unwrap_or_default();
        age.saturating_sub(since)
    }

    pub(super) fn write(&self, secret: &mut Secret, service: &str) {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = BTreeMap::from([
            (CERTIFICATE.to_owned(), bytes(&self.issued.certificate)),
            (KEY.to_owned(), bytes(&self.issued.key)),
            (BUNDLE.to_owned(), bytes(&self.bundle())),
        ]);
        secret.data.get_or_insert_default().extend(data);
        let annotations = secret.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION.to_owned(), service.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const SERVICE: &str = "webhooks";

    fn settings() -> Settings {
        Settings {
            service: SERVICE.to_owned(),
            namespace: "system".to_owned(),
            secret: "secret".to_owned(),
            lifetime: Duration::from_secs(90),
            configurations: crate::webhook::managed::Configurations::default(),
        }
    }

    /// Simulates replicas that reconcile a Secret at given times.
    struct Timeline {
        start: Timestamp,
        secret: Option<Secret>,
    }

    impl Timeline {
        fn begin() -> Self {
            let start = Timestamp::now();
            Self { start, secret: None }
        }

        fn stored(&self) -> Option<StoredContents> {
            self.secret
                .as_ref()
                .map(|secret| StoredContents::read(secret, SERVICE).expect("the Secret is ours"))
        }

        /// `serving` is the certificate served by the replica. Also returns whether the contents
        /// changed.
        fn reconcile(&mut self, seconds: i64, serving: Option<&Arc<Issued>>) -> (Contents, bool) {
            let now = self.start + SignedDuration::from_secs(seconds);
            let stored = self.stored();
            let desired = Contents::desired(stored.as_ref(), serving, &settings(), now).unwrap();
            let changed = desired.matches(stored.as_ref()).is_err();
            desired.write(self.secret.get_or_insert_default(), SERVICE);
            let written = self.stored();
            assert_eq!(
                desired.matches(written.as_ref()),
                Ok(()),
                "the written contents are the desired ones"
            );
            (desired, changed)
        }

        fn text(&mut self, key: &str) -> &mut Vec<u8> {
            let data = self.secret.as_mut().and_then(|secret| secret.data.as_mut());
            &mut data.unwrap().get_mut(key).unwrap().0
        }
    }

    fn authorities(contents: &Contents) -> usize {
        contents.bundle.len()
    }

    #[test]
    fn certificate_is_rotated_after_two_thirds_of_its_lifetime_and_trusted_until_expiry() {
        let mut timeline = Timeline::begin();
        let (first, changed) = timeline.reconcile(0, None);
        assert!(changed);
        assert_eq!(
            (authorities(&first), first.next_change()),
            (1, first.issued.due())
        );
        for seconds in [1, 30, 59] {
            let (same, changed) = timeline.reconcile(seconds, Some(&first.issued));
            assert!(!changed && same.issued.is(&first.issued), "after {seconds} s");
        }
        let (second, changed) = timeline.reconcile(60, Some(&first.issued));
        assert!(changed && !second.issued.is(&first.issued));
        assert_eq!(authorities(&second), 2);
        assert_eq!(second.bundle[0], second.issued.authority);
        assert_eq!(second.next_change(), first.issued.valid.1);
        let (age, now) = (
            Duration::from_secs(3),
            timeline.start + SignedDuration::from_secs(61),
        );
        assert_eq!(first.time_until_age(age, timeline.start), Duration::ZERO);
        assert_eq!(second.time_until_age(age, now).as_secs(), 1);
        // The other replicas notice this before their certificate expires.
        let (same, changed) = timeline.reconcile(61, Some(&first.issued));
        assert!(!changed && same.issued.is(&second.issued));
        let (later, changed) = timeline.reconcile(90, Some(&second.issued));
        assert!(changed && later.issued.is(&second.issued));
        assert_eq!(authorities(&later), 1);
    }

    #[test]
    fn deleted_or_corrupted_secret_is_restored_from_the_served_certificate() {
        let corruptions: [fn(&mut Timeline); 5] = [
            |timeline| timeline.secret = None,
            |timeline| timeline.text("tls.crt").clear(),
            |timeline| *timeline.text("tls.key") = b"no key".to_vec(),
            |timeline| timeline.text("ca.crt").truncate(40),
            |timeline| {
                let other =
                    Issued::new(&settings().hosts(), Duration::from_secs(90), timeline.start).unwrap();
                *timeline.text("tls.key") = other.key.into_bytes();
            },
        ];
        for corrupt in corruptions {
            let mut timeline = Timeline::begin();
            let (first, _) = timeline.reconcile(0, None);
            corrupt(&mut timeline);
            let (again, changed) = timeline.reconcile(5, Some(&first.issued));
            assert!(changed && again.issued.is(&first.issued));
        }
    }

    #[test]
    fn new_replica_without_secret_issues_certificate_and_served_ones_stay_trusted() {
        let mut timeline = Timeline::begin();
        let (first, _) = timeline.reconcile(0, None);
        timeline.secret = None;
        let (second, _) = timeline.reconcile(5, None);
        assert!(!second.issued.is(&first.issued));
        let (both, changed) = timeline.reconcile(6, Some(&first.issued));
        assert!(changed && both.issued.is(&second.issued));
        assert_eq!(
            both.bundle,
            [second.issued.authority.clone(), first.issued.authority.clone()]
        );
        let (same, changed) = timeline.reconcile(7, Some(&second.issued));
        assert!(!changed && same.bundle == both.bundle);
    }

    #[test]
    fn certificate_for_another_service_is_replaced() {
        let mut timeline = Timeline::begin();
        let other = Issued::new(
            &["other.system.svc".to_owned()],
            Duration::from_secs(90),
            timeline.start,
        );
        let other = Arc::new(other.unwrap());
        let contents = Contents {
            bundle: vec![other.authority.clone()],
            issued: other,
        };
        contents.write(timeline.secret.get_or_insert_default(), SERVICE);
        let (desired, changed) = timeline.reconcile(1, None);
        assert!(changed && !desired.issued.is(&contents.issued));
    }

    #[test]
    fn foreign_secrets_are_not_changed_and_empty_ones_are_filled() {
        let mut timeline = Timeline::begin();
        timeline.reconcile(0, None);
        let mut secret = timeline.secret.unwrap();
        assert!(StoredContents::read(&secret, SERVICE).is_some());
        assert!(StoredContents::read(&secret, "another").is_none());
        secret.metadata.annotations = None;
        assert!(StoredContents::read(&secret, SERVICE).is_none());
        for value in secret.data.iter_mut().flat_map(|data| data.values_mut()) {
            value.0.clear();
        }
        assert!(StoredContents::read(&secret, SERVICE).is_some());
        assert!(StoredContents::read(&Secret::default(), SERVICE).is_some());
    }
}
