//! From source to pipelines. The work-group size is part of a WGSL program, so a kernel has a pipeline for each size
//! (and amount of dynamic workgroup memory) that it is launched with, made at the first such launch.

use std::any::Any;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, Weak};

use perpetua_ir::back::ArgsLayout;
use perpetua_ir::verify::Verified;

use super::device::{Shared, lock};
use super::launch::Function;
use super::memory::Memory;
use super::stream::StreamCore;
use crate::backend::{CompiledKernel, KernelFunction};
use crate::cache::{CacheKey, DiskCache};
use crate::dim::Dim3;
use crate::error::{Error, Result};
use crate::fault::{FaultRegistry, KernelSites};
use crate::info::BackendKind;
use crate::ptr::DevicePtr;
use crate::signature::Signature;
use crate::source::{CompileOptions, KernelId, KernelSource};

/// Bind groups kept for each kernel; more distinct buffers than this start over.
const GROUPS: usize = 256;

/// One context's compiler.
pub(super) struct Compiler {
    shared: Arc<Shared>,
    /// The driver's pipelines from earlier processes, where the device can keep them.
    kept: Option<Arc<Kept>>,
    loaded: Mutex<Vec<Weak<Loaded>>>,
}

/// The driver's pipeline cache, and where it is kept.
struct Kept {
    cache: wgpu::PipelineCache,
    disk: DiskCache,
    key: CacheKey,
}

impl Compiler {
    pub(super) fn new(shared: &Arc<Shared>, adapter: &wgpu::Adapter) -> Compiler {
        let kept = || {
            if !shared.features.contains(wgpu::Features::PIPELINE_CACHE) {
                return None;
            }
            let name = wgpu::util::pipeline_cache_key(&adapter.get_info())?;
            let disk = DiskCache::open("wgpu")?;
            let key = CacheKey::new(
                KernelId::of(&[name.as_bytes()]),
                "pipelines",
                &shared.info().driver,
            );
            let data = disk.get(key);
            // SAFETY: the data came from `get_data` of a cache with the same key (adapter and driver), and passed its
            // checksum; `fallback` lets the driver start over when it does not know it.
            let cache = unsafe {
                shared
                    .device
                    .create_pipeline_cache(&wgpu::PipelineCacheDescriptor {
                        label: None,
                        data: data.as_deref(),
                        fallback: true,
                    })
            };
            Some(Arc::new(Kept { cache, disk, key }))
        };
        Compiler {
            kept: kept(),
            shared: Arc::clone(shared),
            loaded: Mutex::default(),
        }
    }

    /// Lets go of buffers that cached bind groups keep.
    pub(super) fn forget_bindings(&self) {
        for loaded in lock(&self.loaded).iter().filter_map(Weak::upgrade) {
            lock(&loaded.groups).clear();
        }
    }

    pub(super) fn compile(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        let width = self.shared.info().pointer_width();
        let loaded = match source {
            KernelSource::Spec(spec) => self.checked(spec.verified(width)?)?,
            KernelSource::Ir(kernel) | KernelSource::Native(_, Some(kernel)) => {
                self.checked(Arc::new((*kernel).clone()))?
            }
            KernelSource::Wgsl(text) => self.plain((*text).to_owned()),
            other => {
                return Err(Error::SourceUnsupported {
                    backend: BackendKind::Wgpu,
                    given: other.kind(),
                    takes: "kernel functions, IR, IR text and WGSL",
                });
            }
        };
        if let (Some(block), Program::Kernel(_)) = (options.block, &loaded.program) {
            loaded.pipeline(&loaded.name, block, options.shared_bytes)?;
        }
        let mut all = lock(&self.loaded);
        all.retain(|l| l.strong_count() != 0);
        all.push(Arc::downgrade(&loaded));
        Ok(Arc::new(Compiled(loaded)))
    }

    fn checked(&self, kernel: Arc<Verified>) -> Result<Arc<Loaded>> {
        let ir = kernel.kernel();
        // Rendered once now, for the sites and for errors to come from here; the size changes nothing but a number.
        let rendered = render_for(&self.shared, &kernel, ir.block_size.unwrap_or([1, 1, 1]), 0)?;
        let buffers = ArgsLayout::binding(ir);
        let most = self.shared.info().limits.max_buffers;
        if buffers > most {
            return Err(Error::Limit {
                what: "buffer parameters of one kernel",
                found: buffers.into(),
                limit: most.into(),
                remedy: "pass fewer buffers, or structs of several values in one",
            });
        }
        let can_fault = !rendered.faults.is_empty();
        let site_base = FaultRegistry::global().register(KernelSites {
            kernel: ir.name.clone(),
            source: ir.source.clone(),
            faults: rendered.faults,
            prints: rendered.prints,
        })?;
        let convention = Convention::Checked {
            signature: Signature::of(ir),
            layout: ArgsLayout::of(ir),
            site_base,
            can_fault,
        };
        let layout = self.layout(buffers);
        Ok(self.load(ir.name.clone(), Program::Kernel(kernel), convention, Some(layout)))
    }

