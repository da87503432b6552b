//! Loops that are written out, and those that are not.

use perpetua_ir::ir::{Inst, Kernel};
use perpetua_ir::pass::unroll_indexed;
use perpetua_ir::verify::verify;

/// How many loops are left of a kernel with this turn, and which indices its variable gets.
fn check(turns: u32, turn: &str, loops: usize) {
    let text = format!(
        "kernel k(x: buffer<u32, read_write>) {{
  local $a: [u32; 4]
  local $next: u32
  %0: [u32; 4] = zero
  store $a, %0
  %1: u32 = const 0
  %2: u32 = const {turns}
  store $next, %1
  loop {{
    %3: u32 = load $next
    %4: bool = lt %3, %2
    %5: bool = not %4
    if %5 {{
      break 0
    }}
    %6: u32 = const 1
    %7: u32 = add %3, %6
    store $next, %7
    {turn}
  }}
  %8: u32 = load $a[%1]
  store x[%1], %8
}}
"
    );
    let verified = verify(text.parse::<Kernel>().unwrap()).unwrap();
    let unrolled = unroll_indexed(&verified);
    let kernel = unrolled.as_ref().unwrap_or(&verified).kernel();
    // The code is valid: no value is defined twice, none is read before.
    let again = verify(kernel.clone()).unwrap();
    let mut found = 0;
    again
        .kernel()
        .body
        .block
        .walk(&mut |stmt| found += usize::from(matches!(stmt.inst, Inst::Loop(_))));
    assert_eq!(found, loops, "{}", again.kernel());
}

#[test]
fn only_short_loops_that_pick_elements_are_written_out() {
    check(4, "store $a[%3], %6", 0);
    check(
        4,
        "%9: u32 = load $a[%3]\n%10: u32 = add %9, %6\nstore $a[%3], %10",
        0,
    );
    check(0, "store $a[%3], %6", 0);
    // The index is computed of the counter, here and of two counters below.
    check(
        3,
        "%9: u32 = mul %3, %6\n%10: u32 = add %9, %6\nstore $a[%10], %6",
        0,
    );
    check(
        3,
        "%9: u32 = load x[%3]\n%10: u32 = add %3, %9\nstore $a[%10], %6",
        1,
    );
    // Nothing is gained, the loop is long, or a turn may be the last.
    check(4, "store x[%3], %7", 1);
    check(33, "store $a[%3], %6", 1);
    check(
        4,
        "store $a[%3], %6\n%9: bool = eq %3, %6\nif %9 {\nbreak 0\n}",
        1,
    );
    check(
        4,
        "store $a[%3], %6\n%9: bool = eq %3, %6\nif %9 {\ncontinue 0\n}",
        1,
    );
    check(4, "store $a[%3], %6\n%9: bool = eq %3, %6\nif %9 {\nreturn\n}", 1);
    // The turn needs what the head computes.
    check(4, "store $a[%3], %7", 1);
    // The counter is changed by the turn.
    check(4, "store $a[%3], %6\nstore $next, %6", 1);
}
