//! Impersonated users, to test RBAC rules.

use kube::config::Kubeconfig;
use kube::{Client, Config};

use super::{Environment, Error};

/// An impersonated user. Initially has no permissions beyond those of any authenticated user.
#[derive(Clone, Debug)]
pub struct User {
    config: Config,
    kubeconfig: Kubeconfig,
}

impl Environment {
    /// Returns a user with the given name and groups, e.g. `system:serviceaccount:default:manager`
    /// with the group `system:serviceaccounts`.
    ///
    /// The administrator impersonates the user, so there's nothing to create or to clean up.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is empty.
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<User, Error> {
        if name.is_empty() {
            return Err(Error::new("a user needs a name"));
        }
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let (mut config, mut kubeconfig) = (self.config(), self.kubeconfig());
        let impersonate = |auth: &mut kube::config::AuthInfo| {
            auth.impersonate = Some(name.to_owned());
            auth.impersonate_groups = Some(groups.clone()).filter(|groups| !groups.is_empty());
        };
        impersonate(&mut config.auth_info);
        for user in &mut kubeconfig.auth_infos {
            impersonate(user.auth_info.get_or_insert_default());
        }
        Ok(User { config, kubeconfig })
    }
}

impl User {
    /// Returns a new client with the user's permissions.
    ///
    /// # Panics
    ///
    /// Panics if called outside a tokio runtime.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::try_from(self.config()).expect("the administrator's configuration made a client")
    }

    /// The configuration used by [`User::client`].
    #[must_use]
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// A kubeconfig with the same access, for child processes of the test.
    #[must_use]
    pub fn kubeconfig(&self) -> Kubeconfig {
        self.kubeconfig.clone()
    }
}
