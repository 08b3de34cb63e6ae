//! What the Secret holds, and what it should hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::Settings;
use crate::tls::issued::{Authority, Issued};

/// The service that the certificate in the Secret was made for; without it, the Secret is somebody else's.
pub(super) const ANNOTATION: &str = "rbuilder/webhook-service";

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const BUNDLE: &str = "ca.crt";

/// A certificate, and whom clients should trust.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    pub(super) issued: Arc<Issued>,
    /// The certificate's own authority, and those of earlier ones that may still be served somewhere.
    bundle: Vec<Authority>,
}

/// A Secret as it was found.
#[derive(Debug)]
pub(super) struct Found {
    issued: Result<Arc<Issued>, String>,
    bundle: Vec<Authority>,
}

impl Found {
    /// `None` when the Secret is somebody else's.
    pub(super) fn read(secret: &Secret, service: &str) -> Option<Self> {
        let text = |key: &str| {
            let value = secret.data.as_ref().and_then(|data| data.get(key));
            value
                .map(|value| String::from_utf8_lossy(&value.0).into_owned())
                .unwrap_or_default()
        };
        let made_for = secret
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(ANNOTATION));
        let is_empty = secret.data.iter().flatten().all(|(_, value)| value.0.is_empty());
        if !is_empty && made_for.is_none_or(|made_for| made_for != service) {
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
    /// What the Secret should hold, given what it holds (if there is one) and what this process serves (if anything).
    ///
    /// A certificate that can be used stays until it is due. One that is due, or cannot be used, is replaced: by
    /// what is being served if that is still good, or else by a new one. The bundle loses nobody before they expire,
    /// so a replica that has not heard yet goes on being believed.
    pub(super) fn wanted(
        found: Option<&Found>,
        serving: Option<&Arc<Issued>>,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Self, String> {
        let host = settings.host();
        let good = |issued: &&Arc<Issued>| now < issued.due() && issued.verify(&host, now).is_ok();
        let kept = found.and_then(|found| found.issued.as_ref().ok());
        let issued = match kept.filter(good).or(serving.filter(good)) {
            Some(good) => Arc::clone(good),
            None => Arc::new(Issued::new(&settings.hosts(), settings.lifetime, now)?),
        };
        let trusted = found.into_iter().flat_map(|found| &found.bundle);
        let trusted = trusted.chain(serving.map(|serving| &serving.authority));
        let mut bundle = vec![issued.authority.clone()];
        for authority in trusted.filter(|authority| now < authority.expires) {
            if !bundle.contains(authority) {
                bundle.push(authority.clone());
            }
        }
        Ok(Self { issued, bundle })
    }

    /// Whether a Secret holds just this; an error says why not.
    pub(super) fn is(&self, found: Option<&Found>) -> Result<(), String> {
        let Some(found) = found else {
            return Err("the Secret does not exist".to_owned());
        };
        match &found.issued {
            Err(reason) => Err(reason.clone()),
            Ok(issued) if !issued.is(&self.issued) => {
                Err("the certificate is due for renewal, or for another service".to_owned())
            }
            Ok(_) if found.bundle != self.bundle => Err("the CA bundle is out of date".to_owned()),
            Ok(_) => Ok(()),
        }
    }

    /// What clients should trust, PEM.
    pub(super) fn bundle(&self) -> String {
        self.bundle.iter().map(Authority::pem).collect()
    }

    /// When there will be something to do even if nobody changes anything.
    pub(super) fn next_change(&self) -> Timestamp {
        let expiries = self.bundle.iter().map(|authority| authority.expires);
        expiries.fold(self.issued.due(), Timestamp::min)
    }

    /// How long it will be until a certificate that has replaced another is `age` old; nothing for a first one.
    pub(super) fn young(&self, age: Duration, now: Timestamp) -> Duration {
        if self.bundle.len() < 2 {
            return Duration::ZERO;
        }
        let since = Duration::try_from(now.duration_since(self.issued.made())).unwrap_or_default();
        age.saturating_sub(since)
    }

    /// Writes this into a Secret.
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
        }
    }

    /// A Secret whose replicas look at it at given seconds.
    struct Story {
        start: Timestamp,
        secret: Option<Secret>,
    }

    impl Story {
        fn begin() -> Self {
            let start = Timestamp::now();
            Self { start, secret: None }
        }

        fn found(&self) -> Option<Found> {
            self.secret
                .as_ref()
                .map(|secret| Found::read(secret, SERVICE).expect("the Secret is ours"))
        }

