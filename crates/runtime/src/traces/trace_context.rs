//! Headers that identify the trace of a request, according to [W3C Trace
//! Context](https://www.w3.org/TR/trace-context/).
//!
//! OpenTelemetry has a propagator for this, but the operator would have to install it. With our own
//! implementation, traces always work across processes.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Adds headers that make the request part of the span.
pub(super) fn write_headers(headers: &mut HeaderMap, span: &SpanContext) {
    let flags = span.trace_flags() & TraceFlags::SAMPLED;
    let parent = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
    if let Ok(parent) = HeaderValue::from_str(&parent) {
        headers.insert(TRACEPARENT, parent);
    }
    let state = span.trace_state().header();
    if let Ok(state) = HeaderValue::from_str(&state)
        && !state.is_empty()
    {
        headers.insert(TRACESTATE, state);
    }
}

/// Returns the span that the request is part of.
pub(super) fn read_headers(headers: &HeaderMap) -> Option<SpanContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next()?.to_str().ok()?.trim();
    if parents.next().is_some() {
        return None;
    }
    let parts: Vec<&str> = parent.split('-').collect();
    let (&[version, trace_id, span_id, flags], more) = parts.split_first_chunk()?;
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_valid = is_hex(version, 2)
        && is_hex(trace_id, 32)
        && is_hex(span_id, 16)
        && is_hex(flags, 2)
        && version != "ff"
        // Future versions may have more parts.
        && (more.is_empty() || version != "00");
    if !is_valid {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let span = SpanContext::new(
        TraceId::from_hex(trace_id).ok()?,
        SpanId::from_hex(span_id).ok()?,
        flags,
        true,
        read_state(headers),
    );
    span.is_valid().then_some(span)
}

/// Ignores a malformed trace state.
fn read_state(headers: &HeaderMap) -> TraceState {
    let values = headers.get_all(TRACESTATE).iter();
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    values.join(",").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(parent: &str, state: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, parent.parse().unwrap());
        headers.insert(TRACESTATE, state.parse().unwrap());
        headers
    }

    #[test]
    fn trace_headers_round_trip() {
        let before = headers(PARENT, "vendor=1,other=2");
        let span = read_headers(&before).unwrap();
        assert!(span.is_remote() && span.is_sampled());
        let mut after = HeaderMap::new();
        write_headers(&mut after, &span);
        assert_eq!(after, before);
        // Unknown flags aren't propagated.
        let span = read_headers(&headers(&PARENT.replace("-01", "-ff"), "")).unwrap();
        let mut after = HeaderMap::new();
        write_headers(&mut after, &span);
        assert_eq!(after.len(), 1);
        assert_eq!(after[TRACEPARENT], PARENT);
        assert!(
            !read_headers(&headers(&PARENT.replace("-01", "-00"), ""))
                .unwrap()
                .is_sampled()
        );
    }

    #[test]
    fn malformed_headers_start_a_new_trace() {
        for malformed in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        ] {
            assert!(read_headers(&headers(malformed, "")).is_none(), "{malformed}");
        }
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
        assert!(read_headers(&headers(later, "no state")).is_some());
        let mut twice = headers(PARENT, "");
        twice.append(TRACEPARENT, PARENT.parse().unwrap());
        assert!(read_headers(&twice).is_none());
    }
}
