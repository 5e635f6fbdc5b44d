//! Names made safe to show: those in a file may contain anything, even terminal control sequences.

use std::borrow::Cow;

/// Escapes control characters (line ends included), characters that change the writing direction,
/// and invisible ones.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_control(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Returns whether a character is escaped. Joiners are not, because some scripts need them.
pub(crate) fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::printable;

    #[rstest]
    #[case("conv1/ä", "conv1/ä")]
    #[case("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}")]
    #[case("two\nlines", "two\\nlines")]
    #[case("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}")]
    #[case("\u{202e}cod", "\\u{202e}cod")]
    #[case("a\u{61c}b\u{200b}c\u{feff}", "a\\u{61c}b\\u{200b}c\\u{feff}")]
    #[case("می\u{200c}خواهم", "می\u{200c}خواهم")]
    fn control_characters_are_escaped(#[case] name: &str, #[case] shown: &str) {
        assert_eq!(printable(name), shown);
    }
}
