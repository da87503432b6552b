//! Whether each kernel of a program can be lowered: for a test of the program's own, and for `perpetua check`, which asks a program
//! before its `main` runs.
//!
//! Programs with debug assertions know their kernels: `#[kernel]` registers those without generic parameters, and an instance of a
//! generic one registers itself where code that the compiler keeps asks for it, run or not. Must not know how kernels are launched.

use std::any::type_name;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use perpetua_ir::back::{CudaAbi, RenderError, Sm, SmReach, Target, render};
use perpetua_ir::front::rust::{FunctionDef, Instantiation, inventory, lower};
use perpetua_ir::verify::{Verified, verify};

use super::entry::{Instance, KernelFn};

#[cfg(feature = "compare")]
pub mod compare;
#[cfg(feature = "compare")]
use compare::Plain;

/// A kernel that a program has.
#[derive(Clone, Copy)]
pub struct Registered {
    kernel: fn() -> KernelFn,
    /// The name of the type that stands for an instance; empty where the kernel is not generic.
    instance: fn() -> &'static str,
    /// Calls the function itself.
    #[cfg(feature = "compare")]
    plain: fn() -> Option<Plain>,
}

impl Registered {
    /// A kernel without generic parameters. Only the macro's output registers them.
    #[doc(hidden)]
    pub const fn new(kernel: fn() -> KernelFn) -> Registered {
        Registered {
            kernel,
            instance: || "",
            #[cfg(feature = "compare")]
            plain: || None,
        }
    }

    /// The same with what calls the function itself.
    #[doc(hidden)]
    #[cfg(feature = "compare")]
    pub const fn plainly(self, plain: fn() -> Option<Plain>) -> Registered {
        Registered { plain, ..self }
    }

    /// Its name, with its generic arguments.
    fn name(self) -> String {
        let name = (self.kernel)().name();
        match (self.instance)().split_once('<') {
            Some((_, arguments)) => format!("{name}::<{arguments}"),
            None => name.to_owned(),
        }
    }

    fn is_instance(self) -> bool {
        !(self.instance)().is_empty()
    }
}

inventory::collect!(Registered);

/// A kernel without generic parameters, and what calls its function.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "compare")]
macro_rules! registered {
    ($kernel:path,) => {
        $crate::kernel::expand::Registered::new($kernel)
    };
    ($kernel:path, |$args:ident| $call:block) => {
        $crate::kernel::expand::Registered::new($kernel)
            .plainly(|| Some(|$args: &mut $crate::kernel::check::compare::Arguments<'_>| $call))
    };
}

/// The same where functions are not compared with their kernels.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "compare"))]
macro_rules! registered {
    ($kernel:path, $($call:tt)*) => {
        $crate::kernel::expand::Registered::new($kernel)
    };
}

/// What calls the function of an instance: an item of `Instance`.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "compare")]
macro_rules! plain {
    () => {};
    (|$args:ident| $call:block) => {
        fn plain() -> Option<$crate::kernel::check::compare::Plain> {
            Some(|$args: &mut $crate::kernel::check::compare::Arguments<'_>| $call)
        }
    };
}

/// The same where functions are not compared with their kernels.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "compare"))]
macro_rules! plain {
    ($($call:tt)*) => {};
}

/// Instances that the program's code asks for.
static INSTANCES: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

/// Puts an instance among those that are known, before `main`.
extern "C" fn enter<I: Instance>() {
    INSTANCES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Registered {
            kernel: KernelFn::instance::<I>,
            instance: type_name::<I>,
            #[cfg(feature = "compare")]
            plain: I::plain,
        });
}

/// The section of addresses of functions that the loader calls before `main`, as the assembler names it.
#[cfg(not(any(windows, target_vendor = "apple")))]
macro_rules! section {
    () => {
        ".init_array,\"aw\",%init_array"
    };
}
#[cfg(target_vendor = "apple")]
macro_rules! section {
    () => {
        "__DATA,__mod_init_func,mod_init_funcs"
    };
}
#[cfg(windows)]
macro_rules! section {
    () => {
        ".CRT$XCU,\"dr\""
    };
}

/// Has the loader call [`enter`] before `main`, in each program that keeps this function, called or not: no `static` can depend on a
/// generic parameter.
#[inline(always)]
pub(super) fn register<I: Instance>() {
    #[cfg(all(
        debug_assertions,
        not(miri),
        any(unix, windows),
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    // SAFETY: the text executes nothing. It puts an address among those of functions that the loader calls, without arguments and
    // before `main`: that of a function of the C convention which takes none and returns.
    unsafe {
        core::arch::asm!(
            concat!(".pushsection ", section!()),
            ".p2align 3",
            ".quad {enter}",
            ".popsection",
            enter = sym enter::<I>,
            options(nomem, nostack, preserves_flags)
        );
    }
    let _ = enter::<I>;
}

/// All kernels that are known, each once.
fn known() -> Vec<Registered> {
    let mut all: Vec<Registered> = inventory::iter::<Registered>.into_iter().copied().collect();
    let instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
    // Each place that the compiler copied the call to has registered it.
    let mut seen = HashSet::new();
    all.extend(instances.iter().filter(|known| seen.insert((known.instance)())));
    all
}

/// Why a kernel cannot be lowered, or what target cannot have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kernel, with its generic arguments.
    pub kernel: String,
    /// The target that alone cannot have it; `None` where none can.
    pub target: Option<String>,
    /// The source file.
    pub file: String,
    /// The line in it; 0 where unknown.
    pub line: u32,
    /// The bytes of the file; none where unknown.
    pub place: Range<usize>,
    /// What is wrong, with the values concerned, and what to do.
    pub cause: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal {
            kernel, file, line, ..
        } = self;
        match line {
            0 => write!(f, "{file}: kernel `{kernel}`")?,
            line => write!(f, "{file}:{line}: kernel `{kernel}`")?,
        }
        if let Some(target) = &self.target {
            write!(f, " for {target}")?;
        }
        write!(f, ": {}", self.cause)
    }
}

