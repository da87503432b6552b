//! What `#[kernel]` makes of a function: the kernel that a program carries, lowered at first use.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, RwLock};

use perpetua_cpu::footprint::Footprint;
use perpetua_device::native::{NativeArg, NativeKernel, NativeLaunch};
use perpetua_device::{Error, KernelId, KernelSpec};
use perpetua_ir::front::rust::{Followed, FunctionDef, Instantiation, StencilConfig, lower, lower_followed};
use perpetua_ir::ir::{Base, Checks, Effect, Inst, Kernel, Op};
use perpetua_ir::verify::{Verified, verify};

use super::identity::identity;
use super::native::Native;

/// A kernel function of the program with its generic arguments and options. Cheap to copy.
///
/// ```
/// use perpetua::prelude::*;
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     let i = global_id_x();
///     if i < x.len() {
///         x[i] *= 2.0;
///     }
/// }
/// let kernel: KernelFn = double::kernel();
/// assert_eq!(kernel.name(), "double");
/// ```
#[derive(Clone, Copy)]
pub struct KernelFn(&'static Entry);

/// What a kernel function is made of, and what was computed of it. The macro's output makes them.
pub struct Entry {
    name: &'static str,
    function: FunctionDef,
    instantiation: Source,
    native: Option<Native>,
    id: OnceLock<KernelId>,
    wide: OnceLock<Result<Arc<Verified>, Error>>,
    narrow: OnceLock<Result<Arc<Verified>, Error>>,
    // As its native body runs it, made when first asked for; `None` where that must not run.
    followed: OnceLock<Option<Followed>>,
    // What its native body accesses; `None` where that is not known.
    footprint: OnceLock<Option<Footprint>>,
}

/// A type that stands for an instance of a generic kernel function. The macro's output has them.
pub trait Instance: 'static {
    /// The instance.
    fn entry() -> Entry;

    /// What calls the function.
    #[cfg(feature = "compare")]
    fn plain() -> Option<super::check::compare::Plain> {
        None
    }
}

/// Where an instantiation comes from.
enum Source {
    Written(fn() -> Instantiation),
    Changed(Box<Instantiation>),
    /// Changed through [`KernelFn::unchecked`]: somebody answers for it.
    Unchecked(Box<Instantiation>),
}

impl Entry {
    /// A kernel function; its generic arguments and options come from `instantiation`, at first use.
    pub const fn new(
        name: &'static str,
        function: FunctionDef,
        instantiation: fn() -> Instantiation,
        native: Option<Native>,
    ) -> Entry {
        Entry {
            name,
            function,
            instantiation: Source::Written(instantiation),
            native,
            id: OnceLock::new(),
            wide: OnceLock::new(),
            narrow: OnceLock::new(),
            followed: OnceLock::new(),
            footprint: OnceLock::new(),
        }
    }

    fn instantiation(&self) -> Instantiation {
        match &self.instantiation {
            Source::Written(make) => make(),
            Source::Changed(value) | Source::Unchecked(value) => (**value).clone(),
        }
    }

    fn lower(&self, pointer_width: u32) -> Result<Arc<Verified>, Error> {
        let error = |message: String| Error::Frontend {
            kernel: self.name.to_owned(),
            message,
        };
        let how = Instantiation {
            pointer_width,
            ..self.instantiation()
        };
        let kernel = lower(&self.function, &how).map_err(|e| error(e.to_string()))?;
        let verified = verify(kernel).map_err(|e| error(e.to_string()))?;
        Ok(Arc::new(match self.instantiation {
            // SAFETY: only the unsafe functions of `KernelFn` make such a source, or a change of one that it made; its caller promised
            // what `trust` asks of every launch of the function. That lanes meet at barriers the verifier has just shown,
            // for lowering gives no kernel with explicit checks.
            Source::Unchecked(_) => unsafe { verified.trust() },
            Source::Written(_) | Source::Changed(_) => verified,
        }))
    }
}

/// Entries that no `static` holds: instances of generic kernels by type, changed ones by content. They live as long as
/// the program; there are as many as different ones were asked for.
#[derive(Default)]
struct Registry {
    instances: HashMap<TypeId, &'static Entry>,
    changed: HashMap<KernelId, &'static Entry>,
    /// The same by what was changed: to know an entry by its content takes milliseconds.
    by_change: HashMap<(KernelId, Change), &'static Entry>,
}

