//! From source to loaded machine code: IR by way of PTX, PTX by the driver's linker, CUDA C by NVRTC, each kept on disk
//! as machine code, so that the next process compiles nothing; but PTX that moves registers is kept as a text, whose code the driver keeps.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use cudarc::driver::sys::{self, CUresult};
use cudarc::nvrtc::sys as nvrtc;
use perpetua_ir::back::Sm;
use perpetua_ir::verify::Verified;

use super::driver::{Shared, lock};
use super::entry::Entry;
use super::launch::{Compiled, Convention};
use super::memory::Pool;
use super::module::{Loader, Log, refused};
use super::record::PrintRing;
use crate::backend::{CompiledKernel, failed};
use crate::cache::{CacheKey, DiskCache};
use crate::error::{Error, Result};
use crate::fault::FaultRegistry;
use crate::future::{BoxFuture, ready};
use crate::info::BackendKind;
use crate::signature::Signature;
use crate::source::{CompileOptions, KernelId, KernelSource};

/// One context's compiler.
pub(super) struct Compiler {
    shared: Arc<Shared>,
    loader: Arc<Loader>,
    mapped: Arc<Pool>,
    ring: Arc<PrintRing>,
    /// The device's own generation: machine code is made for this device alone.
    sm: Sm,
    disk: Option<DiskCache>,
    /// What this context has compiled and somebody holds, by everything it depends on.
    done: Mutex<HashMap<CacheKey, Weak<Compiled>>>,
    #[cfg(feature = "testing")]
    pub(super) rewrite: std::sync::OnceLock<crate::backend::TextRewrite>,
}

/// A text that holds a NUL byte.
const WITH_NUL: Error = Error::InvalidState {
    operation: "assembling PTX",
    cause: "the text holds a NUL byte",
    remedy: "remove it",
};

/// What moves registers from lanes to others.
const MOVES_REGISTERS: &str = "setmaxnreg";

/// A source, as far as it has come on the caller's thread.
enum Job {
    Done(Arc<Compiled>),
    /// From disk.
    Found(CacheKey, Box<Entry>),
    Ir(CacheKey, Arc<Verified>),
    Ptx(CacheKey, String),
    CudaC(CacheKey, String),
}

impl Compiler {
    pub(super) fn new(shared: &Arc<Shared>, mapped: &Arc<Pool>, ring: &Arc<PrintRing>) -> Compiler {
        let (major, minor) = shared.info.compute_capability.unwrap_or((7, 0));
        Compiler {
            shared: Arc::clone(shared),
            loader: Loader::new(shared),
            mapped: Arc::clone(mapped),
            ring: Arc::clone(ring),
            // A driver that runs a generation knows the PTX version that names it.
            sm: Sm::of_device(major, minor),
            disk: DiskCache::open("cuda"),
            done: Mutex::default(),
            #[cfg(feature = "testing")]
            rewrite: std::sync::OnceLock::new(),
        }
    }

    /// Unloads code that nobody uses any more.
    pub(super) fn unload(&self) -> Result<()> {
        self.loader.unload()
    }

    pub(super) fn compile(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        self.run(self.take(source, options)?, options)
    }

    /// The same with the driver's compiler, and the loading, on a thread of our own.
    pub(super) fn compile_async(
        self: &Arc<Self>,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> BoxFuture<'static, Result<Arc<dyn CompiledKernel>>> {
        match self.take(source, options) {
            Ok(Job::Done(compiled)) => ready(Ok(compiled)),
            Ok(job) => {
                let (compiler, options) = (Arc::clone(self), options.clone());
                crate::background::run(move || compiler.run(job, &options))
            }
            Err(error) => failed(error),
        }
    }

