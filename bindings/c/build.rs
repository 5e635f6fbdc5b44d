//! Gives the shared library a name that changes with the interface, so that a program loads no other 0.x.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let part = |name: &str| env::var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if !matches!(&*os, "macos" | "ios" | "windows") {
        let name = format!("libmemplan.so.{}.{}", part("MAJOR"), part("MINOR"));
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    }
}
