//! What a test has put into a cluster, so that it can be taken out again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::{ApiResource, DeleteParams, DynamicObject};
use kube::{Api, Client, Resource};

use super::Error;

/// Objects that were not there before.
#[derive(Debug, Default)]
pub(super) struct Installed {
    objects: Mutex<Vec<(ApiResource, String)>>,
}

impl Installed {
    /// Notes an object that is about to be written, unless it is there already. An error is left to the writing.
    pub(super) async fn note_if_absent<K: Resource<DynamicType = ()>>(&self, client: &Client, name: &str) {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        if matches!(api.get_metadata_opt(name).await, Ok(None)) {
            self.note::<K>(name);
        }
    }

    /// Notes an object that was made.
    pub(super) fn note<K: Resource<DynamicType = ()>>(&self, name: &str) {
        self.objects()
            .push((ApiResource::erase::<K>(&()), name.to_owned()));
    }

    /// Deletes all, the latest first. What is gone already is no error; after one, the rest is still tried.
    pub(super) async fn remove(&self, client: &Client) -> Result<(), Error> {
        let mut objects = std::mem::take(&mut *self.objects());
        let mut failed = Ok(());
        while let Some((resource, name)) = objects.pop() {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            match api.delete(&name, &DeleteParams::background()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(err) => {
                    failed = failed.and(Err(Error::request(
                        format!("cannot delete {} {name}", resource.kind),
                        &err,
                    )));
                }
                Ok(_) => {}
            }
        }
        failed
    }

    fn objects(&self) -> MutexGuard<'_, Vec<(ApiResource, String)>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
