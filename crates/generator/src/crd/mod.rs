//! Generates CustomResourceDefinitions, one file per kind with all of its versions.

mod check;
mod conversion;
mod duplicates;
mod merge;
mod patched;
mod print;
mod rules;
mod size;
mod storage;
mod summary;

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_judge::{Definition, Scale};
use rbuilder_kubernetes::gvk;
use rbuilder_reader::Span;
use rbuilder_schema::{CsvMarkers, Schema};
use rbuilder_syntax::{Conversion, CustomResource, SchemaMode};
use serde_json::{Value, json};

use crate::advice;
use crate::csv::{DescriptorPlaces, RequiredCrds, collect_csv_markers};
use crate::kinds::Kind;
use crate::package::{Package, TypeId};
use crate::place::Place;
use crate::report::{Concern, Report};
use crate::resolve::{Owner, find_schema_function};
use crate::root;
use crate::schemas::Schemas;
use crate::yaml::{self, Entries};
use crate::{Options, OutputFile};

pub(crate) struct Version<'a> {
    resource: &'a CustomResource,
    place: Place,
    schema: Schema,
    /// True if the type derives `CrdSchema`.
    is_ours: bool,
    is_stored: bool,
}

impl Version<'_> {
    fn at(&self, span: Span) -> Place {
        Place { span, ..self.place }
    }
}

/// The names of a kind. Derived as in kube unless they are explicit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Names {
    kind: String,
    plural: String,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
}

impl Names {
    fn of(resource: &CustomResource) -> Names {
        Names {
            kind: resource.kind.clone(),
            plural: resource.plural_name(),
            singular: resource.singular_name(),
            short_names: resource.short_names.clone(),
            categories: resource.categories.clone(),
        }
    }
}

/// Results about the kinds, apart from the generated files.
#[derive(Default)]
pub(crate) struct CrdFindings {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) csv: Vec<CsvMarkers>,
    pub(crate) definitions: Vec<Definition>,
}

pub(crate) fn crd_files(
    package: &Package,
    options: &Options,
    report: &mut Report,
    each: &mut dyn FnMut(OutputFile),
) -> CrdFindings {
    let (mut csv, mut definitions) = (Vec::new(), Vec::new());
    let mut required = RequiredCrds::default();
    let mut descriptors = DescriptorPlaces::default();
    let kinds = merge::group_versions(package, report);
    let patches = patched::find_patches(package, &kinds);
    let mut summaries = summary::list_kinds(package, &kinds, &patches, report);
    let mut schemas = Schemas::new(package, report);
    for (position, versions) in kinds.values().enumerate() {
        let concern = Concern::Kind(position);
        schemas.report().set_concern(concern);
        if let Some(places) = patches.get(&position) {
            patched::report_patches(&versions[0].1.kind, places, schemas.report());
        }
        for (_, resource) in versions {
            required.add(resource, schemas.report());
        }
        let stored = storage::find_stored(package, versions);
        let made: Vec<Option<Version<'_>>> = versions
            .iter()
            .enumerate()
            .map(|(position, (id, resource))| {
                let made = version(*id, resource, options, &mut schemas)?;
                let is_stored = stored.map_or(resource.storage, |stored| stored == position);
                Some(Version { is_stored, ..made })
            })
            .collect();
        let groups = duplicates::group_by_package(package, versions);
        if !groups.is_empty() {
            let report = schemas.report();
            summaries[position].duplicates =
                duplicates::print_duplicates(package, versions, &groups, made, options, report);
            versions.iter().for_each(|(id, _)| schemas.forget(*id));
            continue;
        }
        // Generate one CRD at a time, so that only one large CRD is in memory.
        let made = made.into_iter().collect::<Option<Vec<_>>>();
        if let Some(made) = &made {
            size::check_weight(made, &mut schemas);
            check::check_versions(made, &mut schemas);
            conversion::check_conversion(made, &mut schemas);
            made.iter().for_each(|version| descriptors.add(&version.schema));
        }
        let report = schemas.report();
        // Without `keep_going`, any error prevents all output, so don't bother to print the CRD.
        let is_held_back = if options.keep_going {
            report.holds_back(concern)
        } else {
            report.has_errors()
        };
        if let Some(made) = made
            && !is_held_back
        {
            let file = file(&made, options);
            size::check_size(&made, &file, &mut schemas);
            // `check_size` may have found the file too large.
            if !schemas.report().holds_back(concern) {
                each(file);
                if options.csv {
                    let found = made
                        .iter()
                        .map(|version| collect_csv_markers(version.resource, &version.schema));
                    csv.extend(found.flatten());
                }
                if options.definitions {
                    definitions.extend(define_served(made));
                }
            }
        }
        versions.iter().for_each(|(id, _)| schemas.forget(*id));
    }
    let unread = summary::find_unread(package);
    // Unreadable kinds are numbered after the others.
    for (position, id) in (kinds.len()..).zip(unread) {
        schemas.report().set_concern(Concern::Kind(position));
        schemas.report_reserved(id);
    }
    schemas.report().set_concern(Concern::Run);
    descriptors.report(schemas.report());
    CrdFindings {
        kinds: summaries,
        csv,
        definitions,
    }
}

