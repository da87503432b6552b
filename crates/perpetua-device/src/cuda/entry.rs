//! What the disk cache keeps of a compiled kernel: machine code, or the text that the driver makes it of, and what a launch must know about it. A text of our own
//! making is not trusted: whatever does not read back counts as absent.

use perpetua_ir::back::Source;
use perpetua_ir::back::ptx::WideEntry;
use perpetua_ir::fault::FaultSite;
use perpetua_ir::ir::{FaultKind, Kernel, PrintPiece, Scalar};
use perpetua_ir::print::PrintSite;
use perpetua_ir::verify::Verified;

use crate::fault::KernelSites;

/// A compiled kernel.
pub(super) struct Entry {
    pub(super) cubin: Vec<u8>,
    /// For kernels from IR; text kernels have nothing that could be checked.
    pub(super) kernel: Option<Described>,
}

/// What launches of a kernel from IR need.
pub(super) struct Described {
    /// The kernel without its code: parameters, shared memory, block size.
    pub(super) header: Kernel,
    /// [`Verified::constant_buffers`].
    pub(super) constant: Vec<u32>,
    pub(super) entry: String,
    /// The entry point for large grids, if there is one.
    pub(super) wide: Option<WideEntry>,
    pub(super) sites: KernelSites,
}

impl Entry {
    pub(super) fn plain(cubin: Vec<u8>) -> Entry {
        Entry { cubin, kernel: None }
    }

