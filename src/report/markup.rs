//! Text from files inside markup, where a tensor may be called `<script>`.

use std::fmt::{self, Write};

use crate::printable::is_control;

/// Displays a text as plain text in XML and HTML, between tags and in quoted attributes. Control
/// characters are escaped as in [`printable`](super::printable()); other characters that XML cannot
/// represent become U+FFFD.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(character)?,
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                _ if is_control(character) => write!(f, "{}", character.escape_default())?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn names_are_never_markup() {
        let name = "<script>&\"'\0\u{ffff}]]>";
        let shown = "&lt;script&gt;&amp;&quot;&#39;\\u{0}\u{fffd}]]&gt;";
        assert_eq!(Escaped(name).to_string(), shown);
    }

    #[test]
    fn characters_that_change_the_writing_direction_are_escaped() {
        assert_eq!(Escaped("a\n\u{202e}b").to_string(), "a\n\\u{202e}b");
    }
}
