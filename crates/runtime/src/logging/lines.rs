//! Formats log lines as text or JSON, and allows switching between the two at any time.
//!
//! tracing-subscriber formats the fields of a span once, when the span is created, and reuses the
//! result for all lines. After a change of the format, the fields of existing spans must be
//! converted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use tracing::{Event, Subscriber, span};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{
    DefaultFields, Format, FormatEvent, FormatFields, Full, Json, JsonFields, Writer,
};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::args::LogFormat;

/// Clones share the same state.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentFormat(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_json: AtomicBool,
    /// Whether the format was ever changed, so there may be spans with fields in the other format.
    has_changed: AtomicBool,
}

impl CurrentFormat {
    pub(super) fn new(format: LogFormat) -> Self {
        let current = Self::default();
        current
            .0
            .is_json
            .store(format == LogFormat::Json, Ordering::Relaxed);
        current
    }

    pub(super) fn get(&self) -> LogFormat {
        match self.0.is_json.load(Ordering::Relaxed) {
            true => LogFormat::Json,
            false => LogFormat::Text,
        }
    }

    pub(super) fn set(&self, format: LogFormat) {
        let is_json = format == LogFormat::Json;
        if self.0.is_json.swap(is_json, Ordering::Relaxed) != is_json {
            self.0.has_changed.store(true, Ordering::Relaxed);
        }
    }

    /// Converts the fields of a span unless they already are JSON.
    fn convert_to_json(&self, fields: &mut String) {
        if !self.0.has_changed.load(Ordering::Relaxed)
            || fields.is_empty()
            || serde_json::from_str::<Map<String, Value>>(fields).is_ok()
        {
            return;
        }
        *fields = json!({ "fields": &*fields }).to_string();
    }
}

pub(super) struct Lines {
    format: CurrentFormat,
    text: Format<Full>,
    json: Format<Json>,
}

impl Lines {
    pub(super) fn new(format: CurrentFormat) -> Self {
        let json = Format::default().json().flatten_event(true);
        Self {
            format,
            text: Format::default(),
            // Include the full list, because the operator may create its own spans within the
            // reconcile's span.
            json: json.with_current_span(false).with_span_list(true),
        }
    }
}

impl<S> FormatEvent<S, SpanFields> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, SpanFields>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if self.format.get() == LogFormat::Text {
            return self.text.format_event(context, writer, event);
        }
        for span in context.event_scope().into_iter().flatten() {
            if let Some(formatted) = span.extensions_mut().get_mut::<FormattedFields<SpanFields>>() {
                self.format.convert_to_json(&mut formatted.fields);
            }
        }
        self.json.format_event(context, writer, event)
    }
}

pub(super) struct SpanFields(pub(super) CurrentFormat);

impl<'writer> FormatFields<'writer> for SpanFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        match self.0.get() {
            LogFormat::Text => DefaultFields::new().format_fields(writer, fields),
            LogFormat::Json => JsonFields::new().format_fields(writer, fields),
        }
    }

    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        added: &span::Record<'_>,
    ) -> fmt::Result {
        if self.0.get() == LogFormat::Text {
            if !current.fields.is_empty() {
                current.fields.push(' ');
            }
            return self.format_fields(current.as_writer(), added);
        }
        self.0.convert_to_json(&mut current.fields);
        let mut formatted = FormattedFields::<JsonFields>::new(std::mem::take(&mut current.fields));
        let result = JsonFields::new().add_fields(&mut formatted, added);
        current.fields = formatted.fields;
        result
    }
}
