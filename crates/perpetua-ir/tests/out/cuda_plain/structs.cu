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

__device__ tuple_f32_i32 weigh(Particle p1, float factor)
{
    const float t = f16_to_f32(p1.mass) * factor * __uint_as_float(WEIGHTS[p1.kind & 3]);
    return tuple_f32_i32{t, (int)p1.kind};
}

extern "C" __global__ void structs(Particle* p, f32x4* v, unsigned char* b, Particle start, bool flag)
{
    const Particle p_i = p[threadIdx.x];
    float acc[3] = {};
    unsigned int i = 0u;
    const tuple_f32_i32 t = weigh(p_i, 2.5f);
    for (; i < 3u; i += 1u) {
        acc[i] = p[threadIdx.x].pos.at[i] + t.f0;
    }
    const f32x4 v_i = v[threadIdx.x];
    f32x4 changed = v_i;
    changed.z = v_i.w + acc[1];
    v[threadIdx.x] = changed;
    v[threadIdx.x].x = v_i.w;
    Particle q = p_i;
    const unsigned char t1 = (unsigned char)(b[threadIdx.x] + 200);
    q.kind = t1;
    b[threadIdx.x] = t1;
    q.alive = flag;
    p[threadIdx.x] = q;
    p[threadIdx.x].kind = start.kind;
}
