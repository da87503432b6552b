//! Makes instructions that have been written as data visible to a processor whose caches for the two know nothing of each other.

/// All that executes from now on sees what lies there.
///
/// # Safety
/// The range must be readable.
pub(super) unsafe fn make_visible(start: *const u8, bytes: usize) {
    #[cfg(target_arch = "aarch64")]
    {
        use std::arch::asm;
        let types: usize;
        // SAFETY: reads a register that the system leaves to programs.
        unsafe { asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) };
        // Words of a line, as powers of two: of instructions in bits 0 to 3, of data in bits 16 to 19.
        let (instructions, data) = (4 << (types & 15), 4 << (types >> 16 & 15));
        let lines = |size: usize| ((start as usize & !(size - 1))..start as usize + bytes).step_by(size);
        for line in lines(data) {
            // SAFETY: the line has a byte of the range, which can be read; its contents stay.
            unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
        }
        // SAFETY: waits for what has been asked for, of all processors.
        unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
        for line in lines(instructions) {
            // SAFETY: as above; instructions are read again.
            unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
        }
        // SAFETY: as above, and forgets what this processor has read ahead.
        unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
    }
    // Others keep their caches in step.
    #[cfg(not(target_arch = "aarch64"))]
    let _ = (start, bytes);
}