    /// All that compiling needs of the source, which is not lowered when it is found in memory or on disk.
    fn take(&self, source: &KernelSource<'_>, options: &CompileOptions) -> Result<Job> {
        // What is known of a kernel, else the job of compiling it.
        let job = |id: KernelId, new: &dyn Fn(CacheKey) -> Result<Job>| {
            let key = self.key(id, options);
            self.known(key, options).map_or_else(|| new(key), Ok)
        };
        match source {
            KernelSource::Spec(spec) => job(spec.id(), &|key| {
                Ok(Job::Ir(key, spec.verified(self.shared.info.pointer_width())?))
            }),
            KernelSource::Ir(kernel) | KernelSource::Native(_, Some(kernel)) => {
                job(KernelId::of_ir(kernel), &|key| {
                    Ok(Job::Ir(key, Arc::new((*kernel).clone())))
                })
            }
            KernelSource::Ptx(text) => job(KernelId::of(&[b"ptx", text.as_bytes()]), &|key| {
                Ok(Job::Ptx(key, (*text).to_owned()))
            }),
            KernelSource::CudaC(text) => {
                let id = cuda_c_id(text, options.contract, nvrtc_version()?);
                job(id, &|key| Ok(Job::CudaC(key, (*text).to_owned())))
            }
            other => Err(Error::SourceUnsupported {
                backend: BackendKind::Cuda,
                given: other.kind(),
                takes: "kernel functions, IR, IR text, PTX and CUDA C",
            }),
        }
    }

    /// What memory or disk has under a key.
    fn known(&self, key: CacheKey, options: &CompileOptions) -> Option<Job> {
        if let Some(compiled) = lock(&self.done).get(&key).and_then(Weak::upgrade) {
            return Some(Job::Done(compiled));
        }
        let bytes = self.disk(options)?.get(key)?;
        Some(Job::Found(key, Box::new(Entry::decode(&bytes)?)))
    }

    fn key(&self, id: KernelId, options: &CompileOptions) -> CacheKey {
        let target = format!("{}{}", self.sm, if options.debug { " lines" } else { "" });
        CacheKey::new(id, &target, &self.shared.info.driver)
    }

    fn disk(&self, options: &CompileOptions) -> Option<&DiskCache> {
        self.disk.as_ref().filter(|_| !options.no_disk_cache)
    }

    fn run(&self, job: Job, options: &CompileOptions) -> Result<Arc<dyn CompiledKernel>> {
        let (key, entry) = match job {
            Job::Done(compiled) => return Ok(compiled),
            Job::Found(key, entry) => return Ok(self.share(key, self.load(*entry)?)),
            Job::Ir(key, kernel) => (key, self.entry_of(&kernel)?),
            Job::Ptx(key, text) => (key, Entry::plain(self.assemble("PTX text", &text)?)),
            Job::CudaC(key, text) => (key, Entry::plain(self.nvrtc(&text, options)?)),
        };
        if let Some(Err(error)) = self.disk(options).map(|disk| disk.put(key, &entry.encode())) {
            tracing::debug!(%error, "the compiled kernel was not kept on disk");
        }
        Ok(self.share(key, self.load(entry)?))
    }

    fn share(&self, key: CacheKey, compiled: Compiled) -> Arc<Compiled> {
        let mut done = lock(&self.done);
        // Another thread may have been first: then its module is the one to share.
        if let Some(first) = done.get(&key).and_then(Weak::upgrade) {
            return first;
        }
        done.retain(|_, compiled| compiled.strong_count() != 0);
        let compiled = Arc::new(compiled);
        done.insert(key, Arc::downgrade(&compiled));
        compiled
    }

    fn load(&self, entry: Entry) -> Result<Compiled> {
        let (name, wide, convention, sites) = match entry.kernel {
            None => (None, None, Convention::Plain, None),
            Some(kernel) => {
                let signature = Arc::new(Signature::described(&kernel.header, kernel.constant));
                let prints = !kernel.sites.prints.is_empty();
                let sites = FaultRegistry::global().register(kernel.sites)?;
                let convention = Convention::Checked {
                    signature,
                    site_base: sites.base(),
                    prints,
                };
                (Some(kernel.entry), kernel.wide, convention, Some(sites))
            }
        };
        Ok(Compiled {
            module: self
                .loader
                .load(name.as_deref().unwrap_or("PTX text"), &entry.cubin, sites)?,
            entry: name,
            wide,
            convention,
            ring: Arc::clone(&self.ring),
            mapped: Arc::clone(&self.mapped),
        })
    }

