//! Rows of operators about places: which element is where.

use std::panic::Location;

use super::composed::composed;
use crate::dtype::DType;
use crate::node::Tensor;
use crate::place::here;

composed! {
    one_hot(x, classes: usize) "x[.., None] == coordinates" "For each integer a row of bool, true at its place; nowhere if it is not among the places." {
        if x.dtype().is_float() || x.dtype() == DType::Bool {
            return x.refuse("one_hot", &[], "places are integers: cast it", here(Location::caller()));
        }
        let places = Tensor::coordinates([classes], 0, x.device());
        x.expand_dims(-1).equal(places.cast(x.dtype()))
    }
}
