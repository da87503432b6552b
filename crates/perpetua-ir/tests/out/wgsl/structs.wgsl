struct tuple_f32_i32_ {
    f0_: f32,
    f1_: i32,
}

struct Particle_ {
    pos_: array<f32, 3>,
    mass_: u32,
    kind_: u32,
    alive_: bool,
}

struct Args {
    grid: vec3<u32>,
    site_base: u32,
    p_len_: u32,
    p_first_: u32,
    v_len_: u32,
    v_first_: u32,
    b_len_: u32,
    b_first_: u32,
    start_word0_: u32,
    start_word1_: u32,
    start_word2_: u32,
    start_word3_: u32,
    flag_: u32,
}

@group(0) @binding(0) var<storage, read_write> p_: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> v_: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> b_: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> args: Args;
@group(0) @binding(4) var<storage, read_write> fault_record: array<atomic<u32>, 16>;

// The number of the fault of this lane, from 1, and its operands.
var<private> fault_site: u32;
var<private> fault_first: vec2<u32>;
var<private> fault_second: vec2<u32>;

const WEIGHTS_ = array<u32, 4>(
    1056964608u, 1065353216u, 2139095040u, 2147483648u,
);

// A dead lane may come upon another fault: the first counts.
fn report_fault_(site: u32, first: vec2<u32>, second: vec2<u32>) {
    if (fault_site == 0u) {
        fault_site = site;
        fault_first = first;
        fault_second = second;
    }
}

fn p_load_f32_(at: u32) -> f32 {
    return bitcast<f32>(atomicLoad(&p_[at >> 2u]));
}

fn p_load_f32_array_3_(at: u32) -> array<f32, 3> {
    return array<f32, 3>(p_load_f32_(at), p_load_f32_(at + 4u), p_load_f32_(at + 8u));
}

fn p_load_f16_(at: u32) -> u32 {
    return (atomicLoad(&p_[at >> 2u]) >> ((at & 3u) * 8u)) & 0xffffu;
}

fn p_load_u8_(at: u32) -> u32 {
    return (atomicLoad(&p_[at >> 2u]) >> ((at & 3u) * 8u)) & 0xffu;
}

fn p_load_bool_(at: u32) -> bool {
    return ((atomicLoad(&p_[at >> 2u]) >> ((at & 3u) * 8u)) & 0xffu) != 0u;
}

fn p_load_Particle_(at: u32) -> Particle_ {
    return Particle_(p_load_f32_array_3_(at), p_load_f16_(at + 12u), p_load_u8_(at + 14u), p_load_bool_(at + 15u));
}

fn b_load_u8_(at: u32) -> u32 {
    return (atomicLoad(&b_[at >> 2u]) >> ((at & 3u) * 8u)) & 0xffu;
}

fn b_store_u8_(at: u32, value: u32) {
    let shift = (at & 3u) * 8u;
    let bits = value << shift;
    var old = atomicLoad(&b_[at >> 2u]);
    loop {
        let r = atomicCompareExchangeWeak(&b_[at >> 2u], old, (old & ~(0xffu << shift)) | bits);
        if (r.exchanged) {
            break;
        }
        old = r.old_value;
    }
}

fn p_store_words_Particle_(at: u32, value: Particle_) {
    atomicStore(&p_[at >> 2u], bitcast<u32>(value.pos_[0]));
    atomicStore(&p_[(at >> 2u) + 1u], bitcast<u32>(value.pos_[1]));
    atomicStore(&p_[(at >> 2u) + 2u], bitcast<u32>(value.pos_[2]));
    atomicStore(&p_[(at >> 2u) + 3u], value.mass_ | (value.kind_ << 16u) | (u32(value.alive_) << 24u));
}

fn p_store_u8_(at: u32, value: u32) {
    let shift = (at & 3u) * 8u;
    let bits = value << shift;
    var old = atomicLoad(&p_[at >> 2u]);
    loop {
        let r = atomicCompareExchangeWeak(&p_[at >> 2u], old, (old & ~(0xffu << shift)) | bits);
        if (r.exchanged) {
            break;
        }
        old = r.old_value;
    }
}

