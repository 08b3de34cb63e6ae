//! Limit for open files, which also limits the number of connections.

/// Raises the soft limit to the hard limit, like the Go runtime does at startup.
///
/// The soft limit is often 1024, for the benefit of programs that use `select`. That may be too low
/// for us, because each watch and each client of a server needs a connection.
pub(crate) fn raise_limit() {
    #[cfg(unix)]
    match raise() {
        Ok(None) => {}
        Ok(Some((from, to))) => tracing::debug!(?from, ?to, "raised the limit on open files"),
        // Some systems don't allow the soft limit to be as high as the hard limit.
        Err(error) => tracing::debug!(%error, "cannot raise the limit on open files"),
    }
}

/// Returns the previous and the new limit, where the inner `None` means unlimited. Returns `None`
/// if the limit can't be raised any further.
#[cfg(unix)]
fn raise() -> std::io::Result<Option<(Option<u64>, Option<u64>)>> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return Ok(None);
    }
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    Ok(Some((limit.current, limit.maximum)))
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    #[test]
    fn soft_limit_is_raised_to_the_hard_limit() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let hard = maximum.unwrap_or(u64::MAX);
        // Don't set it too low, because other tests run in the same process.
        let current = Some((hard / 2).min(65_536));
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        assert_eq!(raise().unwrap(), Some((current, maximum)));
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(raise().unwrap(), None);
    }
}
