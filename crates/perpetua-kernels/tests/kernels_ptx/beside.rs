//! Products of few rows, and what goes beside products.

use perpetua_kernels::{
    ArgmaxKernel, DropoutKernel, Element, EmbeddingBackwardKernel, GatherKernel, GemmKernel, RandomKernel,
    ReduceKernel, RotaryKernel, TopKKernel, TransposeKernel,
};

use super::check;

#[test]
fn beside_products() {
    check(&TransposeKernel::of::<u8>(100, 100), 40);
    check(&TransposeKernel::of::<f64>(100, 100), 48);
    check(&GatherKernel::of::<f32>([100, 64], 100), 48);
    for element in [Element::F32, Element::F16, Element::Bf16] {
        check(
            &EmbeddingBackwardKernel::new([100, 64], 9).with_element(element),
            64,
        );
        check(&ArgmaxKernel::new(8, 50_257).with_element(element), 64);
        check(&TopKKernel::new(8, 50_257, 50).with_element(element), 64);
        check(&DropoutKernel::new(4096, 0.5, 1, 2).with_element(element), 64);
        check(&RandomKernel::normal(4096, 1, 2).with_element(element), 64);
        for kernel in [
            RotaryKernel::new(8, 8, 128),
            RotaryKernel::new(8, 8, 128).interleaved(),
        ] {
            check(&kernel.with_element(element), 96);
        }
        for axes in [[0, 2], [1, 2], [0, 1]] {
            check(
                &ReduceKernel::sum(&[8, 128, 256], &axes).with_element(element),
                96,
            );
        }
    }
}

#[test]
fn thin() {
    for element in [Element::F32, Element::F16, Element::Bf16] {
        for (rows, registers) in [(1, 128), (4, 128), (16, 255)] {
            check(
                &GemmKernel::thin(rows, 4096, 4096).with_element(element),
                registers,
            );
        }
    }
}
