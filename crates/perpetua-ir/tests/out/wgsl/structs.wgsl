struct tuple_f32_i32 {
    f0: f32,
    f1: i32,
}

struct Particle {
    pos: array<f32, 3>,
    mass: u32,
    kind: u32,
    alive: bool,
}

struct Args {
    grid: vec3<u32>,
    site_base: u32,
    p_len: u32,
    p_first: u32,
    v_len: u32,
    v_first: u32,
    b_len: u32,
    b_first: u32,
    start_word0: u32,
    start_word1: u32,
    start_word2: u32,
    start_word3: u32,
    flag: u32,
}

@group(0) @binding(0) var<storage, read_write> p: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> v: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> b: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> args: Args;
@group(0) @binding(4) var<storage, read_write> fault_record: array<atomic<u32>, 16>;

const WEIGHTS = array<u32, 4>(
    1056964608u, 1065353216u, 2139095040u, 2147483648u,
);

// The first lane that faults in a launch claims the record. The exchange may fail for no reason.
fn report_fault(site: u32, tid: vec3<u32>, bid: vec3<u32>, first: vec2<u32>, second: vec2<u32>) {
    loop {
        let r = atomicCompareExchangeWeak(&fault_record[0], 0u, 1u);
        if (r.exchanged) {
            break;
        }
        if (r.old_value != 0u) {
            return;
        }
    }
    atomicStore(&fault_record[2], bid.x);
    atomicStore(&fault_record[3], bid.y);
    atomicStore(&fault_record[4], bid.z);
    atomicStore(&fault_record[5], tid.x);
    atomicStore(&fault_record[6], tid.y);
    atomicStore(&fault_record[7], tid.z);
    atomicStore(&fault_record[8], first.x);
    atomicStore(&fault_record[9], first.y);
    atomicStore(&fault_record[10], second.x);
    atomicStore(&fault_record[11], second.y);
    atomicStore(&fault_record[1], site);
}

fn p_load_f32(at: u32) -> f32 {
    return bitcast<f32>(atomicLoad(&p[at >> 2u]));
}

fn p_load_f32_array_3(at: u32) -> array<f32, 3> {
    return array<f32, 3>(p_load_f32(at), p_load_f32(at + 4u), p_load_f32(at + 8u));
}

fn p_load_f16(at: u32) -> u32 {
    return (atomicLoad(&p[at >> 2u]) >> ((at & 3u) * 8u)) & 0xffffu;
}

fn p_load_u8(at: u32) -> u32 {
    return (atomicLoad(&p[at >> 2u]) >> ((at & 3u) * 8u)) & 0xffu;
}

fn p_load_bool(at: u32) -> bool {
    return ((atomicLoad(&p[at >> 2u]) >> ((at & 3u) * 8u)) & 0xffu) != 0u;
}

fn p_load_Particle(at: u32) -> Particle {
    return Particle(p_load_f32_array_3(at), p_load_f16(at + 12u), p_load_u8(at + 14u), p_load_bool(at + 15u));
}

fn b_load_u8(at: u32) -> u32 {
    return (atomicLoad(&b[at >> 2u]) >> ((at & 3u) * 8u)) & 0xffu;
}

fn b_store_u8(at: u32, value: u32) {
    let shift = (at & 3u) * 8u;
    let bits = value << shift;
    var old = atomicLoad(&b[at >> 2u]);
    loop {
        let r = atomicCompareExchangeWeak(&b[at >> 2u], old, (old & ~(0xffu << shift)) | bits);
        if (r.exchanged) {
            break;
        }
        old = r.old_value;
    }
}

fn p_store_words_Particle(at: u32, value: Particle) {
    atomicStore(&p[at >> 2u], bitcast<u32>(value.pos[0]));
    atomicStore(&p[(at >> 2u) + 1u], bitcast<u32>(value.pos[1]));
    atomicStore(&p[(at >> 2u) + 2u], bitcast<u32>(value.pos[2]));
    atomicStore(&p[(at >> 2u) + 3u], value.mass | (value.kind << 16u) | (u32(value.alive) << 24u));
}

fn p_store_u8(at: u32, value: u32) {
    let shift = (at & 3u) * 8u;
    let bits = value << shift;
    var old = atomicLoad(&p[at >> 2u]);
    loop {
        let r = atomicCompareExchangeWeak(&p[at >> 2u], old, (old & ~(0xffu << shift)) | bits);
        if (r.exchanged) {
            break;
        }
        old = r.old_value;
    }
}

fn f16_to_f32(x: u32) -> f32 {
    let t = x & 32767u;
    let t1 = t << 13u;
    let t2 = select(t1 + 939524096u, bitcast<u32>(f32(t) * 5.9604645e-8f), t < 1024u);
    let t3 = select(t2, t1 + 1879048192u, t >= 31744u) | ((x & 32768u) << 16u);
    return bitcast<f32>(t3);
}

fn weigh(p1: Particle, factor: f32) -> tuple_f32_i32 {
    let t = f16_to_f32(p1.mass) * factor * bitcast<f32>(WEIGHTS[p1.kind & 3u]);
    return tuple_f32_i32(t, i32(p1.kind));
}

@compute @workgroup_size(64, 1, 1)
fn structs(
    @builtin(local_invocation_id) tid: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = group.x + groups.x * (group.y + groups.y * group.z);
    if (number >= args.grid.x * args.grid.y * args.grid.z) {
        return;
    }
    let bid = vec3<u32>(number % args.grid.x, number / args.grid.x % args.grid.y, number / (args.grid.x * args.grid.y));
    if (tid.x >= args.p_len) {
        report_fault(args.site_base + 0u, tid, bid, vec2<u32>(tid.x, 0u), vec2<u32>(args.p_len, 0u));
        return;
    }
    let p_i = p_load_Particle((args.p_first + tid.x) * 16u);
    var acc = array<f32, 3>();
    var i = 0u;
    let t = weigh(p_i, 2.5f);
    for (; i < 3u; i += 1u) {
        acc[i] = p_load_f32((args.p_first + tid.x) * 16u + i * 4u) + t.f0;
    }
    if (tid.x >= args.v_len) {
        report_fault(args.site_base + 1u, tid, bid, vec2<u32>(tid.x, 0u), vec2<u32>(args.v_len, 0u));
        return;
    }
    let v_i = v[args.v_first + tid.x];
    var changed = v_i;
    changed.z = v_i.w + acc[1];
    v[args.v_first + tid.x] = changed;
    v[args.v_first + tid.x].x = v_i.w;
    var q = p_i;
    if (tid.x >= args.b_len) {
        report_fault(args.site_base + 2u, tid, bid, vec2<u32>(tid.x, 0u), vec2<u32>(args.b_len, 0u));
        return;
    }
    let t1 = (b_load_u8(args.b_first + tid.x) + 200u) & 0xffu;
    q.kind = t1;
    b_store_u8(args.b_first + tid.x, t1);
    q.alive = (args.flag & 0xffu) != 0u;
    p_store_words_Particle((args.p_first + tid.x) * 16u, q);
    let t2 = Particle(array<f32, 3>(bitcast<f32>(args.start_word0), bitcast<f32>(args.start_word1), bitcast<f32>(args.start_word2)), args.start_word3 & 0xffffu, (args.start_word3 >> 16u) & 0xffu, ((args.start_word3 >> 24u) & 0xffu) != 0u);
    p_store_u8((args.p_first + tid.x) * 16u + 14u, t2.kind);
}
