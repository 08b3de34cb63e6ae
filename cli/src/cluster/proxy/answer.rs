//! Responses of the API server.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

const HEADERS: usize = 64;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Delay before the next request, as requested by the server.
    pub(crate) retry_after: Option<Duration>,
    body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Machine-readable reason, e.g. `Forbidden`. `None` if the response isn't from the API server.
    pub(crate) reason: Option<String>,
    pub(crate) message: String,
}

#[derive(Deserialize)]
struct Status {
    kind: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl Answer {
    pub(super) fn parse(bytes: &[u8]) -> io::Result<Answer> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut head = httparse::Response::new(&mut headers);
        let parsed = head.parse(bytes).map_err(io::Error::other)?;
        let (httparse::Status::Complete(start), Some(status)) = (parsed, head.code) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let number = |name: &str| -> Option<u64> {
            let mut headers = head.headers.iter();
            let header = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(header.value).ok()?.trim().parse().ok()
        };
        let body = bytes[start..].to_vec();
        // The body is truncated if the connection was lost.
        if number("Content-Length").is_some_and(|length| usize::try_from(length) != Ok(body.len())) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Answer {
            status,
            retry_after: number("Retry-After").map(Duration::from_secs),
            body,
        })
    }

    /// Decodes the body, or returns why the server rejected the request.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        self.check()?;
        serde_json::from_slice(&self.body).map_err(|error| Refusal {
            status: self.status,
            reason: None,
            message: format!("the answer cannot be read: {error}"),
        })
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if (200..300).contains(&self.status) {
            return Ok(());
        }
        let status = serde_json::from_slice::<Status>(&self.body).ok();
        Err(match status.filter(|status| status.kind == "Status") {
            Some(status) => Refusal {
                status: self.status,
                reason: Some(status.reason),
                message: status.message,
            },
            None => Refusal {
                status: self.status,
                reason: None,
                message: String::from_utf8_lossy(&self.body).trim().to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_words_of_the_server() {
        let answer = b"HTTP/1.0 409 Conflict\r\nContent-Type: application/json\r\nretry-after: 7\r\n\r\n\
                       {\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"modified\",\"code\":409}";
        let answer = Answer::parse(answer).expect("an answer");
        assert_eq!(answer.retry_after, Some(Duration::from_secs(7)));
        let refusal = answer.check().expect_err("a refusal");
        let reason = Some("Conflict".to_owned());
        assert_eq!(
            refusal,
            Refusal {
                status: 409,
                reason,
                message: "modified".to_owned()
            }
        );
        let answer = Answer::parse(b"HTTP/1.0 502 Bad Gateway\r\n\r\nno route\n").expect("an answer");
        let refusal = answer.read::<serde_json::Value>().expect_err("a refusal");
        assert_eq!((refusal.reason, refusal.message.as_str()), (None, "no route"));
    }

    #[test]
    fn incomplete_answers_are_errors() {
        for answer in [
            &b""[..],
            b"HTTP/1.0 200 OK\r\nContent-",
            b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n{}",
            b"SSH-2.0-OpenSSH\r\n\r\n",
        ] {
            assert!(Answer::parse(answer).is_err(), "{answer:?}");
        }
        let answer = Answer::parse(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}").expect("an answer");
        assert!(answer.read::<serde_json::Value>().is_ok());
        let answer = Answer::parse(b"HTTP/1.0 200 OK\r\n\r\n{\"items\": [").expect("an answer");
        assert!(answer.read::<serde_json::Value>().is_err());
    }
}
