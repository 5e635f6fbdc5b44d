//! The header in the repository equals the one that is generated from the sources.

use std::{env, fs, path::Path};

#[test]
fn the_header_is_up_to_date() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let config = cbindgen::Config::from_file(package.join("cbindgen.toml")).unwrap();
    let mut generated = Vec::new();
    let builder = cbindgen::Builder::new().with_config(config).with_crate(&package);
    builder.generate().unwrap().write(&mut generated);
    let generated = String::from_utf8(generated).unwrap();
    // These sections are for readers of the Rust documentation.
    let generated = without_safety(&generated);
    let file = package.join("include/memplan.h");
    if env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::write(&file, &generated).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == generated,
        "bindings/c/include/memplan.h is not what the sources say; SNAPSHOTS=overwrite writes it anew"
    );
}

/// Removes the comments' sections on safety: in C, valid pointers are always assumed.
fn without_safety(header: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in header.lines() {
        inside = (inside || line == " # Safety") && line != " */";
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept.replace("\n\n */", "\n */")
}
