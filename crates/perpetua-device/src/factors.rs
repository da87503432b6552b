//! Matrices that a kernel multiplies in stages, as a launch is given them. Must not know backends.

use crate::error::{Error, Result};
use crate::error_text::describe;
use crate::signature::{KernelArg, Signature};

/// What such matrices, and their rows, begin at multiples of, in bytes.
const ALIGNED: u64 = 16;

/// The most rows and columns of such a matrix.
const MOST_ROWS: u64 = i32::MAX as u64;
/// What a row may be from the next, in bytes: hardware takes less than that.
const MOST_PITCH: u64 = 1 << 40;

/// Checks that they lie inside their buffers, and so that hardware can copy them. Kinds and types of arguments have been checked.
pub(crate) fn check(signature: &Signature, args: &[KernelArg<'_>]) -> Result<()> {
    let Some(stages) = signature.stages() else {
        return Ok(());
    };
    for factor in stages.factors() {
        let index = factor.buffer as usize;
        let (Some(KernelArg::Buffer(buffer)), Some(param)) = (args.get(index), signature.params().nth(index))
        else {
            continue;
        };
        let [rows, columns, pitch] = factor
            .shape
            .map(|i| args.get(i as usize).map_or(0, KernelArg::number));
        let (layers, apart) = match factor.layers {
            Some(params) => params
                .map(|i| args.get(i as usize).map_or(0, KernelArg::number))
                .into(),
            None => (1, 0),
        };
        let bytes = pitch.saturating_mul(stages.element.memory().size().into());
        let apart_bytes = apart.saturating_mul(stages.element.memory().size().into());
        let end = (rows.max(1) - 1).checked_mul(pitch).and_then(|end| {
            end.checked_add(columns)?
                .checked_add((layers.max(1) - 1).checked_mul(apart)?)
        });
        let remedy = if rows == 0 || columns == 0 || layers == 0 {
            "launch nothing where a matrix is empty"
        } else if pitch < columns || end.is_none_or(|end| end > buffer.len) {
            "pass a buffer that holds all rows, and how far they are from each other"
        } else if rows.max(columns).max(layers) > MOST_ROWS || bytes.max(apart_bytes) >= MOST_PITCH {
            "divide the matrix"
        } else if !bytes.is_multiple_of(ALIGNED)
            || !apart_bytes.is_multiple_of(ALIGNED)
            || !buffer.ptr.place().is_multiple_of(ALIGNED)
        {
            "let the matrix and each of its rows begin at a multiple of 16 bytes"
        } else {
            continue;
        };
        let (len, place) = (buffer.len, buffer.ptr.place());
        let of_each = match factor.layers {
            Some(_) => format!(", of {layers} matrices, {apart} from one to the next"),
            None => String::new(),
        };
        return Err(Error::ArgumentMismatch {
            kernel: signature.name().to_owned(),
            index,
            parameter: describe(param),
            given: format!(
                "{rows} x {columns} elements, {pitch} from row to row{of_each}, in {len} that begin at {place:#x}"
            ),
            remedy,
        });
    }
    Ok(())
}

impl KernelArg<'_> {
    /// A value that is an unsigned number.
    pub(crate) fn number(&self) -> u64 {
        let mut wide = [0; 8];
        if let KernelArg::Value(value) = self {
            wide.iter_mut()
                .zip(value.bytes())
                .for_each(|(to, from)| *to = *from);
        }
        u64::from_le_bytes(wide)
    }
}
