//! Tracks objects installed by tests, to delete them afterwards.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::{ApiResource, DeleteParams, DynamicObject};
use kube::{Api, Client, Resource};

use super::Error;

/// Objects that this environment created, as opposed to preexisting ones.
#[derive(Debug, Default)]
pub(super) struct Installed {
    objects: Mutex<Vec<(ApiResource, String)>>,
}

impl Installed {
    /// Records an object before it is written, unless it is already in the cluster.
    pub(super) async fn note_if_absent<K: Resource<DynamicType = ()>>(&self, client: &Client, name: &str) {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        // Ignore errors; the subsequent write will report them.
        if matches!(api.get_metadata_opt(name).await, Ok(None)) {
            self.note::<K>(name);
        }
    }

    pub(super) fn note<K: Resource<DynamicType = ()>>(&self, name: &str) {
        self.objects()
            .push((ApiResource::erase::<K>(&()), name.to_owned()));
    }

    pub(super) async fn remove(&self, client: &Client) -> Result<(), Error> {
        let mut objects = std::mem::take(&mut *self.objects());
        let mut failed = Ok(());
        // Delete in reverse order. Continue on errors to leave as little behind as possible.
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
