//! Decoding: attention of one query an entry to keys in pages. Must not know how lanes compute it.

use half::{bf16, f16};
use perpetua_device::{BackendKind, KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::{Capability, Sm};
use perpetua_language::kernel::resident::U32x4;
use perpetua_language::{KernelFn, args};

use super::MOST_COLUMNS;
use super::in_stages::MOST_ROWS;
use super::paged::{self, HEADS, PARTS_OF_BLOCK, attention_paged_tensor_core};
use super::paged_staged::{self, attention_paged_staged};
use crate::element::{Element, in_pieces, instance};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, ptx_of, ptx_unchecked};
use crate::operand::{Operand, check};

/// Blocks that a large GPU has room for at the same time, and the fewest keys for which it is worth to have one more.
const BLOCKS: usize = 1056;
const LEAST_KEYS: usize = 256;

/// How the keys of a block are gone over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    TensorCores,
    Stages,
}

/// Where keys and values lie: in pages of a pool, of which each entry of a batch has some, in an order that a table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Pages of the pool.
    pub count: usize,
    /// Keys of a page.
    pub rows: usize,
    /// Most pages of an entry.
    pub of_entry: usize,
}

/// `softmax(scale q K^T) V` for one query of each head of each entry of a batch, whose keys and values lie in [`Pages`]: the step of decoding. Launched with six buffers: Q of
/// `[batch, heads, dim]`; K and V, the pools, of `[count, rows, key heads, dim]`; the table, `u32`, of `[batch, of_entry]`, whose entry's page `i` has its keys from `i * rows` on; lengths, `u32`, how many keys
/// each entry has; and the result of Q's shape.
///
/// Blocks compute parts of the keys at the same time, and a launch of its own adds them up, in their order: how many parts there are depends on the shape alone. On devices with `Capability::Matrices`
/// [`Element::F16`] and [`Element::Bf16`] with heads of a multiple of 8 columns in buffers that begin at multiples of 16 bytes are multiplied by tensor cores: weights are rounded to that type then. Of pages only the rows
/// below an entry's length are read, and no place of the table behind it. In stages ([`PagedAttentionKernel::in_stages`]) V may be multiplied with weights of 0 on the pages where a window begins and where an entry ends: there an infinity gives NaN. A page's number that is none makes an entry's result NaN. An entry of no key gets zeros.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, PagedAttentionKernel, Pages};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let q = device.zeros::<f32>(1)?; // one head of one column
/// let k = device.zeros::<f32>(4)?; // two pages of two keys
/// let v = device.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
/// let table = device.upload(&[1u32, 0])?;
/// let lengths = device.upload(&[3u32])?;
/// let out = device.zeros::<f32>(1)?;
/// let pages = Pages { count: 2, rows: 2, of_entry: 2 };
/// let decode = PagedAttentionKernel::new(1, 1, 1, pages);
/// decode.launch(&device.default_stream(), args![&q, &k, &v, &table, &lengths, &out])?;
/// assert_eq!(out.read()?, [(3.0 + 4.0 + 1.0) / 3.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagedAttentionKernel {
    batch: usize,
    heads: usize,
    key_heads: usize,
    dim: usize,
    pages: Pages,
    scale: f32,
    window: Option<usize>,
    element: Element,
    in_stages: bool,
}

impl PagedAttentionKernel {
    /// For a batch of so many entries, each with a query of `heads` heads of `dim` columns. Scores are divided by the root of `dim`.
    pub fn new(batch: usize, heads: usize, dim: usize, pages: Pages) -> PagedAttentionKernel {
        PagedAttentionKernel {
            batch,
            heads,
            key_heads: heads,
            dim,
            pages,
            scale: 1.0 / (dim.max(1) as f32).sqrt(),
            window: None,
            element: Element::F32,
            in_stages: false,
        }
    }

    /// Fewer heads of keys and values: neighbouring heads of queries share one, as many as there are for each. They must divide the heads.
    pub fn with_key_heads(mut self, key_heads: usize) -> PagedAttentionKernel {
        self.key_heads = key_heads;
        self
    }

    /// What products of queries and keys are multiplied with.
    pub fn with_scale(mut self, scale: f32) -> PagedAttentionKernel {
        self.scale = scale;
        self
    }

