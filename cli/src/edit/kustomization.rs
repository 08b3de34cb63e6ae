//! The lists of a kustomization file: `resources:`, `components:`.
//!
//! YAML has many ways to write a list; the ones people use in these files are known here by structure: a block
//! list, a flow list on one or more lines, an empty value, no key at all. Comments, order and line ends stay.

/// The list that most edits are about.
const RESOURCES: &str = "resources";

/// Adds an entry to `resources`; the same text when it is there.
///
/// # Errors
/// Says what about `resources` is not understood.
pub fn add(text: &str, entry: &str) -> Result<String, String> {
    add_to(text, RESOURCES, entry)
}

/// Adds an entry to `components`; the same text when it is there.
///
/// # Errors
/// Says what about `components` is not understood.
pub fn add_component(text: &str, entry: &str) -> Result<String, String> {
    add_to(text, "components", entry)
}

fn add_to(text: &str, key: &str, entry: &str) -> Result<String, String> {
    let list = find(text, key)?;
    if list.entries.iter().any(|known| known.name == entry) {
        return Ok(text.to_owned());
    }
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let (at, addition) = match &list.form {
        Form::Missing => {
            let gap = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                end
            };
            (text.len()..text.len(), format!("{gap}{key}:{end}- {entry}{end}"))
        }
        Form::Empty(value, after) => {
            let gap = if text[..after.start].ends_with('\n') {
                ""
            } else {
                end
            };
            let mut edited = text.to_owned();
            edited.insert_str(after.start, &format!("{gap}- {entry}{end}"));
            edited.replace_range(value.clone(), "");
            return verified(edited, key, entry);
        }
        Form::Flow(close) => (
            *close..*close,
            if list.trailing_comma {
                format!(" {entry}")
            } else {
                format!(", {entry}")
            },
        ),
        Form::Block(indent, after) => {
            let gap = if text[..*after].ends_with('\n') { "" } else { end };
            (*after..*after, format!("{gap}{indent}- {entry}{end}"))
        }
    };
    let mut edited = text.to_owned();
    edited.replace_range(at, &addition);
    verified(edited, key, entry)
}

/// Removes an entry of a block list; the same text when it is not there.
///
/// # Errors
/// Says what about `resources` is not understood.
pub fn remove(text: &str, entry: &str) -> Result<String, String> {
    let list = find(text, RESOURCES)?;
    let Some(known) = list.entries.iter().find(|known| known.name == entry) else {
        return Ok(text.to_owned());
    };
    let Form::Block(..) = list.form else {
        return Err("`resources` is a list in brackets".into());
    };
    let mut edited = text.to_owned();
    edited.replace_range(known.line.clone(), "");
    if list.entries.len() == 1 {
        // A key without a value is null, which kustomize refuses less clearly than an empty list.
        edited.insert_str(list.key_end, " []");
    }
    Ok(edited)
}

struct List {
    form: Form,
    entries: Vec<Entry>,
    trailing_comma: bool,
    /// Just after the key's colon.
    key_end: usize,
}

struct Entry {
    name: String,
    line: std::ops::Range<usize>,
}

enum Form {
    /// There is no such key.
    Missing,
    /// `key:`, `key: []`, `key: null`: what to remove, and where the next line begins.
    Empty(std::ops::Range<usize>, std::ops::Range<usize>),
    /// `key: [a, b]`: where the closing bracket is.
    Flow(usize),
    /// One line an entry: how far they are indented, and where the last one ends.
    Block(String, usize),
}

fn find(text: &str, key: &str) -> Result<List, String> {
    let head = format!("{key}:");
    let Some((start, line)) = lines(text).find(|(_, line)| line.starts_with(&head)) else {
        return if serde_saphyr::from_str::<serde_json::Value>(text).is_ok() {
            Ok(List {
                form: Form::Missing,
                entries: Vec::new(),
                trailing_comma: false,
                key_end: text.len(),
            })
        } else {
            Err("it is not well-formed YAML".into())
        };
    };
    let key_end = start + head.len();
    let value = without_comment(&line[head.len()..]).trim_end();
    let next = start + line.len();
    match value.trim() {
        "" => Ok(block(text, key_end, next)),
        "[]" | "null" | "~" => Ok(List {
            form: Form::Empty(key_end..key_end + value.len(), next..next),
            entries: Vec::new(),
            trailing_comma: false,
            key_end,
        }),
        value if value.starts_with('[') => flow(text, key, key_end),
        _ => Err(format!("`{key}` is not a list")),
    }
}

