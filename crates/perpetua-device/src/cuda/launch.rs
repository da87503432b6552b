//! Kernels and their launches. The hot path: no allocation, one driver call beside the launch itself.

use std::any::Any;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUfunction_attribute};
use perpetua_ir::back::ptx::WideEntry;
use perpetua_ir::ir::Stages;

use super::driver::{Shared, lock};
use super::maps;
use super::memory::{Memory, Pool};
use super::module::Module;
use super::record::PrintRing;
use super::stream::Stream;
use crate::backend::{CompiledKernel, GpuStream, KernelFunction, Launch};
use crate::dim::{Dim3, LaunchConfig};
use crate::error::{Error, Result};
use crate::info::BackendKind;
use crate::ptr::ContextId;
use crate::signature::{KernelArg, Signature};

/// Arguments that fit the stack buffer; more go to the heap.
const INLINE: usize = 24;

/// Lanes that a multiprocessor can hold, on most generations.
const LANES_HELD: u64 = 2048;

/// How a compiled kernel wants its arguments.
#[derive(Clone, Debug)]
pub(super) enum Convention {
    /// Lengths beside addresses, fault record and site base at the end, the print ring after them if it prints.
    Checked {
        signature: Arc<Signature>,
        site_base: u32,
        prints: bool,
    },
    /// Addresses and values only.
    Plain,
}

/// A compiled module, with what its launches need.
pub(super) struct Compiled {
    pub(super) module: Arc<Module>,
    pub(super) entry: Option<String>,
    pub(super) wide: Option<WideEntry>,
    pub(super) convention: Convention,
    pub(super) ring: Arc<PrintRing>,
    pub(super) mapped: Arc<Pool>,
}

impl CompiledKernel for Compiled {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn function_names(&self) -> Vec<String> {
        self.entry
            .clone()
            .map_or_else(|| self.module.names(), |name| vec![name])
    }

    fn get_function(&self, name: &str) -> Result<Arc<dyn KernelFunction>> {
        let missing = || Error::FunctionNotFound {
            name: name.to_owned(),
            available: self.function_names(),
        };
        // A kernel's second entry point takes one parameter more, which nobody but a launch here knows.
        if self.entry.as_ref().is_some_and(|entry| entry != name) {
            return Err(missing());
        }
        let handle = self.module.function(name).ok_or_else(missing)?;
        let shared = self.module.shared();
        let attribute = |which: CUfunction_attribute| {
            let mut value = 0;
            // SAFETY: the function is loaded; the pointer is writable.
            let code = unsafe { sys::cuFuncGetAttribute(&raw mut value, which, handle) };
            shared
                .check(code, || "cuFuncGetAttribute".into())
                .map(|()| value.max(0) as u32)
        };
        let ring = match &self.convention {
            Convention::Checked { prints: true, .. } => {
                Some(self.ring.address(&self.mapped, self.module.sites())?)
            }
            _ => None,
        };
        let wide = match &self.wide {
            Some(wide) => Some(Wide {
                handle: self.module.function(&wide.name).ok_or_else(missing)?,
                blocks: wide.blocks,
                lanes: wide_from(shared, wide.blocks),
            }),
            None => None,
        };
        Ok(Arc::new(Function {
            handle,
            wide,
            name: name.to_owned(),
            max_threads: attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            // The default limit of fixed and dynamic memory together: more has to be asked for.
            plain_shared: 48 * 1024
                - attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?.min(48 * 1024),
            raised_shared: Mutex::new(0),
            ring,
            convention: self.convention.clone(),
            module: Arc::clone(&self.module),
        }))
    }
}

/// The entry point for large grids.
struct Wide {
    handle: sys::CUfunction,
    /// How many blocks along x one of it stands for.
    blocks: u32,
    /// From how many lanes on it is launched.
    lanes: u64,
}

/// The grids for which an entry point is worth while of which one block does the work of several: those that fill the device with it.
fn wide_from(shared: &Shared, blocks: u32) -> u64 {
    #[cfg(feature = "testing")]
    if shared.widens_all.load(std::sync::atomic::Ordering::Relaxed) {
        return 0;
    }
    u64::from(blocks) * u64::from(shared.info.multiprocessors.unwrap_or(1)) * LANES_HELD
}

struct Function {
    handle: sys::CUfunction,
    wide: Option<Wide>,
    name: String,
    max_threads: u32,
    plain_shared: u32,
    raised_shared: Mutex<u32>,
    ring: Option<u64>,
    convention: Convention,
    module: Arc<Module>,
}

