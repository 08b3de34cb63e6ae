//! Diffs two states of an object in the version of each field manager.
//!
//! Managers own fields in the version in which they wrote them. If another client writes the object
//! in a different version, the server converts both states to the manager's version before
//! comparing.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::failure::Failure;
use super::fields::Difference;
use super::kinds::Version;
use super::managers::manageable_difference;
use super::versions::Versions;

/// Two states of an object in the same version.
pub(super) struct Changes<'a> {
    versions: Versions<'a>,
    before: &'a Value,
    after: &'a Value,
    version: &'a Version,
    /// Empty for the main resource.
    subresource: &'a str,
    own: OnceCell<Rc<Difference>>,
    compared: BTreeMap<String, Option<Rc<Difference>>>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(
        versions: Versions<'a>,
        version: &'a Version,
        before: &'a Value,
        after: &'a Value,
        subresource: &'a str,
    ) -> Self {
        Self {
            versions,
            before,
            after,
            version,
            subresource,
            own: OnceCell::new(),
            compared: BTreeMap::new(),
        }
    }

    pub(super) fn own(&self) -> Rc<Difference> {
        let compare = || Rc::new(self.compare(self.before, self.after, self.version));
        Rc::clone(self.own.get_or_init(compare))
    }

    /// Returns the diff in an API version, or `None` if the kind no longer has this version. The
    /// server drops managers with such entries.
    pub(super) fn in_version(&mut self, api_version: &str) -> Result<Option<Rc<Difference>>, Failure> {
        if let Some(compared) = self.compared.get(api_version) {
            return Ok(compared.clone());
        }
        let compared = match version_of_manager(self.versions, self.version, api_version) {
            None => None,
            Some(version) if std::ptr::eq(version, self.version) => Some(self.own()),
            Some(version) => {
                let before = self.versions.convert(self.before, version)?;
                let after = self.versions.convert(self.after, version)?;
                Some(Rc::new(self.compare(&before, &after, version)))
            }
        };
        self.compared.insert(api_version.to_owned(), compared.clone());
        Ok(compared)
    }

    fn compare(&self, before: &Value, after: &Value, version: &Version) -> Difference {
        manageable_difference(before, after, self.subresource, version.status, version.schema())
    }
}

pub(super) fn version_of_manager<'a>(
    versions: Versions<'a>,
    own: &'a Version,
    api_version: &str,
) -> Option<&'a Version> {
    let definition = versions.definition;
    // Built-in kinds have a single known version here, which stands in for all others.
    if !definition.custom || definition.api_version(&own.name) == api_version {
        return Some(own);
    }
    definition.version_of(api_version)
}
