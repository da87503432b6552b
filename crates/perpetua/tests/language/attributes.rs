//! The options of `#[kernel]`: where a file is read at run time, its kernels are lowered as those of the macro, and compute the
//! same on every device.

mod kernels;

use perpetua::device::{CompileOptions, Device, Dim3, KernelSource};
use perpetua::prelude::*;
use perpetua_ir::front::rust::{FileKernel, Instantiation, kernels_in_file, lower};
use perpetua_ir::verify::verify;

use crate::harness::{devices, floats};

const FILE: &str = include_str!("attributes/kernels.rs");

/// What a device writes, by the macro's kernel and by the file's.
fn results(device: &Device, kernel: KernelFn, read: &FileKernel) -> [Vec<f32>; 2] {
    let how = Instantiation {
        pointer_width: device.info().pointer_width(),
        ..read.how.clone()
    };
    let ir = verify(lower(&read.function, &how).unwrap()).unwrap();
    [KernelSource::Spec(&kernel), KernelSource::Ir(&ir)].map(|source| {
        let compiled = device.compile(&source, &CompileOptions::default()).unwrap();
        let (x, y) = (
            device.upload(&floats(64)).unwrap(),
            device.zeros::<f32>(64).unwrap(),
        );
        let is_stencil = ir.kernel().params.len() > 2;
        let extent = if how.stencil.three_d { [4, 4, 4] } else { [8, 8, 1] };
        let block = how.block_size.or(how.stencil.tile).unwrap_or([4, 4, 1]);
        let grid = [0, 1, 2].map(|axis| extent[axis] / block[axis]);
        let [width, height, depth] = extent;
        let config = LaunchConfig::new(Dim3::from(grid), Dim3::from(block));
        let compiled = compiled.only().unwrap();
        match (is_stencil, how.stencil.three_d) {
            (false, _) => device.launch(&compiled, config, args![&x, &y]),
            (true, false) => device.launch(&compiled, config, args![&x, &y, width, height]),
            (true, true) => device.launch(&compiled, config, args![&x, &y, width, height, depth]),
        }
        .unwrap_or_else(|e| panic!("`{}`: {e}", read.name));
        y.read().unwrap()
    })
}

#[test]
fn a_files_kernels_are_those_of_the_macro() {
    let compiled = [
        kernels::blocks::kernel(),
        kernels::fused::kernel(),
        kernels::elsewhere::kernel(),
        kernels::interior::kernel(),
        kernels::clamp::kernel(),
        kernels::wrap::kernel(),
        kernels::constant::kernel(),
        kernels::far::kernel(),
        kernels::tiled::kernel(),
        kernels::tiled_volume::kernel(),
        kernels::flat_in_a_volume::kernel(),
        kernels::shapes::kernel(),
    ];
    let read = kernels_in_file(FILE, "kernels.rs").unwrap();
    assert_eq!(read.len(), compiled.len());
    for (read, kernel) in read.iter().zip(compiled) {
        assert_eq!(read.name, kernel.name());
        assert_eq!(read.how, kernel.instantiation(), "{}", read.name);
    }
    for device in devices() {
        let mut seen: Vec<Vec<f32>> = Vec::new();
        for (read, kernel) in read.iter().zip(compiled) {
            let [by_macro, by_file] = results(&device, kernel, read);
            assert_eq!(by_file, by_macro, "`{}` on {}", read.name, device.info().name);
            // No option is without consequence.
            assert!(!seen.contains(&by_file), "{}", read.name);
            seen.push(by_file);
        }
    }
}