    /// A sliding window: a query sees so many keys, the last ones.
    pub fn with_window(mut self, keys: usize) -> PagedAttentionKernel {
        self.window = Some(keys);
        self
    }

    /// The type of what is read and written, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> PagedAttentionKernel {
        self.element = element;
        self
    }

    /// By products in stages (`Capability::Stages`), which without this are taken where the device and the rest allow it: [`Element::F16`] or [`Element::Bf16`], heads of 64, 128 or 256 columns, pages of a
    /// multiple of 16 keys, a positive scale, buffers that begin at multiples of 16 bytes. Else a launch says what is not so.
    pub fn in_stages(mut self) -> PagedAttentionKernel {
        self.in_stages = true;
        self
    }

    /// The kernel in stages, where there is one.
    fn instance_in_stages(&self) -> Option<KernelFn> {
        macro_rules! of {
            ($T:ty, $dim:tt, $panels:tt, $eighths:tt, $keys:tt, $wide:tt, $stages:tt, $here:tt) => {
                attention_paged_staged::kernel::<
                    $T,
                    [[[$T; $dim]; 64]; $stages],
                    [[[$T; $dim]; $keys]; $stages],
                    [[[[$T; 64]; $keys]; $panels]; $stages],
                    $eighths,
                    $wide,
                    4,
                    $here,
                >()
            };
            ($T:ty, $dim:tt, $panels:tt, $eighths:tt, $keys:tt, $wide:tt, $stages:tt) => {
                match self.heads / self.key_heads.max(1) {
                    0..=8 => of!($T, $dim, $panels, $eighths, $keys, $wide, $stages, 1),
                    _ => of!($T, $dim, $panels, $eighths, $keys, $wide, $stages, 2),
                }
            };
            ($T:ty) => {
                match (self.dim, self.pages.rows.is_multiple_of(32)) {
                    (64, true) => of!($T, 64, 1, 8, 32, 4, 8),
                    (64, false) => of!($T, 64, 1, 8, 16, 2, 16),
                    (128, true) => of!($T, 128, 2, 16, 32, 4, 5),
                    (128, false) => of!($T, 128, 2, 16, 16, 2, 10),
                    (256, true) => of!($T, 256, 4, 32, 32, 4, 5),
                    (256, false) => of!($T, 256, 4, 32, 16, 2, 10),
                    _ => return None,
                }
            };
        }
        match self.element {
            _ if self.unsuited().is_some() => None,
            Element::F16 => Some(of!(f16)),
            Element::Bf16 => Some(of!(bf16)),
            Element::F32 => None,
        }
    }

    /// What of the shape does not suit stages: what that is, how much it is, and what it must be.
    fn unsuited(&self) -> Option<(&'static str, usize, &'static str)> {
        let Pages {
            count,
            rows,
            of_entry,
        } = self.pages;
        // Hardware counts rows, and the kernel an entry's keys, in 31 bits.
        let fits = |count: Option<usize>| count.is_some_and(|count| (1..=MOST_ROWS).contains(&count));
        let all_rows = count
            .checked_mul(rows)
            .and_then(|all| all.checked_mul(self.key_heads));
        let needed = "1 to 2^31 - 1 in stages";
        if !matches!(self.dim, 64 | 128 | 256) {
            Some(("a head's number of columns", self.dim, "64, 128 or 256 in stages"))
        } else if !rows.is_multiple_of(16) {
            Some(("the number of a page's keys", rows, "a multiple of 16 in stages"))
        } else if !fits(self.batch.checked_mul(self.heads)) {
            Some((
                "the number of queries",
                self.batch.saturating_mul(self.heads),
                needed,
            ))
        } else if !fits(all_rows) {
            Some((
                "the number of the pool's rows",
                count.saturating_mul(rows),
                needed,
            ))
        } else if !fits(of_entry.checked_mul(rows)) {
            Some((
                "the number of an entry's keys",
                of_entry.saturating_mul(rows),
                needed,
            ))
        } else if !(self.scale > 0.0 && self.scale < f32::INFINITY) {
            let needed = "greater than 0 and finite in stages";
            Some(("the scale (cut to a whole number)", self.scale as usize, needed))
        } else {
            None
        }
    }

    /// Why there is no kernel in stages.
    fn not_in_stages(&self, kernel: &'static str) -> Error {
        match self.unsuited() {
            Some((what, found, needed)) => Error::Range {
                kernel,
                what,
                found,
                needed: needed.into(),
            },
            None => Error::Element {
                kernel,
                element: self.element,
                takes: "F16 and Bf16",
            },
        }
    }

    /// The kernel for tensor cores, where there is one.
    fn on_tensor_cores(&self) -> Option<KernelFn> {
        macro_rules! of {
            ($T:ty) => {
                match self.dim {
                    0..=64 => attention_paged_tensor_core::kernel::<$T, 1, 2, 4>(),
                    65..=128 => attention_paged_tensor_core::kernel::<$T, 2, 4, 8>(),
                    _ => attention_paged_tensor_core::kernel::<$T, 4, 8, 16>(),
                }
            };
        }
        match self.element {
            _ if !self.dim.is_multiple_of(8) => None,
            Element::F16 => Some(of!(f16)),
            Element::Bf16 => Some(of!(bf16)),
            Element::F32 => None,
        }
    }

    fn operands(&self, kernel: &'static str) -> Result<Vec<Operand>> {
        let range = |what, found, needed| Error::Range {
            kernel,
            what,
            found,
            needed,
        };
        if self.dim > MOST_COLUMNS {
            let what = "a head's number of columns";
            return Err(range(what, self.dim, "at most 256".into()));
        }
        if self.key_heads == 0 || !self.heads.is_multiple_of(self.key_heads) {
            let needed = format!("a divisor of the {} heads", self.heads);
            return Err(range("the number of key heads", self.key_heads, needed));
        }
        let Pages {
            count,
            rows,
            of_entry,
        } = self.pages;
        if rows == 0 {
            return Err(range("the number of a page's keys", 0, "at least 1".into()));
        }
        // Rows of pages are counted in 32 bits.
        let all = count.checked_mul(rows).filter(|all| *all < u32::MAX as usize);
        let pool = |name| {
            let too_large = Error::TooLarge {
                kernel,
                operand: name,
                shape: format!("[{count}, {rows}, {}, {}]", self.key_heads, self.dim),
            };
            all.and_then(|all| all.checked_mul(self.key_heads))
                .map(|all| Operand::dense(name, all, self.dim))
                .ok_or(too_large)
        };
        if of_entry
            .checked_mul(rows)
            .is_none_or(|most| most > u32::MAX as usize)
        {
            let needed = format!("so few that an entry has fewer than 2^32 keys, {rows} each");
            return Err(range("the number of an entry's pages", of_entry, needed));
        }
        let queries = |name| Operand::dense(name, self.batch.saturating_mul(self.heads), self.dim);
        Ok(vec![
            queries("Q"),
            pool("K")?,
            pool("V")?,
            Operand::dense("table", self.batch, of_entry),
            Operand::vector("lengths", self.batch),
            queries("result"),
        ])
    }
}

