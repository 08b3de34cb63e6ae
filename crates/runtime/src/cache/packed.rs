//! Compact storage of metadata in a single block of bytes.
//!
//! The [`ObjectMeta`] of a typical Deployment takes about 2 kB: each of its maps allocates a B-tree
//! node of 544 bytes, and each of its twenty or so strings is a separate allocation. Caches of
//! metadata pack it into about 100 bytes instead, and rebuild the `ObjectMeta` on each read.
//!
//! # Layout
//!
//! A block starts with a bit set of the fields that are present, followed by those fields in a
//! fixed order, starting with the ones that are also read individually.
//!
//! - Numbers are encoded as LEB128.
//! - Strings are prefixed with their length plus one. A zero stands for the object's name, which is
//!   repeated by many labels and owner references.
//! - UIDs take 16 bytes.
//! - Label keys, annotation keys, finalizers and owner types rarely differ between objects of a
//!   kind. They're stored as [`Words`], in a single byte each.
//! - The object's name and namespace are omitted, since they're part of its key.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use k8s_openapi::jiff::Timestamp;
use kube::core::ObjectMeta;

/// Strings longer than this (in bytes) do not become words.
const MAX_WORD: usize = 320;
/// A code must fit into a byte, and 0 is reserved for strings that aren't words.
const MAX_WORDS: usize = u8::MAX as usize;

/// Strings that the objects of a cache have in common.
///
/// Words are never removed or modified, so reading them doesn't take a lock. They are assigned in
/// the order in which they're first encountered, until all codes are used up. This bounds the
/// memory to 80 kB, no matter which strings the objects contain.
pub(super) struct Words([OnceLock<Arc<str>>; MAX_WORDS]);

impl Words {
    pub(super) const fn new() -> Self {
        Self([const { OnceLock::new() }; MAX_WORDS])
    }

    fn get(&self, index: usize) -> &str {
        self.0.get(index).and_then(OnceLock::get).map_or("", |word| word)
    }
}

/// For reading fields that never contain words.
static NO_WORDS: Words = Words::new();

pub(super) struct Packer {
    words: Arc<Words>,
    /// Codes assigned so far, starting at 1.
    codes: HashMap<Arc<str>, u8>,
    /// Buffer reused between calls.
    scratch: Vec<u8>,
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            words: Arc::new(Words::new()),
            codes: HashMap::new(),
            scratch: Vec::new(),
        }
    }
}

impl Packer {
    pub(super) fn words(&self) -> &Arc<Words> {
        &self.words
    }

    /// Returns the word's code, assigning one if necessary. Returns 0 if the word is too long or no
    /// codes are left.
    fn code(&mut self, word: &str) -> u8 {
        if let Some(code) = self.codes.get(word) {
            return *code;
        }
        match self.words.0.get(self.codes.len()) {
            Some(free) if word.len() <= MAX_WORD => {
                let code = self.codes.len() as u8 + 1;
                let word: Arc<str> = word.into();
                self.codes.insert(Arc::clone(&word), code);
                free.get_or_init(|| word);
                code
            }
            _ => 0,
        }
    }
}

/// Bits in the bit set, in layout order.
mod bit {
    pub(super) const RESOURCE_VERSION: u64 = 1;
    pub(super) const LABELS: u64 = 1 << 1;
    pub(super) const UID: u64 = 1 << 2;
    pub(super) const ANNOTATIONS: u64 = 1 << 3;
    pub(super) const CREATION_TIMESTAMP: u64 = 1 << 4;
    pub(super) const DELETION_GRACE_PERIOD: u64 = 1 << 5;
    pub(super) const DELETION_TIMESTAMP: u64 = 1 << 6;
    pub(super) const FINALIZERS: u64 = 1 << 7;
    pub(super) const GENERATE_NAME: u64 = 1 << 8;
    pub(super) const GENERATION: u64 = 1 << 9;
    pub(super) const MANAGED_FIELDS: u64 = 1 << 10;
    pub(super) const NAME: u64 = 1 << 11;
    pub(super) const NAMESPACE: u64 = 1 << 12;
    pub(super) const OWNER_REFERENCES: u64 = 1 << 13;
    pub(super) const SELF_LINK: u64 = 1 << 14;
}

/// Packed metadata of an object, without its name and namespace.
#[derive(Clone)]
pub(super) struct PackedMeta(Box<[u8]>);

