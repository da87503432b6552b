struct Args {
    grid: vec3<u32>,
    site_base: u32,
    result_len_: u32,
    result_first_: u32,
    input0_len_: u32,
    input0_first_: u32,
    size0_: u32,
    number0_: f32,
}

@group(0) @binding(0) var<storage, read_write> result_: array<f32>;
@group(0) @binding(1) var<storage, read_write> input0_: array<f32>;
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(3) var<storage, read_write> fault_record: array<atomic<u32>, 16>;

// The number of the fault of this lane, from 1, and its operands.
var<private> fault_site: u32;
var<private> fault_first: vec2<u32>;
var<private> fault_second: vec2<u32>;

fn f32_to_i32_(x: f32) -> i32 {
    if ((bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u) {
        return 0i;
    }
    if (x >= 2147483648.0f) {
        return 2147483647i;
    }
    if (x < -2147483648.0f) {
        return i32(-2147483648);
    }
    return i32(x);
}

fn f32_from_bits_(bits: u32) -> f32 {
    return bitcast<f32>(bits);
}

// A dead lane may come upon another fault: the first counts.
fn report_fault_(site: u32, first: vec2<u32>, second: vec2<u32>) {
    if (fault_site == 0u) {
        fault_site = site;
        fault_first = first;
        fault_second = second;
    }
}

fn quotient_(x: f32, y: f32) -> f32 {
    let k = select(1f, 0.25f, abs(y) > 8.507059e37f);
    return (x * k) / (y * k);
}

fn perpetua_exp_(x_: f32) -> f32 {
    let t_ = select(x_, -104.0f, x_ < -104.0f);
    let t1_ = select(t_, 89.0f, 89.0f < t_);
    let t2_ = round(t1_ * 1.442695f);
    let t3_ = f32_to_i32_(t2_);
    let t4_ = fma(-t2_, 1.4286068e-6f, fma(-t2_, 0.69314575f, t1_));
    let t5_ = fma(fma(fma(0.00019914102f, t4_, 0.001394208f), t4_, 0.008333273f), t4_, 0.04166634f);
    let t6_ = fma(t4_ * t4_, fma(fma(t5_, t4_, 0.16666667f), t4_, 0.5f), t4_) + 1.0f;
    let t7_ = t3_ >> 1u;
    let t8_ = t6_ * bitcast<f32>((t7_ + 127i) << 23u) * bitcast<f32>((t3_ - t7_ + 127i) << 23u);
    let t9_ = select(t8_, f32_from_bits_(0x7fc00000u), 2139095040i < (bitcast<i32>(x_) & 2147483647i));
    return t9_;
}

fn lane_(tid: vec3<u32>, bid: vec3<u32>) {
    let idx_ = bid.x * 256u + tid.x;
    if (idx_ < args.size0_) {
        if (idx_ >= args.input0_len_) {
            report_fault_(args.site_base + 1u, vec2<u32>(idx_, 0u), vec2<u32>(args.input0_len_, 0u));
            return;
        }
        let t_ = perpetua_exp_(-input0_[args.input0_first_ + idx_]) + args.number0_;
        if (idx_ >= args.result_len_) {
            report_fault_(args.site_base + 2u, vec2<u32>(idx_, 0u), vec2<u32>(args.result_len_, 0u));
            return;
        }
        result_[args.result_first_ + idx_] = quotient_(1.0f, t_);
    }
}

@compute @workgroup_size(256, 1, 1)
fn elements_neg_exp_add_recip_(
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