    fn plain(&self, text: String) -> Arc<Loaded> {
        self.load("WGSL text".into(), Program::Text(text), Convention::Plain, None)
    }

    fn load(
        &self,
        name: String,
        program: Program,
        convention: Convention,
        layout: Option<wgpu::BindGroupLayout>,
    ) -> Arc<Loaded> {
        Arc::new(Loaded {
            shared: Arc::clone(&self.shared),
            kept: self.kept.clone(),
            name,
            program,
            convention,
            layout,
            pipelines: Mutex::default(),
            groups: Mutex::default(),
        })
    }

    /// Buffers, argument block, fault record.
    fn layout(&self, buffers: u32) -> wgpu::BindGroupLayout {
        let entry = |binding, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset,
                min_binding_size: None,
            },
            count: None,
        };
        let storage = wgpu::BufferBindingType::Storage { read_only: false };
        let mut entries: Vec<_> = (0..buffers).map(|i| entry(i, storage, false)).collect();
        entries.push(entry(buffers, wgpu::BufferBindingType::Uniform, true));
        entries.push(entry(buffers + 1, storage, false));
        self.shared
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &entries,
            })
    }
}

fn render_for(
    shared: &Shared,
    kernel: &Verified,
    block: [u32; 3],
    dynamic_shared: u32,
) -> Result<perpetua_ir::back::Source> {
    let _ = (shared, kernel, block, dynamic_shared);
    Err(Error::Unsupported {
        backend: BackendKind::Wgpu,
        operation: "compile kernels from IR",
        remedy: "give it WGSL",
    })
}

enum Program {
    Kernel(Arc<Verified>),
    Text(String),
}

/// How a kernel wants its arguments.
pub(super) enum Convention {
    /// As `perpetua_ir::back` documents for WGSL.
    Checked {
        signature: Signature,
        layout: ArgsLayout,
        site_base: u32,
        can_fault: bool,
    },
    /// Buffers, then values in a uniform.
    Plain,
}

/// A pipeline for one work-group size.
pub(super) struct Pipeline {
    pub(super) pipeline: wgpu::ComputePipeline,
}

/// A pipeline's entry point, work-group size and dynamic workgroup memory.
type Shape = (String, [u32; 3], u32);
/// Buffers and the argument block's size.
type Bindings = (Vec<wgpu::Buffer>, u64);

/// A kernel, or the entry points of a text.
pub(super) struct Loaded {
    pub(super) shared: Arc<Shared>,
    kept: Option<Arc<Kept>>,
    name: String,
    program: Program,
    pub(super) convention: Convention,
    layout: Option<wgpu::BindGroupLayout>,
    pipelines: Mutex<HashMap<Shape, Arc<Pipeline>>>,
    groups: Mutex<HashMap<Bindings, wgpu::BindGroup>>,
}

impl Loaded {
    pub(super) fn can_fault(&self) -> bool {
        matches!(self.convention, Convention::Checked { can_fault: true, .. })
    }

    /// The pipeline for a work-group size.
    pub(super) fn pipeline(&self, entry: &str, block: Dim3, dynamic_shared: u32) -> Result<Arc<Pipeline>> {
        let text = matches!(self.program, Program::Text(_));
        let shape = match text {
            true => (entry.to_owned(), [0; 3], 0),
            false => (String::new(), block.to_array(), dynamic_shared),
        };
        if let Some(pipeline) = lock(&self.pipelines).get(&shape) {
            return Ok(Arc::clone(pipeline));
        }
        let pipeline = Arc::new(self.build(entry, block, dynamic_shared)?);
        Ok(Arc::clone(lock(&self.pipelines).entry(shape).or_insert(pipeline)))
    }

