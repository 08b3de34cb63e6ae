//! The arguments of `#[versioned]` on a module, or on a struct or enum outside of a versioned
//! module.

use std::sync::Arc;

use rbuilder_reader::{Arg, ArgValue, Attribute, Span};

use crate::Diagnostic;

const MAX_VERSIONS: usize = 100;

/// The arguments of `#[versioned]` on a module.
#[derive(Debug)]
pub struct VersionedModule {
    /// The versions, in ascending order.
    pub versions: Vec<ModuleVersion>,
    /// True if the version modules are inside of the original module.
    pub keeps_module: bool,
}

/// A version of a module with `#[versioned]`.
#[derive(Clone, Debug)]
pub struct ModuleVersion {
    names: Arc<[String]>,
    pub(super) position: usize,
    /// Prepended to the documentation of each type. May be empty.
    pub(crate) docs: Arc<str>,
    pub(crate) conversions: Conversions,
}

/// Options for conversions that change the status of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conversions {
    /// True if the status stores values that other versions lack.
    pub(crate) are_tracked: bool,
    pub(crate) skipped: Skipped,
}

/// From `skip(…)`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skipped {
    pub(crate) merged_crd: bool,
    pub(crate) try_convert: bool,
}

impl Skipped {
    pub(crate) fn add(&mut self, skip: &Arg<'_>) {
        let ArgValue::List(args) = &skip.value else { return };
        self.merged_crd |= args.iter().any(|arg| arg.name == "merged_crd");
        self.try_convert |= args.iter().any(|arg| arg.name == "try_convert");
    }
}

impl ModuleVersion {
    /// Returns the name of the version, which is also the name of its module.
    pub fn name(&self) -> &str {
        &self.names[self.position]
    }

    /// Returns the names of all versions in the module, in ascending order.
    pub fn all_names(&self) -> &[String] {
        &self.names
    }
}

/// Reads the arguments of `#[versioned]` on a module.
///
/// # Errors
///
/// Returns an error for an unknown argument, which may change what the macro generates, and for
/// versions that the macro rejects: none at all, duplicates, or descending order.
pub fn read_versioned_module(attr: &Attribute<'_>) -> Result<VersionedModule, Diagnostic> {
    read_versioned(attr, &[])
}

/// Reads the arguments of `#[versioned]` on a struct or enum outside of a versioned module, which
/// the macro accepted before 0.8. They include the keys of the kind (`k8s(…)`).
///
/// # Errors
///
/// Fails for the same reasons as [`read_versioned_module`].
pub fn read_versioned_item(attr: &Attribute<'_>) -> Result<VersionedModule, Diagnostic> {
    read_versioned(attr, &["k8s", "crd"])
}

/// `ignored` lists arguments that are read elsewhere.
fn read_versioned(attr: &Attribute<'_>, ignored: &[&str]) -> Result<VersionedModule, Diagnostic> {
    let args = attr.args();
    if let Some(error) = &args.malformed {
        return Err(error.clone());
    }
    let mut read = Vec::new();
    let mut options = Options::default();
    for arg in &args.list {
        match arg.name {
            "version" => read.push(read_version(arg)?),
            "options" => options.read(list_of(arg)?)?,
            "skip" => options.conversions.skipped.add(arg),
            // Paths of crates.
            "crates" => {}
            name if ignored.contains(&name) => {}
            _ => return Err(unknown(arg, "versioned")),
        }
    }
    if read.is_empty() {
        return Err(no_version(attr.span()));
    }
    if read.len() > MAX_VERSIONS {
        let message = format!(
            "a module has at most {MAX_VERSIONS} versions here, found {}",
            read.len()
        );
        return Err(Diagnostic::error(attr.span(), message));
    }
    if !options.allows_unsorted
        && let Some(pair) = read.windows(2).find(|pair| pair[0].order > pair[1].order)
    {
        let message = format!(
            "version `{}` comes after the newer version `{}`",
            pair[1].name, pair[0].name
        );
        let help = "write the versions in ascending order";
        return Err(Diagnostic::error(pair[1].span, message).help(help));
    }
    read.sort_by_key(|version| version.order);
    if let Some(pair) = read.windows(2).find(|pair| pair[0].order == pair[1].order) {
        let message = format!("duplicate version `{}`", pair[1].name);
        return Err(Diagnostic::error(pair[1].span, message));
    }
    let names: Arc<[String]> = read.iter().map(|version| version.name.clone()).collect();
    let at = |(position, version): (usize, Version)| ModuleVersion {
        names: Arc::clone(&names),
        position,
        docs: version.docs.into(),
        conversions: options.conversions,
    };
    Ok(VersionedModule {
        versions: read.into_iter().enumerate().map(at).collect(),
        keeps_module: options.keeps_module,
    })
}

