//! How the processor computes floats while kernels run on a thread: rounded to nearest and with subnormal numbers, as Rust has it, whatever other code has
//! chosen for that thread (libraries built for fast mathematics have subnormals count as zero, and a new thread has what its parent had). Must not know what runs.

/// Holds what the thread had before, and gives it back in the end; nothing where it had what Rust has.
pub(super) struct Floats(Option<Control>);

impl Floats {
    /// From now on as Rust has it.
    pub(super) fn as_rust() -> Floats {
        let before = read();
        let differs = differs(before);
        if differs {
            write(RUST);
        }
        Floats(differs.then_some(before))
    }
}

impl Drop for Floats {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            write(before);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod register {
    use std::arch::asm;

    pub(super) type Control = u32;
    /// MXCSR with all exceptions masked, and nothing else.
    pub(super) const RUST: Control = 0x1f80;

    /// But for what has happened since.
    pub(super) fn differs(control: Control) -> bool {
        control & !0x3f != RUST
    }

    pub(super) fn read() -> Control {
        let mut found: Control = 0;
        // SAFETY: it stores four bytes to a variable of four bytes, and changes nothing else.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut found, options(nostack, preserves_flags)) };
        found
    }

    pub(super) fn write(control: Control) {
        // SAFETY: the value is Rust's own, or was read from this register on this thread (`Floats` stays on its thread: it is made and dropped
        // around one call), so no bit is set that the processor refuses. Rust's code between the two runs as the language defines; code
        // after the second runs as it would have without both.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use std::arch::asm;

    pub(super) type Control = u64;
    /// FPCR of a new program.
    pub(super) const RUST: Control = 0;

    pub(super) fn differs(control: Control) -> bool {
        control != RUST
    }

    pub(super) fn read() -> Control {
        let found: Control;
        // SAFETY: it reads a register that every program may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) found, options(nomem, nostack, preserves_flags)) };
        found
    }

    pub(super) fn write(control: Control) {
        // SAFETY: as on x86-64: Rust's own value, or one that was read from this register on this thread.
        unsafe { asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    pub(super) type Control = ();
    pub(super) const RUST: Control = ();

    pub(super) fn differs((): Control) -> bool {
        false
    }

    pub(super) fn read() -> Control {}

    pub(super) fn write((): Control) {}
}

use register::{Control, RUST, differs, read, write};

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn subnormals_are_numbers_meanwhile() {
        const FLUSHES: Control = RUST | 1 << 15 | 1 << 6;
        let halved = || std::hint::black_box(f32::MIN_POSITIVE) * std::hint::black_box(0.5);
        write(FLUSHES);
        let outside = halved();
        let floats = Floats::as_rust();
        let inside = halved();
        drop(floats);
        let after = read() & !0x3f;
        write(RUST);
        assert_eq!((outside, after), (0.0, FLUSHES));
        assert_eq!(inside.to_bits(), 1 << 22);
    }
}
