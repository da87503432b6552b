//! Generations of GPUs: what the head of the text says, and that NVIDIA's assembler takes it for that generation.

use perpetua_ir::back::{RenderError, Sm, SmReach, Target, ptx, render};
use perpetua_ir::ir::{Access, Place, Type};
use perpetua_ir::verify::{Verified, verify};
use perpetua_vendor_tools::{ToolResult, ptxas};

use crate::build;

fn kernel() -> Verified {
    let kernel = build("one", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (zero, one) = (k.u32(0), k.u32(1));
        k.store(Place::element(out, zero), one)
    });
    verify(kernel).unwrap()
}

#[test]
fn a_generation_s_own_target_is_named_and_assembled() {
    let check = |sm: &str, head: &str| {
        let target = Target::Ptx {
            sm: sm.parse().unwrap(),
        };
        assert_eq!(target.name(), format!("PTX sm_{sm}"));
        let text = render(&kernel(), &target).unwrap().text;
        assert!(text.starts_with(head), "{sm}: {text}");
        let arch = format!("sm_{sm}");
        ptxas(&text, &arch)
            .required(&arch)
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
    };
    check("90", ".version 7.8\n.target sm_90\n");
    check("90a", ".version 8.0\n.target sm_90a\n");
    check("100a", ".version 8.6\n.target sm_100a\n");
    check("100f", ".version 8.8\n.target sm_100f\n");
    check("120a", ".version 8.7\n.target sm_120a\n");
}

#[test]
fn code_for_one_generation_is_refused_for_others() {
    let own = Sm::of_device(9, 0);
    let text = ptx::render(&kernel(), own).unwrap().text;
    // Without the assembler there is nothing to refuse it, and the other test says so.
    let other = ptxas(&text, "sm_100");
    assert!(!matches!(other, ToolResult::Accepted(_)), "{text}");
    let none = Sm {
        number: 75,
        reach: SmReach::Own,
    };
    let error = ptx::render(&kernel(), none).unwrap_err();
    assert!(
        matches!(&error, RenderError::Unsupported { target, .. } if target == "PTX sm_75a"),
        "{error}"
    );
}
