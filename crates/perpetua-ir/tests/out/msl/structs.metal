#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

struct tuple_f32_i32_ {
    float f0_;
    int f1_;
};

struct f32_array_3_ {
    float at[3];
};

struct Particle_ {
    f32_array_3_ pos_;
    ushort mass_;
    uchar kind_;
    bool alive_;
};

constant uint WEIGHTS_[4] = {
    1056964608u, 1065353216u, 2139095040u, 2147483648u,
};

// The first lane that faults in a launch claims the record. The exchange may fail for no reason.
static inline void report_fault_(device atomic_uint* record, uint site, uint3 tid, uint3 bid, ulong first, ulong second)
{
    uint claimed = 0u;
    while (!atomic_compare_exchange_weak_explicit(&record[0], &claimed, 1u, memory_order_relaxed, memory_order_relaxed)) {
        if (claimed != 0u) {
            return;
        }
    }
    atomic_store_explicit(&record[2], bid.x, memory_order_relaxed);
    atomic_store_explicit(&record[3], bid.y, memory_order_relaxed);
    atomic_store_explicit(&record[4], bid.z, memory_order_relaxed);
    atomic_store_explicit(&record[5], tid.x, memory_order_relaxed);
    atomic_store_explicit(&record[6], tid.y, memory_order_relaxed);
    atomic_store_explicit(&record[7], tid.z, memory_order_relaxed);
    atomic_store_explicit(&record[8], uint(first), memory_order_relaxed);
    atomic_store_explicit(&record[9], uint(first >> 32), memory_order_relaxed);
    atomic_store_explicit(&record[10], uint(second), memory_order_relaxed);
    atomic_store_explicit(&record[11], uint(second >> 32), memory_order_relaxed);
    atomic_store_explicit(&record[1], site, memory_order_relaxed);
}

static inline tuple_f32_i32_ weigh_(Particle_ p1_, float factor_)
{
    const float t_ = float(as_type<half>(p1_.mass_)) * factor_ * as_type<float>(WEIGHTS_[p1_.kind_ & 3]);
    return tuple_f32_i32_{t_, (int)p1_.kind_};
}

kernel void structs_(
    device Particle_* p_ [[buffer(0)]],
    device float4* v_ [[buffer(1)]],
    device uchar* b_ [[buffer(2)]],
    constant uint* args [[buffer(3)]],
    device atomic_uint* fault_record [[buffer(4)]],
    uint3 tid [[thread_position_in_threadgroup]],
    uint3 bid [[threadgroup_position_in_grid]])
{
    const uint p_len_ = args[4];
    p_ += args[5];
    const uint v_len_ = args[6];
    v_ += args[7];
    const uint b_len_ = args[8];
    b_ += args[9];
    const Particle_ start_ = Particle_{f32_array_3_{{as_type<float>(args[10]), as_type<float>(args[11]), as_type<float>(args[12])}}, (ushort)args[13], (uchar)(args[13] >> 16), ((args[13] >> 24) & 0xffu) != 0u};
    const bool flag_ = (args[14] & 0xffu) != 0u;
    const uint site_base = args[3];
    if (tid.x >= p_len_) {
        report_fault_(fault_record, site_base + 0u, tid, bid, (ulong)tid.x, (ulong)p_len_);
        return;
    }
    const Particle_ p_i_ = p_[tid.x];
    float acc_[3] = {};
    uint i_ = 0u;
    const tuple_f32_i32_ t_ = weigh_(p_i_, 2.5f);
    for (; i_ < 3u; i_ += 1u) {
        acc_[i_] = p_[tid.x].pos_.at[i_] + t_.f0_;
    }
    if (tid.x >= v_len_) {
        report_fault_(fault_record, site_base + 1u, tid, bid, (ulong)tid.x, (ulong)v_len_);
        return;
    }
    const float4 v_i_ = v_[tid.x];
    float4 changed_ = v_i_;
    changed_.z = v_i_.w + acc_[1];
    v_[tid.x] = changed_;
    v_[tid.x].x = v_i_.w;
    Particle_ q_ = p_i_;
    if (tid.x >= b_len_) {
        report_fault_(fault_record, site_base + 2u, tid, bid, (ulong)tid.x, (ulong)b_len_);
        return;
    }
    const uchar t1_ = (uchar)(b_[tid.x] + 200);
    q_.kind_ = t1_;
    b_[tid.x] = t1_;
    q_.alive_ = flag_;
    p_[tid.x] = q_;
    p_[tid.x].kind_ = start_.kind_;
}
