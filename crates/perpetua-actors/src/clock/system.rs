//! The operating system's clock. Must not know what it is compared with.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970 by the operating system's clock; zero where that stands before 1970.
pub(super) fn system_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // 64 bits of nanoseconds last until the year 2554.
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// The same as of that clock's last tick, where it says so.
#[cfg(target_os = "linux")]
pub(super) fn coarse_nanos() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a `timespec` of ours.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) } != 0;
    match u64::try_from(time.tv_sec) {
        Ok(seconds) if !failed => seconds * 1_000_000_000 + time.tv_nsec as u64,
        _ => system_nanos(),
    }
}

/// The same: it does not say.
#[cfg(not(target_os = "linux"))]
pub(super) fn coarse_nanos() -> u64 {
    system_nanos()
}
