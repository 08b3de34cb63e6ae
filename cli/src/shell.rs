//! Output to the terminal. No other module prints.

#![allow(clippy::disallowed_methods)] // this module prints

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, IsTerminal, Write};

use crate::color::color_sequence;
use crate::plan::{Plan, render_summary};
use crate::report;
use crate::tree::Viewpoint;

/// Standard output and standard error, and how to print to them.
///
/// A failed write is remembered and fails the command in [`Shell::finish`], so that incomplete
/// output isn't mistaken for complete output. A closed pipe (e.g. by `head`) is not a failure.
pub struct Shell {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    color: bool,
    verbosity: Verbosity,
    interactive: bool,
    /// Whether a CI system runs the command.
    in_pipeline: bool,
    /// Whether messages go to standard output and everything else to standard error.
    for_messages: bool,
    /// Whether messages are lines of JSON.
    json: bool,
    /// Whether messages are JSON or SARIF for other programs.
    has_data_messages: bool,
    /// Whether standard output and standard error are terminals, which would interpret control
    /// sequences.
    terminals: (bool, bool),
    lost: Option<String>,
    /// Base of the paths in messages, if it isn't the project.
    viewpoint: Option<Viewpoint>,
    /// Whether a line of progress is shown on the terminal.
    has_progress: bool,
}

/// Moves to the start of the terminal's line and erases it.
const ERASE: &str = "\r\x1b[K";

/// When to use color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// On terminals, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much a command prints in addition to its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Only errors and warnings.
    Quiet,
    /// Also actions of the command, and next steps.
    Normal,
    /// Also unchanged files, and calls of other programs.
    Verbose,
}

impl Shell {
    /// Creates a shell for standard output and standard error. Color is only used on a terminal,
    /// unless `CLICOLOR_FORCE`, `CLICOLOR` or `NO_COLOR` override this.
    pub fn standard() -> Shell {
        // Set by CI systems, some of which provide a terminal although nobody can answer.
        let in_pipeline = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        let terminals = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        Shell {
            color: wants_color(&|name| std::env::var_os(name), terminals.0 && terminals.1),
            verbosity: Verbosity::Normal,
            interactive: !in_pipeline && std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
            in_pipeline,
            out: standard_output(),
            err: standard_error(),
            for_messages: false,
            json: false,
            has_data_messages: false,
            terminals,
            lost: None,
            viewpoint: None,
            has_progress: false,
        }
    }

    /// Creates a shell for tests, without color and questions.
    pub fn to(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Shell {
        Shell {
            out,
            err,
            color: false,
            verbosity: Verbosity::Normal,
            interactive: false,
            in_pipeline: false,
            for_messages: false,
            json: false,
            has_data_messages: false,
            terminals: (false, false),
            lost: None,
            viewpoint: None,
            has_progress: false,
        }
    }

    /// Whether to use color.
    pub fn color(&self) -> bool {
        self.color
    }

    pub(crate) fn set_color(&mut self, color: Color) {
        self.color = match color {
            Color::Auto => self.color,
            Color::Always => true,
            Color::Never => false,
        };
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    pub(crate) fn set_verbosity(&mut self, verbosity: Verbosity) {
        self.verbosity = verbosity;
    }

    /// Switches to messages as JSON. With `on_output`, they go to standard output and the result
    /// goes to standard error.
    pub fn speak_json(&mut self, on_output: bool) {
        self.json = true;
        self.has_data_messages = true;
        self.for_messages = on_output;
    }

    /// Switches to diagnostics as a single log, with paths relative to the project. With
    /// `on_output`, the log goes to standard output and everything else to standard error.
    pub fn speak_sarif(&mut self, on_output: bool) {
        self.viewpoint = None;
        self.has_data_messages = true;
        self.for_messages = on_output;
    }

    /// Makes paths relative to a subdirectory from now on, except in JSON and in results.
    pub(crate) fn set_viewpoint(&mut self, viewpoint: Option<Viewpoint>) {
        self.viewpoint = viewpoint;
    }

    /// Prints diagnostics about the source, which may have colors.
    pub fn message(&mut self, text: &str) {
        let form = match self.has_data_messages {
            true => Form::Verbatim,
            false => Form::Painted,
        };
        let text = self.relative(text);
        self.write(self.for_messages, form, &text);
    }

    /// Prints the result of the command verbatim.
    pub fn out(&mut self, text: &str) {
        self.write(!self.for_messages, Form::Verbatim, text);
    }

    /// Prints the result of the command, if it is text for people.
    pub(crate) fn report(&mut self, text: &str) {
        let text = self.relative(text);
        self.write(!self.for_messages, Form::Plain, &text);
    }

    /// Prints a note to standard error, unless in quiet mode.
    pub fn note(&mut self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.note_always(text);
        }
    }

    /// Like [`note`](Shell::note), but only in verbose mode.
    pub(crate) fn detail(&mut self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.note_always(text);
        }
    }

