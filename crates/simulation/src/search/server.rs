//! Histories to replay on a real server: no perturbations, as many declarations as possible.

use crate::history::{History, Pace, Step};
use crate::report::{OnServer, Report};
use crate::run::Expected;
use crate::world::Snapshot;

use super::Search;

impl Search<'_> {
    /// Compares the simulation of a history (by default, with all variants of all declarations)
    /// with a run on a real API server. Panics if the server is unusable.
    pub(crate) fn replay_on_server(mut self, history: Option<History>) -> Report {
        if self.setting.has_webhooks {
            self.found.on_server = Some(OnServer::Skipped(
                "its webhooks are only called in the simulation",
            ));
            return self.found;
        }
        let Some(base) = self.base() else {
            return self.found;
        };
        let history = history.unwrap_or_else(|| self.long_history(&base.history));
        assert!(
            can_be_replayed(&history),
            "a server replays histories of declarations and deletions, and this one has perturbations, replicas or time that passes"
        );
        let outcome = self.run(&history, &Expected::default());
        if self.report(&history, &Expected::default(), &outcome) {
            return self.found;
        }
        if outcome.settled.iter().any(has_pods_of_workloads) {
            self.found.on_server = Some(OnServer::Skipped(
                "it looks at Pods, which kube-apiserver does not make",
            ));
            return self.found;
        }
        let replayed = crate::on_server::replay(self.setting, &history, &outcome, &base.expected.mask);
        let differences = replayed.unwrap_or_else(|why| panic!("cannot replay a history on a server: {why}"));
        self.found.on_server = Some(OnServer::Replayed {
            history: Box::new(history),
            differences,
        });
        self.found
    }

    /// Builds a history that updates each declaration to each of its variants and back. Skips
    /// variants that the server rejects or that make the operator fail in the simulation.
    fn long_history(&mut self, base: &History) -> History {
        let count = self.setting.declarations.len();
        let mut changes = Vec::new();
        for (number, declaration) in self.setting.declarations.iter().enumerate() {
            for variant in declaration.variants() {
                if self.setting.refusal(number, &variant).is_some() {
                    continue;
                }
                let there_and_back = [Step::ApplyWith(number, variant), Step::Apply(number)];
                let mut path = base.clone();
                path.steps.splice(count..count, there_and_back.clone());
                let outcome = self.run(&path, &Expected::default());
                if outcome.rejected.is_none() && outcome.violations.is_empty() {
                    changes.extend(there_and_back);
                }
            }
        }
        let mut history = base.clone();
        history.steps.splice(count..count, changes);
        history
    }
}

/// Returns whether the state contains workload Pods. A plain API server has no controller for
/// these.
fn has_pods_of_workloads(state: &Snapshot) -> bool {
    let mut pods = state.objects.iter().filter(|(name, _)| name.starts_with("pods "));
    pods.any(|(_, pod)| {
        let owners = pod["metadata"]["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        owners.any(|owner| owner["apiVersion"] == "apps/v1")
    })
}

fn can_be_replayed(history: &History) -> bool {
    let is_plain = |step: &Step| matches!(step, Step::Apply(_) | Step::ApplyWith(..) | Step::Delete(_));
    history.perturbations.is_empty()
        && history.environment == Pace::Prompt
        && !history.replicated
        && history.steps.iter().all(is_plain)
}
