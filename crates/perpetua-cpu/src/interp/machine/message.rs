//! `gpu_println!`: one line for each active lane, lowest first.

use super::super::launch::Printed;
use super::super::mask;
use super::super::program::Reg;
use super::{Launch, Machine};

impl Machine {
    pub(super) fn print(&self, launch: &Launch<'_>, site: u32, args: &[Reg]) {
        let Some(sink) = launch.print else { return };
        let site = &launch.program.prints[site as usize];
        for lane in mask::lanes(&self.active) {
            let bits = site.args.iter().zip(args);
            let bits = bits.map(|(_, reg)| self.value(*reg, lane));
            let text = site.format(&bits.collect::<Vec<u64>>());
            sink(&Printed {
                text: &text,
                line: site.line,
                block: self.block,
                thread: self.shape.thread(self.part.first + lane),
            });
        }
    }
}