impl PackedMeta {
    pub(super) fn pack(meta: &ObjectMeta, packer: &mut Packer) -> Self {
        // Don't use `..` here: if a new version of Kubernetes adds a field, this should fail to
        // compile until we support it.
        let ObjectMeta {
            annotations,
            creation_timestamp,
            deletion_grace_period_seconds,
            deletion_timestamp,
            finalizers,
            generate_name,
            generation,
            labels,
            managed_fields,
            name,
            namespace,
            owner_references,
            resource_version,
            self_link,
            uid,
        } = meta;
        let mut bits = 0;
        let mut set = |is_set: bool, bit: u64| bits |= u64::from(is_set) * bit;
        set(resource_version.is_some(), bit::RESOURCE_VERSION);
        set(labels.is_some(), bit::LABELS);
        set(uid.is_some(), bit::UID);
        set(annotations.is_some(), bit::ANNOTATIONS);
        set(creation_timestamp.is_some(), bit::CREATION_TIMESTAMP);
        set(
            deletion_grace_period_seconds.is_some(),
            bit::DELETION_GRACE_PERIOD,
        );
        set(deletion_timestamp.is_some(), bit::DELETION_TIMESTAMP);
        set(finalizers.is_some(), bit::FINALIZERS);
        set(generate_name.is_some(), bit::GENERATE_NAME);
        set(generation.is_some(), bit::GENERATION);
        set(managed_fields.is_some(), bit::MANAGED_FIELDS);
        set(name.is_some(), bit::NAME);
        set(namespace.is_some(), bit::NAMESPACE);
        set(owner_references.is_some(), bit::OWNER_REFERENCES);
        set(self_link.is_some(), bit::SELF_LINK);

        let bytes = std::mem::take(&mut packer.scratch);
        let name = name.as_deref().unwrap_or_default();
        let mut writer = Writer { bytes, packer, name };
        writer.number(bits);
        resource_version.iter().for_each(|version| writer.string(version));
        labels.iter().for_each(|labels| writer.map(labels));
        uid.iter().for_each(|uid| writer.uid(uid));
        annotations.iter().for_each(|annotations| writer.map(annotations));
        creation_timestamp.iter().for_each(|time| writer.time(time));
        deletion_grace_period_seconds
            .iter()
            .for_each(|seconds| writer.signed(*seconds));
        deletion_timestamp.iter().for_each(|time| writer.time(time));
        if let Some(finalizers) = finalizers {
            writer.number(finalizers.len() as u64);
            finalizers.iter().for_each(|finalizer| writer.word(finalizer));
        }
        generate_name.iter().for_each(|prefix| writer.string(prefix));
        generation
            .iter()
            .for_each(|generation| writer.signed(*generation));
        if let Some(fields) = managed_fields {
            // Most caches drop managed fields, so they're not worth an encoding of their own.
            writer.string(&serde_json::to_string(fields).unwrap_or_default());
        }
        if let Some(owners) = owner_references {
            writer.number(owners.len() as u64);
            owners.iter().for_each(|owner| writer.owner(owner));
        }
        self_link.iter().for_each(|link| writer.string(link));

        // Copy the bytes, so that the block is sized exactly and the buffer can be reused.
        let mut bytes = writer.bytes;
        let packed = Self(bytes.as_slice().into());
        bytes.clear();
        packer.scratch = bytes;
        packed
    }

    pub(super) fn view(&self) -> PackedView<'_> {
        PackedView(&self.0)
    }
}

#[derive(Clone, Copy)]
pub(super) struct PackedView<'a>(pub(super) &'a [u8]);

