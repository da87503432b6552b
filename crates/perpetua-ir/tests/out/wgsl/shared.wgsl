struct Args {
    grid: vec3<u32>,
    site_base: u32,
    x_len_: u32,
    x_first_: u32,
    s_len_: u32,
    s_first_: u32,
    f_len_: u32,
    f_first_: u32,
    n_: u32,
    wide_: u32,
    dynamic_bytes: u32,
}

@group(0) @binding(0) var<storage, read_write> x_: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> s_: array<atomic<i32>>;
@group(0) @binding(2) var<storage, read_write> f_: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> args: Args;
@group(0) @binding(4) var<storage, read_write> fault_record: array<atomic<u32>, 16>;
var<workgroup> scratch_: array<u32, 256>;
var<workgroup> bins_: array<atomic<u32>, 16>;
var<workgroup> peak_: atomic<u32>;
// Whether this lane has faulted.
var<private> dead: bool;

// The number of the fault of this lane, from 1, and its operands.
var<private> fault_site: u32;
var<private> fault_first: vec2<u32>;
var<private> fault_second: vec2<u32>;

// A dead lane may come upon another fault: the first counts.
fn report_fault_(site: u32, first: vec2<u32>, second: vec2<u32>) {
    if (fault_site == 0u) {
        fault_site = site;
        fault_first = first;
        fault_second = second;
    }
}

fn min_f32_(x: f32, y: f32) -> f32 {
    let x_is_nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(x, y, x_is_nan || y < x);
}

fn max_f32_(x: f32, y: f32) -> f32 {
    let x_is_nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(x, y, x_is_nan || y > x);
}

fn f32_from_bits_(bits: u32) -> f32 {
    return bitcast<f32>(bits);
}

fn exclusive_max_f32_(value: f32, subgroup_lane: u32, subgroup_size: u32) -> f32 {
    let votes = subgroupBallot(true);
    var total = f32_from_bits_(0xff800000u);
    for (var source = 0u; source < subgroup_size; source += 1u) {
        let other = subgroupShuffle(value, source);
        let takes_part = ((votes[source >> 5u] >> (source & 31u)) & 1u) != 0u;
        if (takes_part && source < subgroup_lane) {
            total = max_f32_(total, other);
        }
    }
    return total;
}

fn lane_(tid: vec3<u32>, bid: vec3<u32>, subgroup_lane: u32, subgroup_size: u32) {
    var result_ = 0u;
    atomicStore(&bins_[0u], 0u);
    if (tid.x >= 256u) {
        dead = true;
        report_fault_(args.site_base + 1u, vec2<u32>(tid.x, 0u), vec2<u32>(256u, 0u));
    }
    if (!dead) {
        scratch_[tid.x] = 256u;
    }
    storageBarrier();
    workgroupBarrier();
    if (!dead) {
        if (args.n_ == 0u) {
            dead = true;
            report_fault_(args.site_base + 2u, vec2<u32>(tid.x, 0u), vec2<u32>());
        } else {
            result_ = tid.x / args.n_ + tid.x;
        }
    }
    var guarded_ = 0u;
    if (!dead) {
        guarded_ = atomicAdd(&bins_[0u], result_);
    }
    let guarded5_ = i32(guarded_);
    if (0u >= args.s_len_) {
        dead = true;
        report_fault_(args.site_base + 3u, vec2<u32>(0u, 0u), vec2<u32>(args.s_len_, 0u));
        return;
    }
    var guarded1_ = 0i;
    if (!dead) {
        guarded1_ = atomicMax(&s_[args.s_first_], guarded5_);
    }
    if (0u >= args.f_len_) {
        dead = true;
        report_fault_(args.site_base + 4u, vec2<u32>(0u, 0u), vec2<u32>(args.f_len_, 0u));
        return;
    }
    var guarded2_ = 0.0f;
    if (!dead) {
        let operand_ = f32(guarded5_);
        var old_ = atomicLoad(&f_[args.f_first_]);
        loop {
            let r_ = atomicCompareExchangeWeak(&f_[args.f_first_], old_, bitcast<u32>(min_f32_(bitcast<f32>(old_), operand_)));
            if (r_.exchanged) {
                break;
            }
            old_ = r_.old_value;
        }
        guarded2_ = bitcast<f32>(old_);
    }
    var guarded3_ = 0.0f;
    if (!dead) {
        let operand1_ = f32(guarded5_);
        var old1_ = atomicLoad(&peak_);
        loop {
            let r1_ = atomicCompareExchangeWeak(&peak_, old1_, bitcast<u32>(bitcast<f32>(old1_) + operand1_));
            if (r1_.exchanged) {
                break;
            }
            old1_ = r1_.old_value;
        }
        guarded3_ = bitcast<f32>(old1_);
    }
    if (0u >= args.x_len_) {
        dead = true;
        report_fault_(args.site_base + 5u, vec2<u32>(0u, 0u), vec2<u32>(args.x_len_, 0u));
        return;
    }
    var guarded4_ = 0u;
    if (!dead) {
        let expected_ = result_;
        var old2_ = expected_;
        loop {
            let r2_ = atomicCompareExchangeWeak(&x_[args.x_first_], expected_, args.n_);
            old2_ = r2_.old_value;
            if (r2_.exchanged || old2_ != expected_) {
                break;
            }
        }
        guarded4_ = old2_;
    }
    let total_ = subgroupAdd(guarded4_);
    let other_ = exclusive_max_f32_(guarded2_, subgroup_lane, subgroup_size);
    let other1_ = subgroupShuffle(total_, select(subgroup_lane, subgroup_lane + args.n_, args.n_ < subgroup_size - subgroup_lane));
    let votes_ = subgroupBallot(other_ < guarded3_);
    let votes1_ = array<u32, 4>(votes_.x, votes_.y, votes_.z, votes_.w);
    let t_ = other1_ + votes1_[1] + u32(extractBits(bitcast<i32>(args.wide_), 0u, 8u));
    storageBarrier();
    workgroupBarrier();
    if (dead) {
        return;
    }
    if (tid.x >= args.x_len_) {
        dead = true;
        report_fault_(args.site_base + 6u, vec2<u32>(tid.x, 0u), vec2<u32>(args.x_len_, 0u));
        return;
    }
    atomicStore(&x_[args.x_first_ + tid.x], t_);
}

@compute @workgroup_size(64, 1, 1)
fn shared_work_(
    @builtin(local_invocation_id) tid: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(subgroup_invocation_id) subgroup_lane: u32,
    @builtin(subgroup_size) subgroup_size: u32,
) {
    let number = group.x + groups.x * (group.y + groups.y * group.z);
    if (number >= args.grid.x * args.grid.y * args.grid.z) {
        return;
    }
    let bid = vec3<u32>(number % args.grid.x, number / args.grid.x % args.grid.y, number / (args.grid.x * args.grid.y));
    lane_(tid, bid, subgroup_lane, subgroup_size);
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
