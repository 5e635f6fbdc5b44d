//! Words that the project has given up for the field's own do not come back.

use std::{fs, path::Path};

/// The old word, as whole words in code, and the one in its place.
const RETIRED: &[(&str, &str)] = &[
    ("Anew", "Repack"),
    ("Asked", "unsupported_feature"),
    ("Board", "Incumbent"),
    ("Crowd", "PeakSet"),
    ("Demands", "Constraints"),
    ("GLANCE", "PROBE_NODES"),
    ("InClocks", "ClockTreeSpace"),
    ("Joiner", "BodyBuilder"),
    ("Meeting", "Overlap"),
    ("Obstacle", "RejectReason"),
    ("Offered", "OffsetDomain"),
    ("Refusal", "RejectReason"),
    ("Regain", "PinRepair"),
    ("Slab", "Interval"),
    ("Standing", "Snapshot"),
    ("Statement", "PoolInstance"),
    ("Twins", "Symmetry"),
    ("Unsettled", "UnresolvedShape"),
    ("WORLDS", "SHAPE_SAMPLES"),
    ("at_one_moment", "heaviest_cut"),
    ("celled", "aligned_bytes"),
    ("demands", "constraints"),
    ("ends_early", "is_anytime"),
    ("followed_by", "concat"),
    ("has_fault", "has_mutation"),
    ("heed_pins", "reserve_pins"),
    ("honoured", "accepted"),
    ("ladder", "limit_schedule"),
    ("linearized", "collapse_streams"),
    ("loose_ends", "dangling"),
    ("mending", "repair_peaks"),
    ("regain", "repair_pins"),
    ("twins", "symmetry"),
    ("worlds", "shape_samples"),
];

/// A constant that bounds something begins with MAX or MIN.
const PREFIXES: &[(&str, &str)] =
    &[("MOST_", "MAX_"), ("LEAST_", "MIN_"), ("MANY_", "MAX_"), ("FEW_", "MIN_")];

fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The places of a word in a text. With `begins`, it may go on.
fn found(text: &str, word: &str, begins: bool) -> usize {
    let bytes = text.as_bytes();
    let is_whole = |&(at, _): &(usize, &str)| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !is_word(before) && (begins || !is_word(bytes.get(at + word.len())))
    };
    text.match_indices(word).filter(is_whole).count()
}

fn check(folder: &Path, files: &mut usize) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *files += 1;
            let text = fs::read_to_string(&path).unwrap();
            for (words, begins) in [(RETIRED, false), (PREFIXES, true)] {
                for (old, new) in words {
                    let times = found(&text, old, begins);
                    assert_eq!(times, 0, "{}: `{old}` is `{new}` here", path.display());
                }
            }
        }
    }
}

#[test]
fn retired_words_do_not_come_back() {
    let mut files = 0;
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files > 300, "{files}");
}

#[test]
fn only_whole_words_count() {
    assert_eq!(found("Crowd Crowds aCrowd (Crowd)", "Crowd", false), 2);
    assert_eq!(found("MOST_PAIRS AL_MOST_ MOST", "MOST_", true), 1);
}