fn version<'a>(
    id: TypeId,
    resource: &'a CustomResource,
    options: &Options,
    schemas: &mut Schemas<'a>,
) -> Option<Version<'a>> {
    let item = schemas.package().item(id);
    let place = Place {
        file: item.file,
        span: resource.span,
    };
    check_disabled_schema(id, resource, schemas);
    if !check_derives(id, resource, schemas) {
        return None;
    }
    let whole = if item.is_rewritten {
        None
    } else {
        handwritten_schema(id, resource, schemas)
    };
    let mut schema = match whole {
        Some(whole) => root::complete_root(resource, Schema::clone(&*whole?)),
        None => {
            // Even if the spec has errors, continue with the status so that its errors show up in
            // the same run.
            let spec = schemas.item(id, place);
            check_null_spec(id, resource, schemas);
            let status = match &resource.status {
                Some(ty) => schemas.beside(id, ty).map(Some),
                None => Some(None),
            };
            root::root_schema(resource, &spec?, status?.map(|slot| slot.schema))
        }
    };
    root::apply_options(&mut schema, options);
    let version = Version {
        resource,
        place,
        schema,
        is_ours: item.is_ours,
        is_stored: resource.storage,
    };
    check::check_version(&version, schemas);
    check::check_structure(&version, schemas);
    check::check_metadata(&version, schemas);
    rules::check_rules(&version, schemas);
    Some(version)
}

/// Checks that the type derives the kind, and warns if it derives no schema. A derive is easily
/// removed while its attributes stay. Returns false after an error.
fn check_derives(id: TypeId, resource: &CustomResource, schemas: &mut Schemas<'_>) -> bool {
    let item = schemas.package().item(id);
    // Another error has been reported in this case, and it's unclear what the item derives.
    let Some(model) = item.model.as_ref().filter(|_| !item.is_rewritten) else {
        return true;
    };
    let (name, kind) = (&model.ident, &resource.kind);
    let place = Place {
        file: item.file,
        span: resource.span,
    };
    if item.kind_struct.is_none() {
        let message = format!(
            "`{name}` has the attributes of the kind `{kind}`, but does not derive `CustomResource`: the program has no such kind"
        );
        let help = format!(
            "add `CustomResource` to its derives; to remove the kind with its CRD, remove `#[kube(group, version, kind)]` from `{name}` too"
        );
        schemas.report().error(place, message, &help);
        return false;
    }
    let is_written = item.derives_schema
        || resource.schema_mode != SchemaMode::Derived
        || find_schema_function(schemas.associated(), Owner::Type(id)).is_some();
    if !is_written {
        let message = format!(
            "`{name}` derives no schema, so `{kind}::crd()` does not compile; this CRD has the schema of the fields, without the \
             attributes that only a derive reads"
        );
        let help = "add `JsonSchema` or `CrdSchema` to its derives";
        schemas.report().warning(place, message, help);
    }
    true
}

/// With `schema = "disabled"`, the CRD of the program has no schema or a different one.
fn check_disabled_schema(id: TypeId, resource: &CustomResource, schemas: &mut Schemas<'_>) {
    let item = schemas.package().item(id);
    if resource.schema_mode != SchemaMode::Disabled || item.is_ours {
        return;
    }
    let place = Place {
        file: item.file,
        span: resource.schema_span,
    };
    let message = format!(
        "`{kind}::crd()` has no schema because of `schema = \"disabled\"`; this CRD has the schema of the type",
        kind = resource.kind
    );
    let help = "remove `schema = \"disabled\"`; if the program sets another schema, skip the kind: `skip = [\"…\"]` below `[package.metadata.rbuilder]` in Cargo.toml";
    schemas.report().warning(place, message, help);
}

