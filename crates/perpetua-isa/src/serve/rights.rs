//! What a child process gives up: rights of the server's user that running programs does not need. It is a second fence, for the day on which a
//! driver or a compiler has a hole. Must not know jobs.

use perpetua_device::{BackendKind, Device};

/// Most files that a child on the CPU has open: its pipes, and the few that the system's library opens for a moment.
#[cfg(unix)]
const FILES: u64 = 64;

/// Before the first thread and the device are there: nothing that it executes has more rights, the system ends it first where memory is
/// short, and a crash leaves no file behind.
pub(super) fn give_up() {
    #[cfg(unix)]
    limit(rustix::process::Resource::Core, 0);
    #[cfg(target_os = "linux")]
    {
        // Where the system refuses one of them, the others still hold; docs/serve.md promises them for Linux as it is by default.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        let _ = rustix::thread::set_no_new_privs(true);
    }
}

/// When its device is open: no other process of the user reads its memory, and on the CPU, where nothing needs more, it writes no file, opens few,
/// and takes at most twice the memory at whose excess the server ends it, however fast it takes it.
pub(super) fn give_up_with(device: &Device, memory: u64) {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    #[cfg(unix)]
    if device.backend() == BackendKind::Cpu {
        use rustix::process::Resource;
        limit(Resource::Fsize, 0);
        limit(Resource::Nofile, FILES);
        #[cfg(target_os = "linux")]
        limit(Resource::Data, memory.saturating_mul(2));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
    #[cfg(not(unix))]
    let _ = device;
}

// Lowers a limit for good. One that is lower already stays.
#[cfg(unix)]
fn limit(resource: rustix::process::Resource, most: u64) {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let most = getrlimit(resource)
        .maximum
        .map_or(most, |maximum| maximum.min(most));
    let most = Some(most);
    // Lowering is always allowed.
    let _ = setrlimit(
        resource,
        Rlimit {
            current: most,
            maximum: most,
        },
    );
}
