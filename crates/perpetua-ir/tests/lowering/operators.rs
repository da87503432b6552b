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
