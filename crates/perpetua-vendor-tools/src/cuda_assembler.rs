//! PTX through NVIDIA's assembler, and its machine code back to text. Needs no driver and no GPU.

use crate::locate::{self, Search};
use crate::program::{folder_with, read, run, verdict};
use crate::{Missing, Need, ToolResult};
use std::process::Command;

/// What the assembler made of a PTX module.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// Everything the assembler printed (run with `-v`).
    pub log: String,
    /// The machine code: an ELF image for the architecture asked for.
    pub cubin: Vec<u8>,
    /// What each function needs, in the assembler's order.
    pub usage: Vec<FunctionUsage>,
}

/// The resources of one entry point, as the assembler reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionUsage {
    /// The entry point's name.
    pub name: String,
    /// Registers a lane.
    pub registers: u32,
    /// Bytes of local memory that hold the stack, a lane.
    pub stack_bytes: u32,
    /// Bytes stored because registers ran out, a lane.
    pub spill_store_bytes: u32,
    /// Bytes loaded back because registers ran out, a lane.
    pub spill_load_bytes: u32,
    /// Bytes of statically declared shared memory, a group.
    pub shared_bytes: u32,
}

/// Assembles a PTX module for `arch` (`sm_70`, `sm_90a`, …): CUDA 12's assembler below compute capability 7.5,
/// CUDA 13.0's from there on, so that a module that passes is one that driver 580 reads.
pub fn ptxas(ptx: &str, arch: &str) -> ToolResult<Assembled> {
    let mut search = Search::new();
    let old = capability(arch).is_some_and(|number| number < 75);
    let found = if old {
        locate::cuda_12_ptxas(&mut search)
    } else {
        locate::cuda_13_program("ptxas", &mut search)
    };
    let program = found.ok_or_else(|| missing("ptxas", search));
    verdict(program, |program| {
        let (folder, input) = folder_with("module.ptx", ptx.as_bytes())?;
        let output = folder.path().join("module.cubin");
        let mut command = Command::new(program);
        command
            .current_dir(&folder)
            .arg("-v")
            .arg(format!("-arch={arch}"))
            .arg(&input)
            .arg("-o")
            .arg(&output);
        let answer = run(&mut command)?;
        if !answer.success {
            return Err(answer.log);
        }
        Ok(Assembled {
            usage: usage(&answer.log),
            log: answer.log,
            cubin: read(&output)?,
        })
    })
}

/// Machine code as text, to ask which instructions the assembler chose.
pub fn nvdisasm(cubin: &[u8]) -> ToolResult<String> {
    let mut search = Search::new();
    let program = locate::cuda_13_program("nvdisasm", &mut search).ok_or_else(|| missing("nvdisasm", search));
    verdict(program, |program| {
        let (_folder, input) = folder_with("module.cubin", cubin)?;
        let answer = run(Command::new(program).arg("-c").arg(&input))?;
        if answer.success {
            Ok(answer.log)
        } else {
            Err(answer.log)
        }
    })
}

fn missing(tool: &'static str, search: Search) -> Missing {
    let remedy = "run `cargo xtask setup --only cuda`";
    Missing {
        tool,
        looked_for: search.tried(),
        remedy,
        need: Need::Required,
    }
}

/// The number in `sm_90a`.
fn capability(arch: &str) -> Option<u32> {
    arch.strip_prefix("sm_")?
        .trim_end_matches(char::is_alphabetic)
        .parse()
        .ok()
}

fn usage(log: &str) -> Vec<FunctionUsage> {
    let mut functions: Vec<FunctionUsage> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            functions.push(FunctionUsage {
                name,
                ..FunctionUsage::default()
            });
            continue;
        }
        let Some(function) = functions.last_mut() else {
            continue;
        };
        for part in line.split(',') {
            let fields = [
                ("registers", &mut function.registers),
                ("bytes stack frame", &mut function.stack_bytes),
                ("bytes spill stores", &mut function.spill_store_bytes),
                ("bytes spill loads", &mut function.spill_load_bytes),
                ("bytes smem", &mut function.shared_bytes),
            ];
            for (unit, field) in fields {
                if let Some(number) = number_before(part, unit) {
                    *field = number;
                }
            }
        }
    }
    functions
}

/// The number right before `unit` at the end of `part`: `Used 10 registers` has 10 `registers`.
fn number_before(part: &str, unit: &str) -> Option<u32> {
    part.trim()
        .strip_suffix(unit)?
        .split_whitespace()
        .last()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_gives_registers_and_spills() {
        let log = "ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'k' for 'sm_90a'\n\
                   ptxas info    : Function properties for k\n    \
                   8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n\
                   ptxas info    : Used 10 registers, used 1 barriers, 8 bytes cumulative stack size, 1024 bytes smem\n";
        let expected = FunctionUsage {
            name: "k".to_owned(),
            registers: 10,
            stack_bytes: 8,
            spill_store_bytes: 16,
            spill_load_bytes: 24,
            shared_bytes: 1024,
        };
        assert_eq!(usage(log), [expected]);
    }

    #[test]
    fn architectures_have_numbers() {
        assert_eq!(capability("sm_70"), Some(70));
        assert_eq!(capability("sm_90a"), Some(90));
        assert_eq!(capability("sm_100"), Some(100));
        assert_eq!(capability("compute"), None);
    }
}
