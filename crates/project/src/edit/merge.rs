//! Three-way merge of a scaffolded file: the text it was scaffolded with, the user's text, and the
//! new scaffold.
//!
//! Changes on both sides are merged unless they touch. Where they touch, the result contains both
//! between conflict markers. The user's line endings and byte order mark are kept. If the user's
//! text parses but the merged text doesn't, the entire file becomes a conflict: two changes that
//! don't touch can still close the same bracket twice.

use std::ops::Range;

use similar::{MergeRegion, MergeResolution, TextMerge};

use super::rust;

/// Names of the sides in conflict markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The scaffold that the file was created from, e.g. `rbuilder 0.1.0`.
    pub base: String,
    /// The new scaffold, e.g. `rbuilder 0.2.0`.
    pub theirs: String,
}

/// A change to a file that users add to, e.g. `main.rs`. The recorded text of such a file is of
/// little use as a merge base, so the base is derived from the current file.
#[derive(Clone, Debug)]
pub struct RebasedChange {
    /// The current file without the change, with the scaffolded text in the parts that the change
    /// covers.
    pub base: String,
    /// The base with the change.
    pub theirs: String,
    /// Text to record as last written.
    pub written: String,
}

const OURS: &str = "this project";
/// Prefixes of lines that only occur in conflict markers.
const MARKERS: [&str; 3] = ["<<<<<<< this project", "||||||| rbuilder ", ">>>>>>> rbuilder "];

/// A merged text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The text, with markers around conflicts.
    pub text: String,
    /// Lines where conflicts begin, counted from 1.
    pub conflicts: Vec<usize>,
}

impl Merged {
    fn clean(text: impl Into<String>) -> Merged {
        Merged {
            text: text.into(),
            conflicts: Vec::new(),
        }
    }
}

/// Merges the changes from `base` to `theirs` into `ours`. `base` is empty if both sides added the
/// file. The extension of `path` selects the parser that checks the result.
pub fn merge_scaffold(path: &str, (base, ours, theirs): (&str, &str, &str), labels: &Labels) -> Merged {
    let form = Form::of(ours);
    let (base, theirs) = (form.apply(base), form.apply(theirs));
    let terminated = form.terminate(ours);
    if base == theirs || terminated == theirs {
        return Merged::clean(ours);
    }
    let merge = TextMerge::from_lines(base.as_str(), terminated.as_str(), theirs.as_str());
    // Split lines the way the merge does, i.e. also at a lone carriage return.
    let sides = Sides {
        base: (0..merge.base_len())
            .filter_map(|line| merge.base_line(line))
            .collect(),
        ours: (0..merge.ours_len())
            .filter_map(|line| merge.ours_line(line))
            .collect(),
        theirs: (0..merge.theirs_len())
            .filter_map(|line| merge.theirs_line(line))
            .collect(),
    };
    let parts = merge.regions().iter().map(Part::from);
    let parts: Vec<Part> = parts.flat_map(|part| sides.resolve(path, part)).collect();
    let merged = sides.render(&parts, &form, labels);
    if !merged.conflicts.is_empty() {
        return merged;
    }
    let text = form.restore_end(merged.text);
    // Changes that don't touch can still conflict, e.g. close the same bracket twice.
    if parses(path, ours) && !parses(path, &text) {
        return sides.render(&[Part::Conflict(sides.whole())], &form, labels);
    }
    Merged::clean(text)
}

/// Returns the lines with conflict markers left by [`merge_scaffold`], counted from 1.
pub fn find_markers(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let marked = lines.filter(|(_, line)| MARKERS.iter().any(|marker| line.starts_with(marker)));
    marked.map(|(index, _)| index + 1).collect()
}

