extern "C" __global__ void matmul(const float* a, const float* b, float* c, unsigned long long n)
{
    const unsigned long long t = (unsigned long long)blockIdx.y * (unsigned long long)blockDim.y + (unsigned long long)threadIdx.y;
    const unsigned long long t1 = (unsigned long long)blockIdx.x * (unsigned long long)blockDim.x + (unsigned long long)threadIdx.x;
    if (t < n && t1 < n) {
        float sum = 0.0f;
        unsigned long long next = 0ull;
        for (;;) {
            const unsigned long long next1 = next;
            if (next1 >= n) {
                break;
            }
            next = next1 + 1ull;
            sum = fmaf(a[t * n + next1], b[next1 * n + t1], sum);
        }
        c[t * n + t1] = sum;
    }
}
