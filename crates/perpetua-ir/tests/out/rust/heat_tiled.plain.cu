extern "C" __global__ void __launch_bounds__(256) heat_tiled(const float* t, float* out, float k, unsigned int width, unsigned int height, unsigned int depth)
{
    __shared__ float t_tile[3][18][18];
    const unsigned long long t1 = (unsigned long long)blockIdx.x * (unsigned long long)blockDim.x + (unsigned long long)threadIdx.x;
    const unsigned int t2 = threadIdx.x + 1u;
    const unsigned long long t3 = (unsigned long long)blockIdx.y * (unsigned long long)blockDim.y + (unsigned long long)threadIdx.y;
    const unsigned int t4 = threadIdx.y + 1u;
    const unsigned long long t5 = (unsigned long long)blockIdx.z * (unsigned long long)blockDim.z + (unsigned long long)threadIdx.z;
    const unsigned int t6 = threadIdx.z + 1u;
    const unsigned long long t7 = (t5 * (unsigned long long)height + t3) * (unsigned long long)width;
    const bool test = t1 >= 1ull && t1 + 1ull < (unsigned long long)width && t3 >= 1ull;
    const bool test1 = test && t3 + 1ull < (unsigned long long)height && t5 >= 1ull && t5 + 1ull < (unsigned long long)depth;
    unsigned int next = threadIdx.y * 16u + threadIdx.x;
    for (;;) {
        const unsigned int next1 = next;
        if (next1 >= 972u) {
            break;
        }
        next = next1 + 256u;
        const unsigned int t8 = next1 % 18u;
        const unsigned int t9 = next1 / 18u;
        const unsigned int t10 = t9 % 18u;
        const unsigned int t11 = t9 / 18u;
        const long long t12 = (unsigned long long)(long long)blockIdx.x * 16ull + (unsigned long long)(long long)t8;
        const unsigned long long t13 = (unsigned long long)t12 - 1ull;
        const long long t14 = (unsigned long long)(long long)blockIdx.y * 16ull + (unsigned long long)(long long)t10;
        const unsigned long long t15 = (unsigned long long)t14 - 1ull;
        const bool test2 = t13 < (unsigned long long)width && t15 < (unsigned long long)height;
        const long long t16 = (unsigned long long)(long long)blockIdx.z + (unsigned long long)(long long)t11;
        const unsigned long long t17 = (unsigned long long)t16 - 1ull;
        const unsigned long long t18 = (t17 * (unsigned long long)height + t15) * (unsigned long long)width;
        if (test2 && t17 < (unsigned long long)depth) {
            t_tile[t11][t10][t8] = t[t18 + t13];
        } else {
            t_tile[t11][t10][t8] = 0.0f;
        }
    }
    __syncthreads();
    if (!test1) {
        return;
    }
    const float t19 = t_tile[t6 - 1u][t4][t2] + t_tile[t6 + 1u][t4][t2] + t_tile[t6][t4 - 1u][t2];
    const float t20 = t19 + t_tile[t6][t4 + 1u][t2] + t_tile[t6][t4][t2 + 1u] + t_tile[t6][t4][t2 - 1u];
    out[t7 + t1] = t_tile[t6][t4][t2] + k * (t20 - 6.0f * t_tile[t6][t4][t2]);
}
