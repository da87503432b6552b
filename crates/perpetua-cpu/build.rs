//! Tells the crate whether there is machine code for the target (`machine_code`). Must not know anything else.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(machine_code)");
    let asked = std::env::var_os("CARGO_FEATURE_MACHINE_CODE").is_some();
    let processor = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if asked && matches!(processor.as_str(), "x86_64" | "aarch64") {
        println!("cargo::rustc-cfg=machine_code");
    }
}
