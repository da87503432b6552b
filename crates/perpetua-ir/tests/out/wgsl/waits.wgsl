struct Args {
    grid: vec3<u32>,
    site_base: u32,
    x_len_: u32,
    x_first_: u32,
    out_len_: u32,
    out_first_: u32,
}

@group(0) @binding(0) var<storage, read_write> x_: array<u32>;
@group(0) @binding(1) var<storage, read_write> out_: array<u32>;
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(3) var<storage, read_write> fault_record: array<atomic<u32>, 16>;
var<workgroup> turns_: array<u32, 2>;
var<workgroup> a_lane_is_dead_: u32;
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
    a_lane_is_dead_ = 0u;
    storageBarrier();
    workgroupBarrier();
    let test_ = tid.x == 0u;
    if (test_) {
        turns_[0] = 0u;
    }
    var n_ = 0u;
    loop {
        let t_ = n_ + 1u;
        n_ = t_;
        if (!dead) {
            if (test_ && t_ == 3u) {
                turns_[0] = 5u;
            }
        }
        if (dead) {
            a_lane_is_dead_ = 1u;
        }
        storageBarrier();
        workgroupBarrier();
        let a_lane_is_dead_i_ = workgroupUniformLoad(&a_lane_is_dead_);
        let turns_i_ = workgroupUniformLoad(&turns_[0]);
        let t1_ = tid.x + t_;
        let test1_ = t1_ >= args.x_len_;
        if (test1_) {
            dead = true;
            report_fault_(args.site_base + 1u, vec2<u32>(t1_, 0u), vec2<u32>(args.x_len_, 0u));
        }
        var guarded_ = 0u;
        if (!test1_) {
            guarded_ = x_[args.x_first_ + t1_];
        }
        storageBarrier();
        workgroupBarrier();
        if (a_lane_is_dead_i_ != 0u) {
            return;
        }
        if (t_ == turns_i_) {
            break;
        }
        if (tid.x >= args.out_len_) {
            dead = true;
            report_fault_(args.site_base + 2u, vec2<u32>(tid.x, 0u), vec2<u32>(args.out_len_, 0u));
        }
        if (!dead) {
            out_[args.out_first_ + tid.x] = guarded_;
        }
    }
}

@compute @workgroup_size(64, 1, 1)
fn waits_(
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
