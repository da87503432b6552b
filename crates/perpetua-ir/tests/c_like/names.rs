//! Things of the user's called what else stands in a text: words of the language, functions of its library, variables of
//! the renderer. Every word is tried as the name of everything that has one.

use std::collections::{BTreeMap, BTreeSet};

use crate::random::make;
use crate::{kernels, metal, naga_and_tint, nvrtc, verified, wgsl_targets};
use perpetua_cpu::testing::Config;
use perpetua_ir::back::{CudaAbi, Source, Target, render};
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp;
use perpetua_vendor_tools::ptxas;

/// WGSL's keywords, reserved words, predeclared types, functions and enumerants.
const WGSL: &str = "
alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if
let loop override requires return struct switch true var while NULL Self abstract active alignas alignof as asm
asm_fragment async attribute auto await become cast catch class co_await co_return co_yield coherent
column_major common compile compile_fragment concept const_cast consteval constexpr constinit crate debugger
decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external
fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements import inline
instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable namespace new
nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of operator package
packoffset partial pass patch pixelfragment precise precision premerge priv protected pub public readonly ref
regardless register reinterpret_cast require resource restrict self set shared sizeof smooth snorm static
static_assert static_cast std subroutine super target template this thread_local throw trait try type typedef
typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with
writeonly yield array atomic bool f16 f32 f64 i32 i64 u32 u64 ptr vec2 vec3 vec4 mat2x2 mat2x3 mat2x4 mat3x2
mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 sampler abs acos acosh all any arrayLength asin asinh atan atan2 atanh
atomicAdd atomicAnd atomicCompareExchangeWeak atomicExchange atomicLoad atomicMax atomicMin atomicOr
atomicStore atomicSub atomicXor bitcast ceil clamp cos cosh countLeadingZeros countOneBits countTrailingZeros
cross degrees determinant distance dot exp exp2 extractBits faceForward firstLeadingBit firstTrailingBit floor
fma fract frexp insertBits inverseSqrt ldexp length log log2 max min mix modf normalize pack2x16float pow
quantizeToF16 radians reflect refract reverseBits round saturate select sign sin sinh smoothstep sqrt step
storageBarrier subgroupAdd subgroupAll subgroupAnd subgroupAny subgroupBallot subgroupBroadcastFirst
subgroupExclusiveAdd subgroupExclusiveMul subgroupInclusiveAdd subgroupInclusiveMul subgroupMax subgroupMin
subgroupMul subgroupOr subgroupShuffle subgroupXor tan tanh transpose trunc unpack2x16float workgroupBarrier
vec2f vec3f vec4f vec2i vec3i vec4i vec2u vec3u vec4u tid bid group groups number subgroup_lane subgroup_size
access_mode address_space read write read_write function private workgroup uniform storage compute vertex fragment
position local_invocation_id local_invocation_index workgroup_id num_workgroups global_invocation_id builtin binding
subgroup_invocation_id workgroup_size vec2h vec3h vec4h mat2x2f mat4x4f texture_2d sampler_comparison rgba8unorm
";

/// Keywords of C++, and what its preprocessor and library call theirs.
const CPP: &str = "
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
register reinterpret_cast requires return short signed sizeof static static_assert static_cast std struct
switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void
volatile wchar_t while xor xor_eq NULL INFINITY NAN assert size_t ptrdiff_t printf
";

