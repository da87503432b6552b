//! From source to loaded machine code: IR by way of PTX, PTX by the driver's linker, CUDA C by NVRTC, each kept on disk
//! as machine code, so that the next process compiles nothing.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUjit_option, CUresult};
use cudarc::nvrtc::sys as nvrtc;
use perpetua_ir::verify::Verified;

use super::driver::{Shared, lock};
use super::entry::Entry;
use super::launch::{Compiled, Convention, Module};
use super::memory::Pool;
use super::record::PrintRing;
use crate::backend::CompiledKernel;
use crate::cache::{CacheKey, DiskCache};
use crate::error::{Error, Result};
use crate::fault::FaultRegistry;
use crate::info::BackendKind;
use crate::signature::Signature;
use crate::source::{CompileOptions, KernelId, KernelSource};

/// One context's compiler.
pub(super) struct Compiler {
    shared: Arc<Shared>,
    mapped: Arc<Pool>,
    ring: Arc<PrintRing>,
    /// Compute capability times ten.
    sm: u32,
    disk: Option<DiskCache>,
    /// What this context has compiled, by everything it depends on.
    done: Mutex<HashMap<CacheKey, Arc<Compiled>>>,
    #[cfg(feature = "testing")]
    pub(super) rewrite: std::sync::OnceLock<crate::backend::TextRewrite>,
}

impl Compiler {
    pub(super) fn new(shared: &Arc<Shared>, mapped: &Arc<Pool>, ring: &Arc<PrintRing>) -> Compiler {
        let (major, minor) = shared.info.compute_capability.unwrap_or((7, 0));
        Compiler {
            shared: Arc::clone(shared),
            mapped: Arc::clone(mapped),
            ring: Arc::clone(ring),
            sm: major * 10 + minor,
            disk: DiskCache::open("cuda"),
            done: Mutex::default(),
            #[cfg(feature = "testing")]
            rewrite: std::sync::OnceLock::new(),
        }
    }

    pub(super) fn compile(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        let compiled = match source {
            KernelSource::Spec(spec) => self.cached(spec.id(), options, || {
                self.entry_of(&*spec.verified(self.shared.info.pointer_width())?)
            })?,
            KernelSource::Ir(kernel) | KernelSource::Native(_, Some(kernel)) => {
                self.cached(KernelId::of_ir(kernel), options, || self.entry_of(kernel))?
            }
            KernelSource::Ptx(text) => {
                let id = KernelId::of(&[b"ptx", text.as_bytes()]);
                self.cached(id, options, || Ok(Entry::plain(self.assemble("PTX text", text)?)))?
            }
            KernelSource::CudaC(text) => {
                let id = KernelId::of(&[b"cuda c", text.as_bytes(), &[u8::from(options.contract)]]);
                self.cached(id, options, || Ok(Entry::plain(self.nvrtc(text, options)?)))?
            }
            other => {
                return Err(Error::SourceUnsupported {
                    backend: BackendKind::Cuda,
                    given: other.kind(),
                    takes: "kernel functions, IR, IR text, PTX and CUDA C",
                });
            }
        };
        Ok(compiled)
    }

    /// The kernel from memory, else from disk, else from `build`.
    fn cached(
        &self,
        id: KernelId,
        options: &CompileOptions,
        build: impl FnOnce() -> Result<Entry>,
    ) -> Result<Arc<Compiled>> {
        let target = format!("sm_{}{}", self.sm, if options.debug { " lines" } else { "" });
        let key = CacheKey::new(id, &target, &self.shared.info.driver);
        if let Some(compiled) = lock(&self.done).get(&key) {
            return Ok(Arc::clone(compiled));
        }
        let disk = self.disk.as_ref().filter(|_| !options.no_disk_cache);
        let found = disk
            .and_then(|d| d.get(key))
            .and_then(|bytes| Entry::decode(&bytes));
        let entry = match found {
            Some(entry) => entry,
            None => {
                let entry = build()?;
                if let Some(Err(error)) = disk.map(|d| d.put(key, &entry.encode())) {
                    tracing::debug!(%error, "the compiled kernel was not kept on disk");
                }
                entry
            }
        };
        let compiled = Arc::new(self.load(entry)?);
        // Another thread may have been first: then its module is the one to share.
        Ok(Arc::clone(lock(&self.done).entry(key).or_insert(compiled)))
    }

