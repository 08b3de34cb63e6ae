//! Renders the page as a single HTML file without scripts or any other files (not even fonts).
//!
//! The content security policy only allows this style, by hash. So the operator's names and
//! messages can't make the page send requests.

use super::picture::{class, push_timeline, seconds};
use super::report::{Budget, Event, Failure, Kept, Perturbation, Report, Request};
use crate::html::escape;

const STYLE: &str = include_str!("style.css");

/// Hash for the content security policy, checked by a test.
const STYLE_HASH: &str = "sha256-EPdEVbL0PELpUwiQId8setykln+3G3jm/fHkhtfJX88=";

/// Contained in every generated page.
pub const MARK: &str = "rbuilder simulate";

/// Groups of perturbations: the heading, and the prefixes of the kinds.
const GROUPS: [(&str, &[&str]); 6] = [
    ("dies", &["crash-"]),
    ("answer lost", &["lose-answer"]),
    ("errors", &["refuse-"]),
    ("forbidden", &["forbid", "fill-quota"]),
    ("watches", &["delay-events", "end-watches", "expire-watches"]),
    ("others", &["remove", "edit", "evict", "redeclare"]),
];

/// Renders a page about the simulations of a project.
#[must_use]
pub fn render_page(project: &str, reports: &[Report]) -> String {
    let title = format!("Simulations of {}", escape(project));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{STYLE_HASH}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"{MARK}\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    push_overview(&mut page, reports);
    for (number, report) in reports.iter().enumerate() {
        push_report(&mut page, number, report);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn push_overview(page: &mut String, reports: &[Report]) {
    push_table_head(page, &["Simulation", "Result", "Histories", "Writes covered"]);
    for (number, report) in reports.iter().enumerate() {
        let (writes, covered) = report.writes();
        page.push_str(&format!(
            "<tr><th scope=\"row\"><a href=\"#simulation-{number}\">{}</a></th><td>{}</td><td class=\"count\">{}</td>\
             <td class=\"count\">{covered} of {writes}</td></tr>\n",
            breakable(&report.name),
            result(report),
            report.histories,
        ));
    }
    page.push_str("</tbody></table></div>\n");
}

fn push_table_head(page: &mut String, headings: &[&str]) {
    page.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n<thead><tr>",
    );
    for heading in headings {
        page.push_str(&format!("<th scope=\"col\">{heading}</th>"));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
}

fn result(report: &Report) -> String {
    match report.failures.len() {
        0 => "<span class=\"passed\">no failure</span>".to_owned(),
        1 => "<span class=\"failed\">1 failure</span>".to_owned(),
        count => format!("<span class=\"failed\">{count} failures</span>"),
    }
}

fn push_report(page: &mut String, number: usize, report: &Report) {
    page.push_str(&format!(
        "<section id=\"simulation-{number}\">\n<h2>{}</h2>\n<p>{} <span class=\"muted\">{}</span></p>\n",
        breakable(&report.name),
        result(report),
        escape(&report.source)
    ));
    push_summary(page, report);
    for failure in &report.failures {
        push_failure(page, failure);
    }
    push_coverage(page, report);
    push_list(page, "Fields that change nothing", &report.unused_fields);
    push_list(
        page,
        "Variations of the declarations that the server refuses",
        &report.refused,
    );
    push_list(
        page,
        "Fields that differ from run to run, and are not compared",
        &report.masked,
    );
    push_kept(page, report);
    page.push_str("</section>\n");
}

fn push_summary(page: &mut String, report: &Report) {
    let (writes, covered) = report.writes();
    let budget = match report.budget {
        Budget::Histories(count) => format!("{count} histories"),
        Budget::Seconds(count) => format!("{count} seconds"),
    };
    let declared: Vec<String> = report
        .declarations
        .iter()
        .map(|name| format!("<code>{}</code>", escape(name)))
        .collect();
    page.push_str("<dl>\n");
    for (name, value) in [
        ("Declared", declared.join(" ")),
        (
            "Histories",
            format!("{} of a budget of {budget}", report.histories),
        ),
        (
            "Requests without perturbations",
            report.requests.len().to_string(),
        ),
        ("Writes covered", format!("{covered} of {writes}")),
    ] {
        page.push_str(&format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
    }
    page.push_str("</dl>\n");
}

fn push_failure(page: &mut String, failure: &Failure) {
    page.push_str(&format!(
        "<article>\n<h3><span class=\"failed\">{}</span></h3>\n<pre>{}</pre>\n",
        escape(&failure.oracle),
        escape(&failure.message)
    ));
    push_items(page, "ul", "When", &failure.perturbations);
    push_items(page, "ol", "Steps of the user", &failure.steps);
    push_timeline(page, failure);
    push_events(page, failure);
    page.push_str(&format!(
        "<p>To run it again:</p>\n<pre>RBUILDER_SIMULATION={} cargo test</pre>\n</article>\n",
        escape(&quote(&failure.history))
    ));
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn push_items(page: &mut String, list: &str, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    page.push_str(&format!("<h4>{heading}</h4>\n<{list}>"));
    for item in items {
        page.push_str(&format!("<li>{}</li>", escape(item)));
    }
    page.push_str(&format!("</{list}>\n"));
}

fn push_events(page: &mut String, failure: &Failure) {
    page.push_str(&format!(
        "<details><summary>All {} events</summary>\n",
        failure.events.len() + failure.omitted_events
    ));
    push_table_head(page, &["Time", "Actor", "What", "Answer"]);
    for (number, event) in failure.events.iter().enumerate() {
        if failure.omitted_events > 0 && number == failure.events.len() / 2 {
            page.push_str(&format!(
                "<tr><td colspan=\"4\" class=\"muted\">… {} more events …</td></tr>\n",
                failure.omitted_events
            ));
        }
        push_event(page, event);
    }
    page.push_str("</tbody></table></div></details>\n");
}

fn push_event(page: &mut String, event: &Event) {
    let answer = match event.code {
        None => String::new(),
        Some(code @ 400..) => format!("<span class=\"refused\">{code}</span>"),
        Some(code) if event.changed => format!("{code}"),
        Some(code) => format!("{code} <span class=\"muted\">nothing changed</span>"),
    };
    page.push_str(&format!(
        "<tr class=\"{}\"><td class=\"count\">{}</td><td>{}</td><td>{}</td><td>{answer}</td></tr>\n",
        class(&event.actor),
        seconds(event.at),
        escape(&event.actor),
        breakable(&event.text),
    ));
}

fn push_coverage(page: &mut String, report: &Report) {
    page.push_str("<h3>Coverage</h3>\n");
    let (writes, reads): (Vec<&Request>, Vec<&Request>) =
        report.requests.iter().partition(|request| request.changes);
    push_requests(page, "Writes: how often they were disturbed", &writes, true);
    push_perturbations(page, &report.perturbations);
    push_requests(page, "Requests that change nothing", &reads, false);
}

fn push_requests(page: &mut String, heading: &str, requests: &[&Request], is_open: bool) {
    if requests.is_empty() {
        return;
    }
    let open = if is_open { " open" } else { "" };
    page.push_str(&format!("<details{open}><summary>{heading}</summary>\n"));
    let headings: Vec<&str> = std::iter::once("Request")
        .chain(GROUPS.iter().map(|(heading, _)| *heading))
        .collect();
    push_table_head(page, &headings);
    for request in requests {
        page.push_str(&format!(
            "<tr><th scope=\"row\">{}</th>",
            breakable(&request.request)
        ));
        for (_, starts) in GROUPS {
            let is_in_group = |kind: &str| starts.iter().any(|start| kind.starts_with(start));
            let counts = request.disturbed.iter().filter(|(kind, _)| is_in_group(kind));
            match counts.map(|(_, count)| count).sum::<usize>() {
                0 => page.push_str("<td class=\"never\">never</td>"),
                count => page.push_str(&format!("<td class=\"reached\">{count}</td>")),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div></details>\n");
}

/// Adds a bar for each kind of perturbation, with the number of histories in which it was tried,
/// and in which it happened.
fn push_perturbations(page: &mut String, perturbations: &[Perturbation]) {
    let most = perturbations.iter().map(|kind| kind.histories).max().unwrap_or(0);
    page.push_str("<details open><summary>Perturbations: in how many histories they happened</summary>\n");
    push_table_head(page, &["Perturbation", "Happened", ""]);
    for kind in perturbations {
        let Perturbation {
            histories, reached, ..
        } = kind;
        let count = match (reached, histories) {
            (0, 0) => "<span class=\"never\">never tried</span>".to_owned(),
            (0, _) => format!("<span class=\"never\">never, tried {histories} times</span>"),
            (reached, histories) if reached == histories => reached.to_string(),
            _ => format!("{reached} of {histories}"),
        };
        page.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td class=\"count\">{count}</td><td>{}</td></tr>\n",
            escape(&kind.description),
            bar(*reached, *histories, most),
        ));
    }
    page.push_str("</tbody></table></div></details>\n");
}

/// A bar, scaled so that `most` has the full width.
fn bar(reached: usize, histories: usize, most: usize) -> String {
    const WIDTH: usize = 160;
    let width = |count: usize| count * WIDTH / most.max(1);
    format!(
        "<svg aria-hidden=\"true\" width=\"{WIDTH}\" height=\"10\" viewBox=\"0 0 {WIDTH} 10\"><rect class=\"tried\" \
         width=\"{}\" height=\"10\"/><rect class=\"bar\" width=\"{}\" height=\"10\"/></svg>",
        width(histories),
        width(reached)
    )
}

fn push_list(page: &mut String, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    page.push_str(&format!("<h3>{heading}</h3>\n<ul>"));
    for item in items {
        page.push_str(&format!("<li><code>{}</code></li>", escape(item)));
    }
    page.push_str("</ul>\n");
}

fn push_kept(page: &mut String, report: &Report) {
    if report.kept.is_empty() {
        return;
    }
    page.push_str(&format!(
        "<h3>Kept histories</h3>\n<p>They are in <code>{}</code>, and run first.</p>\n",
        escape(&report.kept_file)
    ));
    push_table_head(page, &["Line", "Outcome", "History"]);
    for (number, Kept { history, outcome }) in report.kept.iter().enumerate() {
        let outcome = match outcome.as_str() {
            "fails" => "<span class=\"failed\">fails</span>",
            "passes" => "<span class=\"passed\">passes</span>",
            "not-reached" => "<span class=\"never\">disturbs no request any more</span>",
            _ => "<span class=\"muted\">not run</span>",
        };
        page.push_str(&format!(
            "<tr><td class=\"count\">{}</td><td>{outcome}</td><td><code>{}</code></td></tr>\n",
            number + 1,
            breakable(history)
        ));
    }
    page.push_str("</tbody></table></div>\n");
}

fn breakable(name: &str) -> String {
    let mut text = String::new();
    for part in name.split_inclusive(['.', '/', '-', '_', ',']) {
        text.push_str(&escape(part));
        text.push_str("<wbr>");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = include_str!("../../../simulation/tests/report.json");

    #[test]
    fn policy_has_the_hash_of_the_style() {
        use base64::Engine as _;
        use base64::prelude::BASE64_STANDARD;

        let digest = hmac_sha256::Hash::hash(STYLE.as_bytes());
        let hash = format!("sha256-{}", BASE64_STANDARD.encode(digest));
        assert_eq!(STYLE_HASH, hash, "write this hash");
    }

    #[test]
    fn page_has_the_failure_with_its_lanes_and_how_to_repeat_it() {
        let page = render_page("shop", &[Report::parse(REPORT).unwrap()]);
        for part in [
            "<h1>Simulations of shop</h1>",
            "<span class=\"failed\">end-state</span>",
            "services default/a is missing",
            "<li>the operator dies after `update configmaps default/a #1`</li>",
            "<li class=\"operator\">operator</li><li class=\"server\">API server</li>",
            "<path class=\"fault\"",
            "<pre>RBUILDER_SIMULATION=&#39;{&quot;seed&quot;:0,",
            "<td class=\"never\">never</td>",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    fn fill(value: &mut serde_json::Value, text: &str) {
        match value {
            serde_json::Value::String(value) => value.push_str(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| fill(item, text)),
            serde_json::Value::Object(fields) => {
                let names: Vec<String> = fields.keys().cloned().collect();
                fields.values_mut().for_each(|value| fill(value, text));
                if names.iter().any(|name| name == "crash-after") {
                    fields.insert(text.to_owned(), 1.into());
                }
            }
            _ => {}
        }
    }

    #[test]
    fn text_of_the_operator_is_escaped() {
        let hostile = "</title></style></pre><script>a</script><img src=x onerror='a'>\"&\u{202e}\u{0}";
        let mut value: serde_json::Value = serde_json::from_str(REPORT).unwrap();
        fill(&mut value, hostile);
        value["kept"] = serde_json::json!([{ "history": hostile, "outcome": hostile }]);
        value["unusedFields"] = serde_json::json!([hostile]);
        value["refused"] = serde_json::json!([hostile]);
        value["masked"] = serde_json::json!([hostile]);
        let page = render_page(hostile, &[Report::parse(&value.to_string()).unwrap()]);
        for tag in ["<script", "<img", "</title></style>", "onerror='"] {
            assert!(!page.contains(tag), "{tag}");
        }
        assert!(!page.contains('\u{202e}') && !page.contains('\u{0}'));
        assert_eq!(page.matches("<style>").count(), 1);
        assert!(page.contains("&lt;script&gt;a&lt;/"));
    }
}