    /// Shows a line on the terminal until the next output replaces it. Returns false if it is not
    /// shown, i.e. in quiet mode or if standard error isn't a terminal.
    pub(crate) fn show_progress(&mut self, text: &str) -> bool {
        if !self.terminals.1 || self.verbosity == Verbosity::Quiet {
            return false;
        }
        let _ = write!(self.err, "{ERASE}{}", harmless(text, false)).and_then(|()| self.err.flush());
        self.has_progress = true;
        true
    }

    /// Prints errors, warnings and questions to standard error, even in quiet mode.
    pub(crate) fn note_always(&mut self, text: &str) {
        let text = self.relative(text);
        self.write(false, Form::Plain, &text);
    }

    /// Like [`note_always`](Shell::note_always), for text with colors.
    pub(crate) fn note_painted(&mut self, text: &str) {
        let text = self.relative(text);
        self.write(false, Form::Painted, &text);
    }

    /// Prints the changes of a command, one line per file.
    pub(crate) fn summary(&mut self, plan: &Plan, is_result: bool) {
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        let viewpoint = self.viewpoint.as_ref();
        let show = |path: &str| viewpoint.map_or_else(|| path.to_owned(), |from| from.show_path(path));
        let mut text = render_summary(plan, &show);
        if self.verbosity == Verbosity::Verbose && !plan.is_empty() {
            text.extend(
                plan.unchanged()
                    .map(|path| format!("{:>9} {}\n", "unchanged", show(path))),
            );
        }
        self.write(is_result && !self.for_messages, Form::Plain, &text);
    }

