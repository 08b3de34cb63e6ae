//! URLs of git repositories that others can fetch from. The build script also compiles this module,
//! so it depends on nothing else in this crate.

const SCHEMES: [&str; 4] = ["https", "http", "ssh", "git"];

/// Converts the URL of a remote to Cargo's notation, or returns `None` if others can't fetch from
/// it.
pub(crate) fn shareable_url(remote: &str) -> Option<String> {
    let remote = remote.trim();
    if !remote.chars().all(is_url_character) {
        return None;
    }
    let Some((scheme, rest)) = remote.split_once("://") else {
        let (host, path) = remote.split_once(':')?;
        // A single letter is a Windows drive.
        let is_host = host.len() > 1 && !host.contains(['/', '[', ']']);
        let path = path.trim_start_matches('/');
        // Cargo only accepts URLs, so convert `git@host:path` to `ssh://git@host/path`.
        return (is_host && !path.is_empty()).then(|| format!("ssh://{}/{path}", without_password(host)));
    };
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = rest.split_once('/')?;
    // The URL ends up in committed files, so strip credentials. Keep the user name for ssh, which
    // needs it.
    let authority = match scheme.as_str() {
        "ssh" => without_password(authority),
        _ => authority.rsplit('@').next().unwrap_or_default().to_owned(),
    };
    let is_complete = SCHEMES.contains(&scheme.as_str()) && !authority.is_empty() && !path.is_empty();
    is_complete.then(|| format!("{scheme}://{authority}/{path}"))
}

/// Converts a URL from the command line to Cargo's notation. Unlike for remotes, `file://` is fine.
/// The error is a phrase.
#[allow(dead_code)] // the build script only reads remotes
pub(crate) fn parse_git_url(text: &str) -> Result<String, &'static str> {
    let is_file = text.strip_prefix("file:///").is_some_and(|path| !path.is_empty());
    if is_file && text.chars().all(is_url_character) {
        return Ok(text.to_owned());
    }
    let url = shareable_url(text)
        .ok_or("expected a URL that begins with `https://`, `http://`, `ssh://`, `git://` or `file:///`")?;
    let names_user = |text: &str| text.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    let has_password = |text: &str| {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        rest.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    };
    if has_password(text) || (names_user(text) && !names_user(&url)) {
        return Err("it would put a user name or a password into Cargo.toml: use a credential helper of git");
    }
    Ok(url)
}

#[allow(dead_code)] // not used by the build script
pub(crate) fn is_local_url(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    host.is_empty() || host == "localhost" || host.starts_with("127.")
}

/// Whether a URL character has no special meaning in TOML, YAML, make or a shell. `#` and `?` are
/// excluded because they end the path.
fn is_url_character(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-._~:/@[]+,=%".contains(letter)
}

fn without_password(authority: &str) -> String {
    match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => authority.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_become_urls_without_secrets() {
        let check = |remote: &str, expected: Option<&str>| {
            assert_eq!(shareable_url(remote).as_deref(), expected, "{remote}");
        };
        check(
            "https://git.example.com/rbuilder\n",
            Some("https://git.example.com/rbuilder"),
        );
        check(
            "HTTPS://git.example.com/rbuilder",
            Some("https://git.example.com/rbuilder"),
        );
        check(
            "https://me:secret@git.example.com/r.git",
            Some("https://git.example.com/r.git"),
        );
        check(
            "https://token@git.example.com/r.git",
            Some("https://git.example.com/r.git"),
        );
        check(
            "git://127.0.0.1:9418/rbuilder",
            Some("git://127.0.0.1:9418/rbuilder"),
        );
        check(
            "ssh://git@git.example.com:22/r.git",
            Some("ssh://git@git.example.com:22/r.git"),
        );
        check(
            "ssh://git:secret@git.example.com/r.git",
            Some("ssh://git@git.example.com/r.git"),
        );
        check(
            "git@git.example.com:team/r.git",
            Some("ssh://git@git.example.com/team/r.git"),
        );
        check("host:/srv/r.git", Some("ssh://host/srv/r.git"));
        for path in [
            "",
            "/srv/rbuilder",
            "../rbuilder",
            "C:\\rbuilder",
            "C:/rbuilder",
            "file:///srv/rbuilder",
            "https://git.example.com",
            "https:///rbuilder",
            "ext::sh -c x",
            "https://git.example.com/a b",
            "https://git.example.com/$(x)",
            "https://git.example.com/r#main",
            "https://git.example.com/r?x\"",
            "./a:b",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn typed_urls_must_not_contain_passwords() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let url = parse_git_url(text);
            let url = url
                .as_deref()
                .map_err(|reason| reason.split(' ').next().unwrap_or_default());
            assert_eq!(url, expected, "{text}");
        };
        check("file:///srv/r", Ok("file:///srv/r"));
        check("https://git.example.com/r", Ok("https://git.example.com/r"));
        check("git@git.example.com:r", Ok("ssh://git@git.example.com/r"));
        check("https://me:secret@git.example.com/r", Err("it"));
        check("https://token@git.example.com/r", Err("it"));
        check("git:secret@git.example.com:r", Err("it"));
        check("ssh://git:secret@git.example.com/r", Err("it"));
        check("file://", Err("expected"));
        check("/srv/r", Err("expected"));
    }

    #[test]
    fn recognizes_local_urls() {
        for url in [
            "file:///srv/r",
            "http://localhost:80/r",
            "git://127.0.0.1/r",
            "ssh://me@localhost/r",
        ] {
            assert!(is_local_url(url), "{url}");
        }
        assert!(!is_local_url("https://git.example.com/localhost"));
    }
}
