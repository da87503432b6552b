#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

struct u32_array_4_ {
    uint at[4];
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

static inline float atomic_min_device_f32_(device atomic_uint* p, float value)
{
    uint old = atomic_load_explicit(p, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(p, &old, as_type<uint>(fmin(as_type<float>(old), value)), memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(old);
}

static inline float atomic_add_threadgroup_f32_(threadgroup atomic_uint* p, float value)
{
    uint old = atomic_load_explicit(p, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(p, &old, as_type<uint>(as_type<float>(old) + value), memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(old);
}

// The weak exchange may fail for no reason: then the old value is the expected one.
static inline uint compare_exchange_device_u32_(device atomic_uint* p, uint expected, uint value)
{
    uint old = expected;
    while (!atomic_compare_exchange_weak_explicit(p, &old, value, memory_order_relaxed, memory_order_relaxed)) {
        if (old != expected) {
            break;
        }
    }
    return old;
}

static inline float exclusive_max_f32_(float value, uint simd_lane, uint simd_size)
{
    const ulong votes = (ulong)(simd_vote::vote_t)simd_ballot(true);
    float total = as_type<float>(0xff800000u);
    for (uint from = 0u; from < simd_size; from += 1u) {
        const float other = simd_shuffle(value, ushort(from));
        if (((votes >> from) & 1ul) != 0ul && from < simd_lane) {
            total = fmax(total, other);
        }
    }
    return total;
}

kernel void shared_work_(
    device uint* x_ [[buffer(0)]],
    device int* s_ [[buffer(1)]],
    device float* f_ [[buffer(2)]],
    constant uint* args [[buffer(3)]],
    device atomic_uint* fault_record [[buffer(4)]],
    threadgroup uchar* scratch_bytes_ [[threadgroup(0)]],
    uint3 tid [[thread_position_in_threadgroup]],
    uint3 bid [[threadgroup_position_in_grid]],
    uint simd_lane [[thread_index_in_simdgroup]],
    uint simd_size [[threads_per_simdgroup]])
{
    const uint x_len_ = args[4];
    x_ += args[5];
    const uint s_len_ = args[6];
    s_ += args[7];
    const uint f_len_ = args[8];
    f_ += args[9];
    const uint n_ = args[10];
    const char wide_ = (char)args[11];
    threadgroup uint* scratch_ = (threadgroup uint*)scratch_bytes_;
    const uint shared_len = args[12] / 4u;
    threadgroup uint bins_[16];
    threadgroup float peak_;
    const uint site_base = args[3];
    bool dead = false;
    uint result_ = 0u;
    bins_[0] = 0u;
    if (tid.x >= shared_len) {
        dead = true;
        report_fault_(fault_record, site_base + 0u, tid, bid, (ulong)tid.x, (ulong)shared_len);
    }
    if (!dead) {
        scratch_[tid.x] = shared_len;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    if (!dead) {
        if (n_ == 0u) {
            dead = true;
            report_fault_(fault_record, site_base + 1u, tid, bid, (ulong)tid.x, 0ul);
        } else {
            result_ = tid.x / n_ + tid.x;
        }
    }
    uint guarded_ = 0u;
    if (!dead) {
        guarded_ = atomic_fetch_add_explicit((threadgroup atomic_uint*)&bins_[0], result_, memory_order_relaxed);
    }
    const int guarded5_ = guarded_;
    if (0u >= s_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 2u, tid, bid, 0ul, (ulong)s_len_);
        return;
    }
    int guarded1_ = 0;
    if (!dead) {
        guarded1_ = atomic_fetch_max_explicit((device atomic_int*)&s_[0], guarded5_, memory_order_relaxed);
    }
    const float guarded6_ = (float)guarded5_;
    if (0u >= f_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 3u, tid, bid, 0ul, (ulong)f_len_);
        return;
    }
    float guarded2_ = 0.0f;
    if (!dead) {
        guarded2_ = atomic_min_device_f32_((device atomic_uint*)&f_[0], guarded6_);
    }
    float guarded3_ = 0.0f;
    if (!dead) {
        guarded3_ = atomic_add_threadgroup_f32_((threadgroup atomic_uint*)&peak_, guarded6_);
    }
    if (0u >= x_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 4u, tid, bid, 0ul, (ulong)x_len_);
        return;
    }
    uint guarded4_ = 0u;
    if (!dead) {
        guarded4_ = compare_exchange_device_u32_((device atomic_uint*)&x_[0], result_, n_);
    }
    const uint total_ = simd_sum(guarded4_);
    const float other_ = exclusive_max_f32_(guarded2_, simd_lane, simd_size);
    const uint other1_ = simd_shuffle(total_, ushort(n_ < simd_size - simd_lane ? simd_lane + n_ : simd_lane));
    const ulong votes_ = (ulong)(simd_vote::vote_t)simd_ballot(other_ < guarded3_);
    const u32_array_4_ votes1_ = u32_array_4_{{uint(votes_), uint(votes_ >> 32), 0u, 0u}};
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    if (dead) {
        return;
    }
    if (tid.x >= x_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 5u, tid, bid, (ulong)tid.x, (ulong)x_len_);
        return;
    }
    x_[tid.x] = other1_ + votes1_.at[1] + (uint)wide_;
}
