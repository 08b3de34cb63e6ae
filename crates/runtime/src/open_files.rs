//! The limit on open files, which also limits connections.

/// Raises the soft limit to the hard limit, as the Go runtime does at startup. The soft limit is
/// often 1024 for the sake of programs that use `select`, but each watch and each client of a
/// server needs a connection.
pub(crate) fn raise_limit() {
    #[cfg(unix)]
    match raise() {
        Ok(None) => {}
        Ok(Some((from, to))) => tracing::debug!(?from, ?to, "raised the limit on open files"),
        // Some systems reject a soft limit as high as the hard limit.
        Err(error) => tracing::debug!(%error, "cannot raise the limit on open files"),
    }
}

/// Returns the old and the new soft limit (`None`: unlimited), or `None` if the limit is already
/// high enough.
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
        // High enough for the other tests in this process.
        let current = Some((hard / 2).min(65_536));
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        assert_eq!(raise().unwrap(), Some((current, maximum)));
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(raise().unwrap(), None);
    }
}
