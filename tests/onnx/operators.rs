//! The book's page of all ONNX operators is the importer's table. `SNAPSHOTS=overwrite cargo test
//! --test onnx operators` rewrites it.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use memplan::import::onnx::operators;
use snapbox::{Data, data::DataFormat};

const TRY_IT: &str = "
**Try it.** Run `memplan ops` on a model of your own. Which of its operators take new memory, and what
does this table say about them?
";

const INTRODUCTION: &str = "\
# ONNX operators

This table gives the rules for each operator. A shape that is *known* follows from the
operator's inputs and attributes, as far as those are known. A shape that is *at most* a size is known
only at run time, and memplan plans for that size. A shape that is *known only at run time* must be
given. A view shares the memory of the first input. An output may be written over an input if the input
has the same shape and element width, no later operator reads it, and the [kernel](kernels.md) allows it.

The reader of ONNX models uses this table. If an operator is not in it, the model must declare the
operator's outputs, and each gets memory of its own.

| operator | domain | shape | view of the first input | may be written over an input |
| --- | --- | --- | --- | --- |
";

/// Lets a browser break a long name before its capitals, so that the table fits a screen.
fn breakable(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        let ends = words.ends_with(|last: char| last.is_lowercase());
        if name.len() > 20 && ends && letter.is_uppercase() {
            words.push_str("<wbr>");
        }
        words.push(letter);
    }
    words
}

#[test]
fn the_books_page_lists_every_operator() {
    let mut rows: Vec<String> = operators()
        .map(|[name, domains, shape, view, in_place]| {
            let name = breakable(&name);
            let domains = domains.replace("microsoft.nchwc", "microsoft.<wbr>nchwc");
            format!("| {name} | {domains} | {shape} | {view} | {in_place} |")
        })
        .collect();
    rows.sort();
    let mut page = INTRODUCTION.to_owned();
    for row in rows {
        writeln!(page, "{row}").unwrap();
    }
    page.push_str(TRY_IT);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/book/src/onnx-operators.md");
    snapbox::Assert::new()
        .action_env(snapbox::assert::DEFAULT_ACTION_ENV)
        .eq(page, Data::read_from(Path::new(path), Some(DataFormat::Text)).raw());
}

#[test]
fn every_operator_has_one_row() {
    let mut seen = BTreeSet::new();
    for [name, domains, ..] in operators() {
        for domain in domains.split(", ") {
            assert!(seen.insert((name.clone(), domain.to_owned())), "{name} of {domain}");
        }
    }
    assert!(seen.len() > 200, "{}", seen.len());
}
