//! What PTX calls instructions: hints for those who come from there. No other name is taken.

/// What PTX writes, up to its types; what is written here; where the two differ by more than a name, how.
const NAMES: [(&str, &str, &str); 38] = [
    ("setp.eq", "seteq", ""),
    ("setp.ne", "setne", ""),
    ("setp.lt", "setlt", ""),
    ("setp.le", "setle", ""),
    ("setp.gt", "setgt", ""),
    ("setp.ge", "setge", ""),
    ("setp.lo", "setltu", ""),
    ("setp.ls", "setleu", ""),
    ("setp.hi", "setgtu", ""),
    ("setp.hs", "setgeu", ""),
    ("setp", "seteq", ", `setlt` and their kin"),
    ("selp", "sel", ", the predicate first: `sel.f32 d, p, a, b`"),
    ("ld.global", "ldg", ", of an element: `ldg.f32 r0, x[r1]`"),
    ("st.global", "stg", ", of an element: `stg.f32 x[r1], r0`"),
    ("ld.shared", "lds", ", of an element: `lds.f32 r0, s[r1]`"),
    ("st.shared", "sts", ", of an element: `sts.f32 s[r1], r0`"),
    ("ld.const", "ldc", ", of an element: `ldc.f32 r0, t[r1]`"),
    ("ld.param", "mov", ": a parameter is an operand as it stands"),
    ("mad", "mad", ", which keeps the lower half"),
    ("mul.lo", "mul", ", which keeps the lower half"),
    ("mul.hi", "mul_high", ""),
    ("mul.wide", "mul", ", behind a `cvt` of each factor"),
    ("fma", "fma", ", which rounds to the nearest"),
    ("add", "add", ", which rounds to the nearest and keeps denormals"),
    ("sub", "sub", ", which rounds to the nearest and keeps denormals"),
    ("mul", "mul", ", which rounds to the nearest and keeps denormals"),
    ("div", "div", ", which is correctly rounded"),
    (
        "cvt",
        "cvt",
        ", which truncates floats to integers; `floor`, `ceil` and `round` round first",
    ),
    (
        "bar",
        "bar",
        ", without operands: one barrier, of all lanes of the block",
    ),
    ("membar.cta", "fence_block", ""),
    ("membar.gl", "fence_device", ""),
    ("membar.sys", "fence_system", ""),
    ("popc", "count_ones", ""),
    ("clz", "leading_zeros", ""),
    ("brev", "reverse_bits", ""),
    ("ex2", "exp2", ""),
    ("lg2", "log2", ""),
    (
        "atom",
        "atom_add",
        " and its kin, of an element: `atom_add.u32 r0, x[r1], 1`",
    ),
];

/// What to write instead of PTX's name.
pub(super) fn hint(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let begins = |name: &str| {
        word.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    // The longest name: `setp.lt` before `setp`.
    let found = NAMES
        .iter()
        .filter(|(name, ..)| begins(name))
        .max_by_key(|(name, ..)| name.len());
    let (name, ours, more) = found?;
    // A wrong type behind a name that both have is not PTX's.
    let modifiers = [
        "lo", "hi", "wide", "rn", "rz", "rm", "rp", "ftz", "sat", "sync", "red", "arrive", "approx", "full",
        "rni", "rzi", "rmi", "rpi",
    ];
    let is_ptx = name != ours || word.split('.').skip(1).any(|part| modifiers.contains(&part));
    let is_typed = |part: &&str| part.starts_with(['s', 'b']) && part[1..].parse::<u8>().is_ok();
    let typed = word.split('.').any(|part| is_typed(&part));
    match (is_ptx, typed) {
        (true, _) => Some(format!("PTX's `{word}` is `{ours}` here{more}")),
        (false, true) => Some("PTX's types s32 and b32 are i32 and u32 here".into()),
        (false, false) => None,
    }
}