impl<'a> PackedView<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The namespace and name must be passed in, since they aren't part of the packed data.
    pub(super) fn unpack(self, namespace: Option<&str>, name: &str, words: &Words) -> ObjectMeta {
        let (mut reader, bits) = Reader::new(self, words, name);
        let has = |bit: u64| bits & bit != 0;
        // Relies on evaluation order: fields must be read in layout order.
        ObjectMeta {
            resource_version: has(bit::RESOURCE_VERSION).then(|| reader.string()),
            labels: has(bit::LABELS).then(|| reader.map()),
            uid: has(bit::UID).then(|| reader.uid()),
            annotations: has(bit::ANNOTATIONS).then(|| reader.map()),
            creation_timestamp: has(bit::CREATION_TIMESTAMP).then(|| reader.time()),
            deletion_grace_period_seconds: has(bit::DELETION_GRACE_PERIOD).then(|| reader.signed()),
            deletion_timestamp: has(bit::DELETION_TIMESTAMP).then(|| reader.time()),
            finalizers: has(bit::FINALIZERS).then(|| {
                let count = reader.number();
                (0..count).map(|_| reader.word().to_owned()).collect()
            }),
            generate_name: has(bit::GENERATE_NAME).then(|| reader.string()),
            generation: has(bit::GENERATION).then(|| reader.signed()),
            managed_fields: has(bit::MANAGED_FIELDS)
                .then(|| serde_json::from_str(reader.str()).unwrap_or_default()),
            owner_references: has(bit::OWNER_REFERENCES).then(|| {
                let count = reader.number();
                (0..count).map(|_| reader.owner()).collect()
            }),
            self_link: has(bit::SELF_LINK).then(|| reader.string()),
            name: has(bit::NAME).then(|| name.to_owned()),
            namespace: namespace.filter(|_| has(bit::NAMESPACE)).map(str::to_owned),
        }
    }

    pub(super) fn resource_version(self, name: &'a str) -> Option<&'a str> {
        let (mut reader, bits) = Reader::new(self, &NO_WORDS, name);
        (bits & bit::RESOURCE_VERSION != 0).then(|| reader.str())
    }

    pub(super) fn has_uid(self, name: &str, uid: &str) -> bool {
        let (mut reader, bits) = Reader::new(self, &NO_WORDS, name);
        // Skip the two fields that precede the UID.
        if bits & bit::RESOURCE_VERSION != 0 {
            reader.str();
        }
        if bits & bit::LABELS != 0 {
            for _ in 0..reader.number() {
                reader.word();
                reader.str();
            }
        }
        bits & bit::UID != 0 && reader.uid() == uid
    }

    pub(super) fn labels(self, name: &str, words: &Words) -> BTreeMap<String, String> {
        let (mut reader, bits) = Reader::new(self, words, name);
        if bits & bit::RESOURCE_VERSION != 0 {
            reader.str();
        }
        let labels = (bits & bit::LABELS != 0).then(|| reader.map());
        labels.unwrap_or_default()
    }
}

struct Writer<'a> {
    bytes: Vec<u8>,
    packer: &'a mut Packer,
    /// Name of the object. Strings equal to it are encoded as zero.
    name: &'a str,
}

impl Writer<'_> {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn signed(&mut self, number: i64) {
        self.number(number.cast_unsigned());
    }

    fn string(&mut self, string: &str) {
        if string == self.name {
            return self.number(0);
        }
        self.number(string.len() as u64 + 1);
        self.bytes.extend_from_slice(string.as_bytes());
    }

    fn uid(&mut self, uid: &str) {
        let bytes = parse_uid(uid);
        self.bytes.push(u8::from(bytes.is_some()));
        match bytes {
            Some(bytes) => self.bytes.extend_from_slice(&bytes),
            None => self.string(uid),
        }
    }

    fn word(&mut self, word: &str) {
        let code = self.packer.code(word);
        self.bytes.push(code);
        if code == 0 {
            self.string(word);
        }
    }

    fn map(&mut self, map: &BTreeMap<String, String>) {
        self.number(map.len() as u64);
        for (key, value) in map {
            self.word(key);
            self.string(value);
        }
    }

    fn time(&mut self, Time(time): &Time) {
        self.signed(time.as_second());
        self.signed(time.subsec_nanosecond().into());
    }

    fn owner(&mut self, owner: &OwnerReference) {
        let OwnerReference {
            api_version,
            block_owner_deletion,
            controller,
            kind,
            name,
            uid,
        } = owner;
        self.word(api_version);
        self.word(kind);
        // Both options fit into one byte.
        self.bytes
            .push(option_code(*block_owner_deletion) * 3 + option_code(*controller));
        self.string(name);
        self.uid(uid);
    }
}

/// Parses a UID in the form that Kubernetes uses, i.e. lower case with four hyphens. Anything else
/// is stored as a string.
fn parse_uid(uid: &str) -> Option<[u8; 16]> {
    let mut digits = uid.bytes();
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        if is_after_hyphen(index) && digits.next() != Some(b'-') {
            return None;
        }
        *byte = parse_digit(digits.next()?)? << 4 | parse_digit(digits.next()?)?;
    }
    digits.next().is_none().then_some(bytes)
}