// SAFETY: the driver's handle may be used from any thread; the rest is Send and Sync.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// Allows `bytes` of dynamic shared memory.
    #[cold]
    fn raise_shared(&self, bytes: u32) -> Result<()> {
        let mut raised = lock(&self.raised_shared);
        if *raised >= bytes {
            return Ok(());
        }
        let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        let code = unsafe { sys::cuFuncSetAttribute(self.handle, which, bytes as i32) };
        self.module.shared().check(code, || {
            format!("asking for {bytes} bytes of dynamic shared memory")
        })?;
        *raised = bytes;
        Ok(())
    }
}

impl Function {
    /// Launches blocks of which several, or all, run at the same time.
    ///
    /// # Safety
    /// As for `cuLaunchKernel`: `params` points to the kernel's parameters, `stream` is alive, and the context current.
    #[cold]
    unsafe fn launch_together(
        &self,
        config: &LaunchConfig,
        stream: sys::CUstream,
        params: *mut *mut c_void,
    ) -> Result<()> {
        use sys::CUlaunchAttributeID_enum as Id;
        use sys::CUlaunchAttributeValue_union as Value;
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
            cluster,
            cooperative,
        } = *config;
        if cooperative {
            self.check_room(config)?;
        }
        // Every byte is said, so that the driver reads no stray one.
        let attribute = |id| sys::CUlaunchAttribute_st {
            id,
            pad: [0; 4],
            value: Value { pad: [0; 64] },
        };
        let (mut attributes, mut count) = ([attribute(Id::CU_LAUNCH_ATTRIBUTE_IGNORE); 2], 0);
        if cooperative {
            attributes[count].id = Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            attributes[count].value.cooperative = 1;
            count += 1;
        }
        if cluster != Dim3::ONE {
            attributes[count].id = Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attributes[count].value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 {
                x: cluster.x,
                y: cluster.y,
                z: cluster.z,
            };
            count += 1;
        }
        let driver = sys::CUlaunchConfig_st {
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: shared_bytes,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: count as u32,
        };
        // SAFETY: by the caller's promise; `driver` and the attributes, of which `count` are set, outlive the call.
        let code =
            unsafe { sys::cuLaunchKernelEx(&raw const driver, self.handle, params, std::ptr::null_mut()) };
        self.module.shared().check(code, || {
            let together = if cooperative { ", all together" } else { "" };
            format!(
                "launching `{}` with grid {grid}, block {block}, cluster {cluster}{together}",
                self.name
            )
        })
    }

    /// Bytes of the block's memory that matrices in stages take, beside what a launch asks for.
    fn stage_bytes(&self) -> u32 {
        self.signature()
            .and_then(Signature::stages)
            .map_or(0, Stages::bytes)
    }

    /// Blocks that a multiprocessor has room for at the same time.
    fn occupancy(&self, lanes: i32, shared_bytes: usize) -> Result<u32> {
        let shared = self.module.shared();
        shared.enter()?;
        let mut blocks = 0;
        // SAFETY: the context is current and the function is loaded; the pointer is writable.
        let code = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.handle,
                lanes,
                shared_bytes,
            )
        };
        shared.check(code, || {
            format!("asking how many blocks of `{}` have room", self.name)
        })?;
        Ok(blocks.max(0) as u32)
    }

    /// Checks that all blocks of a launch have room on the device at the same time.
    fn check_room(&self, config: &LaunchConfig) -> Result<()> {
        let resident = self.occupancy(config.block.count() as i32, config.shared_bytes as usize)?;
        let multiprocessors = self.module.shared().info.multiprocessors.unwrap_or(1);
        let limit = u64::from(resident) * u64::from(multiprocessors);
        if config.grid.count() > limit {
            return Err(Error::LaunchLimit {
                backend: BackendKind::Cuda,
                kernel: self.name.clone(),
                what: "number of blocks on the device at the same time",
                found: config.grid.count(),
                limit,
            });
        }
        Ok(())
    }
}

/// Arguments as `cuLaunchKernel` takes them: pointers to values, most of which stand in words of ours.
struct Packed<'a> {
    /// Room for as many words as `params` has pointers.
    words: *mut u64,
    params: &'a mut [*mut c_void],
    count: usize,
}

impl<'a> Packed<'a> {
    fn new(words: &'a mut [u64], params: &'a mut [*mut c_void]) -> Packed<'a> {
        debug_assert_eq!(words.len(), params.len());
        Packed {
            words: words.as_mut_ptr(),
            params,
            count: 0,
        }
    }

    /// Adds a value of up to 8 bytes.
    #[inline]
    fn word(&mut self, value: u64) {
        let slot = &mut self.params[self.count];
        // SAFETY: `words` has as many words as `params` has elements, and indexing `params` has checked the count; the
        // words are borrowed for 'a and reached through this pointer alone.
        unsafe {
            let word = self.words.add(self.count);
            word.write(value);
            *slot = word.cast();
        }
        self.count += 1;
    }

    /// Adds a value that stays where it lies.
    #[inline]
    fn bytes(&mut self, value: &[u8]) {
        self.params[self.count] = value.as_ptr().cast_mut().cast();
        self.count += 1;
    }

    /// Adds the description of a matrix, which stays where it lies, too.
    fn map(&mut self, map: &'a sys::CUtensorMap) {
        self.params[self.count] = std::ptr::from_ref(map).cast_mut().cast();
        self.count += 1;
    }
}