#[derive(Default)]
struct Options {
    allows_unsorted: bool,
    keeps_module: bool,
    conversions: Conversions,
}

impl Options {
    fn read(&mut self, args: &[Arg<'_>]) -> Result<(), Diagnostic> {
        for arg in args {
            match arg.name {
                "allow_unsorted" => self.allows_unsorted = true,
                "preserve_module" => self.keeps_module = true,
                "k8s" => self.read_kubernetes(arg),
                "skip" => {}
                _ => return Err(unknown(arg, "options")),
            }
        }
        Ok(())
    }

    fn read_kubernetes(&mut self, owner: &Arg<'_>) {
        let ArgValue::List(args) = &owner.value else {
            return;
        };
        self.conversions.are_tracked |= args
            .iter()
            .any(|arg| arg.name == "experimental_conversion_tracking");
    }
}

struct Version {
    name: String,
    span: Span,
    order: (u32, u8, u32),
    docs: String,
}

fn read_version(owner: &Arg<'_>) -> Result<Version, Diagnostic> {
    let mut name = None;
    let mut docs = String::new();
    for arg in list_of(owner)? {
        match arg.name {
            "name" => name = Some((text_of(arg)?, arg.value_span())),
            "doc" => docs = read_docs(text_of(arg)?),
            // `deprecated` is for rustc; the macro does not mark the version in the CRD.
            "skip" | "deprecated" => {}
            _ => return Err(unknown(arg, "version")),
        }
    }
    let Some((name, span)) = name else {
        let help = "add `name = \"v1alpha1\"`";
        return Err(Diagnostic::error(owner.span, "missing argument `name` of `version`").help(help));
    };
    let Some(order) = order_of(name) else {
        let message = format!("`{name}` is not a version of a Kubernetes API");
        return Err(Diagnostic::error(span, message).help("write `v1alpha1`, `v1beta1`, `v1` or the like"));
    };
    Ok(Version {
        name: name.to_owned(),
        span,
        order,
        docs,
    })
}

fn read_docs(text: &str) -> String {
    text.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Orders the versions of a module: `v1alpha1`, `v1beta1`, `v1`, `v2alpha1`. Returns `None` for
/// names in another format.
fn order_of(name: &str) -> Option<(u32, u8, u32)> {
    let rest = name.strip_prefix('v')?;
    let (major, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| !text.starts_with(['0', '+']));
    let (rank, minor) = if rest.is_empty() {
        (2, 0)
    } else if let Some(minor) = rest.strip_prefix("beta") {
        (1, number(minor)?)
    } else {
        (0, number(rest.strip_prefix("alpha")?)?)
    };
    Some((number(major)?, rank, minor))
}

pub(super) fn list_of<'s, 'a>(arg: &'s Arg<'a>) -> Result<&'s [Arg<'a>], Diagnostic> {
    match &arg.value {
        ArgValue::List(args) => Ok(args),
        _ => {
            let message = format!("expected arguments in parentheses for `{}`", arg.name);
            Err(Diagnostic::error(arg.value_span(), message).help(format!("write `{}(…)`", arg.name)))
        }
    }
}

pub(super) fn text_of<'s>(arg: &'s Arg<'_>) -> Result<&'s str, Diagnostic> {
    let text = arg.literal().and_then(|literal| literal.value.as_str());
    text.ok_or_else(|| {
        let message = format!("expected a string literal for `{}`", arg.name);
        Diagnostic::error(arg.value_span(), message).help(format!("write `{} = \"…\"`", arg.name))
    })
}

pub(super) fn unknown(arg: &Arg<'_>, owner: &str) -> Diagnostic {
    let message = format!("unknown argument `{}` of `{owner}`", arg.name);
    let help = "rbuilder reads the arguments of stackable-versioned 0.11 and earlier";
    Diagnostic::error(arg.span, message).help(help)
}

fn no_version(span: Span) -> Diagnostic {
    let help = "write `#[versioned(version(name = \"v1alpha1\"))]`";
    Diagnostic::error(span, "`versioned` has no version").help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbuilder_reader::token::lex;

    fn read(attr: &str) -> Result<VersionedModule, Diagnostic> {
        let text = format!("{attr}\nmod versioned {{}}");
        let tokens = lex(&text).expect("tokens");
        let attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
        read_versioned_module(&attrs[0])
    }

    #[test]
    fn reads_versions_in_ascending_order() {
        for (attr, expected, keeps_module) in [
            ("#[versioned(version(name = \"v1alpha1\"))]", "v1alpha1", false),
            (
                "#[versioned(version(name = \"v1alpha1\", deprecated), version(name = \"v1beta1\", deprecated = \"x\", \
                 skip(from)), version(name = \"v1\"), version(name = \"v2alpha1\", doc = \"x\"), options(preserve_module))]",
                "v1alpha1 v1beta1 v1 v2alpha1",
                true,
            ),
            (
                "#[versioned(version(name = \"v1\"), version(name = \"v1beta1\"), crates(kube = \"x::kube\"), \
                 options(allow_unsorted, k8s(enable_tracing)), skip(from))]",
                "v1beta1 v1",
                false,
            ),
        ] {
            let module = read(attr).expect(attr);
            let names: Vec<&str> = module.versions.iter().map(ModuleVersion::name).collect();
            assert_eq!(names.join(" "), expected, "{attr}");
            assert_eq!(module.keeps_module, keeps_module, "{attr}");
        }
        let docs = read("#[versioned(version(name = \"v1\", doc = r#\"\n   One.\n   Two.\n \"#))]")
            .expect("a module");
        assert_eq!(&*docs.versions[0].docs, "One.\nTwo.");
    }

    #[test]
    fn reports_versions_that_the_macro_refuses() {
        for (attr, expected) in [
            ("#[versioned]", "`versioned` has no version"),
            ("#[versioned(skip(from))]", "`versioned` has no version"),
            (
                "#[versioned(version(deprecated))]",
                "missing argument `name` of `version`",
            ),
            (
                "#[versioned(version(name = v1))]",
                "expected a string literal for `name`",
            ),
            (
                "#[versioned(version(name = \"1\"))]",
                "`1` is not a version of a Kubernetes API",
            ),
            (
                "#[versioned(version(name = \"v1gamma1\"))]",
                "`v1gamma1` is not a version of a Kubernetes API",
            ),
            (
                "#[versioned(version(name = \"v1\"), version(name = \"v1\"))]",
                "duplicate version `v1`",
            ),
            (
                "#[versioned(version(name = \"v1\"), version(name = \"v1beta1\"))]",
                "version `v1beta1` comes after the newer version `v1`",
            ),
            (
                "#[versioned(version(name = \"v1\", served = false))]",
                "unknown argument `served` of `version`",
            ),
            (
                "#[versioned(version(name = \"v1\"), options(other))]",
                "unknown argument `other` of `options`",
            ),
            (
                "#[versioned(version = \"v1\")]",
                "expected arguments in parentheses for `version`",
            ),
        ] {
            let error = read(attr).expect_err(attr);
            assert_eq!(error.message, expected, "{attr}");
        }
    }
}
