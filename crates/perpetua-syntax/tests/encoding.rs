//! Encoded trees: damaged bytes are errors, never panics, and nesting is bounded.

use perpetua_syntax::{
    Block, DecodeError, Expr, ExprKind, FORMAT_VERSION, Function, FunctionKind, MAX_NESTING, Param, Place,
    Scalar, Type, UnaryOp, decode, encode,
};

/// A function whose value is `!!…!x`, with this many expressions inside one another.
fn nested(levels: u32) -> Function {
    let mut value = Expr {
        place: Place::default(),
        line: 7,
        kind: ExprKind::Local("x".to_owned()),
    };
    for _ in 1..levels {
        value = Expr {
            place: Place::default(),
            line: 7,
            kind: ExprKind::Unary {
                op: UnaryOp::Not,
                operand: Box::new(value),
            },
        };
    }
    let ty = Type::Scalar(Scalar::U32);
    Function {
        name: "f".to_owned(),
        kind: FunctionKind::Device,
        file: "src/lib.rs".to_owned(),
        line: 6,
        own: None,
        generics: Vec::new(),
        params: vec![Param {
            name: "x".to_owned(),
            mutable: false,
            ty: ty.clone(),
            line: 6,
        }],
        ret: Some(ty),
        body: Block {
            stmts: Vec::new(),
            value: Some(Box::new(value)),
            end_line: 8,
        },
        paths: Vec::new(),
    }
}

#[test]
fn trees_decode_to_themselves_up_to_the_bound_of_nesting() {
    for levels in [1, 2, MAX_NESTING - 1, MAX_NESTING] {
        let function = nested(levels);
        assert_eq!(decode(&encode(&function)), Ok(function), "{levels} levels");
    }
    for levels in [MAX_NESTING + 1, 2 * MAX_NESTING] {
        let found = decode(&encode(&nested(levels)));
        assert!(
            matches!(found, Err(DecodeError::Damaged { .. })),
            "{levels} levels: {found:?}"
        );
    }
    // A refusal leaves nothing behind.
    assert!(decode(&encode(&nested(MAX_NESTING))).is_ok());
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = encode(&nested(9));
    assert_eq!(decode(&[]), Err(DecodeError::Empty));
    for length in 1..bytes.len() {
        let found = decode(&bytes[..length]);
        assert!(
            matches!(found, Err(DecodeError::Damaged { .. })),
            "{length} bytes: {found:?}"
        );
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(
        decode(&longer),
        Err(DecodeError::Damaged {
            cause: "1 bytes follow its end".to_owned()
        })
    );
}

#[test]
fn other_versions_are_errors_that_name_both() {
    let mut bytes = encode(&nested(1));
    bytes[0] = FORMAT_VERSION + 1;
    let error = decode(&bytes).unwrap_err();
    assert_eq!(
        error,
        DecodeError::Version {
            found: FORMAT_VERSION + 1
        }
    );
    let text = error.to_string();
    assert!(
        text.contains(&format!("version {}", FORMAT_VERSION + 1)),
        "{text}"
    );
    assert!(text.contains(&format!("reads {FORMAT_VERSION}")), "{text}");
}

#[test]
fn changed_bytes_never_panic_and_never_pass_for_the_same_tree() {
    let function = nested(20);
    let bytes = encode(&function);
    for at in 0..bytes.len() {
        for flip in 1..=u8::MAX {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            assert_ne!(
                decode(&changed).as_ref(),
                Ok(&function),
                "byte {at} changed by {flip:#x}"
            );
        }
    }
}
