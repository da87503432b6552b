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

// Keeps a constant from being computed where the module is read.
fn at_run_time_u32_(x: u32) -> u32 {
    return x;
}

fn lane_(tid: vec3<u32>, bid: vec3<u32>) {
    var element_ = 0.0f;
    var element1_ = 0.0f;
    let t_ = bid.y * 16u + tid.y + 0u;
    let test_ = t_ < args.size0_;
    let t1_ = bid.x * 16u + tid.x + 0u;
    let test1_ = t1_ < args.size1_;
    var sum_ = 0.0f;
    var at_ = 0u;
    while (at_ < args.size2_) {
        let t2_ = at_ + tid.x;
        element_ = 0.0f;
        if (!dead) {
            if (t2_ < args.size2_ && test_) {
                let t3_ = t_ * args.size2_ + t2_;
                if (t3_ >= args.input0_len_) {
                    dead = true;
                    report_fault_(args.site_base + 1u, vec2<u32>(t3_, 0u), vec2<u32>(args.input0_len_, 0u));
                } else {
                    element_ = input0_[args.input0_first_ + t3_];
                }
            }
        }
        if (!dead) {
            left_[tid.y * 16u + tid.x] = element_;
        }
        let t4_ = at_ + tid.y;
        element1_ = 0.0f;
        if (!dead) {
            if (t4_ < args.size2_ && test1_) {
                let t5_ = t4_ * args.size1_ + t1_;
                if (t5_ >= args.input1_len_) {
                    dead = true;
                    report_fault_(args.site_base + 2u, vec2<u32>(t5_, 0u), vec2<u32>(args.input1_len_, 0u));
                } else {
                    element1_ = input1_[args.input1_first_ + t5_];
                }
            }
        }
        if (!dead) {
            right_[tid.y * 16u + tid.x] = element1_;
        }
        workgroupBarrier();
        let t6_ = left_[tid.y * 16u + 0u] * right_[at_run_time_u32_(0u) * 16u + tid.x];
        sum_ += t6_;
        let t7_ = left_[tid.y * 16u + 1u] * right_[at_run_time_u32_(1u) * 16u + tid.x];
        sum_ += t7_;
        let t8_ = left_[tid.y * 16u + 2u] * right_[at_run_time_u32_(2u) * 16u + tid.x];
        sum_ += t8_;
        let t9_ = left_[tid.y * 16u + 3u] * right_[at_run_time_u32_(3u) * 16u + tid.x];
        sum_ += t9_;
        let t10_ = left_[tid.y * 16u + 4u] * right_[at_run_time_u32_(4u) * 16u + tid.x];
        sum_ += t10_;
        let t11_ = left_[tid.y * 16u + 5u] * right_[at_run_time_u32_(5u) * 16u + tid.x];
        sum_ += t11_;
        let t12_ = left_[tid.y * 16u + 6u] * right_[at_run_time_u32_(6u) * 16u + tid.x];
        sum_ += t12_;
        let t13_ = left_[tid.y * 16u + 7u] * right_[at_run_time_u32_(7u) * 16u + tid.x];
        sum_ += t13_;
        let t14_ = left_[tid.y * 16u + 8u] * right_[at_run_time_u32_(8u) * 16u + tid.x];
        sum_ += t14_;
        let t15_ = left_[tid.y * 16u + 9u] * right_[at_run_time_u32_(9u) * 16u + tid.x];
        sum_ += t15_;
        let t16_ = left_[tid.y * 16u + 10u] * right_[at_run_time_u32_(10u) * 16u + tid.x];
        sum_ += t16_;
        let t17_ = left_[tid.y * 16u + 11u] * right_[at_run_time_u32_(11u) * 16u + tid.x];
        sum_ += t17_;
        let t18_ = left_[tid.y * 16u + 12u] * right_[at_run_time_u32_(12u) * 16u + tid.x];
        sum_ += t18_;
        let t19_ = left_[tid.y * 16u + 13u] * right_[at_run_time_u32_(13u) * 16u + tid.x];
        sum_ += t19_;
        let t20_ = left_[tid.y * 16u + 14u] * right_[at_run_time_u32_(14u) * 16u + tid.x];
        sum_ += t20_;
        let t21_ = left_[tid.y * 16u + 15u] * right_[at_run_time_u32_(15u) * 16u + tid.x];
        sum_ += t21_;
        workgroupBarrier();
        at_ += 16u;
    }
    if (dead) {
        return;
    }
    if (test_ && test1_) {
        let t22_ = t_ * args.size1_ + t1_;
        if (t22_ >= args.result_len_) {
            dead = true;
            report_fault_(args.site_base + 3u, vec2<u32>(t22_, 0u), vec2<u32>(args.result_len_, 0u));
            return;
        }
        result_[args.result_first_ + t22_] = sum_;
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
