//! `gpu_println!` as plain Rust.

/// Prints a line from a kernel: as `println!`, with positional arguments only. Devices that print do so when the launch
/// has ended.
#[macro_export]
macro_rules! gpu_println {
    ($($arg:tt)*) => {
        ::std::println!($($arg)*)
    };
}
