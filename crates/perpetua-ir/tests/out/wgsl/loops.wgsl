struct Args {
    grid: vec3<u32>,
    site_base: u32,
    x_len: u32,
    x_first: u32,
    out_len: u32,
    out_first: u32,
    n: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(3) var<storage, read_write> fault_record: array<atomic<u32>, 16>;

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
fn loops(
    @builtin(local_invocation_id) tid: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = group.x + groups.x * (group.y + groups.y * group.z);
    if (number >= args.grid.x * args.grid.y * args.grid.z) {
        return;
    }
    let bid = vec3<u32>(number % args.grid.x, number / args.grid.x % args.grid.y, number / (args.grid.x * args.grid.y));
    var sum = 0u;
    var i = 0u;
    while (i < args.n) {
        var j = 0u;
        var leave = false;
        var next = false;
        for (; j < args.n; j += 1u) {
            if (i == j) {
                continue;
            }
            let t = i + j;
            if (t >= args.x_len) {
                report_fault(args.site_base + 0u, tid, bid, vec2<u32>(t, 0u), vec2<u32>(args.x_len, 0u));
                return;
            }
            let x_i = x[args.x_first + t];
            if (x_i == 99u) {
                leave = true;
                break;
            }
            if (x_i == 7u) {
                next = true;
                break;
            }
            if (x_i == 1u || x_i == 2u) {
                continue;
            } else if (x_i == 3u) {
                break;
            }
            sum += x_i;
        }
        if (leave) {
            break;
        }
        if (next) {
            continue;
        }
        i += 1u;
    }
    var k = sum;
    while (k > args.n) {
        k /= 2u;
    }
    switch (args.n) {
        case 1u: {
            k = 0u;
        }
        case 2u, 3u: {
            k = 1u;
        }
        default: {
        }
    }
    if (tid.x >= args.out_len) {
        report_fault(args.site_base + 1u, tid, bid, vec2<u32>(tid.x, 0u), vec2<u32>(args.out_len, 0u));
        return;
    }
    out[args.out_first + tid.x] = k;
}
