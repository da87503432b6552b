//! Machine code for kernels that come as IR: puts it where it may be executed. The memory is written first and made executable then,
//! and never both at once.
//!
//! With `PERPETUA_PERF_MAP` set in the environment, each kernel's code is named in `/tmp/perf-PID.map`, where `perf report` looks for
//! code that no file holds.

use perpetua_cpu::interp::Interpreter;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use perpetua_cpu::interp::Width;
use perpetua_ir::verify::Verified;

/// Gives the interpreter machine code of its kernel, at the best of the processor's first `widths`, and tells for which
/// instructions; or why it has none.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn install(
    interpreter: &mut Interpreter,
    kernel: &Verified,
    widths: usize,
) -> Result<&'static str, String> {
    use perpetua_cpu::interp::{MachineCode, Refusal};

    if cfg!(perpetua_tsan) {
        return Err("ThreadSanitizer does not see machine code".into());
    }
    let width = best(widths).ok_or_else(|| Refusal::Processor.to_string())?;
    let code = MachineCode::generate(kernel, width).map_err(|refusal| refusal.to_string())?;
    let executable = |bytes: &[u8]| {
        let mut memory = memmap2::MmapMut::map_anon(bytes.len())?;
        memory.copy_from_slice(bytes);
        memory.make_exec()
    };
    let memory =
        executable(code.bytes()).map_err(|e| format!("the system gives no memory to execute: {e}"))?;
    let entry = memory.as_ptr();
    if std::env::var_os("PERPETUA_PERF_MAP").is_some() {
        let map = std::path::PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
        let line = name_line(entry as usize, code.bytes().len(), interpreter.name());
        append(&map, &line).map_err(|e| format!("{} cannot be written to: {e}", map.display()))?;
    }
    // SAFETY: the mapping is a copy of the code, nobody can write to it, and it goes with the interpreter; the width is one that the
    // processor was found to have.
    unsafe { interpreter.install(code, entry, Box::new(memory)) };
    Ok(width.instructions())
}

/// The fastest of the processor's first `widths`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn best(widths: usize) -> Option<Width> {
    Width::detect().iter().take(widths).next_back().copied()
}

/// A line of a map for `perf`: start and length in hexadecimal, and a name.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn name_line(start: usize, len: usize, name: &str) -> String {
    format!("{start:x} {len:x} perpetua::{name}\n")
}

/// Adds to a file; of several threads' lines each stays whole.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn append(file: &std::path::Path, line: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(line.as_bytes())
}

/// There is a generator for x86-64 and for AArch64.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn install(_: &mut Interpreter, _: &Verified, _: usize) -> Result<&'static str, String> {
    Err("there is no machine code for this kind of processor".into())
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn of_the_first_widths_the_last_is_the_best() {
        let all = Width::detect();
        assert_eq!(best(0), None);
        for (number, width) in all.iter().enumerate() {
            assert_eq!(best(number + 1), Some(*width));
        }
        assert_eq!(best(usize::MAX), all.last().copied());
    }

    #[test]
    fn maps_name_code_as_perf_reads_it() {
        let map = std::env::temp_dir().join(format!("perpetua-map-{}", std::process::id()));
        for (start, name) in [(0x7f00_1000, "saxpy"), (0x7f00_2000, "gelu")] {
            append(&map, &name_line(start, 0x1a0, name)).unwrap();
        }
        let text = std::fs::read_to_string(&map).unwrap();
        std::fs::remove_file(&map).unwrap();
        assert_eq!(
            text,
            "7f001000 1a0 perpetua::saxpy\n7f002000 1a0 perpetua::gelu\n"
        );
    }
}
