struct Args {
    grid: vec3<u32>,
    site_base: u32,
    x_len: u32,
    x_first: u32,
    total_len: u32,
    total_first: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> total: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(3) var<storage, read_write> fault_record: array<atomic<u32>, 16>;
var<workgroup> tile: array<f32, 64>;
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

@compute @workgroup_size(64, 1, 1)
fn reduce(
    @builtin(local_invocation_id) tid: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = group.x + groups.x * (group.y + groups.y * group.z);
    if (number >= args.grid.x * args.grid.y * args.grid.z) {
        return;
    }
    let bid = vec3<u32>(number % args.grid.x, number / args.grid.x % args.grid.y, number / (args.grid.x * args.grid.y));
    let idx = bid.x * 64u + tid.x;
    var v = 0.0f;
    if (idx < args.x_len) {
        v = x[args.x_first + idx];
    }
    tile[tid.x] = v;
    storageBarrier();
    workgroupBarrier();
    for (var half = 32u; half > 0u; half = half >> 1u) {
        if (!dead) {
            if (tid.x < half) {
                let t = tid.x + half;
                let tile_i = tile[tid.x];
                if (t >= 64u) {
                    dead = true;
                    report_fault(args.site_base + 0u, tid, bid, vec2<u32>(t, 0u), vec2<u32>(64u, 0u));
                } else {
                    tile[tid.x] = tile_i + tile[t];
                }
            }
        }
        storageBarrier();
        workgroupBarrier();
    }
    if (dead) {
        return;
    }
    if (tid.x == 0u) {
        if (0u >= args.total_len) {
            dead = true;
            report_fault(args.site_base + 1u, tid, bid, vec2<u32>(0u, 0u), vec2<u32>(args.total_len, 0u));
            return;
        }
        let operand = tile[0u];
        var old = atomicLoad(&total[args.total_first]);
        loop {
            let r = atomicCompareExchangeWeak(&total[args.total_first], old, bitcast<u32>(bitcast<f32>(old) + operand));
            if (r.exchanged) {
                break;
            }
            old = r.old_value;
        }
    }
}