    fn load(&self, entry: Entry) -> Result<Compiled> {
        let module = Module::load(&self.shared, &entry.cubin)?;
        let (name, convention) = match entry.kernel {
            None => (None, Convention::Plain),
            Some(kernel) => {
                let signature = Arc::new(Signature::described(&kernel.header, kernel.constant));
                let prints = !kernel.sites.prints.is_empty();
                let site_base = FaultRegistry::global().register(kernel.sites)?;
                (
                    Some(kernel.entry),
                    Convention::Checked {
                        signature,
                        site_base,
                        prints,
                    },
                )
            }
        };
        Ok(Compiled {
            module,
            entry: name,
            convention,
            ring: Arc::clone(&self.ring),
            mapped: Arc::clone(&self.mapped),
        })
    }

    /// Renders and assembles a kernel in IR.
    fn entry_of(&self, kernel: &Verified) -> Result<Entry> {
        let source = perpetua_ir::back::ptx::render(kernel, self.sm)
            .map_err(|error| Error::render(BackendKind::Cuda, error))?;
        #[cfg(feature = "testing")]
        let source = match self.rewrite.get() {
            Some(rewrite) => perpetua_ir::back::Source {
                text: rewrite(&source.text),
                ..source
            },
            None => source,
        };
        let cubin = self.assemble(&kernel.kernel().name, &source.text)?;
        Ok(Entry::checked(kernel, source, cubin))
    }

