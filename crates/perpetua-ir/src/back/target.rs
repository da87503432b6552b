//! Targets and capabilities. A kernel carries what it needs, a target what it has; the difference is an error
//! before anything is rendered.

use std::collections::BTreeSet;
use std::fmt;

use crate::fault::FaultSite;
pub use crate::ops::Capability;
use crate::print::PrintSite;

/// A set of capabilities.
pub type Capabilities = BTreeSet<Capability>;

/// How a kernel's parameters are passed in CUDA C and PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CudaAbi {
    /// Every buffer as pointer and length; hidden parameters for faults and printing at the end.
    Checked,
    /// Plain pointers, no lengths, no hidden parameters, no checks: for pasting into other people's CUDA.
    Plain,
}

/// Which devices beside its own generation the code for a generation of NVIDIA's GPUs runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SmReach {
    /// All newer ones, too.
    Newer,
    /// Those of the same family, with what the family alone has: `sm_100f`.
    Family,
    /// None other, with all that this one alone has: `sm_90a`.
    Own,
}

/// A generation of NVIDIA's GPUs to make code for: `sm_75`, `sm_90a`, `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sm {
    /// Compute capability times ten: 70, 75, 80, 90, …
    pub number: u32,
    /// Where else the code runs.
    pub reach: SmReach,
}

impl Sm {
    /// What to make code for that runs on one device alone, of this compute capability: the generation's own target where there is
    /// one (`sm_90a` for 9.0), else the plain one.
    pub fn of_device(major: u32, minor: u32) -> Sm {
        let number = major * 10 + minor;
        let own = Sm {
            number,
            reach: SmReach::Own,
        };
        match own.known() {
            Some(_) => own,
            None => number.into(),
        }
    }

    /// The target as PTX names it, with the PTX version that first did: this one; or for the plain form of a generation that PTX
    /// does not name, the last one before it, whose code runs there. `None` where there is neither.
    pub fn named(self) -> Option<(Sm, &'static str)> {
        match self.reach {
            SmReach::Newer => PLAIN
                .into_iter()
                .rev()
                .find(|(number, _)| *number <= self.number)
                .map(|(number, version)| (number.into(), version)),
            _ => self.known().map(|version| (self, version)),
        }
    }

    // The PTX version of a target with a suffix.
    fn known(self) -> Option<&'static str> {
        let of = |own: &'static str, family: Option<&'static str>| match self.reach {
            SmReach::Own => Some(own),
            SmReach::Family => family,
            SmReach::Newer => None,
        };
        SUFFIXED
            .into_iter()
            .find(|(number, ..)| *number == self.number)
            .and_then(|(_, own, family)| of(own, family))
    }

    /// The oldest that there is code for.
    pub const OLDEST: u32 = PLAIN[0].0;
}

/// Targets without suffix that PTX names, each with the PTX version that first did.
const PLAIN: [(u32, &str); 8] = [
    (70, "6.3"),
    (75, "6.3"),
    (80, "7.0"),
    (86, "7.1"),
    (89, "7.8"),
    (90, "7.8"),
    (100, "8.6"),
    (120, "8.7"),
];

/// Generations with targets of their own: the PTX versions that first named `a` and `f`.
const SUFFIXED: [(u32, &str, Option<&str>); 5] = [
    (90, "8.0", None),
    (100, "8.6", Some("8.8")),
    (103, "8.8", Some("8.8")),
    (120, "8.7", Some("8.8")),
    (121, "8.8", Some("8.8")),
];

impl From<u32> for Sm {
    /// The plain target of a compute capability times ten.
    fn from(number: u32) -> Sm {
        Sm {
            number,
            reach: SmReach::Newer,
        }
    }
}

impl fmt::Display for Sm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.reach {
            SmReach::Newer => "",
            SmReach::Family => "f",
            SmReach::Own => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

/// A text that names no [`Sm`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no compute capability times ten: write 75, 90a or sm_100f (from {oldest} on)", oldest = Sm::OLDEST)]
pub struct SmError(String);

impl std::str::FromStr for Sm {
    type Err = SmError;

    /// Reads `90`, `90a`, `sm_90a`. A suffix must be one that the generation has.
    fn from_str(text: &str) -> Result<Sm, SmError> {
        let bare = text.strip_prefix("sm_").unwrap_or(text);
        let (number, reach) = match bare.as_bytes().last() {
            Some(b'a') => (&bare[..bare.len() - 1], SmReach::Own),
            Some(b'f') => (&bare[..bare.len() - 1], SmReach::Family),
            _ => (bare, SmReach::Newer),
        };
        let is_number = number.bytes().all(|b| b.is_ascii_digit());
        let sm = number
            .parse()
            .ok()
            .filter(|_| is_number)
            .map(|number| Sm { number, reach });
        sm.filter(|sm| sm.named().is_some())
            .ok_or_else(|| SmError(text.to_owned()))
    }
}

/// What to render for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// PTX for the CUDA driver.
    Ptx {
        /// The generation of GPUs.
        sm: Sm,
    },
    /// CUDA C++ for NVRTC or a reader.
    CudaC {
        /// Calling convention.
        abi: CudaAbi,
    },
    /// WGSL for wgpu and browsers.
    Wgsl {
        /// What the device has.
        capabilities: Capabilities,
        /// Lanes per block.
        block: [u32; 3],
        /// Bytes of dynamic shared memory.
        dynamic_shared: u32,
        /// Whether no two buffers of a launch share bytes: barriers may then cost less.
        distinct: bool,
        /// Whether the device's `fma` rounds once. Where it does not, integers compute it, but for the math library's own, whose
        /// bounds do not need it.
        exact_fma: bool,
    },
    /// Metal Shading Language 3.1.
    Msl,
}