/// Words of Metal and its library.
const METAL: &str = "
kernel device constant thread threadgroup threadgroup_imageblock vertex fragment metal half bfloat uchar ushort
uint ulong int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t vec array atomic atomic_int
atomic_uint atomic_float atomic_bool atomic_ulong as_type precise fast sampler texture buffer access matrix
simd quad abs absdiff acos acosh addsat all any asin asinh atan atan2 atanh ceil clamp clz copysign cos cosh
cospi cross ctz distance divide dot exp exp10 exp2 extract_bits fabs fdim floor fma fmax fmin fmod fract frexp
hadd ilogb insert_bits isfinite isinf isnan isnormal ldexp length log log10 log2 mad24 madhi madsat max max3
median3 min min3 mix modf mul24 mulhi nextafter normalize popcount pow powr reverse_bits rhadd rint rotate
round rsqrt saturate select sign signbit sin sincos sinh sinpi smoothstep sqrt step subsat tan tanh tanpi trunc
args tid bid bdim gdim simd_lane simd_size mem_flags memory_order thread_scope simd_vote simd_sum simd_product
simd_and simd_or simd_xor simd_min simd_max simd_any simd_all simd_ballot simd_shuffle simd_broadcast_first
threadgroup_barrier r32float
uint2 uint3 uint4 int2 int3 int4 float2 float3 float4 ushort4 uchar4 bool2 half4 packed_float3 vote_t
memory_order_relaxed memory_order_acquire memory_order_seq_cst memory_scope_device thread_scope_device
atomic_fetch_add_explicit atomic_load_explicit atomic_store_explicit atomic_exchange_explicit
atomic_compare_exchange_weak_explicit atomic_thread_fence mem_device mem_threadgroup mem_none simdgroup_barrier
thread_position_in_grid thread_position_in_threadgroup stage_in user fp contract METAL
";

/// Words of CUDA and its library.
const CUDA: &str = "
threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 cudaError_t clock64 atomicAdd atomicCAS atomicCAS_system
fmaxf fminf fmaf sqrtf rintf isnan signbit memcpy memset malloc free printf sincospi sincospif cyl_bessel_i0 norm3d
rsqrtf erfcinv lgamma j0 y1 nan abs min max umin umax llmin ullmax saturate clock trap assert float4 make_float4
__syncthreads __shfl_sync __ldg __device__ __global__ __shared__ __constant__ __restrict__ __launch_bounds__
";

/// Names that differ in underscores and numbers alone, or start as those of implementations do.
const NEIGHBOURS: &str = "a a_ a1 a1_ a_1 a__1 _a __a a11 a1_1 a_len a_first a_bytes a_i __ ___ _1 v v1 v_";

/// How many things of each kind a kernel has. Metal has no more buffers.
const COUNT: usize = 24;

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && *word != "_")
}

/// Words of a text that are nobody's name where names start with a letter and end in an underscore.
fn own(text: &str) -> BTreeSet<&str> {
    identifiers(text)
        .filter(|word| word.starts_with('_') || !word.ends_with('_'))
        .collect()
}

