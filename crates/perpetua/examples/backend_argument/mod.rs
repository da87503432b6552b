//! `--backend cpu`, which every example takes. Must not know examples.

use perpetua::actors::runtime::RuntimeBuilder;
use perpetua::actors::{Backend, PerpetuaRuntime};

/// A runtime on the backend that the command line asks for, on the CPU where it asks for none; says which it is.
#[allow(dead_code, reason = "some examples prefer another backend")]
pub(crate) async fn runtime() -> Result<PerpetuaRuntime, Box<dyn std::error::Error>> {
    runtime_or(Backend::Cpu).await
}

/// A runtime on the backend that the command line asks for, or else on this one; says which it is.
#[allow(dead_code, reason = "some examples take more arguments")]
pub(crate) async fn runtime_or(mut backend: Backend) -> Result<PerpetuaRuntime, Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let name = match word.strip_prefix("--backend") {
            Some("") => words.next().unwrap_or_default(),
            Some(rest) if rest.starts_with('=') => rest[1..].to_owned(),
            _ => {
                return Err(format!("`{word}` is unknown: this takes `--backend cpu|cuda|wgpu|auto`").into());
            }
        };
        backend = named(&name)?;
    }
    open(PerpetuaRuntime::builder().backend(backend)).await
}

/// The backend of this name.
pub(crate) fn named(name: &str) -> Result<Backend, String> {
    Backend::from_name(name)
        .ok_or_else(|| format!("there is no backend `{name}`: take cpu, cuda, wgpu or auto"))
}

/// The runtime; says which it is.
pub(crate) async fn open(builder: RuntimeBuilder) -> Result<PerpetuaRuntime, Box<dyn std::error::Error>> {
    let runtime = builder.build().await?;
    let how = match runtime.backend().is_resident() {
        true => "handlers stay there and wait for messages",
        false => "the host launches batches of messages until all are handled",
    };
    println!("backend: {} ({how})", runtime.backend().kind);
    Ok(runtime)
}
