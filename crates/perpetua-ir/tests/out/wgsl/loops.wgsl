struct Args {
    grid: vec3<u32>,
    site_base: u32,
    x_len_: u32,
    x_first_: u32,
    out_len_: u32,
    out_first_: u32,
    n_: u32,
}

@group(0) @binding(0) var<storage, read_write> x_: array<u32>;
@group(0) @binding(1) var<storage, read_write> out_: array<u32>;
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(3) var<storage, read_write> fault_record: array<atomic<u32>, 16>;

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

fn lane_(tid: vec3<u32>, bid: vec3<u32>) {
    var sum_ = 0u;
    var i_ = 0u;
    while (i_ < args.n_) {
        var j_ = 0u;
        var leave_ = false;
        var next_ = false;
        for (; j_ < args.n_; j_ += 1u) {
            if (i_ == j_) {
                continue;
            }
            let t_ = i_ + j_;
            if (t_ >= args.x_len_) {
                report_fault_(args.site_base + 1u, vec2<u32>(t_, 0u), vec2<u32>(args.x_len_, 0u));
                return;
            }
            let x_i_ = x_[args.x_first_ + t_];
            if (x_i_ == 99u) {
                leave_ = true;
                break;
            }
            if (x_i_ == 7u) {
                next_ = true;
                break;
            }
            if (x_i_ == 1u || x_i_ == 2u) {
                continue;
            } else if (x_i_ == 3u) {
                break;
            }
            sum_ += x_i_;
        }
        if (leave_) {
            break;
        }
        if (next_) {
            continue;
        }
        i_ += 1u;
    }
    var k_ = sum_;
    while (k_ > args.n_) {
        k_ /= 2u;
    }
    switch (args.n_) {
        case 1u: {
            k_ = 0u;
        }
        case 2u, 3u: {
            k_ = 1u;
        }
        default: {
        }
    }
    if (tid.x >= args.out_len_) {
        report_fault_(args.site_base + 2u, vec2<u32>(tid.x, 0u), vec2<u32>(args.out_len_, 0u));
        return;
    }
    out_[args.out_first_ + tid.x] = k_;
}

@compute @workgroup_size(64, 1, 1)
fn loops_(
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