/// Line endings and byte order mark of the user's text. The other sides are converted before the
/// merge.
struct Form {
    has_mark: bool,
    is_windows: bool,
    /// Whether the last line isn't terminated.
    is_open: bool,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl Form {
    fn of(text: &str) -> Form {
        let windows = text.matches("\r\n").count();
        Form {
            has_mark: text.starts_with(BYTE_ORDER_MARK),
            is_windows: windows * 2 > text.matches('\n').count(),
            is_open: !text.is_empty() && !text.ends_with('\n'),
        }
    }

    fn end(&self) -> &'static str {
        if self.is_windows { "\r\n" } else { "\n" }
    }

    fn apply(&self, text: &str) -> String {
        let mark = if self.has_mark && !text.is_empty() {
            BYTE_ORDER_MARK.to_string()
        } else {
            String::new()
        };
        mark + &text.replace('\n', self.end())
    }

    fn terminate(&self, text: &str) -> String {
        let end = if self.is_open { self.end() } else { "" };
        format!("{text}{end}")
    }

    fn restore_end(&self, text: String) -> String {
        match text.strip_suffix(self.end()) {
            Some(open) if self.is_open => open.to_owned(),
            _ => text,
        }
    }
}

struct Sides<'a> {
    base: Vec<&'a str>,
    ours: Vec<&'a str>,
    theirs: Vec<&'a str>,
}

struct Conflict {
    base: Range<usize>,
    ours: Range<usize>,
    theirs: Range<usize>,
}

enum Part {
    Ours(Range<usize>),
    Theirs(Range<usize>),
    Conflict(Conflict),
}

impl From<&MergeRegion> for Part {
    fn from(region: &MergeRegion) -> Part {
        match region.resolution() {
            MergeResolution::Theirs => Part::Theirs(region.theirs_range()),
            MergeResolution::Conflict => Part::Conflict(Conflict {
                base: region.base_range(),
                ours: region.ours_range(),
                theirs: region.theirs_range(),
            }),
            _ => Part::Ours(region.ours_range()),
        }
    }
}

