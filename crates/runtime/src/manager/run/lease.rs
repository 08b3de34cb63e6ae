//! The lease that a manager needs for its work: the leader's lease or, with shards, the replica's.

use super::{OnLoss, Run};
use crate::error::ManagerError;
use crate::leader_election::{Election, Fence, Leadership, pod_namespace, start_watchdog};
use crate::shards::{Membership, MembershipLost, RingConfig, Sharding, Shards};

impl Run {
    pub(super) fn lease_lost(&self) -> impl Future<Output = ManagerError> + Send + use<> {
        let leadership = self.leadership.as_ref().map(Leadership::lost);
        let membership = self.membership.as_ref().map(Membership::lost);
        async move {
            match (leadership, membership) {
                (Some(lost), _) => ManagerError::LeaderElectionLost(lost.await.to_string()),
                (None, Some(lost)) => to_shards_lost(&lost.await),
                (None, None) => std::future::pending().await,
            }
        }
    }

    fn lease_namespace(&self) -> String {
        let namespace = self.args.leader_election_namespace.clone().or_else(pod_namespace);
        namespace.unwrap_or_else(|| self.client.default_namespace().to_owned())
    }

    /// Makes the process exit after losing the lease, even if it fails to stop gracefully.
    fn watch_lease(
        &self,
        fence: &Fence,
        must_exit: impl Fn() -> bool + Send + 'static,
    ) -> Result<(), String> {
        match self.on_loss {
            OnLoss::Exit => start_watchdog(fence, must_exit)
                .map_err(|error| format!("failed to start its watchdog: {error}")),
            OnLoss::Return => Ok(()),
        }
    }

    /// Whether the lease was lost, so that the process has to exit.
    pub(super) fn has_lost_lease(&self) -> bool {
        match &self.membership {
            Some(membership) => membership.is_lost(),
            None => self.fence.as_ref().is_some_and(Fence::is_lost),
        }
    }

    /// Waits until this process may own ranges. It acquires them later, at which point its queues
    /// are filled.
    pub(super) async fn join_ring(&mut self, fence: Fence, shards: Shards) -> Result<(), ManagerError> {
        let ring = RingConfig {
            id: self.id.clone(),
            namespace: self.lease_namespace(),
            ranges: self.args.shards.unwrap_or(Sharding::auto()).count(),
            times: self.lease,
        };
        let failed = |reason: String| ManagerError::Part {
            part: "the membership of the shards".to_owned(),
            reason,
        };
        let watched = shards.clone();
        self.watch_lease(&fence, move || watched.must_exit())
            .map_err(failed)?;
        let membership = match &self.config {
            Some(config) => {
                let (config, settings) = (config.clone(), self.client_settings.clone());
                Membership::start_on_thread(ring, config, &self.metrics, settings, fence, shards).await
            }
            None => Ok(Membership::start_as_task(
                ring,
                self.election_client.clone(),
                fence,
                shards,
            )),
        };
        let membership = self.membership.insert(membership.map_err(failed)?);
        tokio::select! {
            biased;
            joined = membership.joined() => joined.map_err(|lost| to_shards_lost(&lost)),
            failure = self.phases.failed() => Err(failure),
        }
    }

    pub(super) async fn become_leader(&mut self, fence: Fence) -> Result<(), ManagerError> {
        let namespace = self.lease_namespace();
        let election = Election::new(self.id.clone(), namespace, self.lease);
        let failed = |reason: String| ManagerError::Part {
            part: "leader election".to_owned(),
            reason,
        };
        self.watch_lease(&fence, || true).map_err(failed)?;
        let leadership = match &self.config {
            Some(config) => {
                let (config, settings) = (config.clone(), self.client_settings.clone());
                Leadership::start_on_thread(election, config, &self.metrics, settings, fence).await
            }
            // A client only works on the runtime that created it, so it can't use a separate
            // thread.
            None => Ok(Leadership::start_as_task(
                election,
                self.election_client.clone(),
                fence,
            )),
        };
        let leadership = self.leadership.insert(leadership.map_err(failed)?);
        let leads = self.metrics.leader(&self.id);
        tokio::select! {
            biased;
            acquired = leadership.acquired() => {
                acquired.map_err(|lost| ManagerError::LeaderElectionLost(lost.to_string()))?;
                leads.set(1.0);
                Ok(())
            }
            failure = self.phases.failed() => Err(failure),
        }
    }
}

fn to_shards_lost(lost: &MembershipLost) -> ManagerError {
    ManagerError::ShardsLost(lost.to_string())
}
