//! AArch64 with NEON: instructions on vectors of 128 bits, on masks, and memory by lanes. There are no gathers and no masks of
//! accesses: what only some lanes do is written out lane by lane.

use super::*;

impl Assembler {
    /// The last operand of an instruction, in a register.
    fn source(&mut self, wide: bool, b: Source) -> u8 {
        match b {
            Source::Reg(r) => return r,
            Source::Mem(m) => self.vload(V0, m),
            Source::Splat(m) => self.splat(wide, V0, Rm::Mem(m)),
        }
        V0
    }

    /// Whether one lane is in, or all are, as 32 bits that are not zero.
    fn any(&mut self, reduce: u32, k: u8) -> Gpr {
        self.words.two(reduce, V0, k);
        self.words.two(vector::FMOV_TO, T1, V0);
        T1
    }

    /// What `each` writes for the lanes of a vector that are in the mask, one after the other: with its number, and among all lanes.
    fn lanes(&mut self, size: u32, k: u8, part: usize, mut each: impl FnMut(&mut Self, u32, u32)) {
        let (count, first) = if size == 8 { (2, 2 * part as u32) } else { (4, 0) };
        for lane in 0..count {
            let next = self.label();
            self.words.lane(vector::UMOV, 2, first + lane, T1, k);
            self.words.jump_zero(true, T1, next);
            each(self, lane, first + lane);
            self.place(next);
        }
    }

    /// From or to one lane of a vector at an address.
    fn lane_memory(&mut self, op: u32, size: u32, lane: u32, t: u8, at: Gpr) {
        // Small scalars have the low bytes of their lanes.
        let lane = lane * (4 / size).max(1);
        self.words.lane_memory(op, log(size), lane, t, at);
    }

    /// Stores all lanes.
    fn store_all(&mut self, size: u32, at: Mem, from: u8) {
        if size >= 4 {
            return self.vstore(at, from);
        }
        self.words.two(vector::XTN, V0, from);
        if size == 1 {
            // xtn from 16 bits to 8
            self.words.two(0x0E21_2800, V0, V0);
        }
        let log = log(4 * size);
        self.access(memory::STORE_V | log << 30, log, V0, at);
    }

    /// Each lane's own place: base and displacement lie in the assembler's third register.
    fn place_of(&mut self, Mem { index, .. }: Mem, lane: u32) {
        let (index, scale) = index.unwrap_or((X3, 0));
        self.words.lane(vector::UMOV, 2, lane, T1, index);
        // add with 32 bits, sign-extended
        let op = 0x8B20_C000 | u32::from(scale) << 10;
        self.words.three(op, T0, T2, T1);
    }

    fn base_of(&mut self, at: Mem) {
        let base = self.address(Mem { index: None, ..at });
        self.mov(true, T2, Rm::Reg(base));
    }
}

impl Lanes for Assembler {
    fn masks(&self) -> [u8; 3] {
        MASKS
    }

    fn vmov(&mut self, to: u8, from: u8) {
        if to != from {
            self.words.three(vector::ORR, to, from, from);
        }
    }

    fn vload(&mut self, to: u8, from: Mem) {
        self.access(memory::LOAD_Q, 4, to, from);
    }

    fn vstore(&mut self, to: Mem, from: u8) {
        self.access(memory::STORE_Q, 4, from, to);
    }

    fn zero(&mut self, to: u8) {
        self.words.two(vector::ZERO, to, 0);
    }

