struct u32_array_4 {
    unsigned int at[4];
};

extern __shared__ __align__(16) unsigned int scratch[];

__device__ unsigned int atomic_max_acq_rel_block_u32(unsigned int* p, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.cta.max.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ int atomic_min_seq_cst_system_i32(int* p, int value)
{
    int old;
    asm volatile("fence.sc.sys; atom.acq_rel.sys.min.s32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ unsigned int compare_exchange_release_device_u32(unsigned int* p, unsigned int expected, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.release.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(p), "r"(expected), "r"(value) : "memory");
    return old;
}

__device__ float atomic_max_release_device_f32(float* p, float value)
{
    unsigned int old = *(volatile unsigned int*)p;
    for (;;) {
        const unsigned int seen = compare_exchange_release_device_u32((unsigned int*)p, old, __float_as_uint(fmaxf(__uint_as_float(old), value)));
        if (seen == old) {
            return __uint_as_float(seen);
        }
        old = seen;
    }
}

__device__ float atomic_exchange_acq_rel_device_f32(float* p, float value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(__float_as_uint(value)) : "memory");
    return __uint_as_float(old);
}

__device__ unsigned int compare_exchange_acq_rel_device_u32(unsigned int* p, unsigned int expected, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(p), "r"(expected), "r"(value) : "memory");
    return old;
}

__device__ unsigned int load_acquire_system_u32(const unsigned int* p)
{
    unsigned int value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}

__device__ void store_release_device_u32(unsigned int* p, unsigned int value)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" :: "l"(p), "r"(value) : "memory");
}

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

extern "C" __global__ void memory(unsigned int* x, int* s, float* f, unsigned long long* w)
{
    __shared__ unsigned int flags[4];
    const unsigned int old = atomicAdd(&x[0], threadIdx.x);
    const unsigned int old1 = atomic_max_acq_rel_block_u32(&x[0], threadIdx.x);
    atomicSub(&s[0], (int)threadIdx.x);
    atomic_min_seq_cst_system_i32(&s[0], (int)threadIdx.x);
    const float tx = (float)threadIdx.x;
    atomicAdd(&f[0], tx);
    atomic_max_release_device_f32(&f[0], tx);
    atomic_exchange_acq_rel_device_f32(&f[0], tx);
    atomicOr(&w[0], (unsigned long long)threadIdx.x);
    const unsigned int old2 = compare_exchange_acq_rel_device_u32(&x[0], old, old1);
    const unsigned int x_i = load_acquire_system_u32((const unsigned int*)&x[threadIdx.x]);
    store_release_device_u32((unsigned int*)&x[threadIdx.x], x_i);
    __threadfence();
    scratch[threadIdx.x] = old2;
    __syncthreads();
    const unsigned int old3 = atomic_add_relaxed_block_u32(&flags[0], dynamic_shared_bytes() / 4u);
    const u32_array_4 votes = u32_array_4{{__ballot_sync(__activemask(), threadIdx.x < old3), 0u, 0u, 0u}};
    const unsigned int total = subgroup_add_u32(votes.at[0]);
    const float other = exclusive_max_f32(tx);
    const unsigned int other1 = __shfl_xor_sync(__activemask(), total, 0u);
    printf("lane {}: {} and {}%%%u%g%u\n", threadIdx.x, other, other1);
    x[threadIdx.x] = other1;
}
