//! Descriptions of the matrices that a kernel multiplies in stages, as the tensor memory accelerator reads them. A launch makes them of its arguments.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUtensorMapDataType_enum as DataType};
use perpetua_ir::ir::{Factor, StageElement, Stages};

use super::driver::Shared;
use super::memory::Memory;
use crate::error::{Error, Result};
use crate::signature::KernelArg;

/// Those of its factors; arguments have passed [`Signature::check`](crate::signature::Signature::check).
pub(super) fn of(
    shared: &Shared,
    stages: &Stages,
    args: &[KernelArg<'_>],
) -> Result<[Option<sys::CUtensorMap>; 4]> {
    let mut maps = [None; 4];
    for (number, (to, factor)) in maps.iter_mut().zip(stages.factors()).enumerate() {
        let (boxes, _) = stages.copies(number);
        *to = Some(map(shared, stages.element, factor, boxes, args)?);
    }
    Ok(maps)
}

/// A factor's, of whose matrix so many rows and columns are copied at a time.
fn map(
    shared: &Shared,
    element: StageElement,
    factor: &Factor,
    [box_rows, box_columns]: [u32; 2],
    args: &[KernelArg<'_>],
) -> Result<sys::CUtensorMap> {
    let address = match args.get(factor.buffer as usize) {
        Some(KernelArg::Buffer(buffer)) => buffer
            .ptr
            .downcast::<Memory>()
            .map(|memory| memory.start() + buffer.ptr.offset()),
        _ => None,
    };
    let Some(address) = address else {
        return Err(Error::WrongDevice {
            operation: "launch",
            subject: "a buffer".into(),
        });
    };
    let [rows, columns, pitch] = factor
        .shape
        .map(|i| args.get(i as usize).map_or(0, KernelArg::number));
    // Columns come before rows, and rows before matrices.
    let size = u64::from(element.memory().size());
    let (layers, apart) = match factor.layers {
        Some(params) => params
            .map(|i| args.get(i as usize).map_or(0, KernelArg::number))
            .into(),
        None => (1, 0),
    };
    let (sizes, strides, boxes, steps) = (
        // All matrices that are in the same place are the first one, and hardware takes no distance of 0.
        [columns, rows, if apart == 0 { 1 } else { layers }],
        [pitch * size, if apart == 0 { pitch * size } else { apart * size }],
        [box_columns, box_rows, 1],
        [1, 1, 1],
    );
    let dimensions = if factor.layers.is_some() { 3 } else { 2 };
    let data = match element {
        StageElement::F16 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        StageElement::Bf16 => DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        StageElement::Tf32 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        StageElement::E4m3 | StageElement::E5m2 | StageElement::I8 | StageElement::U8 => {
            DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8
        }
    };
    let mut map = sys::CUtensorMap { opaque: [0; 16] };
    // SAFETY: the map is writable and aligned as its type; arrays have as many elements as there are dimensions, or more, of strides one less. The driver
    // only notes the address.
    let code = unsafe {
        sys::cuTensorMapEncodeTiled(
            &raw mut map,
            data,
            dimensions,
            address as *mut c_void,
            sizes.as_ptr(),
            strides.as_ptr(),
            boxes.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave_enum::CU_TENSOR_MAP_INTERLEAVE_NONE,
            sys::CUtensorMapSwizzle_enum::CU_TENSOR_MAP_SWIZZLE_128B,
            sys::CUtensorMapL2promotion_enum::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            sys::CUtensorMapFloatOOBfill_enum::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    shared.check(code, || {
        format!(
            "describing a matrix of {rows} x {columns} elements, {pitch} from row to row, at {address:#x}"
        )
    })?;
    Ok(map)
}
