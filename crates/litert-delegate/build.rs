//! Gives the library its soname, and keeps it in memory once it is loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnnhal_delegate.so");
    // Hosts unload delegates; threads of the library, which wait for work, may be running its code then.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
