struct u32_array_4 {
    unsigned int at[4];
};

extern __shared__ __align__(16) unsigned int scratch[];

__device__ unsigned int dynamic_shared_bytes()
{
    unsigned int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

__device__ unsigned int atomic_add_relaxed_block_u32(unsigned int* p, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.relaxed.cta.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ float atomic_min_relaxed_device_f32(float* p, float value)
{
    unsigned int old = *(volatile unsigned int*)p;
    for (;;) {
        const unsigned int seen = atomicCAS((unsigned int*)p, old, __float_as_uint(fminf(__uint_as_float(old), value)));
        if (seen == old) {
            return __uint_as_float(seen);
        }
        old = seen;
    }
}

__device__ float atomic_add_relaxed_block_f32(float* p, float value)
{
    float old;
    asm volatile("atom.relaxed.cta.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(p), "f"(value) : "memory");
    return old;
}

__device__ unsigned int subgroup_add_u32(unsigned int value)
{
    const unsigned int active = __activemask();
    unsigned int total = value;
    if (active == 0xffffffffu) {
        for (int by = 16; by > 0; by /= 2) {
            total = total + __shfl_xor_sync(active, total, by);
        }
        return total;
    }
    total = __shfl_sync(active, value, __ffs(active) - 1);
    for (unsigned int rest = active & (active - 1u); rest != 0u; rest &= rest - 1u) {
        total = total + __shfl_sync(active, value, __ffs(rest) - 1);
    }
    return total;
}

__device__ unsigned int lane_index()
{
    unsigned int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

__device__ float exclusive_max_f32(float value)
{
    const unsigned int active = __activemask();
    const unsigned int lane = lane_index();
    if (active == 0xffffffffu) {
        float total = value;
        for (unsigned int by = 1u; by < 32u; by *= 2u) {
            const float other = __shfl_up_sync(active, total, by);
            if (lane >= by) {
                total = fmaxf(other, total);
            }
        }
        const float before = __shfl_up_sync(active, total, 1);
        return lane == 0u ? __uint_as_float(0xff800000u) : before;
    }
    float total = __uint_as_float(0xff800000u);
    for (unsigned int rest = active; rest != 0u; rest &= rest - 1u) {
        const unsigned int from = __ffs(rest) - 1;
        const float other = __shfl_sync(active, value, from);
        if (from < lane) {
            total = fmaxf(total, other);
        }
    }
    return total;
}

__device__ unsigned int shuffle_down_u32(unsigned int value, unsigned int by)
{
    const unsigned int other = __shfl_down_sync(__activemask(), value, by & 31u);
    return by < 32u ? other : value;
}

__device__ unsigned int weigh(unsigned int value, unsigned int n1)
{
    return value / n1 + threadIdx.x;
}

extern "C" __global__ void shared_work(unsigned int* x, int* s, float* f, unsigned int n, signed char wide)
{
    __shared__ unsigned int bins[16];
    __shared__ float peak;
    bins[0] = 0u;
    scratch[threadIdx.x] = dynamic_shared_bytes() / 4u;
    __syncthreads();
    const unsigned int t = weigh(threadIdx.x, n);
    const unsigned int old = atomic_add_relaxed_block_u32(&bins[0], t);
    atomicMax(&s[0], (int)old);
    const float old1 = (float)(int)old;
    const float old2 = atomic_min_relaxed_device_f32(&f[0], old1);
    const float old3 = atomic_add_relaxed_block_f32(&peak, old1);
    const unsigned int old4 = atomicCAS(&x[0], t, n);
    const unsigned int total = subgroup_add_u32(old4);
    const float other = exclusive_max_f32(old2);
    const unsigned int other1 = shuffle_down_u32(total, n);
    const u32_array_4 votes = u32_array_4{{__ballot_sync(__activemask(), other < old3), 0u, 0u, 0u}};
    __syncthreads();
    x[threadIdx.x] = other1 + votes.at[1] + (unsigned int)wide;
}