impl Sides<'_> {
    fn whole(&self) -> Conflict {
        Conflict {
            base: 0..self.base.len(),
            ours: 0..self.ours.len(),
            theirs: 0..self.theirs.len(),
        }
    }

    /// Replaces a conflict by the lines to keep if its changes do not depend on each other in this
    /// kind of file.
    fn resolve(&self, path: &str, part: Part) -> Vec<Part> {
        let Part::Conflict(conflict) = part else {
            return vec![part];
        };
        let is = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
        let is_independent = is(&[".yaml", ".yml", ".toml"]) && self.is_comment_above(&conflict)
            || is(&[".rs"]) && self.adds_permissions(&conflict);
        if is_independent {
            return vec![Part::Theirs(conflict.theirs), Part::Ours(conflict.ours)];
        }
        let values = is(&[".yaml", ".yml"]).then(|| self.values_beside_lines(&conflict));
        values.flatten().unwrap_or_else(|| vec![Part::Conflict(conflict)])
    }

    /// Whether both sides only added `#[rbac(…)]` markers, whose order does not matter.
    fn adds_permissions(&self, conflict: &Conflict) -> bool {
        let ours = rust::read_permissions(&self.ours[conflict.ours.clone()].concat());
        let theirs = rust::read_permissions(&self.theirs[conflict.theirs.clone()].concat());
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            return false;
        };
        conflict.base.is_empty() && !ours.iter().any(|marker| theirs.contains(marker))
    }

    /// Resolves a conflict in which the scaffold only changed values, and the user only added lines
    /// before or after them:
    ///
    /// ```text
    /// base         ours          theirs       result
    /// labels:      labels:       labels:      labels:
    ///   name: a      name: a       name: b      name: b
    ///                team: x                    team: x
    /// ```
    fn values_beside_lines(&self, conflict: &Conflict) -> Option<Vec<Part>> {
        let key = |line: &&str| line.split_inclusive(':').next().map(str::to_owned);
        let (base, ours) = (
            &self.base[conflict.base.clone()],
            &self.ours[conflict.ours.clone()],
        );
        let theirs = &self.theirs[conflict.theirs.clone()];
        let keys = |lines: &[&str]| lines.iter().map(key).collect::<Vec<_>>();
        if base.is_empty() || keys(base) != keys(theirs) {
            return None;
        }
        let at = ours.windows(base.len()).position(|lines| lines == base)?;
        let Range { start, end } = conflict.ours;
        Some(vec![
            Part::Ours(start..start + at),
            Part::Theirs(conflict.theirs.clone()),
            Part::Ours(start + at + base.len()..end),
        ])
    }

    /// Whether the user only added comments where the scaffold adds lines. A comment belongs to the
    /// line below it, so the new lines must go above the comment:
    ///
    /// ```text
    /// base         ours          theirs       result
    /// entries:     entries:      entries:     entries:
    /// - a          # current     - b          - b
    ///              - a           - a          # current
    ///                                         - a
    /// ```
    fn is_comment_above(&self, conflict: &Conflict) -> bool {
        let is_comment = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
        conflict.base.is_empty() && self.ours[conflict.ours.clone()].iter().all(is_comment)
    }

    fn render(&self, parts: &[Part], form: &Form, labels: &Labels) -> Merged {
        let mut text = String::new();
        let mut conflicts = Vec::new();
        for part in parts {
            match part {
                Part::Ours(range) => text.push_str(&self.ours[range.clone()].concat()),
                Part::Theirs(range) => text.push_str(&self.theirs[range.clone()].concat()),
                Part::Conflict(conflict) => {
                    let (before, after) = self.common_lines(conflict);
                    let Range { start, end } = conflict.ours;
                    text.push_str(&self.ours[start..start + before].concat());
                    conflicts.push(text.matches('\n').count() + 1);
                    let marked = [
                        (format!("<<<<<<< {OURS}"), &self.ours[start + before..end - after]),
                        (
                            format!("||||||| {}", labels.base),
                            &self.base[conflict.base.clone()],
                        ),
                        (
                            "=======".to_owned(),
                            &self.theirs[conflict.theirs.start + before..conflict.theirs.end - after],
                        ),
                        (format!(">>>>>>> {}", labels.theirs), &[]),
                    ];
                    for (marker, lines) in marked {
                        text.push_str(&marker);
                        text.push_str(form.end());
                        text.push_str(&lines.concat());
                    }
                    text.push_str(&self.ours[end - after..end].concat());
                }
            }
        }
        Merged { text, conflicts }
    }

    /// Counts the lines at the beginning and end of a conflict that are equal on both sides and
    /// need no markers.
    fn common_lines(&self, conflict: &Conflict) -> (usize, usize) {
        let ours = &self.ours[conflict.ours.clone()];
        let theirs = &self.theirs[conflict.theirs.clone()];
        let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
        let before = ours.iter().zip(theirs).take_while(same).count();
        let rest = (ours[before..].iter().rev()).zip(theirs[before..].iter().rev());
        (before, rest.take_while(same).count())
    }
}