    /// Rewrites the paths in a message to paths that the user can open.
    fn relative<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.viewpoint {
            Some(viewpoint) if !self.json => Cow::Owned(viewpoint.show_message(text)),
            _ => Cow::Borrowed(text),
        }
    }

    /// Prints a warning without a source location.
    pub fn warning(&mut self, text: &str) {
        if self.json {
            return self.message(&report::message_to_json_line("warning", text));
        }
        let word = self.paint("1;33", "warning");
        self.note_painted(&format!("{word}: {}\n", harmless(text, false)));
    }

    /// Prints an error with its causes.
    pub fn error(&mut self, error: &anyhow::Error) {
        let text = format!("{error:#}");
        if self.json {
            return self.message(&report::message_to_json_line("error", &text));
        }
        let word = self.paint("1;31", "error");
        self.note_painted(&format!("{word}: {}\n", harmless(&text, false)));
    }

    /// Returns the final exit code, which is never 0 after a failed write.
    pub fn finish(&mut self, code: u8) -> u8 {
        let Some(lost) = self.lost.take() else {
            return code;
        };
        self.error(&anyhow::anyhow!(lost));
        code.max(1)
    }

    fn write(&mut self, to_output: bool, form: Form, text: &str) {
        if std::mem::take(&mut self.has_progress) {
            let _ = self.err.write_all(ERASE.as_bytes());
        }
        let (stream, name, is_terminal) = if to_output {
            (&mut self.out, "standard output", self.terminals.0)
        } else {
            (&mut self.err, "standard error", self.terminals.1)
        };
        let text = match form {
            Form::Plain => without_commands(harmless(text, false)),
            Form::Painted => without_commands(harmless(text, self.color)),
            Form::Verbatim if is_terminal => harmless(text, self.color),
            Form::Verbatim => Cow::Borrowed(text),
        };
        match stream.write_all(text.as_bytes()).and_then(|()| stream.flush()) {
            Ok(()) => {}
            // The reader closed the pipe, e.g. `head`.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => self.lost = Some(format!("cannot write to {name}: {error}")),
        }
    }

    /// Prints a unified diff, in color if enabled. In a log of CI, it is text for people; elsewhere,
    /// it may be the input of `patch`.
    pub fn diff(&mut self, diff: &str) {
        if !self.color {
            let form = match self.in_pipeline {
                true => Form::Plain,
                false => Form::Verbatim,
            };
            return self.write(!self.for_messages, form, diff);
        }
        let painted: String = diff
            .split_inclusive('\n')
            .map(|line| {
                let code = match line.as_bytes() {
                    [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "1",
                    [b'+', ..] => "32",
                    [b'-', ..] => "31",
                    [b'@', ..] => "36",
                    _ => return harmless(line, false).into_owned(),
                };
                let (content, end) = line
                    .strip_suffix('\n')
                    .map_or((line, ""), |content| (content, "\n"));
                format!("{}{end}", self.paint(code, &harmless(content, false)))
            })
            .collect();
        self.write(!self.for_messages, Form::Painted, &painted);
    }

    /// Asks a yes/no question. Returns `default` if nobody can answer.
    pub fn confirm(&mut self, question: &str, default: bool) -> bool {
        if !self.interactive {
            return default;
        }
        loop {
            self.note_always(&format!("{question} [{}] ", if default { "Y/n" } else { "y/N" }));
            let mut answer = String::new();
            if !matches!(std::io::stdin().read_line(&mut answer), Ok(1..)) {
                return default;
            }
            match answer.trim().to_lowercase().as_str() {
                "" => return default,
                "y" | "yes" => return true,
                "n" | "no" => return false,
                _ => self.note_always("Please answer yes or no.\n"),
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

/// What a text consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Text for people, without colors.
    Plain,
    /// Text for people that may have colors.
    Painted,
    /// Data for programs. On a terminal, it is shown like [`Form::Painted`].
    Verbatim,
}

/// Escapes control characters and invisible ones, except for colors if `has_color`. Otherwise, names
/// and source files in a repository could clear the screen, write to the clipboard, or hide and
/// reorder text. Text for files and pipes is escaped, too: terminals show it later.
pub(crate) fn harmless(text: &str, has_color: bool) -> Cow<'_, str> {
    let acts = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(
                c,
                '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            )
            || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
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
            Some(length) if has_color && is_visible(&rest[..length]) => {
                shown.push_str(&rest[..length]);
                length
            }
            // Drop the carriage return of a line ending.
            _ if rest.starts_with("\r\n") => 1,
            _ => {
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

/// Whether a color sequence leaves text visible, i.e. only sets one of the colors of our messages.
/// Others conceal text (8), or have the color of a background.
fn is_visible(sequence: &str) -> bool {
    let parameters = sequence.trim_start_matches("\x1b[").trim_end_matches('m');
    let is_known = |parameter: &str| match parameter.parse() {
        Ok(number) => matches!(number, 0_u8 | 1 | 4 | 31..=36 | 91..=96),
        Err(_) => parameter.is_empty(),
    };
    parameters.split(';').all(is_known)
}

/// Escapes what runners of CI pipelines take for commands in a log: `::add-mask::` at the start of a
/// line, and `##[…]` or `##vso[…]` anywhere.
fn without_commands(text: Cow<'_, str>) -> Cow<'_, str> {
    const ANYWHERE: [&str; 3] = ["##[", "##vso[", "##teamcity["];
    let starts = |line: &str| line.trim_start().starts_with("::");
    if !text.lines().any(starts) && !ANYWHERE.iter().any(|start| text.contains(start)) {
        return text;
    }
    let escape = |line: &str| match starts(line) {
        true => line.replacen(':', "\\u{3a}", 1),
        false => line.to_owned(),
    };
    let mut shown: String = text.split_inclusive('\n').map(escape).collect();
    for start in ANYWHERE {
        shown = shown.replace(start, &start.replacen('#', "\\u{23}", 1));
    }
    Cow::Owned(shown)
}

/// Follows the usual environment variables: `NO_COLOR` disables color, `CLICOLOR_FORCE` enables it
/// even for files and pipes, and `CLICOLOR=0` disables it on terminals.
fn wants_color(variable: &dyn Fn(&str) -> Option<OsString>, on_terminals: bool) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty() && value != "0");
    if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return false;
    }
    let refused = variable("CLICOLOR").is_some_and(|value| value == "0");
    is_set("CLICOLOR_FORCE") || (on_terminals && !refused && shows_color(variable("TERM").as_deref()))
}

/// As in other programs, an unset type means no color.
fn shows_color(terminal: Option<&OsStr>) -> bool {
    match terminal {
        Some(terminal) => terminal != "dumb" && !terminal.is_empty(),
        None => cfg!(windows),
    }
}

/// Opens standard output as a file, because std's own stream ignores errors if the stream is closed
/// or read-only.
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
    fn escapes_control_characters_on_terminals() {
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
            ("a\u{200b}b", "a\\u{200b}b"),
            // These conceal text, or print it in the color of a background.
            ("\x1b[8mx\x1b[m", "\\u{1b}[8mx\x1b[m"),
            ("\x1b[1;30mx", "\\u{1b}[1;30mx"),
            ("\x1b[38;5;0mx", "\\u{1b}[38;5;0mx"),
        ] {
            assert_eq!(harmless(text, true), expected, "{text:?}");
        }
        assert_eq!(
            harmless("\x1b[1;31mred\x1b[0m", false),
            "\\u{1b}[1;31mred\\u{1b}[0m"
        );
    }

    #[test]
    fn escapes_commands_of_runners() {
        for (text, expected) in [
            ("a::b\nsrc/lib.rs::c\n", "a::b\nsrc/lib.rs::c\n"),
            ("::add-mask::x\n", "\\u{3a}:add-mask::x\n"),
            ("a\n  ::set-env name=b::c\n", "a\n  \\u{3a}:set-env name=b::c\n"),
            (
                "a ##[add-mask]x ##vso[task]y",
                "a \\u{23}#[add-mask]x \\u{23}#vso[task]y",
            ),
            ("### API changes\n", "### API changes\n"),
        ] {
            assert_eq!(without_commands(Cow::Borrowed(text)), expected, "{text:?}");
        }
    }

    /// Collects what is printed.
    #[derive(Clone, Default)]
    struct Printed(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl Write for Printed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn messages_in_files_have_no_escapes_but_results_are_verbatim() {
        const TEXT: &str = "\x1b[8m\n::add-mask::x\n";
        const SHOWN: &str = "\\u{1b}[8m\n\\u{3a}:add-mask::x\n";
        let check = |print: &dyn Fn(&mut Shell), expected: &str| {
            let (out, err) = (Printed::default(), Printed::default());
            let mut shell = Shell::to(Box::new(out.clone()), Box::new(err.clone()));
            print(&mut shell);
            let printed = [out, err].map(|printed| printed.0.lock().expect("not poisoned").clone());
            assert_eq!(String::from_utf8(printed.concat()).expect("text"), expected);
        };
        check(&|shell| shell.message(TEXT), SHOWN);
        check(&|shell| shell.note(TEXT), SHOWN);
        check(&|shell| shell.report(TEXT), SHOWN);
        check(&|shell| shell.warning("\x1b[8m"), "warning: \\u{1b}[8m\n");
        check(&|shell| shell.out(TEXT), TEXT);
        check(&|shell| shell.diff(TEXT), TEXT);
        check(
            &|shell| {
                shell.in_pipeline = true;
                shell.diff(TEXT);
            },
            SHOWN,
        );
    }

    #[test]
    fn color_follows_environment_variables() {
        const XTERM: (&str, &str) = ("TERM", "xterm");
        for (variables, on_terminals, expected) in [
            (&[XTERM][..], true, true),
            (&[XTERM], false, false),
            (&[XTERM, ("NO_COLOR", "1")], true, false),
            (&[XTERM, ("NO_COLOR", "")], true, true),
            (&[XTERM, ("CLICOLOR", "0")], true, false),
            (&[XTERM, ("CLICOLOR", "1")], false, false),
            (&[("CLICOLOR_FORCE", "1")], false, true),
            (&[("CLICOLOR_FORCE", "0")], false, false),
            (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false, false),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(own, _)| *own == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(
                wants_color(&variable, on_terminals),
                expected,
                "{variables:?} {on_terminals}"
            );
        }
    }

    #[test]
    fn color_depends_on_the_terminal() {
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