fn block(text: &str, key_end: usize, first: usize) -> List {
    let form = Form::Empty(key_end..key_end, first..first);
    let mut list = List {
        form,
        entries: Vec::new(),
        trailing_comma: false,
        key_end,
    };
    let mut indent = None;
    let (mut end, mut comments) = (first, first);
    for (at, line) in lines(&text[first..]) {
        let (start, next) = (first + at, first + at + line.len());
        let content = line.trim();
        if content.starts_with('#') && !content.contains("+kubebuilder:scaffold") && comments == start {
            comments = next;
        }
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let Some(item) = content
            .strip_prefix('-')
            .filter(|item| item.is_empty() || item.starts_with(' '))
        else {
            // The comments belong to what follows the list.
            comments = end;
            break;
        };
        indent = Some(&line[..line.len() - line.trim_start().len()]);
        list.entries.push(Entry {
            name: plain(item),
            line: start..next,
        });
        (end, comments) = (next, next);
    }
    if let Some(indent) = indent {
        // A comment that ends the file is a heading for what comes.
        list.form = Form::Block(indent.to_owned(), comments);
    }
    list
}

fn flow(text: &str, key: &str, key_end: usize) -> Result<List, String> {
    let open = key_end
        + text[key_end..]
            .find('[')
            .ok_or_else(|| format!("`{key}` is not a list"))?;
    let close = open
        + text[open..]
            .find(']')
            .ok_or_else(|| format!("the list `{key}` is not closed"))?;
    let inner = &text[open + 1..close];
    if inner.contains(['#', '{', '[']) {
        return Err(format!(
            "`{key}` is a list in brackets with more than names in it"
        ));
    }
    let entries: Vec<Entry> = inner
        .split(',')
        .map(plain)
        .filter(|name| !name.is_empty())
        .map(|name| Entry {
            name,
            line: open..close,
        })
        .collect();
    let content = inner.trim_end();
    if entries.is_empty() {
        let line_end = text[close..].find('\n').map_or(text.len(), |at| close + at + 1);
        return Ok(List {
            form: Form::Empty(key_end..close + 1, line_end..line_end),
            entries,
            trailing_comma: false,
            key_end,
        });
    }
    Ok(List {
        form: Form::Flow(open + 1 + content.len()),
        entries,
        trailing_comma: content.ends_with(','),
        key_end,
    })
}

/// Lines with their ends and where they begin.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

fn without_comment(text: &str) -> &str {
    text.find(" #").map_or(text, |at| &text[..at])
}

/// A path as it is meant: without comment, blanks, quotes and a leading `./`.
fn plain(text: &str) -> String {
    let text = without_comment(text).trim().trim_matches(['"', '\'']);
    text.strip_prefix("./").unwrap_or(text).to_owned()
}

