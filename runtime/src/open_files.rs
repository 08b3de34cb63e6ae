//! The limit on open files, which include connections.

/// Raises the soft limit to the hard one, as Go programs do at their start: the soft limit is often 1024, for programs that
/// use `select`. Each watch needs a connection, and so does each client of a server.
pub(crate) fn raise_limit() {
    #[cfg(unix)]
    match raise() {
        Ok(None) => {}
        Ok(Some((from, to))) => tracing::debug!(?from, ?to, "raised the limit on open files"),
        // Some systems refuse a soft limit as high as the hard one.
        Err(error) => tracing::debug!(%error, "cannot raise the limit on open files"),
    }
}

/// Returns the old soft limit and the new one (`None`: unlimited), or `None` if nothing is to be done.
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
    fn the_soft_limit_is_raised_to_the_hard_limit() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let hard = maximum.unwrap_or(u64::MAX);
        // Enough for the other tests of this process.
        let current = Some((hard / 2).min(65_536));
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        assert_eq!(raise().unwrap(), Some((current, maximum)));
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(raise().unwrap(), None);
    }
}