/// A kernel with so many things of every kind, each used. `name` gives the name of thing `n`; what shares a namespace in the
/// IR is counted through, the rest has the same names. `lengths`: whether it asks for those of its buffers.
fn everything(name: &dyn Fn(usize) -> String, lengths: bool) -> Result<Kernel, TypeError> {
    let mut k = KernelBuilder::new(name(COUNT));
    k.kernel_mut().pointer_width = 32;
    let order = MemOrder::Relaxed;
    let [device, group] = [Scope::Device, Scope::Block].map(|scope| Sync { order, scope });
    let whole = |base| Place {
        base,
        path: Vec::new(),
    };
    let i = k.builtin(Builtin::ThreadIdx(Axis::X));
    let zero = k.u32(0);
    let dynamic = k.dynamic_shared(name(4 * COUNT), Type::U32);
    let first = k.load(Place::element(dynamic, zero))?;
    let total = k.local(name(COUNT), Type::U32);
    k.store(Place::local(total), first)?;
    for n in 0..COUNT {
        let [first, second] = [name(n), format!("{}_", name(n))];
        let third = name(COUNT + n);
        let third = if third == second {
            format!("{third}_")
        } else {
            third
        };
        let fields = vec![
            (first, Type::U32),
            (second, Scalar::U16.into()),
            (third, Type::array(Type::F32, 2)),
        ];
        let pair = Type::Struct(StructType::repr_c(type_name(name(n)), fields, 1).into());
        let parameters = vec![(name(n), Type::U32), (name(n + 1), pair.clone())];
        let function = k.function(name(n), parameters, Some(Type::U32), |k| {
            let local = Place::local(k.local(name(n), Type::U32));
            k.store(local.clone(), Value(0))?;
            let narrow = k.op(Op::Extract(Value(1), 1))?;
            let narrow = k.cast(Scalar::U32, narrow)?;
            let test = k.binary(BinaryOp::Lt, narrow, Value(0))?;
            k.if_(test, |k| {
                let divided = k.binary(BinaryOp::Div, Value(0), narrow)?;
                k.store(local.clone(), divided)
            })?;
            let v = k.load(local)?;
            k.push(Inst::Return(Some(v)));
            Ok::<(), TypeError>(())
        })?;

        let (element, shared) = match n % 3 {
            0 => (Scalar::U16.into(), Scalar::U16.into()),
            1 => (Type::U32, Type::U32),
            _ => (pair.clone(), pair.clone()),
        };
        let buffer = k.buffer(name(n), element, Access::ReadWrite);
        let value = match n % 3 {
            0 => k.param(name(COUNT + n), Scalar::I8.into()),
            1 => k.param(name(COUNT + n), Type::U32),
            _ => k.param(name(COUNT + n), pair.clone()),
        };
        let shared = k.shared(name(2 * COUNT + n), shared);
        k.kernel_mut().constants.push(ConstTable {
            name: name(3 * COUNT + n),
            element: Scalar::U32,
            data: vec![1, 2, 3],
        });
        let entry = k.load(Place::element(Base::Constant(n as u32), i))?;

        let taken = match n % 3 {
            0 => {
                let v = k.load(Place::element(buffer, i))?;
                k.store(whole(shared), v)?;
                k.store(Place::element(buffer, i), v)?;
                k.op(Op::Zero(pair.clone()))?
            }
            1 => {
                let old = k.op(Op::Atomic(
                    AtomicOp::Add,
                    Place::element(buffer, i),
                    entry,
                    device,
                ))?;
                k.op(Op::Atomic(AtomicOp::Max, whole(shared), old, group))?;
                k.op(Op::Zero(pair.clone()))?
            }
            _ => {
                k.store(whole(shared), value)?;
                k.store(Place::element(buffer, i), value)?;
                k.load(Place::element(buffer, i))?
            }
        };
        let local = Place::local(k.local(name(n), pair.clone()));
        k.store(local.clone(), taken)?;
        k.store(local.clone().step(Step::Field(0)), entry)?;
        let changed = k.load(local)?;
        let mut parts = vec![entry, k.call(function, vec![entry, changed])?.unwrap()];
        if n % 3 < 2 {
            parts.push(k.cast(Scalar::U32, value)?);
        }
        if lengths {
            parts.push(k.op(Op::Len(buffer, Scalar::U32))?);
        }
        for part in parts {
            let sum = k.load(Place::local(total))?;
            let sum = k.binary(BinaryOp::Add, sum, part)?;
            k.store(Place::local(total), sum)?;
        }
    }
    let sum = k.load(Place::local(total))?;
    k.store(Place::element(dynamic, zero), sum)?;
    Ok(k.finish())
}

/// `word` as a struct's name, which must not be that of a type of the IR.
fn type_name(word: String) -> String {
    let vectors = Scalar::ALL
        .into_iter()
        .flat_map(|s| (2..=4).map(move |n| format!("{s}x{n}")));
    let mut types = Scalar::ALL.into_iter().map(|s| s.to_string()).chain(vectors);
    match types.any(|ty| ty == word) {
        true => format!("{word}_type"),
        false => word,
    }
}

/// A target, a check of its text by the vendor's tool, where its entry points begin, and words of its language.
struct Subject {
    target: Target,
    check: fn(&str, &str, &str),
    entry: &'static str,
    words: &'static [&'static str],
    /// Whether names end in an underscore.
    marked: bool,
    lengths: bool,
}

fn subjects() -> [Subject; 5] {
    let [_, naga] = wgsl_targets();
    let nvcc: fn(&str, &str, &str) = |subject, _, text| nvrtc(subject, text, &["sm_75"]);
    [
        Subject {
            target: naga,
            check: |subject, _, text| naga_and_tint(subject, text),
            entry: "@compute",
            words: &[WGSL],
            marked: true,
            lengths: true,
        },
        Subject {
            target: Target::Msl,
            check: |subject, entry, text| drop(metal(subject, entry, text)),
            entry: "kernel void",
            words: &[CPP, METAL],
            marked: true,
            lengths: true,
        },
        Subject {
            target: Target::CudaC {
                abi: CudaAbi::Checked,
            },
            check: nvcc,
            entry: "extern \"C\"",
            words: &[CPP, CUDA],
            marked: true,
            lengths: true,
        },
        Subject {
            target: Target::CudaC { abi: CudaAbi::Plain },
            check: nvcc,
            entry: "extern \"C\"",
            // Whose names stay is clear of C++'s words and of what texts call, but not of all of CUDA's library.
            words: &[CPP],
            marked: false,
            lengths: false,
        },
        Subject {
            target: Target::Ptx { sm: 75.into() },
            check: |subject, _, text| {
                ptxas(text, "sm_75")
                    .required(subject)
                    .unwrap_or_else(|e| panic!("{e}\n{text}"));
            },
            entry: ".visible",
            words: &[CUDA],
            marked: false,
            lengths: true,
        },
    ]
}

