//! `--backend cpu`, which every example takes, and how each ends. Must not know examples.

use std::process::ExitCode;

use perpetua::actors::runtime::RuntimeBuilder;
use perpetua::actors::{Backend, PerpetuaRuntime};

/// A runtime on the backend that the command line asks for, on the CPU where it asks for none; says which it is.
#[allow(dead_code, reason = "some examples prefer another backend")]
pub(crate) async fn runtime() -> Result<PerpetuaRuntime, Box<dyn std::error::Error>> {
    runtime_or(PerpetuaRuntime::builder()).await
}

/// A runtime on the backend that the command line asks for, or else this one; says which it is.
#[allow(dead_code, reason = "some examples take more arguments")]
pub(crate) async fn runtime_or(
    mut builder: RuntimeBuilder,
) -> Result<PerpetuaRuntime, Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let name = match word.strip_prefix("--backend") {
            Some("") => words.next().unwrap_or_default(),
            Some(rest) if rest.starts_with('=') => rest[1..].to_owned(),
            _ => {
                return Err(format!("`{word}` is unknown: this takes `--backend {NAMES}`").into());
            }
        };
        builder = named(&name)?;
    }
    open(builder).await
}

/// What went wrong, in words.
pub(crate) fn end(done: Result<(), Box<dyn std::error::Error>>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What there is to choose.
pub(crate) const NAMES: &str = "cpu|cuda|wgpu|interpreter|auto";

/// A builder for the backend of this name. `interpreter`: kernels that stay, as on CUDA, in the CPU's interpreter.
pub(crate) fn named(name: &str) -> Result<RuntimeBuilder, String> {
    let builder = PerpetuaRuntime::builder();
    match Backend::from_name(name) {
        Some(backend) => Ok(builder.backend(backend)),
        None if name == "interpreter" => Ok(builder.resident()),
        None => Err(format!("there is no backend `{name}`: take one of {NAMES}")),
    }
}

/// The runtime; says which it is.
pub(crate) async fn open(builder: RuntimeBuilder) -> Result<PerpetuaRuntime, Box<dyn std::error::Error>> {
    let runtime = builder.build().await?;
    let how = match runtime.backend().stays() {
        true => "handlers stay there and wait for messages",
        false => "the host launches batches of messages until all are handled",
    };
    println!("backend: {} ({how})", runtime.backend().kind);
    Ok(runtime)
}
