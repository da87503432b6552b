//! Arguments of a launch that are put into its kernel.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

use perpetua_cpu::interp::{Arg, BufferRef, Interpreter, LaunchConfig};
use perpetua_ir::pass::bind_scalars;
use perpetua_ir::verify::verify;

const TEXT: &str = "
kernel adds(out: buffer<u32, read_write>, twice: u32, more: u32) {
  %0: u32 = thread_idx.x
  %1: u32 = param twice
  %2: u32 = const 0
  %3: bool = ne %1, %2
  if %3 {
    %4: u32 = param more
    %5: u32 = load out[%0]
    %6: u32 = add %5, %4
    store out[%0], %6
  }
  %7: u32 = param more
  %8: u32 = load out[%0]
  %9: u32 = add %8, %7
  store out[%0], %9
}
";

#[test]
fn what_is_bound_is_not_read_from_the_launch() {
    let kernel = verify(TEXT.parse().unwrap()).unwrap();
    let run = |bound: &[(&str, u64)]| {
        let kernel = bind_scalars(&kernel, bound);
        // It is a kernel like any other.
        let kernel = verify(kernel.into_kernel()).unwrap();
        let mut out = [7u32; 4];
        let (twice, more) = (1u32.to_le_bytes(), 5u32.to_le_bytes());
        let args = [
            Arg::Buffer(BufferRef::from_slice(&mut out)),
            Arg::Value(&twice),
            Arg::Value(&more),
        ];
        let config = LaunchConfig::new([1, 1, 1], [4, 1, 1], &args);
        Interpreter::new(&kernel).unwrap().launch(&config).unwrap();
        (out, kernel.kernel().to_string().matches("= param").count())
    };
    assert_eq!(run(&[]), ([17; 4], 3));
    // Buffers and strangers have no value.
    assert_eq!(run(&[("out", 9), ("no_such", 9)]), ([17; 4], 3));
    // Branches that it rules out are gone.
    assert_eq!(run(&[("twice", 0)]), ([12; 4], 1));
    // Also within blocks.
    assert_eq!(run(&[("twice", 1), ("more", 2)]), ([11; 4], 0));
}

#[test]
fn what_is_taken_always_stands_by_itself() {
    let text = "
kernel k(out: buffer<u32, read_write>, way: u32) {
  %0: u32 = thread_idx.x
  %1: u32 = param way
  %2: u32 = const 1
  %3: u32 = add %1, %2
  loop {
    switch %3 {
      case 1, 2 {
        store out[%0], %3
        break 0
      }
      default {
        store out[%0], %0
      }
    }
    return
  }
  store out[%0], %1
}
";
    let run = |way: u64| {
        let kernel = bind_scalars(&verify(text.parse().unwrap()).unwrap(), &[("way", way)]);
        let kernel = verify(kernel.into_kernel()).unwrap();
        let mut out = [9u32; 2];
        let unread = 77u32.to_le_bytes();
        let args = [Arg::Buffer(BufferRef::from_slice(&mut out)), Arg::Value(&unread)];
        let config = LaunchConfig::new([1, 1, 1], [2, 1, 1], &args);
        Interpreter::new(&kernel).unwrap().launch(&config).unwrap();
        (out, kernel.kernel().to_string())
    };
    let (out, text) = run(1);
    assert_eq!(out, [1, 1]);
    assert!(!text.contains("switch") && !text.contains("return"), "{text}");
    let (out, text) = run(2);
    assert_eq!(out, [0, 1]);
    assert!(!text.contains("switch") && !text.contains("break"), "{text}");
}

/// Launches describe matrices by arguments, so a kernel that multiplies them in stages goes by those, too.
#[test]
fn what_describes_matrices_is_not_bound() {
    let text = "
kernel k(a: buffer<f16, read>, b: buffer<f16, read>, out: buffer<u64, read_write>, n: u64, m: u64) block_size(256, 1, 1) stages(2, f16, along(64, a, n, n, n), along(64, b, n, n, n)) {
  %0: u32 = thread_idx.x
  %1: u64 = param n
  store out[%0], %1
  %2: u64 = param m
  store out[%0], %2
}
";
    let kernel = bind_scalars(&verify(text.parse().unwrap()).unwrap(), &[("n", 1), ("m", 2)]);
    let text = kernel.kernel().to_string();
    assert!(
        text.contains("= param n") && !text.contains("= param m"),
        "{text}"
    );
}