fn parse_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn format_uid(bytes: &[u8]) -> String {
    let mut uid = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if is_after_hyphen(index) {
            uid.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            uid.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    uid
}

fn is_after_hyphen(index: usize) -> bool {
    matches!(index, 4 | 6 | 8 | 10)
}

fn option_code(option: Option<bool>) -> u8 {
    option.map_or(0, |value| 1 + u8::from(value))
}

fn coded_option(code: u8) -> Option<bool> {
    (code > 0).then_some(code == 2)
}

/// Reads a block. Missing data in a truncated block (which should never occur) reads as zeros and
/// empty strings.
struct Reader<'a> {
    bytes: &'a [u8],
    words: &'a Words,
    name: &'a str,
}

impl<'a> Reader<'a> {
    fn new(packed: PackedView<'a>, words: &'a Words, name: &'a str) -> (Self, u64) {
        let mut reader = Self {
            bytes: packed.0,
            words,
            name,
        };
        let bits = reader.number();
        (reader, bits)
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift >= 64 {
                return number;
            }
        }
    }

    fn signed(&mut self) -> i64 {
        self.number().cast_signed()
    }

    fn str(&mut self) -> &'a str {
        let Some(length) = self.number().checked_sub(1) else {
            return self.name;
        };
        str::from_utf8(self.take(length)).unwrap_or_default()
    }

    fn take(&mut self, length: u64) -> &'a [u8] {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (taken, rest) = self.bytes.split_at_checked(length).unwrap_or_default();
        self.bytes = rest;
        taken
    }

    fn uid(&mut self) -> String {
        match self.byte() {
            0 => self.string(),
            _ => format_uid(self.take(16)),
        }
    }

    fn string(&mut self) -> String {
        self.str().to_owned()
    }

    fn word(&mut self) -> &'a str {
        match usize::from(self.byte()).checked_sub(1) {
            Some(index) => self.words.get(index),
            None => self.str(),
        }
    }

    fn map(&mut self) -> BTreeMap<String, String> {
        let count = self.number();
        (0..count)
            .map(|_| (self.word().to_owned(), self.string()))
            .collect()
    }

    fn time(&mut self) -> Time {
        let (seconds, nanoseconds) = (self.signed(), self.signed());
        let nanoseconds = i32::try_from(nanoseconds).unwrap_or_default();
        Time(Timestamp::new(seconds, nanoseconds).unwrap_or_default())
    }

    fn owner(&mut self) -> OwnerReference {
        let (api_version, kind) = (self.word().to_owned(), self.word().to_owned());
        let options = self.byte();
        OwnerReference {
            api_version,
            kind,
            block_owner_deletion: coded_option(options / 3),
            controller: coded_option(options % 3),
            name: self.string(),
            uid: self.uid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
    use proptest::collection::{btree_map, vec};
    use proptest::option::of;
    use proptest::prelude::*;

    use super::*;

    fn time() -> impl Strategy<Value = Time> {
        (-62_135_596_800..253_402_207_199_i64, 0..1_000_000_000)
            .prop_map(|(seconds, nanoseconds)| Time(Timestamp::new(seconds, nanoseconds).unwrap()))
    }

    fn map() -> impl Strategy<Value = BTreeMap<String, String>> {
        btree_map("[a-z]{0,2}", ".{0,9}", 0..14)
    }

    fn owner() -> impl Strategy<Value = OwnerReference> {
        let options = (of(any::<bool>()), of(any::<bool>()));
        ("[a-z]{0,3}", "[a-z]{0,3}", ".{0,9}", ".{0,9}", options).prop_map(
            |(api_version, kind, name, uid, (block_owner_deletion, controller))| OwnerReference {
                api_version,
                block_owner_deletion,
                controller,
                kind,
                name,
                uid,
            },
        )
    }

    fn managed_fields() -> impl Strategy<Value = Vec<ManagedFieldsEntry>> {
        let entry = of(".{0,9}").prop_map(|manager| ManagedFieldsEntry {
            manager,
            ..ManagedFieldsEntry::default()
        });
        vec(entry, 0..3)
    }

    prop_compose! {
        fn metadata()(
            (annotations, labels, managed_fields) in (of(map()), of(map()), of(managed_fields())),
            (creation_timestamp, deletion_timestamp) in (of(time()), of(time())),
            (deletion_grace_period_seconds, generation) in (of(any::<i64>()), of(any::<i64>())),
            (finalizers, owner_references) in (of(vec(".{0,9}", 0..3)), of(vec(owner(), 0..3))),
            (generate_name, name, namespace) in (of(".{0,9}"), of(".{0,9}"), of(".{0,9}")),
            (resource_version, self_link, uid) in (of(".{0,9}"), of(".{0,9}"), of(".{0,9}")),
        ) -> ObjectMeta {
            ObjectMeta {
                annotations,
                creation_timestamp,
                deletion_grace_period_seconds,
                deletion_timestamp,
                finalizers,
                generate_name,
                generation,
                labels,
                managed_fields,
                name,
                namespace,
                owner_references,
                resource_version,
                self_link,
                uid,
            }
        }
    }

    #[test]
    fn uids_of_any_form_round_trip() {
        let mut packer = Packer::default();
        for uid in [
            "0123abcd-4567-89ef-0000-ffffffffffff",
            "0123ABCD-4567-89ef-0000-ffffffffffff",
            "0123abcd-4567-89ef-0000-fffffffffff",
            "0123abcd-4567-89ef-0000-ffffffffffff0",
            "0123abcd+4567-89ef-0000-ffffffffffff",
            "0123abcd456789ef0000ffffffffffff",
            "",
            "web",
        ] {
            let meta = ObjectMeta {
                name: Some("web".to_owned()),
                uid: Some(uid.to_owned()),
                ..ObjectMeta::default()
            };
            let packed = PackedMeta::pack(&meta, &mut packer);
            assert_eq!(packed.view().unpack(None, "web", packer.words()), meta);
        }
    }

    proptest! {
        #[test]
        fn metadata_round_trips(all in vec(metadata(), 1..4)) {
            let mut packer = Packer::default();
            let packed: Vec<PackedMeta> =
                all.iter().map(|meta| PackedMeta::pack(meta, &mut packer)).collect();
            for (meta, packed) in all.iter().zip(packed) {
                let name = meta.name.as_deref().unwrap_or_default();
                let (packed, words) = (packed.view(), packer.words());
                prop_assert_eq!(&packed.unpack(meta.namespace.as_deref(), name, words), meta);
                prop_assert_eq!(packed.resource_version(name), meta.resource_version.as_deref());
                for uid in ["", "other"].into_iter().chain(meta.uid.as_deref()) {
                    prop_assert_eq!(packed.has_uid(name, uid), meta.uid.as_deref() == Some(uid));
                }
                prop_assert_eq!(packed.labels(name, words), meta.labels.clone().unwrap_or_default());
            }
        }
    }

    #[test]
    fn number_of_words_is_bounded_and_the_first_ones_stay() {
        let mut packer = Packer::default();
        assert_eq!(packer.code(&"x".repeat(MAX_WORD + 1)), 0);
        let codes: Vec<u8> = (0..300).map(|number| packer.code(&number.to_string())).collect();
        assert_eq!((codes[0], codes[254], codes[255]), (1, 255, 0));
        assert_eq!(
            (packer.code("0"), packer.code("299"), packer.codes.len()),
            (1, 0, 255)
        );
        // Strings without a code are stored verbatim.
        let label = |number: u32| (number.to_string(), "x".to_owned());
        let meta = ObjectMeta {
            labels: Some((0..300).map(label).collect()),
            ..ObjectMeta::default()
        };
        let packed = PackedMeta::pack(&meta, &mut packer);
        assert_eq!(packed.view().unpack(None, "", packer.words()), meta);
    }

    #[test]
    fn packed_block_is_small() {
        let mut packer = Packer::default();
        let mut meta = ObjectMeta {
            resource_version: Some("123456".to_owned()),
            uid: Some("00000000-0000-0000-0000-000000000000".to_owned()),
            ..ObjectMeta::default()
        };
        meta.name = Some("sample".to_owned());
        let label = |name: &str, value: &str| (format!("app.kubernetes.io/{name}"), value.to_owned());
        meta.labels = Some([label("instance", "sample"), label("name", "abc")].into());
        // Bit set, resource version, number of labels, two labels, UID.
        let expected = 2 + 7 + 1 + 2 + 5 + 17;
        assert_eq!(PackedMeta::pack(&meta, &mut packer).0.len(), expected);
    }
}