impl Subject {
    fn source(&self, name: &dyn Fn(usize) -> String) -> Source {
        let kernel = everything(name, self.lengths).unwrap();
        render(&verified(kernel), &self.target).unwrap_or_else(|e| panic!("{e}"))
    }

    /// What may stand in a text: the language's words, and all that is found in texts of kernels that use much.
    fn words(&self) -> Vec<String> {
        let config = Config {
            faults: true,
            ..Config::full()
        };
        let generated = (0..GENERATED).map(|seed| make(&config, seed).kernel);
        let shown = kernels().into_iter().map(|(_, kernel)| kernel);
        let texts = shown.chain(generated).filter_map(|kernel| {
            // What a target lacks, it has no words for.
            render(&verified(kernel), &self.target)
                .ok()
                .map(|source| source.text)
        });
        let texts: Vec<String> = texts.chain([self.source(&neutral).text]).collect();
        let listed = self.words.iter().flat_map(|words| words.split_whitespace());
        let mut seen = BTreeSet::new();
        let mut stems: BTreeMap<&str, u32> = BTreeMap::new();
        // Of words that differ in a number alone, the first few do for all.
        let found = texts.iter().flat_map(|text| identifiers(text)).filter(|word| {
            let stem = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
            let number = stems.entry(stem).or_default();
            *number += u32::from(seen.insert(*word));
            *number <= 3
        });
        let found: Vec<&str> = found.collect();
        let mut seen = BTreeSet::new();
        NEIGHBOURS
            .split_whitespace()
            .chain(listed)
            .chain(found)
            .filter(|word| seen.insert(*word))
            .map(str::to_owned)
            .collect()
    }

    fn takes_every_name(&self) {
        let words = self.words();
        let target = self.target.name();
        let plain = self.source(&neutral).text;
        for first in (0..words.len()).step_by(COUNT) {
            let source = self.source(&|n| words[(first + n) % words.len()].clone());
            let subject = format!("{target}, `{}` and so on", words[first]);
            if self.marked {
                // The target's own words are the same whatever the things are called: all names are among the others.
                assert_eq!(own(&source.text), own(&plain), "{subject}");
            }
            (self.check)(&subject, &source.entry, &source.text);
        }

        let mut entries = BTreeSet::new();
        let mut text = String::new();
        for word in &words {
            let kernel = KernelBuilder::new(word).finish();
            let source = render(&verified(kernel), &self.target).unwrap();
            let (head, entry) = source.text.split_once(self.entry).unwrap();
            if text.is_empty() {
                text.push_str(head);
            }
            // Names that differ in underscores alone may give one entry point, of different modules.
            if entries.insert(source.entry) {
                text.push_str(&format!("{}{entry}\n", self.entry));
            }
        }
        (self.check)(
            &format!("{target}, entry points"),
            entries.first().unwrap(),
            &text,
        );
        eprintln!("{target}: {} words", words.len());
    }
}

/// Names that stand in no text.
fn neutral(n: usize) -> String {
    format!("q{n}")
}

/// Generated kernels whose texts give words.
const GENERATED: u64 = 6;

#[test]
fn wgsl_takes_every_name() {
    subjects()[0].takes_every_name();
}

#[test]
fn msl_takes_every_name() {
    subjects()[1].takes_every_name();
}

#[test]
fn cuda_c_takes_every_name() {
    subjects()[2].takes_every_name();
}

#[test]
fn plain_cuda_c_takes_every_name() {
    subjects()[3].takes_every_name();
}

#[test]
fn ptx_takes_every_name() {
    subjects()[4].takes_every_name();
}