impl Target {
    /// WGSL with all that any device takes of it, for blocks of this size.
    pub fn wgsl(block: [u32; 3]) -> Target {
        use Capability::{DeviceOrdering, Math64, Matrices, Print, Residency};
        let capabilities = Capability::ALL
            .into_iter()
            .filter(|c| !matches!(c, Print | DeviceOrdering | Math64 | Residency | Matrices));
        Target::Wgsl {
            capabilities: capabilities.collect(),
            block,
            dynamic_shared: 0,
            distinct: false,
            exact_fma: true,
        }
    }

    /// Name for messages.
    pub fn name(&self) -> String {
        match self {
            Target::Ptx { sm } => format!("PTX {sm}"),
            Target::CudaC { .. } => "CUDA C".into(),
            Target::Wgsl { .. } => "WGSL".into(),
            Target::Msl => "MSL".into(),
        }
    }

    /// The Cargo feature of this crate that its renderer belongs to.
    pub const fn feature(&self) -> &'static str {
        match self {
            Target::Ptx { .. } => "ptx",
            Target::CudaC { .. } => "cuda-c",
            Target::Wgsl { .. } => "wgsl",
            Target::Msl => "msl",
        }
    }
}

/// What a renderer gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The program.
    pub text: String,
    /// Name of the entry point in it: the kernel's, perhaps changed so that it is clear of the language's words.
    pub entry: String,
    /// Where it can fault: the index is the number that a device reports, less the launch's site base.
    pub faults: Vec<FaultSite>,
    /// What it can print, numbered likewise.
    pub prints: Vec<PrintSite>,
}

/// Why a verified kernel cannot be rendered for a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The program was built without the renderer.
    #[error(
        "kernel `{kernel}`: this program was built without the renderer for {target}: enable the feature `{feature}` of perpetua-ir"
    )]
    NotBuilt {
        /// Kernel's name.
        kernel: String,
        /// The target.
        target: String,
        /// The renderer's Cargo feature.
        feature: &'static str,
    },
    /// The kernel needs something that the target lacks.
    #[error("kernel `{kernel}`{} needs {capability}, which {target} lacks: {}", line_text(*.line), .capability.remedy())]
    Lacks {
        /// Kernel's name.
        kernel: String,
        /// Line of the first use, 0 when unknown.
        line: u32,
        /// What is missing.
        capability: Capability,
        /// The target.
        target: String,
    },
    /// The kernel does something that the target cannot express.
    #[error("kernel `{kernel}`{}: {target} cannot express {what}", line_text(*.line))]
    Unsupported {
        /// Kernel's name.
        kernel: String,
        /// Line, 0 when unknown.
        line: u32,
        /// What cannot be expressed.
        what: String,
        /// The target.
        target: String,
    },
    /// A limit of the target is exceeded.
    #[error("kernel `{kernel}`: {what} is {found}, {target} allows {limit}")]
    Limit {
        /// Kernel's name.
        kernel: String,
        /// What is limited.
        what: String,
        /// The kernel's value.
        found: u64,
        /// The target's limit.
        limit: u64,
        /// The target.
        target: String,
    },
}

fn line_text(line: u32) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(" (line {line})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_read_and_written() {
        let check = |text: &str, expect: Option<&str>| {
            let read: Option<Sm> = text.parse().ok();
            assert_eq!(read.map(|sm| sm.to_string()).as_deref(), expect, "{text}");
        };
        check("75", Some("sm_75"));
        check("sm_90", Some("sm_90"));
        check("90a", Some("sm_90a"));
        check("sm_100f", Some("sm_100f"));
        // Newer than all that PTX names, and between two.
        check("130", Some("sm_130"));
        check("87", Some("sm_87"));
        for none in [
            "", "a", "sm_", "60", "75a", "90f", "80f", "90b", "+90", "9 0", "90aa", "sm_sm_90",
        ] {
            check(none, None);
        }
    }

    #[test]
    fn a_generation_is_rendered_as_what_ptx_names() {
        let check = |sm: Sm, expect: Option<(&str, &str)>| {
            let named = sm.named().map(|(sm, version)| (sm.to_string(), version));
            assert_eq!(
                named.as_ref().map(|(sm, version)| (&**sm, *version)),
                expect,
                "{sm}"
            );
        };
        check(90.into(), Some(("sm_90", "7.8")));
        check(Sm::of_device(9, 0), Some(("sm_90a", "8.0")));
        check(Sm::of_device(8, 7), Some(("sm_86", "7.1")));
        check(Sm::of_device(12, 1), Some(("sm_121a", "8.8")));
        check(Sm::of_device(13, 0), Some(("sm_120", "8.7")));
        check(60.into(), None);
        let family = Sm {
            number: 103,
            reach: SmReach::Family,
        };
        check(family, Some(("sm_103f", "8.8")));
    }
}
