//! MSL source and the shim to a shared object, loaded into this process.

use super::signature::{PROGRAM_NAME, Parameter, prepare};
use crate::locate::Search;
use crate::program::{folder_with, run, verdict, write};
use crate::{Missing, Need, ToolResult};
use libloading::Library;
use std::ffi::{c_char, c_void};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const METAL_STDLIB: &str = include_str!("metal_stdlib.h");
const DRIVER: &str = include_str!("driver.h");

/// MSL is C++14; nothing is contracted. What is undefined behaviour in C++ and in MSL alike (signed overflow, a
/// shift by the width, a float out of an integer's range, an index outside a fixed array) is checked where it happens; the
/// driver has the handlers, so the sanitizer's own library is left out at the link. Threadgroup arrays of
/// vectors have constructors that do nothing: their guards must need no run-time library either.
const OPTIONS: [&str; 17] = [
    "-xc++",
    "-std=gnu++14",
    "-O1",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-fno-threadsafe-statics",
    "-fvisibility=hidden",
    "-Wl,-Bsymbolic",
    "-Wno-attributes",
    "-Werror=return-type",
    "-Werror=uninitialized",
    "-fsanitize=signed-integer-overflow,shift-exponent,integer-divide-by-zero,float-cast-overflow,bounds,bool,alignment,null,return",
];

/// A kernel written in MSL, compiled for the CPU and ready to run.
#[derive(Debug)]
pub struct MslProgram {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) entries: Entries,
    /// Static threadgroup variables exist once: one launch runs at a time.
    pub(crate) exclusive: Mutex<()>,
    log: String,
    _library: Library,
}

/// What the driver exports; layouts in `runner.rs`.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) attach: unsafe extern "C" fn(
        wait: unsafe extern "C" fn(u32, u32),
        report: unsafe extern "C" fn(*const c_char, *const c_char, u32),
    ),
    pub(crate) become_lane: unsafe extern "C" fn(lane: *mut c_void),
    pub(crate) enter: unsafe extern "C" fn(launch: *const c_void),
    pub(crate) threadgroup_memory: unsafe extern "C" fn(start: *mut *mut u8, size: *mut usize),
}

impl MslProgram {
    /// Compiles `kernel` of an MSL source. A refusal's log has lines of the source as `program.metal:LINE`.
    pub fn compile(source: &str, kernel: &str) -> ToolResult<Self> {
        verdict(compiler(), |program| {
            let prepared = prepare(source, kernel)?;
            let call = call(kernel, &prepared.parameters);
            let text = format!(
                "{}\n#define PERPETUA_CALL {call}\n#include \"driver.h\"\n",
                prepared.source
            );
            let (folder, input) = folder_with(PROGRAM_NAME, text.as_bytes())?;
            write(&folder.path().join("metal_stdlib"), METAL_STDLIB.as_bytes())?;
            write(&folder.path().join("driver.h"), DRIVER.as_bytes())?;
            let mut command = Command::new(program);
            command
                .env("LC_ALL", "C")
                .current_dir(&folder)
                .args(OPTIONS)
                .args([
                    "-I.",
                    PROGRAM_NAME,
                    "-oprogram.so",
                    "-nodefaultlibs",
                    "-lm",
                    "-lc",
                    "-lgcc",
                ]);
            let answer = run(&mut command)?;
            if !answer.success {
                return Err(answer.log);
            }
            Self::load(
                &input.with_file_name("program.so"),
                prepared.parameters,
                answer.log,
            )
        })
    }

    /// What the compiler printed: warnings; empty when there are none.
    pub fn log(&self) -> &str {
        &self.log
    }

    fn load(path: &Path, parameters: Vec<Parameter>, log: String) -> Result<Self, String> {
        let unloadable =
            |error: libloading::Error| format!("the compiled kernel could not be loaded: {error}");
        // SAFETY: the object was just compiled from the shim and a kernel; it has no initialisers of its own.
        let library = unsafe { Library::new(path) }.map_err(unloadable)?;
        // SAFETY: names and signatures are those that `driver.h` exports, and each pointer is kept beside the library.
        let entries = unsafe {
            Entries {
                attach: *library.get(b"perpetua_attach\0").map_err(unloadable)?,
                become_lane: *library.get(b"perpetua_become\0").map_err(unloadable)?,
                enter: *library.get(b"perpetua_enter\0").map_err(unloadable)?,
                threadgroup_memory: *library
                    .get(b"perpetua_threadgroup_memory\0")
                    .map_err(unloadable)?,
            }
        };
        Ok(Self {
            parameters,
            entries,
            exclusive: Mutex::new(()),
            log,
            _library: library,
        })
    }
}

fn compiler() -> Result<PathBuf, Missing> {
    let mut search = Search::new();
    let found = ["g++", "clang++"].iter().find_map(|name| search.on_path(name));
    found.ok_or_else(|| Missing {
        tool: "C++ compiler",
        looked_for: search.tried(),
        remedy: "run `cargo xtask setup --only cxx`",
        need: Need::Required,
    })
}

/// The expression that calls the kernel for the launch in scope.
fn call(kernel: &str, parameters: &[Parameter]) -> String {
    let mut call = format!("{kernel}(");
    for (at, parameter) in parameters.iter().enumerate() {
        if at > 0 {
            call.push_str(", ");
        }
        // Writing to a string cannot fail.
        let _ = match parameter {
            Parameter::Buffer { slot, .. } => write!(call, "perpetua::Bound{{launch->buffers[{slot}]}}"),
            Parameter::Threadgroup { slot } => write!(call, "perpetua::Bound{{launch->threadgroup[{slot}]}}"),
            Parameter::Builtin(builtin) => write!(call, "{}", builtin.expression),
        };
    }
    call.push(')');
    call
}
