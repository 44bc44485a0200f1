//! Keeps the library in memory once it is loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // LiteRT may unload it; threads of the library, which wait for work, may be running its code then.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
