//! WGSL through both of its front ends in use: naga (wgpu, Firefox) and tint (Dawn, Chrome).

use crate::locate::{self, Search};
use crate::program::{folder_with, run, verdict};
use crate::{Missing, Need, ToolResult};
use std::process::Command;

/// Validates a WGSL module with naga; the value is what it printed. `capabilities` are naga's own names (for
/// example `shader_float16`, `subgroup`): a module may use those and nothing else.
pub fn naga(wgsl: &str, capabilities: &[&str]) -> ToolResult<String> {
    let mut search = Search::new();
    let program = locate::cargo_program("naga", &mut search).ok_or_else(|| Missing {
        tool: "naga",
        looked_for: search.tried(),
        remedy: "run `cargo xtask setup --only naga`",
        need: Need::Required,
    });
    let allowed = if capabilities.is_empty() {
        "none".to_owned()
    } else {
        capabilities.join(",")
    };
    verdict(program, |program| {
        let (_folder, input) = folder_with("module.wgsl", wgsl.as_bytes())?;
        let answer = run(Command::new(program)
            .arg("--capabilities")
            .arg(allowed)
            .arg(&input))?;
        if answer.success {
            Ok(answer.log)
        } else {
            Err(answer.log)
        }
    })
}

/// Validates a WGSL module with tint; the value is what it printed. tint has no 64-bit types, and wants
/// `enable subgroups;` where naga refuses that line: `extensions` names what is enabled for tint alone.
///
/// No package manager carries the program, so it is optional: a machine without it reports the check as ignored.
pub fn tint(wgsl: &str, extensions: &[&str]) -> ToolResult<String> {
    let mut search = Search::new();
    let program = locate::cargo_program("tint", &mut search).ok_or_else(|| Missing {
        tool: "tint",
        looked_for: search.tried(),
        remedy: "build it from Dawn's sources and put it on PATH",
        need: Need::Optional,
    });
    // On the text's own first line, so that the tool's line numbers stay true.
    let enabled: String = extensions.iter().map(|name| format!("enable {name}; ")).collect();
    verdict(program, |program| {
        let (folder, input) = folder_with("module.wgsl", (enabled + wgsl).as_bytes())?;
        let written = folder.path().join("out.wgsl");
        let answer = run(Command::new(program)
            .args(["--format", "wgsl", "-o"])
            .arg(written)
            .arg(&input))?;
        if answer.success {
            Ok(answer.log)
        } else {
            Err(answer.log)
        }
    })
}
