//! Prints the book's table of measured peaks, for the models that are there.

use memplan_runtime::{MODELS, Peaks, model, peaks};

fn main() {
    println!("{}", Peaks::HEADER);
    for (title, name) in MODELS {
        match model(name) {
            Some(onnx) => println!("{}", peaks(&onnx).row(title)),
            None => eprintln!("skipped: {name} is not there"),
        }
    }
}
