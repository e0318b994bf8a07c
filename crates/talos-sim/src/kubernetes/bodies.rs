//! Bodies of requests and answers.

use std::convert::Infallible;

use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use serde_json::Value;

use super::discovery;
use super::refusal::Refusal;

/// Body of an answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Reads a body; JSON is also YAML.
///
/// # Errors
///
/// A bad request that shows what cannot be read, or an unsupported media type.
pub(crate) fn decode(content_type: &str, body: &[u8]) -> Result<Value, Refusal> {
    let unreadable = |error: String| Refusal::bad_request(format!("error decoding body: {error}"));
    if content_type.ends_with("yaml") {
        let text = std::str::from_utf8(body).map_err(|error| unreadable(error.to_string()))?;
        if let Ok(value) = serde_json::from_str(text) {
            return Ok(value);
        }
        return serde_saphyr::from_str(text).map_err(|error| unreadable(error.to_string()));
    }
    if content_type.ends_with("json") {
        return serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()));
    }
    Err(Refusal::unsupported_media_type(
        "application/json, application/yaml",
    ))
}

/// Tells whether a client asks for the aggregated form of discovery.
pub(crate) fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| {
        accept.contains("g=apidiscovery.k8s.io")
            && accept.contains("v=v2;")
            && accept.contains("as=APIGroupDiscoveryList")
    })
}

/// Answers with a refusal.
pub(crate) fn refused(refusal: &Refusal) -> Response<Body> {
    let status = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    object(status, &refusal.to_status())
}

/// Answers with an object.
pub(crate) fn object(status: StatusCode, value: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(value.to_string())).boxed_unsync();
    response(status, "application/json", body)
}

/// Answers with the aggregated form of discovery.
pub(crate) fn aggregated(value: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(value.to_string())).boxed_unsync();
    response(StatusCode::OK, discovery::AGGREGATED, body)
}

/// Answers with plain text.
pub(crate) fn text(text: &'static str) -> Response<Body> {
    let body = Full::new(Bytes::from_static(text.as_bytes())).boxed_unsync();
    response(StatusCode::OK, "text/plain; charset=utf-8", body)
}

/// Answers with a body of some type.
pub(crate) fn response(
    status: StatusCode,
    content_type: &'static str,
    body: Body,
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let content_type = header::HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for content_type in ["application/json", "application/apply-patch+yaml", "text/plain"] {
                if let Err(refusal) = decode(content_type, &body) {
                    prop_assert!(matches!(refusal.code, 400 | 415));
                }
            }
        }
    }
}
