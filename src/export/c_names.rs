//! Names in C source.

/// Replaces the characters that C does not allow in a name, and puts `prefix` before a name that does not begin with
/// a letter.
pub(super) fn identifier(name: &str, prefix: &str) -> String {
    let mut name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, prefix);
    }
    name
}

/// A name in a comment: it may contain anything, but must not end the comment or continue it on the next line.
pub(super) fn in_comment(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() && c != '\\' { c } else { ' ' };
    name.chars().map(plain).collect::<String>().replace("*/", "* ").replace("/*", " *")
}
