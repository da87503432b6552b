//! What stands here for those of hologram's instructions that are none of ours: macros, and programs of the library.

/// Texts that any program can include.
pub(crate) fn include(name: &str) -> Option<&'static str> {
    (name == "atlas").then_some(include_str!("../programs/atlas.pasm"))
}

/// The library's program that is an instruction of hologram's, by its name in any case.
pub(crate) fn program(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        // Of groups of one channel with one element each, a row is a channel's.
        "layernorm" | "groupnorm" => "atlas_group_norm_f32",
        "batchnorm" => "atlas_batch_norm_f32",
        "conv2d" => "atlas_conv2d_f32",
        "nearestupsample2d" => "atlas_nearest_upsample2d_f32",
        "gemm" => "atlas_gemm_f32",
        "parallelreduce" => "atlas_reduce_add_f32",
        _ => return None,
    })
}

/// What stands here for an instruction of hologram's that is none of ours, by its name in any case.
pub(crate) fn hint(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "clsget" | "mirror" | "unitytest" | "nbrcount" | "nbrget" | "resaccum" | "phaseget" | "phaseadv"
        | "boundmap" => "`.include \"atlas\"` brings it as a macro, in small letters",
        "layernorm" => "the library's program `atlas_group_norm_f32` does it, with `groups` and `size` 1",
        "groupnorm" => "the library's program `atlas_group_norm_f32` does it",
        "batchnorm" => "the library's program `atlas_batch_norm_f32` does it",
        "conv2d" => "the library's program `atlas_conv2d_f32` does it",
        "nearestupsample2d" => "the library's program `atlas_nearest_upsample2d_f32` does it",
        "gemm" => "the library's program `atlas_gemm_f32` does it",
        "parallelmap" => {
            "every lane runs the program: use the function's own, as `atlas_exp_f32`, or write one for an element"
        }
        "parallelmapbinary" => {
            "every lane runs the program: use the function's own, as `atlas_add_f32`, or write one for two elements"
        }
        "parallelreduce" => "use the library's `atlas_reduce_add_f32` and its kin, or `grid_add`",
        _ => return None,
    })
}
