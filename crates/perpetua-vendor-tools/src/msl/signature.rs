//! What a kernel's text says and the shim's compiler cannot judge: parameters with their attributes, address spaces
//! of pointers, threadgroup variables. Rules are those of the Metal Shading Language Specification, chapters 4
//! (address spaces) and 5 (function attributes and arguments).

use super::tokens::{Kind, Token, tokens};
use std::ops::Range;

/// How a compilation names the program in messages.
pub(crate) const PROGRAM_NAME: &str = "program.metal";
/// Metal's number of buffer slots.
const BUFFER_SLOTS: u32 = 31;
/// Metal's number of threadgroup memory slots.
const THREADGROUP_SLOTS: u32 = 31;

/// One parameter of a kernel, by what it is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// `[[buffer(n)]]`
    Buffer { slot: u32, writable: bool },
    /// `[[threadgroup(n)]]`
    Threadgroup { slot: u32 },
    /// A value that the launch provides: an index into [`BUILTINS`].
    Builtin(&'static Builtin),
}

/// A value that Metal provides to each lane.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Builtin {
    /// The attribute's name.
    pub(crate) attribute: &'static str,
    /// Whether it has up to three dimensions; else it is a scalar.
    dimensions: bool,
    /// The driver's expression for it.
    pub(crate) expression: &'static str,
}

const fn position(attribute: &'static str, expression: &'static str) -> Builtin {
    Builtin {
        attribute,
        dimensions: true,
        expression,
    }
}

const fn number(attribute: &'static str, expression: &'static str) -> Builtin {
    Builtin {
        attribute,
        dimensions: false,
        expression,
    }
}

const THREADS_PER_GROUP: &str = "perpetua::position(launch->threads_per_group)";

/// Every value that a compute kernel may ask for.
static BUILTINS: [Builtin; 14] = [
    position("thread_position_in_grid", "perpetua::in_grid(launch)"),
    position(
        "thread_position_in_threadgroup",
        "perpetua::position(launch->thread_in_group)",
    ),
    position(
        "threadgroup_position_in_grid",
        "perpetua::position(launch->group_in_grid)",
    ),
    position("threads_per_threadgroup", THREADS_PER_GROUP),
    position("dispatch_threads_per_threadgroup", THREADS_PER_GROUP),
    position(
        "threadgroups_per_grid",
        "perpetua::position(launch->groups_per_grid)",
    ),
    position(
        "threads_per_grid",
        "perpetua::product(launch->threads_per_group, launch->groups_per_grid)",
    ),
    number(
        "thread_index_in_threadgroup",
        "perpetua::scalar(perpetua::index_in_group(launch))",
    ),
    number("thread_index_in_simdgroup", "perpetua::scalar(launch->simd_lane)"),
    number("threads_per_simdgroup", "perpetua::scalar(launch->simd_width)"),
    number("thread_execution_width", "perpetua::scalar(launch->simd_width)"),
    number(
        "simdgroup_index_in_threadgroup",
        "perpetua::scalar(launch->simd_group)",
    ),
    number(
        "simdgroups_per_threadgroup",
        "perpetua::scalar((perpetua::threads(launch) + launch->simd_width - 1) / launch->simd_width)",
    ),
    number(
        "dispatch_simdgroups_per_threadgroup",
        "perpetua::scalar((perpetua::threads(launch) + launch->simd_width - 1) / launch->simd_width)",
    ),
];

/// A program as the compiler gets it, and the kernel's parameters in their order.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The source with `threadgroup` resolved, line for line.
    pub(crate) source: String,
    pub(crate) parameters: Vec<Parameter>,
}

