//! From source to pipelines. The work-group size is part of a WGSL program, so a kernel has a pipeline for each size
//! (and amount of dynamic workgroup memory) that it is launched with, made at the first such launch.

use std::any::Any;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, Weak};

use perpetua_ir::back::{ArgsLayout, BROWSER_SUBGROUPS, Source, Target, render};
use perpetua_ir::ops::Meeting;
use perpetua_ir::pass::tell_cut_loops;
use perpetua_ir::verify::Verified;

use super::core::StreamCore;
use super::kept::Kept;
use super::launch::Function;
use super::memory::Memory;
use super::shared::{Shared, lock};
#[cfg(not(target_arch = "wasm32"))]
use crate::backend::failed;
use crate::backend::{CompiledKernel, KernelFunction};
use crate::dim::Dim3;
use crate::error::{Error, Result};
use crate::fault::{FaultRegistry, KernelSites, SiteRange};
#[cfg(not(target_arch = "wasm32"))]
use crate::future::BoxFuture;
use crate::info::BackendKind;
use crate::lru::Lru;
use crate::ptr::DevicePtr;
use crate::signature::Signature;
use crate::source::{CompileOptions, KernelSource};

/// What a module of text is called in messages.
const TEXT: &str = "WGSL text";

/// Bind groups kept for each kernel: those of the buffers used last.
const GROUPS: usize = 256;

/// Pipelines kept for each kernel: those of the work-group sizes and amounts of dynamic memory used last.
const PIPELINES: usize = 64;

/// One context's compiler.
pub(super) struct Compiler {
    shared: Arc<Shared>,
    /// The driver's pipelines from earlier processes, where the device can keep them.
    kept: Option<Arc<Kept>>,
    loaded: Mutex<Vec<Weak<Loaded>>>,
}

/// What compiling needs of a source.
enum Taken {
    Ir(Arc<Verified>),
    Text(String),
}

impl Compiler {
    pub(super) fn new(shared: &Arc<Shared>, adapter: &wgpu::Adapter) -> Compiler {
        Compiler {
            kept: Kept::open(shared, adapter).map(Arc::new),
            shared: Arc::clone(shared),
            loaded: Mutex::default(),
        }
    }

    /// Lets go of buffers that cached bind groups keep.
    pub(super) fn forget_bindings(&self) {
        for loaded in lock(&self.loaded).iter().filter_map(Weak::upgrade) {
            if let Program::Checked(checked) = &loaded.program {
                lock(&checked.groups).clear();
            }
        }
    }

    pub(super) fn compile(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        self.make(self.take(source)?, options.block, options)
    }

