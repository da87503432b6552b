//! What tiles cost a device.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::tile::{eight, four, two};

/// Registers beyond this, and sixteen strips find no room.
const MOST_REGISTERS: u32 = 128;

#[test]
fn tiles_that_stay_pass_nvidias_assembler() {
    for (name, kernel) in [
        ("two", two::kernel()),
        ("four", four::kernel()),
        ("eight", eight::kernel()),
    ] {
        // SAFETY: nothing is launched.
        let kernel = unsafe { kernel.with_block_size(32, 16, 1).unchecked() };
        let lowered = perpetua_ir::front::rust::lower(&kernel.definition(), &kernel.instantiation()).unwrap();
        let verified = perpetua_ir::verify::verify(lowered).unwrap();
        for (sm, arch) in [(75, "sm_75"), (90, "sm_90a")] {
            let text = perpetua_ir::back::ptx::render(&verified, sm).unwrap().text;
            let Some(assembled) = perpetua_vendor_tools::ptxas(&text, arch).required(arch).unwrap() else {
                continue;
            };
            for usage in assembled.usage {
                println!("{name} {arch}: {usage:?}");
                assert!(usage.registers <= MOST_REGISTERS, "{name}: {usage:?}");
                // A word or two that are rarely needed may go.
                assert!(usage.spill_store_bytes <= 64, "{name}: {usage:?}");
            }
        }
    }
}
