struct Args {
    grid: vec3<u32>,
    site_base: u32,
    x_len: u32,
    x_first: u32,
    s_len: u32,
    s_first: u32,
    f_len: u32,
    f_first: u32,
    n: u32,
    wide: u32,
    dynamic_bytes: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> s: array<atomic<i32>>;
@group(0) @binding(2) var<storage, read_write> f: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> args: Args;
@group(0) @binding(4) var<storage, read_write> fault_record: array<atomic<u32>, 16>;
var<workgroup> scratch: array<u32, 256>;
var<workgroup> bins: array<atomic<u32>, 16>;
var<workgroup> peak: atomic<u32>;
// Whether this lane has faulted.
var<private> dead: bool;

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

fn min_f32(x: f32, y: f32) -> f32 {
    let x_is_nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(x, y, x_is_nan || y < x);
}

fn max_f32(x: f32, y: f32) -> f32 {
    let x_is_nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select(x, y, x_is_nan || y > x);
}

fn f32_from_bits(bits: u32) -> f32 {
    return bitcast<f32>(bits);
}

fn exclusive_max_f32(value: f32, subgroup_lane: u32, subgroup_size: u32) -> f32 {
    let votes = subgroupBallot(true);
    var total = f32_from_bits(0xff800000u);
    for (var source = 0u; source < subgroup_size; source += 1u) {
        let other = subgroupShuffle(value, source);
        let takes_part = ((votes[source >> 5u] >> (source & 31u)) & 1u) != 0u;
        if (takes_part && source < subgroup_lane) {
            total = max_f32(total, other);
        }
    }
    return total;
}

@compute @workgroup_size(64, 1, 1)
fn shared_work(
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
    var result = 0u;
    atomicStore(&bins[0u], 0u);
    if (tid.x >= 256u) {
        dead = true;
        report_fault(args.site_base + 0u, tid, bid, vec2<u32>(tid.x, 0u), vec2<u32>(256u, 0u));
    }
    if (!dead) {
        scratch[tid.x] = 256u;
    }
    storageBarrier();
    workgroupBarrier();
    if (!dead) {
        if (args.n == 0u) {
            dead = true;
            report_fault(args.site_base + 1u, tid, bid, vec2<u32>(tid.x, 0u), vec2<u32>());
        } else {
            result = tid.x / args.n + tid.x;
        }
    }
    var guarded = 0u;
    if (!dead) {
        guarded = atomicAdd(&bins[0u], result);
    }
    let guarded5 = i32(guarded);
    if (0u >= args.s_len) {
        dead = true;
        report_fault(args.site_base + 2u, tid, bid, vec2<u32>(0u, 0u), vec2<u32>(args.s_len, 0u));
        return;
    }
    var guarded1 = 0i;
    if (!dead) {
        guarded1 = atomicMax(&s[args.s_first], guarded5);
    }
    if (0u >= args.f_len) {
        dead = true;
        report_fault(args.site_base + 3u, tid, bid, vec2<u32>(0u, 0u), vec2<u32>(args.f_len, 0u));
        return;
    }
    var guarded2 = 0.0f;
    if (!dead) {
        let operand = f32(guarded5);
        var old = atomicLoad(&f[args.f_first]);
        loop {
            let r = atomicCompareExchangeWeak(&f[args.f_first], old, bitcast<u32>(min_f32(bitcast<f32>(old), operand)));
            if (r.exchanged) {
                break;
            }
            old = r.old_value;
        }
        guarded2 = bitcast<f32>(old);
    }
    var guarded3 = 0.0f;
    if (!dead) {
        let operand1 = f32(guarded5);
        var old1 = atomicLoad(&peak);
        loop {
            let r1 = atomicCompareExchangeWeak(&peak, old1, bitcast<u32>(bitcast<f32>(old1) + operand1));
            if (r1.exchanged) {
                break;
            }
            old1 = r1.old_value;
        }
        guarded3 = bitcast<f32>(old1);
    }
    if (0u >= args.x_len) {
        dead = true;
        report_fault(args.site_base + 4u, tid, bid, vec2<u32>(0u, 0u), vec2<u32>(args.x_len, 0u));
        return;
    }
    var guarded4 = 0u;
    if (!dead) {
        let expected = result;
        var old2 = expected;
        loop {
            let r2 = atomicCompareExchangeWeak(&x[args.x_first], expected, args.n);
            old2 = r2.old_value;
            if (r2.exchanged || old2 != expected) {
                break;
            }
        }
        guarded4 = old2;
    }
    let total = subgroupAdd(guarded4);
    let other = exclusive_max_f32(guarded2, subgroup_lane, subgroup_size);
    let other1 = subgroupShuffle(total, select(subgroup_lane, subgroup_lane + args.n, args.n < subgroup_size - subgroup_lane));
    let votes = subgroupBallot(other < guarded3);
    let votes1 = array<u32, 4>(votes.x, votes.y, votes.z, votes.w);
    let t = other1 + votes1[1] + u32(extractBits(bitcast<i32>(args.wide), 0u, 8u));
    storageBarrier();
    workgroupBarrier();
    if (dead) {
        return;
    }
    if (tid.x >= args.x_len) {
        dead = true;
        report_fault(args.site_base + 5u, tid, bid, vec2<u32>(tid.x, 0u), vec2<u32>(args.x_len, 0u));
        return;
    }
    atomicStore(&x[args.x_first + tid.x], t);
}