    /// Turns PTX into machine code with the driver's linker.
    fn assemble(&self, name: &str, ptx: &str) -> Result<Vec<u8>> {
        self.shared.enter()?;
        let mut log = vec![0u8; 16 * 1024];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        let mut linker = std::ptr::null_mut();
        // SAFETY: options and values are as long as said; the log outlives the linker.
        let code =
            unsafe { sys::cuLinkCreate_v2(2, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut linker) };
        self.shared.check(code, || "cuLinkCreate".into())?;
        let text = CString::new(ptx).map_err(|e| Error::Compile {
            backend: BackendKind::Cuda,
            kernel: name.to_owned(),
            log: format!("the text has a NUL byte at {}", e.nul_position()),
        });
        let (mut image, mut len) = (std::ptr::null_mut(), 0);
        let code = text.as_ref().map(|text| {
            let bytes = text.as_bytes_with_nul();
            // SAFETY: the linker is alive; the text and its length belong together; no further options.
            unsafe {
                let code = sys::cuLinkAddData_v2(
                    linker,
                    sys::CUjitInputType::CU_JIT_INPUT_PTX,
                    bytes.as_ptr().cast_mut().cast(),
                    bytes.len(),
                    c"kernel".as_ptr(),
                    0,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                );
                if code == CUresult::CUDA_SUCCESS {
                    sys::cuLinkComplete(linker, &raw mut image, &raw mut len)
                } else {
                    code
                }
            }
        });
        let cubin = match code {
            Ok(CUresult::CUDA_SUCCESS) => {
                // SAFETY: on success `image` has `len` bytes, owned by the linker until it is destroyed below.
                Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), len) }.to_vec())
            }
            Ok(code) => Err(self.refused(name, code, &log)),
            Err(_) => Err(Error::InvalidState {
                operation: "assembling PTX",
                cause: "the text holds a NUL byte",
                remedy: "remove it",
            }),
        };
        // SAFETY: created above, destroyed once.
        let _ = unsafe { sys::cuLinkDestroy(linker) };
        cubin
    }

    /// The error for a text that the driver's compiler refused.
    fn refused(&self, name: &str, code: CUresult, log: &[u8]) -> Error {
        match code {
            CUresult::CUDA_ERROR_INVALID_PTX
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | CUresult::CUDA_ERROR_INVALID_IMAGE => {
                let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
                let words = String::from_utf8_lossy(&log[..end]);
                let log = format!("{}\n{}", super::driver::describe(code), words.trim_end());
                Error::Compile {
                    backend: BackendKind::Cuda,
                    kernel: name.to_owned(),
                    log,
                }
            }
            other => match self.shared.check(other, || format!("assembling `{name}`")) {
                Err(error) => error,
                Ok(()) => Error::Compile {
                    backend: BackendKind::Cuda,
                    kernel: name.to_owned(),
                    log: "the driver gave no reason".into(),
                },
            },
        }
    }

    /// Compiles CUDA C++ to machine code with NVRTC, if it is installed.
    fn nvrtc(&self, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        // SAFETY: looks for the library by name; loading it runs its initialisers only.
        if !unsafe { nvrtc::is_culib_present() } {
            return Err(Error::DriverNotFound {
                backend: BackendKind::Cuda,
                looked_for: "NVRTC (libnvrtc.so, nvrtc64_*.dll)".into(),
                remedy: "install the CUDA toolkit or its NVRTC package, or use IR or PTX, which need the driver alone"
                    .into(),
            });
        }
        let failed = |log: String| Error::Compile {
            backend: BackendKind::Cuda,
            kernel: "CUDA C text".into(),
            log,
        };
        let source = CString::new(text).map_err(|_| failed("the text holds a NUL byte".into()))?;
        let mut flags = vec![format!("--gpu-architecture=sm_{}", self.sm)];
        flags.push(format!("--fmad={}", options.contract));
        if options.debug {
            flags.push("--generate-line-info".into());
        }
        let flags: Vec<CString> = flags.into_iter().filter_map(|f| CString::new(f).ok()).collect();
        let flags: Vec<*const c_char> = flags.iter().map(|f| f.as_ptr()).collect();
        let mut program = std::ptr::null_mut();
        // SAFETY: strings end in NUL and outlive the calls; the program is created before and destroyed after its use;
        // buffers have the sizes that NVRTC asks for.
        unsafe {
            let (none, names) = (std::ptr::null(), std::ptr::null());
            let created = nvrtc::nvrtcCreateProgram(
                &raw mut program,
                source.as_ptr(),
                c"kernel.cu".as_ptr(),
                0,
                none,
                names,
            );
            if created != nvrtc::nvrtcResult::NVRTC_SUCCESS {
                return Err(failed(format!("nvrtcCreateProgram: {created:?}")));
            }
            let compiled = nvrtc::nvrtcCompileProgram(program, flags.len() as i32, flags.as_ptr());
            let mut len = 0;
            let result = if compiled == nvrtc::nvrtcResult::NVRTC_SUCCESS {
                nvrtc::nvrtcGetCUBINSize(program, &raw mut len);
                let mut cubin = vec![0u8; len];
                nvrtc::nvrtcGetCUBIN(program, cubin.as_mut_ptr().cast());
                Ok(cubin)
            } else {
                nvrtc::nvrtcGetProgramLogSize(program, &raw mut len);
                let mut log = vec![0u8; len];
                nvrtc::nvrtcGetProgramLog(program, log.as_mut_ptr().cast());
                let words = String::from_utf8_lossy(&log)
                    .trim_end_matches('\0')
                    .trim_end()
                    .to_owned();
                // It loads a second library by name, which is looked for on its own.
                let remedy = if compiled == nvrtc::nvrtcResult::NVRTC_ERROR_BUILTIN_OPERATION_FAILURE {
                    "\nNVRTC did not find its second library, libnvrtc-builtins: put its folder on LD_LIBRARY_PATH \
                     (on Windows: PATH)"
                } else {
                    ""
                };
                Err(failed(format!("{compiled:?}\n{words}{remedy}")))
            };
            nvrtc::nvrtcDestroyProgram(&raw mut program);
            result
        }
    }
}
