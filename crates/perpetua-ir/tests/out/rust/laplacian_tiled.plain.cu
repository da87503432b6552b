extern "C" __global__ void __launch_bounds__(256) laplacian_tiled(const float* input, float* output, unsigned int width, unsigned int height)
{
    __shared__ float input_tile[18][18];
    const unsigned long long t = (unsigned long long)blockIdx.x * (unsigned long long)blockDim.x + (unsigned long long)threadIdx.x;
    const unsigned int t1 = threadIdx.x + 1u;
    const unsigned long long t2 = (unsigned long long)blockIdx.y * (unsigned long long)blockDim.y + (unsigned long long)threadIdx.y;
    const unsigned int t3 = threadIdx.y + 1u;
    const bool test = t >= 1ull && t + 1ull < (unsigned long long)width && t2 >= 1ull && t2 + 1ull < (unsigned long long)height;
    unsigned int next = threadIdx.y * 16u + threadIdx.x;
    for (;;) {
        const unsigned int next1 = next;
        if (next1 >= 324u) {
            break;
        }
        next = next1 + 256u;
        const unsigned int t4 = next1 % 18u;
        const unsigned int t5 = next1 / 18u;
        const long long t6 = (unsigned long long)(long long)blockIdx.x * 16ull + (unsigned long long)(long long)t4;
        const unsigned long long t7 = (unsigned long long)t6 - 1ull;
        const long long t8 = (unsigned long long)(long long)blockIdx.y * 16ull + (unsigned long long)(long long)t5;
        const unsigned long long t9 = (unsigned long long)t8 - 1ull;
        const bool test1 = t7 < (unsigned long long)width && t9 < (unsigned long long)height;
        if (test1) {
            input_tile[t5][t4] = input[t9 * (unsigned long long)width + t7];
        } else {
            input_tile[t5][t4] = 0.0f;
        }
    }
    __syncthreads();
    if (!test) {
        return;
    }
    const float t10 = input_tile[t3 - 1u][t1] + input_tile[t3 + 1u][t1] + input_tile[t3][t1 + 1u];
    output[t2 * (unsigned long long)width + t] = t10 + input_tile[t3][t1 - 1u] - 4.0f * input_tile[t3][t1];
}