    /// The same on a thread of our own; also the pipeline of a kernel whose block size is fixed.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn compile_async(
        self: &Arc<Self>,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> BoxFuture<'static, Result<Arc<dyn CompiledKernel>>> {
        let taken = match self.take(source) {
            Ok(taken) => taken,
            Err(error) => return failed(error),
        };
        let fixed = match &taken {
            Taken::Ir(kernel) => kernel.kernel().block_size.map(|[x, y, z]| Dim3::new(x, y, z)),
            Taken::Text(_) => None,
        };
        let (compiler, options) = (Arc::clone(self), options.clone());
        crate::background::run(move || compiler.make(taken, options.block.or(fixed), &options))
    }

    /// All that compiling needs of the source.
    fn take(&self, source: &KernelSource<'_>) -> Result<Taken> {
        match source {
            KernelSource::Spec(spec) => Ok(Taken::Ir(spec.verified(self.shared.info.pointer_width())?)),
            KernelSource::Ir(kernel) | KernelSource::Native(_, Some(kernel)) => {
                Ok(Taken::Ir(Arc::new((*kernel).clone())))
            }
            KernelSource::Wgsl(text) => Ok(Taken::Text((*text).to_owned())),
            other => Err(Error::SourceUnsupported {
                backend: BackendKind::Wgpu,
                given: other.kind(),
                takes: "kernel functions, IR, IR text and WGSL",
            }),
        }
    }

    fn make(
        &self,
        taken: Taken,
        block: Option<Dim3>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        let (name, program) = match taken {
            Taken::Ir(kernel) => self.checked(kernel)?,
            Taken::Text(text) => (TEXT.to_owned(), self.text(text)?),
        };
        let loaded = Arc::new(Loaded {
            shared: Arc::clone(&self.shared),
            kept: self.kept.clone().filter(|_| !options.no_disk_cache),
            name,
            program,
            pipelines: Mutex::new(Lru::new(PIPELINES)),
        });
        if let (Some(block), Program::Checked(_)) = (block, &loaded.program) {
            loaded.pipeline(&loaded.name, block, options.shared_bytes, true)?;
        }
        let mut all = lock(&self.loaded);
        all.retain(|l| l.strong_count() != 0);
        all.push(Arc::downgrade(&loaded));
        Ok(Arc::new(Compiled(loaded)))
    }

    /// A module of WGSL text. Its entry points become pipelines when they are asked for.
    fn text(&self, text: String) -> Result<Program> {
        let module = caught(&self.shared, TEXT, || {
            self.shared
                .device
                .create_shader_module(wgpu::ShaderModuleDescriptor {
                    label: Some(TEXT),
                    source: wgpu::ShaderSource::Wgsl(text.as_str().into()),
                })
        })?;
        Ok(Program::Text { module, text })
    }

    fn checked(&self, kernel: Arc<Verified>) -> Result<(String, Program)> {
        let told = |turns| tell_cut_loops(&kernel, turns).map(Arc::new);
        let kernel = self
            .shared
            .info
            .limits
            .max_loop_turns
            .and_then(told)
            .unwrap_or(kernel);
        let ir = kernel.kernel();
        // Rendered once now, for the sites and for errors to come from here; the size changes nothing but a number.
        let rendered = render_for(&self.shared, &kernel, ir.block_size.unwrap_or([1, 1, 1]), 0, true)?;
        let buffers = ArgsLayout::binding(ir);
        let most = self.shared.info.limits.max_buffers;
        if buffers > most {
            return Err(Error::Limit {
                what: "buffer parameters of one kernel",
                found: buffers.into(),
                limit: most.into(),
                remedy: "pass fewer buffers, or structs of several values in one",
            });
        }
        let can_fault = !rendered.faults.is_empty();
        let sites = FaultRegistry::global().register(KernelSites {
            kernel: ir.name.clone(),
            source: ir.source.clone(),
            faults: rendered.faults,
            prints: rendered.prints,
        })?;
        let checked = Checked {
            signature: Signature::of(&kernel),
            args: ArgsLayout::of(ir),
            sites,
            can_fault,
            depends_on_overlaps: kernel.facts().meets(Meeting::Block),
            bindings: self.bindings(buffers),
            groups: Mutex::new(Lru::new(GROUPS)),
            kernel: Arc::clone(&kernel),
        };
        Ok((ir.name.clone(), Program::Checked(Box::new(checked))))
    }

    /// Buffers, argument block, fault record.
    fn bindings(&self, buffers: u32) -> wgpu::BindGroupLayout {
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
    distinct: bool,
) -> Result<Source> {
    let target = Target::Wgsl {
        capabilities: shared.info.capabilities.clone(),
        block,
        dynamic_shared,
        distinct,
        exact_fma: shared.info.numeric_probe.and_then(|probe| probe.exact_fma) == Some(true),
    };
    let mut source = render(kernel, &target).map_err(|error| Error::render(BackendKind::Wgpu, error))?;
    if cfg!(target_arch = "wasm32") && source.text.contains("subgroup") {
        source.text.insert_str(0, BROWSER_SUBGROUPS);
    }
    #[cfg(feature = "testing")]
    if let Some(rewrite) = shared.rewrite.get() {
        source.text = rewrite(&source.text);
    }
    Ok(source)
}

/// What is compiled, and how it wants its arguments.
pub(super) enum Program {
    /// From IR: as `perpetua_ir::back` documents it.
    Checked(Box<Checked>),
    /// WGSL text: buffers, then values in a uniform.
    Text {
        module: wgpu::ShaderModule,
        text: String,
    },
}

/// A kernel from IR.
pub(super) struct Checked {
    kernel: Arc<Verified>,
    pub(super) signature: Signature,
    pub(super) args: ArgsLayout,
    /// Its fault sites; recordings hold them until somebody has looked for faults.
    pub(super) sites: Arc<SiteRange>,
    pub(super) can_fault: bool,
    /// Whether it matters to the program that two of a launch's buffers share bytes.
    pub(super) depends_on_overlaps: bool,
    bindings: wgpu::BindGroupLayout,
    groups: Mutex<Lru<Bound, wgpu::BindGroup>>,
}

/// Buffers bound: the kernel's, then the argument blocks' and the fault record's.
type Bound = Vec<wgpu::Buffer>;

impl Checked {
    /// Bindings of whole buffers, the argument block by its offset, the stream's fault record.
    pub(super) fn group(
        &self,
        core: &StreamCore,
        args: &wgpu::Buffer,
        buffers: &[DevicePtr],
    ) -> wgpu::BindGroup {
        let own = buffers.iter().filter_map(|b| b.downcast::<Memory>());
        let mut bound: Bound = own.map(|m| m.buffer.clone()).collect();
        let count = bound.len();
        bound.extend([args.clone(), core.fault.clone()]);
        let mut groups = lock(&self.groups);
        if let Some(group) = groups.get(&bound) {
            return group.clone();
        }
        let args_bytes = NonZeroU64::new(u64::from(self.args.words) * 4);
        let entries: Vec<_> = bound
            .iter()
            .enumerate()
            .map(|(i, buffer)| wgpu::BindGroupEntry {
                binding: i as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: 0,
                    size: args_bytes.filter(|_| i == count),
                }),
            })
            .collect();
        let group = core.shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.bindings,
            entries: &entries,
        });
        let gone = groups.insert(bound, group.clone());
        drop(groups);
        drop(gone);
        group
    }
}

/// A pipeline's entry point, work-group size and dynamic workgroup memory, and whether its buffers share no bytes.
type Shape = (String, [u32; 3], u32, bool);

