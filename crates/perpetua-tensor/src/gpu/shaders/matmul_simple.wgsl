struct Args {
    grid: vec3<u32>,
    site_base: u32,
    result_len_: u32,
    result_first_: u32,
    input0_len_: u32,
    input0_first_: u32,
    input1_len_: u32,
    input1_first_: u32,
    size0_: u32,
    size1_: u32,
    size2_: u32,
}

@group(0) @binding(0) var<storage, read_write> result_: array<f32>;
@group(0) @binding(1) var<storage, read_write> input0_: array<f32>;
@group(0) @binding(2) var<storage, read_write> input1_: array<f32>;
@group(0) @binding(3) var<uniform> args: Args;
@group(0) @binding(4) var<storage, read_write> fault_record: array<atomic<u32>, 16>;
var<workgroup> left_: array<f32, 256>;
var<workgroup> right_: array<f32, 256>;
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
    var element_ = 0.0f;
    var element1_ = 0.0f;
    let t_ = bid.x * 16u + tid.x;
    let t1_ = bid.y * 16u + tid.y;
    let test_ = t1_ < args.size0_;
    let test1_ = t_ < args.size1_;
    let t2_ = tid.y * 16u;
    let t3_ = t2_ + tid.x;
    var sum_ = 0.0f;
    var at_ = 0u;
    while (at_ < args.size2_) {
        let t4_ = at_ + tid.x;
        let t5_ = at_ + tid.y;
        element_ = 0.0f;
        if (!dead) {
            if (t4_ < args.size2_ && test_) {
                let t6_ = t1_ * args.size2_ + t4_;
                if (t6_ >= args.input0_len_) {
                    dead = true;
                    report_fault_(args.site_base + 1u, vec2<u32>(t6_, 0u), vec2<u32>(args.input0_len_, 0u));
                } else {
                    element_ = input0_[args.input0_first_ + t6_];
                }
            }
        }
        if (!dead) {
            left_[t3_] = element_;
        }
        element1_ = 0.0f;
        if (!dead) {
            if (t5_ < args.size2_ && test1_) {
                let t7_ = t5_ * args.size1_ + t_;
                if (t7_ >= args.input1_len_) {
                    dead = true;
                    report_fault_(args.site_base + 2u, vec2<u32>(t7_, 0u), vec2<u32>(args.input1_len_, 0u));
                } else {
                    element1_ = input1_[args.input1_first_ + t7_];
                }
            }
        }
        if (!dead) {
            right_[t3_] = element1_;
        }
        workgroupBarrier();
        sum_ = sum_ + left_[t2_ + 0u] * right_[0u + tid.x];
        sum_ = sum_ + left_[t2_ + 1u] * right_[16u + tid.x];
        sum_ = sum_ + left_[t2_ + 2u] * right_[32u + tid.x];
        sum_ = sum_ + left_[t2_ + 3u] * right_[48u + tid.x];
        sum_ = sum_ + left_[t2_ + 4u] * right_[64u + tid.x];
        sum_ = sum_ + left_[t2_ + 5u] * right_[80u + tid.x];
        sum_ = sum_ + left_[t2_ + 6u] * right_[96u + tid.x];
        sum_ = sum_ + left_[t2_ + 7u] * right_[112u + tid.x];
        sum_ = sum_ + left_[t2_ + 8u] * right_[128u + tid.x];
        sum_ = sum_ + left_[t2_ + 9u] * right_[144u + tid.x];
        sum_ = sum_ + left_[t2_ + 10u] * right_[160u + tid.x];
        sum_ = sum_ + left_[t2_ + 11u] * right_[176u + tid.x];
        sum_ = sum_ + left_[t2_ + 12u] * right_[192u + tid.x];
        sum_ = sum_ + left_[t2_ + 13u] * right_[208u + tid.x];
        sum_ = sum_ + left_[t2_ + 14u] * right_[224u + tid.x];
        sum_ = sum_ + left_[t2_ + 15u] * right_[240u + tid.x];
        workgroupBarrier();
        at_ += 16u;
    }
    if (dead) {
        return;
    }
    if (test_ && test1_) {
        let t8_ = t1_ * args.size1_ + t_;
        if (t8_ >= args.result_len_) {
            dead = true;
            report_fault_(args.site_base + 3u, vec2<u32>(t8_, 0u), vec2<u32>(args.result_len_, 0u));
            return;
        }
        result_[args.result_first_ + t8_] = sum_;
    }
}

@compute @workgroup_size(16, 16, 1)
fn matmul_(
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
