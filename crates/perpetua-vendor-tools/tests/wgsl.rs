//! WGSL through naga and tint: what is right passes, what is wrong is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation in a helper of tests is the report"
)]

use perpetua_vendor_tools::{ToolResult, naga, tint};

const WGSL: &str = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    data[id.x] = data[id.x] * 2.0;
}
";

/// `WGSL` with a subgroup sum, which needs a capability of naga and an extension of tint.
fn with_subgroups() -> String {
    WGSL.replace("data[id.x] * 2.0", "subgroupAdd(data[id.x])")
}

/// Fails unless the result is a refusal whose log holds `expected`, or the tool is missing.
fn refused(result: ToolResult<String>, expected: &str) {
    match result {
        ToolResult::Accepted(log) => panic!("accepted: {log}"),
        ToolResult::Rejected { log } => assert!(log.contains(expected), "{log}"),
        ToolResult::Missing(missing) => eprintln!("ignored: {missing}"),
    }
}

#[test]
fn right_modules_pass_both() {
    naga(WGSL, &[]).required("WGSL").unwrap();
    tint(WGSL, &[]).required("WGSL").unwrap();
    naga(&with_subgroups(), &["subgroup"])
        .required("subgroups")
        .unwrap();
    tint(&with_subgroups(), &["subgroups"])
        .required("subgroups")
        .unwrap();
}

#[test]
fn wrong_modules_are_refused() {
    let wrong = WGSL.replace("* 2.0", "* true");
    refused(naga(&wrong, &[]), "module.wgsl:4");
    refused(tint(&wrong, &[]), "module.wgsl:4");
}

#[test]
fn what_was_not_asked_for_is_refused() {
    refused(naga(&with_subgroups(), &[]), "SUBGROUP");
    refused(tint(&with_subgroups(), &[]), "subgroups");
    refused(naga(WGSL, &["no_such_capability"]), "NO_SUCH_CAPABILITY");
}