    fn build(&self, entry: &str, block: Dim3, dynamic_shared: u32) -> Result<Pipeline> {
        let device = &self.shared.device;
        let (source, entry, trusted) = match &self.program {
            Program::Text(text) => (text.clone(), entry.to_owned(), false),
            Program::Kernel(kernel) => {
                let source = render_for(&self.shared, kernel, block.to_array(), dynamic_shared)?;
                (source.text, source.entry, true)
            }
        };
        let make = || {
            let descriptor = wgpu::ShaderModuleDescriptor {
                label: Some(&self.name),
                source: wgpu::ShaderSource::Wgsl(source.into()),
            };
            let module = if trusted {
                // SAFETY: rendered from verified IR, whose every access is checked in the program itself or proven in
                // range; unchecked IR is made by `unsafe` constructors only, whose callers vouch for it.
                unsafe {
                    device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
                }
            } else {
                device.create_shader_module(descriptor)
            };
            let layout = self.layout.as_ref().map(|group| {
                device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                    label: None,
                    bind_group_layouts: &[Some(group)],
                    immediate_size: 0,
                })
            });
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(&self.name),
                layout: layout.as_ref(),
                module: &module,
                entry_point: Some(&entry),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Kernels say themselves what they start from.
                    zero_initialize_workgroup_memory: !trusted || self.uses_shared(),
                    ..wgpu::PipelineCompilationOptions::default()
                },
                cache: self.kept.as_ref().map(|k| &k.cache),
            })
        };
        let (pipeline, error) = self.shared.scoped(wgpu::ErrorFilter::Validation, make);
        if let Some(error) = error {
            return Err(Error::Compile {
                backend: BackendKind::Wgpu,
                kernel: self.name.clone(),
                log: error.to_string(),
            });
        }
        if let Some(kept) = &self.kept
            && let Some(data) = kept.cache.get_data()
            && let Err(error) = kept.disk.put(kept.key, &data)
        {
            tracing::debug!(%error, "the driver's pipelines were not kept on disk");
        }
        Ok(Pipeline { pipeline })
    }

    fn uses_shared(&self) -> bool {
        match &self.program {
            Program::Kernel(kernel) => !kernel.kernel().shared.is_empty(),
            Program::Text(_) => true,
        }
    }

    /// Bindings of a checked kernel: whole buffers, the argument block by its offset, the stream's fault record.
    pub(super) fn group(
        &self,
        core: &StreamCore,
        args: &wgpu::Buffer,
        buffers: &[DevicePtr],
        args_bytes: u64,
    ) -> wgpu::BindGroup {
        let mut bound: Vec<wgpu::Buffer> = buffers
            .iter()
            .filter_map(|b| b.downcast::<Memory>())
            .map(|m| m.buffer.clone())
            .collect();
        let count = bound.len();
        bound.push(args.clone());
        bound.push(core.fault.clone());
        let key = (bound, args_bytes);
        let mut groups = lock(&self.groups);
        if let Some(group) = groups.get(&key) {
            return group.clone();
        }
        if groups.len() >= GROUPS {
            groups.clear();
        }
        let entries: Vec<_> = key
            .0
            .iter()
            .enumerate()
            .map(|(i, buffer)| wgpu::BindGroupEntry {
                binding: i as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: 0,
                    size: if i == count {
                        NonZeroU64::new(args_bytes)
                    } else {
                        None
                    },
                }),
            })
            .collect();
        // A checked kernel always has a layout of its own; the pipeline's would do as well.
        let layout = self.layout.clone().unwrap_or_else(|| {
            core.shared
                .device
                .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                    label: None,
                    entries: &[],
                })
        });
        let group = self.shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries,
        });
        groups.insert(key, group.clone());
        group
    }
}

struct Compiled(Arc<Loaded>);

impl CompiledKernel for Compiled {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn function_names(&self) -> Vec<String> {
        match &self.0.program {
            Program::Kernel(_) => vec![self.0.name.clone()],
            // wgpu does not list a program's entry points.
            Program::Text(_) => Vec::new(),
        }
    }

    fn get_function(&self, name: &str) -> Result<Arc<dyn KernelFunction>> {
        if let Program::Text(_) = self.0.program {
            // Made now, so that a text that does not compile or lacks the entry point says so here.
            self.0.pipeline(name, Dim3::ONE, 0)?;
        } else if name != self.0.name {
            return Err(Error::FunctionNotFound {
                name: name.to_owned(),
                available: self.function_names(),
            });
        }
        Ok(Arc::new(Function {
            kernel: Arc::clone(&self.0),
            name: name.to_owned(),
        }))
    }
}
