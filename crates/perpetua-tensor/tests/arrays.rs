//! Arrays of ndarray and matrices of nalgebra become tensors and come back, whatever their layout.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

use nalgebra::{DMatrix, Matrix3, Vector4};
use ndarray::{Array0, Array3, ArrayD, s};
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::Tensor;

#[test]
fn arrays_of_every_layout_come_and_go() {
    let device = Device::new(BackendKind::Cpu, 0).unwrap();
    let whole = Array3::from_shape_fn([2, 3, 4], |(i, j, k)| (100 * i + 10 * j + k) as i32);
    let there_and_back = |array: ArrayD<i32>, tensor: Tensor| {
        assert_eq!(tensor.shape(), array.shape());
        assert_eq!(tensor.to_ndarray::<i32>().unwrap(), array);
    };
    there_and_back(whole.clone().into_dyn(), Tensor::from_ndarray(&whole, &device));
    let part = whole.slice(s![.., ..;-2, 1..3]);
    there_and_back(part.to_owned().into_dyn(), Tensor::from_ndarray(&part, &device));
    let turned = whole.t();
    there_and_back(
        turned.to_owned().into_dyn(),
        Tensor::from_ndarray(&turned, &device),
    );
    let one = Array0::from_elem((), 7);
    there_and_back(one.clone().into_dyn(), Tensor::from_ndarray(&one, &device));
    let none = Array3::<i32>::zeros([2, 0, 3]);
    there_and_back(none.clone().into_dyn(), Tensor::from_ndarray(&none, &device));
    // A view computed here is an array in C's order there.
    let x = Tensor::from_ndarray(&whole, &device).transpose();
    assert_eq!(
        x.to_ndarray::<i32>().unwrap(),
        whole.permuted_axes([0, 2, 1]).into_dyn()
    );
    let error = x.to_ndarray::<f32>().unwrap_err().to_string();
    assert!(error.contains("its elements are not f32"), "{error}");
}

#[test]
fn matrices_come_and_go() {
    let device = Device::new(BackendKind::Cpu, 0).unwrap();
    let m = Matrix3::new(1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0);
    let x = Tensor::from_nalgebra(&m, &device);
    assert_eq!(x.to_nalgebra::<f64>().unwrap(), m);
    // A part, whose columns lie apart.
    let part = m.fixed_view::<2, 2>(1, 0);
    assert_eq!(
        Tensor::from_nalgebra(&part, &device).to_vec::<f64>().unwrap(),
        [4.0, 5.0, 7.0, 8.0]
    );
    // Products agree.
    let v = Vector4::new(1i32, -2, 3, -4);
    let x = Tensor::from_nalgebra(&v, &device);
    assert_eq!(x.shape(), [4, 1]);
    assert_eq!(
        x.matmul(x.transpose()).to_nalgebra::<i32>().unwrap(),
        v * v.transpose()
    );
    let none = DMatrix::<f32>::zeros(0, 3);
    assert_eq!(
        Tensor::from_nalgebra(&none, &device)
            .to_nalgebra::<f32>()
            .unwrap(),
        none
    );
    let error = x.reshape([2, 2, 1]).to_nalgebra::<i32>().unwrap_err().to_string();
    assert!(error.contains("a matrix has two axes"), "{error}");
}
