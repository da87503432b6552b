//! The use of NVIDIA GPUs as their driver tells it, which is looked for at run time. Must not know how it is shown.

/// What is known of GPUs at one moment: a line for each, or why there is none.
pub(super) type Lines = Vec<String>;

/// Asks the driver.
pub(super) struct Gpus {
    #[cfg(feature = "top")]
    nvml: Result<nvml_wrapper::Nvml, String>,
}

#[cfg(not(feature = "top"))]
impl Gpus {
    pub(super) fn open() -> Gpus {
        Gpus {}
    }

    pub(super) fn read(&self, _pid: u32) -> Lines {
        vec!["GPU: n/a (this program was built without the feature `top`)".into()]
    }
}

#[cfg(feature = "top")]
impl Gpus {
    /// Looks for the driver's library.
    pub(super) fn open() -> Gpus {
        use nvml_wrapper::Nvml;
        // A driver brings the first, a toolkit the other.
        let versioned = Nvml::builder()
            .lib_path(std::ffi::OsStr::new("libnvidia-ml.so.1"))
            .init();
        Gpus {
            nvml: versioned.or_else(|_| Nvml::init()).map_err(|error| match error {
                nvml_wrapper::error::NvmlError::LibloadingError(_) => {
                    "no NVIDIA driver: libnvidia-ml was not found".into()
                }
                other => format!("NVML: {other}"),
            }),
        }
    }

    /// How busy each GPU is, its memory, and what of that the process has.
    pub(super) fn read(&self, pid: u32) -> Lines {
        let nvml = match &self.nvml {
            Ok(nvml) => nvml,
            Err(reason) => return vec![format!("GPU: n/a ({reason})")],
        };
        match nvml.device_count() {
            Ok(0) => vec!["GPU: n/a (the NVIDIA driver has no devices)".into()],
            Ok(count) => (0..count)
                .map(|index| match about(nvml, index, pid) {
                    Ok(line) => format!("GPU {index}: {line}"),
                    Err(error) => format!("GPU {index}: n/a ({error})"),
                })
                .collect(),
            Err(error) => vec![format!("GPU: n/a (NVML: {error})")],
        }
    }
}

#[cfg(feature = "top")]
fn about(nvml: &nvml_wrapper::Nvml, index: u32, pid: u32) -> Result<String, nvml_wrapper::error::NvmlError> {
    use nvml_wrapper::enums::device::UsedGpuMemory;
    let device = nvml.device_by_index(index)?;
    let name = device.name()?;
    // Some devices tell the one and not the other.
    let busy = device
        .utilization_rates()
        .map_or_else(|_| "use n/a".into(), |rates| format!("{} % busy", rates.gpu));
    let memory = device.memory_info().map_or_else(
        |_| "memory n/a".into(),
        |memory| format!("memory {} of {}", bytes(memory.used), bytes(memory.total)),
    );
    let own: Option<u64> = device.running_compute_processes().ok().and_then(|all| {
        let own = all.into_iter().filter(|process| process.pid == pid);
        own.map(|process| match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        })
        .sum()
    });
    let own = own.filter(|own| *own > 0);
    let own = own.map_or_else(String::new, |own| format!(" ({} of this process)", bytes(own)));
    Ok(format!("{name}, {busy}, {memory}{own}"))
}

#[cfg(feature = "top")]
fn bytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}
