//! Prints the field that the page's `numbers` gives, computed by this machine's CPU: little-endian f32 to standard
//! output. The page's test compares the two.

use std::io::Write;

use perpetua::device::{BackendKind, Device, future::block_on};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = std::env::args().nth(1).map_or(Ok(200), |steps| steps.parse())?;
    let device = Device::new(BackendKind::Cpu, 0)?;
    let field = block_on(wavesim::numbers::field(&device, steps))?;
    let bytes: Vec<u8> = field.iter().flat_map(|u| u.to_le_bytes()).collect();
    std::io::stdout().write_all(&bytes)?;
    Ok(())
}
