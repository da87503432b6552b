extern "C" __global__ void __launch_bounds__(256) wave_tiled(const float* now, const float* before, float* next, float courant, unsigned int width, unsigned int height)
{
    __shared__ float now_tile[18][18];
    const unsigned long long t = (unsigned long long)blockIdx.x * (unsigned long long)blockDim.x + (unsigned long long)threadIdx.x;
    const unsigned int t1 = threadIdx.x + 1u;
    const unsigned long long t2 = (unsigned long long)blockIdx.y * (unsigned long long)blockDim.y + (unsigned long long)threadIdx.y;
    const unsigned int t3 = threadIdx.y + 1u;
    const unsigned long long t4 = t2 * (unsigned long long)width + t;
    const bool test = t >= 1ull && t + 1ull < (unsigned long long)width && t2 >= 1ull && t2 + 1ull < (unsigned long long)height;
    unsigned int next1 = threadIdx.y * 16u + threadIdx.x;
    for (;;) {
        const unsigned int next1_1 = next1;
        if (next1_1 >= 324u) {
            break;
        }
        next1 = next1_1 + 256u;
        const unsigned int t5 = next1_1 % 18u;
        const unsigned int t6 = next1_1 / 18u;
        const long long t7 = (unsigned long long)(long long)blockIdx.x * 16ull + (unsigned long long)(long long)t5;
        const unsigned long long t8 = (unsigned long long)t7 - 1ull;
        const long long t9 = (unsigned long long)(long long)blockIdx.y * 16ull + (unsigned long long)(long long)t6;
        const unsigned long long t10 = (unsigned long long)t9 - 1ull;
        const bool test1 = t8 < (unsigned long long)width && t10 < (unsigned long long)height;
        if (test1) {
            now_tile[t6][t5] = now[t10 * (unsigned long long)width + t8];
        } else {
            now_tile[t6][t5] = 0.0f;
        }
    }
    __syncthreads();
    if (!test) {
        return;
    }
    const float t11 = now_tile[t3 - 1u][t1] + now_tile[t3 + 1u][t1] + now_tile[t3][t1 + 1u];
    const float t12 = courant * courant * (t11 + now_tile[t3][t1 - 1u] - 4.0f * now[t4]);
    next[t4] = 2.0f * now[t4] - before[t4] + t12;
}