/// Why [`check_all`] fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The program knows no kernels: it has none, or was built without debug assertions.
    NoKernels,
    /// These cannot be lowered.
    Refused(Vec<Refusal>),
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::NoKernels => f.write_str(
                "no kernel is known: this program has none, or was built without debug assertions, with which kernels register themselves",
            ),
            CheckError::Refused(all) => {
                let all: Vec<String> = all.iter().map(Refusal::to_string).collect();
                f.write_str(&all.join("\n"))
            }
        }
    }
}

impl std::error::Error for CheckError {}

/// Lowers and verifies each kernel of the program, launched or not, with those of handlers of actors and with all instances of generic kernels
/// that the program's code asks for; gives how many there are.
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
///
/// # if cfg!(debug_assertions) {
/// let count = perpetua::kernel::check_all()?; // in a test of your own
/// assert!(count >= 1);
/// # }
/// # Ok::<(), perpetua::kernel::check::CheckError>(())
/// ```
///
/// # Errors
/// What is wrong with which kernel, with file and line. What one target lacks (64-bit integers in WGSL) is no error here;
/// `perpetua check` shows it.
pub fn check_all() -> Result<usize, CheckError> {
    let all = known();
    if all.is_empty() {
        return Err(CheckError::NoKernels);
    }
    let refused: Vec<Refusal> = all.iter().flat_map(|known| refusals(*known, false)).collect();
    match refused.is_empty() {
        true => Ok(all.len()),
        false => Err(CheckError::Refused(refused)),
    }
}

fn refusals(known: Registered, targets: bool) -> Vec<Refusal> {
    let kernel = (known.kernel)();
    let (function, how) = (kernel.definition(), kernel.instantiation());
    match targets {
        true => on_targets(&known.name(), &function, &how),
        false => verified(&known.name(), &function, &how).err().unwrap_or_default(),
    }
}

fn verified(name: &str, function: &FunctionDef, how: &Instantiation) -> Result<Verified, Vec<Refusal>> {
    let refused = |file: &str, line, place, cause| Refusal {
        kernel: name.to_owned(),
        target: None,
        file: file.to_owned(),
        line,
        place,
        cause,
    };
    let kernel = lower(function, how).map_err(|error| {
        let cause = match error.remedy.is_empty() {
            true => error.cause,
            false => format!("{}: {}", error.cause, error.remedy),
        };
        vec![refused(&error.file, error.line, error.place, cause)]
    })?;
    let source = kernel.source.clone();
    verify(kernel).map_err(|wrong| {
        let errors = wrong.errors.iter();
        errors
            .map(|error| refused(&source, error.line, 0..0, error.cause.to_string()))
            .collect()
    })
}

