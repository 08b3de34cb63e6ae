//! `cargo xtask pages`: looks at the generated HTML pages in a headless browser.
//!
//! A page is opened wide and narrow, light and dark. It must fit its window, be readable, request
//! nothing, and show hostile text as text. Screenshots are kept in `target/pages/`.

mod browser;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use self::browser::{Browser, Scheme, View};
use crate::repo;

/// A report that the library writes, which a test there keeps up to date.
const REPORT: &str = "crates/simulation/tests/report.json";
/// CRDs for the API reference.
const CRDS: &str = "examples/memcached-operator/config/crd/bases";

/// Text that does harm in a page that does not escape it.
const HOSTILE: &str = "</pre></style></title><script>document.title='run'</script><img src='http://192.0.2.1/x' onerror='alert(1)'>";

/// Windows: a desktop and a phone, in logical pixels.
const WIDTHS: [u32; 2] = [1280, 390];

/// The smallest contrast of text that WCAG accepts for level AA.
const LEAST_CONTRAST: f64 = 4.5;

/// Opens each page in each window.
pub(crate) fn check_pages() -> Result<()> {
    let Some(browser) = Browser::find()? else {
        println!(
            "skipped: pages: no headless browser was found (Debian: `apt-get install chromium-headless-shell`, or set RBUILDER_BROWSER)"
        );
        return Ok(());
    };
    let folder = tempfile::Builder::new().prefix("rbuilder-pages-").tempdir()?;
    let kept = repo::target_folder().join("pages");
    fs_err::create_dir_all(&kept)?;
    for (name, page) in render_pages(folder.path())? {
        for width in WIDTHS {
            for scheme in [Scheme::Light, Scheme::Dark] {
                let view = View { width, scheme };
                let measured = browser.measure(&page, view, folder.path())?;
                check_page(&measured, view).with_context(|| format!("the page {name}, {view}"))?;
                let picture = kept.join(format!("{name}-{width}-{}.png", scheme.name()));
                browser.take_picture(&page, view, &picture)?;
            }
        }
    }
    println!("the pages are readable; screenshots are in {}", kept.display());
    Ok(())
}

/// Renders the pages with the command. Returns their names and files.
fn render_pages(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let bin = repo::build_rbuilder()?;
    let text = fs_err::read_to_string(repo::root().join(REPORT))?;
    let report: Value = serde_json::from_str(&text)?;
    write_reports(folder, "reports", &[report.clone(), passing(report.clone())])?;
    let mut hostile = report;
    fill(&mut hostile);
    write_reports(folder, "hostile", &[hostile])?;
    let crds = repo::root().join(CRDS);
    for (line, succeeds) in [
        ("simulate --from reports --file simulation.html".to_owned(), false),
        ("simulate --from hostile --file hostile.html".to_owned(), false),
        (format!("docs --file api.html {}", crds.display()), true),
    ] {
        let ended = repo::rbuilder_command(&bin, folder, &line)?.read();
        ensure!(
            ended.is_ok() == succeeds,
            "`rbuilder {line}` ended with {ended:?}"
        );
    }
    let names = ["simulation", "hostile", "api"];
    Ok(names
        .map(|name| (name, folder.join(format!("{name}.html"))))
        .into())
}

fn write_reports(folder: &Path, name: &str, reports: &[Value]) -> Result<()> {
    let folder = folder.join(name);
    fs_err::create_dir(&folder)?;
    for (number, report) in reports.iter().enumerate() {
        fs_err::write(folder.join(format!("{number}.json")), report.to_string())?;
    }
    Ok(())
}

/// Returns a report without failures, with notes and kept histories.
fn passing(mut report: Value) -> Value {
    let history = report["failures"][0]["history"].clone();
    report["name"] = "tests-cart.a_cart_is_reconciled".into();
    report["failures"] = json!([]);
    report["kept"] = json!([
        { "history": history, "outcome": "passes" },
        { "history": history, "outcome": "not-reached" },
    ]);
    report["unusedFields"] = json!(["carts.shop.example.com default/sample /spec/colour"]);
    report["masked"] = json!(["secrets default/sample .data.password"]);
    report
}

/// Puts hostile text into each text.
fn fill(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(HOSTILE),
        Value::Array(items) => items.iter_mut().for_each(fill),
        Value::Object(fields) => fields.values_mut().for_each(fill),
        _ => {}
    }
}

/// Checks what the browser has measured.
fn check_page(measured: &Value, view: View) -> Result<()> {
    let count = |name: &str| {
        measured[name]
            .as_u64()
            .with_context(|| format!("no `{name}` in {measured}"))
    };
    ensure!(
        count("scrollWidth")? <= u64::from(view.width),
        "it is {} pixels wide: {}",
        count("scrollWidth")?,
        measured["widest"]
    );
    ensure!(count("requests")? == 0, "it requests {}", measured["requested"]);
    ensure!(count("images")? == 0, "it has images from elsewhere");
    ensure!(
        measured["title"].as_str().is_some_and(|title| title != "run"),
        "a script of the text has run"
    );
    let contrast = measured["contrast"].as_f64().context("no contrast")?;
    ensure!(
        contrast >= LEAST_CONTRAST,
        "a text has a contrast of {contrast:.2}: {}",
        measured["faintest"]
    );
    let is_dark = measured["isDark"] == true;
    ensure!(
        is_dark == (view.scheme == Scheme::Dark),
        "its background does not follow the color scheme"
    );
    Ok(())
}