/// Reads `kernel`'s signature and resolves `threadgroup`. An `Err` is a compiler-like message.
pub(crate) fn prepare(source: &str, kernel: &str) -> Result<Prepared, String> {
    let tokens = tokens(source);
    let kernels = kernels(&tokens)?;
    let Some(found) = kernels.iter().find(|found| found.name == kernel) else {
        let names: Vec<&str> = kernels.iter().map(|found| found.name).collect();
        return Err(format!(
            "{PROGRAM_NAME}: error: no kernel '{kernel}' (kernels: {})",
            names.join(", ")
        ));
    };
    let parameters = split_at_commas(&tokens[found.parameters.clone()])
        .into_iter()
        .map(parameter)
        .collect::<Result<Vec<_>, _>>()?;
    refuse_shared_slots(found, &parameters)?;
    let bodies: Vec<Range<usize>> = kernels.iter().map(|found| found.body.clone()).collect();
    Ok(Prepared {
        source: resolve_threadgroup(source, &tokens, &bodies)?,
        parameters,
    })
}

/// A kernel function; ranges count tokens.
#[derive(Debug)]
struct Kernel<'a> {
    name: &'a str,
    line: usize,
    parameters: Range<usize>,
    body: Range<usize>,
}

fn error<T>(line: usize, message: impl std::fmt::Display) -> Result<T, String> {
    Err(format!("{PROGRAM_NAME}:{line}: error: {message}"))
}

/// Every function marked `kernel` or `[[kernel, …]]` that has a body.
fn kernels<'a>(tokens: &[Token<'a>]) -> Result<Vec<Kernel<'a>>, String> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.is("kernel")) {
        let Some(open) = (at..tokens.len()).find(|&i| tokens[i].is_mark('(') && !in_attribute(tokens, i))
        else {
            return error(token.line, "'kernel' is not followed by a function");
        };
        let (Kind::Word(name), true) = (tokens[open - 1].kind, tokens[open - 2].is("void")) else {
            return error(token.line, "a kernel function must return void");
        };
        let Some(close) = closing(tokens, open) else {
            return error(
                token.line,
                format!("the parameters of kernel '{name}' have no end"),
            );
        };
        let Some(brace) = (close + 1..tokens.len()).find(|&i| tokens[i].is_mark('{')) else {
            return error(token.line, format!("kernel '{name}' has no body"));
        };
        let Some(end) = closing(tokens, brace) else {
            return error(token.line, format!("the body of kernel '{name}' has no end"));
        };
        found.push(Kernel {
            name,
            line: token.line,
            parameters: open + 1..close,
            body: brace..end,
        });
    }
    Ok(found)
}

