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

// A dead lane may come upon another fault: the first counts.
fn report_fault_(site: u32, first: vec2<u32>, second: vec2<u32>) {
    if (fault_site == 0u) {
        fault_site = site;
        fault_first = first;
        fault_second = second;
    }
}

fn is_nan_f32_(x_: f32) -> bool {
    return (bitcast<u32>(x_) & 2147483647u) > 2139095040u;
}

fn lane_(tid: vec3<u32>, bid: vec3<u32>) {
    let idx_ = bid.x * 256u + tid.x;
    if (idx_ < args.size0_) {
        if (idx_ >= args.input0_len_) {
            report_fault_(args.site_base + 1u, vec2<u32>(idx_, 0u), vec2<u32>(args.input0_len_, 0u));
            return;
        }
        let input0_i_ = input0_[args.input0_first_ + idx_];
        let t_ = select(args.number0_, input0_i_, input0_i_ >= args.number0_ || is_nan_f32_(input0_i_));
        if (idx_ >= args.result_len_) {
            report_fault_(args.site_base + 2u, vec2<u32>(idx_, 0u), vec2<u32>(args.result_len_, 0u));
            return;
        }
        result_[args.result_first_ + idx_] = t_;
    }
}

@compute @workgroup_size(256, 1, 1)
fn elements_ge_is_nan_or_where_(
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
