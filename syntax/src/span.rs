//! Places in source, as numbers.
//!
//! A `proc_macro2::Span` belongs to the thread that parsed it. The model holds [`SpanId`]s instead, so it can
//! travel; the [`Spans`] table that gives them meaning stays with the parser, which turns it into byte ranges
//! (the generator) or hands the tokens' spans to the compiler (the derive).

use std::ops::Range;

use proc_macro2::Span;
use quote::ToTokens;

/// A place in the source of the item that was parsed; an index into its [`Spans`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub u32);

/// Every place a parse has named, first and last token of each.
#[derive(Default)]
pub struct Spans {
    table: Vec<(Span, Span)>,
}

impl Spans {
    /// Names the place that `tokens` cover.
    pub fn add(&mut self, tokens: impl ToTokens) -> SpanId {
        let mut tokens = tokens.into_token_stream().into_iter();
        let first = tokens.next().map_or_else(Span::call_site, |token| token.span());
        let last = tokens.last().map_or(first, |token| token.span());
        self.add_pair(first, last)
    }

    /// Names the place of one span.
    pub fn add_span(&mut self, span: Span) -> SpanId {
        self.add_pair(span, span)
    }

    /// Names the place from a first to a last token.
    pub(crate) fn add_pair(&mut self, first: Span, last: Span) -> SpanId {
        let id = u32::try_from(self.table.len()).unwrap_or(u32::MAX);
        self.table.push((first, last));
        SpanId(id)
    }

    /// The spans of the first and last token of a place.
    pub fn get(&self, id: SpanId) -> (Span, Span) {
        self.table
            .get(id.0 as usize)
            .copied()
            .unwrap_or_else(|| (Span::call_site(), Span::call_site()))
    }

    /// How many places have been named.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no place has been named.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Every place as a byte range of the text that was parsed, by id.
    ///
    /// `byte_range` is `proc_macro2::Span::byte_range`, which exists only where the `span-locations` feature
    /// is on; this crate leaves that choice to the caller.
    pub fn ranges(&self, byte_range: impl Fn(Span) -> Range<usize>) -> Vec<Range<usize>> {
        self.table
            .iter()
            .map(|(first, last)| byte_range(*first).start..byte_range(*last).end)
            .collect()
    }
}
