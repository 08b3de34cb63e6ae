//! What a person or a program gets to see: the only module that prints.

#![allow(clippy::disallowed_methods)] // this is the module that prints

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{ErrorKind, IsTerminal, Write};

use crate::report;

/// Where output goes, and how it looks.
///
/// What cannot be written is remembered, and [`Shell::finish`] makes it the command's failure: half an output must not
/// pass for all of it. Only of a reader that has gone, as `head` has after ten lines, nothing is said.
pub struct Shell {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    color: bool,
    interactive: bool,
    /// Whether standard output is for messages, and all else goes to standard error.
    for_messages: bool,
    /// Whether messages are read by programs, one JSON object on each line.
    json: bool,
    /// Whether standard output and standard error are terminals, which act on what is written.
    terminals: (bool, bool),
    /// Why output was lost, and which.
    lost: Option<String>,
}

impl Shell {
    /// Standard output and standard error; colour only on a terminal, and not when `NO_COLOR` is set.
    pub fn standard() -> Shell {
        // Pipelines set this, and some give their steps a terminal at which nobody sits.
        let in_pipeline = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        let asked_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Shell {
            color: !asked_plain
                && shows_color(std::env::var_os("TERM").as_deref())
                && std::io::stdout().is_terminal()
                && std::io::stderr().is_terminal(),
            interactive: !in_pipeline && std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
            out: standard_output(),
            err: standard_error(),
            for_messages: false,
            json: false,
            terminals: (std::io::stdout().is_terminal(), std::io::stderr().is_terminal()),
            lost: None,
        }
    }

