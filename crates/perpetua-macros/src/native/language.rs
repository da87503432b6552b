//! What the native code generator knows of the language's own functions and methods by name.

use perpetua_syntax::parse::intrinsic_of;
use perpetua_syntax::{Intrinsic, IntrinsicGroup, Scalar};
use quote::ToTokens;

/// What an index function gives, and along which axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    Thread,
    Block,
    BlockDim,
    GridDim,
    Global,
    GlobalSize,
}

/// An index function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexFunction {
    pub(super) what: Index,
    pub(super) axis: usize,
    /// Whether it is one of CUDA's, an `i32`; else a `usize`.
    pub(super) cuda: bool,
}

/// The index function that an intrinsic is; `None` for other intrinsics.
pub(super) fn index_function(intrinsic: Intrinsic) -> Option<IndexFunction> {
    let cuda = match intrinsic.group() {
        IntrinsicGroup::CudaIndex => true,
        IntrinsicGroup::Index => false,
        _ => return None,
    };
    let (stem, axis) = intrinsic.name().rsplit_once('_')?;
    let what = match stem {
        "thread_idx" | "local_id" => Index::Thread,
        "block_idx" | "group_id" => Index::Block,
        "block_dim" => Index::BlockDim,
        "grid_dim" => Index::GridDim,
        "global_id" => Index::Global,
        "global_size" => Index::GlobalSize,
        _ => return None,
    };
    let axis = ["x", "y", "z"].iter().position(|name| *name == axis)?;
    Some(IndexFunction { what, axis, cuda })
}

/// The scalar that a type is by name.
fn scalar_of(ty: &syn::Type) -> Option<Scalar> {
    match ty {
        syn::Type::Path(path) if path.qself.is_none() => {
            Scalar::from_name(&path.path.get_ident()?.to_string())
        }
        syn::Type::Paren(paren) => scalar_of(&paren.elem),
        syn::Type::Group(group) => scalar_of(&group.elem),
        _ => None,
    }
}

/// Whether a type is an integer by name.
fn is_integer(ty: &syn::Type) -> bool {
    scalar_of(ty).is_some_and(Scalar::is_integer)
}

/// Methods of scalars, which take their receiver by value.
pub(crate) fn is_scalar_method(name: &str) -> bool {
    METHODS.contains(&name)
}

/// Methods of arrays and slices that native code calls on locals.
pub(crate) fn is_array_method(name: &str) -> bool {
    matches!(name, "len" | "is_empty" | "swap" | "fill")
}

/// Methods that stay what they are: Rust's own conversions.
pub(super) fn is_plain_method(name: &str) -> bool {
    matches!(name, "into" | "clone")
}

/// Functions of scalar types that stay what they are: `f32::from_bits(x)`, `u64::from(x)`, `T::default()`.
pub(super) fn is_plain_function(name: &str) -> bool {
    name.starts_with("from") || matches!(name, "default" | "zero" | "one" | "try_from")
}

const METHODS: &[&str] = &[
    "abs",
    "abs_diff",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitand",
    "bitor",
    "bitxor",
    "cbrt",
    "ceil",
    "clamp",
    "copysign",
    "cos",
    "cosh",
    "count_ones",
    "count_zeros",
    "div_ceil",
    "div_euclid",
    "exp",
    "exp2",
    "exp_m1",
    "floor",
    "fract",
    "hypot",
    "is_finite",
    "is_infinite",
    "is_nan",
    "is_negative",
    "is_positive",
    "is_power_of_two",
    "is_sign_negative",
    "is_sign_positive",
    "leading_ones",
    "leading_zeros",
    "ln",
    "ln_1p",
    "log",
    "log10",
    "log2",
    "max",
    "min",
    "mul_add",
    "next_multiple_of",
    "overflowing_add",
    "overflowing_mul",
    "overflowing_sub",
    "pow",
    "powf",
    "powi",
    "recip",
    "rem_euclid",
    "reverse_bits",
    "rotate_left",
    "rotate_right",
    "round",
    "round_ties_even",
    "saturating_add",
    "saturating_mul",
    "saturating_sub",
    "signum",
    "sin",
    "sin_cos",
    "sinh",
    "sqrt",
    "swap_bytes",
    "tan",
    "tanh",
    "to_bits",
    "to_degrees",
    "to_f32",
    "to_f64",
    "to_radians",
    "trailing_ones",
    "trailing_zeros",
    "trunc",
    "unsigned_abs",
    "wrapping_abs",
    "wrapping_add",
    "wrapping_div",
    "wrapping_mul",
    "wrapping_neg",
    "wrapping_pow",
    "wrapping_rem",
    "wrapping_shl",
    "wrapping_shr",
    "wrapping_sub",
];

