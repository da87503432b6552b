extern "C" __global__ void waits(const unsigned int* x, unsigned int* out)
{
    __shared__ unsigned int turns[2];
    const bool test = threadIdx.x == 0u;
    if (test) {
        turns[0] = 0u;
    }
    unsigned int n = 0u;
    for (;;) {
        const unsigned int t = n + 1u;
        n = t;
        if (test && t == 3u) {
            turns[0] = 5u;
        }
        __syncthreads();
        const unsigned int turns_i = turns[0];
        const unsigned int x_i = x[threadIdx.x + t];
        __syncthreads();
        if (t == turns_i) {
            break;
        }
        out[threadIdx.x] = x_i;
    }
}