/// Why a function cannot be lowered so, or which of the targets that this program has renderers for cannot have it.
#[doc(hidden)]
pub fn on_targets(name: &str, function: &FunctionDef, how: &Instantiation) -> Vec<Refusal> {
    let newest = Sm {
        number: 90,
        reach: SmReach::Own,
    };
    let targets = [
        (64, Target::Ptx { sm: newest }),
        (
            64,
            Target::CudaC {
                abi: CudaAbi::Checked,
            },
        ),
        (64, Target::Msl),
        (32, Target::wgsl(how.block_size.unwrap_or([64, 1, 1]))),
    ];
    let width = |pointer_width| Instantiation {
        pointer_width,
        ..how.clone()
    };
    let wide = match verified(name, function, &width(64)) {
        Ok(wide) => wide,
        Err(refused) => return refused,
    };
    let narrow = verified(name, function, &width(32));
    let mut all = Vec::new();
    for (width, target) in targets {
        let of = |cause| Refusal {
            kernel: name.to_owned(),
            target: Some(target.name()),
            file: wide.kernel().source.to_string(),
            line: 0,
            place: 0..0,
            cause,
        };
        let kernel = match (width, &narrow) {
            (32, Ok(narrow)) => narrow,
            (32, Err(refused)) => {
                all.extend(refused.iter().map(|refused| Refusal {
                    target: Some(target.name()),
                    ..refused.clone()
                }));
                continue;
            }
            _ => &wide,
        };
        match render(kernel, &target) {
            Ok(_) | Err(RenderError::NotBuilt { .. }) => {}
            Err(error) => all.push(of(error.to_string())),
        }
    }
    all
}

/// The variable of the environment in which `perpetua check` names the file to which a program adds what it finds before it ends,
/// without having run.
#[doc(hidden)]
pub const ASKED: &str = "PERPETUA_CHECK_KERNELS_1";

/// What a program has in its own file that does so, and none that merely knows the name.
#[cfg(all(debug_assertions, not(miri), any(unix, windows)))]
const ANSWERS: &str = "PERPETUA_CHECK_KERNELS_1 is answered";

/// Where the sources lie whose kernels are asked for.
#[doc(hidden)]
pub const ROOT: &str = "PERPETUA_CHECK_ROOT";

/// What stands between the parts of a line of that file.
#[doc(hidden)]
pub const BETWEEN: char = '\u{1f}';

/// Behind the functions that register, which the files of other crates have before this one's, or another section's name comes before.
#[cfg(all(debug_assertions, not(miri), any(unix, windows)))]
#[used]
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func,mod_init_funcs")
)]
#[cfg_attr(windows, unsafe(link_section = ".CRT$XCY"))]
#[cfg_attr(all(unix, not(target_vendor = "apple")), unsafe(link_section = ".init_array"))]
static ANSWER: extern "C" fn() = answer;

/// Answers `perpetua check`.
#[cfg(all(debug_assertions, not(miri), any(unix, windows)))]
extern "C" fn answer() {
    let Some(path) = std::env::var_os(ASKED) else {
        return;
    };
    std::hint::black_box(ANSWERS);
    let root = std::env::var_os(ROOT).unwrap_or_default();
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let answered = answered(&known(), Path::new(&root), before);
    let code = match std::fs::write(path, answered) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("error: what kernels are refused could not be written: {error}");
            1
        }
    };
    std::process::exit(code)
}

/// What other programs have found, and behind it a line for each further kernel with its name, file and line, and one for each refusal.
#[cfg(any(test, all(debug_assertions, not(miri), any(unix, windows))))]
fn answered(known: &[Registered], root: &Path, before: String) -> String {
    let line = |parts: &[&str]| {
        let parts: Vec<String> = parts
            .iter()
            .map(|part| part.replace([BETWEEN, '\n', '\r'], " "))
            .collect();
        parts.join(&BETWEEN.to_string())
    };
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    let others: HashSet<String> = lines.iter().cloned().collect();
    for known in known {
        let Ok(tree) = (known.kernel)().definition().tree() else {
            continue;
        };
        // Who wrote a kernel checks it; who asks for an instance, that.
        let file = Path::new(&*tree.file);
        if file.is_absolute() && !file.starts_with(root) && !known.is_instance() {
            continue;
        }
        let head = line(&["kernel", &known.name(), &tree.file, &tree.line.to_string()]);
        if others.contains(&head) {
            continue;
        }
        lines.push(head);
        lines.extend(refusals(*known, true).iter().map(|refusal| {
            line(&[
                "refused",
                refusal.target.as_deref().unwrap_or_default(),
                &refusal.file,
                &refusal.line.to_string(),
                &refusal.place.start.to_string(),
                &refusal.place.end.to_string(),
                &refusal.cause,
            ])
        }));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
