//! A program knows its kernels and checks them before `main`, those that nobody launches, too.
#![cfg(debug_assertions)]

use std::process::Command;

use perpetua::kernel::check::{ASKED, ROOT};
use perpetua::kernel::check_all;
use perpetua::prelude::*;

#[kernel]
fn unused(y: &mut [u32]) {
    y[0] = 1;
}

#[kernel]
fn scaled<T: Copy + core::ops::Mul<Output = T>, const N: usize>(x: &[T], y: &mut [T]) {
    for i in 0..N {
        y[i] = x[i] * x[i];
    }
}

/// What nobody calls asks for an instance, through a generic function.
fn asks<const N: usize>() -> KernelFn {
    scaled::kernel::<u16, N>()
}

#[test]
fn all_kernels_are_known_and_hold() {
    if std::env::args().count() > 1000 {
        asks::<3>();
    }
    assert!(check_all().unwrap() > 100);
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let output = Command::new(std::env::current_exe().unwrap())
        .env(ASKED, &report)
        .env(ROOT, folder.path())
        .output()
        .unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let report = std::fs::read_to_string(report).unwrap();
    for name in ["unused", "scaled::<u16, 3>"] {
        let line = format!("kernel\u{1f}{name}\u{1f}");
        assert_eq!(
            report.lines().filter(|found| found.starts_with(&line)).count(),
            1,
            "{name}"
        );
    }
    // Kernels of other tests, and none that is refused everywhere.
    assert!(!report.contains("refused\u{1f}\u{1f}"), "{report}");
}
