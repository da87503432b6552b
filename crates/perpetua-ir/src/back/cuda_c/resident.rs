//! What kernels need that stay on a device: its clock, faults that are caught, four words that move at once. Must not know what
//! they do with it.

use super::super::c_like::{DEAD, Expr, Module, Spot, Writer};
use super::dialect::Cuda;

/// The device's clock in nanoseconds.
pub(super) fn clock(m: &Module<'_>) -> Expr {
    let name = m.helper("clock_nanos", |name| {
        format!(
            "__device__ unsigned long long {name}()\n{{\n    unsigned long long time;\n    asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(time) :: \"memory\");\n    return time;\n}}\n"
        )
    });
    Expr::whole(format!("{name}()")).at_run_time()
}

/// The number plus one of the site where the lane has faulted; the lane lives again.
pub(super) fn catch_fault(m: &Module<'_>) -> Expr {
    let dead = m.entry_needs.dead;
    let (param, line) = match dead {
        true => (", bool& dead", "    dead = false;\n"),
        false => ("", ""),
    };
    let name = m.helper("catch_fault", |name| {
        format!(
            "__device__ unsigned int {name}(unsigned int& caught{param})\n{{\n    const unsigned int site = caught;\n    caught = 0u;\n{line}    return site;\n}}\n"
        )
    });
    let argument = match dead {
        true => format!(", {DEAD}"),
        false => String::new(),
    };
    Expr::whole(format!("{name}(caught{argument})")).at_run_time()
}

/// Reads four words at once.
pub(super) fn load_whole(
    d: &Cuda,
    w: &mut Writer<'_>,
    spot: &Spot,
    place: &Expr,
    word: &str,
    ptx: &str,
) -> Expr {
    let ty = d.type_name_of(w.m, &spot.ty);
    let name = w.m.helper(&format!("load_whole_relaxed_{word}_{ty}"), |name| {
        format!(
            "__device__ {ty} {name}(const {ty}* p)\n{{\n    unsigned long long words[2];\n    asm volatile(\"{{ .reg .b128 whole; ld.relaxed.{ptx}.b128 whole, [%2]; mov.b128 {{%0, %1}}, whole; }}\" : \"=l\"(words[0]), \"=l\"(words[1]) : \"l\"(p) : \"memory\");\n    {ty} value;\n    memcpy(&value, words, 16);\n    return value;\n}}\n"
        )
    });
    Expr::whole(format!("{name}(&{})", place.text)).reading([place])
}

/// Writes four words at once: place and value; the scope as a word and as PTX names it.
pub(super) fn store_whole(
    d: &Cuda,
    w: &mut Writer<'_>,
    spot: &Spot,
    (place, value): (&Expr, &Expr),
    (word, ptx): (&str, &str),
) {
    let ty = d.type_name_of(w.m, &spot.ty);
    let name = w.m.helper(&format!("store_whole_relaxed_{word}_{ty}"), |name| {
        format!(
            "__device__ void {name}({ty}* p, {ty} value)\n{{\n    unsigned long long words[2];\n    memcpy(words, &value, 16);\n    asm volatile(\"{{ .reg .b128 whole; mov.b128 whole, {{%1, %2}}; st.relaxed.{ptx}.b128 [%0], whole; }}\" :: \"l\"(p), \"l\"(words[0]), \"l\"(words[1]) : \"memory\");\n}}\n"
        )
    });
    w.write(&format!("{name}(&{}, {});", place.text, value.text));
}