    fn splat(&mut self, wide: bool, to: u8, from: Rm) {
        match from {
            Rm::Reg(r) => self.words.lane(vector::DUP, if wide { 3 } else { 2 }, 0, to, r),
            Rm::Mem(m) => {
                let at = self.address(m);
                self.words.two(vector::LD1R | u32::from(wide) << 10, to, at);
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, b: Source) {
        let w = s.size() == 8;
        let b = self.source(w, b);
        let Some(word) = table::binary(op, s) else {
            return self.words.lacks();
        };
        match op {
            // To the right is to the left by less than nothing.
            BinaryOp::Shr => {
                self.words.two(wide(vector::NEG, w), V1, b);
                self.words.three(word, to, a, V1);
            }
            BinaryOp::Min | BinaryOp::Max if s.is_float() => {
                let (great, small) = if op == BinaryOp::Min { (b, a) } else { (a, b) };
                self.words.three(word, V1, great, small);
                self.words.three(vector::BSL, V1, a, b);
                self.vmov(to, V1);
            }
            _ => self.words.three(word, to, a, b),
        }
    }

    fn unary(&mut self, op: UnaryOp, s: Scalar, to: u8, a: u8) {
        match table::unary(op, s) {
            Some(word) => self.words.two(word, to, a),
            None => self.words.lacks(),
        }
    }

    fn vshift(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, by: u8) {
        let (bits, by) = (s.bits(), u32::from(by));
        let (word, number) = match op {
            _ if by == 0 => return self.vmov(to, a),
            BinaryOp::Shl => (vector::SHL, bits + by),
            _ if s.is_signed_int() => (vector::SSHR, 2 * bits - by),
            _ => (vector::USHR, 2 * bits - by),
        };
        self.words.two(word | number << 16, to, a);
    }

    fn convert(&mut self, from: Scalar, to: Scalar, d: u8, a: u8) {
        match (from, to) {
            (Scalar::F16, Scalar::F32) => {
                self.words.two(vector::XTN, V1, a);
                self.words.two(vector::FCVTL_HALF, d, V1);
            }
            (Scalar::F32, Scalar::F16) => {
                self.words.two(vector::FCVTN_HALF, V1, a);
                self.words.two(vector::UXTL_HALF, d, V1);
            }
            _ => match table::convert(from, to).filter(|_| from.size() == to.size()) {
                Some(word) => self.words.two(word, d, a),
                None => self.words.lacks(),
            },
        }
    }

    fn widen(&mut self, from: Scalar, to: Scalar, d: u8, a: u8, half: u8) {
        let integer = if from.is_signed_int() {
            Scalar::I64
        } else {
            Scalar::U64
        };
        let widened = if from.is_float() { to } else { integer };
        let Some(word) = table::convert(from, widened) else {
            return self.words.lacks();
        };
        self.words.two(word | u32::from(half) << 30, d, a);
        if to != widened {
            self.convert(widened, to, d, d);
        }
    }

    fn narrow(&mut self, from: Scalar, to: Scalar, d: u8, mut low: u8, mut high: u8) {
        if from.is_float() && to.is_float() {
            self.words.two(vector::FCVTN, V0, low);
            self.words.two(vector::FCVTN | 1 << 30, V0, high);
            return self.vmov(d, V0);
        }
        if from.is_float() {
            let integer = if to.is_signed_int() {
                Scalar::I64
            } else {
                Scalar::U64
            };
            self.convert(from, integer, V0, low);
            self.convert(from, integer, V1, high);
            (low, high) = (V0, V1);
        }
        self.words.three(vector::UZP1, d, low, high);
    }

    fn fma(&mut self, w: bool, to: u8, a: u8, b: u8, c: u8) {
        let sum = if to == c || to != a && to != b { to } else { V0 };
        self.vmov(sum, c);
        self.words.three(wide(vector::FMLA, w), sum, a, b);
        self.vmov(to, sum);
    }

    fn kmov(&mut self, to: u8, from: u8) {
        self.vmov(to, from);
    }

    fn kload(&mut self, to: u8, from: Mem) {
        self.vload(to, from);
    }

    fn kstore(&mut self, to: Mem, from: u8) {
        self.vstore(to, from);
    }

    fn mask_of_bits(&mut self, k: u8, r: Gpr) {
        self.vload(V0, self.bits);
        self.splat(false, k, Rm::Reg(r));
        self.words.three(vector::CMTST, k, k, V0);
    }

    fn bits_of_mask(&mut self, r: Gpr, k: u8) {
        self.vload(V0, self.bits);
        self.words.three(vector::AND, V0, V0, k);
        self.words.two(vector::ADDV, V0, V0);
        self.words.two(vector::FMOV_TO, r, V0);
    }

    fn kset(&mut self, k: u8, ones: bool) {
        self.words
            .two(if ones { vector::ONES } else { vector::ZERO }, k, 0);
    }

    fn klogic(&mut self, op: MOp, to: u8, a: u8, b: u8) {
        match op {
            MOp::And => self.words.three(vector::AND, to, a, b),
            MOp::AndNot => self.words.three(vector::BIC, to, b, a),
            MOp::Or => self.words.three(vector::ORR, to, a, b),
            MOp::Xor => self.words.three(vector::EOR, to, a, b),
            MOp::Xnor => {
                self.words.three(vector::EOR, to, a, b);
                self.words.two(vector::NOT, to, to);
            }
        }
    }

    fn kjump(&mut self, none: bool, k: u8, to: Label) {
        let any = self.any(vector::UMAXV, k);
        self.words.jump_zero(none, any, to);
    }

    fn kall(&mut self, k: u8) {
        self.kset(k, true);
    }

    fn kjump_all(&mut self, k: u8, all: Label, none: Option<Label>) {
        let every = self.any(vector::UMINV, k);
        self.words.jump_zero(false, every, all);
        if let Some(none) = none {
            self.kjump(true, k, none);
        }
    }

    fn kinside(&mut self, k: u8, active: u8, none: Option<Label>, some: Label) {
        if let Some(none) = none {
            self.klogic(MOp::And, V1, k, active);
            self.kjump(true, V1, none);
        }
        self.klogic(MOp::AndNot, V1, k, active);
        self.kjump(false, V1, some);
    }

    fn several(&mut self, x: u8, to: Label) {
        self.words.lane(vector::DUP_LANE, 2, 0, V1, x);
        self.words.three(vector::CMEQ, V1, V1, x);
        let same = self.any(vector::UMINV, V1);
        self.words.jump_zero(true, same, to);
        self.words.lane(vector::UMOV, 2, 0, C, x);
    }

    fn first_lanes(&mut self, k: u8) {
        self.mov_imm(C, 1);
        self.shift(Shift::Left, true, C, Rm::Reg(C), A);
        self.alu_imm(Alu::Sub, true, Rm::Reg(C), 1);
        self.mask_of_bits(k, C);
    }

    fn half_mask(&mut self, k: u8, part: usize, wide: bool) -> u8 {
        if !wide {
            return k;
        }
        let to = MASKS[2];
        self.words.two(vector::SXTL | (part as u32) << 30, to, k);
        to
    }

    fn pair(&mut self, to: u8, low: u8, high: u8) {
        self.words.three(vector::UZP1, to, low, high);
    }

    fn compare(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, b: Source) {
        let w = s.size() == 8;
        let b = self.source(w, b);
        let [equal, greater, at_least] = match s {
            Scalar::F32 | Scalar::F64 => [vector::FCMEQ, vector::FCMGT, vector::FCMGE],
            _ if s.is_signed_int() => [vector::CMEQ, vector::CMGT, vector::CMGE],
            _ => [vector::CMEQ, vector::CMHI, vector::CMHS],
        };
        let (word, a, b) = match op {
            BinaryOp::Lt => (greater, b, a),
            BinaryOp::Le => (at_least, b, a),
            BinaryOp::Ge => (at_least, a, b),
            BinaryOp::Gt => (greater, a, b),
            _ => (equal, a, b),
        };
        self.words.three(wide(word, w), to, a, b);
        if op == BinaryOp::Ne {
            self.words.two(vector::NOT, to, to);
        }
    }

    fn not_zero(&mut self, to: u8, a: u8) {
        self.words.three(vector::CMTST, to, a, a);
    }

    fn ones(&mut self, to: u8, k: u8, _: Mem) {
        self.vshift(BinaryOp::Shr, Scalar::U32, to, k, 31);
    }

    fn blend(&mut self, _: bool, to: u8, a: u8, b: u8, k: u8) {
        if to == b && to != a || to == k {
            self.vmov(V0, k);
            self.words.three(vector::BSL, V0, b, a);
            return self.vmov(to, V0);
        }
        self.vmov(to, a);
        self.words.three(vector::BIT, to, b, k);
    }

    fn load_run(&mut self, size: u32, to: u8, at: Mem, _: Option<u8>, _: usize) {
        if size >= 4 {
            return self.vload(to, at);
        }
        let log = log(4 * size);
        self.access(memory::LOAD_V | log << 30, log, to, at);
        if size == 1 {
            // uxtl from 8 bits to 16
            self.words.two(0x2F08_A400, to, to);
        }
        self.words.two(vector::UXTL_HALF, to, to);
    }

    fn store_run(&mut self, size: u32, at: Mem, from: u8, k: Option<u8>, part: usize) {
        let Some(k) = k else {
            return self.store_all(size, at, from);
        };
        let (some, done) = (self.label(), self.label());
        let all = self.any(vector::UMINV, k);
        self.words.jump_zero(true, all, some);
        self.store_all(size, at, from);
        self.jmp(done);
        self.place(some);
        let first = self.address(at);
        self.mov(true, T2, Rm::Reg(first));
        self.lanes(size, k, part, |asm, lane, _| {
            asm.words.number(general::ADD_IMM, true, T0, T2, lane * size);
            asm.lane_memory(vector::ST1, size, lane, from, T0);
        });
        self.place(done);
    }

    fn store_own(&mut self, size: u32, at: Mem, from: u8, k: u8, part: usize) {
        let k = self.half_mask(k, part, size == 8);
        self.vload(V1, at);
        self.words.three(vector::BIT, V1, from, k);
        self.vstore(at, V1);
    }

    fn gather(&mut self, size: u32, to: u8, at: Mem, k: u8, part: usize) {
        self.base_of(at);
        self.zero(V0);
        self.lanes(size, k, part, |asm, lane, of| {
            asm.place_of(at, of);
            asm.lane_memory(vector::LD1, size, lane, V0, T0);
        });
        self.vmov(to, V0);
    }

    fn scatter(&mut self, size: u32, at: Mem, from: u8, k: u8, part: usize) {
        self.base_of(at);
        self.lanes(size, k, part, |asm, lane, of| {
            asm.place_of(at, of);
            asm.lane_memory(vector::ST1, size, lane, from, T0);
        });
    }
}
