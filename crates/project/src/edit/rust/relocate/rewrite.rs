//! Determines the segments of a path that change when modules move.

use std::ops::Range;

use super::Obstruction;
use super::modules::{ModuleId, Modules};
use super::resolve::{Hop, How};

#[derive(Clone, Debug)]
pub(super) struct WrittenPath {
    pub(super) is_global: bool,
    pub(super) segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) name: String,
    pub(super) range: Range<usize>,
    /// End of the trailing `::`, if any.
    pub(super) end_of_colons: Option<usize>,
    /// Nesting depth in the braces of an import.
    pub(super) depth: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

impl WrittenPath {
    pub(super) fn names(&self) -> Vec<&str> {
        self.segments
            .iter()
            .map(|segment| segment.name.as_str())
            .collect()
    }

    pub(super) fn shown(&self) -> String {
        let start = if self.is_global { "::" } else { "" };
        format!("{start}{}", self.names().join("::"))
    }

    pub(super) fn start(&self) -> usize {
        self.segments.first().map_or(0, |segment| segment.range.start)
    }
}

pub(super) struct Rewrite<'r, 't> {
    pub(super) modules: &'r Modules<'t>,
    pub(super) module: ModuleId,
    pub(super) hops: &'r [Hop],
    pub(super) path: &'r WrittenPath,
}

impl Rewrite<'_, '_> {
    /// Computes the edits that keep the path pointing to the same modules. The error is a phrase
    /// about the path, since the caller knows the location.
    pub(super) fn edits(&self) -> Result<Vec<Edit>, String> {
        let mut edits = Vec::new();
        let Some(last) = self.hops.len().checked_sub(1) else {
            return Ok(edits);
        };
        if !self.is_kept_by_parents(last) {
            self.reach(last, &mut edits)?;
        }
        Ok(edits)
    }

    /// The absolute path after the move, starting at the crate.
    pub(super) fn absolute(&self) -> Option<String> {
        let last = self.hops.last()?;
        let target = self.modules.target(last.module)?;
        let module = |id: ModuleId| &self.modules.all[id];
        let is_other = module(last.module).is_library && !module(self.module).is_library;
        let root = if is_other { self.modules.library } else { "crate" };
        let rest = &self.path.names()[self.hops.len()..];
        let parts = [root].into_iter().chain(target.iter().map(String::as_str));
        Some(parts.chain(rest.iter().copied()).collect::<Vec<_>>().join("::"))
    }

    fn supers(&self) -> usize {
        let names = self.path.names();
        let start = usize::from(names.first() == Some(&"self"));
        let supers = names[start..].iter().take_while(|name| **name == "super");
        match supers.count() {
            0 => 0,
            count => start + count,
        }
    }

    /// Resolves the leading `super`s from the new location of this module.
    fn parent_after_move(&self) -> Option<Vec<String>> {
        let names = &self.path.names()[..self.supers()];
        let count = names.iter().filter(|name| **name == "super").count();
        let mut path = self.modules.target(self.module)?;
        let left = path.len().checked_sub(count)?;
        path.truncate(left);
        Some(path)
    }

    /// Whether a path that starts with `super` stays valid because both ends move together.
    fn is_kept_by_parents(&self, last: usize) -> bool {
        let supers = self.supers();
        let below = &self.hops[supers.min(self.hops.len())..];
        if supers == 0 || below.is_empty() || below.iter().any(|hop| hop.how != How::Child) {
            return false;
        }
        let Some(parent) = self.parent_after_move() else {
            return false;
        };
        let below = self.path.segments[supers..=last].iter();
        let reached = parent
            .into_iter()
            .chain(below.map(|segment| segment.name.clone()));
        self.modules.target(self.hops[last].module) == Some(reached.collect())
    }

    fn reach(&self, index: usize, edits: &mut Vec<Edit>) -> Result<(), String> {
        let hop = self.hops[index];
        let before = |edits: &mut Vec<Edit>| match index.checked_sub(1) {
            Some(before) => self.reach(before, edits),
            None => Ok(()),
        };
        match hop.how {
            How::Start => self.reach_start(index, edits),
            How::Import => {
                self.target(hop.module)?;
                before(edits)
            }
            How::Glob(globbed) => {
                let mut expected = self.target(globbed)?;
                expected.push(self.path.segments[index].name.clone());
                if self.target(hop.module)? != expected {
                    return Err(format!(
                        "resolves `{}` through a glob import, which will no longer import it",
                        self.path.segments[index].name
                    ));
                }
                before(edits)
            }
            How::Child => self.reach_child(index, edits),
        }
    }

