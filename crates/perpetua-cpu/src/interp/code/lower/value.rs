//! Values: where each lies, and how it gets from there to where an instruction wants it.

use super::operation::bits_of;
use super::*;
use perpetua_ir::ops::BinaryOp;

impl Lower<'_> {
    /// Where a value lies, or is to lie.
    pub(super) fn place(&mut self, v: V) -> Place {
        let known = self.places[v.index()];
        if known != Place::Nowhere {
            return known;
        }
        let info = &self.tree.values[v.index()];
        let place = match (info.fill, self.spreads.kind(v)) {
            (Some(fill), kind) => {
                match (self.program.fills.get(fill as usize), kind, self.fill_level(fill)) {
                    (Some((_, Fill::Builtin(Builtin::SubgroupLane))), ..) => Place::SubgroupLane,
                    (_, _, (level, Origin::State(at))) => Place::Fill(level, at),
                    (_, Kind::Affine(step), (level, given)) => {
                        Place::Affine(G::R(self.given(level, given)), step)
                    }
                    (_, _, (level, given)) => Place::General(self.given(level, given)),
                }
            }
            (None, Kind::Uniform) => Place::General(self.general()),
            (None, Kind::Affine(step)) => Place::Affine(G::R(self.general()), step),
            (None, _) if info.bool => Place::Mask(self.mask()),
            (None, _) => {
                let first = self.vector();
                let second = if self.parts(v) == 2 { self.vector() } else { first };
                Place::Vector([first, second])
            }
        };
        self.places[v.index()] = place;
        place
    }

    /// A value that is one for all lanes; of an affine one the first lane's.
    pub(super) fn g(&mut self, v: V) -> Result<G, Refusal> {
        match self.place(v) {
            Place::General(r) => Ok(G::R(r)),
            Place::Affine(g, _) => Ok(g),
            Place::Fill(level, at) => {
                let constant = self.spreads.constant(v);
                let small = constant.and_then(|bits| match self.size(v) {
                    8 => i32::try_from(bits as i64).ok(),
                    4 => Some(bits as u32 as i32),
                    _ => Some(bits as i32),
                });
                Ok(match small {
                    Some(small) => G::Imm(small),
                    None => G::R(self.given(level, Origin::State(at))),
                })
            }
            _ => Err(Refusal::Unknown("a uniform value that lanes have")),
        }
    }

    /// The register that a uniform or affine result goes to.
    pub(super) fn scalar_for(&mut self, v: V) -> Option<R> {
        match self.place(v) {
            Place::General(r) | Place::Affine(G::R(r), _) => Some(r),
            _ => None,
        }
    }

    /// A value in vectors, a `bool` as zero or one.
    pub(super) fn x(&mut self, v: V) -> Result<[R; 2], Refusal> {
        match self.place(v) {
            Place::Vector(regs) => Ok(regs),
            Place::Frame(_) => self.vectors_of(v),
            _ => self.splatted(v, |lower| lower.vectors_of(v)),
        }
    }

    /// Puts a value that lies elsewhere into vectors.
    fn vectors_of(&mut self, v: V) -> Result<[R; 2], Refusal> {
        let parts = self.parts(v);
        let wide = parts == 2;
        let mut d = [R(0); 2];
        match self.place(v) {
            Place::Vector(regs) => return Ok(regs),
            Place::Mask(m) => {
                let one = self.constant(&1u64.to_le_bytes(), 8);
                d = [self.vector(); 2];
                self.put(I::XFromM { d: d[0], m, one });
            }
            Place::Fill(_, at) => {
                d = [self.vector(); 2];
                let a = X::Splat(at);
                self.put(I::XLoad { d: d[0], a, wide });
            }
            Place::General(r) => {
                d = [self.vector(); 2];
                self.put(I::XSplat {
                    wide,
                    d: d[0],
                    a: G::R(r),
                });
            }
            Place::Affine(a, step) => {
                let base = self.vector();
                self.put(I::XSplat { wide, d: base, a });
                for (part, d) in d.iter_mut().enumerate().take(parts) {
                    *d = self.vector();
                    let b = self.iota(step, wide, part);
                    self.two(BinaryOp::Add, bits_of(wide), *d, base, b);
                }
                if !wide {
                    d[1] = d[0];
                }
            }
            Place::Frame(at) => {
                for (part, d) in d.iter_mut().enumerate().take(parts) {
                    *d = self.vector();
                    let at = at + (part as u32 * self.bytes()) as i32;
                    self.put(I::XFrameLoad { d: *d, at });
                }
                if !wide {
                    d[1] = d[0];
                }
            }
            Place::SubgroupLane => {
                let (base, sum) = (self.vector(), self.vector());
                let first = G::R(self.given(GANG, Origin::Gang(GANG_FIRST)));
                d = [self.vector(); 2];
                self.put(I::XSplat {
                    wide: false,
                    d: base,
                    a: first,
                });
                let b = self.iota(1, false, 0);
                self.two(BinaryOp::Add, Scalar::U32, sum, base, b);
                let b = X::Splat(SUBGROUP_MASK);
                self.two(BinaryOp::And, Scalar::U32, d[0], sum, b);
            }
            Place::Nowhere => return Err(Refusal::Unknown("a value that lies nowhere")),
        }
        Ok(d)
    }

    /// The same as the second operand of an operation, which may lie in memory.
    pub(super) fn xo(&mut self, v: V, part: usize) -> Result<X, Refusal> {
        match self.place(v) {
            // A scalar in memory is as good as a vector where instructions take one.
            Place::Fill(_, at) if self.target.isa != Isa::Avx2 => Ok(X::Splat(at)),
            _ => Ok(X::R(self.x(v)?[part])),
        }
    }

    /// A `bool` as a mask.
    pub(super) fn m(&mut self, v: V) -> Result<R, Refusal> {
        match self.place(v) {
            Place::Mask(m) => Ok(m),
            Place::General(_) | Place::Fill(..) => {
                let d = self.mask();
                match self.g(v)? {
                    G::Imm(bits) => self.put(I::MConst {
                        d,
                        ones: bits & 1 == 1,
                    }),
                    a => self.put(I::MFromG { d, a }),
                }
                Ok(d)
            }
            _ => {
                let ([a, _], d) = (self.x(v)?, self.mask());
                self.put(I::MFromX { d, a });
                Ok(d)
            }
        }
    }

    /// Where the result of an operation on lanes goes: to a register of its own, from which [`Lower::settle`] takes it.
    pub(super) fn vectors_for(&mut self, v: V) -> [R; 2] {
        match self.place(v) {
            Place::Vector(regs) => regs,
            _ => {
                let first = self.vector();
                let second = if self.parts(v) == 2 { self.vector() } else { first };
                [first, second]
            }
        }
    }

    /// Puts what lies in vectors where the value is to lie.
    pub(super) fn settle(&mut self, v: V, from: [R; 2], masked: bool) -> Result<(), Refusal> {
        match self.place(v) {
            Place::Vector(regs) => {
                let wide = self.parts(v) == 2;
                for part in 0..self.parts(v) {
                    if regs[part] != from[part] {
                        self.mov(regs[part], from[part], masked, wide, part == 1);
                    }
                }
                Ok(())
            }
            Place::Frame(at) => {
                let wide = self.parts(v) == 2;
                for (part, s) in from.into_iter().enumerate().take(self.parts(v)) {
                    let at = at + (part as u32 * self.bytes()) as i32;
                    self.put(I::XFrameStore {
                        at,
                        s,
                        masked,
                        high: part == 1,
                        wide,
                    });
                }
                Ok(())
            }
            Place::Mask(d) => {
                let m = self.mask();
                self.put(I::MFromX { d: m, a: from[0] });
                self.settle_mask(d, m, masked);
                Ok(())
            }
            _ => Err(Refusal::Unknown("a result of lanes that is uniform")),
        }
    }

    pub(super) fn mov(&mut self, d: R, s: R, masked: bool, wide: bool, high: bool) {
        if !masked {
            self.put(I::XMov { d, s, masked });
        } else if wide {
            let m = CURRENT;
            self.put(I::XBlend {
                wide,
                part: Some(high.into()),
                d,
                m,
                a: d,
                b: s,
            });
        } else {
            self.put(I::XMov { d, s, masked });
        }
    }

    pub(super) fn settle_mask(&mut self, d: R, m: R, masked: bool) {
        if masked {
            self.put(I::MKeep { d, m });
        } else {
            self.put(I::MMov { d, s: m });
        }
    }
}
