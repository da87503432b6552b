//! CUDA C through NVRTC, NVIDIA's run-time compiler: a shared library that needs no driver and no GPU.

use crate::{Missing, Need, ToolResult, locate};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

/// What NVRTC made of a CUDA C translation unit.
#[derive(Clone, Debug)]
pub struct CompiledCuda {
    /// Warnings; empty when there are none.
    pub log: String,
    /// PTX text as the compiler emitted it.
    pub ptx: String,
    /// The machine code: an ELF image for the architecture asked for.
    pub cubin: Vec<u8>,
}

/// Compiles CUDA C for `arch` (`sm_75`, `sm_90a`, …) without contraction of floats and without headers.
pub fn nvrtc(cuda_c: &str, arch: &str) -> ToolResult<CompiledCuda> {
    nvrtc_with(cuda_c, arch, &["--fmad=false"])
}

/// Compiles CUDA C for `arch` under the compiler's own `options`.
pub fn nvrtc_with(cuda_c: &str, arch: &str, options: &[&str]) -> ToolResult<CompiledCuda> {
    static LIBRARY: OnceLock<Result<Nvrtc, Missing>> = OnceLock::new();
    let library = match LIBRARY.get_or_init(Nvrtc::open) {
        Ok(library) => library,
        Err(missing) => return ToolResult::Missing(missing.clone()),
    };
    match library.compile(cuda_c, arch, options) {
        Ok(compiled) => ToolResult::Accepted(compiled),
        Err(log) => ToolResult::Rejected { log },
    }
}

type Handle = *mut c_void;
type Status = c_int;
/// Success in every function of the library.
const SUCCESS: Status = 0;

/// The functions used, as `nvrtc.h` declares them.
struct Nvrtc {
    create: unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Handle) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    log: Output,
    ptx: Output,
    cubin: Output,
    _libraries: Vec<Library>,
}

/// A pair of functions that hand out one product of a compilation: its size, then its bytes.
#[derive(Clone, Copy)]
struct Output {
    size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
    bytes: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
}

/// NVRTC opens its second library, the builtins, by bare name while it compiles. One that is already loaded under that
/// name is taken, so those that lie beside a library outside the loader's path are loaded first.
fn builtins_beside(path: &Path) -> Vec<Library> {
    let entries = path
        .parent()
        .filter(|_| path.is_absolute())
        .and_then(|folder| folder.read_dir().ok());
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let builtins = names.filter(|file| {
        file.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc-builtins.so"))
    });
    // SAFETY: the builtins are data with accessors; loading them runs no code of consequence.
    builtins
        .filter_map(|file| unsafe { Library::new(file) }.ok())
        .collect()
}

impl Nvrtc {
    fn open() -> Result<Self, Missing> {
        let mut looked_for = Vec::new();
        for candidate in locate::nvrtc_candidates() {
            match Self::open_at(&candidate) {
                Ok(library) => return Ok(library),
                Err(error) => looked_for.push(format!("{} ({error})", candidate.display())),
            }
        }
        let remedy = "run `cargo xtask setup --only cuda`";
        Err(Missing {
            tool: "NVRTC",
            looked_for,
            remedy,
            need: Need::Required,
        })
    }

    fn open_at(path: &Path) -> Result<Self, libloading::Error> {
        let mut libraries = builtins_beside(path);
        // SAFETY: loading runs the library's initialisers; NVRTC's only set up its own state.
        let library = unsafe { Library::new(path) }?;
        // SAFETY: names and signatures are those of `nvrtc.h`, unchanged since CUDA 11.1 (the cubin pair is the
        // newest); the function pointers are kept beside the library and never outlive it.
        unsafe {
            let functions = Self {
                create: *library.get(b"nvrtcCreateProgram\0")?,
                compile: *library.get(b"nvrtcCompileProgram\0")?,
                destroy: *library.get(b"nvrtcDestroyProgram\0")?,
                error_string: *library.get(b"nvrtcGetErrorString\0")?,
                log: Output {
                    size: *library.get(b"nvrtcGetProgramLogSize\0")?,
                    bytes: *library.get(b"nvrtcGetProgramLog\0")?,
                },
                ptx: Output {
                    size: *library.get(b"nvrtcGetPTXSize\0")?,
                    bytes: *library.get(b"nvrtcGetPTX\0")?,
                },
                cubin: Output {
                    size: *library.get(b"nvrtcGetCUBINSize\0")?,
                    bytes: *library.get(b"nvrtcGetCUBIN\0")?,
                },
                _libraries: Vec::new(),
            };
            libraries.push(library);
            Ok(Self {
                _libraries: libraries,
                ..functions
            })
        }
    }

    fn compile(&self, source: &str, arch: &str, options: &[&str]) -> Result<CompiledCuda, String> {
        let source = c_string(source)?;
        let arch = c_string(&format!("--gpu-architecture={arch}"))?;
        let options: Vec<CString> = options
            .iter()
            .map(|option| c_string(option))
            .collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = std::iter::once(&arch)
            .chain(&options)
            .map(|option| option.as_ptr())
            .collect();
        let count = c_int::try_from(pointers.len()).map_err(|_| "too many options".to_owned())?;

        let mut program = Program {
            library: self,
            handle: ptr::null_mut(),
        };
        // SAFETY: source and name are NUL-terminated and outlive the call; no headers are passed, which the
        // function takes as two null arrays and a count of zero.
        let status = unsafe {
            (self.create)(
                &mut program.handle,
                source.as_ptr(),
                c"module.cu".as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        self.succeed(status)?;
        // SAFETY: the handle was just created; `pointers` holds `count` NUL-terminated strings that outlive the call.
        let status = unsafe { (self.compile)(program.handle, count, pointers.as_ptr()) };
        let log = program.text(self.log)?;
        self.succeed(status)
            .map_err(|error| if log.trim().is_empty() { error } else { log.clone() })?;
        Ok(CompiledCuda {
            log,
            ptx: program.text(self.ptx)?,
            cubin: program.take(self.cubin)?,
        })
    }

    fn succeed(&self, status: Status) -> Result<(), String> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function returns a static NUL-terminated string for every status, known or not.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) };
        Err(format!("NVRTC: {}", text.to_string_lossy()))
    }
}

/// A compilation in progress; destroyed with the value.
struct Program<'a> {
    library: &'a Nvrtc,
    handle: Handle,
}

impl Program<'_> {
    fn take(&self, output: Output) -> Result<Vec<u8>, String> {
        let mut size = 0;
        // SAFETY: the handle is live; `size` receives the number of bytes that the second function writes.
        let status = unsafe { (output.size)(self.handle, &mut size) };
        self.library.succeed(status)?;
        let mut bytes = vec![0u8; size];
        // SAFETY: `bytes` has the size that the library asked for.
        let status = unsafe { (output.bytes)(self.handle, bytes.as_mut_ptr().cast()) };
        self.library.succeed(status)?;
        Ok(bytes)
    }

    /// A product that is text: the library counts the final NUL.
    fn text(&self, output: Output) -> Result<String, String> {
        let bytes = self.take(output)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle was created by this library and is destroyed once.
            unsafe { (self.library.destroy)(&mut self.handle) };
        }
    }
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|error| format!("the text has a NUL byte at {}", error.nul_position()))
}
