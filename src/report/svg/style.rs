//! Colours and text of the pictures.

/// The number of colours, which the chains use in rotation.
pub(super) const COLOURS: usize = 10;

/// The first seven hues are from Okabe and Ito (2008), which colour-blind readers can distinguish.
/// Light ones lie under dark text, dark ones under light text, with a contrast of at least 5:1.
pub(in crate::report) const STYLE: &str = "\
svg{--page:#fff;--ink:#1b1f24;--soft:#59636e;--rule:#d0d7de;--free:#f8fafb;--hatch:#e6eaee;--mark:#c2185b;\
--c0:#9ad0f0;--c1:#f6c667;--c2:#7fcdb4;--c3:#f2e985;--c4:#84b6dc;--c5:#eea27a;--c6:#e3b3cd;--c7:#c4b7f0;--c8:#b7d77a;--c9:#cfc4b0}
@media screen and (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#f0f3f6;--soft:#9aa4af;--rule:#3d444d;--free:#12171e;--hatch:#1f262e;--mark:#ff7eb6;\
--c0:#256a92;--c1:#825900;--c2:#006745;--c3:#6b6312;--c4:#1a5a94;--c5:#8f3f0c;--c6:#8f4d74;--c7:#5b4ba6;--c8:#466a12;--c9:#5f5648}}
text{font:11px system-ui,sans-serif;fill:var(--ink)}
.head{font-size:15px;font-weight:600}.soft{fill:var(--soft)}.end{text-anchor:end}.mid{text-anchor:middle}
.page{fill:var(--page)}.hatch{fill:var(--free)}.hatch+path{stroke:var(--hatch);stroke-width:1}
.rule{stroke:var(--rule);fill:none}.frame{stroke:var(--soft);fill:none}.free{fill:url(#hatch)}
.c{stroke:var(--page);stroke-width:1}.t{stroke:none}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}.c7{fill:var(--c7)}.c8{fill:var(--c8)}.c9{fill:var(--c9)}
.c:hover,.t:hover{stroke:var(--ink);stroke-width:2}
.over{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:3 2;fill:none}
.view{stroke:var(--ink);stroke-width:1;stroke-dasharray:1 2;fill:none;pointer-events:none}
.halo{stroke:var(--page);stroke-width:2.5;stroke-opacity:.6;fill:none;pointer-events:none}.live{stroke:var(--soft);stroke-width:1;fill:none;pointer-events:none}
.bound{stroke:var(--mark);stroke-width:1.5;stroke-dasharray:7 4;fill:none;pointer-events:none}
.peak{fill:none;stroke:var(--mark);stroke-width:1;pointer-events:none}.name{pointer-events:none;paint-order:stroke;stroke-width:3;stroke-linejoin:round}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}.s6{stroke:var(--c6)}.s7{stroke:var(--c7)}.s8{stroke:var(--c8)}.s9{stroke:var(--c9)}
.step{fill:transparent}.step:hover{fill:var(--rule)}
";

/// The pattern of free space.
pub(super) const PATTERN: &str = "<defs><pattern id=\"hatch\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
<rect class=\"hatch\" width=\"8\" height=\"8\"/><path d=\"M-2 2l4-4M0 8l8-8M6 10l4-4\"/></pattern></defs>\n";

/// The patterns of pinned chunks and of reserved bytes, for the pictures that have any.
pub(super) const FIXED: &str = "<style>.pinned{fill:url(#strokes);pointer-events:none}.strokes{stroke:var(--ink);stroke-width:1;stroke-opacity:.35}\n\
.reserved{fill:url(#grid);stroke:var(--soft);stroke-width:1}.grid{fill:var(--rule)}.grid+path{stroke:var(--soft);stroke-width:1}</style>\n\
<defs><pattern id=\"strokes\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path class=\"strokes\" d=\"M-2 6l4 4M0 0l8 8M6-2l4 4\"/></pattern>\
<pattern id=\"grid\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect class=\"grid\" width=\"6\" height=\"6\"/><path d=\"M0 0l6 6M0 6l6-6\"/></pattern></defs>\n";

/// The approximate width of a character in pixels.
pub(super) const LETTER: f64 = 6.1;

/// The approximate width of a text in pixels.
#[allow(clippy::cast_precision_loss, reason = "pixels")]
pub(super) fn width(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// Breaks a text at spaces into lines of at most a width in pixels, as far as its words allow. A word stays
/// with the digits before it.
pub(super) fn broken(text: &str, room: f64, letter: f64) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match pieces.last_mut().filter(|piece| piece.ends_with(|end: char| end.is_ascii_digit())) {
            Some(piece) => piece.extend([" ", word]),
            None => pieces.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        let length = |line: &str| line.chars().count() + 1 + piece.chars().count();
        #[allow(clippy::cast_precision_loss, reason = "pixels")]
        match lines.last_mut().filter(|line| length(line) as f64 * letter <= room) {
            Some(line) => line.extend([" ", &piece]),
            None => lines.push(piece),
        }
    }
    lines
}

/// Returns a text if it fits a width in pixels, otherwise its end, since the end of a path is more
/// specific than its beginning; `None` if that would be too short to be useful.
pub(super) fn fitted(text: &str, room: f64) -> Option<String> {
    const LEAST: usize = 7;
    if width(text) <= room {
        return Some(text.to_owned());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
    let letters = (room / LETTER).max(0.0) as usize;
    let skipped = text.chars().count().saturating_sub(letters.saturating_sub(1));
    (letters >= LEAST).then(|| ['…'].into_iter().chain(text.chars().skip(skipped)).collect())
}

/// Returns a name if it fits a width in pixels, otherwise its end without the number of a first output, which
/// most names have and which tells none apart.
pub(super) fn fitted_name(name: &str, room: f64) -> Option<String> {
    let is_wide = width(name) > room;
    let shown = name.strip_suffix("_output_0").filter(|_| is_wide).unwrap_or(name);
    fitted(shown, room)
}

#[cfg(test)]
mod tests {
    use super::{LETTER, broken, fitted_name};

    #[test]
    fn a_name_keeps_the_end_that_differs() {
        let name = "/layer.3/attention/MatMul_output_0";
        let shown = |letters: f64| fitted_name(name, letters * LETTER + 0.1);
        assert_eq!(shown(40.0).as_deref(), Some(name));
        assert_eq!(shown(17.0).as_deref(), Some("…attention/MatMul"));
        assert_eq!(shown(6.0), None);
    }

    #[test]
    fn lines_break_between_words_but_not_within_numbers() {
        let words = "unshared 24.0 KiB (24 576 B); 5 chunks";
        assert_eq!(broken(words, 20.0, 1.0), ["unshared 24.0 KiB", "(24 576 B); 5 chunks"]);
        assert_eq!(broken(words, 1.0, 1.0).len(), 4);
        assert_eq!(broken(words, 100.0, 1.0), [words]);
    }
}
