//! Every row of the operator table can be written in Rust.

use perpetua_ir::front::rust::Instantiation;
use perpetua_ir::ir::{Inst, Op, Scalar};
use perpetua_ir::ops::{BinaryOp, Row, Second, TernaryOp, UnaryOp};

use crate::run::lowered;

/// How Rust writes the row: an infix operator, a prefix or a method.
fn written(row: &Row, arity: usize) -> String {
    let infix = match row.name {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        "and" => "&",
        "or" => "|",
        "xor" => "^",
        "shl" => "<<",
        "shr" => ">>",
        "eq" => "==",
        "ne" => "!=",
        "lt" => "<",
        "le" => "<=",
        "gt" => ">",
        "ge" => ">=",
        _ => "",
    };
    match row.name {
        "neg" => "-x[0]".into(),
        "not" => "!x[0]".into(),
        "select" => "if x[0] { n } else { 5 }".into(),
        "pow" => "x[0].powf(x[1])".into(),
        "fma" => "x[0].mul_add(x[1], x[2])".into(),
        _ if !infix.is_empty() => format!("x[0] {infix} x[1]"),
        name => match (arity, row.second) {
            (1, _) => format!("x[0].{name}()"),
            (2, Second::Amount) => format!("x[0].{name}(n)"),
            (2, _) => format!("x[0].{name}(x[1])"),
            _ => format!("x[0].{name}(x[1], x[2])"),
        },
    }
}

fn check(row: &Row, arity: usize, is: impl Fn(&Op) -> bool) {
    let scalars: Vec<Scalar> = Scalar::ALL
        .into_iter()
        .filter(|s| row.domain.contains(*s))
        .collect();
    assert!(!scalars.is_empty());
    for s in scalars {
        // `clamp` of floats keeps NaN in Rust, which the row does not; `<` of bools goes by way of u8.
        if row.name == "clamp" && s.is_float() {
            continue;
        }
        let expr = written(row, arity);
        let text =
            format!("#[kernel] fn k(x: &[{s}], n: u32) {{ let r = {expr}; gpu_println!(\"{{}}\", r); }}");
        let kernel = lowered(&text, "k", &Instantiation::default()).unwrap_or_else(|e| panic!("{text}: {e}"));
        let mut found = false;
        kernel
            .body
            .block
            .walk(&mut |stmt| found |= matches!(&stmt.inst, Inst::Let(_, op) if is(op)));
        assert!(found, "{text}\n{kernel}");
    }
}

#[test]
fn every_row_can_be_written() {
    for op in UnaryOp::ALL {
        check(op.row(), 1, |o| matches!(o, Op::Unary(found, _) if found == op));
    }
    for op in BinaryOp::ALL {
        check(op.row(), 2, |o| matches!(o, Op::Binary(found, ..) if found == op));
    }
    for op in TernaryOp::ALL {
        check(
            op.row(),
            3,
            |o| matches!(o, Op::Ternary(found, ..) if found == op),
        );
    }
}

/// A block's own `Output` is meant, and a parameter's that of its bound, whatever else the type has.
#[test]
fn outputs_of_several_traits_are_told_apart() {
    let plain = "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct V { a: [f32; 2] }
        #[device] impl Index<usize> for V { type Output = f32; fn index(&self, i: usize) -> &f32 { &self.a[i] } }
        #[device] impl Add for V {
            type Output = V;
            fn add(self, o: V) -> Self::Output { V { a: [self.a[0] + o.a[0], self.a[1] + o.a[1]] } }
        }
        #[device] fn twice<T: Copy + Add<Output = T>>(x: T) -> T::Output { x + x }
        #[kernel] fn k(x: &mut [f32]) { let v = V { a: [x[0], x[1]] }; let w = twice(v) + v; x[0] = w[1]; }";
    let generic = plain
        .replace("struct V ", "struct V<const N: usize> ")
        .replace("f32; 2", "f32; N")
        .replace("impl ", "impl<const N: usize> ")
        .replace("for V", "for V<N>")
        .replace("= V;", "= V<N>;")
        .replace("o: V)", "o: V<N>)")
        .replace(
            "V { a: [self.a[0] + o.a[0], self.a[1] + o.a[1]] }",
            "let mut sum = self; for i in 0..N { sum.a[i] += o.a[i]; } sum",
        );
    for text in [plain, &generic] {
        lowered(text, "k", &Instantiation::default()).unwrap();
    }
    let open = plain.replace("T: Copy + Add<Output = T>", "T: Copy");
    assert_eq!(
        lowered(&open, "k", &Instantiation::default()).unwrap_err(),
        "program.rs:7: `V::Output` may be several types: name the trait: `<V as Trait>::Output`"
    );
}
