//! Kernels whose loops make a limited number of turns.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

use perpetua_cpu::interp::{Arg, BufferRef, InterpError, Interpreter, LaunchConfig};
use perpetua_ir::ir::FaultKind;
use perpetua_ir::pass::{OUT_OF_TURNS, limit_turns};
use perpetua_ir::verify::verify;

/// Each lane counts to ten times its number, in a device function.
const COUNTS: &str = "
fn count(to: u32) -> u32 {
  local $i: u32
  %1: u32 = const 0
  store $i, %1
  loop {
    %2: u32 = load $i
    %3: bool = ge %2, %0
    if %3 {
      break 0
    }
    %4: u32 = const 1
    %5: u32 = add %2, %4
    store $i, %5
  }
  %6: u32 = load $i
  return %6
}
kernel counts(words: buffer<u32, read_write>, out: buffer<u32, read_write>) {
  %0: u32 = thread_idx.x
  %1: u32 = const 10
  %2: u32 = mul %0, %1
  %3: u32 = call count(%2)
  store out[%0], %3
}
";

#[test]
fn lanes_make_as_many_turns_as_their_words_say() {
    let kernel = verify(COUNTS.parse().unwrap()).unwrap();
    assert!(limit_turns(&kernel, "no_words").is_none());
    let limited = limit_turns(&kernel, "words").unwrap();
    let interpreter = Interpreter::new(&limited).unwrap();
    let run = |mut words: [u32; 4]| {
        let mut out = [7u32; 4];
        let buffers = [BufferRef::from_slice(&mut words), BufferRef::from_slice(&mut out)];
        let args = buffers.map(Arg::Buffer);
        let outcome = interpreter.launch(&LaunchConfig::new([1, 1, 1], [4, 1, 1], &args));
        (outcome, words, out)
    };
    // The turn in which a loop is left counts.
    let (outcome, words, out) = run([1, 11, 21, 31]);
    assert_eq!(outcome, Ok(()));
    assert_eq!((words, out), ([0; 4], [0, 10, 20, 30]));
    let (outcome, words, out) = run([1, 11, 20, 100]);
    let Err(InterpError::Fault(fault)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((fault.site.kind, fault.thread), (FaultKind::TimeLimit, [2, 0, 0]));
    assert_eq!((words, out), ([0, 0, OUT_OF_TURNS, 0], [0, 10, 7, 30]));
}