/// Whether a file parses. Unknown formats always do.
fn parses(path: &str, text: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "rs" => rust::parse_file(text).is_ok(),
        "toml" => text.parse::<toml_edit::DocumentMut>().is_ok(),
        "json" => serde_json::from_str::<serde_json::Value>(text).is_ok(),
        "yaml" | "yml" => rbuilder_yaml::parse_values(text).is_ok(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        Labels {
            base: "rbuilder 0.1.0".into(),
            theirs: "rbuilder 0.2.0".into(),
        }
    }

    #[track_caller]
    fn check(path: &str, sides: (&str, &str, &str), expected: &str, conflicts: &[usize]) {
        let merged = merge_scaffold(path, sides, &labels());
        assert_eq!(merged.text, expected, "{sides:?}");
        assert_eq!(merged.conflicts, conflicts, "{sides:?}");
        assert_eq!(find_markers(expected).is_empty(), conflicts.is_empty());
    }

    #[test]
    fn changes_apart_are_merged() {
        let base = "a\nb\nc\nd\ne\n";
        for (ours, theirs, expected) in [
            (base, base, base),
            (base, "A\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n"),
            ("A\nb\nc\nd\ne\n", base, "A\nb\nc\nd\ne\n"),
            ("A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n"),
            ("A\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n"),
            ("b\nc\nd\ne\n", "a\nb\nc\nd\ne\nf\n", "b\nc\nd\ne\nf\n"),
            // The user's text does not end in a newline.
            ("A\nb\nc\nd\ne", "a\nb\nC\nd\ne\n", "A\nb\nC\nd\ne"),
            ("a\nb\nc\nd\ne", "a\nb\nc\nd\nE\n", "a\nb\nc\nd\nE"),
            // Windows line endings, a byte order mark, and a single line with another ending.
            (
                "A\r\nb\r\nc\r\nd\r\ne\r\n",
                "a\nb\nc\nd\nE\n",
                "A\r\nb\r\nc\r\nd\r\nE\r\n",
            ),
            (
                "\u{feff}a\nb\nc\nd\ne\n",
                "A\nb\nc\nd\ne\n",
                "\u{feff}A\nb\nc\nd\ne\n",
            ),
            ("a\nb\r\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "a\nb\r\nc\nd\nE\n"),
            // Both sides make the same change, and one makes another.
            (
                "a\nx\nb\nc\nd\ne\nf\n",
                "a\nx\nb\nc\nD\ne\n",
                "a\nx\nb\nc\nD\ne\nf\n",
            ),
        ] {
            check("Makefile", (base, ours, theirs), expected, &[]);
        }
    }

    #[test]
    fn touching_changes_conflict() {
        check(
            "Makefile",
            ("a\nb\nc\n", "a\nours\nc\n", "a\ntheirs\nc\n"),
            "a\n<<<<<<< this project\nours\n||||||| rbuilder 0.1.0\nb\n=======\ntheirs\n>>>>>>> rbuilder 0.2.0\nc\n",
            &[2],
        );
        // Adjacent changes, also with Windows line endings.
        check(
            "Makefile",
            ("a\nb\n", "A\r\nb\r\n", "a\nB\n"),
            "<<<<<<< this project\r\nA\r\nb\r\n||||||| rbuilder 0.1.0\r\na\r\nb\r\n=======\r\na\r\nB\r\n>>>>>>> rbuilder 0.2.0\r\n",
            &[1],
        );
        // Both sides added the file: equal lines at its beginning and end need no markers.
        check(
            "Makefile",
            ("", "x\n1\ny", "x\n2\ny\n"),
            "x\n<<<<<<< this project\n1\n||||||| rbuilder 0.1.0\n=======\n2\n>>>>>>> rbuilder 0.2.0\ny\n",
            &[2],
        );
        check("Makefile", ("", "same\n", "same\n"), "same\n", &[]);
        // One side removes what the other changes, twice in a file.
        check(
            "Makefile",
            ("a\nb\nc\nd\ne\n", "b\nc\nd\nE\n", "A\nb\nc\nd\n"),
            "<<<<<<< this project\n||||||| rbuilder 0.1.0\na\n=======\nA\n>>>>>>> rbuilder 0.2.0\nb\nc\nd\n\
             <<<<<<< this project\nE\n||||||| rbuilder 0.1.0\ne\n=======\n>>>>>>> rbuilder 0.2.0\n",
            &[1, 10],
        );
    }

    #[test]
    fn comment_stays_above_its_line() {
        let (base, theirs) = ("list:\n- a\n", "list:\n- b\n- a\n");
        let ours = "list:\n# First.\n\n- a\n";
        check(
            "x.yaml",
            (base, ours, theirs),
            "list:\n- b\n# First.\n\n- a\n",
            &[],
        );
        let added = "list:\n<<<<<<< this project\n- c\n||||||| rbuilder 0.1.0\n=======\n- b\n>>>>>>> rbuilder 0.2.0\n- a\n";
        check("x.yaml", (base, "list:\n- c\n- a\n", theirs), added, &[2]);
    }

    #[test]
    fn values_change_beside_added_lines() {
        let (base, theirs) = ("labels:\n  name: a\n", "labels:\n  name: b\n");
        check(
            "x.yaml",
            (base, "labels:\n  name: a\n  team: x\n", theirs),
            "labels:\n  name: b\n  team: x\n",
            &[],
        );
        check(
            "x.yaml",
            (base, "labels:\n  # Ours.\n  name: a\n", theirs),
            "labels:\n  # Ours.\n  name: b\n",
            &[],
        );
        // The user changed the value, too, or the scaffold renamed the key.
        for (ours, theirs) in [
            ("labels:\n  name: c\n  team: x\n", theirs),
            ("labels:\n  name: a\n  team: x\n", "labels:\n  title: a\n"),
        ] {
            let merged = merge_scaffold("x.yaml", (base, ours, theirs), &labels());
            assert_eq!(merged.conflicts.len(), 1, "{}", merged.text);
        }
    }

    #[test]
    fn permissions_of_both_sides_are_kept() {
        let rule =
            |resource: &str| format!("#[rbac(groups = \"\", resources = \"{resource}\", verbs = \"get\")]\n");
        let with = |markers: &[&str]| format!("{}fn reconcile() {{}}\n", markers.concat());
        let (pods, nodes) = (rule("pods"), rule("nodes"));
        let theirs = format!("// Nodes have no namespace.\n{nodes}");
        check(
            "src/a.rs",
            (&with(&[]), &with(&[&pods]), &with(&[&theirs])),
            &with(&[&theirs, &pods]),
            &[],
        );
        for ours in [&with(&[&nodes]), &with(&["#[allow(dead_code)]\n"])] {
            let merged = merge_scaffold("src/a.rs", (&with(&[]), ours, &with(&[&theirs])), &labels());
            assert_eq!(merged.conflicts.len(), 1, "{}", merged.text);
        }
    }

    #[test]
    fn repeated_lines_are_told_apart_by_context() {
        let base = "fn a() {\n    1;\n}\n\nfn b() {\n    2;\n}\n\nfn c() {\n    3;\n}\n";
        let ours = base.replace("fn b() {\n    2;\n}\n\n", "");
        let theirs = base.replace("    3;\n}\n", "    3;\n}\n\nfn d() {\n    4;\n}\n");
        let expected = "fn a() {\n    1;\n}\n\nfn c() {\n    3;\n}\n\nfn d() {\n    4;\n}\n";
        check("src/a.rs", (base, &ours, &theirs), expected, &[]);
    }

    #[test]
    fn unparsable_merge_is_a_conflict() {
        let base = "[a]\nx = 1\n\n[b]\ny = 1\n";
        let ours = "[a]\nx = 1\nz = 2\n\n[b]\ny = 1\n";
        let theirs = "z = 1\n[a]\nx = 1\n\n[b]\ny = 1\n\n[a.z]\n";
        let merged = merge_scaffold("Cargo.toml", (base, ours, theirs), &labels());
        assert_eq!(merged.conflicts.len(), 1, "{}", merged.text);
        for line in ours.lines().chain(theirs.lines()) {
            assert!(merged.text.contains(line), "{}", merged.text);
        }
        // A text that didn't parse before the merge is merged anyway.
        let broken = format!("{ours}]\n");
        let merged = merge_scaffold("Cargo.toml", (base, &broken, theirs), &labels());
        assert!(merged.conflicts.len() <= 1 && merged.text.contains("z = 2"));
    }
}