    pub(super) fn checked(
        verified: &Verified,
        source: Source,
        wide: Option<WideEntry>,
        cubin: Vec<u8>,
    ) -> Entry {
        let kernel = verified.kernel();
        let header = Kernel {
            params: kernel.params.clone(),
            shared: kernel.shared.clone(),
            block_size: kernel.block_size,
            stages: kernel.stages.clone(),
            source: kernel.source.clone(),
            pointer_width: kernel.pointer_width,
            ..Kernel::new(kernel.name.clone())
        };
        let sites = KernelSites {
            kernel: kernel.name.clone(),
            source: kernel.source.clone(),
            faults: source.faults,
            prints: source.prints,
        };
        Entry {
            cubin,
            kernel: Some(Described {
                header,
                constant: verified.constant_buffers().to_vec(),
                entry: source.entry,
                wide,
                sites,
            }),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(self.cubin.len() + 1024));
        out.u32(u32::from(self.kernel.is_some()));
        if let Some(k) = &self.kernel {
            out.text(&k.header.to_string());
            out.u32(k.constant.len() as u32);
            k.constant.iter().for_each(|i| out.u32(*i));
            out.text(&k.entry);
            // No entry point has no name.
            let (wide, blocks) = k.wide.as_ref().map_or(("", 0), |wide| (&wide.name, wide.blocks));
            out.text(wide);
            out.u32(blocks);
            out.u32(k.sites.faults.len() as u32);
            for site in &k.sites.faults {
                out.u32(
                    FaultKind::ALL
                        .iter()
                        .position(|kind| *kind == site.kind)
                        .unwrap_or(0) as u32,
                );
                out.u32(site.line);
                out.text(&site.subject);
                out.scalars(&site.operands);
                out.pieces(&site.message);
            }
            out.u32(k.sites.prints.len() as u32);
            for site in &k.sites.prints {
                out.u32(site.line);
                out.pieces(&site.pieces);
                out.scalars(&site.args);
            }
        }
        out.0.extend_from_slice(&self.cubin);
        out.0
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Entry> {
        let mut read = Reader(bytes);
        if read.u32()? == 0 {
            return Some(Entry::plain(read.0.to_vec()));
        }
        let header: Kernel = read.text()?.parse().ok()?;
        let constant = read.list(Reader::u32)?;
        let entry = read.text()?.to_owned();
        let (name, blocks) = (read.text()?.to_owned(), read.u32()?);
        let wide = (!name.is_empty()).then_some(WideEntry { name, blocks });
        let faults = read.list(|r| {
            Some(FaultSite {
                kind: *FaultKind::ALL.get(r.u32()? as usize)?,
                line: r.u32()?,
                subject: r.text()?.to_owned(),
                operands: r.scalars()?,
                message: r.pieces()?,
            })
        })?;
        let prints = read.list(|r| {
            Some(PrintSite {
                line: r.u32()?,
                pieces: r.pieces()?,
                args: r.scalars()?,
            })
        })?;
        let sites = KernelSites {
            kernel: header.name.clone(),
            source: header.source.clone(),
            faults,
            prints,
        };
        Some(Entry {
            cubin: read.0.to_vec(),
            kernel: Some(Described {
                header,
                constant,
                entry,
                wide,
                sites,
            }),
        })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, v: u32) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }
    fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
    }
    fn scalars(&mut self, scalars: &[Scalar]) {
        self.u32(scalars.len() as u32);
        scalars.iter().for_each(|s| self.text(s.name()));
    }
    fn pieces(&mut self, pieces: &[PrintPiece]) {
        self.u32(pieces.len() as u32);
        for piece in pieces {
            match piece {
                PrintPiece::Arg(format) => {
                    self.u32(0);
                    self.text(&format.to_string());
                }
                PrintPiece::Text(text) => {
                    self.u32(1);
                    self.text(text);
                }
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }
    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }
    fn text(&mut self) -> Option<&'a str> {
        let n = self.u32()? as usize;
        std::str::from_utf8(self.bytes(n)?).ok()
    }
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let n = self.u32()? as usize;
        // Not `with_capacity`: a damaged count must not take the machine's memory.
        (0..n).map(|_| item(self)).collect()
    }
    fn scalars(&mut self) -> Option<Vec<Scalar>> {
        self.list(|r| Scalar::from_name(r.text()?))
    }
    fn pieces(&mut self) -> Option<Vec<PrintPiece>> {
        self.list(|r| match r.u32()? {
            0 => Some(PrintPiece::Arg(r.text()?.parse().ok()?)),
            _ => Some(PrintPiece::Text(r.text()?.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use perpetua_ir::ir::{Access, Param, ParamKind, Type};

    use super::*;

    fn entry() -> Entry {
        let mut kernel = Kernel::new("k");
        kernel.source = "src/k.rs".into();
        let element = Type::F32;
        kernel.params.push(Param {
            name: "x".into(),
            kind: ParamKind::Buffer {
                element,
                access: Access::Read,
            },
        });
        let division = FaultSite::new(FaultKind::DivisionByZero, 3, "division", vec![Scalar::I32]);
        let format = perpetua_ir::ir::PrintFormat {
            width: Some(9),
            ..Default::default()
        };
        let pieces = vec![PrintPiece::Text("v ".into()), PrintPiece::Arg(format)];
        let panic = FaultSite::panic(5, pieces.clone(), vec![Scalar::F64]);
        let print = PrintSite {
            line: 4,
            pieces,
            args: vec![Scalar::F32],
        };
        let source = Source {
            text: String::new(),
            entry: "k".into(),
            faults: vec![division, panic],
            prints: vec![print],
        };
        let verified = perpetua_ir::verify::verify(kernel).unwrap();
        let wide = WideEntry {
            name: "k_wide".into(),
            blocks: 4,
        };
        let mut entry = Entry::checked(&verified, source, Some(wide), vec![1, 2, 3]);
        entry.kernel.as_mut().unwrap().constant = vec![0];
        entry
    }

    #[test]
    fn an_entry_reads_back_as_it_was() {
        let (before, bytes) = (entry(), entry().encode());
        let after = Entry::decode(&bytes).unwrap();
        assert_eq!(after.cubin, before.cubin);
        let (before, after) = (before.kernel.unwrap(), after.kernel.unwrap());
        assert_eq!(
            (after.header, after.constant, after.entry, after.wide, after.sites),
            (
                before.header,
                before.constant,
                before.entry,
                before.wide,
                before.sites
            )
        );
    }

    #[test]
    fn a_cut_entry_is_no_entry() {
        let bytes = entry().encode();
        for n in 0..bytes.len() - 3 {
            assert!(Entry::decode(&bytes[..n]).is_none(), "{n}");
        }
    }
}