fn f16_to_f32_(x_: u32) -> f32 {
    let t_ = x_ & 32767u;
    let t1_ = t_ << 13u;
    let t2_ = select(t1_ + 939524096u, bitcast<u32>(f32(t_) * 5.9604645e-8f), t_ < 1024u);
    let t3_ = select(t2_, t1_ + 1879048192u, t_ >= 31744u) | ((x_ & 32768u) << 16u);
    return bitcast<f32>(t3_);
}

fn weigh_(p1_: Particle_, factor_: f32) -> tuple_f32_i32_ {
    let t_ = f16_to_f32_(p1_.mass_) * factor_ * bitcast<f32>(WEIGHTS_[p1_.kind_ & 3u]);
    return tuple_f32_i32_(t_, i32(p1_.kind_));
}

fn lane_(tid: vec3<u32>, bid: vec3<u32>) {
    if (tid.x >= args.p_len_) {
        report_fault_(args.site_base + 1u, vec2<u32>(tid.x, 0u), vec2<u32>(args.p_len_, 0u));
        return;
    }
    let p_i_ = p_load_Particle_((args.p_first_ + tid.x) * 16u);
    var acc_ = array<f32, 3>();
    var i_ = 0u;
    let t_ = weigh_(p_i_, 2.5f);
    for (; i_ < 3u; i_ += 1u) {
        acc_[i_] = p_load_f32_((args.p_first_ + tid.x) * 16u + i_ * 4u) + t_.f0_;
    }
    if (tid.x >= args.v_len_) {
        report_fault_(args.site_base + 2u, vec2<u32>(tid.x, 0u), vec2<u32>(args.v_len_, 0u));
        return;
    }
    let v_i_ = v_[args.v_first_ + tid.x];
    var changed_ = v_i_;
    changed_.z = v_i_.w + acc_[1];
    v_[args.v_first_ + tid.x] = changed_;
    v_[args.v_first_ + tid.x].x = v_i_.w;
    var q_ = p_i_;
    if (tid.x >= args.b_len_) {
        report_fault_(args.site_base + 3u, vec2<u32>(tid.x, 0u), vec2<u32>(args.b_len_, 0u));
        return;
    }
    let t1_ = (b_load_u8_(args.b_first_ + tid.x) + 200u) & 0xffu;
    q_.kind_ = t1_;
    b_store_u8_(args.b_first_ + tid.x, t1_);
    q_.alive_ = (args.flag_ & 0xffu) != 0u;
    p_store_words_Particle_((args.p_first_ + tid.x) * 16u, q_);
    let t2_ = Particle_(array<f32, 3>(bitcast<f32>(args.start_word0_), bitcast<f32>(args.start_word1_), bitcast<f32>(args.start_word2_)), args.start_word3_ & 0xffffu, (args.start_word3_ >> 16u) & 0xffu, ((args.start_word3_ >> 24u) & 0xffu) != 0u);
    p_store_u8_((args.p_first_ + tid.x) * 16u + 14u, t2_.kind_);
}

@compute @workgroup_size(64, 1, 1)
fn structs_(
    @builtin(local_invocation_id) tid: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = group.x + groups.x * (group.y + groups.y * group.z);
    if (number >= args.grid.x * args.grid.y * args.grid.z) {
        return;
    }
    let bid = vec3<u32>(number % args.grid.x, number / args.grid.x % args.grid.y, number / (args.grid.x * args.grid.y));
    lane_(tid, bid);
    // The first lane that faults in a launch claims the record.
    if (fault_site != 0u && atomicExchange(&fault_record[0], 1u) == 0u) {
        atomicStore(&fault_record[2], bid.x);
        atomicStore(&fault_record[3], bid.y);
        atomicStore(&fault_record[4], bid.z);
        atomicStore(&fault_record[5], tid.x);
        atomicStore(&fault_record[6], tid.y);
        atomicStore(&fault_record[7], tid.z);
        atomicStore(&fault_record[8], fault_first.x);
        atomicStore(&fault_record[9], fault_first.y);
        atomicStore(&fault_record[10], fault_second.x);
        atomicStore(&fault_record[11], fault_second.y);
        atomicStore(&fault_record[1], fault_site - 1u);
    }
}
