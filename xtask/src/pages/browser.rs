//! Runs Chromium as a headless process.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::assets;
use crate::sh::{Cmd, find_program};

/// This script runs in a page which embeds the page to measure.
const MEASURE: &str = include_str!("measure.js");
/// The script writes its result between these tags.
const RESULT: (&str, &str) = ("<pre id=\"result\">", "</pre>");

const VARIABLE: &str = "RBUILDER_BROWSER";
/// Programs which we can use. They have to support the flags of headless Chromium.
const PROGRAMS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "google-chrome",
    "chromium-browser",
];
/// Name of the Debian package for the first of the programs.
const PACKAGE: &str = "chromium-headless-shell";
const HEIGHT: u32 = 2400;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scheme {
    Light,
    Dark,
}

impl Scheme {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Returns the number which is used for this scheme in the settings of Blink.
    fn number(self) -> u8 {
        match self {
            Self::Dark => 0,
            Self::Light => 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) width: u32,
    pub(super) scheme: Scheme,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pixels wide, {}", self.width, self.scheme.name())
    }
}

pub(super) struct Browser(PathBuf);

impl Browser {
    /// Finds a browser. If there is none it will be installed in CI, but on any other machine this
    /// returns `None`.
    pub(super) fn find() -> Result<Option<Self>> {
        if let Some(path) = std::env::var_os(VARIABLE) {
            let path = PathBuf::from(path);
            if !path.is_file() {
                bail!("{VARIABLE} names {}, which is no file", path.display());
            }
            return Ok(Some(Self(path)));
        }
        let find = || PROGRAMS.iter().find_map(|name| find_program(name).ok());
        if let Some(path) = find() {
            return Ok(Some(Self(path)));
        }
        if std::env::var_os("CI").is_none_or(|value| value.is_empty()) {
            return Ok(None);
        }
        assets::install_package(PACKAGE, "a headless Chromium", "install Chromium")?;
        let path = find().with_context(|| format!("{PACKAGE} was installed, but is not on the path"))?;
        Ok(Some(Self(path)))
    }

    fn command(&self, view: View) -> Cmd {
        Cmd::program(&self.0)
            // There is no sandbox for Chromium when it runs as root, which it does in containers.
            // That's fine, because all pages are ours.
            .words("--headless --no-sandbox --disable-gpu --hide-scrollbars --disable-dev-shm-usage --log-level=3")
            .arg(format!(
                "--blink-settings=preferredColorScheme={}",
                view.scheme.number()
            ))
            .arg(format!("--window-size={},{HEIGHT}", view.width))
    }

    /// Opens a page in a frame. Returns what the script has measured.
    pub(super) fn measure(&self, page: &Path, view: View, folder: &Path) -> Result<Value> {
        let text = fs_err::read_to_string(page)?;
        let outer = folder.join("outer.html");
        fs_err::write(&outer, frame(&text, view.width))?;
        let dom = self
            .command(view)
            .words("--virtual-time-budget=10000 --dump-dom")
            .arg(&outer)
            .read()?;
        let found = dom
            .split_once(RESULT.0)
            .and_then(|(_, rest)| rest.split_once(RESULT.1));
        let (result, _) = found.with_context(|| format!("the browser measured nothing:\n{dom:.2000}"))?;
        let result = result
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        serde_json::from_str(&result).with_context(|| format!("not JSON: {result}"))
    }

    pub(super) fn take_picture(&self, page: &Path, view: View, picture: &Path) -> Result<()> {
        let mut argument = std::ffi::OsString::from("--screenshot=");
        argument.push(picture);
        self.command(view).arg(argument).arg(page).read()?;
        Ok(())
    }
}

/// Returns a page with another page in an iframe of the given width. The script is able to inspect
/// the embedded page, because both have the same origin.
fn frame(page: &str, width: u32) -> String {
    let source = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<body style=\"margin:0\">\n{}{}\n\
         <iframe style=\"border:0;width:{width}px;height:2000px\" srcdoc=\"{source}\"></iframe>\n\
         <script>{MEASURE}</script>\n",
        RESULT.0, RESULT.1
    )
}
