//! Renders the section of a kind: names, differences between versions, examples, and the fields of
//! each version.

use rbuilder_kubernetes::gvk;

use super::super::anchors::version_anchor;
use super::super::compare::compare_versions;
use super::super::fields::fields_of_object;
use super::super::model::{Column, Kind, Version};
use super::field::{push_fields, push_rules};
use super::yaml::highlight;
use super::{breakable, codes, escape, link, push_description, spans};

pub(super) fn push_kind(page: &mut String, kind: &Kind) {
    let name = escape(&kind.name);
    page.push_str(&format!(
        "<section class=\"kind\" id=\"{0}\" aria-labelledby=\"{0}-title\">\n<p class=\"eyebrow\">{1}</p>\n\
         <h2 id=\"{0}-title\">{2} <a class=\"anchor\" href=\"#{0}\" aria-label=\"Link to {name}\">#</a></h2>\n",
        escape(&kind.anchor),
        escape(&kind.group),
        breakable(&kind.name),
    ));
    let preferred = kind.preferred();
    if let Some(description) = preferred.and_then(|version| version.schema().description.as_deref()) {
        page.push_str("<div class=\"lead\">\n");
        push_description(page, description);
        page.push_str("</div>\n");
    }
    push_facts(page, kind, preferred);
    push_versions(page, kind);
    let has_differences = push_differences(page, kind);
    for sample in &kind.samples {
        page.push_str(&format!(
            "<details class=\"example\" open>\n<summary>Example</summary>\n<pre><code>{}</code></pre>\n</details>\n",
            highlight(sample)
        ));
    }
    for version in &kind.versions {
        push_version(page, kind, version, has_differences);
    }
    page.push_str("</section>\n");
}

fn push_facts(page: &mut String, kind: &Kind, version: Option<&Version>) {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(version) = version {
        let api_version = gvk::api_version(&kind.group, &version.name);
        facts.push(("API version", codes([api_version].iter())));
    }
    facts.push(("Resource", codes([&kind.plural].into_iter())));
    if !kind.short_names.is_empty() {
        facts.push(("Short names", codes(kind.short_names.iter())));
    }
    if !kind.categories.is_empty() {
        facts.push(("Categories", codes(kind.categories.iter())));
    }
    facts.push(("Scope", kind.scope().into()));
    if let Some(version) = version {
        let mut subresources = Vec::new();
        if version.subresources.status.is_some() {
            subresources.push("<code>status</code>".to_owned());
        }
        if let Some(scale) = &version.subresources.scale {
            subresources.push(format!(
                "<code>scale</code> by <code>{}</code>",
                escape(&scale.spec_replicas_path)
            ));
        }
        if !subresources.is_empty() {
            facts.push(("Subresources", subresources.join(", ")));
        }
        if !version.selectable_fields.is_empty() {
            let paths = version.selectable_fields.iter().map(|field| &field.json_path);
            facts.push(("Field selectors", codes(paths)));
        }
        if !version.columns.is_empty() {
            facts.push(("Columns", columns(&version.columns)));
        }
    }
    if kind.is_converted {
        facts.push(("Conversion", "by a webhook of the operator".into()));
    }
    page.push_str("<dl class=\"names\">\n");
    for (term, value) in facts {
        page.push_str(&format!("<div><dt>{term}</dt><dd>{value}</dd></div>\n"));
    }
    page.push_str("</dl>\n");
}

fn columns(columns: &[Column]) -> String {
    let columns: Vec<String> = columns
        .iter()
        .map(|column| {
            let wide = if column.priority > 0 {
                " <span class=\"muted\">(wide)</span>"
            } else {
                ""
            };
            let title = if column.description.is_empty() {
                &column.json_path
            } else {
                &column.description
            };
            format!(
                "<span title=\"{}\">{}</span>{wide}",
                escape(title),
                escape(&column.name)
            )
        })
        .collect();
    columns.join(", ")
}

/// A single version only gets a table if it is deprecated or not served.
fn push_versions(page: &mut String, kind: &Kind) {
    if let [only] = kind.versions.as_slice()
        && only.served
        && !only.deprecated
    {
        return;
    }
    page.push_str(
        "<h3>Versions</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Version</th><th scope=\"col\">Served</th>\
         <th scope=\"col\">Stored</th><th scope=\"col\">State</th></tr></thead>\n<tbody>\n",
    );
    let yes = |is: bool| if is { "yes" } else { "no" };
    for version in &kind.versions {
        let state = match (&version.deprecation_warning, version.deprecated) {
            (Some(warning), true) => format!("deprecated: {}", spans(warning)),
            (None, true) => "deprecated".into(),
            _ => String::new(),
        };
        page.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{state}</td></tr>\n",
            link(&version_anchor(kind, version), &version.name),
            yes(version.served),
            yes(version.storage),
        ));
    }
    page.push_str("</tbody>\n</table></div>\n");
}

/// Adds a table of fields that differ between versions. Returns false if there are none.
fn push_differences(page: &mut String, kind: &Kind) -> bool {
    if kind.versions.len() < 2 {
        return false;
    }
    let differences = compare_versions(&kind.versions);
    if differences.is_empty() {
        page.push_str("<p class=\"same\">All versions have the same fields.</p>\n");
        return false;
    }
    page.push_str(&format!(
        "<details class=\"differences\" open>\n<summary>Differences between the versions: {}</summary>\n\
         <div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Field</th>",
        differences.len()
    ));
    for version in &kind.versions {
        page.push_str(&format!("<th scope=\"col\">{}</th>", escape(&version.name)));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for difference in differences {
        page.push_str(&format!(
            "<tr><th scope=\"row\"><code>{}</code></th>",
            breakable(&difference.path)
        ));
        for form in &difference.forms {
            match form {
                Some(form) => page.push_str(&format!("<td>{}</td>", escape(form))),
                None => page.push_str("<td class=\"muted\">absent</td>"),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n</details>\n");
    true
}

fn push_version(page: &mut String, kind: &Kind, version: &Version, has_differences: bool) {
    let anchor = version_anchor(kind, version);
    let is_preferred = kind
        .preferred()
        .is_some_and(|preferred| std::ptr::eq(preferred, version));
    let api_version = gvk::api_version(&kind.group, &version.name);
    // In print, leave out other versions with the same fields.
    let class = if is_preferred || has_differences {
        "version"
    } else {
        "version repeated"
    };
    page.push_str(&format!(
        "<section class=\"{class}\" id=\"{0}\">\n<h3>{1} <span class=\"muted\">{2}</span> \
         <a class=\"anchor\" href=\"#{0}\" aria-label=\"Link to {1} {2}\">#</a></h3>\n",
        escape(&anchor),
        escape(&kind.name),
        escape(&api_version),
    ));
    let fields = fields_of_object(version.schema());
    if fields.is_empty() {
        page.push_str("<p class=\"muted\">The schema names no fields.</p>\n");
    }
    push_rules(page, version.schema());
    // Only expand the preferred version, to keep the section short.
    if is_preferred {
        push_fields(page, &anchor, "", &fields, 0);
    } else {
        page.push_str(&format!(
            "<details class=\"closed\">\n<summary>Fields of {}</summary>\n",
            escape(&api_version)
        ));
        push_fields(page, &anchor, "", &fields, 0);
        page.push_str("</details>\n");
    }
    page.push_str("</section>\n");
}
