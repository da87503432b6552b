//! A cargo that can build for a target whose standard library the running toolchain lacks, with ThreadSanitizer, and for an emulator:
//! Debian's second toolchain with the standard library's sources. For targets, a machine with `rustup target add` done needs none of it.

use crate::workspace::{cargo, metadata, root};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use xshell::{Cmd, Shell, cmd};

/// The browser.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
/// Where the Metal backend lives.
pub(crate) const APPLE: &str = "aarch64-apple-darwin";
/// Windows.
pub(crate) const WINDOWS: &str = "x86_64-pc-windows-msvc";

/// What Debian calls the second toolchain, its sources and the linker for wasm.
pub(crate) const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-19"];

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";
/// What the second toolchain builds.
const SECOND_FOLDER: &str = "target/second-toolchain";
const WASM_LINKER: &str = "wasm-ld-19";

/// What Debian calls the compiler that links programs with ThreadSanitizer, and the sanitizer itself.
pub(crate) const SANITIZER_PACKAGES: [&str; 2] = ["clang-19", "libclang-rt-19-dev"];
const SANITIZER_LINKER: &str = "clang-19";
const SANITIZER_RUNTIMES: &str = "/usr/lib/llvm-19/lib/clang/19/lib/linux";

/// Whose machine code is tested in an emulator, and who gets an archive of the program.
pub(crate) const AARCH64_LINUX: &str = "aarch64-unknown-linux-gnu";
/// What Debian calls the emulator, the linker and the C library for it.
pub(crate) const EMULATOR_PACKAGES: [&str; 3] = [
    "qemu-user-static",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
];
const EMULATOR: &str = "/usr/bin/qemu-aarch64-static";
/// Links for [`AARCH64_LINUX`]; for itself, too.
pub(crate) const AARCH64_LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATED_ROOT: &str = "/usr/aarch64-linux-gnu";

/// What would have to be there for every target; empty when each can be built.
pub(crate) fn absent_targets() -> Vec<String> {
    let Ok(shell) = Shell::new() else {
        return vec!["a shell".to_owned()];
    };
    let absent = [WASM, APPLE, WINDOWS].map(|target| absent_for(&shell, target));
    absent
        .into_iter()
        .find(|absent| !absent.is_empty())
        .unwrap_or_default()
}

/// What a target's standard library would take; empty when it is there or can be built.
pub(crate) fn absent_for(shell: &Shell, target: &str) -> Vec<String> {
    if is_installed(shell, target) {
        Vec::new()
    } else if [WASM, APPLE, WINDOWS, AARCH64_LINUX].contains(&target) {
        absent_second(shell)
    } else {
        vec!["its standard library".to_owned()]
    }
}

/// What of the second toolchain is missing.
fn absent_second(shell: &Shell) -> Vec<String> {
    let needed = [DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_SOURCES];
    let absent: Vec<String> = needed
        .iter()
        .filter(|path| !Path::new(path).exists())
        .map(|path| (*path).to_owned())
        .collect();
    if !absent.is_empty() {
        return absent;
    }
    too_old(shell).into_iter().collect()
}

/// What ThreadSanitizer's own packages lack.
pub(crate) fn absent_sanitizer() -> Vec<String> {
    let runtime = format!(
        "{SANITIZER_RUNTIMES}/libclang_rt.tsan-{}.a",
        std::env::consts::ARCH
    );
    let linker = format!("/usr/bin/{SANITIZER_LINKER}");
    [linker, runtime]
        .into_iter()
        .filter(|path| !Path::new(path).exists())
        .collect()
}

/// What emulated programs lack.
pub(crate) fn absent_emulator() -> Vec<String> {
    let library = format!("{EMULATED_ROOT}/lib/crt1.o");
    let linker = format!("/usr/bin/{AARCH64_LINKER}");
    [EMULATOR, &linker, &library]
        .into_iter()
        .filter(|path| !Path::new(path).exists())
        .map(str::to_owned)
        .collect()
}

/// What is wrong with the second compiler's version: Debian's first one for a release stays, newer ones come with its
/// security updates.
fn too_old(shell: &Shell) -> Option<String> {
    let rustc = DEBIAN_RUSTC;
    let found = cmd!(shell, "{rustc} --version").quiet().read().ok()?;
    let minor = |version: &str| version.split('.').nth(1).and_then(|n| n.parse::<u32>().ok());
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    (minor(&found)? < minor(wanted)?).then(|| {
        format!(
            "{DEBIAN_RUSTC} from {wanted} on (found {found}; the package rustc-web of Debian's security updates has it)"
        )
    })
}