    /// A shell that writes elsewhere, plain and without questions: for tests.
    pub fn to(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Shell {
        Shell {
            out,
            err,
            color: false,
            interactive: false,
            for_messages: false,
            json: false,
            terminals: (false, false),
            lost: None,
        }
    }

    /// Whether colour is wanted.
    pub fn color(&self) -> bool {
        self.color
    }

    /// Tells messages as JSON from now on; with `on_output` on standard output, and the product on standard error.
    pub fn speak_json(&mut self, on_output: bool) {
        self.json = true;
        self.for_messages = on_output;
    }

    /// What is said about the source.
    pub fn message(&mut self, text: &str) {
        self.write(self.for_messages, text);
    }

    /// The command's product.
    pub fn out(&mut self, text: &str) {
        self.write(!self.for_messages, text);
    }

    /// What is said beside the product.
    pub fn note(&mut self, text: &str) {
        self.write(false, text);
    }

    /// A warning that is about no place in the source.
    pub fn warning(&mut self, text: &str) {
        if self.json {
            return self.message(&report::general("warning", text));
        }
        let word = self.paint("1;33", "warning");
        self.note(&format!("{word}: {text}\n"));
    }

    /// An error and its causes.
    pub fn error(&mut self, error: &anyhow::Error) {
        let text = format!("{error:#}");
        if self.json {
            return self.message(&report::general("error", &text));
        }
        let word = self.paint("1;31", "error");
        self.note(&format!("{word}: {text}\n"));
    }

    /// Ends a command: its exit code, which is not 0 where output was lost.
    pub fn finish(&mut self, code: u8) -> u8 {
        let Some(lost) = self.lost.take() else {
            return code;
        };
        self.error(&anyhow::anyhow!(lost));
        code.max(1)
    }

    fn write(&mut self, to_output: bool, text: &str) {
        let (stream, name, is_terminal) = if to_output {
            (&mut self.out, "standard output", self.terminals.0)
        } else {
            (&mut self.err, "standard error", self.terminals.1)
        };
        let text = if is_terminal {
            harmless(text)
        } else {
            Cow::Borrowed(text)
        };
        match stream.write_all(text.as_bytes()).and_then(|()| stream.flush()) {
            Ok(()) => {}
            // Nobody is left to tell when output is closed early, as by `head`.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => self.lost = Some(format!("cannot write to {name}: {error}")),
        }
    }

    /// A unified diff, coloured where there is colour.
    pub fn diff(&mut self, diff: &str) {
        if !self.color {
            return self.out(diff);
        }
        let painted: String = diff
            .split_inclusive('\n')
            .map(|line| {
                let code = match line.as_bytes() {
                    [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "1",
                    [b'+', ..] => "32",
                    [b'-', ..] => "31",
                    [b'@', ..] => "36",
                    _ => return line.to_owned(),
                };
                let (content, end) = line
                    .strip_suffix('\n')
                    .map_or((line, ""), |content| (content, "\n"));
                format!("{}{end}", self.paint(code, content))
            })
            .collect();
        self.out(&painted);
    }

    /// Asks a yes-or-no question where somebody can answer; otherwise, and at the end of input, `default`.
    pub fn confirm(&mut self, question: &str, default: bool) -> bool {
        if !self.interactive {
            return default;
        }
        loop {
            self.note(&format!("{question} [{}] ", if default { "Y/n" } else { "y/N" }));
            let mut answer = String::new();
            if !matches!(std::io::stdin().read_line(&mut answer), Ok(1..)) {
                return default;
            }
            match answer.trim().to_lowercase().as_str() {
                "" => return default,
                "y" | "yes" => return true,
                "n" | "no" => return false,
                _ => self.note("please answer yes or no\n"),
            }
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Text as a terminal may have it: names and source of a repository can hold sequences that clear the screen, write into
/// the clipboard or show lines in another order. Colours stay, and all else is shown as its number.
fn harmless(text: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(acts) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match color_sequence(rest) {
            Some(length) => {
                shown.push_str(&rest[..length]);
                length
            }
            None if rest.starts_with("\r\n") => 1,
            None => {
                let c = rest.chars().next().unwrap_or_default();
                shown.extend(c.escape_unicode());
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// The length of the sequence that a text begins with, if it is one that sets a colour.
fn color_sequence(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\x1b[")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    rest[end..].starts_with('m').then_some(end + 3)
}

/// Whether a terminal of this type shows colour. One that does not say what it is gets none, as from other programs.
fn shows_color(terminal: Option<&OsStr>) -> bool {
    match terminal {
        Some(terminal) => terminal != "dumb" && !terminal.is_empty(),
        None => cfg!(windows),
    }
}

/// Standard output as a file: the library's own stream takes it for success when nothing can be written because the
/// stream is closed or was opened to read.
#[cfg(unix)]
fn standard_output() -> Box<dyn Write + Send> {
    use std::os::fd::AsFd;
    match std::io::stdout().as_fd().try_clone_to_owned() {
        Ok(stream) => Box::new(std::fs::File::from(stream)),
        Err(_) => Box::new(std::io::stdout()),
    }
}

#[cfg(unix)]
fn standard_error() -> Box<dyn Write + Send> {
    use std::os::fd::AsFd;
    match std::io::stderr().as_fd().try_clone_to_owned() {
        Ok(stream) => Box::new(std::fs::File::from(stream)),
        Err(_) => Box::new(std::io::stderr()),
    }
}

#[cfg(not(unix))]
fn standard_output() -> Box<dyn Write + Send> {
    Box::new(std::io::stdout())
}

#[cfg(not(unix))]
fn standard_error() -> Box<dyn Write + Send> {
    Box::new(std::io::stderr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_get() {
        for (text, expected) in [
            ("plain\n\ttext é\n", "plain\n\ttext é\n"),
            ("\x1b[1;31merror\x1b[0m: a", "\x1b[1;31merror\x1b[0m: a"),
            ("a\r\nb", "a\nb"),
            ("a\rb", "a\\u{d}b"),
            ("\x1b[2Jx", "\\u{1b}[2Jx"),
            ("\x1b]52;c;eA==\x07", "\\u{1b}]52;c;eA==\\u{7}"),
            ("\x1b[", "\\u{1b}["),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\u{202e}b", "a\\u{202e}b"),
        ] {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }

    #[test]
    fn terminals_with_colour() {
        for (terminal, expected) in [
            (Some("xterm-256color"), true),
            (Some("linux"), true),
            (Some("dumb"), false),
            (Some(""), false),
            (None, cfg!(windows)),
        ] {
            assert_eq!(shows_color(terminal.map(OsStr::new)), expected, "{terminal:?}");
        }
    }
}