impl Kernel for PagedAttentionKernel {
    fn function(&self) -> KernelFn {
        self.on_tensor_cores()
            .unwrap_or_else(|| instance!(self.element, paged::attention_paged,))
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        match (self.in_stages, self.instance_in_stages(), sm) {
            // The text is what CUDA runs. SAFETY: nothing is launched here; what launches it, `launch`, says why it may.
            (true, Some(function), 90) => ptx_of(unsafe { function.unchecked() }, Sm::of_device(9, 0)),
            (true, None, _) => Err(self.not_in_stages(self.name())),
            _ => ptx_unchecked(self.function(), sm),
        }
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let plain = instance!(self.element, paged::attention_paged,);
        let name = plain.name();
        let operands = self.operands(name)?;
        check(name, &operands, args)?;
        for (operand, arg) in operands.iter().zip(args) {
            let KernelArg::Buffer(buffer) = arg else {
                continue;
            };
            let (fits, element) = match operand.name {
                "table" | "lengths" => (buffer.element().is::<u32>(), "u32".to_owned()),
                _ => (self.element.is(buffer.element()), format!("{:?}", self.element)),
            };
            if !fits {
                return Err(Error::Stored {
                    kernel: name,
                    operand: operand.name,
                    found: buffer.element().to_string(),
                    element,
                });
            }
        }
        let [q, k, v, table, lengths, out] = args else {
            // `check` has counted them.
            return Ok(());
        };
        let rows = self.batch * self.heads;
        if rows == 0 || self.dim == 0 {
            return Ok(());
        }
        let device = stream.device();
        let lies_right = [q, k, v].into_iter().all(|arg| match arg {
            KernelArg::Buffer(buffer) => buffer.ptr().place().is_multiple_of(16),
            KernelArg::Value(_) => false,
        });
        let has = |capability| lies_right && device.info().capabilities.contains(&capability);
        let has_stages = has(Capability::Stages) && device.backend() == BackendKind::Cuda;
        let on_tensor_cores = self.on_tensor_cores().filter(|_| has(Capability::Matrices));
        let (way, mut function) = match (self.instance_in_stages(), on_tensor_cores) {
            (Some(function), _) if self.in_stages || has_stages => (Way::Stages, function),
            _ if self.in_stages => {
                return Err(self.not_in_stages(name));
            }
            (_, Some(function)) => (Way::TensorCores, function),
            _ => (Way::Plain, plain),
        };
        let group = self.heads / self.key_heads;
        let (heads, lanes, a_block) = match way {
            Way::Stages => (
                self.key_heads * group.div_ceil(paged_staged::HEADS),
                paged_staged::LANES,
                1,
            ),
            Way::TensorCores => (self.key_heads * group.div_ceil(HEADS), 128, PARTS_OF_BLOCK[0]),
            Way::Plain => (self.heads, 256, PARTS_OF_BLOCK[1]),
        };
        let mut matrices = [q.clone(), k.clone(), v.clone()];
        if way == Way::TensorCores {
            // They begin where pieces do.
            matrices = matrices.map(|matrix| in_pieces::<U32x4>(&matrix).unwrap_or(matrix));
        }
        let most = self.pages.rows * self.pages.of_entry;
        let parts = BLOCKS
            .div_ceil(self.batch * heads)
            .min(most.div_ceil(LEAST_KEYS))
            .max(1);
        let each = most.div_ceil(parts).next_multiple_of(64);
        let parts = most.div_ceil(each.max(1)).max(1);
        let all_parts = parts * a_block;
        let sums = device.alloc::<f32>(rows * all_parts * self.dim)?;
        let totals = device.alloc::<f32>(rows * all_parts * 2)?;
        let window = self.window.unwrap_or(most);
        let Pages {
            count,
            rows: page_rows,
            of_entry,
        } = self.pages;
        let mut all = args![
            self.heads, group, self.dim, count, page_rows, of_entry, each, window
        ]
        .to_vec();
        match way {
            Way::Stages => all.extend_from_slice(args![
                self.scale * std::f32::consts::LOG2_E,
                self.batch * self.key_heads,
                group * self.dim,
                // The last page's first row of the last head is the last beginning.
                ((count.max(1) - 1) * page_rows + 1) * self.key_heads,
                self.key_heads * self.dim
            ]),
            Way::TensorCores | Way::Plain => all.extend_from_slice(args![self.scale]),
        }
        all.extend(matrices);
        all.extend([table.clone(), lengths.clone(), sums.arg(), totals.arg()]);
        let mut total = instance!(self.element, paged::attention_paged_total,);
        if device.backend() == BackendKind::Cuda {
            // SAFETY: `check` has found room for all queries, for the pools' pages, with whose number those of the table are compared before each access, and for the table, in which keys count no further than the pages of an
            // entry. Sums and totals have been made for each part of each head. Columns are compared with how many there are, which on tensor cores are whole pieces of 16 bytes, and in stages as many as the instance has.
            // Q, K and V in stages are described by their rows, which a launch compares with the buffers. Indices into variables are constants, into the block's memory below
            // its lanes, and nothing is divided but by the numbers of heads and of a page's rows, which are not zero.
            (function, total) = unsafe { (function.unchecked(), total.unchecked()) };
        }
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let grid = [number(parts), number(heads), number(self.batch)];
        stream.launch(&function, LaunchConfig::new(grid, lanes), &all)?;
        let all = args![self.dim, all_parts, &sums, &totals, out.clone()];
        Ok(stream.launch(&total, LaunchConfig::new(number(rows), 256), all)?)
    }
}