/// In the struct that kube generates, the status is an `Option` but the spec isn't, so serde
/// rejects a `null` that the API server accepts.
fn check_null_spec(id: TypeId, resource: &CustomResource, schemas: &mut Schemas<'_>) {
    if resource.no_spec || !schemas.needs_option(id) {
        return;
    }
    let item = schemas.package().item(id);
    let place = Place {
        file: item.file,
        span: resource.span,
    };
    let message = "the API server accepts `null` for `spec`, but serde does not";
    let help = "remove `nullable`: kube's type of the object always has a spec";
    schemas.report().warning(place, message, help);
}

/// Returns the schema of an entire kind with `schema = "manual"` and an `impl JsonSchema`.
///
/// The outer `None` means that there is no such schema, the inner one that it couldn't be read,
/// which has been reported.
#[allow(clippy::option_option)] // the doc comment explains both
fn handwritten_schema(
    id: TypeId,
    resource: &CustomResource,
    schemas: &mut Schemas<'_>,
) -> Option<Option<Arc<Schema>>> {
    let package = schemas.package();
    let item = package.item(id);
    let container = item.model.as_ref().map(|model| &model.container);
    let is_stated =
        container.is_some_and(|container| container.markers.schema.is_some() || container.transparent);
    if resource.schema_mode != SchemaMode::Manual || is_stated {
        return None;
    }
    let place = Place {
        file: item.file,
        span: resource.schema_span,
    };
    if let Some(function) = find_schema_function(schemas.associated(), Owner::Root(id)) {
        return Some(schemas.written(function, &[], place));
    }
    let message = format!("cannot find the `impl JsonSchema` of `{}`", resource.kind);
    let help = "remove `schema = \"manual\"`, or write the schema of the spec: `#[crd(schema = { \"type\": \"object\" })]`";
    let help = advice::for_type(help, item.is_ours);
    schemas.report().error(place, message, &help);
    Some(None)
}

/// Large enough for most CRDs, to avoid reallocation.
const CRD_CAPACITY: usize = 32 * 1024;

