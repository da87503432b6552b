//! `perpetua devices`: what is there; for what is missing, what was looked for.

use std::io::Write;

use perpetua::device::future::block_on;
use perpetua::device::{DeviceInfo, backends, open_backend};

use super::stdout::stdout;
use super::{Failure, text};

pub(super) fn run() -> Result<(), Failure> {
    let columns = text::columns();
    for kind in backends()
        .into_iter()
        .filter(|b| b.order.is_some())
        .map(|b| b.kind)
    {
        match block_on(open_backend(kind)) {
            Err(error) => {
                let error = text::wrapped(&error.to_string(), 4, columns);
                writeln!(stdout()?, "{kind}: none\n    {error}\n")?;
            }
            Ok(backend) => {
                for index in 0..backend.device_count() {
                    match backend.device_info(index) {
                        Ok(info) => writeln!(stdout()?, "{}\n", describe(&info, columns))?,
                        Err(error) => {
                            let error = format!("{kind} device {index}: {error}");
                            writeln!(stdout()?, "{}\n", text::wrapped(&error, 4, columns))?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// Bytes as people read them.
pub(super) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n} bytes")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

fn describe(info: &DeviceInfo, columns: usize) -> String {
    let head = format!("{} {}: {}", info.backend, info.index, info.name);
    let mut lines = vec![text::wrapped(&head, 4, columns)];
    let mut line = |name: &str, value: String| {
        if value.is_empty() {
            return;
        }
        lines.push(text::entry(4, name, 27, &value, columns));
    };
    line("kind", info.adapter_type.to_string());
    line("vendor", info.vendor.clone());
    line("driver", info.driver.clone());
    if let Some((major, minor)) = info.compute_capability {
        line("compute capability", format!("{major}.{minor}"));
    }
    if let Some(n) = info.multiprocessors {
        line("multiprocessors", n.to_string());
    }
    if let Some(clock) = info.clock {
        line("highest clock", format!("{clock} MHz"));
    }
    if let Some(total) = info.memory_total {
        line("memory", bytes(total));
    }
    line("PCI address", info.pci_id.clone().unwrap_or_default());
    let limits = &info.limits;
    line(
        "largest block",
        format!("{} lanes, {:?}", limits.max_threads_per_block, limits.max_block),
    );
    line("shared memory", bytes(limits.shared_bytes_per_block.into()));
    // What exceeds the memory is no limit.
    if limits.max_buffer_bytes <= info.memory_total.unwrap_or(i64::MAX as u64 - 1) {
        line("largest buffer", bytes(limits.max_buffer_bytes));
    }
    line(
        "subgroup",
        format!("{} to {} lanes", info.subgroup_size.0, info.subgroup_size.1),
    );
    let capabilities: Vec<String> = info.capabilities.iter().map(ToString::to_string).collect();
    line("capabilities", capabilities.join(", "));
    for (name, value) in &info.details {
        line(name, value.clone());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_told_in_a_unit_that_fits() {
        let check = |n: u64, expect: &str| assert_eq!(super::bytes(n), expect);
        check(0, "0 bytes");
        check(1536, "1.5 KiB");
        check(150_754_820_096, "140.4 GiB");
    }
}
