//! Why a lane ended before its time. Knows nothing of lanes and launches.

use perpetua_ir::ir::{FaultKind, Scalar};

use crate::kernel::element::Invalid;

/// A place in the source where a lane can fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The source file.
    pub file: &'static str,
    /// The line in it.
    pub line: u32,
    /// What is indexed: a parameter's or variable's name.
    pub subject: &'static str,
}

/// A lane's fault: what, where, with which operands.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    pub(super) site: &'static Site,
    subject: &'static str,
    pub(super) kind: FaultKind,
    pub(super) operands: [u64; 2],
    pub(super) types: [Option<Scalar>; 2],
}

/// The host's `usize` in the IR.
const USIZE: Scalar = if size_of::<usize>() == 8 {
    Scalar::U64
} else {
    Scalar::U32
};

impl Stop {
    /// An index beyond a length.
    #[cold]
    pub fn index(site: &'static Site, index: usize, len: usize) -> Stop {
        Stop {
            site,
            subject: site.subject,
            kind: FaultKind::IndexOutOfBounds,
            operands: [index as u64, len as u64],
            types: [Some(USIZE); 2],
        }
    }

    /// An offset, counted from the halo's edge, that lies beyond the halo.
    #[cold]
    pub(super) fn offset(site: &'static Site, from_edge: u32, count: u32) -> Stop {
        Stop {
            site,
            subject: site.subject,
            kind: FaultKind::IndexOutOfBounds,
            operands: [from_edge.into(), count.into()],
            types: [Some(Scalar::U32); 2],
        }
    }

    /// A division by zero; the dividend zero- or sign-extended to two words.
    #[cold]
    pub(super) fn zero(site: &'static Site, types: [Option<Scalar>; 2], dividend: [u64; 2]) -> Stop {
        Stop {
            site,
            subject: site.subject,
            kind: FaultKind::DivisionByZero,
            operands: types[1].map_or([dividend[0], 0], |_| dividend),
            types,
        }
    }

    /// MIN / -1.
    #[cold]
    pub(super) fn overflow(site: &'static Site, types: [Option<Scalar>; 2], dividend: [u64; 2]) -> Stop {
        Stop {
            site,
            subject: site.subject,
            kind: FaultKind::DivisionOverflow,
            operands: types[1].map_or([dividend[0], u64::MAX], |_| dividend),
            types: [types[0], types[1].or(types[0])],
        }
    }

    /// A number that is no variant.
    #[cold]
    pub(super) fn invalid(site: &'static Site, invalid: Invalid) -> Stop {
        Stop {
            site,
            subject: invalid.ty,
            kind: FaultKind::UnreachableEnum,
            operands: [invalid.value, 0],
            types: [Some(Scalar::U64), None],
        }
    }

    /// `unreachable!()` was reached.
    #[cold]
    pub fn unreachable(site: &'static Site) -> Stop {
        Stop {
            site,
            subject: site.subject,
            kind: FaultKind::Unreachable,
            operands: [0, 0],
            types: [None, None],
        }
    }

    /// A range in steps of zero.
    #[cold]
    pub(super) fn zero_step(site: &'static Site) -> Stop {
        Stop {
            kind: FaultKind::ZeroStep,
            ..Stop::unreachable(site)
        }
    }

    /// What is accessed or computed, where it has a name.
    pub(super) fn subject(&self) -> &'static str {
        match self.kind {
            FaultKind::Unreachable | FaultKind::ZeroStep => "",
            _ => self.subject,
        }
    }
}

/// What a call gave, as its caller sees it: a fault in another file is reported at the call.
///
/// # Errors
/// The callee's fault.
#[inline(always)]
pub fn returned<T>(result: Result<T, Stop>, site: &'static Site) -> Result<T, Stop> {
    // As a `match`, rustc would merge it into its callers before LLVM has taken results apart, and no loop that calls a
    // device function would become vector instructions: `perpetua wave bench --backend cpu` tells.
    result.map_err(|stop| {
        if stop.site.file == site.file {
            stop
        } else {
            Stop { site, ..stop }
        }
    })
}