        /// One looks, and writes what is to be changed; whether there was anything.
        fn look(&mut self, seconds: i64, serving: Option<&Arc<Issued>>) -> (Contents, bool) {
            let now = self.start + SignedDuration::from_secs(seconds);
            let found = self.found();
            let wanted = Contents::wanted(found.as_ref(), serving, &settings(), now).unwrap();
            let changed = wanted.is(found.as_ref()).is_err();
            wanted.write(self.secret.get_or_insert_default(), SERVICE);
            let again = self.found();
            assert_eq!(
                wanted.is(again.as_ref()),
                Ok(()),
                "what was written is what was wanted"
            );
            (wanted, changed)
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
    fn a_certificate_is_replaced_after_two_thirds_of_its_life_and_trusted_until_it_ends() {
        let mut story = Story::begin();
        let (first, changed) = story.look(0, None);
        assert!(changed);
        assert_eq!(
            (authorities(&first), first.next_change()),
            (1, first.issued.due())
        );
        for seconds in [1, 30, 59] {
            let (same, changed) = story.look(seconds, Some(&first.issued));
            assert!(!changed && same.issued.is(&first.issued), "after {seconds} s");
        }
        let (second, changed) = story.look(60, Some(&first.issued));
        assert!(changed && !second.issued.is(&first.issued));
        assert_eq!(authorities(&second), 2);
        assert_eq!(second.bundle[0], second.issued.authority);
        assert_eq!(second.next_change(), first.issued.valid.1);
        let (age, now) = (
            Duration::from_secs(3),
            story.start + SignedDuration::from_secs(61),
        );
        assert_eq!(first.young(age, story.start), Duration::ZERO);
        assert_eq!(second.young(age, now).as_secs(), 1);
        // Others hear of it, with what they serve still good.
        let (same, changed) = story.look(61, Some(&first.issued));
        assert!(!changed && same.issued.is(&second.issued));
        let (later, changed) = story.look(90, Some(&second.issued));
        assert!(changed && later.issued.is(&second.issued));
        assert_eq!(authorities(&later), 1);
    }

    #[test]
    fn a_secret_that_was_deleted_or_spoiled_gets_back_what_is_served() {
        let spoil: [fn(&mut Story); 5] = [
            |story| story.secret = None,
            |story| story.text("tls.crt").clear(),
            |story| *story.text("tls.key") = b"no key".to_vec(),
            |story| story.text("ca.crt").truncate(40),
            |story| {
                let other = Issued::new(&settings().hosts(), Duration::from_secs(90), story.start).unwrap();
                *story.text("tls.key") = other.key.into_bytes();
            },
        ];
        for spoil in spoil {
            let mut story = Story::begin();
            let (first, _) = story.look(0, None);
            spoil(&mut story);
            let (again, changed) = story.look(5, Some(&first.issued));
            assert!(changed && again.issued.is(&first.issued));
        }
    }

    #[test]
    fn one_who_starts_where_the_secret_is_spoiled_makes_a_new_one_and_those_who_serve_stay_trusted() {
        let mut story = Story::begin();
        let (first, _) = story.look(0, None);
        story.secret = None;
        let (second, _) = story.look(5, None);
        assert!(!second.issued.is(&first.issued));
        let (both, changed) = story.look(6, Some(&first.issued));
        assert!(changed && both.issued.is(&second.issued));
        assert_eq!(
            both.bundle,
            [second.issued.authority.clone(), first.issued.authority.clone()]
        );
        let (same, changed) = story.look(7, Some(&second.issued));
        assert!(!changed && same.bundle == both.bundle);
    }

    #[test]
    fn a_certificate_for_another_service_is_replaced() {
        let mut story = Story::begin();
        let other = Issued::new(
            &["other.system.svc".to_owned()],
            Duration::from_secs(90),
            story.start,
        );
        let other = Arc::new(other.unwrap());
        let contents = Contents {
            bundle: vec![other.authority.clone()],
            issued: other,
        };
        contents.write(story.secret.get_or_insert_default(), SERVICE);
        let (wanted, changed) = story.look(1, None);
        assert!(changed && !wanted.issued.is(&contents.issued));
    }

    #[test]
    fn secrets_of_others_are_left_alone_and_empty_ones_are_filled() {
        let mut story = Story::begin();
        story.look(0, None);
        let mut secret = story.secret.unwrap();
        assert!(Found::read(&secret, SERVICE).is_some());
        assert!(Found::read(&secret, "another").is_none());
        secret.metadata.annotations = None;
        assert!(Found::read(&secret, SERVICE).is_none());
        for value in secret.data.iter_mut().flat_map(|data| data.values_mut()) {
            value.0.clear();
        }
        assert!(Found::read(&secret, SERVICE).is_some());
        assert!(Found::read(&Secret::default(), SERVICE).is_some());
    }
}
