//! serde's attributes, as far as they decide the wire shape.
//!
//! Keys that do not, and keys that serde does not know, are passed over: serde's own derive judges those.

use rbuilder_schema::Tagging;

use crate::args::{self, Arg, ArgValue};
use crate::attribute::Attribute;
use crate::names::Case;
use crate::{Session, SpanId};

/// What `#[serde(…)]` on a container says.
#[derive(Default)]
pub(crate) struct ContainerAttrs {
    pub(crate) rename_all: Option<Case>,
    pub(crate) rename_all_fields: Option<Case>,
    /// All fields have a default.
    pub(crate) default: bool,
    pub(crate) transparent: bool,
    tag: Option<String>,
    content: Option<String>,
    untagged: bool,
    /// `from`, `try_from` or `into`: the type that is on the wire in place of this one.
    pub(crate) stands_for: Option<(String, SpanId)>,
}

impl ContainerAttrs {
    /// The representation of an enum.
    pub(crate) fn tagging(&self) -> Tagging {
        match (&self.tag, &self.content) {
            _ if self.untagged => Tagging::Untagged,
            (Some(tag), Some(content)) => Tagging::Adjacent(tag.clone(), content.clone()),
            (Some(tag), None) => Tagging::Internal(tag.clone()),
            _ => Tagging::External,
        }
    }

    /// `tag` on a struct: serde writes a field that no Rust field stands for.
    pub(crate) fn struct_tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }
}

/// What `#[serde(…)]` on a field says.
#[derive(Default)]
pub(crate) struct FieldAttrs {
    pub(crate) rename: Option<String>,
    pub(crate) default: bool,
    pub(crate) skip: bool,
    /// `skip_deserializing`: written, never read.
    pub(crate) output_only: bool,
    pub(crate) flatten: bool,
    /// `with`, `serialize_with` or `deserialize_with`: the Rust type does not say what is on the wire.
    pub(crate) opaque: Option<SpanId>,
}

/// What `#[serde(…)]` on a variant says.
#[derive(Default)]
pub(crate) struct VariantAttrs {
    pub(crate) rename: Option<String>,
    pub(crate) rename_all: Option<Case>,
    pub(crate) skip: bool,
    pub(crate) untagged: Option<SpanId>,
    pub(crate) opaque: Option<SpanId>,
}

/// Reads the attributes of a container.
pub(crate) fn container(attrs: &[Attribute<'_>], session: &mut Session) -> ContainerAttrs {
    let mut read = ContainerAttrs::default();
    for arg in serde_args(attrs, session) {
        match arg.name {
            "rename_all" => read.rename_all = case(&arg, session),
            "rename_all_fields" => read.rename_all_fields = case(&arg, session),
            "default" => read.default = true,
            "transparent" => read.transparent = true,
            "tag" => read.tag = arg.text(session),
            "content" => read.content = arg.text(session),
            "untagged" => read.untagged = true,
            // What is read counts; `into` alone says what is written.
            "from" | "try_from" => read.stands_for = arg.text(session).map(|ty| (ty, arg.value_span())),
            "into" if read.stands_for.is_none() => {
                read.stands_for = arg.text(session).map(|ty| (ty, arg.value_span()));
            }
            _ => {}
        }
    }
    // schemars' `with` on a type: the schema of that one.
    let schemars = attrs.iter().filter(|attr| attr.is("schemars"));
    for arg in schemars.flat_map(|attr| args::of_attribute(attr, &mut Session::default())) {
        if arg.name == "with" {
            read.stands_for = arg.text(session).map(|ty| (ty, arg.value_span()));
        }
    }
    read
}

/// Reads the attributes of a field.
pub(crate) fn field(attrs: &[Attribute<'_>], session: &mut Session) -> FieldAttrs {
    let mut read = FieldAttrs::default();
    let mut skip_serializing = false;
    for arg in serde_args(attrs, session) {
        match arg.name {
            "rename" => read.rename = name(&arg, session),
            "default" => read.default = true,
            "skip" => read.skip = true,
            "skip_serializing" => skip_serializing = true,
            "skip_deserializing" => read.output_only = true,
            "flatten" => read.flatten = true,
            "with" | "serialize_with" | "deserialize_with" => read.opaque = Some(arg.span),
            _ => {}
        }
    }
    read.skip |= skip_serializing && read.output_only;
    read
}

/// Reads the attributes of a variant.
pub(crate) fn variant(attrs: &[Attribute<'_>], session: &mut Session) -> VariantAttrs {
    let mut read = VariantAttrs::default();
    let mut halves = 0;
    for arg in serde_args(attrs, session) {
        match arg.name {
            "rename" => read.rename = name(&arg, session),
            "rename_all" => read.rename_all = case(&arg, session),
            "skip" => read.skip = true,
            "skip_serializing" | "skip_deserializing" => halves += 1,
            "untagged" => read.untagged = Some(arg.span),
            "with" | "serialize_with" | "deserialize_with" => read.opaque = Some(arg.span),
            _ => {}
        }
    }
    read.skip |= halves > 1;
    read
}

fn serde_args<'a>(attrs: &[Attribute<'a>], session: &mut Session) -> Vec<Arg<'a>> {
    let serde = attrs.iter().filter(|attr| attr.is("serde"));
    let mut read: Vec<Arg<'a>> = serde.flat_map(|attr| args::of_attribute(attr, session)).collect();
    // schemars takes serde's keys as well, and what it is told counts for the schema. What is wrong with its
    // attributes is said where the rest of them is read.
    for attr in attrs.iter().filter(|attr| attr.is("schemars")) {
        let args = args::of_attribute(attr, &mut Session::default());
        read.extend(
            args.into_iter()
                .filter(|arg| !matches!(arg.name, "with" | "serialize_with")),
        );
    }
    read
}

/// `rename = "x"`, or `rename(serialize = "x", deserialize = "y")`, where what is read is what the schema says.
fn name(arg: &Arg, session: &mut Session) -> Option<String> {
    let ArgValue::List(directions) = &arg.value else {
        return arg.text(session);
    };
    let direction = |name: &str| directions.iter().find(|direction| direction.name == name);
    match (direction("serialize"), direction("deserialize")) {
        (Some(written), Some(read)) => {
            let (written, read_name) = (written.text(session), read.text(session));
            if written != read_name {
                session.report(
                    crate::Diagnostic::warning(
                        arg.span,
                        "the name that is read differs from the name that is written",
                    )
                    .help("the schema has the name that is read; use one name for both"),
                );
            }
            read_name
        }
        (None, Some(read)) => read.text(session),
        _ => None,
    }
}

fn case(arg: &Arg, session: &mut Session) -> Option<Case> {
    let text = match &arg.value {
        ArgValue::List(_) => name(arg, session)?,
        _ => arg.text(session)?,
    };
    // An unknown rule is for serde to refuse.
    Case::parse(&text)
}
