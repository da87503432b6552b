struct Args {
    grid: vec3<u32>,
    site_base: u32,
    x_len_: u32,
    x_first_: u32,
    total_len_: u32,
    total_first_: u32,
}

@group(0) @binding(0) var<storage, read_write> x_: array<f32>;
@group(0) @binding(1) var<storage, read_write> total_: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(3) var<storage, read_write> fault_record: array<atomic<u32>, 16>;
var<workgroup> tile_: array<f32, 64>;
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

fn lane_(tid: vec3<u32>, bid: vec3<u32>) {
    let idx_ = bid.x * 64u + tid.x;
    var v_ = 0.0f;
    if (idx_ < args.x_len_) {
        v_ = x_[args.x_first_ + idx_];
    }
    tile_[tid.x] = v_;
    storageBarrier();
    workgroupBarrier();
    for (var half_ = 32u; half_ > 0u; half_ = half_ >> 1u) {
        if (!dead) {
            if (tid.x < half_) {
                let t_ = tid.x + half_;
                let tile_i_ = tile_[tid.x];
                if (t_ >= 64u) {
                    dead = true;
                    report_fault_(args.site_base + 1u, vec2<u32>(t_, 0u), vec2<u32>(64u, 0u));
                } else {
                    tile_[tid.x] = tile_i_ + tile_[t_];
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
        if (0u >= args.total_len_) {
            dead = true;
            report_fault_(args.site_base + 2u, vec2<u32>(0u, 0u), vec2<u32>(args.total_len_, 0u));
            return;
        }
        let operand_ = tile_[0u];
        var old_ = atomicLoad(&total_[args.total_first_]);
        loop {
            let r_ = atomicCompareExchangeWeak(&total_[args.total_first_], old_, bitcast<u32>(bitcast<f32>(old_) + operand_));
            if (r_.exchanged) {
                break;
            }
            old_ = r_.old_value;
        }
    }
}

@compute @workgroup_size(64, 1, 1)
fn reduce_(
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