fn file(versions: &[Version<'_>], options: &Options) -> OutputFile {
    let resource = versions[0].resource;
    let names = Names::of(resource);
    let mut text = String::with_capacity(CRD_CAPACITY);
    text.push_str("---\n");
    yaml::write_document(&mut text).map(|crd| {
        crd.word("apiVersion").text("apiextensions.k8s.io/v1");
        crd.word("kind").text("CustomResourceDefinition");
        crd.word("metadata").value(&metadata(versions, &names, options));
        crd.word("spec").map(|spec| {
            if let Some(conversion) = versions.iter().find_map(|v| v.resource.conversion.as_ref()) {
                spec.word("conversion")
                    .value(&conversion_value(conversion, options.webhook_service()));
            }
            spec.word("group").text(&resource.group);
            spec.word("names").value(&names_value(&names));
            let scope = if resource.namespaced {
                "Namespaced"
            } else {
                "Cluster"
            };
            spec.word("scope").text(scope);
            spec.word("versions").list(|list| {
                for version in versions {
                    list.item().map(|entries| write_version(version, entries));
                }
            });
        });
    });
    let path = format!("crd/bases/{}_{}.yaml", resource.group, names.plural);
    OutputFile { path, text }
}

/// Returns the parts of each served version that matter for validating objects.
fn define_served(versions: Vec<Version<'_>>) -> Vec<Definition> {
    let is_converted_by_webhook = versions
        .iter()
        .any(|version| version.resource.conversion.is_some());
    let stored = versions
        .iter()
        .find(|version| version.is_stored && versions.len() > 1 && !is_converted_by_webhook)
        .map(|version| version.schema.clone());
    let served = versions.into_iter().filter(|version| version.resource.served);
    let definitions = served.map(|version| {
        let stored = stored.clone().filter(|_| !version.is_stored);
        define(version, stored)
    });
    definitions.collect()
}

fn define(version: Version<'_>, stored_schema: Option<Schema>) -> Definition {
    let Version { resource, schema, .. } = version;
    Definition {
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        is_namespaced: resource.namespaced,
        schema,
        stored_schema,
        has_status: resource.has_status_subresource(),
        scale: resource.scale.as_ref().map(|scale| Scale {
            spec_replicas: scale.spec_replicas_path.clone(),
            status_replicas: scale.status_replicas_path.clone(),
            label_selector: scale.label_selector_path.clone(),
        }),
        selectable_fields: resource
            .selectable_fields
            .iter()
            .map(|field| field.json_path.clone())
            .collect(),
    }
}

fn metadata(versions: &[Version<'_>], names: &Names, options: &Options) -> Value {
    let mut metadata = json!({ "name": gvk::qualify(&names.plural, &versions[0].resource.group) });
    let pairs = |of: fn(&CustomResource) -> &Vec<(String, String)>| -> BTreeMap<&str, &str> {
        versions
            .iter()
            .flat_map(|v| of(v.resource))
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    };
    let mut annotations = pairs(|resource| &resource.annotations);
    if let Some(version) = &options.version {
        annotations.insert("rbuilder.dev/version", version);
    }
    for (key, map) in [
        ("annotations", annotations),
        ("labels", pairs(|resource| &resource.labels)),
    ] {
        if !map.is_empty() {
            metadata[key] = json!(map);
        }
    }
    metadata
}

fn conversion_value(conversion: &Conversion, service: &str) -> Value {
    if !conversion.webhook {
        return json!({ "strategy": "None" });
    }
    let mut client = match &conversion.url {
        Some(url) => json!({ "url": url }),
        None => json!({ "service": {
            "name": conversion.service_name.as_deref().unwrap_or(service),
            "namespace": conversion.service_namespace,
            "path": conversion.path,
        } }),
    };
    if let (Some(port), None) = (conversion.service_port, &conversion.url) {
        client["service"]["port"] = port.into();
    }
    if let Some(bundle) = &conversion.ca_bundle {
        client["caBundle"] = bundle.as_str().into();
    }
    json!({
        "strategy": "Webhook",
        "webhook": { "clientConfig": client, "conversionReviewVersions": conversion.review_versions },
    })
}

fn names_value(names: &Names) -> Value {
    let mut value = json!({
        "kind": names.kind,
        "listKind": format!("{}List", names.kind),
        "plural": names.plural,
        "singular": names.singular,
    });
    for (key, list) in [
        ("categories", &names.categories),
        ("shortNames", &names.short_names),
    ] {
        if !list.is_empty() {
            value[key] = json!(list);
        }
    }
    value
}

fn write_version(version: &Version<'_>, entries: &mut Entries<'_>) {
    let resource = version.resource;
    if !resource.print_columns.is_empty() {
        let columns = resource.print_columns.iter().map(column_value).collect();
        entries.word("additionalPrinterColumns").value(&columns);
    }
    if let Some(warning) = &resource.deprecated {
        entries.word("deprecated").flag(true);
        if let Some(warning) = warning {
            entries.word("deprecationWarning").text(warning);
        }
    }
    entries.word("name").text(&resource.version);
    entries.word("schema").map(|entries| {
        print::print_schema(&version.schema, entries.word("openAPIV3Schema"));
    });
    if !resource.selectable_fields.is_empty() {
        let fields = resource
            .selectable_fields
            .iter()
            .map(|field| json!({ "jsonPath": field.json_path }))
            .collect();
        entries.word("selectableFields").value(&fields);
    }
    entries.word("served").flag(resource.served);
    entries.word("storage").flag(version.is_stored);
    let subresources = subresources(resource);
    if subresources != json!({}) {
        entries.word("subresources").value(&subresources);
    }
}

fn column_value(column: &rbuilder_syntax::PrintColumn) -> Value {
    let mut value = json!({ "jsonPath": column.json_path, "name": column.name, "type": column.column_type });
    for (key, text) in [("description", &column.description), ("format", &column.format)] {
        if let Some(text) = text {
            value[key] = text.as_str().into();
        }
    }
    // Omit the API server's default.
    if let Some(priority) = column.priority.filter(|priority| *priority != 0) {
        value["priority"] = priority.into();
    }
    value
}

fn subresources(resource: &CustomResource) -> Value {
    let mut value = json!({});
    if resource.has_status_subresource() {
        value["status"] = json!({});
    }
    if let Some(scale) = &resource.scale {
        value["scale"] = json!({
            "specReplicasPath": scale.spec_replicas_path,
            "statusReplicasPath": scale.status_replicas_path,
        });
        if let Some(path) = &scale.label_selector_path {
            value["scale"]["labelSelectorPath"] = path.as_str().into();
        }
    }
    value
}
