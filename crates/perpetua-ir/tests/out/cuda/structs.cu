struct tuple_f32_i32 {
    float f0;
    int f1;
};

struct f32_array_3 {
    float at[3];
};

struct Particle {
    f32_array_3 pos;
    unsigned short mass;
    unsigned char kind;
    bool alive;
};

struct __align__(16) f32x4 {
    float x, y, z, w;
};

__constant__ unsigned int WEIGHTS[4] = {
    1056964608u, 1065353216u, 2139095040u, 2147483648u,
};

__device__ float f16_to_f32(unsigned short x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

// The first lane that faults in a launch claims the record.
__device__ void report_fault(unsigned int* record, unsigned int site, unsigned long long first, unsigned long long second)
{
    if (atomicCAS_system(&record[0], 0u, 1u) != 0u) {
        return;
    }
    record[2] = blockIdx.x;
    record[3] = blockIdx.y;
    record[4] = blockIdx.z;
    record[5] = threadIdx.x;
    record[6] = threadIdx.y;
    record[7] = threadIdx.z;
    record[8] = (unsigned int)first;
    record[9] = (unsigned int)(first >> 32);
    record[10] = (unsigned int)second;
    record[11] = (unsigned int)(second >> 32);
    record[1] = site;
}

__device__ tuple_f32_i32 weigh(Particle p1, float factor)
{
    const float t = f16_to_f32(p1.mass) * factor * __uint_as_float(WEIGHTS[p1.kind & 3]);
    return tuple_f32_i32{t, (int)p1.kind};
}

extern "C" __global__ void structs(Particle* p, unsigned long long p_len, f32x4* v, unsigned long long v_len, unsigned char* b, unsigned long long b_len, Particle start, bool flag, unsigned int* fault_record, unsigned int site_base)
{
    if ((unsigned long long)threadIdx.x >= p_len) {
        report_fault(fault_record, site_base + 0u, (unsigned long long)threadIdx.x, p_len);
        return;
    }
    const Particle p_i = p[threadIdx.x];
    float acc[3] = {};
    unsigned int i = 0u;
    const tuple_f32_i32 t = weigh(p_i, 2.5f);
    for (; i < 3u; i += 1u) {
        acc[i] = p[threadIdx.x].pos.at[i] + t.f0;
    }
    if ((unsigned long long)threadIdx.x >= v_len) {
        report_fault(fault_record, site_base + 1u, (unsigned long long)threadIdx.x, v_len);
        return;
    }
    const f32x4 v_i = v[threadIdx.x];
    f32x4 changed = v_i;
    changed.z = v_i.w + acc[1];
    v[threadIdx.x] = changed;
    v[threadIdx.x].x = v_i.w;
    Particle q = p_i;
    if ((unsigned long long)threadIdx.x >= b_len) {
        report_fault(fault_record, site_base + 2u, (unsigned long long)threadIdx.x, b_len);
        return;
    }
    const unsigned char t1 = (unsigned char)(b[threadIdx.x] + 200);
    q.kind = t1;
    b[threadIdx.x] = t1;
    q.alive = flag;
    p[threadIdx.x] = q;
    p[threadIdx.x].kind = start.kind;
}
