//! What processor this is: its name, its caches and its SIMD features.

use std::sync::OnceLock;

/// The processor's name, where the system tells; else the architecture.
pub(super) fn name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |key: &str| {
        let value = text
            .lines()
            .find_map(|l| l.strip_prefix(key)?.split_once(':'))?
            .1
            .trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    field("model name")
        .or_else(|| field("Model"))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The vendor's name, where the system tells.
pub(super) fn vendor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let id = text
        .lines()
        .find_map(|l| l.strip_prefix("vendor_id")?.split_once(':'));
    match id.map(|(_, id)| id.trim()) {
        Some("GenuineIntel") => "Intel".into(),
        Some("AuthenticAMD") => "AMD".into(),
        Some(other) => other.to_owned(),
        None if cfg!(target_vendor = "apple") => "Apple".into(),
        None => String::new(),
    }
}

/// Bytes of the largest cache that a core has for itself.
pub(super) fn cache() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size");
        let kibibytes = text
            .ok()
            .and_then(|text| text.trim().strip_suffix('K')?.parse::<u64>().ok());
        // What most processors have at least.
        kibibytes.filter(|k| (128..=1 << 20).contains(k)).unwrap_or(256) << 10
    })
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64"))]
macro_rules! found {
    ($detect:ident: $($feature:tt),*) => {
        [$(($feature, std::arch::$detect!($feature))),*]
    };
}

/// The SIMD features that are there, as the compiler names them.
pub(super) fn features() -> Vec<&'static str> {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    let all = found!(is_x86_feature_detected: "sse2", "sse4.1", "sse4.2", "avx", "avx2", "fma", "f16c", "bmi2",
        "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512bf16", "avx512fp16", "avx512vnni");
    #[cfg(target_arch = "aarch64")]
    let all = found!(is_aarch64_feature_detected: "neon", "fp16", "dotprod", "bf16", "i8mm", "sve", "sve2");
    #[cfg(target_arch = "wasm32")]
    let all = [("simd128", cfg!(target_feature = "simd128"))];
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "wasm32"
    )))]
    let all: [(&str, bool); 0] = [];
    all.iter()
        .filter(|(_, there)| *there)
        .map(|(name, _)| *name)
        .collect()
}