/// The expression inside parentheses and invisible groups.
pub(super) fn peel(mut expr: &syn::Expr) -> &syn::Expr {
    loop {
        match expr {
            syn::Expr::Paren(paren) => expr = &paren.expr,
            syn::Expr::Group(group) => expr = &group.expr,
            _ => return expr,
        }
    }
}

/// The name that an expression is, where it is one without arguments.
pub(super) fn name_of(expr: &syn::Expr) -> Option<&syn::Ident> {
    match peel(expr) {
        syn::Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    }
}

/// CUDA's way to write the index in the grid, `block_idx_x() * block_dim_x() + thread_idx_x()`, each factor perhaps
/// cast to the same type: the axis and that type.
pub(super) fn global_idiom(expr: &syn::Expr) -> Option<(usize, Option<&syn::Type>)> {
    let syn::Expr::Binary(sum) = peel(expr) else {
        return None;
    };
    if !matches!(sum.op, syn::BinOp::Add(_)) {
        return None;
    }
    let product = |expr| match peel(expr) {
        syn::Expr::Binary(product) if matches!(product.op, syn::BinOp::Mul(_)) => Some(product),
        _ => None,
    };
    let (product, thread) = match (product(&sum.left), product(&sum.right)) {
        (Some(product), None) => (product, &sum.right),
        (None, Some(product)) => (product, &sum.left),
        _ => return None,
    };
    let (thread, ty) = cuda_index(thread)?;
    let (left, left_ty) = cuda_index(&product.left)?;
    let (right, right_ty) = cuda_index(&product.right)?;
    let axis = thread.axis;
    let fits = thread.what == Index::Thread
        && left.axis == axis
        && right.axis == axis
        && matches!(
            (left.what, right.what),
            (Index::Block, Index::BlockDim) | (Index::BlockDim, Index::Block)
        )
        && same(ty, left_ty)
        && same(ty, right_ty)
        && ty.is_none_or(is_integer);
    fits.then_some((axis, ty))
}

/// Whether two types are written alike.
fn same(a: Option<&syn::Type>, b: Option<&syn::Type>) -> bool {
    let text = |ty: &syn::Type| ty.to_token_stream().to_string();
    a.map(text) == b.map(text)
}

/// One of CUDA's index functions, perhaps cast.
fn cuda_index(expr: &syn::Expr) -> Option<(IndexFunction, Option<&syn::Type>)> {
    match peel(expr) {
        syn::Expr::Cast(cast) => {
            let (function, inner) = cuda_index(&cast.expr)?;
            inner.is_none().then_some((function, Some(&*cast.ty)))
        }
        syn::Expr::Call(call) => match peel(&call.func) {
            syn::Expr::Path(path) => {
                let function = index_function(intrinsic_of(&path.path)?)?;
                function.cuda.then_some((function, None))
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_in_the_grid_is_known_in_cudas_words() {
        let check = |source: &str, axis: Option<usize>| {
            let expr: syn::Expr = syn::parse_str(source).unwrap();
            assert_eq!(global_idiom(&expr).map(|(axis, _)| axis), axis, "{source}");
        };
        check("block_idx_x() * block_dim_x() + thread_idx_x()", Some(0));
        check("thread_idx_y() + (block_dim_y() * block_idx_y())", Some(1));
        check(
            "block_idx_z() as u32 * block_dim_z() as u32 + thread_idx_z() as u32",
            Some(2),
        );
        check("block_idx_x() as u32 * block_dim_x() + thread_idx_x()", None);
        check("block_idx_x() * block_dim_y() + thread_idx_x()", None);
        check("block_idx_x() * block_dim_x() + thread_idx_y()", None);
        check("block_idx_x() * block_dim_x() - thread_idx_x()", None);
        check("block_idx_x() + thread_idx_x()", None);
    }

    #[test]
    fn each_index_function_has_its_axis() {
        let found = Intrinsic::ALL.iter().filter_map(|i| index_function(*i)).count();
        assert_eq!(found, 24, "12 of CUDA's, 12 of the language's own");
    }
}