/// The edited text, unless the list did not become what was meant: a file can be written in ways not known here.
fn verified(edited: String, key: &str, entry: &str) -> Result<String, String> {
    let read = serde_saphyr::from_str::<serde_json::Value>(&edited);
    let listed = read.is_ok_and(|file| {
        let list = file[key].as_array();
        list.is_some_and(|list| list.iter().any(|name| name == entry))
    });
    if listed {
        Ok(edited)
    } else {
        Err(format!("`{key}` is written in an unusual way"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, after: &str) {
        let edited = add(before, "new.yaml").expect(before);
        assert_eq!(edited, after, "adding to\n{before}");
        assert_eq!(
            add(&edited, "new.yaml").expect(after),
            after,
            "adding twice to\n{before}"
        );
        let list = serde_saphyr::from_str::<serde_json::Value>(&edited).expect("it is YAML");
        let names = list["resources"].as_array().expect("a list");
        assert!(names.iter().any(|name| name == "new.yaml"), "{edited}");
    }

    #[test]
    fn components_are_a_list_of_their_own() {
        let before = "resources:\n- a.yaml\n\ncomponents:\n- ../metrics\n# A heading.\n# - ../off\n";
        let after = "resources:\n- a.yaml\n\ncomponents:\n- ../metrics\n# A heading.\n# - ../off\n- ../new\n";
        assert_eq!(add_component(before, "../new").as_deref(), Ok(after));
        assert_eq!(add_component(after, "../new").as_deref(), Ok(after));
        assert_eq!(
            add_component("resources: []\n", "../new").as_deref(),
            Ok("resources: []\ncomponents:\n- ../new\n")
        );
    }

    #[test]
    fn an_entry_is_added_to_every_form() {
        check("resources:\n- a.yaml\n", "resources:\n- a.yaml\n- new.yaml\n");
        check(
            "resources:\n  - a.yaml # why\n  # more\n\npatches: []\n",
            "resources:\n  - a.yaml # why\n  - new.yaml\n  # more\n\npatches: []\n",
        );
        check("resources: []\n", "resources:\n- new.yaml\n");
        check(
            "resources: [] # none yet\nx: 1\n",
            "resources: # none yet\n- new.yaml\nx: 1\n",
        );
        check("resources: [ ]\n", "resources:\n- new.yaml\n");
        check("resources:\n", "resources:\n- new.yaml\n");
        check("resources: null\nx: 1\n", "resources:\n- new.yaml\nx: 1\n");
        check(
            "resources: [a.yaml, b.yaml]\n",
            "resources: [a.yaml, b.yaml, new.yaml]\n",
        );
        check(
            "resources: [\n  a.yaml,\n]\n",
            "resources: [\n  a.yaml, new.yaml\n]\n",
        );
        check(
            "kind: Kustomization",
            "kind: Kustomization\nresources:\n- new.yaml\n",
        );
        check("", "resources:\n- new.yaml\n");
        check(
            "a: 1\r\nresources:\r\n- a.yaml\r\nb: 1\r\n",
            "a: 1\r\nresources:\r\n- a.yaml\r\n- new.yaml\r\nb: 1\r\n",
        );
        check("resources:\n- a.yaml", "resources:\n- a.yaml\n- new.yaml\n");
        check(
            "resources:\n# - off.yaml\n",
            "resources:\n- new.yaml\n# - off.yaml\n",
        );
        check(
            "resources:\n- a.yaml\n# Heading.\n",
            "resources:\n- a.yaml\n# Heading.\n- new.yaml\n",
        );
        check(
            "resources:\n- a.yaml\n# +kubebuilder:scaffold:x\n",
            "resources:\n- a.yaml\n- new.yaml\n# +kubebuilder:scaffold:x\n",
        );
        check("resources:\n- \"new.yaml\"\n", "resources:\n- \"new.yaml\"\n");
        let listed = "resources:\n- ./new.yaml\n";
        assert_eq!(add(listed, "new.yaml").as_deref(), Ok(listed));
    }

    #[test]
    fn what_is_not_a_list_is_left_alone() {
        for text in [
            "resources: a.yaml\n",
            "resources: [a.yaml\n",
            "a: [\n",
            "resources: [{a: b}]\n",
            "\"resources\":\n- a.yaml\n",
            "{resources: [a.yaml]}\n",
        ] {
            assert!(add(text, "new.yaml").is_err(), "{text}");
        }
    }

    #[test]
    fn an_entry_is_removed() {
        for (before, after) in [
            (
                "resources:\n- a.yaml\n- old.yaml # x\n- b.yaml\n",
                "resources:\n- a.yaml\n- b.yaml\n",
            ),
            ("resources:\n- old.yaml\nx: 1\n", "resources: []\nx: 1\n"),
            ("resources:\n- a.yaml\n", "resources:\n- a.yaml\n"),
        ] {
            assert_eq!(remove(before, "old.yaml").expect(before), after);
        }
    }
}