/// Whether the running toolchain has the target's standard library.
pub(crate) fn is_installed(shell: &Shell, target: &str) -> bool {
    let sysroot = cmd!(shell, "rustc --print sysroot").quiet().read();
    sysroot.is_ok_and(|sysroot| {
        Path::new(&sysroot)
            .join("lib/rustlib")
            .join(target)
            .join("lib")
            .is_dir()
    })
}

/// Where [`cargo_for`] puts what it builds for a target.
pub(crate) fn folder_of(shell: &Shell, target: &str) -> Result<PathBuf> {
    let all = metadata()?.target_directory.into_std_path_buf();
    if is_installed(shell, target) {
        return Ok(all.join(target));
    }
    Ok(root().join(SECOND_FOLDER).join(target))
}

/// `cargo VERB --target TARGET …`, ready for more arguments.
pub(crate) fn cargo_for<'a>(shell: &'a Shell, verb: &str, target: &str) -> Result<Cmd<'a>> {
    let absent = absent_for(shell, target);
    if !absent.is_empty() {
        bail!(
            "no toolchain for {target}: {} missing; run `rustup target add {target}` or `cargo xtask setup --only targets`",
            absent.join(", ")
        );
    }
    let command = if is_installed(shell, target) {
        let cargo = cargo();
        cmd!(shell, "{cargo} {verb} --target {target}").quiet()
    } else {
        let parts = match (target, verb) {
            (AARCH64_LINUX, "test") => "std,panic_unwind,test",
            (AARCH64_LINUX, _) => "std,panic_unwind",
            _ => "std,panic_abort",
        };
        second(shell, verb, parts, target).env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", WASM_LINKER)
    };
    Ok(command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", AARCH64_LINKER))
}

/// Where [`cargo_test_sanitized`] puts what it builds.
pub(crate) fn sanitized_folder() -> PathBuf {
    root().join(SECOND_FOLDER).join(sanitized_target())
}

fn sanitized_target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// `cargo test …` with ThreadSanitizer, which sees the standard library, too, and knows itself as `cfg(perpetua_tsan)`.
pub(crate) fn cargo_test_sanitized(shell: &Shell) -> Result<Cmd<'_>> {
    let absent = [absent_second(shell), absent_sanitizer()].concat();
    if !absent.is_empty() {
        bail!(
            "no toolchain for ThreadSanitizer: {} missing; run `cargo xtask setup --only targets,sanitizer` (Debian)",
            absent.join(", ")
        );
    }
    let flags = format!(
        "--cfg perpetua_tsan -Zsanitizer=thread -Zexternal-clangrt -Clinker={SANITIZER_LINKER} -Clink-arg=-fsanitize=thread"
    );
    let target = sanitized_target();
    Ok(second(shell, "test", "std,panic_unwind,test", &target).env("RUSTFLAGS", flags))
}

/// `cargo test …` of programs for AArch64, which an emulator runs; optimised a little, for it is slow.
pub(crate) fn cargo_test_emulated(shell: &Shell) -> Result<Cmd<'_>> {
    let absent = absent_emulator();
    if !absent.is_empty() {
        bail!(
            "AArch64 cannot be emulated: {} missing; run `cargo xtask setup --only targets,emulator` (Debian)",
            absent.join(", ")
        );
    }
    let runner = format!("{EMULATOR} -L {EMULATED_ROOT}");
    Ok(cargo_for(shell, "test", AARCH64_LINUX)?
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner))
}

/// The second toolchain's cargo, which builds the standard library's `parts` as well.
fn second<'a>(shell: &'a Shell, verb: &str, parts: &str, target: &str) -> Cmd<'a> {
    // What rustup's proxy sets for its own toolchain must not reach the other one. Artifacts lie apart, since two
    // compilers in one folder rebuild each other's.
    let cargo = DEBIAN_CARGO;
    let command = cmd!(
        shell,
        "{cargo} {verb} -Zbuild-std={parts} --target {target} --target-dir {SECOND_FOLDER}"
    )
    .quiet()
    .env("RUSTC", DEBIAN_RUSTC)
    .env("RUSTC_BOOTSTRAP", "1");
    let foreign = [
        "CARGO",
        "RUSTDOC",
        "RUSTUP_TOOLCHAIN",
        "RUSTUP_HOME",
        "LD_LIBRARY_PATH",
        "CARGO_TARGET_DIR",
    ];
    foreign
        .iter()
        .fold(command, |command, name| command.env_remove(name))
}