/// Whether token `at` lies between `[[` and `]]`.
fn in_attribute(tokens: &[Token<'_>], at: usize) -> bool {
    let mut i = at;
    while i > 1 {
        i -= 1;
        if tokens[i].is_mark('[') && tokens[i - 1].is_mark('[') {
            return true;
        }
        if matches!(tokens[i].kind, Kind::Mark(']' | ';' | '{' | '}')) {
            return false;
        }
    }
    false
}

/// The token that closes the bracket at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn split_at_commas<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut depth = 0i32;
    let parts = tokens.split(|token| {
        match token.kind {
            Kind::Mark('(' | '[' | '{' | '<') => depth += 1,
            Kind::Mark(')' | ']' | '}' | '>') => depth -= 1,
            _ => {}
        }
        depth == 0 && token.is_mark(',')
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// Classifies one parameter by its attribute, and checks its type against that.
fn parameter(tokens: &[Token<'_>]) -> Result<Parameter, String> {
    let line = tokens[0].line;
    let text = || tokens.iter().map(spelling).collect::<Vec<_>>().join(" ");
    let Some(open) = tokens
        .windows(2)
        .position(|pair| pair[0].is_mark('[') && pair[1].is_mark('['))
    else {
        return error(
            line,
            format!("parameter '{}' has no attribute such as [[buffer(0)]]", text()),
        );
    };
    let (declaration, attribute) = tokens.split_at(open);
    let Some(Kind::Word(name)) = attribute.get(2).map(|token| token.kind) else {
        return error(line, format!("parameter '{}' has an empty attribute", text()));
    };
    let slot = || match attribute.get(4).map(|token| token.kind) {
        Some(Kind::Word(number)) => number.parse::<u32>().ok(),
        _ => None,
    };
    let has = |word: &str| declaration.iter().any(|token| token.is(word));
    let points = declaration
        .iter()
        .any(|token| matches!(token.kind, Kind::Mark('*' | '&')));
    match name {
        "buffer" => match slot() {
            Some(slot) if slot < BUFFER_SLOTS && points && (has("device") != has("constant")) => {
                Ok(Parameter::Buffer {
                    slot,
                    writable: has("device") && !has("const"),
                })
            }
            Some(slot) if slot < BUFFER_SLOTS => error(
                line,
                format!(
                    "buffer parameter '{}' must point into 'device' or 'constant' memory",
                    text()
                ),
            ),
            _ => error(
                line,
                format!("'{}' needs a buffer slot below {BUFFER_SLOTS}", text()),
            ),
        },
        "threadgroup" => match slot() {
            Some(slot) if slot < THREADGROUP_SLOTS && points && has("threadgroup") => {
                Ok(Parameter::Threadgroup { slot })
            }
            Some(slot) if slot < THREADGROUP_SLOTS => {
                error(line, format!("'{}' must point into 'threadgroup' memory", text()))
            }
            _ => error(
                line,
                format!("'{}' needs a threadgroup slot below {THREADGROUP_SLOTS}", text()),
            ),
        },
        other => builtin(other, declaration, line, &text()),
    }
}

fn builtin(name: &str, declaration: &[Token<'_>], line: usize, text: &str) -> Result<Parameter, String> {
    let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.attribute == name) else {
        return error(
            line,
            format!("[[{name}]] is no attribute of a kernel's parameter in '{text}'"),
        );
    };
    let scalars = ["uint", "ushort"];
    let vectors = ["uint2", "uint3", "ushort2", "ushort3"];
    let fits = declaration.iter().any(|token| {
        matches!(token.kind, Kind::Word(word)
            if scalars.contains(&word) || (builtin.dimensions && vectors.contains(&word)))
    });
    if fits {
        Ok(Parameter::Builtin(builtin))
    } else {
        error(line, format!("[[{name}]] cannot have the type of '{text}'"))
    }
}

fn spelling<'a>(token: &Token<'a>) -> std::borrow::Cow<'a, str> {
    match token.kind {
        Kind::Word(word) => word.into(),
        Kind::Mark(mark) => mark.to_string().into(),
    }
}

fn refuse_shared_slots(kernel: &Kernel<'_>, parameters: &[Parameter]) -> Result<(), String> {
    for (at, one) in parameters.iter().enumerate() {
        for other in &parameters[..at] {
            let shared = match (one, other) {
                (Parameter::Buffer { slot: a, .. }, Parameter::Buffer { slot: b, .. }) if a == b => {
                    Some(("buffer", a))
                }
                (Parameter::Threadgroup { slot: a }, Parameter::Threadgroup { slot: b }) if a == b => {
                    Some(("threadgroup", a))
                }
                _ => None,
            };
            if let Some((what, slot)) = shared {
                return error(
                    kernel.line,
                    format!("kernel '{}' has {what} slot {slot} twice", kernel.name),
                );
            }
        }
    }
    Ok(())
}

/// Replaces each `threadgroup`: in a variable's declaration by the storage that all lanes share, in a pointer's or
/// reference's type by nothing. The line structure stays.
fn resolve_threadgroup(
    source: &str,
    tokens: &[Token<'_>],
    bodies: &[Range<usize>],
) -> Result<String, String> {
    let mut resolved = String::with_capacity(source.len());
    let mut copied = 0;
    for (at, token) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is("threadgroup"))
    {
        if in_attribute(tokens, at) {
            continue;
        }
        let replacement = if declares_variable(&tokens[at + 1..]) {
            if !bodies.iter().any(|body| body.contains(&at)) {
                return error(
                    token.line,
                    "a threadgroup variable may be declared in a kernel function only",
                );
            }
            let statement = tokens[at..].iter().take_while(|token| !token.is_mark(';'));
            if statement.into_iter().any(|token| token.is_mark('=')) {
                return error(token.line, "a threadgroup variable cannot have an initializer");
            }
            "static __attribute__((section(\"perpetua_threadgroup\"))) "
        } else {
            ""
        };
        resolved.push_str(&source[copied..token.bytes.start]);
        resolved.push_str(replacement);
        copied = token.bytes.end;
    }
    resolved.push_str(&source[copied..]);
    Ok(resolved)
}

/// Whether what follows `threadgroup` declares a variable: no `*` or `&` comes before the declaration's first
/// `[`, `;`, `=`, `,` or closing bracket outside template arguments.
fn declares_variable(after: &[Token<'_>]) -> bool {
    let mut templates = 0i32;
    for token in after {
        match token.kind {
            Kind::Mark('<') => templates += 1,
            Kind::Mark('>') if templates > 0 => templates -= 1,
            Kind::Mark('*' | '&' | '>') if templates == 0 => return false,
            Kind::Mark('[' | ';' | '=' | ',' | ')') if templates == 0 => return !token.is_mark(')'),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "#include <metal_stdlib>
using namespace metal;
void helper(threadgroup float* t, threadgroup float (&u)[4]) { t[0] = u[0]; }
[[max_total_threads_per_threadgroup(64)]]
kernel void k(device const float* a [[buffer(0)]], device uint* b [[buffer(2)]], constant uint& n [[buffer(1)]],
              threadgroup uchar* dyn [[threadgroup(0)]], uint3 tid [[thread_position_in_threadgroup]],
              uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float tile[64]; threadgroup array<float, 4> more; threadgroup atomic_uint count;
    threadgroup float* p = (threadgroup float*)dyn;
}
";

    #[test]
    fn parameters_are_read_in_order() {
        let prepared = prepare(KERNEL, "k").unwrap();
        let names: Vec<&str> = prepared
            .parameters
            .iter()
            .filter_map(|parameter| match parameter {
                Parameter::Builtin(builtin) => Some(builtin.attribute),
                _ => None,
            })
            .collect();
        assert_eq!(
            names,
            ["thread_position_in_threadgroup", "thread_index_in_simdgroup"]
        );
        assert_eq!(
            prepared.parameters[..4],
            [
                Parameter::Buffer {
                    slot: 0,
                    writable: false
                },
                Parameter::Buffer {
                    slot: 2,
                    writable: true
                },
                Parameter::Buffer {
                    slot: 1,
                    writable: false
                },
                Parameter::Threadgroup { slot: 0 },
            ]
        );
    }

    #[test]
    fn threadgroup_is_storage_in_declarations_only() {
        let source = prepare(KERNEL, "k").unwrap().source;
        assert_eq!(source.matches("section(\"perpetua_threadgroup\")").count(), 3);
        assert_eq!(source.matches("threadgroup ").count(), 0, "{source}");
        assert!(
            source.contains("[[threadgroup(0)]]") && source.contains("( float*)dyn"),
            "{source}"
        );
        assert_eq!(source.lines().count(), KERNEL.lines().count());
    }

    #[test]
    fn what_metal_refuses_is_refused() {
        let check = |from: &str, to: &str, expect: &str| {
            assert!(KERNEL.contains(from), "{from}");
            let message = prepare(&KERNEL.replace(from, to), "k").unwrap_err();
            assert!(message.contains(expect), "{message}");
        };
        check(
            "device uint* b",
            "uint* b",
            "program.metal:5: error: buffer parameter 'uint * b",
        );
        check("[[buffer(2)]]", "[[buffer(31)]]", "needs a buffer slot below 31");
        check("[[buffer(2)]]", "[[buffer(0)]]", "has buffer slot 0 twice");
        check("[[buffer(2)]]", "", "has no attribute");
        check("uint lane [[", "uint3 lane [[", "cannot have the type");
        check(
            "thread_index_in_simdgroup",
            "thread_index_in_warp",
            "is no attribute",
        );
        check(
            "threadgroup atomic_uint count",
            "threadgroup uint count = 0",
            "cannot have an initializer",
        );
        check(
            "{ t[0] = u[0]; }",
            "{ threadgroup float x; }",
            "in a kernel function only",
        );
        check("kernel void k", "kernel uint k", "must return void");
        check(
            "kernel void k",
            "kernel void other",
            "no kernel 'k' (kernels: other)",
        );
    }
}
