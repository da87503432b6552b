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

extern "C" __global__ void __launch_bounds__(64) reduce(const float* x, unsigned long long x_len, float* total, unsigned long long total_len, unsigned int* fault_record, unsigned int site_base)
{
    __shared__ float tile[64];
    bool dead = false;
    const unsigned int idx = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0.0f;
    if (idx < (unsigned int)x_len) {
        v = x[idx];
    }
    tile[threadIdx.x] = v;
    __syncthreads();
    for (unsigned int half = 32u; half > 0u; half = half >> 1) {
        if (!dead) {
            if (threadIdx.x < half) {
                const unsigned int t = threadIdx.x + half;
                const float tile_i = tile[threadIdx.x];
                if (t >= 64u) {
                    dead = true;
                    report_fault(fault_record, site_base + 0u, (unsigned long long)t, 64ull);
                } else {
                    tile[threadIdx.x] = tile_i + tile[t];
                }
            }
        }
        __syncthreads();
    }
    if (dead) {
        return;
    }
    if (threadIdx.x == 0u) {
        if (0ull >= total_len) {
            dead = true;
            report_fault(fault_record, site_base + 1u, 0ull, total_len);
            return;
        }
        atomicAdd(&total[0], tile[0]);
    }
}
