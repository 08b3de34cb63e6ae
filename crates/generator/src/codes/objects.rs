//! Codes for objects that are rejected by the API server. These are errors of `rbuilder validate`,
//! with the same messages as those of the server.

use super::{Code, ExamplePlace};
use crate::Severity;

pub(super) const CODES: &[Code] = &[
    Code {
        id: "RB0901",
        title: "A required field is missing",
        level: Severity::Error,
        place: ExamplePlace::Object,
        wrong: "spec: {}",
        right: "spec:\n  size: 3",
        reason: "The schema requires the field, and has no default for it.",
        server: "The Widget \"example\" is invalid: spec.size: Required value",
        messages: &["{}: Required value", "{}: Required value: {}"],
    },
    Code {
        id: "RB0902",
        title: "A value is not valid",
        level: Severity::Error,
        place: ExamplePlace::Object,
        wrong: "spec:\n  size: 12",
        right: "spec:\n  size: 9",
        reason: "The value has another type than the schema, is outside of its bounds, does not match its pattern or format, or violates \
                 a CEL rule. Here, `size` is an integer up to 9.",
        server: "The Widget \"example\" is invalid: spec.size: Invalid value: 12: spec.size in body should be less than or equal to 9",
        messages: &[
            "{}: Invalid value: {}",
            "{}: Forbidden: {}",
            "{}: Not found: {}",
            "{}: Internal error: {}",
            "some validation rules were not checked because the object was invalid",
            "not checked: {}",
        ],
    },
    Code {
        id: "RB0903",
        title: "A value is not one of the permitted values",
        level: Severity::Error,
        place: ExamplePlace::Object,
        wrong: "spec:\n  size: 3\n  colour: green",
        right: "spec:\n  size: 3\n  colour: white",
        reason: "The field has an enumeration of values. Here, `colour` is `white` or `blue`.",
        server: "The Widget \"example\" is invalid: spec.colour: Unsupported value: \"green\": supported values: \"white\", \"blue\"",
        messages: &["{}: Unsupported value: {}"],
    },
    Code {
        id: "RB0904",
        title: "A field is unknown, or occurs twice",
        level: Severity::Error,
        place: ExamplePlace::Object,
        wrong: "spec:\n  size: 3\n  color: white",
        right: "spec:\n  size: 3\n  colour: white",
        reason: "The API server drops unknown fields, and of a repeated one all values but the last. `kubectl apply` refuses both.",
        server: "Error from server (BadRequest): strict decoding error: unknown field \"spec.color\"",
        messages: &[
            "strict decoding error: {}",
            "unknown field \"{}\"",
            "duplicate field \"{}\"",
        ],
    },
    Code {
        id: "RB0905",
        title: "A list or a text is too long, or has duplicates",
        level: Severity::Error,
        place: ExamplePlace::Object,
        wrong: "spec:\n  size: 3\n  tags: [a, a]",
        right: "spec:\n  size: 3\n  tags: [a, b]",
        reason: "Lists, maps and texts have a maximal length, items of a set differ, and items of a map differ in their keys. Here, `tags` \
                 is a set.",
        server: "The Widget \"example\" is invalid: spec.tags[1]: Duplicate value: \"a\"",
        messages: &["{}: Duplicate value: {}", "{}: Too long: {}", "{}: Too many: {}"],
    },
    Code {
        id: "RB0906",
        title: "The version of a kind does not exist",
        level: Severity::Error,
        place: ExamplePlace::Object,
        wrong: "apiVersion: example.com/v2\nspec:\n  size: 3",
        right: "apiVersion: example.com/v1\nspec:\n  size: 3",
        reason: "No CRD serves the kind in this version.",
        server: "error: resource mapping not found for name: \"example\" namespace: \"\": no matches for kind \"Widget\" in version \
                 \"example.com/v2\"",
        messages: &["no matches for kind \"{}\" in version \"{}\""],
    },
    Code {
        id: "RB0907",
        title: "The object cannot be read",
        level: Severity::Error,
        place: ExamplePlace::Object,
        wrong: "  labels:\n    size: 3\nspec:\n  size: 3",
        right: "  labels:\n    size: \"3\"\nspec:\n  size: 3",
        reason: "The API server decodes `apiVersion`, `kind` and `metadata` before it validates anything. Here, the values of labels are \
                 strings.",
        server: "Error from server (BadRequest): Widget in version \"v1\" cannot be handled as a Widget: json: cannot unmarshal number \
                 into Go struct field ObjectMeta.labels of type string",
        messages: &[
            "{} in version \"{}\" cannot be handled as a {}: {}",
            "the object provided is unrecognized {}",
            "the API version in the data ({}) does not match the expected API version ({})",
            "Request entity too large: limit is {}",
        ],
    },
    Code {
        id: "RB0908",
        title: "The API server warns about the object",
        level: Severity::Warning,
        place: ExamplePlace::Object,
        wrong: "  finalizers: [widgets]\nspec:\n  size: 3",
        right: "  finalizers: [example.com/widgets]\nspec:\n  size: 3",
        reason: "The server accepts the object and sends a warning, which `kubectl` prints. Here, other programs may use the same name for \
                 a finalizer.",
        server: "Warning: metadata.finalizers: \"widgets\": prefer a domain-qualified finalizer name to avoid accidental conflicts with \
                 other finalizer writers",
        messages: &[
            "metadata.finalizers: \"{}\": {}",
            ".metadata.ownerReferences contains duplicate entries; {}",
        ],
    },
];
