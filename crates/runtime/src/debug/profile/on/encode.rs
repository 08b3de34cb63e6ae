//! Encodes a report of rpprof for `go tool pprof` (i.e. as the protocol buffer
//! `perftools.profiles.Profile`).
//!
//! rpprof could do this itself, but that would add 30 dependencies, and it doesn't output separate
//! lines for inlined functions.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, SystemTime};

use rpprof::{Frames, Report, Symbol};

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// Each sample has two values: the number of samples, and the CPU time.
pub(super) fn encode(report: &Report) -> Vec<u8> {
    let frequency = u64::try_from(report.timing.frequency).unwrap_or_default().max(1);
    let mut profile = Profile {
        period: NANOSECONDS_PER_SECOND / frequency,
        ..Profile::default()
    };
    // The first entry of the string table must be empty.
    profile.string("");
    // Field numbers are from pprof's `profile.proto`.
    for (kind, unit) in [("samples", "count"), ("cpu", "nanoseconds")] {
        let kind = profile.value_type(kind, unit);
        profile.message.message(1, &kind);
    }
    for (frames, count) in &report.data {
        profile.add_sample(frames, u64::try_from(*count).unwrap_or_default());
    }
    let since_epoch = report.timing.start_time.duration_since(SystemTime::UNIX_EPOCH);
    profile
        .message
        .integer(9, nanoseconds(since_epoch.unwrap_or_default()));
    profile.message.integer(10, nanoseconds(report.timing.duration));
    let period_type = profile.value_type("cpu", "nanoseconds");
    profile.message.message(11, &period_type);
    profile.message.integer(12, profile.period);
    profile.finish()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A profile, and the tables that its samples refer to.
#[derive(Default)]
struct Profile {
    message: Message,
    strings: Table<String>,
    /// Each function is a triple of string table indexes: name, mangled name and file.
    functions: Table<[u64; 3]>,
    /// Pairs of function and line. An inlined function precedes its caller.
    locations: Table<Vec<[u64; 2]>>,
    /// CPU time between two samples, in nanoseconds.
    period: u64,
}

impl Profile {
    fn string(&mut self, text: &str) -> u64 {
        self.strings.number(text.to_owned())
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.integer(1, self.string(kind));
        message.integer(2, self.string(unit));
        message
    }

    fn add_sample(&mut self, frames: &Frames, count: u64) {
        let locations: Vec<u64> = frames.frames.iter().map(|frame| self.location(frame)).collect();
        let mut label = Message::default();
        label.integer(1, self.string("thread"));
        label.integer(2, self.string(&frames.thread_name_or_id()));
        let mut sample = Message::default();
        sample.integers(1, &locations);
        sample.integers(2, &[count, count.saturating_mul(self.period)]);
        sample.message(3, &label);
        self.message.message(2, &sample);
    }

    /// IDs start at 1.
    fn location(&mut self, frame: &[Symbol]) -> u64 {
        let lines = frame
            .iter()
            .map(|symbol| [self.function(symbol), u64::from(symbol.lineno())]);
        let lines = lines.collect();
        self.locations.number(lines) + 1
    }

    /// IDs start at 1.
    fn function(&mut self, symbol: &Symbol) -> u64 {
        let strings = [
            self.string(&symbol.name()),
            self.string(&symbol.sys_name()),
            self.string(&symbol.filename()),
        ];
        self.functions.number(strings) + 1
    }

    fn finish(mut self) -> Vec<u8> {
        for (id, lines) in (1..).zip(self.locations.into_ordered()) {
            let mut location = Message::default();
            location.integer(1, id);
            for [function, number] in lines {
                let mut line = Message::default();
                line.integer(1, function);
                line.integer(2, number);
                location.message(4, &line);
            }
            self.message.message(4, &location);
        }
        for (id, [name, system_name, file]) in (1..).zip(self.functions.into_ordered()) {
            let mut function = Message::default();
            function.integer(1, id);
            function.integer(2, name);
            function.integer(3, system_name);
            function.integer(4, file);
            self.message.message(5, &function);
        }
        for text in self.strings.into_ordered() {
            self.message.bytes(6, text.as_bytes());
        }
        self.message.0
    }
}

struct Table<T>(HashMap<T, u64>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Eq + Hash> Table<T> {
    /// Returns the number of the value, adding the value to the table if necessary.
    fn number(&mut self, value: T) -> u64 {
        let next = self.0.len() as u64;
        *self.0.entry(value).or_insert(next)
    }

    fn into_ordered(self) -> impl Iterator<Item = T> {
        let mut values: Vec<_> = self.0.into_iter().collect();
        values.sort_unstable_by_key(|(_, number)| *number);
        values.into_iter().map(|(value, _)| value)
    }
}

/// A protocol buffer message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Omits zeros, which are the default.
    fn integer(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    /// Packs the integers into a single field.
    fn integers(&mut self, field: u64, values: &[u64]) {
        let mut packed = Self::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.message(field, &packed);
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