/// How a kernel differs from another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Change {
    BlockSize([u32; 3]),
    Contracted,
    Interpreted,
    Unchecked,
    CheckedWhereCaught,
}

fn registry() -> &'static RwLock<Registry> {
    static REGISTRY: OnceLock<RwLock<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(RwLock::default)
}

impl KernelFn {
    /// The kernel function of an entry.
    #[doc(hidden)]
    pub fn new(entry: &'static Entry) -> KernelFn {
        KernelFn(entry)
    }

    /// The instance of a generic kernel function that the type `I` stands for.
    #[doc(hidden)]
    pub fn instance<I: Instance>() -> KernelFn {
        super::check::register::<I>();
        let id = TypeId::of::<I>();
        let known = registry()
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .instances
            .get(&id)
            .copied();
        KernelFn(known.unwrap_or_else(|| {
            let mut registry = registry().write().unwrap_or_else(|e| e.into_inner());
            registry
                .instances
                .entry(id)
                .or_insert_with(|| Box::leak(Box::new(I::entry())))
        }))
    }

    /// The kernel after a change: found again by it, but where it has too much to it.
    fn changed(
        self,
        by: Option<Change>,
        native: Option<Native>,
        change: impl FnOnce(&mut Instantiation),
    ) -> KernelFn {
        let source = match self.0.instantiation {
            Source::Written(_) | Source::Changed(_) => Source::Changed,
            Source::Unchecked(_) => Source::Unchecked,
        };
        self.replaced(by, native, source, change)
    }

    fn replaced(
        self,
        by: Option<Change>,
        native: Option<Native>,
        source: fn(Box<Instantiation>) -> Source,
        change: impl FnOnce(&mut Instantiation),
    ) -> KernelFn {
        let by = by.map(|by| (self.id(), by));
        let known = |by| {
            let registry = registry().read().unwrap_or_else(|e| e.into_inner());
            registry.by_change.get(&by).copied()
        };
        if let Some(entry) = by.and_then(known) {
            return KernelFn(entry);
        }
        let mut how = self.0.instantiation();
        change(&mut how);
        let key = identity(&self.0.function, &how, native.is_some());
        let mut registry = registry().write().unwrap_or_else(|e| e.into_inner());
        let entry: &'static Entry = registry.changed.entry(key).or_insert_with(|| {
            Box::leak(Box::new(Entry {
                name: self.0.name,
                function: self.0.function.clone(),
                instantiation: source(Box::new(how)),
                native,
                id: OnceLock::from(key),
                wide: OnceLock::new(),
                narrow: OnceLock::new(),
                followed: OnceLock::new(),
                footprint: OnceLock::new(),
            }))
        });
        if let Some(by) = by {
            registry.by_change.insert(by, entry);
        }
        KernelFn(entry)
    }

    /// The function's name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The function's description, for other front ends and for tools.
    pub fn definition(self) -> FunctionDef {
        self.0.function.clone()
    }

    /// Its generic arguments and options.
    pub fn instantiation(self) -> Instantiation {
        self.0.instantiation()
    }

    /// The native body; `None` where there is none, or where rustc's meaning of what it calls need not be the IR's.
    fn body(self) -> Option<&'static Native> {
        self.0.native.as_ref().filter(|_| self.followed().is_some())
    }

    /// The kernel as its native body runs it.
    fn followed(self) -> Option<&'static Followed> {
        let follow = || {
            let how = Instantiation {
                pointer_width: usize::BITS,
                ..self.0.instantiation()
            };
            lower_followed(&self.0.function, &how).ok().flatten()
        };
        self.0.followed.get_or_init(follow).as_ref()
    }

    /// How many lanes of a launch native code runs without checks, because they are proven; `None` without native code.
    #[doc(hidden)]
    pub fn proven(self, launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<u64> {
        (self.body()?.proven)(launch, args)
    }

    /// Runs lanes of a launch's proven boxes one by one: how many did what is proven of them, or what one did instead. `None` without
    /// native code.
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    pub fn audit(self, launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Result<usize, String>> {
        (self.body()?.audit)(launch, args)
    }

    /// What the kernel's native body accesses, which asks for these conditions and has so many loads and stores of each
    /// parameter; `None` where that is not known, or the IR has not all of them.
    pub(super) fn footprint(self, conditions: u64, accesses: &[[usize; 2]]) -> Option<&'static Footprint> {
        let find = || {
            let Followed {
                kernel,
                conditions: noted,
            } = self.followed()?;
            let numbers = noted
                .iter()
                .fold(0, |all, (number, _)| all | 1u64.checked_shl(*number).unwrap_or(0));
            let has = accesses_of(kernel);
            let every = |(param, asked): (usize, &[usize; 2])| {
                let has = has.get(param).copied().unwrap_or_default();
                asked[0] <= has[0] && asked[1] <= has[1]
            };
            let is_tied = conditions & !numbers == 0 && accesses.iter().enumerate().all(every);
            let kernel = verify(kernel.clone()).ok().filter(|_| is_tied)?;
            Footprint::with_conditions(&kernel, noted)
        };
        self.0.footprint.get_or_init(find).as_ref()
    }

    /// The kernel for blocks of this size only.
    pub fn with_block_size(self, x: u32, y: u32, z: u32) -> KernelFn {
        let size = [x, y, z];
        let by = Some(Change::BlockSize(size));
        self.changed(by, self.0.native, |how| how.block_size = Some(size))
    }

    /// The kernel with multiplications and additions fused where the target likes it. Without native code: the
    /// interpreter computes fused what every target must.
    pub fn contracted(self) -> KernelFn {
        self.changed(Some(Change::Contracted), None, |how| how.contract = true)
    }

    /// The kernel as a stencil with this tile, halo and edge rule; ignored where the function is no stencil.
    pub fn with_stencil(self, config: StencilConfig) -> KernelFn {
        self.changed(None, None, |how| how.stencil = config)
    }

    /// The kernel without native code, so that the CPU runs it as machine code, or in the interpreter.
    pub fn interpreted(self) -> KernelFn {
        self.changed(Some(Change::Interpreted), None, |_| {})
    }

    /// The kernel without fault checks.
    ///
    /// # Safety
    /// In every launch, each index lies inside what it indexes, no integer is divided by zero, no `MIN` by -1, and
    /// no enum is loaded that has no variant of that value. Anything else is undefined behaviour.
    pub unsafe fn unchecked(self) -> KernelFn {
        let by = Some(Change::Unchecked);
        self.replaced(by, None, Source::Unchecked, |how| how.checks = Checks::Off)
    }

    /// The kernel with checks only in labelled blocks whose faults it catches.
    ///
    /// # Safety
    /// As [`KernelFn::unchecked`], for all code but that in such blocks.
    pub unsafe fn checked_where_caught(self) -> KernelFn {
        let by = Some(Change::CheckedWhereCaught);
        self.replaced(by, None, Source::Unchecked, |how| how.checks = Checks::Caught)
    }
}

