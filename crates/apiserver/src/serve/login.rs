//! Authenticates requests, and limits and checks what hyper reads before the server sees it.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use rbuilder_judge::MOST_BYTES;

use crate::failure::Failure;
use crate::http_messages::{ResponseBody, json_response, to_json};
use crate::identity::User;
use crate::media_types::{WRITTEN, check_accept, check_content_type, unknown_format};
use crate::server::ApiServer;

/// Limit for the body of a request.
const LONGEST_BODY: Duration = Duration::from_secs(30);

/// Readable by everybody, as in the role `system:public-info-viewer`.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// A fault of a test that breaks the connection.
#[derive(Debug, thiserror::Error)]
#[error("the connection was broken on purpose")]
pub(super) struct Disconnected;

pub(super) struct Login {
    server: ApiServer,
    /// A hash, so that the time of the comparison tells nothing about the token.
    token: [u8; 32],
}

impl Login {
    pub(super) fn new(server: ApiServer, token: &str) -> Self {
        Self {
            server,
            token: hmac_sha256::Hash::hash(token.as_bytes()),
        }
    }

    /// # Errors
    ///
    /// An error closes the connection.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, Disconnected> {
        match self.read(request).await {
            Ok((request, user)) => {
                let by_admin = user.is_admin();
                let answered = self.server.call_by(request, by_admin, Some(user)).await;
                answered.map_err(|_| Disconnected)
            }
            Err(failure) => Ok(json_response(failure.code, &failure.to_json())),
        }
    }

    async fn read(&self, request: Request<Incoming>) -> Result<(Request<Full<Bytes>>, Arc<User>), Failure> {
        let user = self.user_of(request.uri().path(), request.headers())?;
        check_accept(request.headers())?;
        let (mut parts, body) = request.into_parts();
        let is_write = [Method::POST, Method::PUT].contains(&parts.method);
        let body = Limited::new(body, MOST_BYTES).collect();
        let body = tokio::time::timeout(LONGEST_BODY, body).await;
        let body =
            body.map_err(|_| Failure::of_code(408, "the body of the request did not arrive in time"))?;
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => Failure::from(rbuilder_judge::Failure::TooLarge),
            false => Failure::bad_request(format!("cannot read the body of the request: {error}")),
        })?;
        let mut body = body.to_bytes();
        if rbuilder_protobuf::is_protobuf(&body) {
            body = to_json(&rbuilder_protobuf::decode(&body).map_err(|error| match error {
                // Custom resources have no form in protobuf.
                rbuilder_protobuf::Error::UnknownKind { .. } => unknown_format(),
                error => Failure::bad_request(format!("cannot decode the body of the request: {error}")),
            })?);
            parts
                .headers
                .insert(header::CONTENT_TYPE, HeaderValue::from_static(WRITTEN));
        }
        if is_write && !body.is_empty() {
            check_content_type(&parts.headers)?;
        }
        Ok((Request::from_parts(parts, Full::new(body)), Arc::new(user)))
    }

    fn user_of(&self, path: &str, headers: &HeaderMap) -> Result<User, Failure> {
        let unauthorized = || Failure::of_code(401, "Unauthorized");
        let user = match bearer_token(headers) {
            Some(token) if hmac_sha256::Hash::hash(token.as_bytes()) == self.token => User::admin(),
            Some(token) => {
                let state = self.server.shared().state();
                state.authenticate(token).ok_or_else(unauthorized)?
            }
            None if PUBLIC.contains(&path) => User::anonymous(),
            None => return Err(unauthorized()),
        };
        self.impersonated(user, headers)
    }

    fn impersonated(&self, user: User, headers: &HeaderMap) -> Result<User, Failure> {
        let texts = |name: &str| {
            let values = headers.get_all(name).into_iter();
            let texts = values.filter_map(|value| value.to_str().ok());
            texts.map(str::to_owned).collect::<Vec<_>>()
        };
        let groups = texts("impersonate-group");
        let Some(name) = texts("impersonate-user").into_iter().next() else {
            return match groups.is_empty() {
                true => Ok(user),
                false => Err(Failure::bad_request(
                    "requested groups without impersonating a user",
                )),
            };
        };
        let wanted = User::new(&name, groups);
        self.server.shared().state().check_impersonation(&user, &wanted)?;
        Ok(wanted)
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
