//! The places in a program that allocate: lines of code and operators, each stored once.

use std::{collections::HashMap, path::Path};

/// The lines of a stack that a name shows.
const SHOWN: usize = 3;
/// The name of allocations without a stack or an operator.
const UNNAMED: &str = "no stack recorded";

/// The places that allocate.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// Lines of code and operators, by number.
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    /// Lines by file, line and function, with whether they are the program's own.
    frames: HashMap<Frame, Line>,
    known: HashMap<Key, u32>,
    /// The name of each place, and the number of its innermost line.
    pub(super) names: Vec<Box<str>>,
    pub(super) lines: Vec<u32>,
    line_numbers: HashMap<(Option<u32>, Option<u32>), u32>,
    pub(super) line_names: Vec<Box<str>>,
}

/// The lines that a name shows, from the innermost on, and the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Key {
    lines: Vec<u32>,
    operator: Option<u32>,
}

/// A file, a line in it from 1, and the function.
type Frame = (Box<str>, u64, Box<str>);

/// A line of code: its number, and whether it is the program's own.
pub(super) type Line = (u32, bool);

impl Sites {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// Returns a line of code.
    pub(super) fn line(&mut self, file: &str, line: u64, function: &str) -> Line {
        let key = (file.into(), line, function.into());
        if let Some(&known) = self.frames.get(&key) {
            return known;
        }
        let short = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        // Equal short texts of different files are different lines.
        self.texts.push(format!("{short}:{line} {function}").into());
        let found = (number, is_own(file));
        self.frames.insert(key, found);
        found
    }

    /// Returns the place of an allocation by its stack, from the innermost line out, and its operator. The name
    /// shows lines of the program itself, or others if there are none.
    pub(super) fn site(
        &mut self,
        stack: impl Iterator<Item = Line>,
        operator: Option<&str>,
    ) -> u32 {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for (line, is_own) in stack {
            let list = if is_own { &mut own } else { &mut other };
            if list.len() < SHOWN {
                list.push(line);
            }
            if own.len() == SHOWN {
                break;
            }
        }
        let lines = if own.is_empty() { other } else { own };
        let key = Key { lines, operator: operator.map(|text| self.number(text)) };
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let text = |number: &u32| &*self.texts[*number as usize];
        let lines = key.lines.iter().map(text).collect::<Vec<_>>().join(" < ");
        let name = joined(&lines, key.operator.as_ref().map(text));
        let innermost = (key.lines.first().copied(), key.operator);
        let line_name =
            joined(innermost.0.as_ref().map_or("", text), innermost.1.as_ref().map(text));
        let line = *self.line_numbers.entry(innermost).or_insert_with(|| {
            self.line_names.push(line_name.into());
            u32::try_from(self.line_names.len() - 1).unwrap_or(u32::MAX)
        });
        let site = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.into());
        self.lines.push(line);
        self.known.insert(key, site);
        site
    }
}

fn joined(lines: &str, operator: Option<&str>) -> String {
    match (lines, operator) {
        ("", None) => UNNAMED.to_owned(),
        ("", Some(operator)) => operator.to_owned(),
        (lines, None) => lines.to_owned(),
        (lines, Some(operator)) => format!("{lines}, {operator}"),
    }
}

/// Returns whether a line of this file belongs to the program: it is Python, and neither PyTorch's nor the standard
/// library's.
fn is_own(file: &str) -> bool {
    let mut folders = file.split(['/', '\\']).collect::<Vec<_>>();
    let name = folders.pop().unwrap_or_default();
    let is_library = |folder: &&&str| matches!(**folder, "site-packages" | "dist-packages");
    let from = folders.iter().rposition(|folder| is_library(&folder)).map_or(0, |at| at + 1);
    let is_standard = from == 0 && folders.iter().any(|folder| folder.starts_with("python3"));
    let is_framework = folders[from..].contains(&"torch");
    Path::new(name).extension().is_some_and(|ending| ending == "py")
        && !is_standard
        && !is_framework
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/home/me/train.py", true)]
    #[case("/usr/lib/python3/dist-packages/torchvision/models/resnet.py", true)]
    #[case("/usr/lib/python3/dist-packages/torch/nn/modules/conv.py", false)]
    #[case("torch/nn/modules/conv.py", false)]
    #[case("/usr/lib/python3.11/contextlib.py", false)]
    #[case("/build/c10/core/Allocator.cpp", false)]
    fn a_line_of_a_library_is_not_the_programs_own(#[case] file: &str, #[case] own: bool) {
        assert_eq!(is_own(file), own);
    }

    #[test]
    fn a_name_shows_own_lines_first() {
        let mut sites = Sites::default();
        let inner = sites.line("/x/torch/functional.py", 9, "conv");
        let own = sites.line("/me/net.py", 3, "forward");
        let same_name = sites.line("/you/net.py", 3, "forward");
        assert_ne!(own, same_name);
        let site = sites.site([inner, own].into_iter(), Some("conv2d"));
        assert_eq!(&*sites.names[site as usize], "net.py:3 forward, conv2d");
        let other = sites.site([inner, same_name].into_iter(), Some("conv2d"));
        assert_ne!(sites.lines[site as usize], sites.lines[other as usize]);
        let bare = sites.site(std::iter::once(inner), None);
        assert_eq!(&*sites.names[bare as usize], "functional.py:9 conv");
        let none = sites.site(std::iter::empty(), None);
        assert_eq!(&*sites.names[none as usize], UNNAMED);
    }
}