/// A kernel, or the entry points of a text.
pub(super) struct Loaded {
    pub(super) shared: Arc<Shared>,
    kept: Option<Arc<Kept>>,
    name: String,
    pub(super) program: Program,
    pipelines: Mutex<Lru<Shape, wgpu::ComputePipeline>>,
}

impl Loaded {
    /// The pipeline for a work-group size; with `distinct` for launches whose buffers share no bytes.
    pub(super) fn pipeline(
        &self,
        entry: &str,
        block: Dim3,
        dynamic_shared: u32,
        distinct: bool,
    ) -> Result<wgpu::ComputePipeline> {
        let shape = match self.program {
            Program::Text { .. } => (entry.to_owned(), [0; 3], 0, false),
            Program::Checked(_) => (String::new(), block.to_array(), dynamic_shared, distinct),
        };
        if let Some(pipeline) = lock(&self.pipelines).get(&shape) {
            return Ok(pipeline.clone());
        }
        let pipeline = self.build(entry, block, dynamic_shared, distinct)?;
        // Another thread may have been first: then either is as good.
        let gone = lock(&self.pipelines).insert(shape, pipeline.clone());
        drop(gone);
        Ok(pipeline)
    }

    fn build(
        &self,
        entry: &str,
        block: Dim3,
        dynamic_shared: u32,
        distinct: bool,
    ) -> Result<wgpu::ComputePipeline> {
        let pipeline = match &self.program {
            Program::Text { module, .. } => {
                caught(&self.shared, &self.name, || self.make(module, entry, None))
            }
            Program::Checked(checked) => {
                let source = render_for(
                    &self.shared,
                    &checked.kernel,
                    block.to_array(),
                    dynamic_shared,
                    distinct,
                )?;
                let descriptor = wgpu::ShaderModuleDescriptor {
                    label: Some(&self.name),
                    source: wgpu::ShaderSource::Wgsl(source.text.into()),
                };
                let unchecked = wgpu::ShaderRuntimeChecks::unchecked();
                let device = &self.shared.device;
                caught(&self.shared, &self.name, || {
                    // SAFETY: rendered from verified IR, whose every access is checked in the program itself or proven in
                    // range; unchecked IR is made by `unsafe` constructors only, whose callers vouch for it.
                    let module = unsafe { device.create_shader_module_trusted(descriptor, unchecked) };
                    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                        label: None,
                        bind_group_layouts: &[Some(&checked.bindings)],
                        immediate_size: 0,
                    });
                    self.make(&module, &source.entry, Some(&layout))
                })
            }
        }?;
        if let Some(kept) = &self.kept {
            kept.store();
        }
        Ok(pipeline)
    }

    fn make(
        &self,
        module: &wgpu::ShaderModule,
        entry: &str,
        layout: Option<&wgpu::PipelineLayout>,
    ) -> wgpu::ComputePipeline {
        let options = wgpu::PipelineCompilationOptions {
            // What IR leaves in workgroup memory at the start is unspecified; WGSL from elsewhere may count on zeros.
            zero_initialize_workgroup_memory: layout.is_none(),
            ..wgpu::PipelineCompilationOptions::default()
        };
        self.shared
            .device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(&self.name),
                layout,
                module,
                entry_point: Some(entry),
                compilation_options: options,
                cache: self.kept.as_ref().map(|k| &k.cache),
            })
    }
}

/// What `made` gives, unless the compiler refuses it.
fn caught<T>(shared: &Shared, kernel: &str, made: impl FnOnce() -> T) -> Result<T> {
    let ((made, internal), invalid) = shared.scoped(wgpu::ErrorFilter::Validation, || {
        shared.scoped(wgpu::ErrorFilter::Internal, made)
    });
    match invalid.or(internal) {
        None => Ok(made),
        Some(error) => Err(Error::Compile {
            backend: BackendKind::Wgpu,
            kernel: kernel.to_owned(),
            log: error.to_string(),
        }),
    }
}

/// A module as the contract sees it.
struct Compiled(Arc<Loaded>);

impl CompiledKernel for Compiled {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn function_names(&self) -> Vec<String> {
        match &self.0.program {
            Program::Checked(_) => vec![self.0.name.clone()],
            // wgpu does not list a program's entry points.
            Program::Text { .. } => Vec::new(),
        }
    }

    fn get_function(&self, name: &str) -> Result<Arc<dyn KernelFunction>> {
        let missing = || Error::FunctionNotFound {
            name: name.to_owned(),
            available: self.function_names(),
        };
        match &self.0.program {
            Program::Checked(_) if name == self.0.name => {}
            Program::Checked(_) => return Err(missing()),
            Program::Text { text, .. } => {
                // Made now, so that an entry point that does not compile or is not there says so here.
                let made = self.0.pipeline(name, Dim3::ONE, 0, false);
                made.map_err(|e| {
                    if text.contains(&format!("fn {name}")) {
                        e
                    } else {
                        missing()
                    }
                })?;
            }
        }
        Ok(Arc::new(Function {
            kernel: Arc::clone(&self.0),
            name: name.to_owned(),
        }))
    }
}