    /// Renders and assembles a kernel in IR.
    fn entry_of(&self, kernel: &Verified) -> Result<Entry> {
        let (source, wide) = perpetua_ir::back::ptx::render_with_wide(kernel, self.sm)
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
        Ok(Entry::checked(kernel, source, wide, cubin))
    }

    /// Turns PTX into machine code with the driver's linker; or leaves it to the driver when it loads the code. For the linker compiles what others may call, and so
    /// lanes keep the registers that they began with: where teams give each other some, products would wait for each other, and sums lie in memory. What the driver
    /// compiles so it keeps on disk itself.
    fn assemble(&self, name: &str, ptx: &str) -> Result<Vec<u8>> {
        if ptx.contains(MOVES_REGISTERS) {
            let text = CString::new(ptx).map_err(|_| WITH_NUL)?;
            return Ok(text.into_bytes_with_nul());
        }
        self.shared.enter()?;
        let mut log = Log::default();
        let (mut options, mut values) = log.options();
        let mut linker = std::ptr::null_mut();
        // SAFETY: options and values are as long as said; the log outlives the linker.
        let code = unsafe {
            sys::cuLinkCreate_v2(
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
                &raw mut linker,
            )
        };
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
                log.warn(name);
                // SAFETY: on success `image` has `len` bytes, owned by the linker until it is destroyed below.
                Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), len) }.to_vec())
            }
            Ok(code) => Err(refused(&self.shared, name, code, &log)),
            Err(_) => Err(WITH_NUL),
        };
        // SAFETY: created above, destroyed once.
        let _ = unsafe { sys::cuLinkDestroy(linker) };
        cubin
    }

    /// Compiles CUDA C++ to machine code with NVRTC, which is there (`nvrtc_version`).
    fn nvrtc(&self, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        let failed = |log: String| Error::Compile {
            backend: BackendKind::Cuda,
            kernel: "CUDA C text".into(),
            log,
        };
        let source = CString::new(text).map_err(|_| failed("the text holds a NUL byte".into()))?;
        let mut flags = vec![format!("--gpu-architecture={}", self.sm)];
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

/// The version of the NVRTC that is installed: major, minor.
fn nvrtc_version() -> Result<[i32; 2]> {
    // Once found it stays loaded.
    static FOUND: OnceLock<[i32; 2]> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(*found);
    }
    // SAFETY: looks for the library by name; loading it runs its initialisers only.
    if !unsafe { nvrtc::is_culib_present() } {
        return Err(Error::DriverNotFound {
            backend: BackendKind::Cuda,
            looked_for: "NVRTC (libnvrtc.so, nvrtc64_*.dll)".into(),
            remedy:
                "install the CUDA toolkit or its NVRTC package, or use IR or PTX, which need the driver alone"
                    .into(),
        });
    }
    let [mut major, mut minor] = [0; 2];
    // SAFETY: the library is there; both pointers are writable.
    match unsafe { nvrtc::nvrtcVersion(&raw mut major, &raw mut minor) } {
        nvrtc::nvrtcResult::NVRTC_SUCCESS => Ok(*FOUND.get_or_init(|| [major, minor])),
        code => Err(Error::Driver {
            backend: BackendKind::Cuda,
            operation: "nvrtcVersion".into(),
            message: format!("{code:?}"),
        }),
    }
}

/// What a text is kept under. NVRTC makes the machine code, and comes with the toolkit: the driver's version, which every key has,
/// says nothing of it.
fn cuda_c_id(text: &str, contract: bool, [major, minor]: [i32; 2]) -> KernelId {
    let version = [major.to_le_bytes(), minor.to_le_bytes()];
    KernelId::of(&[
        b"cuda c",
        text.as_bytes(),
        &[u8::from(contract)],
        version.as_flattened(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nvrtc_has_entries_of_its_own() {
        let text = "extern \"C\" __global__ void k() {}";
        let ids = [[12, 8], [12, 9], [13, 8]].map(|version| cuda_c_id(text, false, version));
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
        assert!(cuda_c_id(text, true, [12, 8]) != ids[0]);
        assert!(cuda_c_id(text, false, [12, 8]) == ids[0]);
    }
}