impl KernelFunction for Function {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn context_id(&self) -> ContextId {
        self.module.shared().id
    }

    fn signature(&self) -> Option<&Signature> {
        match &self.convention {
            Convention::Checked { signature, .. } => Some(signature),
            Convention::Plain => None,
        }
    }

    fn max_threads_per_block(&self) -> u32 {
        self.max_threads
    }

    fn blocks_per_multiprocessor(&self, lanes: u32, shared_bytes: u32) -> Result<Option<u32>> {
        let shared_bytes = shared_bytes.saturating_add(self.stage_bytes());
        self.occupancy(lanes as i32, shared_bytes as usize).map(Some)
    }

    unsafe fn launch(
        &self,
        launch: &Launch<'_>,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        let mut config = launch.config;
        config.shared_bytes += self.stage_bytes();
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
            ..
        } = config;
        if grid.count() == 0 {
            return Ok(());
        }
        let Some(stream) = stream.as_any().downcast_ref::<Stream>() else {
            return Err(Error::WrongDevice {
                operation: "launch",
                subject: "the stream".into(),
            });
        };
        let shared = self.module.shared();
        shared.enter()?;
        let target = stream.core().target()?;
        if shared_bytes > self.plain_shared {
            self.raise_shared(shared_bytes)?;
        }
        // Two words a buffer, and seven hidden ones.
        const HIDDEN: usize = 7;
        const ROOM: usize = 2 * INLINE + HIDDEN;
        let (mut words, mut params) = ([0; ROOM], [std::ptr::null_mut(); ROOM]);
        let (mut more_words, mut more_params);
        let mut packed = if args.len() <= INLINE {
            Packed::new(&mut words, &mut params)
        } else {
            let room = 2 * args.len() + HIDDEN;
            more_words = vec![0; room];
            more_params = vec![std::ptr::null_mut(); room];
            Packed::new(&mut more_words, &mut more_params)
        };
        let checked = matches!(self.convention, Convention::Checked { .. });
        let mut holds = false;
        for arg in args {
            match arg {
                KernelArg::Buffer(buffer) => {
                    let Some(memory) = buffer.ptr.downcast::<Memory>() else {
                        return Err(Error::WrongDevice {
                            operation: "launch",
                            subject: "a buffer".into(),
                        });
                    };
                    holds |= target.use_of(memory)?;
                    packed.word(memory.start() + buffer.ptr.offset());
                    if checked {
                        packed.word(buffer.len);
                    }
                }
                KernelArg::Value(value) => packed.bytes(value.bytes()),
            }
        }
        let together = config.cooperative || config.cluster != Dim3::ONE;
        let wide = self
            .wide
            .as_ref()
            .filter(|wide| !together && grid.x >= wide.blocks && grid.count() * block.count() >= wide.lanes);
        if wide.is_some() {
            packed.word(grid.x.into());
        }
        if let Convention::Checked { site_base, .. } = &self.convention {
            packed.word(target.fault_address);
            packed.word(u64::from(*site_base));
            if let Some(ring) = self.ring {
                packed.word(ring);
            }
        }
        let stages = self.signature().and_then(Signature::stages);
        let maps = stages.map(|stages| maps::of(shared, stages, args)).transpose()?;
        for map in maps.iter().flatten().flatten() {
            packed.map(map);
        }
        let params = packed.params.as_mut_ptr();
        target.use_module(&self.module);
        if together {
            // SAFETY: as below.
            unsafe { self.launch_together(&config, target.handle, params)? };
            return if holds { target.hold_all(args) } else { Ok(()) };
        }
        let (handle, blocks) = wide.map_or((self.handle, grid.x), |wide| {
            (wide.handle, grid.x.div_ceil(wide.blocks))
        });
        // SAFETY: the caller vouches for arguments and limits, which are the same for both entry points; each pointer in `params`
        // is valid for the call, which copies what they point to; function and stream are alive and of the current context.
        let code = unsafe {
            sys::cuLaunchKernel(
                handle,
                blocks,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared_bytes,
                target.handle,
                params,
                std::ptr::null_mut(),
            )
        };
        shared.check(code, || {
            format!("launching `{}` with grid {grid}, block {block}", self.name)
        })?;
        if holds { target.hold_all(args) } else { Ok(()) }
    }
}
