#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

struct tuple_f32_i32 {
    float f0;
    int f1;
};

struct f32_array_3 {
    float at[3];
};

struct Particle {
    f32_array_3 pos;
    ushort mass;
    uchar kind;
    bool alive;
};

constant uint WEIGHTS[4] = {
    1056964608u, 1065353216u, 2139095040u, 2147483648u,
};

// The first lane that faults in a launch claims the record. The exchange may fail for no reason.
static inline void report_fault(device atomic_uint* record, uint site, uint3 tid, uint3 bid, ulong first, ulong second)
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

static inline tuple_f32_i32 weigh(Particle p1, float factor)
{
    const float t = float(as_type<half>(p1.mass)) * factor * as_type<float>(WEIGHTS[p1.kind & 3]);
    return tuple_f32_i32{t, (int)p1.kind};
}

kernel void structs(
    device Particle* p [[buffer(0)]],
    device float4* v [[buffer(1)]],
    device uchar* b [[buffer(2)]],
    constant uint* args [[buffer(3)]],
    device atomic_uint* fault_record [[buffer(4)]],
    uint3 tid [[thread_position_in_threadgroup]],
    uint3 bid [[threadgroup_position_in_grid]])
{
    const uint p_len = args[4];
    p += args[5];
    const uint v_len = args[6];
    v += args[7];
    const uint b_len = args[8];
    b += args[9];
    const Particle start = Particle{f32_array_3{{as_type<float>(args[10]), as_type<float>(args[11]), as_type<float>(args[12])}}, (ushort)args[13], (uchar)(args[13] >> 16), ((args[13] >> 24) & 0xffu) != 0u};
    const bool flag = (args[14] & 0xffu) != 0u;
    const uint site_base = args[3];
    if (tid.x >= p_len) {
        report_fault(fault_record, site_base + 0u, tid, bid, (ulong)tid.x, (ulong)p_len);
        return;
    }
    const Particle p_i = p[tid.x];
    float acc[3] = {};
    uint i = 0u;
    const tuple_f32_i32 t = weigh(p_i, 2.5f);
    for (; i < 3u; i += 1u) {
        acc[i] = p[tid.x].pos.at[i] + t.f0;
    }
    if (tid.x >= v_len) {
        report_fault(fault_record, site_base + 1u, tid, bid, (ulong)tid.x, (ulong)v_len);
        return;
    }
    const float4 v_i = v[tid.x];
    float4 changed = v_i;
    changed.z = v_i.w + acc[1];
    v[tid.x] = changed;
    v[tid.x].x = v_i.w;
    Particle q = p_i;
    if (tid.x >= b_len) {
        report_fault(fault_record, site_base + 2u, tid, bid, (ulong)tid.x, (ulong)b_len);
        return;
    }
    const uchar t1 = (uchar)(b[tid.x] + 200);
    q.kind = t1;
    b[tid.x] = t1;
    q.alive = flag;
    p[tid.x] = q;
    p[tid.x].kind = start.kind;
}
