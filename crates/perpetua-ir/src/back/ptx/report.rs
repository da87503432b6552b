//! Reports to the host: the fault record and the print ring. Layouts are those of [`crate::fault`].

use super::Renderer;
use super::emit::{Label, Leaf, emit, emit_once};
use super::memory::Space;
use crate::fault::record;
use crate::ir::{Axis, DeviceOp, Scalar, Value};
use crate::print::ring;

/// Name of the parameter that holds the fault record's address.
pub(super) const RECORD: &str = "perpetua_fault_record";
/// Name of the parameter that holds the launch's site base.
pub(super) const SITE_BASE: &str = "perpetua_site_base";
/// Name of the parameter that holds the print ring's address.
pub(super) const PRINT_RING: &str = "perpetua_print_ring";
/// Where lanes that end by a fault go.
const REPORT: &str = "$fault";

/// Byte offset of a word.
const fn byte(word: usize) -> usize {
    word * 4
}

impl Renderer<'_> {
    /// A parameter that is an address in global memory.
    fn hidden_pointer(&mut self, name: &str) -> Leaf {
        let (generic, d) = (self.out.wide(), self.out.wide());
        emit!(self, "ld.param.u64 {generic}, [{name}]");
        emit!(self, "cvta.to.global.u64 {d}, {generic}");
        d
    }

    /// Reports a fault; says whether the lane ends. `last`: nothing but the lane's end follows.
    pub(super) fn fault(&mut self, operands: &[Value], last: bool) -> bool {
        let site = Leaf::Imm(self.frame.next.0.into());
        self.frame.next.0 += 1;
        let mut wide: Vec<Leaf> = operands.iter().map(|v| self.reported(*v)).collect();
        wide.resize(wide.len().max(2), Leaf::Imm(0));
        let at_end = self.at_once || last;
        if at_end && wide.len() > 2 {
            let done = self.out.label();
            self.record(site, &wide, done);
            self.out.place(done);
            emit!(self, "ret");
            return true;
        }
        if at_end {
            let registers = match self.report {
                Some(registers) => registers,
                None => [self.out.word(), self.out.wide(), self.out.wide()],
            };
            self.report = Some(registers);
            let [to_site, first, second] = registers;
            self.copy(to_site, site, Scalar::U32);
            self.copy(first, wide[0], Scalar::U64);
            self.copy(second, wide[1], Scalar::U64);
            emit!(self, "bra {REPORT}");
            return true;
        }
        let dead = self.dead_register();
        let done = self.out.label();
        // A lane that is dead already does not claim the record: it or another lane has.
        emit!(self, "mov.pred {dead}, 1");
        if self.facts.asks(DeviceOp::CatchFault)
            && let Leaf::Imm(site) = site
        {
            let caught = self.caught_register();
            emit!(self, "ld.param.u32 {caught}, [{SITE_BASE}]");
            emit!(self, "add.u32 {caught}, {caught}, {}", site + 1);
        }
        self.record(site, &wide, done);
        self.out.place(done);
        false
    }

    /// An operand in 64 bits: an integer extended by its type, of a float its bits.
    fn reported(&mut self, v: Value) -> Leaf {
        let (s, leaf) = (self.scalar_of(v), self.leaf(v));
        if s.is_float() {
            return self.bits_of(s, leaf);
        }
        self.in_64_bits(s, leaf)
    }

    /// The register that is set once the lane has faulted.
    pub(super) fn dead_register(&mut self) -> Leaf {
        match self.dead {
            Some(dead) => dead,
            None => {
                let dead = self.out.pred();
                emit_once!(self, "mov.pred {dead}, 0");
                self.dead = Some(dead);
                dead
            }
        }
    }

    /// The register that holds the number plus one of the site where the lane has faulted, in kernels that ask.
    pub(super) fn caught_register(&mut self) -> Leaf {
        match self.caught {
            Some(caught) => caught,
            None => {
                let caught = self.out.word();
                emit_once!(self, "mov.u32 {caught}, 0");
                self.caught = Some(caught);
                caught
            }
        }
    }

    /// Claims the record and fills it in, or goes to `done`. The device alone contests the record, and the host clears it between
    /// launches: device scope, since without PCIe's own atomics the system's gives no more on host memory.
    fn record(&mut self, site: Leaf, operands: &[Leaf], done: Label) {
        let at = self.hidden_pointer(RECORD);
        let (old, p) = (self.out.word(), self.out.pred());
        emit!(
            self,
            "atom.relaxed.gpu.global.cas.b32 {old}, [{at}+{}], 0, 1",
            byte(record::CLAIM)
        );
        emit!(self, "setp.ne.u32 {p}, {old}, 0");
        emit!(self, "@{p} bra {done}");
        let base = self.out.word();
        emit!(self, "ld.param.u32 {base}, [{SITE_BASE}]");
        let number = self.three("add.u32", Scalar::U32, base, site);
        emit!(self, "st.global.b32 [{at}+{}], {number}", byte(record::SITE));
        // Read here and not at the start, which code without faults would pay for.
        for (first, special) in [(record::BLOCK, "ctaid"), (record::THREAD, "tid")] {
            for (i, axis) in Axis::ALL.into_iter().enumerate() {
                let index = match self.block_of_faults {
                    Some(block) if first == record::BLOCK && axis == Axis::X => self.register_of(block),
                    _ => {
                        let index = self.out.word();
                        emit!(self, "mov.u32 {index}, %{special}.{}", axis.name());
                        index
                    }
                };
                emit!(self, "st.global.b32 [{at}+{}], {index}", byte(first + i));
            }
        }
        for (i, operand) in operands.iter().enumerate() {
            emit!(
                self,
                "st.global.b64 [{at}+{}], {operand}",
                byte(record::operand(i))
            );
        }
        emit!(self, "membar.sys");
    }

    /// Writes the code to which lanes that end by a fault go.
    pub(super) fn common_report(&mut self) {
        let Some([site, first, second]) = self.report else {
            return;
        };
        let done = self.out.label();
        self.out.place_named(REPORT);
        self.record(site, &[first, second], done);
        self.out.place(done);
        emit!(self, "ret");
    }

    /// A scalar's bits, zero-extended to 64.
    fn bits_of(&mut self, s: Scalar, leaf: Leaf) -> Leaf {
        let unsigned = self.zero_extended(s, leaf);
        match s {
            Scalar::Bool => self.cast(s, Scalar::U64, unsigned),
            _ if s.size() == 8 => unsigned,
            _ => self.cast(Scalar::U32, Scalar::U64, unsigned),
        }
    }

    /// Writes a record to the print ring.
    pub(super) fn print(&mut self, args: &[Value]) {
        let number = self.frame.next.1;
        self.frame.next.1 += 1;
        let words = 1 + 2 * args.len() as u32;
        let done = self.out.label();
        let ring = self.hidden_pointer(PRINT_RING);
        let (at, capacity) = (self.out.word(), self.out.word());
        emit!(
            self,
            "atom.relaxed.gpu.global.add.u32 {at}, [{ring}+{}], {words}",
            byte(ring::CURSOR)
        );
        emit!(
            self,
            "ld.global.b32 {capacity}, [{ring}+{}]",
            byte(ring::CAPACITY)
        );
        // In 64 bits: the sum of two words may not fit one.
        let end = self.cast(Scalar::U32, Scalar::U64, at);
        let end = self.three("add.u64", Scalar::U64, end, Leaf::Imm(words.into()));
        let room = self.cast(Scalar::U32, Scalar::U64, capacity);
        let full = self.compare("gt", "u64", Scalar::U64, end, room);
        let (dropped, rest) = (self.out.word(), self.out.label());
        emit!(self, "@!{full} bra {rest}");
        emit!(
            self,
            "atom.relaxed.gpu.global.add.u32 {dropped}, [{ring}+{}], 1",
            byte(ring::DROPPED)
        );
        emit!(self, "bra {done}");
        self.out.place(rest);
        let to = self.out.wide();
        emit!(self, "mad.wide.u32 {to}, {at}, 4, {ring}");
        for (i, v) in args.iter().enumerate() {
            let wide = self.bits_of(self.scalar_of(*v), self.leaf(*v));
            let (low, high) = self.halves(wide);
            let word = ring::RECORDS + 1 + 2 * i;
            emit!(self, "st.global.b32 [{to}+{}], {low}", byte(word));
            emit!(self, "st.global.b32 [{to}+{}], {high}", byte(word + 1));
        }
        let base = self.out.word();
        emit!(self, "ld.param.u32 {base}, [{SITE_BASE}]");
        let number = self.words("add.u32", base, number + 1);
        let space = Space::Global.name();
        emit!(
            self,
            "st.release.sys.{space}.b32 [{to}+{}], {number}",
            byte(ring::RECORDS)
        );
        self.out.place(done);
    }
}