// SAFETY: the id is a hash of all that lowering reads but the pointer width, of whether checks are off, which only the unsafe
// `unchecked` arranges, and of whether there is a native body, which belongs to the function.
unsafe impl KernelSpec for KernelFn {
    fn name(&self) -> &str {
        self.0.name
    }

    fn id(&self) -> KernelId {
        *self
            .0
            .id
            .get_or_init(|| identity(&self.0.function, &self.0.instantiation(), self.0.native.is_some()))
    }

    fn verified(&self, pointer_width: u32) -> Result<Arc<Verified>, Error> {
        let slot = match pointer_width {
            32 => &self.0.narrow,
            64 => &self.0.wide,
            _ => return self.0.lower(pointer_width),
        };
        slot.get_or_init(|| self.0.lower(pointer_width)).clone()
    }

    fn native(&self) -> Option<NativeKernel> {
        self.body().map(|native| native.kernel)
    }
}

impl fmt::Debug for KernelFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel function `{}`", self.0.name)
    }
}

/// By parameter: how many loads and stores of its elements stand in a kernel.
fn accesses_of(kernel: &Kernel) -> Vec<[usize; 2]> {
    let mut all = vec![[0; 2]; kernel.params.len()];
    kernel.body.block.walk(&mut |stmt| {
        let (place, kind) = match &stmt.inst {
            Inst::Let(_, Op::Load(place, _)) => (place, 0),
            Inst::Do(Effect::Store(place, ..)) => (place, 1),
            _ => return,
        };
        if let Base::Buffer(param) = place.base
            && let Some(counts) = all.get_mut(param as usize)
        {
            counts[kind] += 1;
        }
    });
    all
}