    fn target(&self, module: ModuleId) -> Result<Vec<String>, String> {
        let gone = || {
            let path = self.modules.all[module].path.join("::");
            format!("names the module `{path}`, which will no longer exist")
        };
        self.modules.target(module).ok_or_else(gone)
    }

    fn reach_start(&self, index: usize, edits: &mut Vec<Edit>) -> Result<(), String> {
        let supers = self.supers();
        if supers == 0 || index + 1 > supers {
            return Ok(());
        }
        let target = self.target(self.hops[index].module)?;
        let here = self.target(self.module)?;
        // `parent_after_move` resolves all leading `super`s, so only the last one is comparable.
        if self.parent_after_move().as_ref() == Some(&target) && index + 1 == supers {
            return Ok(());
        }
        let text = match here.strip_prefix(target.as_slice()) {
            Some(below) if !below.is_empty() => vec!["super"; below.len()].join("::"),
            _ => [vec!["crate".to_owned()], target].concat().join("::"),
        };
        edits.push(Edit {
            start: self.path.segments[0].range.start,
            end: self.path.segments[index].range.end,
            text,
        });
        Ok(())
    }

    fn reach_child(&self, index: usize, edits: &mut Vec<Edit>) -> Result<(), String> {
        let target = self.target(self.hops[index].module)?;
        let is_library = |module: ModuleId| self.modules.all[module].is_library;
        let below = |module: ModuleId| -> Option<Vec<String>> {
            if is_library(module) != is_library(self.hops[index].module) {
                return None;
            }
            let above = self.modules.target(module)?;
            Some(target.strip_prefix(above.as_slice())?.to_vec())
        };
        // Start below the closest preceding module that still contains the target.
        let mut first = index;
        while self.hops[first].how == How::Child {
            let Some(before) = first.checked_sub(1) else {
                let tail = below(self.module).ok_or_else(|| self.is_elsewhere())?;
                return self.replace(0..index + 1, &tail, edits);
            };
            if let Some(tail) = below(self.hops[before].module) {
                self.replace(first..index + 1, &tail, edits)?;
                return self.reach(before, edits);
            }
            first = before;
        }
        Err(self.is_elsewhere())
    }

    fn is_elsewhere(&self) -> String {
        "will be in another module".to_owned()
    }

    fn replace(&self, run: Range<usize>, tail: &[String], edits: &mut Vec<Edit>) -> Result<(), String> {
        let segments = &self.path.segments[run];
        // Keep trailing segments that don't change.
        let kept = segments.iter().rev().zip(tail.iter().rev());
        let kept = kept.take_while(|(segment, name)| segment.name == **name).count();
        let removed = &segments[..segments.len() - kept];
        let mut added = tail[..tail.len() - kept].join("::");
        let Some((first, last)) = removed.first().zip(removed.last()) else {
            if let (Some(next), false) = (segments.first(), added.is_empty()) {
                added.push_str("::");
                let start = next.range.start;
                edits.push(Edit {
                    start,
                    end: start,
                    text: added,
                });
            }
            return Ok(());
        };
        if first.depth != last.depth {
            return Err("divides in braces where it changes".to_owned());
        }
        let end = match (added.is_empty(), last.end_of_colons) {
            (true, Some(end)) => end,
            (true, None) => return Err(self.is_elsewhere()),
            (false, _) => last.range.end,
        };
        edits.push(Edit {
            start: first.range.start,
            end,
            text: added,
        });
        Ok(())
    }
}

pub(super) fn apply_edits(path: &str, text: &str, edits: &mut Vec<Edit>) -> Result<String, Obstruction> {
    edits.sort();
    edits.dedup();
    for pair in edits.windows(2) {
        // Edits overlap if modules imported through a shared prefix move to different places.
        if pair[0].end > pair[1].start || pair[0].start == pair[1].start {
            return Err(Obstruction::at(
                path,
                text,
                pair[1].start,
                "this import covers names whose modules move apart".to_owned(),
                "import each of them separately".to_owned(),
            ));
        }
    }
    let mut edited = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for edit in edits.iter() {
        edited.push_str(&text[done..edit.start]);
        edited.push_str(&edit.text);
        done = edit.end;
    }
    edited.push_str(&text[done..]);
    Ok(edited)
}
