//! Text that fits a width: names are shortened first, sentences are wrapped.

use std::borrow::Cow;

/// The width of text in columns, as wide as the narrowest common terminal.
pub(super) const WIDTH: usize = 80;

/// The least number of characters to keep of a name.
const LEAST: usize = 7;

/// A part of a line.
#[derive(Clone, Debug)]
pub(super) enum Part<'a> {
    /// Never shortened.
    Text(Cow<'a, str>),
    /// Shortened in the middle where there is no room.
    Name(Cow<'a, str>),
}

impl Part<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Name(text) => text,
        }
    }
}

pub(super) fn text<'a>(text: impl Into<Cow<'a, str>>) -> Part<'a> {
    Part::Text(text.into())
}

pub(super) fn name<'a>(name: impl Into<Cow<'a, str>>) -> Part<'a> {
    Part::Name(name.into())
}

/// Joins the parts into a line with a line end; the longest names are shortened as much as
/// necessary.
pub(super) fn line(mut parts: Vec<Part<'_>>) -> String {
    let length = |part: &Part<'_>| part.text().chars().count();
    let mut total: usize = parts.iter().map(length).sum();
    while total > WIDTH {
        let names = parts.iter_mut().filter(|part| matches!(part, Part::Name(_)));
        let Some(longest) = names.max_by_key(|part| length(part)) else { break };
        let old = length(longest);
        let new = old.saturating_sub(total - WIDTH).max(old / 2).max(LEAST);
        if new >= old {
            break;
        }
        *longest = Part::Name(shortened(longest.text(), new).into_owned().into());
        total -= old - new;
    }
    let mut line: String = parts.iter().map(Part::text).collect();
    line.truncate(line.trim_end().len());
    // Numbers with many digits may leave no room even for short names.
    wrapped(&line, 6)
}

/// Shortens a name to at most `most` characters, keeping more of the end than of the beginning.
pub(super) fn shortened(name: &str, most: usize) -> Cow<'_, str> {
    let length = name.chars().count();
    if length <= most {
        return Cow::Borrowed(name);
    }
    let kept = most.saturating_sub(1);
    let head = kept / 3;
    let tail = length - (kept - head);
    let chars = || name.chars();
    Cow::Owned(chars().take(head).chain(['…']).chain(chars().skip(tail)).collect())
}

/// Wraps a sentence; all lines but the first are indented.
pub(super) fn wrapped(sentence: &str, indent: usize) -> String {
    hanging("", sentence, indent)
}

/// Returns whether no line may end between two words: within a number, or before its unit.
fn is_glued(before: &str, word: &str) -> bool {
    const UNITS: [&str; 8] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "%"];
    let end = word.find(|c: char| !c.is_alphanumeric() && c != '%').unwrap_or(word.len());
    let first = &word[..end];
    let is_group = first.len() == 3 && first.bytes().all(|byte| byte.is_ascii_digit());
    before.ends_with(|c: char| c.is_ascii_digit()) && (is_group || UNITS.contains(&first))
}

/// The words of a sentence, with each number and its unit as one word.
fn words(sentence: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(sentence);
    std::iter::from_fn(move || {
        let text = rest?;
        let ends = text.match_indices(' ').map(|(at, _)| at);
        let is_end = |&at: &usize| {
            let next = text[at + 1..].split(' ').next().unwrap_or_default();
            !is_glued(&text[..at], next)
        };
        let end = ends.into_iter().find(is_end);
        rest = end.map(|at| &text[at + 1..]);
        Some(end.map_or(text, |at| &text[..at]))
    })
}

/// Wraps a sentence behind a label on the first line.
pub(super) fn hanging(label: &str, sentence: &str, indent: usize) -> String {
    let mut text = label.to_owned();
    let mut column = label.chars().count();
    let mut begun = false;
    for word in words(sentence) {
        let length = word.chars().count();
        if begun && column + 1 + length > WIDTH {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if begun {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
        begun = true;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("conv1", 8, "conv1")]
    #[case("layer1/block2/conv3", 10, "lay…/conv3")]
    #[case("äöüäöüäöü", 5, "ä…äöü")]
    #[case("abc", 1, "…")]
    fn a_name_loses_its_middle(#[case] name: &str, #[case] most: usize, #[case] shown: &str) {
        assert_eq!(shortened(name, most), shown);
    }

    #[test]
    fn the_longest_name_gives_way() {
        let long = "n".repeat(200);
        let shown = line(vec![text("  "), name("short"), text(", over "), name(long.as_str())]);
        assert_eq!(shown.chars().count(), WIDTH + 1);
        assert!(shown.starts_with("  short, over nnn"), "{shown}");
        assert_eq!(line(vec![text("a"), name("b"), text("  ")]), "ab\n");
    }

    #[rstest]
    #[case("of 12.5 KiB (12 800 B), 56 % less", &["of", "12.5 KiB", "(12 800 B),", "56 %", "less"])]
    #[case("in step 5 the 300 last", &["in", "step", "5", "the", "300", "last"])]
    #[case("  a  1 024", &["", "", "a", "", "1 024"])]
    fn a_number_and_its_unit_are_one_word(#[case] sentence: &str, #[case] parts: &[&str]) {
        assert_eq!(words(sentence).collect::<Vec<_>>(), parts);
    }

    #[test]
    fn a_sentence_is_wrapped_between_words() {
        let sentence = "word ".repeat(40);
        let shown = hanging("pool  ", sentence.trim(), 6);
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
        assert!(shown.lines().skip(1).all(|line| line.starts_with("      word")), "{shown}");
        assert_eq!(shown.matches("word").count(), 40);
    }
}
